package plot_test

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// paused is a trial with a window of 4 s after a second of warm-up. It has perBin transactions in
// each bin of 100 ms, and none in a pause. Two pods confirm the pause some milliseconds after its
// second, and it ends one second later. Each transaction takes 5 ms.
func paused(t *testing.T, name string, perBin int64, late float64) results.Trial {
	t.Helper()
	line := results.NewTimeline(-1000, 60)
	h := results.NewHistogram()
	for i := range line.Committed {
		if at := line.FirstMillis + int64(i)*100; at < 1000 || at >= 2000 {
			line.Committed[i], line.LatencySumMicros[i] = perBin, perBin*5000
			for range perBin {
				h.Record(5 * time.Millisecond)
			}
		}
	}
	latency, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	pause := func(pod string, late float64) results.FaultRecord {
		return results.FaultRecord{ID: "stall/1/pause/" + pod, Fault: "stall", Kind: "Pause", Pod: pod, PlannedMillis: 1000, StartedMillis: 1000, ConfirmedMillis: 1000 + late}
	}
	return results.Trial{
		Name: name, Outcome: "Succeeded", Coordinates: map[string]string{"variant": "stalled"}, MeasureNanos: 4e9, Timeline: &line, Latency: latency,
		Faults: []results.FaultRecord{
			pause("b", late+7), pause("a", late), {Fault: "stall", Kind: "Pause", Pod: "c", Skipped: true},
			{ID: "stall/1/resume/a", Fault: "stall", Kind: "Resume", Pod: "a", PlannedMillis: 2000, StartedMillis: 2000, ConfirmedMillis: 2000 + late, Ends: "stall/1/pause/a"},
		},
		Pods: []results.Pod{{Part: "replica", Images: "sha256:b, sha256:a", AgentImage: "sha256:c", Kernel: "6.1", CPUModel: "Model", CPUs: 2, Node: "n1"}},
	}
}

func stalled(t *testing.T) results.Experiment {
	t.Helper()
	var d model.Details
	d.Add(paused(t, "t-0", 20, 2))
	d.Add(paused(t, "t-1", 30, 40))
	invalid := paused(t, "t-2", 900, 2)
	invalid.Outcome = "Invalid"
	d.Add(invalid)
	e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "variant", Values: []string{"stalled", "calm"}}}}
	d.Into(&e)
	return e
}

func TestSeriesOfTrialsWithFaults(t *testing.T) {
	e := stalled(t)
	if len(e.Series) != 1 {
		t.Fatalf("series: %+v", e.Series)
	}
	s := e.Series[0]
	// 20 transactions a bin are enough: the bins stay as they are. Bin 9 is the last before t = 0.
	if s.Trials != 2 || s.IntervalMillis != 100 || s.FirstMillis != -1000 || len(s.Throughput) != 60 || s.MeasureMillis != 4000 {
		t.Errorf("%d trials, %d bins of %d ms from %d ms on, window %g ms", s.Trials, len(s.Throughput), s.IntervalMillis, s.FirstMillis, s.MeasureMillis)
	}
	for i, want := range map[int][4]float64{9: {250, 200, 300, 5}, 20: {0, 0, 0, 0}, 30: {250, 200, 300, 5}} {
		if got := [4]float64{s.Throughput[i], s.ThroughputMin[i], s.ThroughputMax[i], s.Latency[i]}; got != want {
			t.Errorf("bin %d: %v, want %v", i, got, want)
		}
	}
	if len(s.ByTrial) != 2 || s.ByTrial[0].Name != "t-0" || s.ByTrial[1].Latency[9] != 5 || s.ByTrial[1].Latency[20] != 0 {
		t.Errorf("trials: %+v", s.ByTrial)
	}
	want := []results.FaultMark{
		{Fault: "stall", Time: 1, Kind: "Pause", Millis: 1021, MinMillis: 1002, MaxMillis: 1040},
		{Fault: "stall", Time: 1, Kind: "Resume", Ends: true, Millis: 2021, MinMillis: 2002, MaxMillis: 2040},
	}
	if diff := cmp.Diff(want, s.Marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	wantFrom := &results.Provenance{Images: map[string][]string{"agent": {"sha256:c"}, "replica": {"sha256:a", "sha256:b"}}, Kernels: []string{"6.1"}, CPUs: []string{"2 x Model"}, Nodes: []string{"n1"}}
	if diff := cmp.Diff(wantFrom, e.Provenance); diff != "" {
		t.Errorf("provenance (-want +got):\n%s", diff)
	}
}

// A trial whose load was to change is drawn over time without a fault, too, with its load as a
// third line. Its window need not have one level.
func TestSeriesOfAChangingLoad(t *testing.T) {
	var d model.Details
	trial := paused(t, "t-0", 30, 2)
	trial.Faults, trial.ChangingLoad = nil, true
	trial.Timeline.Offered = make([]int64, 60)
	for i := range trial.Timeline.Offered {
		trial.Timeline.Offered[i] = int64(i)
	}
	d.Add(trial)
	e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "variant", Values: []string{"stalled"}}}}
	d.Into(&e)
	if len(e.Series) != 1 || len(e.Series[0].Offered) != 60 || e.Series[0].Offered[25] != 250 {
		t.Fatalf("series: %+v", e.Series)
	}
	var page bytes.Buffer
	if err := format.HTML(&page, e); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The dotted line beside throughput is the load", "0 to 590 per second were offered"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	figures, _ := plot.Figures(e, plot.FigureOptions{})
	i := slices.IndexFunc(figures, func(f plot.Figure) bool {
		return strings.HasPrefix(f.Name, "time-") && strings.HasSuffix(f.Name, "throughput")
	})
	if i < 0 || len(figures[i].Curves) != 2 || figures[i].Curves[1].Name != "offered" {
		t.Errorf("the figure of throughput over time has no curve of the load: %+v", figures)
	}
	if check := stats.CheckWindow(trial); check.Unchecked != "the load changes in the window" {
		t.Errorf("the window is judged by one level: %+v", check)
	}
}

