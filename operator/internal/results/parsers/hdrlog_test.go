package parsers

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
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

// TestHdrHistogramLogsAreCutAndMerged: of four seconds the window has the second and the third, and
// percentiles are those of both clients together.
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
