package parsers

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// packedHistogram has n values.
func packedHistogram(t *testing.T, n, value int64) string {
	t.Helper()
	h := hdr.New(1, 60_000_000, 3)
	if err := h.RecordValues(value, n); err != nil {
		t.Fatal(err)
	}
	text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWhereAnIntervalLies: an interval of 10 transactions is on the side of each end of the window
// on which its middle is. It fills the bins of 100 ms there. The log begins 1 s before t = 0, and
// the window is [0, 2 s).
func TestWhereAnIntervalLies(t *testing.T) {
	for name, tc := range map[string]struct {
		begin, length  float64 // in the log
		committed, cut int64
		first, bins    int64 // of the timeline: its begin in ms, and how many
		inFirst        int64
	}{
		"in the window":                   {1, 1, 10, 0, 0, 10, 1},
		"all of the window":               {1, 2, 10, 0, 0, 20, 1},
		"up to t = 0":                     {0, 1, 0, 0, -1000, 10, 1},
		"from the window's end on":        {3, 1, 0, 0, 2000, 10, 1},
		"its middle is t = 0":             {0.5, 1, 10, 1, 0, 5, 2},
		"its middle is before t = 0":      {0.25, 1, 0, 1, -800, 8, 2},
		"its middle is the window's end":  {2.5, 1, 0, 1, 2000, 5, 2},
		"its middle is before that":       {2.25, 1, 10, 1, 1200, 8, 2},
		"across both ends":                {0, 4, 10, 2, 0, 20, 1},
		"no time at all":                  {1.5, 0, 10, 0, 500, 1, 10},
		"a day, whose middle is far away": {0, 86400, 0, 2, 2000, 10, 1},
	} {
		log := fmt.Sprintf("#[StartTime: %d.000 (seconds since epoch)]\n%g,%g,1.0,%s\n", hdrStart, tc.begin, tc.length, packedHistogram(t, 10, 1000))
		c, err := Parse(FormatHdrHistogram, strings.NewReader(log), hdrOptions(0))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Counters.Committed != tc.committed || c.Driver[counterCutIntervals] != tc.cut {
			t.Errorf("%s: %d committed, %d ends cut it; want %d and %d", name, c.Counters.Committed, c.Driver[counterCutIntervals], tc.committed, tc.cut)
		}
		if want := int64(tc.begin * 1e9); c.StartedNanos != want { // the release is where the log begins
			t.Errorf("%s: started %d ns after the release, want %d", name, c.StartedNanos, want)
		}
		sum := int64(0)
		for i, n := range c.Timeline.Committed {
			at := c.Timeline.FirstMillis + 100*int64(i)
			if n > 0 && (at < tc.first || at >= tc.first+100*tc.bins) {
				t.Errorf("%s: %d at %d ms, outside of %d bins from %d ms on", name, n, at, tc.bins, tc.first)
			}
			if at == tc.first && n != tc.inFirst {
				t.Errorf("%s: %d in the bin from %d ms on, want %d", name, n, at, tc.inFirst)
			}
			sum += n
		}
		if sum != 10 {
			t.Errorf("%s: the timeline has %d, want all 10", name, sum)
		}
	}
}

// TestLinesOfHistogramLogs: lines that count, by their tags and instants. The clock's
// t = 0 is 100,000,000 s after 1970, and all counts of 10 lie in a window of 1 s from there on.
func TestLinesOfHistogramLogs(t *testing.T) {
	const zero = 100_000_000
	ten := packedHistogram(t, 10, 1000)
	type driver = map[string]int64
	for name, tc := range map[string]struct {
		log       string
		of        results.Histograms
		whole     bool
		committed int64
		errors    int64
		driver    driver
		err       string
	}{
		"an instant since 1970":                   {log: "100000000.25,0.5,1,TEN\n", committed: 10},
		"as long as a day":                        {log: "100000000,86400,1,TEN\n", driver: driver{counterCutIntervals: 1}},
		"longer than a day":                       {log: "100000000,86401,1,TEN\n", err: "the length of the interval"},
		"relative to the start":                   {log: "#[StartTime: 99999999.5 (seconds)]\n0.75,0.5,1,TEN\n", committed: 10},
		"the start has no remark":                 {log: "#[StartTime: 99999999.5]\n0.75,0.5,1,TEN\n", committed: 10},
		"a year before the start is absolute":     {log: "#[StartTime: 131536000]\n100000000,0.5,1,TEN\n", committed: 10},
		"more than a year before it is relative":  {log: "#[StartTime: 131536001]\n100000000,0.5,1,TEN\n"},
		"relative to the base":                    {log: "#[StartTime: 5]\n#[BaseTime: 99999999.5 (seconds)]\n0.75,0.5,1,TEN\n", committed: 10},
		"relative to a base of 0":                 {log: "#[StartTime: 99999999.5]\n#[BaseTime: 0]\n0.75,0.5,1,TEN\n", driver: driver{}},
		"a start of 0":                            {log: "#[StartTime: 0]\n100000000,0.5,1,TEN\n", committed: 10},
		"a start before 1970":                     {log: "#[StartTime: -1]\n", err: "no number of seconds since 1970"},
		"a start beyond 2116":                     {log: "#[StartTime: 4611686019]\n", err: "no number of seconds since 1970"},
		"a start that is no number":               {log: "#[StartTime: now]\n", err: `"now]" is no number of seconds since 1970`},
		"another comment":                         {log: "#[Histogram log format version 1.3]\n100000000,0.5,1,TEN\n", committed: 10},
		"a header and an empty line":              {log: "\"StartTimestamp\",\"Interval_Length\"\n\n100000000,0.5,1,TEN\n", committed: 10},
		"the last line without a newline":         {log: "100000000,0.5,1,TEN\n100000000,0.5,1,TEN", committed: 10, driver: driver{counterCut: 1}},
		"the same of a client that ended itself":  {log: "100000000,0.5,1,TEN\n100000000,0.5,1,TEN", whole: true, committed: 20},
		"nothing":                                 {log: "#[StartTime: 0]\n", driver: driver{counterSilent: 1}},
		"a tag":                                   {log: "Tag=READ,100000000,0.5,1,TEN\n", committed: 10, driver: driver{results.CounterOperation + "READ": 10, results.CounterOperationMicros + "READ": 10_000}},
		"a tag without an interval":               {log: "Tag=READ\n", err: "there is nothing after the tag"},
		"a listed tag, another and none":          {of: results.Histograms{Tags: []string{"READ"}}, log: "Tag=READ,100000000,0.5,1,TEN\nTag=SCAN,100000000,0.5,1,TEN\n100000000,0.5,1,TEN\n", committed: 10, driver: driver{counterOther: 2, results.CounterOperation + "READ": 10, results.CounterOperationMicros + "READ": 10_000}},
		"a listed tag and one of errors":          {of: results.Histograms{Tags: []string{"READ"}, Errors: []string{"BAD"}}, log: "Tag=READ,100000000,0.5,1,TEN\nTag=BAD,100000000,0.5,1,TEN\n", committed: 10, errors: 10, driver: driver{results.CounterOperation + "READ": 10, results.CounterOperationMicros + "READ": 10_000}},
		"a listed tag may say that it failed":     {of: results.Histograms{Tags: []string{"READ-FAILED"}}, log: "Tag=READ-FAILED,100000000,0.5,1,TEN\n", committed: 10, driver: driver{results.CounterOperation + "READ-FAILED": 10, results.CounterOperationMicros + "READ-FAILED": 10_000}},
		"a kind outside of the window is nowhere": {log: "Tag=READ,100000001,0.5,1,TEN\n"},
	} {
		o := Options{Clients: 1, ZeroUnixNanos: zero * 1e9, Windows: timeline.Windows{Measure: time.Second}, Whole: tc.whole}
		tc.of.Unit = "us"
		o.Histograms = &tc.of
		c, err := Parse(FormatHdrHistogram, strings.NewReader(strings.ReplaceAll(tc.log, "TEN", ten)), o)
		if tc.err != "" || err != nil {
			if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", name, err, tc.err)
			}
			continue
		}
		if c.Counters.Committed != tc.committed || c.Counters.Errors != tc.errors {
			t.Errorf("%s: %d committed, %d errors; want %d and %d", name, c.Counters.Committed, c.Counters.Errors, tc.committed, tc.errors)
		}
		if c.NothingSent != (tc.driver[counterSilent] > 0) {
			t.Errorf("%s: nothing sent %v", name, c.NothingSent)
		}
		maps.DeleteFunc(c.Driver, func(_ string, n int64) bool { return n == 0 })
		if tc.driver == nil {
			tc.driver = driver{}
		}
		if diff := cmp.Diff(tc.driver, c.Driver); diff != "" {
			t.Errorf("%s: counters of the client (-want +got)\n%s", name, diff)
		}
	}
}