// With few transactions in a bin, a line would only show how commits fall into bins. Then the bins
// are wider. They still begin at multiples of their width.
func TestSeriesOfASlowSystemHasWiderBins(t *testing.T) {
	var d model.Details
	d.Add(paused(t, "t-0", 5, 2))
	var e results.Experiment
	d.Into(&e)
	if s := e.Series[0]; s.IntervalMillis != 500 || s.FirstMillis != -1000 || len(s.Throughput) != 12 || s.Throughput[2] != 50 || s.Throughput[4] != 0 {
		t.Errorf("%+v", s)
	}
}

func TestLatencyDistribution(t *testing.T) {
	e := stalled(t)
	if len(e.Latencies) != 1 {
		t.Fatalf("latencies: %+v", e.Latencies)
	}
	l := e.Latencies[0]
	last := l.Percentiles[len(l.Percentiles)-1]
	if l.Trials != 2 || l.Count != 50*50 || last != 99.95 || l.Millis[0] < 4.99 || l.Millis[0] > 5.01 {
		t.Errorf("%d trials, n=%d, up to the percentile %g: %v", l.Trials, l.Count, last, l.Millis[0])
	}
}

// A legend explains the instant of a mark: actions that take time are marked when they begin.
func TestLegendSaysWhatWasAtTheInstant(t *testing.T) {
	for kind, want := range map[string]string{
		"Kill":    "stall began (Kill), confirmed at 1.021 s",
		"Reset":   "stall (Reset) began at 1.021 s",
		"Execute": "stall (Execute) began at 1.021 s",
		"Sample":  "stall (Sample) began at 1.021 s",
		"Inject":  "stall began (Inject), asked for at 1.021 s",
	} {
		e := stalled(t)
		e.Series[0].Marks[0].Kind = kind
		var page bytes.Buffer
		if err := format.HTML(&page, e); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s: the page lacks %q", kind, want)
		}
	}
}

// Both plots are well-formed and say in words what they show.
func TestPlotsOverTime(t *testing.T) {
	var page bytes.Buffer
	if err := format.HTML(&page, stalled(t)); err != nil {
		t.Fatal(err)
	}
	svgs := regexp.MustCompile(`(?s)<svg .*?</svg>`).FindAllString(page.String(), -1)
	if len(svgs) != 1+3 {
		t.Fatalf("%d plots, want the headline, one over time, a heatmap and a distribution", len(svgs))
	}
	svgs = svgs[1:]
	for i, wants := range [][]string{
		{"stall began (Pause), confirmed at 1.021 s (1.002 to 1.040 s)", "stall ended (Resume)", "time from the start of the window (s)", "throughput (tx/s)", `class="mark ends"`, `class="band"`},
		{"Trial 0 (t-0): longest 5.00 ms at -1 s.", "Trial 1 (t-1)", `class="heat"`, ">5.00<", "dashed: none"},
		{"variant=stalled: n=2500, p50 5.00 ms", "latency (ms), logarithmic"},
	} {
		if err := xml.Unmarshal([]byte(svgs[i]), &struct{}{}); err != nil {
			t.Errorf("plot %d: %v", i, err)
		}
		for _, want := range append(wants, "<title id=", "<desc id=", `role="img"`) {
			if !strings.Contains(svgs[i], want) {
				t.Errorf("plot %d does not have %q:\n%s", i, want, svgs[i])
			}
		}
	}
	if strings.Contains(page.String(), "NaN") || strings.Contains(page.String(), "Inf") {
		t.Error("a number in the page is none")
	}
}

