package model_test

import (
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// If the manager accepts a client's report, verify accepts the trial with it, and the reverse.
// Once, only one of them accepted a report without a timeline. Only the other one accepted a
// timeline that contradicts the counters.
func TestTheClusterAndVerifyAcceptTheSame(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(c *results.Client)
		refused bool
	}{
		"as it was recorded": {change: func(*results.Client) {}},
		"no timeline":        {change: func(c *results.Client) { c.Timeline = results.NewTimeline(0, 0) }},
		"nothing but counters, all out of range": {change: func(c *results.Client) {
			c.Timeline, c.Latency, c.Counters.OutOfRange = results.NewTimeline(0, 0), "", c.Counters.Committed
		}},
		"a transaction less in the timeline": {change: func(c *results.Client) { c.Timeline.Committed[3]-- }, refused: true},
		"a transaction more in the counters": {change: func(c *results.Client) { c.Counters.Committed++ }, refused: true},
		"kinds of operations": {change: func(c *results.Client) {
			c.Operations = []results.Operation{{Name: "READ", Committed: 399, Latency: ""}, {Name: "UPDATE", Committed: 1}}
		}},
		"more of all kinds than committed": {change: func(c *results.Client) {
			c.Operations = []results.Operation{{Name: "READ", Committed: 399}, {Name: "UPDATE", Committed: 2}}
		}, refused: true},
		"a kind twice": {change: func(c *results.Client) {
			c.Operations = []results.Operation{{Name: "READ", Committed: 1}, {Name: "READ", Committed: 2}}
		}, refused: true},
		"no histogram": {change: func(c *results.Client) { c.Latency = "" }, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := recordedClient(t)
			tc.change(&client)
			merged, err := results.Merge([]results.Client{client})
			if (err != nil) != tc.refused {
				t.Errorf("the manager says %v", err)
			}
			trial := results.Trial{
				Name: "e-0", Experiment: "e", Outcome: stats.Succeeded, Coordinates: map[string]string{"clients": "1"},
				MeasureNanos: client.MeasureNanos, Timeline: &client.Timeline,
			}
			if err == nil { // as the manager stores it
				trial.Summary, trial.Timeline = merged.Summary, &merged.Timeline
				if trial.Latency, err = merged.Latency.Encode(); err != nil {
					t.Fatal(err)
				}
			} else { // as a forger would write it
				h := histogramOf(t, client.Latency)
				trial.Summary = results.Summarize(client.Counters, h, time.Duration(client.MeasureNanos))
				for _, o := range client.Operations {
					trial.Summary.Operations = append(trial.Summary.Operations, results.OperationSummary{Name: o.Name, Committed: o.Committed})
				}
				if trial.Latency, err = h.Encode(); err != nil {
					t.Fatal(err)
				}
			}
			lines := []results.TrialLine{model.LineOf(trial)}
			v := model.Verify(results.Experiment{Trials: lines, Points: stats.Points(lines)}, []results.Trial{trial}, v1alpha1.ExperimentSpec{}, nil)
			if (len(v.Differences) > 0) != tc.refused {
				t.Errorf("verify says %v", v.Differences)
			}
		})
	}
}

func recordedClient(t *testing.T) results.Client {
	t.Helper()
	windows := timeline.Windows{Measure: 2 * time.Second}
	r := results.NewRecorder(windows)
	for at := time.Duration(0); at < windows.Measure; at += 5 * time.Millisecond {
		r.Commit(at, 1500*time.Microsecond)
	}
	client := results.Client{Clients: 1, MeasureNanos: int64(windows.Measure)}
	if err := r.Fill(&client); err != nil {
		t.Fatal(err)
	}
	return client
}

func histogramOf(t *testing.T, encoded string) *results.Histogram {
	t.Helper()
	if encoded == "" {
		return results.NewHistogram()
	}
	h, err := results.DecodeHistogram(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
