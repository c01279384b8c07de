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