// TestIntervalsAreSeen: without a window, all operations count as seen, from the first begin to the
// last end, in whatever order they are written.
func TestIntervalsAreSeen(t *testing.T) {
	var seen Seen
	log := strings.ReplaceAll("12,2,1,TEN\n11,1,1,TEN\n11.5,4,1,TEN\n", "TEN", packedHistogram(t, 10, 1000))
	c, err := Parse(FormatHdrHistogram, strings.NewReader(log), Options{Clients: 1, Seen: &seen, ZeroUnixNanos: 10e9, Histograms: &results.Histograms{Unit: "us"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Seen{Operations: 30, First: time.Second, Last: 5500 * time.Millisecond}); seen != want {
		t.Errorf("seen %+v, want %+v", seen, want)
	}
	if c.StartedNanos != 1e9 || c.Driver[counterCutIntervals] != 0 {
		t.Errorf("started at %d ns, %d intervals cut; want 1e9 and none, since there is no window", c.StartedNanos, c.Driver[counterCutIntervals])
	}
}

// TestLatencyOfABar: the latency of a bar is its middle. With three digits, values below 2048 have
// a bar each, and 100,000 is in a bar of 64 values from 99,968 on: its middle is 99,999.5.
func TestLatencyOfABar(t *testing.T) {
	for unit, tc := range map[string]struct{ value, micros int64 }{
		"us": {100_000, 99_999}, "ns": {100_000, 99}, "ms": {1000, 1_000_000}, "s": {3, 3_000_000},
	} {
		o := hdrOptions(0)
		o.Histograms.Unit = unit
		log := fmt.Sprintf("%d,1,1,%s\n", hdrStart+1, packedHistogram(t, 10, tc.value))
		c, err := Parse(FormatHdrHistogram, strings.NewReader(log), o)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, n := range c.Timeline.LatencySumMicros {
			sum += n
		}
		if sum != 10*tc.micros {
			t.Errorf("10 of %d %s are %d us, want %d", tc.value, unit, sum, 10*tc.micros)
		}
	}
}

// TestHeadersOfHistograms: what is refused by the words of a histogram's header.
func TestHeadersOfHistograms(t *testing.T) {
	packed, err := base64.StdEncoding.DecodeString(packedHistogram(t, 10, 1000))
	if err != nil {
		t.Fatal(err)
	}
	in, err := zlib.NewReader(bytes.NewReader(packed[8:]))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	size := int32(len(plain) - hdr.ENCODING_HEADER_SIZE)
	word := func(at int, v int32) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
	}
	long := func(at int, v uint64) func([]byte) { return func(b []byte) { binary.BigEndian.PutUint64(b[at:], v) } }
	for name, tc := range map[string]struct {
		change []func([]byte)
		want   string
	}{
		"as it is":                    {},
		"another cookie":              {[]func([]byte){word(0, hdr.V2EncodingCookieBase+1)}, "no histogram in HdrHistogram's encoding"},
		"another size of words":       {[]func([]byte){word(0, hdr.V2EncodingCookieBase|0x10)}, ""},
		"more counts than there are":  {[]func([]byte){word(4, size+1)}, fmt.Sprintf("the histogram says %d bytes of counts and has %d", size+1, size)},
		"fewer counts":                {[]func([]byte){word(4, size-1)}, fmt.Sprintf("the histogram says %d bytes of counts and has %d", size-1, size)},
		"the offset 1":                {[]func([]byte){word(8, 1)}, ""},
		"the offset 2":                {[]func([]byte){word(8, 2)}, "the histogram is shifted"},
		"no digit":                    {[]func([]byte){word(12, 0)}, "the histogram is of 0 digits from 1 to 60000000"},
		"five digits":                 {[]func([]byte){word(12, 5)}, ""},
		"six digits":                  {[]func([]byte){word(12, 6)}, "the histogram is of 6 digits"},
		"from 0 on":                   {[]func([]byte){long(16, 0)}, "from 0 to 60000000, which is impossible"},
		"up to twice the lowest":      {[]func([]byte){long(16, 30_000_000)}, ""},
		"up to less than twice":       {[]func([]byte){long(16, 30_000_001)}, "from 30000001 to 60000000, which is impossible"},
		"the ratio 2":                 {[]func([]byte){long(32, math.Float64bits(2))}, "its ratio is not 1"},
		"more counts than its values": {[]func([]byte){word(12, 1), long(24, 2)}, "the histogram is damaged"},
	} {
		b := bytes.Clone(plain)
		for _, change := range tc.change {
			change(b)
		}
		packed := bytes.NewBuffer(bytes.Clone(packed[:8]))
		out := zlib.NewWriter(packed)
		if _, err := out.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		var d hdrDecoder
		err := d.decode(base64.StdEncoding.EncodeToString(packed.Bytes()))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
		if err == nil && d.total != 10 {
			t.Errorf("%s: %d values, want 10", name, d.total)
		}
	}
}

// TestBarsAreThoseOfTheLibrary: for each value, the bar is the one that HdrHistogram's own library
// for Go gives it.
func TestBarsAreThoseOfTheLibrary(t *testing.T) {
	for _, of := range []struct {
		digits          int
		lowest, highest int64
	}{{1, 1, 60}, {1, 1, 1<<40 - 1}, {2, 1, 255}, {2, 1, 257}, {3, 1, 2047}, {3, 1, 2049}, {3, 1000, 60_000_000}, {4, 7, 1e9}, {5, 1, 1e7}, {3, 1, math.MaxInt64 / 2}} {
		for _, value := range []int64{of.lowest, 2*of.lowest - 1, of.lowest + 17, 31, 32, 33, 255, 256, 2047, 2048, 4095, 4096, 100_000, 1e6 - 1, of.highest/2 + 1, of.highest - 1, of.highest} {
			if value < of.lowest || value > of.highest {
				continue
			}
			h := hdr.New(of.lowest, of.highest, of.digits)
			if err := h.RecordValues(value, 3); err != nil {
				t.Fatal(err)
			}
			text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
			if err != nil {
				t.Fatal(err)
			}
			var d hdrDecoder
			if err := d.decode(string(text)); err != nil {
				t.Errorf("%+v: %v", of, err)
				continue
			}
			want := results.Bin{From: h.Min(), To: h.Max(), Count: 3}
			if h.Min() == 0 { // the library's minimum does not count the first bar
				want.From = 0
			}
			if diff := cmp.Diff([]results.Bin{want}, d.bars); diff != "" {
				t.Errorf("%+v, the value %d (-want +got)\n%s", of, value, diff)
			}
		}
	}
}
