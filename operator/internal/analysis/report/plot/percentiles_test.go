package plot_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// withPercentiles has the percentiles of two systems over clients.
func withPercentiles(of ...string) results.Experiment {
	e := scaled("5", "10", "20")
	e.Axes[0].Values, e.Points, e.Trials = e.Axes[0].Values[:2], e.Points[:6], trialsOf(e, "old", "new")
	e.Figures = []results.Figure{{Name: "tails", Percentiles: of}}
	e.Reported = []results.ReportedSeries{{Name: "old", Metric: "P99Latency", Unit: "ms", Axis: "clients", At: map[string]string{"system": "old"}, X: []string{"5", "10", "20"}, Y: []float64{19, 11, 8}}}
	return e
}

func trialsOf(e results.Experiment, systems ...string) (lines []results.TrialLine) {
	for _, l := range e.Trials {
		for _, s := range systems {
			if l.Coordinates["system"] == s {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

func TestPercentilesAsCurves(t *testing.T) {
	svg := picture(t, withPercentiles("P50", "P95", "P99"), "figure-01-tails")
	golden(t, "percentiles", svg)
	contains(t, "the picture", string(svg), ">old, p50<", ">old, p95<", ">new, p99<", ">old, p99 (paper)<", "latency (ms)")

	// Nine curves cannot be told apart: each system has a plot of its own.
	e := scaled("5", "10", "20")
	e.Figures = []results.Figure{{Name: "tails", Percentiles: []string{"P50", "P95", "P99"}}}
	for i, system := range e.Axes[0].Values {
		contains(t, system, string(picture(t, e, "figure-0"+string(rune('1'+i))+"-tails-"+system)), "Percentiles of latency, "+system, ">p95<")
	}
}

func TestPercentilesAsBars(t *testing.T) {
	e := withPercentiles("P50", "P999")
	e.Axes[1].Values = e.Axes[1].Values[:1]
	e.Points = []results.PointResult{e.Points[0], e.Points[3]}
	svg := picture(t, e, "figure-01-tails")
	contains(t, "the bars", string(svg), ">system=old<", ">p99.9<", ">n=4<")
}

// A percentile that depends on a handful of transactions, or that results do not have, is no
// finding.
func TestWhatPercentilesLack(t *testing.T) {
	e := withPercentiles("P95", "P99")
	for i := range e.Trials {
		e.Trials[i].P95Millis = 0
		if e.Trials[i].PointIndex == 1 {
			e.Trials[i].Committed = 500
		}
	}
	e.Points = stats.Points(e.Trials)
	var text bytes.Buffer
	if err := format.Text(&text, e, format.TextOptions{Width: 1000}); err != nil {
		t.Fatal(err)
	}
	contains(t, "the report", text.String(), "6 points have no p95: the trials' results do not say it.", "p99 of 1 point: some trial has fewer than 10 transactions beyond it")
}

// No line has the 95th percentile; a report reads it from each trial's histogram.
func TestP95IsOfTheTrialsOwnHistogram(t *testing.T) {
	h := results.NewHistogram()
	for ms := range 100 {
		h.Record(time.Duration(ms+1) * time.Millisecond)
	}
	latency, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e := withPercentiles("P95")
	own := results.Trial{Name: e.Trials[0].Name, Outcome: stats.Succeeded, PointIndex: e.Trials[0].PointIndex, Coordinates: e.Trials[0].Coordinates, Latency: latency}
	e.Trials[1].P95Millis = 0 // as in older results
	var d model.Details
	d.Add(own)
	d.Into(&e)
	if got := e.Trials[0].P95Millis; got < 94.9 || got > 95.1 {
		t.Errorf("p95 is %g ms, want 95", got)
	}
	if got := e.Trials[1].P95Millis; got != 0 {
		t.Errorf("p95 of a trial without a histogram is %g", got)
	}
	if !strings.Contains(string(picture(t, e, "figure-01-tails")), "p95") {
		t.Error("it is not drawn")
	}
}
