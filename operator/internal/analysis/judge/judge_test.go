package judge_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
)

var update = flag.Bool("update", false, "write testdata/again.golden")

var (
	began = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	today = began.Add(48 * time.Hour)
)

// experiment has two loads, a measurement of each kind, and two claims.
func experiment() *v1alpha1.Experiment {
	return &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "kv"}, Spec: v1alpha1.ExperimentSpec{
		Systems: []v1alpha1.SystemReference{{Name: "etcd"}}, Workload: v1alpha1.WorkloadReference{Name: "puts"}, Topology: v1alpha1.Topology{F: 1}, Clients: v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Count: 1},
		Sweep: []v1alpha1.Axis{{Axis: "clients", Values: []v1alpha1.Value{v1alpha1.NewValue("1"), v1alpha1.NewValue("4")}}}, Schedule: v1alpha1.Schedule{Measure: "10s"}, Repetitions: v1alpha1.Repetitions{Min: 2},
		Measurements: []v1alpha1.Measurement{{Name: "cpu", Query: "sum(cpu)"}, {Name: "retries", Counter: "retries"}},
		Claims:       []v1alpha1.Claim{{Name: "more", Statement: "It scales.", Expr: "throughput(clients=4) > throughput(clients=1)"}},
		Profiles:     []v1alpha1.Profile{{Name: "smoke", Schedule: &v1alpha1.Schedule{Measure: "2s"}, Claims: []v1alpha1.ProfileClaim{{Name: "more", Skip: "too short"}}}, {Name: "large"}},
	}}
}

// ran has two trials of each load, one of which has no results of its own.
func ran(t *testing.T) judge.Ran {
	t.Helper()
	spec := experiment().Spec
	done := began.Add(time.Hour)
	r := judge.Ran{Spec: spec, Results: results.Experiment{
		Name: "kv", UID: "u", Seed: 7, Started: began, Completed: &done, Written: done, Planned: 4, SpecSHA256: "old", AdditionalRepetitions: 1, Stopped: "by hand", NotMeasuring: []results.TrialLine{{Name: "kv-flame"}},
		Axes: []results.Axis{{Name: "clients", Values: []string{"1", "4"}}}, LeftOut: []string{"a file of logs"}, Seal: &results.Seal{SHA256: seal.Of(spec), Sealed: seal.Text(spec)},
	}}
	cpu := 0.5
	for number := range int32(4) {
		point := number % 2
		load := []string{"1", "4"}[point]
		l := results.TrialLine{
			Name: fmt.Sprintf("kv-%d", number), Number: number, PointIndex: point, Repetition: number / 2, Outcome: "Succeeded", Coordinates: map[string]string{"clients": load}, Committed: 1000, Throughput: float64(100 + 250*point + number), MeanMillis: 10,
			ConfigMap: fmt.Sprintf("kv-%d-results", number), Checks: []results.Check{{Name: "linear"}}, Measurements: []results.Measurement{{Name: "cpu", Value: &cpu}},
		}
		r.Results.Trials = append(r.Results.Trials, l)
		if number == 3 {
			continue
		}
		r.Trials = append(r.Trials, results.Trial{
			Name: l.Name, Number: number, PointIndex: point, Repetition: l.Repetition, Outcome: "Succeeded", Coordinates: l.Coordinates, MeasureNanos: 10e9, Measurements: l.Measurements, Driver: map[string]int64{"retries": int64(number)},
			Summary: results.Summary{Counters: results.Counters{Committed: 1000}, Throughput: l.Throughput, MeanMillis: 10},
		})
	}
	r.Trials = append(r.Trials, results.Trial{Name: "kv-flame", Number: 9, NotMeasuring: true, Outcome: "Succeeded"})
	return r
}

