package results

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
)

// TestTimelinesThatAreRefused: a timeline begins at most an hour and a bin before t = 0 and a day
// after it. It has as many bins of each kind, and none is below 0.
func TestTimelinesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Timeline)
		want   string
	}{
		"as it is":                    {func(*Timeline) {}, ""},
		"with what was offered":       {func(x *Timeline) { x.Offered = []int64{5, 0} }, ""},
		"one offered bin too few":     {func(x *Timeline) { x.Offered = []int64{5} }, "2 bins of committed transactions and 1 of offered ones"},
		"no offered bin":              {func(x *Timeline) { x.Offered = []int64{} }, "2 bins of committed transactions and 0 of offered ones"},
		"a negative offered bin":      {func(x *Timeline) { x.Offered = []int64{0, -1} }, "a negative number of offered requests"},
		"a bin of aborted too many":   {func(x *Timeline) { x.Aborted = append(x.Aborted, 0) }, "the timeline's slices have 2, 3, 2 and 2 elements"},
		"a bin of failed too few":     {func(x *Timeline) { x.Failed = x.Failed[:1] }, "have 2, 2, 1 and 2 elements"},
		"a bin of latencies too few":  {func(x *Timeline) { x.LatencySumMicros = nil }, "have 2, 2, 2 and 0 elements"},
		"negative committed":          {func(x *Timeline) { x.Committed[1] = -1 }, "bin 1 of the timeline has a negative number"},
		"negative aborted":            {func(x *Timeline) { x.Aborted[0] = -1 }, "bin 0 of the timeline has a negative number"},
		"negative failed":             {func(x *Timeline) { x.Failed[1] = -1 }, "bin 1 of"},
		"a negative sum":              {func(x *Timeline) { x.LatencySumMicros[1] = -1 }, "bin 1 of"},
		"bins of 50 ms":               {func(x *Timeline) { x.IntervalMillis = 50 }, "bins are 50 ms wide; they must be 100 ms"},
		"between bins":                {func(x *Timeline) { x.FirstMillis = 50 }, "the timeline starts at 50 ms"},
		"an hour and a bin before":    {func(x *Timeline) { x.FirstMillis = -3_600_100 }, ""},
		"earlier":                     {func(x *Timeline) { x.FirstMillis = -3_600_200 }, "the timeline starts at -3600200 ms"},
		"a day after":                 {func(x *Timeline) { x.FirstMillis = 86_400_000 }, ""},
		"later":                       {func(x *Timeline) { x.FirstMillis = 86_400_100 }, "the timeline starts at 86400100 ms"},
		"without bins, all is said":   {func(x *Timeline) { *x = Timeline{FirstMillis: 7, IntervalMillis: 3} }, ""},
		"of 26 hours and a bin":       {func(x *Timeline) { x.setBins(936_001) }, ""},
		"longer than that by one bin": {func(x *Timeline) { x.setBins(936_002) }, "the timeline has 936002 bins, 936001 are allowed"},
	} {
		x := Timeline{FirstMillis: -100, IntervalMillis: 100, Committed: []int64{1, 2}, Aborted: []int64{3, 4}, Failed: []int64{5, 6}, LatencySumMicros: []int64{7, 0}}
		tc.change(&x)
		if err := x.check(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func (t *Timeline) setBins(n int) {
	for _, bins := range []*[]int64{&t.Committed, &t.Aborted, &t.Failed, &t.LatencySumMicros} {
		*bins = make([]int64, n)
	}
}

// TestRecordersOfAnyLengthAreMerged: two bins and four make four, whichever takes in the other, and
// what was offered is kept if one of them has it.
func TestRecordersOfAnyLengthAreMerged(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	const ms = time.Millisecond
	recorder := func(bins int, offered bool) *Recorder {
		r := NewRecorder(w)
		for i := range bins {
			at := time.Duration(i) * 100 * ms
			r.Commit(at, time.Duration(i+1)*ms)
			r.Tell(at, time.Duration(i+1)*ms, "READ", "n1")
			r.Abort(at, true)
			r.Fail(at, i%2 == 0)
			if offered {
				r.Offer(at, int64(10+i))
			}
		}
		r.Tell(2*time.Second, ms, "READ", "n1") // after the window
		r.Tell(0, ms, "", "")
		r.Offer(2*time.Second, 99)
		return r
	}
	for name, tc := range map[string]struct {
		a, b       int
		offA, offB bool
		committed  []int64
		sums       []int64
		offered    []int64
	}{
		"the longer takes in the shorter": {4, 2, false, false, []int64{2, 2, 1, 1}, []int64{2000, 4000, 3000, 4000}, nil},
		"the shorter takes in the longer": {2, 4, false, false, []int64{2, 2, 1, 1}, []int64{2000, 4000, 3000, 4000}, nil},
		"as long":                         {3, 3, false, false, []int64{2, 2, 2}, []int64{2000, 4000, 6000}, nil},
		"into an empty one":               {0, 2, false, true, []int64{1, 1}, []int64{1000, 2000}, []int64{10, 11}},
		"an empty one":                    {2, 0, true, false, []int64{1, 1}, []int64{1000, 2000}, []int64{10, 11}},
		"only the first has offers":       {3, 2, true, false, []int64{2, 2, 1}, []int64{2000, 4000, 3000}, []int64{10, 11, 12}},
		"only the second has offers":      {3, 2, false, true, []int64{2, 2, 1}, []int64{2000, 4000, 3000}, []int64{10, 11, 0}},
		"both have offers":                {2, 3, true, true, []int64{2, 2, 1}, []int64{2000, 4000, 3000}, []int64{20, 22, 12}},
	} {
		r := recorder(tc.a, tc.offA)
		r.Merge(recorder(tc.b, tc.offB))
		n := int64(tc.a + tc.b)
		var c Client
		if err := r.Fill(&c); err != nil {
			t.Fatal(err)
		}
		const all = 10 // bins of the window
		for what, x := range map[string][2][]int64{"committed": {tc.committed, c.Timeline.Committed}, "aborted": {tc.committed, c.Timeline.Aborted}, "failed": {tc.committed, c.Timeline.Failed}, "sums": {tc.sums, c.Timeline.LatencySumMicros}} {
			if want := append(slices.Clone(x[0]), make([]int64, all-len(x[0]))...); !slices.Equal(want, x[1]) {
				t.Errorf("%s: %s %v, want %v", name, what, x[1], want)
			}
		}
		if want := append(slices.Clone(tc.offered), make([]int64, all-len(tc.offered))...); tc.offered != nil && !slices.Equal(want, c.Timeline.Offered) || tc.offered == nil && c.Timeline.Offered != nil {
			t.Errorf("%s: offered %v, want %v", name, c.Timeline.Offered, tc.offered)
		}
		timeouts := int64((tc.a+1)/2 + (tc.b+1)/2)
		if diff := cmp.Diff(Counters{Committed: n, Aborted: n, GivenUp: n, Timeouts: timeouts, Errors: n - timeouts}, c.Counters); diff != "" {
			t.Errorf("%s: counters (-want +got)\n%s", name, diff)
		}
		for what, kinds := range map[string][]Operation{"READ": c.Operations, "n1": c.Nodes} {
			if len(kinds) != 1 || kinds[0].Name != what || kinds[0].Committed != n {
				t.Errorf("%s: %+v, want %d of %s", name, kinds, n, what)
			}
		}
		if c.Driver[CounterOperation+"READ"] != n || r.Committed != n {
			t.Errorf("%s: %v, %d in all; want %d", name, c.Driver, r.Committed, n)
		}
	}
}

// TestCoresThatALimitAllows: the quota by the period. One of them alone is no limit, and the last
// reading counts.
func TestCoresThatALimitAllows(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		readings [][2]time.Duration // quota and period
		want     float64
	}{
		"half a core":         {[][2]time.Duration{{50 * ms, 100 * ms}}, 0.5},
		"two cores":           {[][2]time.Duration{{200 * ms, 100 * ms}}, 2},
		"of a nanosecond":     {[][2]time.Duration{{1, 1}}, 1},
		"no limit":            {[][2]time.Duration{{0, 100 * ms}}, 0},
		"an unlimited quota":  {[][2]time.Duration{{-1, 100 * ms}}, 0},
		"no period":           {[][2]time.Duration{{50 * ms, 0}}, 0},
		"the last one counts": {[][2]time.Duration{{50 * ms, 100 * ms}, {100 * ms, 100 * ms}}, 1},
		"a limit that ended":  {[][2]time.Duration{{50 * ms, 100 * ms}, {0, 100 * ms}}, 0},
	} {
		m := NewMeter(timeline.Windows{Measure: 10 * time.Second}, []string{"c"})
		for i, r := range tc.readings {
			m.Container("c", ContainerReading{At: time.Duration(i) * time.Second, Quota: r[0], Period: r[1]})
		}
		if got := m.Resources().Containers[0].LimitCores; math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %g cores, want %g", name, got, tc.want)
		}
	}
}
