package results

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
)

// TestProcessorsOfAMachine: the pod that was measured for longest says how many there are; of two
// as long, the first.
func TestProcessorsOfAMachine(t *testing.T) {
	pod := func(seconds float64, cpus int, busy float64) Pod {
		return Pod{Node: "n", Resources: &Resources{Node: NodeUse{Seconds: seconds, Machine: "m", CPUs: cpus, BusyShare: busy}}}
	}
	for name, tc := range map[string]struct {
		pods []Pod
		cpus int
		used float64
	}{
		"as long":          {[]Pod{pod(10, 4, 0.5), pod(10, 8, 0.25)}, 4, 2},
		"the first longer": {[]Pod{pod(11, 4, 0.5), pod(10, 8, 0.5)}, 4, 2},
		"the last longer":  {[]Pod{pod(10, 4, 0.5), pod(11, 8, 0.5)}, 8, 4},
		"a second longer":  {[]Pod{pod(10, 4, 0.5), pod(12, 8, 0.5), pod(11, 2, 0.5)}, 8, 4},
	} {
		m := Machines(tc.pods)
		if len(m) != 1 || m[0].CPUs != tc.cpus || m[0].OthersCores != tc.used {
			t.Errorf("%s: %+v; want %d processors, %g of them used by others", name, m, tc.cpus, tc.used)
		}
	}
}

// TestLagsOfMergedClients: of 1000 requests of two clients 989 were in time, ten 5 ms late, and one
// 9 ms. By the nearest rank the 99th percentile is the 990th, which is 5 ms.
func TestLagsOfMergedClients(t *testing.T) {
	w := timeline.Windows{Measure: time.Second}
	a, b := report(t, 0, w, 10, time.Millisecond), report(t, 1, w, 10, time.Millisecond)
	first, second := NewHistogram(), NewHistogram()
	first.RecordTimes(time.Millisecond, 500)
	second.RecordTimes(time.Millisecond, 489)
	second.RecordTimes(5*time.Millisecond, 10)
	first.RecordTimes(9*time.Millisecond, 1)
	for _, c := range []struct {
		of  *Client
		lag *Histogram
	}{{&a, first}, {&b, second}} {
		text, err := c.lag.Encode()
		if err != nil {
			t.Fatal(err)
		}
		c.of.SendLag, c.of.GeneratorLag = text, text
	}
	m, err := Merge([]Client{a, b})
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]float64{"sends": m.Summary.SendLagP99Millis, "the generator": m.Summary.GeneratorLagP99Millis} {
		if math.Abs(got-5) > 0.01 {
			t.Errorf("the lag of %s is %g ms, want 5", name, got)
		}
	}
}

// TestUseOverTimeOfEachResource: two pods, three bins of two seconds in a window of six. Levels are
// added up as they are, and their mean is that of the bins. Rates are by the second, and their mean
// is that of the totals.
func TestUseOverTimeOfEachResource(t *testing.T) {
	four := int64(400)
	pod := func(k int64) *Resources {
		return &Resources{
			Seconds: 4, CPUMeanCores: 0.5, ReceivedBytes: 100, SentBytes: 300, DiskReadBytes: &four, DiskWrittenBytes: &four,
			Series: &ResourceSeries{
				IntervalMillis: 2000, CPUMillicores: []int64{k * 100, k * 300, k * 200}, MemoryKiB: []int64{k, 3 * k, 2 * k}, PageCacheKiB: []int64{k, 2 * k, 2 * k},
				ReceivedBytes: []int64{10 * k, 20 * k, 30 * k}, SentBytes: []int64{2 * k, 4 * k, 6 * k}, DiskReadBytes: []int64{8 * k, 8 * k, 8 * k}, DiskWrittenBytes: []int64{0, 0, 4 * k},
			},
		}
	}
	want := []ResourceOverTime{ // in the order of usables; of one pod and of three times that
		{Resource: UseCPU, Mean: 1, P50: 0.8, P95: 1.2, P99: 1.2, Max: 1.2},
		{Resource: UseMemory, Mean: 8 * 1024, P50: 8 * 1024, P95: 12 * 1024, P99: 12 * 1024, Max: 12 * 1024},
		{Resource: UsePageCache, Mean: math.Round(20. / 3 * 1024), P50: 8 * 1024, P95: 8 * 1024, P99: 8 * 1024, Max: 8 * 1024},
		{Resource: UseNetworkReceived, Mean: 50, P50: 40, P95: 60, P99: 60, Max: 60},
		{Resource: UseNetworkSent, Mean: 150, P50: 8, P95: 12, P99: 12, Max: 12},
		{Resource: UseNetwork, Mean: 200, P50: 48, P95: 72, P99: 72, Max: 72},
		{Resource: UseDiskRead, Mean: 200, P50: 16, P95: 16, P99: 16, Max: 16},
		{Resource: UseDiskWritten, Mean: 200, P50: 0, P95: 8, P99: 8, Max: 8},
		{Resource: UseDisk, Mean: 400, P50: 16, P95: 24, P99: 24, Max: 24},
	}
	near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < 1e-9 })
	if diff := cmp.Diff(want, overTime([]*Resources{pod(1), pod(3)}, 6000), near); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestBinsInTheWindow: which bins of a series count, and when too few of them are known.
