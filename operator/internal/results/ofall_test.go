package results

import (
	"testing"
	"time"
)

// With 990 durations and 10 failures the 99th percentile of all is the 990th of the durations, and
// the 99.9th lies among the failures.
func TestPercentileOfAll(t *testing.T) {
	h := NewHistogram()
	for i := range 990 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	for name, tc := range map[string]struct {
		p      float64
		failed int64
		want   time.Duration // to the histogram's 0.1%
	}{
		"none failed":        {50, 0, 495 * time.Millisecond},
		"median":             {50, 10, 500 * time.Millisecond},
		"the longest":        {99, 10, 990 * time.Millisecond},
		"among the failures": {99.9, 10, 0},
		"half failed":        {50, 990, 990 * time.Millisecond},
		"more failed":        {50, 992, 0},
	} {
		if got := h.PercentileOfAll(tc.p, tc.failed); got < tc.want*999/1000 || got > tc.want*1001/1000 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	s := Summarize(Counters{Committed: 990, Timeouts: 6, Errors: 3, Unsent: 1}, h, time.Second)
	if s.OfAll == nil || s.OfAll.P99Millis != s.MaxMillis || s.OfAll.P999Millis != 0 {
		t.Errorf("of all %+v, the longest is %g", s.OfAll, s.MaxMillis)
	}
	if s := Summarize(Counters{Committed: 990, Errors: 110}, h, time.Second); s.OfAll == nil || s.OfAll.P10Millis < 109.8 || s.OfAll.P10Millis > 110.2 {
		t.Errorf("the 10th percentile of 1100 is the 110th: %+v", s.OfAll)
	}
	one := NewHistogram()
	one.Record(time.Millisecond)
	if s := Summarize(Counters{Committed: 1, Errors: 1}, one, time.Second); s.OfAll == nil || s.OfAll.P10Millis < 0.999 || s.OfAll.P99Millis != 0 {
		t.Errorf("one of two failed, and of all there is %+v", s.OfAll)
	}
	if s := Summarize(Counters{Committed: 990}, h, time.Second); s.OfAll != nil {
		t.Errorf("none failed, and there is %+v", s.OfAll)
	}
}
