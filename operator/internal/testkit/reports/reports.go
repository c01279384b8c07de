// Package reports has experiments for tests of reports.
package reports

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Start is when the first trial began.
var Start = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

// Axes are the axes of Experiment.
var Axes = []results.Axis{{Name: "clients", Values: []string{"5", "50"}}, {Name: "variant", Values: []string{"ideal", "failure-nofp", "failure-fp"}}}

// Experiment is the failure experiment from the notes of the Pesto artifact, at two of its loads.
func Experiment() *v1alpha1.Experiment {
	value := v1alpha1.NewValue
	series := func(variant, metric, unit, low, high string) v1alpha1.ReportedSeries {
		return v1alpha1.ReportedSeries{
			Name: "u-" + variant + "-" + strings.ToLower(metric), Metric: metric, Unit: unit, At: map[string]v1alpha1.Value{"variant": value(variant)}, Axis: "clients",
			Values: []v1alpha1.ReportedValue{{X: value("5"), Y: value(low)}, {X: value("50"), Y: value(high)}},
		}
	}
	oneTimeout := value("4.1ms")
	extra := series("ideal", "P99Latency", "furlongs", "1", "2")
	odd := series("failure-fp", "MeanLatency", "ms", "8.2", "about 12")
	odd.Note = "The table gives 7 throughputs and 7 latencies; the second load is taken as 50."
	odd.Values = append(odd.Values, v1alpha1.ReportedValue{X: value("60"), Y: value("12.1")})
	return &v1alpha1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Name: "failure-fp", Namespace: "default", UID: "5d3c"},
		Spec: v1alpha1.ExperimentSpec{
			Source:      &v1alpha1.Source{Title: "Pesto (SOSP'25)", Section: "5 Failure", URL: "https://example.org/pesto", Systems: []v1alpha1.SourceSystem{{Name: "Basil"}}},
			Systems:     []v1alpha1.SystemReference{{Name: "basil"}},
			Repetitions: v1alpha1.Repetitions{Min: 3},
			Profile:     "smoke",
			Profiles: []v1alpha1.Profile{{Name: "smoke", Claims: []v1alpha1.ProfileClaim{
				{Name: "one-timeout", Within: "25%"}, {Name: "peaks", Skip: "two cores do not reach the peak"},
			}}},
			Reported: []v1alpha1.ReportedSeries{
				series("ideal", "Throughput", "tx/s", "3085", "7008"), series("failure-nofp", "Throughput", "ktx/s", "3.038", "5.816"), series("failure-fp", "Throughput", "tx/s", "3139", "5323"),
				series("ideal", "MeanLatency", "ms", "2.6", "4.4"), odd, extra,
			},
			Claims: []v1alpha1.Claim{
				{
					Name: "order-at-low-load", Statement: "Losing the fast path costs more than not having it.",
					Expr: "mean_latency(variant='ideal', clients=5) < mean_latency(variant='failure-nofp', clients=5) && mean_latency(variant='failure-nofp', clients=5) < mean_latency(variant='failure-fp', clients=5)",
				},
				{
					Name: "one-timeout", Statement: "Losing the fast path costs one fast-path timeout.",
					Expr: "mean_latency(variant='failure-fp', clients=5) - mean_latency(variant='failure-nofp', clients=5)", Reported: &oneTimeout, Within: "1%",
				},
				{Name: "peaks", Statement: "The ideal case peaks higher.", Expr: "max_throughput(variant='ideal') > max_throughput(variant='failure-nofp')"},
				{Name: "peak-order", Statement: "Without the fast path the peak is higher than after its loss.", Expr: "max_throughput(variant='failure-nofp') > max_throughput(variant='failure-fp')"},
			},
		},
		Status: v1alpha1.ExperimentStatus{
			Seed: 42, StartTime: &metav1.Time{Time: Start}, CompletionTime: &metav1.Time{Time: Start.Add(time.Hour)},
		},
	}
}