func TestBinsInTheWindow(t *testing.T) {
	series := func(first int64, memory ...int64) *Resources {
		return &Resources{Series: &ResourceSeries{FirstMillis: first, IntervalMillis: 1000, CPUMillicores: make([]int64, len(memory)), MemoryKiB: memory}}
	}
	var memory usable
	for _, u := range usables {
		if u.name == UseMemory {
			memory = u
		}
	}
	for name, tc := range map[string]struct {
		pods    []*Resources
		measure int64
		want    []float64 // KiB
		ok      bool
	}{
		"all":                       {[]*Resources{series(0, 1, 2, 3)}, 3000, []float64{1, 2, 3}, true},
		"the last is cut":           {[]*Resources{series(0, 1, 2, 3)}, 2999, []float64{1, 2}, true},
		"the first is before it":    {[]*Resources{series(-1000, 1, 2, 3)}, 3000, []float64{2, 3}, true},
		"the first is cut":          {[]*Resources{series(-1, 1, 2, 3)}, 3000, []float64{2, 3}, true},
		"half is known":             {[]*Resources{series(0, 1, -1, 3, -1)}, 4000, []float64{1, 3}, true},
		"0 is known":                {[]*Resources{series(0, 0, -1)}, 2000, []float64{0}, true},
		"less than half":            {[]*Resources{series(0, 1, -1, -1)}, 3000, []float64{1}, false},
		"no bin":                    {[]*Resources{series(0)}, 3000, nil, false},
		"two pods":                  {[]*Resources{series(0, 1, 2), series(0, 10, 20)}, 2000, []float64{11, 22}, true},
		"one of two is shorter":     {[]*Resources{series(0, 1, 2), series(0, 10)}, 2000, []float64{11}, true},
		"one of two does not know":  {[]*Resources{series(0, 1, 2), series(0, 10, -1)}, 2000, []float64{11}, true},
		"one of two begins later":   {[]*Resources{series(0, 1, 2), series(1, 10, 20)}, 2000, nil, false},
		"one of two has no series":  {[]*Resources{series(0, 1, 2), {}}, 2000, nil, false},
		"one of two is not known":   {[]*Resources{series(0, 1, 2), nil}, 2000, nil, false},
		"no pod":                    {nil, 2000, nil, false},
		"bins of no time are wrong": {[]*Resources{{Series: &ResourceSeries{CPUMillicores: []int64{1}, MemoryKiB: []int64{1}}}}, 2000, nil, false},
	} {
		got, ok := memory.inWindow(tc.pods, tc.measure)
		for i := range got {
			got[i] /= 1024
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
			t.Errorf("%s: known %v, want %v (-want +got)\n%s", name, ok, tc.ok, diff)
		}
	}
}