// The golden file has every difference in a report that judges old trials by today's claims.
func TestTrialsAreJudgedAgain(t *testing.T) {
	twenty := v1alpha1.NewValue("250")
	var out strings.Builder
	for _, tc := range []struct {
		name   string
		change func(ran *judge.Ran, exp *v1alpha1.Experiment)
	}{
		{"by the same file", func(*judge.Ran, *v1alpha1.Experiment) {}},
		{"by another claim", func(_ *judge.Ran, exp *v1alpha1.Experiment) { exp.Spec.Claims[0].Expr = "throughput(clients=4) > 5000" }},
		{"by one more claim", func(_ *judge.Ran, exp *v1alpha1.Experiment) {
			exp.Spec.Claims = append(exp.Spec.Claims, v1alpha1.Claim{Name: "by", Statement: "By so much.", Expr: "throughput(clients=4) - throughput(clients=1)", Reported: &twenty, Within: "10%"})
		}},
		{"a second time, by the same claims", func(r *judge.Ran, exp *v1alpha1.Experiment) {
			first, _, err := judge.Again(*r, judge.Today{Experiment: exp}, today)
			if err != nil {
				t.Fatal(err)
			}
			r.Before = first.Judged
		}},
		{"a third time, by others", func(r *judge.Ran, exp *v1alpha1.Experiment) {
			r.Before = &results.Judged{Times: 2, OtherClaims: 1, SpecSHA256: "x", ClaimsSHA256: "y"}
		}},
		{"by more measurements", func(_ *judge.Ran, exp *v1alpha1.Experiment) {
			exp.Spec.Measurements = append(exp.Spec.Measurements, v1alpha1.Measurement{Name: "memory", Query: "max(memory)"}, v1alpha1.Measurement{Name: "more", Counter: "retries"})
		}},
		{"by a measurement in another unit", func(_ *judge.Ran, exp *v1alpha1.Experiment) {
			exp.Spec.Measurements[0].Unit, exp.Spec.Measurements[0].Required = "cores", true
		}},
		{"without a seal", func(r *judge.Ran, _ *v1alpha1.Experiment) { r.Results.Seal = nil }},
		{"with a seal from before texts were kept", func(r *judge.Ran, _ *v1alpha1.Experiment) { r.Results.Seal.Sealed = nil }},
		{"of a profile", func(r *judge.Ran, exp *v1alpha1.Experiment) { r.Spec.Profile, exp.Spec.Profile = "smoke", "smoke" }},
		{"of a profile, by the full file of today", func(r *judge.Ran, exp *v1alpha1.Experiment) {
			r.Spec.Profile, exp.Spec.Profile = "smoke", "smoke"
			exp.Spec.Repetitions.Min, exp.Spec.Profiles[0].Claims = 5, nil
		}},
		{"of a run that is not over", func(r *judge.Ran, _ *v1alpha1.Experiment) { r.Results.Completed, r.Results.Started = nil, time.Time{} }},
	} {
		r, exp := ran(t), experiment()
		tc.change(&r, exp)
		e, spec, err := judge.Again(r, judge.Today{Experiment: exp, File: "kv.yaml"}, today)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		e.Judged.By = ""
		text, err := json.MarshalIndent(map[string]any{"experiment": e, "profiles": spec.Profiles, "repetitions": spec.Repetitions, "claims": spec.Claims, "profile": spec.Profile}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "# %s\n%s\n", tc.name, text)
	}
	file := filepath.Join("testdata", "again.golden")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o750), os.WriteFile(file, []byte(out.String()), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("go test -update writes it (-want +got):\n%s", diff)
	}
}

func TestTrialsOfAnotherExperimentAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(exp *v1alpha1.Experiment)
		want   string
	}{
		"another name":        {func(exp *v1alpha1.Experiment) { exp.Name = "other" }, "the trials are of experiment kv"},
		"another load":        {func(exp *v1alpha1.Experiment) { exp.Spec.Clients.ThinkTime = "5ms" }, "clients.thinkTime"},
		"another question":    {func(exp *v1alpha1.Experiment) { exp.Spec.Measurements[0].Query = "sum(other)" }, "measurements[cpu] asked something else in the run"},
		"a question's window": {func(exp *v1alpha1.Experiment) { exp.Spec.Measurements[0].Over = v1alpha1.OverMaximum }, "measurements[cpu] asked something else in the run"},
	} {
		exp := experiment()
		tc.change(exp)
		_, _, err := judge.Again(ran(t), judge.Today{Experiment: exp}, today)
		var refused *judge.RefusedError
		if !errors.As(err, &refused) || refused.Experiment != exp.Name || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want that it is refused: %s", name, err, tc.want)
		}
	}
	exp := experiment()
	exp.Spec.Measurements[1].Counter = "another"
	if _, _, err := judge.Again(ran(t), judge.Today{Experiment: exp}, today); err != nil {
		t.Errorf("a counter is read anew: %v", err)
	}
}
