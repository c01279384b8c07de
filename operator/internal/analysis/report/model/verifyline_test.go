package model_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Once, a forger could take the clients' time out of a line, or make it 1. That removed a caution
// from the verdicts, and verify did not notice.
func TestVerifyComparesWhatCautionsRestOn(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	trial := results.Trial{Name: "e-0", Outcome: stats.Succeeded, MeasureNanos: 10e9, CorrectClients: 2, ClosedLoop: &results.ClosedLoop{},
		Summary: results.Summary{Counters: results.Counters{Committed: 1000}, Throughput: 100, MeanMillis: 10},
		Pods:    []results.Pod{{ClientRun: &results.ClientRun{}, Resources: &results.Resources{Seconds: 10, Node: results.NodeUse{BusyShare: 0.95}}}}}
	before := trial
	before.ClosedLoop = nil
	for name, tc := range map[string]struct {
		trial      results.Trial
		time, busy *float64
		want       string
	}{
		"as it was":       {trial: trial, time: share(0.5), busy: share(0.95)},
		"another time":    {trial: trial, time: share(1), busy: share(0.95), want: "share of the clients' time"},
		"no time":         {trial: trial, busy: share(0.95), want: "share of the clients' time"},
		"less busy":       {trial: trial, time: share(0.5), busy: share(0.5), want: "busy share of client pods"},
		"not busy":        {trial: trial, time: share(0.5), want: "busy share of client pods"},
		"older than both": {trial: before},
	} {
		line := model.LineOf(tc.trial)
		line.ClientTimeShare, line.ClientBusyShare = tc.time, tc.busy
		e := results.Experiment{Name: "e", Trials: []results.TrialLine{line}, Points: stats.Points([]results.TrialLine{line})}
		differences := strings.Join(model.Verify(e, []results.Trial{tc.trial}, v1alpha1.ExperimentSpec{}, nil).Differences, "\n")
		if (differences != "") != (tc.want != "") || !strings.Contains(differences, tc.want) {
			t.Errorf("%s: %q, want %q", name, differences, tc.want)
		}
	}
}