// Lines are the trials: three for each point, but one for the last point. They include an invalid
// and a failed attempt.
func Lines() []results.TrialLine {
	mean := []float64{2.63, 4.08, 8.21, 7.1, 8.5, 9.2}
	var ls []results.TrialLine
	add := func(point int, repetition, attempt int32) *results.TrialLine {
		number := int32(len(ls))
		ls = append(ls, results.TrialLine{
			Name: fmt.Sprintf("failure-fp-%d", number), Number: number, PointIndex: int32(point), Repetition: repetition, Attempt: attempt, Outcome: stats.Succeeded,
			Coordinates: map[string]string{"clients": Axes[0].Values[point/3], "variant": Axes[1].Values[point%3]}, GapSeconds: 2 + float64(number%5)/10, ConfigMap: fmt.Sprintf("failure-fp-%d-results", number),
		})
		return &ls[len(ls)-1]
	}
	for repetition := range int32(3) {
		for point := range 6 {
			if point == 5 && repetition > 0 {
				continue
			}
			if point == 2 && repetition == 1 {
				l := add(point, repetition, 0)
				l.Outcome, l.Reason, l.Message, l.Throughput = stats.Invalid, "FaultLate", "Fault replica-crash was confirmed 31 ms late; 20 ms are tolerated.", 1
			}
			attempt := int32(0)
			if point == 2 && repetition == 1 {
				attempt = 1
			}
			l := add(point, repetition, attempt)
			clients := []float64{5, 50}[point/3]
			l.MeanMillis = mean[point] * []float64{1, 0.985, 1.012}[repetition]
			l.P50Millis, l.P99Millis, l.Throughput = l.MeanMillis*0.93, l.MeanMillis*2.4, clients*1000/l.MeanMillis
			l.Committed = int64(l.Throughput * 20)
			l.Aborted = l.Committed / int64(40+repetition)
		}
	}
	ls[0].GapSeconds = 0
	l := add(5, 1, 0)
	l.Outcome, l.Reason, l.Message, l.GapSeconds = stats.Failed, "RunLost", "The pods of the run are gone.", 31.4
	return ls
}

// Systems of the experiment: a Basil that is not its authors' program.
var Systems = map[string]v1alpha1.SystemSpec{"basil": {Program: &v1alpha1.Program{Name: "Basil in Go", Version: "1", Reimplements: "Basil"}}}

// Build is the experiment of Lines.
func Build() results.Experiment {
	return model.Build(Experiment(), Systems, Axes, Lines(), Start.Add(time.Hour+time.Second))
}

// WithEverything has every kind of plot and table.
func WithEverything() results.Experiment {
	e := Build()
	e.Series = []results.PointSeries{{
		Point: 2, Coordinates: map[string]string{"clients": "5", "variant": "failure-fp"}, Trials: 2, IntervalMillis: 100, FirstMillis: -200, MeasureMillis: 400,
		Throughput: []float64{10, 20, 0, 5, 30, 30, 30, 30}, ThroughputMin: []float64{5, 10, 0, 0, 20, 20, 20, 20}, ThroughputMax: []float64{15, 30, 0, 10, 40, 40, 40, 40},
		Latency: []float64{1, 2, 0, 40, 3, 3, 3, 3}, Committed: []int64{2, 4, 0, 1, 6, 6, 6, 6},
		ByTrial: []results.TrialSeries{{Name: "a", Latency: []float64{1, 2, 0, 40, 3, 3, 3, 3}}, {Name: "b", Latency: []float64{1, 2, 0, 0, 3, 3, 3, 3}}},
		Marks: []results.FaultMark{
			{Fault: "replica-crash", Time: 1, Kind: "Kill", Millis: 1, MinMillis: -40, MaxMillis: 40},
			{Fault: "replica-crash", Time: 1, Kind: "Revive", Ends: true, Millis: 300, MinMillis: 300, MaxMillis: 300},
		},
	}}
	for i, p := range e.Points {
		e.Latencies = append(e.Latencies, results.PointLatency{Point: p.Index, Coordinates: p.Coordinates, Trials: 3, Count: 1000, Percentiles: []float64{1, 50, 90, 99}, Millis: []float64{1, 2 + float64(i), 4, 9}})
	}
	e.Axes = []results.Axis{{Name: "clients", Values: []string{"5", "50", "100"}}, Axes[1]} // a third load, so that curves have knees
	for i, variant := range Axes[1].Values {
		e.Points = append(e.Points, results.PointResult{
			Index: int32(len(e.Points)), Coordinates: map[string]string{"clients": "100", "variant": variant}, Valid: 5, Metrics: map[string]results.Aggregate{
				"throughput": stats.Aggregate([]float64{7100 - 500*float64(i), 7200, 7150, 6900, 7050}), "meanLatency": stats.Aggregate([]float64{14, 14.4, 13.9, 14.2, 14.1}),
				"p99Latency": stats.Aggregate([]float64{31, 30, 33, 32, 31}), "abortRate": stats.Aggregate([]float64{0.02, 0.021, 0.02, 0.022, 0.02}),
			},
		})
	}
	for i := range e.Trials {
		e.Trials[i].Window = &results.WindowCheck{Throughput: &results.Transient{Steady: i%5 > 0, Millis: 2500, Bias: -0.08}, Latency: &results.Transient{Steady: true}}
	}
	for _, p := range e.Points {
		e.Resources = append(e.Resources, results.ResourceLine{
			Point: p.Index, Coordinates: p.Coordinates, Part: "replica", Pods: 6, Trials: 3, CPUMeanCores: 0.8, CPUTotalCores: 4.8, CPUMaxCores: 1.4, MemoryMaxBytes: 150 << 20,
			ReceivedPerSecond: 41e6, SentPerSecond: 40e6, BusyShare: 0.4, Balance: &results.PartBalance{CPUCoV: 0.21, CPUMaxToMean: 1.4, SentCoV: 0.3, SentMaxToMean: 1.6, CPUMeanCoV: 0.24, CPUOutside: 0.03, SeriesTrials: 3},
		})
	}
	return e
}

