package model_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// untilDecided is an experiment of two points whose repetitions go on until its claim is decided.
func untilDecided(t *testing.T) *plan.Plan {
	t.Helper()
	most := int32(8)
	exp := builders.Experiment("e").System("basil").Values("clients", 1, 2).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Repetitions = v1alpha1.Repetitions{Min: 3, Max: &most, Until: &v1alpha1.StoppingRule{Claims: v1alpha1.ClaimsDecided}}
		s.Claims = []v1alpha1.Claim{{Name: "more", Statement: "s", Expr: "throughput(clients=2) > throughput(clients=1)"}}
	}).Obj()
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"basil": builders.System("basil").Obj().Spec})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return p
}

// roundsOfTwo returns n rounds of two points whose throughputs differ by a share.
func roundsOfTwo(n int, share float64) (lines []results.TrialLine) {
	for k := range n {
		for point := range 2 {
			off := math.Sin(float64(7*k + 3*point)) // deviates, the same on every run
			lines = append(lines, results.TrialLine{Number: int32(2*k + point), PointIndex: int32(point), Repetition: int32(k), Outcome: "Succeeded", Committed: 1e6,
				Coordinates: map[string]string{"clients": []string{"1", "2"}[point]}, Throughput: 100 * (1 + share*float64(point) + 0.02*off), MeanMillis: 10})
		}
	}
	return lines
}

func TestLooks(t *testing.T) {
	p := untilDecided(t)
	exp := builders.Experiment("e").System("basil").Set(func(s *v1alpha1.ExperimentSpec) { *s = p.Spec }).Obj()
	done := metav1.NewTime(time.Unix(1e9, 0))
	for name, tc := range map[string]struct {
		lines    []results.TrialLine
		complete bool
		open     bool
		look     int
		verdict  string
		says     string
	}{
		"before the first look":      {roundsOfTwo(2, 0.2), false, true, 0, "NotEvaluated", "Verdicts are looked at 6 times at most, first after round 3."},
		"within the fourth round":    {roundsOfTwo(4, 0.2)[:7], false, false, 1, "Holds", "Verdicts were looked at once of at most 6 times, after round 3; trials go on."},
		"decided at the first":       {roundsOfTwo(3, 0.2), true, false, 1, "Holds", "once of at most 6 times, after round 3. Their intervals hold at any of these looks"},
		"hopeless at the third":      {roundsOfTwo(5, 0.02), false, false, 3, "Inconclusive", "Verdicts were looked at 3 times of at most 6, after rounds 3 to 5; trials go on."},
		"open at the first":          {roundsOfTwo(3, 0.03), false, true, 1, "Inconclusive", "Verdicts were looked at once of at most 6"},
		"a point that was given up":  {roundsOfTwo(5, 0.2)[:9], true, false, 3, "Holds", "after rounds 3 to 5."},
		"more rounds than there are": {roundsOfTwo(10, 0.01), true, true, 6, "Inconclusive", "6 times of at most 6"},
	} {
		t.Run(name, func(t *testing.T) {
			e := exp.DeepCopy()
			if tc.complete {
				e.Status.CompletionTime = &done
			}
			r := model.Build(e, nil, p.Axes, tc.lines, time.Time{})
			if r.Look == nil || r.Look.Number != tc.look || r.Claims[0].Verdict != tc.verdict {
				t.Fatalf("look %+v, %s: %s", r.Look, r.Claims[0].Verdict, r.Claims[0].Message)
			}
			var page bytes.Buffer
			if err := format.Text(&page, r, format.TextOptions{Width: 1000}); err != nil || !strings.Contains(page.String(), tc.says) {
				t.Errorf("%v: %s", err, page.String())
			}
			if tc.look > 0 {
				if open := len(model.OpenClaims(p, tc.lines)(r.Look.Rounds)) > 0; open != (tc.open && tc.look < 6) {
					t.Errorf("open is %v", open)
				}
			}
		})
	}
}