func TestRecoveryTable(t *testing.T) {
	recovered := func(back float64) results.Recovery {
		return results.Recovery{Fault: "crash", Time: 1, Kind: "Kill", Dipped: true, DetectMillis: 100, Depth: 0.5, Recovered: true, RecoverMillis: back, LostTransactions: 40}
	}
	never := func(until float64) results.Recovery {
		return results.Recovery{Fault: "crash", Time: 1, Kind: "Kill", Dipped: true, DetectMillis: 300, Depth: 1, RecoverMillis: until, LostTransactions: 90, Cautions: []string{"NotRecovered", "NoisyBaseline"}}
	}
	for name, tc := range map[string]struct {
		trials []results.Recovery
		want   string // the row from the number of trials on
	}{
		"one trial":               {[]results.Recovery{recovered(1200)}, "| 1 | 1 | 0 | 100 | 50.0 | 1200 | 0 | 40 |"},
		"several":                 {[]results.Recovery{recovered(1200), recovered(1800)}, "| 2 | 2 | 0 | 100 (100 to 100) | 50.0 (50.0 to 50.0) | 1500 (1200 to 1800) | 0 | 40 (40 to 40) |"},
		"one of three never back": {[]results.Recovery{never(9000), recovered(1200), recovered(1800)}, "| 1800 (1200 to > 9000) | 1 |"},
		"two of three never back": {[]results.Recovery{never(9000), recovered(1200), never(9000)}, "| > 9000 (1200 to > 9000) | 2 |"},
		"one of two back":         {[]results.Recovery{never(9000), recovered(1200)}, "| > 5100 (1200 to > 9000) | 1 |"},
		// Once, if data ended at different times, the median was over the finished ones. It was
		// above the given maximum: "5000 (1000 to > 2000)".
		"one never back, with less data":  {[]results.Recovery{never(2000), recovered(1000), recovered(5000)}, "| > 2000 (1000 to > 5000) | 1 |"},
		"never back, with the least data": {[]results.Recovery{never(500), recovered(1000), recovered(5000), never(7000)}, "| > 3000 (> 500 to > 7000) | 2 |"},
		"most back before data ended":     {[]results.Recovery{never(6000), recovered(1000), recovered(5000)}, "| 5000 (1000 to > 6000) | 1 |"},
		"none of several back":            {[]results.Recovery{never(2000), never(9000)}, "| > 5500 (> 2000 to > 9000) | 2 |"},
		"none back":                       {[]results.Recovery{never(9000)}, "| 1 | 1 | 0 | 300 | 100.0 | > 9000 | 1 | 90 |"},
		"no dip":                          {[]results.Recovery{{Fault: "crash", Time: 1, Kind: "Kill"}}, "| 1 | 1 | 1 | - | - | - | 0 | - |"},
		"not measured":                    {[]results.Recovery{{Fault: "crash", Time: 1, Kind: "Kill", Error: "too early"}}, "| 1 | 1 (1 not measured) | 0 | - |"},
	} {
		t.Run(name, func(t *testing.T) {
			e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "variant", Values: []string{"a"}}}}
			for i, r := range tc.trials {
				e.Trials = append(e.Trials, results.TrialLine{Name: string(rune('a' + i)), Outcome: "Succeeded", Coordinates: map[string]string{"variant": "a"}, Recovery: []results.Recovery{r}})
			}
			e.Trials = append(e.Trials, results.TrialLine{Name: "bad", Outcome: "Invalid", Recovery: []results.Recovery{recovered(1)}})
			var got bytes.Buffer
			if err := format.Markdown(&got, e); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.String(), tc.want) || strings.Contains(got.String(), "Inf") {
				t.Errorf("no %q in:\n%s", tc.want, got.String())
			}
			if noisy := strings.Contains(got.String(), "variant=a: crash: throughput dipped by as much before the fault"); noisy != strings.Contains(name, "back") {
				t.Errorf("the caution about noise is said: %v", noisy)
			}
			var csv bytes.Buffer
			if err := csvfile.Recovery(&csv, e); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(csv.String(), "\n"); n != 1+len(tc.trials) {
				t.Errorf("%d lines of CSV:\n%s", n, csv.String())
			}
		})
	}
}