// Wobble is how much the runs of an unchanged system differ here, in a fixed order without a trend.
var Wobble = []float64{0.3, -0.5, 0.9, -0.2, -0.8, 0.6, 0.1, -0.9, 0.7, -0.4, 0.5, -0.6, 0.8, -0.1, -0.7, 0.4}

// RunOf is a run on a day. It has one point with the given metrics.
func RunOf(day int, metrics map[string]float64) model.Historic {
	e := results.Experiment{
		Name: "kv", UID: fmt.Sprint(day), Started: time.Date(2026, 5, day, 1, 0, 0, 0, time.UTC),
		Axes:     []results.Axis{{Name: "clients", Values: []string{"10"}}},
		Fidelity: &results.Fidelity{Systems: []results.SystemFidelity{{System: "kv", Program: "KV", Version: fmt.Sprintf("1.%d", day)}}},
		Points:   []results.PointResult{{Coordinates: map[string]string{"clients": "10"}, Metrics: map[string]results.Aggregate{}}},
	}
	for name, mean := range metrics {
		e.Points[0].Metrics[name] = stats.Aggregate([]float64{mean - 1, mean, mean + 1})
	}
	return model.Historic{From: fmt.Sprintf("day-%d.tar.gz", day), Results: e}
}

// Nightly are sixteen runs. From the eleventh on, throughput is a tenth lower and latency a tenth
// higher. Aborts do not change, and neither does the metric without a better direction.
func Nightly() []model.Historic {
	var runs []model.Historic
	for i, w := range Wobble {
		change := 0.0
		if i >= 10 {
			change = 1
		}
		runs = append(runs, RunOf(i+1, map[string]float64{
			stats.Throughput: 1000 + 5*w - 100*change, stats.MeanLatency: 20 + 0.1*w + 4*change, stats.P99Latency: 50 + w, stats.AbortRate: 0, "replicaCPU": 3 + 0.01*w + 1*change,
		}))
	}
	return runs
}

// HistoryOf builds a history. It fails the test on an error.
func HistoryOf(t *testing.T, runs []model.Historic, o model.HistoryOptions) model.History {
	t.Helper()
	h, err := model.NewHistory(runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Section is the text of a Markdown report below a heading.
func Section(t *testing.T, e results.Experiment, title string) string {
	t.Helper()
	var page bytes.Buffer
	if err := format.Markdown(&page, e); err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(page.String(), "\n## "+title+"\n")
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}
