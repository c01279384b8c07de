package results

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
)

func TestRecorderBoundaries(t *testing.T) {
	w := timeline.Windows{WarmUp: 250 * time.Millisecond, Measure: 300 * time.Millisecond, CoolDown: 100 * time.Millisecond, Drain: time.Second}
	const ns = time.Nanosecond
	// Bins start at -300, -200, ..., 300 ms.
	tests := map[string]struct {
		at       time.Duration
		inWindow int64
		bin      int // -1: in none
	}{
		"before the warm-up":      {-250*time.Millisecond - ns, 0, -1},
		"start of the warm-up":    {-250 * time.Millisecond, 0, 0},
		"last of the warm-up":     {-ns, 0, 2},
		"start of the window":     {0, 1, 3},
		"last of the first bin":   {100*time.Millisecond - ns, 1, 3},
		"first of the second bin": {100 * time.Millisecond, 1, 4},
		"last of the window":      {300*time.Millisecond - ns, 1, 5},
		"end of the window":       {300 * time.Millisecond, 0, 6},
		"last of the cool-down":   {400*time.Millisecond - ns, 0, 6},
		"in the drain":            {400 * time.Millisecond, 0, -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder(w)
			r.Commit(tc.at, 5*time.Millisecond)
			r.Abort(tc.at, false)
			r.Abort(tc.at, true)
			r.Fail(tc.at, false)
			r.Fail(tc.at, true)
			var c Client
			if err := r.Fill(&c); err != nil {
				t.Fatal(err)
			}
			n := tc.inWindow
			if diff := cmp.Diff(Counters{Committed: n, Aborted: 2 * n, GivenUp: n, Errors: n, Timeouts: n}, c.Counters); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
			want := NewTimeline(-300, 7)
			if tc.bin >= 0 {
				want.Committed[tc.bin], want.Aborted[tc.bin], want.Failed[tc.bin], want.LatencySumMicros[tc.bin] = 1, 2, 2, 5000
			}
			if diff := cmp.Diff(want, c.Timeline); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
			if r.Committed != 1 {
				t.Errorf("Committed = %d, want 1 whatever the instant", r.Committed)
			}
			h, err := DecodeHistogram(c.Latency)
			if err != nil || h.Count() != n {
				t.Errorf("the histogram has %d latencies (%v), want %d", h.Count(), err, n)
			}
		})
	}
}

func TestRecorderMerge(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	a, b, both := NewRecorder(w), NewRecorder(w), NewRecorder(w)
	for i := range 900 {
		at, latency := time.Duration(i)*time.Millisecond, time.Duration(i%17)*time.Millisecond
		one := a
		if i%3 == 0 {
			one = b
		}
		for _, r := range []*Recorder{one, both} {
			switch i % 5 {
			case 0:
				r.Abort(at, i%10 == 0)
			case 1:
				r.Fail(at, i%2 == 0)
			default:
				r.Commit(at, latency)
			}
		}
	}
	b.Commit(500*time.Millisecond, 2*time.Hour)
	both.Commit(500*time.Millisecond, 2*time.Hour)
	a.Merge(b)
	var got, want Client
	for r, c := range map[*Recorder]*Client{a: &got, both: &want} {
		if err := r.Fill(c); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged and recorded together differ (-together +merged):\n%s", diff)
	}
	if got.Counters.OutOfRange != 1 {
		t.Errorf("OutOfRange = %d, want 1", got.Counters.OutOfRange)
	}
}

// Transactions that cannot be told apart in time are spread over the bins, and counted once.
func TestCommitEvenlySpreads(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	tests := map[string]struct {
		from, to time.Duration
		shift, n int64
		bins     []int64 // of the first 300 ms
	}{
		"one bin":                      {0, 100 * time.Millisecond, 0, 5, []int64{5, 0, 0}},
		"three bins, evenly":           {0, 300 * time.Millisecond, 0, 6, []int64{2, 2, 2}},
		"the rest from the first bin":  {0, 300 * time.Millisecond, 0, 5, []int64{2, 2, 1}},
		"the rest from the second bin": {0, 300 * time.Millisecond, 1, 4, []int64{1, 2, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder(w)
			r.CommitEvenly(tc.from, tc.to, tc.shift, tc.n, 4*time.Millisecond)
			r.FailEvenly(tc.from, tc.to, tc.shift, tc.n)
			var c Client
			if err := r.Fill(&c); err != nil {
				t.Fatal(err)
			}
			if c.Counters.Committed != tc.n || c.Counters.Errors != tc.n || r.Committed != tc.n || r.LatencySumMicros != tc.n*4000 {
				t.Errorf("committed %d and %d, errors %d, sum of latencies %d us; want %d, %d, %d, %d", c.Counters.Committed, r.Committed, c.Counters.Errors, r.LatencySumMicros, tc.n, tc.n, tc.n, tc.n*4000)
			}
			first := int(-c.Timeline.FirstMillis / c.Timeline.IntervalMillis)
			for i, want := range tc.bins {
				if got, failed, sum := c.Timeline.Committed[first+i], c.Timeline.Failed[first+i], c.Timeline.LatencySumMicros[first+i]; got != want || failed != want || sum != want*4000 {
					t.Errorf("bin %d: %d committed, %d failed, latencies %d us; want %d, %d, %d", i, got, failed, sum, want, want, want*4000)
				}
			}
		})
	}
}
