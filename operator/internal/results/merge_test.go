package results

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
)

// report builds a client that commits n transactions with a latency, evenly over the window.
func report(t *testing.T, index int32, w timeline.Windows, n int, latency time.Duration) Client {
	t.Helper()
	r := NewRecorder(w)
	for i := range n {
		r.Commit(w.Measure*time.Duration(i)/time.Duration(n), latency)
	}
	r.Counters.Offered = int64(n)
	c := Client{Index: index, FirstClient: 10 * index, Clients: 10, MeasureNanos: int64(w.Measure), StartedNanos: int64(index) * 1000}
	if err := r.Fill(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMerge(t *testing.T) {
	w := timeline.Windows{Measure: 2 * time.Second}
	long := w
	long.WarmUp = 200 * time.Millisecond
	a := report(t, 0, w, 900, 10*time.Millisecond)
	b := report(t, 1, long, 100, 100*time.Millisecond)
	a.Counters.Aborted, b.Counters.Aborted = 3, 4
	a.Driver, b.Driver = map[string]int64{"fast": 1, "slow": 2}, map[string]int64{"fast": 5}
	a.MisbehavingClients, a.MisbehavingDriver = 4, map[string]int64{"stalled": 6}
	lag := NewHistogram()
	lag.Record(3 * time.Millisecond)
	var err error
	if b.SendLag, err = lag.Encode(); err != nil {
		t.Fatal(err)
	}

	m, err := Merge([]Client{b, a})
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{
		Counters:   Counters{Offered: 1000, Committed: 1000, Aborted: 7},
		Throughput: 500, MeanMillis: 19, P10Millis: 10, P50Millis: 10, P90Millis: 10, P99Millis: 100, P999Millis: 100, MaxMillis: 100,
		Percentiles: map[string]float64{"P75": 10, "P95": 100, "P9999": 100, "P99999": 100}, SendLagP99Millis: 3,
	}
	within := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= 0.001*math.Abs(x+y)/2 })
	if diff := cmp.Diff(want, m.Summary, within); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"fast": 6, "slow": 2}, m.Driver); diff != "" {
		t.Errorf("driver counters (-want +got):\n%s", diff)
	}
	if m.CorrectClients != 16 || m.MisbehavingDriver["stalled"] != 6 {
		t.Errorf("%d correct clients, counters of the others' driver %v; want 16, 6 stalled", m.CorrectClients, m.MisbehavingDriver)
	}
	if m.Clients != 20 || m.StartSpread != time.Microsecond || m.MeasureNanos != int64(2*time.Second) {
		t.Errorf("clients %d, start spread %v, window %d; want 20, 1µs, 2s", m.Clients, m.StartSpread, m.MeasureNanos)
	}
	if m.Timeline.FirstMillis != -200 || len(m.Timeline.Committed) != 22 {
		t.Errorf("the timeline starts at %d ms and has %d bins; want -200, 22", m.Timeline.FirstMillis, len(m.Timeline.Committed))
	}
	if got := m.Timeline.Committed[2]; got != 45+5 {
		t.Errorf("the first bin of the window has %d transactions, want those of both clients: 50", got)
	}
}

// Once, a pod that sent nothing counted with the start in its report. So one idle pod made a
// trial's start spread too large.
func TestStartSpreadIsOfPodsThatStarted(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	a, b, idle := report(t, 1, w, 10, time.Millisecond), report(t, 2, w, 10, time.Millisecond), report(t, 0, w, 0, 0)
	idle.StartedNanos, idle.NothingSent = int64(time.Minute), true
	for name, tc := range map[string]struct {
		clients []Client
		want    time.Duration
	}{
		"one of three is idle": {[]Client{a, idle, b}, time.Microsecond},
		"one of two is idle":   {[]Client{idle, b}, 0},
		"all are idle":         {[]Client{idle}, 0},
	} {
		m, err := Merge(tc.clients)
		if err != nil || m.StartSpread != tc.want {
			t.Errorf("%s: the start spread is %v (%v), want %v", name, m.StartSpread, err, tc.want)
		}
	}
}

