package stats

import (
	"slices"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// Only bins that lie completely in the window count.
func TestBinsOfTheWindow(t *testing.T) {
	line := results.Timeline{FirstMillis: -100, IntervalMillis: 100, Committed: []int64{9, 2, 4, 5, 9}, LatencySumMicros: []int64{90, 20, 44, 60, 90}, Failed: make([]int64, 5)}
	throughput, latency := windowBins(line, int64(300*time.Millisecond))
	if want := []float64{2, 4, 5}; !slices.Equal(throughput, want) {
		t.Errorf("throughput %v, want %v", throughput, want)
	}
	if want := []float64{10, 11, 12}; !slices.Equal(latency, want) {
		t.Errorf("latency %v, want %v", latency, want)
	}
	if throughput, _ := windowBins(line, int64(299*time.Millisecond)); len(throughput) != 2 {
		t.Errorf("a window of 299 ms has the bins %v, want two: the third ends after it", throughput)
	}
	line.Committed[2] = 0
	if throughput, latency := windowBins(line, int64(300*time.Millisecond)); len(throughput) != 3 || latency != nil {
		t.Errorf("with an empty bin: throughput %v, latency %v; want three bins, and no latency", throughput, latency)
	}
}

// TestLevelsOfAWindow: ten seconds of 100 transactions in a bin of 100 ms, some with another level
// for a while.
func TestLevelsOfAWindow(t *testing.T) {
	for name, tc := range map[string]struct {
		level   func(i int) int64
		faults  []results.FaultRecord
		changes bool
		measure time.Duration
		steady  bool
		at      []float64 // ms
		why     string
	}{
		"one level":                    {level: func(int) int64 { return 100 }, steady: true},
		"half of it after 7 s":         {level: func(i int) int64 { return map[bool]int64{true: 100, false: 50}[i < 70] }, at: []float64{7000}},
		"half of it for the first 2 s": {level: func(i int) int64 { return map[bool]int64{true: 50, false: 100}[i < 20] }}, // its start explains it

		"a fault before the window": {level: func(int) int64 { return 100 }, faults: []results.FaultRecord{{StartedMillis: -500, ConfirmedMillis: -1}}, steady: true},
		"a fault that is confirmed in it": {level: func(int) int64 { return 100 }, faults: []results.FaultRecord{{StartedMillis: -500, ConfirmedMillis: 0}},
			why: "a fault began or ended in the window"},
		"a fault at its end":          {level: func(int) int64 { return 100 }, faults: []results.FaultRecord{{StartedMillis: 10_000}}, steady: true},
		"a fault just before its end": {level: func(int) int64 { return 100 }, faults: []results.FaultRecord{{StartedMillis: 9999}}, why: "a fault began or ended in the window"},
		"a fault that was left out":   {level: func(int) int64 { return 100 }, faults: []results.FaultRecord{{StartedMillis: 500, Skipped: true}}, steady: true},
		"a fault that failed":         {level: func(int) int64 { return 100 }, faults: []results.FaultRecord{{StartedMillis: 500, Error: "x"}}, steady: true},
		"a load that changes":         {level: func(int) int64 { return 100 }, changes: true, why: "the load changes in the window"},
		"a window of 5 s":             {level: func(int) int64 { return 100 }, measure: 5 * time.Second, steady: true},
		"a window of less than that":  {level: func(int) int64 { return 100 }, measure: 5*time.Second - 1, why: "there are 49 observations; it needs 50"},
		"nothing, which has no level": {level: func(int) int64 { return 0 }, why: "nothing happened in the last 100 observations"},
	} {
		line := results.Timeline{IntervalMillis: 100}
		for i := range 100 {
			n := tc.level(i)
			if n > 0 {
				n += int64(i*7%5) - 2
			}
			line.Committed, line.LatencySumMicros = append(line.Committed, n), append(line.LatencySumMicros, n*1000)
		}
		if tc.measure == 0 {
			tc.measure = 10 * time.Second
		}
		got := CheckWindow(results.Trial{MeasureNanos: int64(tc.measure), Timeline: &line, Faults: tc.faults, ChangingLoad: tc.changes})
		if tc.why != "" {
			if got.Unchecked != tc.why || got.Throughput != nil || got.Latency != nil {
				t.Errorf("%s: %+v, want that %s", name, got, tc.why)
			}
			continue
		}
		if got.Unchecked != "" || got.Throughput == nil || got.Latency == nil || !got.Latency.Steady || got.Throughput.Steady != tc.steady {
			t.Errorf("%s: %+v with throughput %+v; want steady: %v, and a latency that is", name, got, got.Throughput, tc.steady)
			continue
		}
		if c := got.Throughput.Change; (c != nil) != (tc.at != nil) || c != nil && (!slices.Equal(c.AtMillis, tc.at) || got.Throughput.Drift != 0 || c.EndsMillis != 0) {
			t.Errorf("%s: the level changes: %+v, want at %v", name, c, tc.at)
		}
	}
	if got := CheckWindow(results.Trial{MeasureNanos: 1e10}); got.Unchecked != "the trial has no timeline" {
		t.Errorf("without a timeline: %+v", got)
	}
}
