package results

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// Resources over time are the first to become coarse, and go after the logs; what was used in the
// window stays.
func TestFitTrialWithResources(t *testing.T) {
	m := NewMeter(timeline.Windows{Measure: 500 * time.Second}, []string{"c"})
	for at := time.Duration(0); at <= 501*time.Second; at += time.Second {
		steadily(m, "c", at)
	}
	whole := Trial{Name: "t", Pods: []Pod{{Name: "a", Resources: m.Resources()}, {Name: "b"}}, Logs: map[string]string{"a/c": strings.Repeat("x", 5000)}}
	size := func(limit int) int {
		b, err := FitTrial(whole, limit)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	all := size(1 << 20)
	for name, tc := range map[string]struct {
		limit   int
		leftOut []string
		bins    int
		logs    bool
	}{
		"everything":       {all, nil, 501, true},
		"one byte less":    {all - 1, []string{"pods.resources.series finer than 64 bins"}, 63, true},
		"without the logs": {5000, []string{"pods.resources.series finer than 64 bins", "logs"}, 63, false},
		"without series":   {3500, []string{"pods.resources.series finer than 64 bins", "logs", "pods.resources.series"}, 0, false},
		"percentiles, too": {2000, []string{"pods.resources.series finer than 64 bins", "logs", "pods.resources.series", "pods.resources.overTime"}, 0, false},
	} {
		b, err := FitTrial(whole, tc.limit)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := DecodeTrial(b)
		if err != nil {
			t.Fatal(err)
		}
		bins := 0
		if s := got.Pods[0].Resources.Series; s != nil {
			bins = len(s.CPUMillicores)
		}
		if !slices.Equal(got.LeftOut, tc.leftOut) || bins != tc.bins || (len(got.Logs) > 0) != tc.logs || got.Pods[0].Resources.CPUMeanCores != whole.Pods[0].Resources.CPUMeanCores {
			t.Errorf("%s: left out %q, %d bins, %d logs", name, got.LeftOut, bins, len(got.Logs))
		}
	}
	if len(whole.Pods[0].Resources.Series.CPUMillicores) != 501 || len(whole.LeftOut) != 0 {
		t.Error("FitTrial changed its argument")
	}
}

// A coarse bin is known only if half of its readings are: the mean of a few says little of the
// rest.
func TestCoarseBinsOfUnknownReadings(t *testing.T) {
	fine := make([]int64, 3*coarseBins)
	for i := range fine {
		fine[i] = 100
	}
	copy(fine, []int64{100, -1, -1, 100, -1, 100, -1, -1, -1})
	s := (&ResourceSeries{IntervalMillis: 100, CPUMillicores: fine, MemoryKiB: fine, ThrottledPermille: fine, ReceivedBytes: fine, SentBytes: fine}).coarser()
	if got, want := s.CPUMillicores[:4], []int64{-1, 100, -1, 100}; !slices.Equal(got, want) || len(s.CPUMillicores) != coarseBins || s.IntervalMillis != 300 {
		t.Errorf("%d bins of %d ms begin with %v, want %d of 300 ms and %v", len(s.CPUMillicores), s.IntervalMillis, got, coarseBins, want)
	}
	if got := s.ReceivedBytes[:4]; !slices.Equal(got, []int64{-1, 200, -1, 300}) {
		t.Errorf("bytes begin with %v; those that are known are added up", got)
	}
}
