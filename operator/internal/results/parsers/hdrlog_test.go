package parsers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// hdrSeconds writes a log of one interval a second, with count latencies of us microseconds each.
func hdrSeconds(t testing.TB, start int64, tag string, counts ...int64) string {
	t.Helper()
	log := fmt.Sprintf("#[Histogram log format version 1.3]\n#[StartTime: %d.000 (seconds since epoch), Fri Nov 20]\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n", start)
	for i, n := range counts {
		h := hdr.New(1, 60_000_000, 3)
		for range n {
			if err := h.RecordValue(int64(1000 * (i + 1))); err != nil {
				t.Fatal(err)
			}
		}
		text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		log += fmt.Sprintf("Tag=%s,%d.000,1.000,%d.000,%s\n", tag, i, i+1, text)
	}
	return log
}

const hdrStart = 1795161600

func hdrOptions(index int32) Options {
	return Options{Index: index, FirstClient: index, Clients: 1, ZeroUnixNanos: (hdrStart + 1) * 1e9,
		Windows: timeline.Windows{WarmUp: time.Second, Measure: 2 * time.Second, CoolDown: time.Second}, Histograms: &results.Histograms{Unit: "us", Errors: []string{"FAILED"}}}
}

// TestHdrHistogramLogsAreCutAndMerged: the window has the second and the third of four seconds, and
// percentiles are over both clients together.
func TestHdrHistogramLogsAreCutAndMerged(t *testing.T) {
	var clients []results.Client
	for i, counts := range [][]int64{{10, 90, 5, 7}, {20, 0, 5, 9}} {
		log := hdrSeconds(t, hdrStart, "READ", counts...) + hdrSeconds(t, hdrStart, "FAILED", 1, 2, 0, 4)
		c, err := Parse(FormatHdrHistogram, strings.NewReader(log), hdrOptions(int32(i)))
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	m, err := results.Merge(clients)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Summary
	if s.Committed != 100 || s.Errors != 4 || s.Throughput != 50 {
		t.Errorf("%d committed, %d errors, %g/s; want 100, 4, 50", s.Committed, s.Errors, s.Throughput)
	}
	for name, x := range map[string][2]float64{"median": {s.P50Millis, 2}, "p99": {s.P99Millis, 3}, "mean": {s.MeanMillis, 2.1}} {
		if math.Abs(x[0]-x[1]) > 0.002*x[1] {
			t.Errorf("the %s is %g ms, want %g", name, x[0], x[1])
		}
	}
	if len(s.Operations) != 1 || s.Operations[0].Committed != 100 || math.Abs(s.Operations[0].Percentiles["P99"]-3) > 0.006 {
		t.Errorf("kinds of operations: %+v; want 100 of READ, P99 3 ms", s.Operations)
	}
	sum, all := int64(0), int64(0)
	for i, n := range m.Timeline.Committed {
		if at := m.Timeline.FirstMillis + 100*int64(i); at >= 0 && at < 2000 {
			sum += n
		}
		all += n
	}
	if sum != 100 || all != 146 {
		t.Errorf("the timeline has %d in the window and %d in all, want 100 and 146", sum, all)
	}
}

// An interval across the window's end belongs to the side of its middle, as a whole, and is
// counted.
func TestHdrHistogramIntervalsAcrossTheWindow(t *testing.T) {
	o := hdrOptions(0)
	o.ZeroUnixNanos += 300e6
	c, err := Parse(FormatHdrHistogram, strings.NewReader(hdrSeconds(t, hdrStart, "READ", 10, 90, 5, 7)), o)
	if err != nil || c.Counters.Committed != 95 || c.Driver[counterCutIntervals] != 2 {
		t.Errorf("%d committed, driver %v, %v; want 95 and 2 intervals across", c.Counters.Committed, c.Driver, err)
	}
}

func TestHdrHistogramRefusesDamage(t *testing.T) {
	good := hdrSeconds(t, hdrStart, "READ", 3)
	for name, tc := range map[string]struct{ log, want string }{
		"no base64":   {"0.0,1.0,2.0,HIST!\n", "not in base64"},
		"no encoding": {"0.0,1.0,2.0,AAAAAAAAAAAAAAAA\n", "compressed encoding, version 2"},
		"a field":     {"0.0,1.0,HISTFAAAAA==\n", "an interval has 4 fields"},
		"an instant":  {"x,1.0,2.0,HISTFAAAAA==\n", "the start of the interval"},
		"a length":    {"0.0,-1,2.0,HISTFAAAAA==\n", "the length of the interval"},
		"a table":     {"       Value     Percentile TotalCount 1/(1-Percentile)\n\n       1.000 0.500000000000          2           2.00\n", "this is a table of percentiles (.hgrm), which has no instants"},
		"a CSV table": {"\"Value\",\"Percentile\",\"TotalCount\",\"1/(1-Percentile)\"\n", "this is a table of percentiles"},
		"a failure":   {strings.ReplaceAll(hdrSeconds(t, hdrStart, "READ-FAILED", 3, 4), "FAILED", "ERROR"), `the operation "READ-ERROR" says that it failed`},
		"cut":         {good[:len(good)-30] + "\n", "histogram"},
	} {
		if _, err := Parse(FormatHdrHistogram, strings.NewReader(tc.log), hdrOptions(0)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

func FuzzHdrHistogram(f *testing.F) {
	f.Add(hdrSeconds(f, hdrStart, "READ", 3, 4))
	f.Add("#[BaseTime: 1e300]\n1e300,1,1,HISTFAAAAA==\n")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := Parse(FormatHdrHistogram, strings.NewReader(in), hdrOptions(0))
		if err != nil {
			return
		}
		mustBeSound(t, c)
	})
}

// hdrKinds writes a log of three seconds with two kinds of operations, and returns their latencies
// in microseconds.
func hdrKinds(t *testing.T, rng *rand.Rand, log *strings.Builder) map[string][]int64 {
	t.Helper()
	all := map[string][]int64{}
	fmt.Fprintf(log, "#[Histogram log format version 1.3]\n#[StartTime: %d.000 (seconds since epoch), Fri Nov 20]\n", hdrStart)
	for second := range 3 {
		for kind, typical := range map[string]float64{"READ": 600, "UPDATE": 1100} {
			h := hdr.New(1, 60_000_000, 3)
			for range 500 + rng.IntN(500) {
				micros := int64(typical * math.Exp(rng.NormFloat64()))
				if err := h.RecordValue(micros); err != nil {
					t.Fatal(err)
				}
				all[kind] = append(all[kind], micros)
			}
			text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(log, "Tag=%s,%d.000,1.000,%d.000,%s\n", kind, second, h.Max(), text)
		}
	}
	return all
}

// TestHdrHistogramKindsOfTwoClients: percentiles of each kind and of all are those of the latencies
// of both clients, sorted.
func TestHdrHistogramKindsOfTwoClients(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 4))
	o := hdrOptions(0)
	o.ZeroUnixNanos, o.Windows = hdrStart*1e9, timeline.Windows{Measure: 3 * time.Second}
	all := map[string][]int64{}
	var clients []results.Client
	for i := range int32(2) {
		var log strings.Builder
		for kind, latencies := range hdrKinds(t, rng, &log) {
			all[kind] = append(all[kind], latencies...)
			all[""] = append(all[""], latencies...)
		}
		o.Index, o.FirstClient = i, i
		c, err := Parse(FormatHdrHistogram, strings.NewReader(log.String()), o)
		if err != nil {
			t.Fatal(err)
		}
		mustBeSound(t, c)
		clients = append(clients, c)
	}
	m, err := results.Merge(clients)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Summary
	if len(s.Operations) != 2 || s.Committed != int64(len(all[""])) {
		t.Fatalf("%d kinds, %d committed; want 2, %d", len(s.Operations), s.Committed, len(all[""]))
	}
	for name, got := range map[string]map[string]float64{
		"": {"P50": s.P50Millis, "P99": s.P99Millis, "P999": s.P999Millis}, "READ": s.Operations[0].Percentiles, "UPDATE": s.Operations[1].Percentiles,
	} {
		sorted := slices.Sorted(slices.Values(all[name]))
		for p, share := range map[string]float64{"P50": 0.5, "P99": 0.99, "P999": 0.999} {
			want := float64(sorted[int(math.Ceil(share*float64(len(sorted))))-1]) / 1000
			if math.Abs(got[p]-want) > 0.002*want {
				t.Errorf("%s of %q is %g ms, want %g", p, name, got[p], want)
			}
		}
	}
}