// Bins lie where their clients have them: from the first bin of any client to the last of any.
func TestTimelinesOfClientsThatBeginApart(t *testing.T) {
	at := func(first int64, committed ...int64) Client {
		c := Client{Timeline: NewTimeline(first, len(committed))}
		for i, n := range committed {
			c.Timeline.Committed[i], c.Timeline.Aborted[i], c.Timeline.Failed[i], c.Timeline.LatencySumMicros[i] = n, 2*n, 3*n, 5*n
		}
		return c
	}
	got := mergeTimelines([]Client{at(500, 1, 2), {}, at(300, 4, 8, 16), at(400, 32)})
	want := []int64{4, 8 + 32, 16 + 1, 2}
	for times, bins := range map[int64][]int64{1: got.Committed, 2: got.Aborted, 3: got.Failed, 5: got.LatencySumMicros} {
		for i, n := range bins {
			bins[i] = n / times
		}
		if got.FirstMillis != 300 || !slices.Equal(bins, want) {
			t.Errorf("from %d ms on %d times %v, want %v from 300 ms on", got.FirstMillis, times, bins, want)
		}
	}
}

// All occurrences of a fault cost their bytes together; the slowest says how long they took.
func TestRestoredData(t *testing.T) {
	trial := Trial{Recovery: []Recovery{
		{Fault: "crash", Time: 1, Data: &DataRecovery{ReceivedBytes: 100, DiskWrittenBytes: 10, RestoreMillis: 70}},
		{Fault: "crash", Time: 2, Data: &DataRecovery{ReceivedBytes: 200, DiskWrittenBytes: 20, RestoreMillis: 50}},
		{Fault: "none", Time: 1},
	}}
	got := map[string]float64{}
	trial.restored(got)
	want := map[string]float64{"restoredBytes:crash": 300, "restoredDiskBytes:crash": 30, "restoreMillis:crash": 70}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMergeRefuses(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	tests := map[string]struct {
		change func(a, b *Client)
		want   string
	}{
		"an index twice":       {func(_, b *Client) { b.Index = 0 }, "client 0 reported twice"},
		"other windows":        {func(_, b *Client) { b.MeasureNanos++ }, "its window is"},
		"a failed client":      {func(_, b *Client) { b.Failure = "the driver died" }, "the driver died"},
		"a lost latency":       {func(_, b *Client) { b.Counters.Committed++ }, "committed transactions, and its histogram has"},
		"no histogram":         {func(_, b *Client) { b.Latency = "" }, "committed transactions, and its histogram has"},
		"a broken histogram":   {func(_, b *Client) { b.Latency = "x" }, "latency: decode"},
		"a broken send lag":    {func(_, b *Client) { b.SendLag = "x" }, "sendLag: decode"},
		"a negative counter":   {func(_, b *Client) { b.Counters.Unsent = -1 }, "unsent is -1"},
		"uneven timeline":      {func(_, b *Client) { b.Timeline.Failed = nil }, "same number"},
		"bins of another kind": {func(_, b *Client) { b.Timeline.IntervalMillis = 50 }, "50 ms wide"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := report(t, 0, w, 10, time.Millisecond), report(t, 1, w, 10, time.Millisecond)
			tc.change(&a, &b)
			_, err := Merge([]Client{a, b})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Merge() error = %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := Merge(nil); err == nil {
		t.Error("Merge of no clients succeeds")
	}
}

// Out-of-range latencies must show in the summary, or the percentiles would be silently too good.
func TestMergeCountsOutOfRange(t *testing.T) {
	r := NewRecorder(timeline.Windows{Measure: time.Second})
	r.Commit(0, time.Millisecond)
	r.Commit(0, 2*time.Hour)
	c := Client{Clients: 1, MeasureNanos: int64(time.Second)}
	if err := r.Fill(&c); err != nil {
		t.Fatal(err)
	}
	m, err := Merge([]Client{c})
	if err != nil {
		t.Fatal(err)
	}
	if m.Summary.OutOfRange != 1 || m.Summary.Committed != 2 || m.Latency.Count() != 1 {
		t.Errorf("out of range %d, committed %d, in the histogram %d; want 1, 2, 1", m.Summary.OutOfRange, m.Summary.Committed, m.Latency.Count())
	}
}

// A merge would lose a counter that the method all leaves out.
func TestAllCountersAreListed(t *testing.T) {
	var c Counters
	for i, n := range c.all() {
		*n.value = int64(i + 1)
	}
	v := reflect.ValueOf(c)
	seen := map[int64]bool{}
	for i := range v.NumField() {
		name := strings.Split(v.Type().Field(i).Tag.Get("json"), ",")[0]
		n := v.Field(i).Int()
		if n == 0 || seen[n] || c.all()[n-1].name != name {
			t.Errorf("the counter %s is not listed under its name", name)
		}
		seen[n] = true
	}
	sum := c
	sum.Add(c)
	if sum.Unsent != 2*c.Unsent || sum.Offered != 2*c.Offered {
		t.Errorf("Add gives %+v", sum)
	}
}
