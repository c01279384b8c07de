package experiment

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// largest returns results with as many numbers as an experiment may have, all different.
func largest(trials int) *results.Experiment {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() float64 { return 1000 * random.Float64() }
	e := &results.Experiment{Name: "exp", Planned: trials}
	each := plan.MaxAggregates / plan.MaxPoints
	for i := range plan.MaxPoints {
		p := results.PointResult{Index: int32(i), Coordinates: map[string]string{"clients": fmt.Sprint(i)}, Valid: 3, Metrics: map[string]results.Aggregate{}}
		for m := range each {
			p.Metrics[fmt.Sprintf("measurement-%d", m)] = results.Aggregate{N: 3, Mean: number(), StdDev: number(), Min: number(), Max: number(), Low: number(), High: number()}
		}
		e.Points = append(e.Points, p)
	}
	for i := range trials {
		e.Trials = append(e.Trials, results.TrialLine{
			Name: fmt.Sprintf("exp-1234-%d", i), Number: int32(i), Outcome: stats.Succeeded, Coordinates: map[string]string{"clients": fmt.Sprint(i % plan.MaxPoints)},
			Throughput: number(), MeanMillis: number(), P50Millis: number(), P99Millis: number(),
		})
	}
	return e
}

// An experiment with any number of results can be stored. The results name the parts that were left
// out.
func TestTheLargestResultsFit(t *testing.T) {
	for name, tc := range map[string]struct {
		trials, lines int
		leftOut       string
	}{
		"no trial":                {0, 0, ""},
		"as many trials as allow": {plan.MaxTrials, 0, "lines of trials that succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{exp: &v1alpha1.Experiment{}, plan: &plan.Plan{}, built: largest(tc.trials), now: metav1.Now()}
			data, packed, leftOut, err := encode(s)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, text := range data {
				size += len(text)
			}
			for _, b := range packed {
				size += len(b)
			}
			if size > maxStored {
				t.Errorf("%d bytes, at most %d fit", size, maxStored)
			}
			t.Logf("%d bytes of %d", size, maxStored)
			files, err := results.StoredExperiment(data, packed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := results.DecodeExperiment([]byte(files[results.ExperimentKey]))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Points) != plan.MaxPoints || len(got.Trials) != tc.lines {
				t.Errorf("%d points and %d lines, want %d and %d", len(got.Points), len(got.Trials), plan.MaxPoints, tc.lines)
			}
			if text := strings.Join(leftOut, "; "); !strings.Contains(text, tc.leftOut) {
				t.Errorf("left out: %s; want %q among it", text, tc.leftOut)
			}
		})
	}
}
