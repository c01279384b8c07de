package results

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// A minute of a thousand client pods, each with 50 transactions per second: log-normal latencies
// around 5 ms, and a tail of retries.
const (
	manyClients   = 1000
	perClient     = 3000
	window        = time.Minute
	mergeTime     = time.Second
	mergeMegabyte = 200
)

// manyReports returns the reports of the clients, and all their latencies.
func manyReports(tb testing.TB) ([]Client, []int64) {
	tb.Helper()
	clients := make([]Client, manyClients)
	pooled := make([]int64, 0, manyClients*perClient)
	for i := range clients {
		rng := rand.New(rand.NewPCG(2026, uint64(i)))
		r := NewRecorder(timeline.Windows{WarmUp: 5 * time.Second, Measure: window, CoolDown: 5 * time.Second})
		slow := math.Exp(0.3 * rng.NormFloat64()) // clients differ
		for j := range perClient {
			micros := 5000 * slow * math.Exp(0.6*rng.NormFloat64())
			if rng.IntN(200) == 0 {
				micros *= 20
			}
			latency := time.Duration(micros) * time.Microsecond
			r.Commit(window*time.Duration(j)/perClient, latency)
			pooled = append(pooled, latency.Microseconds())
		}
		clients[i] = Client{Index: int32(i), FirstClient: int32(i), Clients: 1, MeasureNanos: int64(window)}
		if err := r.Fill(&clients[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return clients, pooled
}

// The reports of a thousand clients of a one-minute trial are merged within a second and 200 MB.
// The percentiles are those of all latencies pooled, within the three digits of the histogram.
func TestMergeThousandClients(t *testing.T) {
	clients, pooled := manyReports(t)
	var m Merged
	quickest, allocated := time.Hour, 0.0
	for range 3 { // a busy machine may hold up any of them
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began, start := processorTime(t), time.Now()
		merged, err := Merge(clients)
		// Time by the clock includes waits for other programs. Processor time includes the
		// collector's work on another processor.
		took := min(time.Since(start), processorTime(t)-began)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		m, quickest = merged, min(quickest, took)
		// The total of allocations is an upper bound of the memory in use at any time, whenever the
		// collector ran.
		allocated = max(allocated, float64(after.TotalAlloc-before.TotalAlloc)/1e6)
	}
	t.Logf("merged %d reports with %d latencies in %v; %.1f MB were allocated", len(clients), len(pooled), quickest, allocated)
	if quickest > mergeTime || allocated > mergeMegabyte {
		t.Errorf("merging took %v and allocated %.1f MB, want %v and %d MB at most", quickest, allocated, mergeTime, mergeMegabyte)
	}
	slices.Sort(pooled)
	for _, p := range []struct{ percent, got float64 }{{50, m.Summary.P50Millis}, {90, m.Summary.P90Millis}, {99, m.Summary.P99Millis}, {99.9, m.Summary.P999Millis}} {
		want := float64(pooled[int(math.Ceil(p.percent/100*float64(len(pooled))))-1]) / 1e3
		if math.Abs(p.got-want) > want/1000 {
			t.Errorf("p%v of the merged histogram = %v ms, of the pooled latencies %v ms; they may differ by 0.1%%", p.percent, p.got, want)
		} else {
			t.Logf("p%v: merged %.3f ms, pooled %.3f ms", p.percent, p.got, want)
		}
	}
}

// processorTime that this process has used.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkMergeThousandClients(b *testing.B) {
	clients, _ := manyReports(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Merge(clients); err != nil {
			b.Fatal(err)
		}
	}
}

// Counts add up to more than a histogram may hold when hostile pods send the largest ones: no sum
// may overflow.
func TestMergeRefusesCountsThatOverflow(t *testing.T) {
	h := NewHistogram()
	if err := h.h.RecordValues(5, maxCount); err != nil {
		t.Fatal(err)
	}
	encoded, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	sum := newHistogramSum()
	if _, err := sum.add(encoded); err != nil {
		t.Fatal(err)
	}
	if _, err := sum.add(encoded); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("adding two histograms of %d values each = %v, want an error", maxCount, err)
	}
}