// TestReadingsAroundAPart: a reading counts for a part up to 5 s before and after it.
func TestReadingsAroundAPart(t *testing.T) {
	part := []timeline.Span{{From: 20 * time.Second, To: 30 * time.Second}}
	for name, tc := range map[string]struct {
		first, last time.Duration
		seconds     float64 // that are known
	}{
		"5 s around":    {15 * time.Second, 35 * time.Second, 10},
		"longer before": {15*time.Second - 1, 35 * time.Second, 0},
		"longer after":  {15 * time.Second, 35*time.Second + 1, 0},
		"its ends":      {20 * time.Second, 30 * time.Second, 10},
	} {
		r := &Readings{}
		for _, at := range []time.Duration{tc.first, tc.last} {
			r.Container("c", ContainerReading{At: at, CPU: at})
			r.Pod(PodReading{At: at, Total: int64(at / time.Millisecond), Busy: int64(at / time.Millisecond), CPUs: 1})
		}
		got := r.Of(part, []string{"c"})[0]
		cores := 0.0
		if tc.seconds > 0 {
			cores = 1
		}
		if math.Abs(got.Node.Seconds-tc.seconds) > 1e-6 || math.Abs(got.Seconds-tc.seconds) > 1e-6 || math.Abs(got.CPUMeanCores-cores) > 1e-6 {
			t.Errorf("%s: %g cores in %g s of the pod and %g s of the node; want %g in %g", name, got.CPUMeanCores, got.Seconds, got.Node.Seconds, cores, tc.seconds)
		}
	}
}

// TestOneClientsOwnNumbers: what one client says of its whole run stays as it is. Percentiles
// and numbers of two are not merged.
func TestOneClientsOwnNumbers(t *testing.T) {
	n := func(x float64) *float64 { return &x }
	client := func(index int32) Client {
		return Client{Index: index, FirstClient: index, Clients: 1, MeasureNanos: 1e9, NothingSent: true, Timeline: NewTimeline(0, 0), Counters: Counters{Committed: 5}, RunSummary: &RunSummary{
			Throughput: 5, P10Millis: n(1), P50Millis: n(2), P90Millis: n(3), P99Millis: n(4), P999Millis: n(5), MaxMillis: n(6), MeanMillis: n(2.5),
			Percentiles: map[string]float64{"P75": 2.75}, Numbers: map[string]float64{"gc": 7},
		}}
	}
	one, err := Merge([]Client{client(0)})
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Counters: Counters{Committed: 5}, RunSummary: true, Throughput: 5, MeanMillis: 2.5, P10Millis: 1, P50Millis: 2, P90Millis: 3, P99Millis: 4, P999Millis: 5, MaxMillis: 6,
		Percentiles: map[string]float64{"P75": 2.75}, Numbers: map[string]float64{"gc": 7}}
	if diff := cmp.Diff(want, one.Summary); diff != "" {
		t.Errorf("one client (-want +got)\n%s", diff)
	}
	two, err := Merge([]Client{client(0), client(1)})
	if err != nil {
		t.Fatal(err)
	}
	want = Summary{Counters: Counters{Committed: 10}, RunSummary: true, Throughput: 10, MeanMillis: 2.5, MaxMillis: 6}
	if diff := cmp.Diff(want, two.Summary); diff != "" {
		t.Errorf("two clients (-want +got)\n%s", diff)
	}
}

// TestClassesOfLettersInTimes: a class of characters may hold a unit if it has a letter or a colon,
// be it the only one.
func TestClassesOfLettersInTimes(t *testing.T) {
	for class, want := range map[string]bool{
		"0-9.": false, "0-9A": true, "0-9Z": true, "0-9a": true, "0-9z": true, "0-9:": true, "0-9@": false, "0-9\\[": false, "0-9`": false, "0-9{": false, "0-9/": false, "0-9;": false,
		"0-9A-Z": true, "0-9a-z": true, "0-9@A": true, "0-9Z\\[": true, "0-9`a": true, "0-9z{": true, "/-:": true, ":-;": true, "0-9y-z": true, "0-9B-C": true,
	} {
		if got := hasUnit(`(?P<value>[`+class+`]+)`, "value"); got != want {
			t.Errorf("[%s]: %v, want %v", class, got, want)
		}
		if hasUnit(`(?P<value>[0-9]+)(?P<other>[`+class+`]+)`, "value") {
			t.Errorf("[%s] of another group counts", class)
		}
	}
	_, err := SummaryNumber{Name: NumberMean, Pattern: `(?P<value>[0-9]+)`}.Compile()
	if err == nil || !strings.Contains(err.Error(), "reads a time without its unit") {
		t.Errorf("a time of digits alone: %v", err)
	}
}
