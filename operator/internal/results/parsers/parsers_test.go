package parsers

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

var options = Options{
	ZeroMonotonicNanos: 7_548_000_000_000,
	Windows:            timeline.Windows{WarmUp: 5 * time.Second, Measure: 2 * time.Second, CoolDown: time.Second},
	Index:              1, FirstClient: 2, Clients: 2,
}

// A client of the Pequin and Basil artifacts prints this; t = 0 is at 7548 s.
const printed = `rw,3703921,7547999999999,32
rw,4000000,7548000000000,33
rw,5000000,7548133599816,32
rw,6000000,7549999999999,33
rw,3500000,7550000000000,32
#end,10,250133,32

#end,10,250788,33
`

func TestTransactionLines(t *testing.T) {
	c, err := Parse(FormatTransactionLines, strings.NewReader(printed), options)
	if err != nil {
		t.Fatal(err)
	}
	wantTimeline := results.NewTimeline(-5000, 80)
	for bin, micros := range map[int]int64{49: 3703, 50: 4000, 51: 5000, 69: 6000, 70: 3500} {
		wantTimeline.Committed[bin], wantTimeline.LatencySumMicros[bin] = 1, micros
	}
	want := results.Client{
		Format: results.ClientFormat, Index: 1, FirstClient: 2, Clients: 2,
		// The earliest transaction began 4 ms before t = 0, which is 5 s after the start of the
		// warm-up.
		StartedNanos: 5_000_000_000 - 4_000_000, MeasureNanos: 2_000_000_000,
		// In the window: those that ended from t = 0 up to but not including 2 s; offered are those
		// that began in it.
		Counters: results.Counters{Committed: 3, Offered: 3},
		// These lines are about commits only.
		Unreported: []string{"aborted", "errors", "givenUp", "lateSends", "retries", "timeouts", "unsent"},
		Timeline:   wantTimeline, Driver: map[string]int64{"endLines": 2},
	}
	h, err := results.DecodeHistogram(c.Latency)
	if err != nil {
		t.Fatal(err)
	}
	if h.Count() != 3 || h.Max().Round(10*time.Microsecond) != 6*time.Millisecond {
		t.Errorf("%d latencies, the longest %v; want 3, 6ms", h.Count(), h.Max())
	}
	c.Latency = ""
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTransactionLinesWithOtherOutput(t *testing.T) {
	tests := map[string]struct {
		in            string
		wantCommitted int64
		wantDriver    map[string]int64
	}{
		"nothing":                      {"", 0, map[string]int64{"silentPods": 1}},
		"other output is skipped":      {"Starting benchmark\nServers: a, b\nrw,1000,7548000000001,0\nx,\n", 1, map[string]int64{"otherLines": 3}},
		"comments are skipped":         {"# rw,1,2\n#end,1,2,3\n", 0, map[string]int64{"endLines": 1, "silentPods": 1}},
		"Windows line ends":            {"rw,1000,7548000000001,0\r\n", 1, map[string]int64{}},
		"a last line that is cut off":  {"rw,1000,7548000000001,0\nrw,1000,7548", 1, map[string]int64{"cutLines": 1}},
		"a last line that looks whole": {"rw,1000,7548000000001,0\nrw,1000,7548000000002,1", 1, map[string]int64{"cutLines": 1}},
		"a latency of 0":               {"rw,0,7548000000001,0\n", 1, map[string]int64{}},
		"a name with spaces":           {"new order,1000,7548000000001,0\n", 1, map[string]int64{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(FormatTransactionLines, strings.NewReader(tc.in), options)
			if err != nil {
				t.Fatal(err)
			}
			if c.Counters.Committed != tc.wantCommitted {
				t.Errorf("committed %d, want %d", c.Counters.Committed, tc.wantCommitted)
			}
			if diff := cmp.Diff(tc.wantDriver, c.Driver); diff != "" {
				t.Errorf("driver counters (-want +got):\n%s", diff)
			}
			if silent := c.Driver["silentPods"] > 0; c.NothingSent != silent || silent && c.StartedNanos != 0 {
				t.Errorf("nothing sent: %t, started %v; want %t, and no start where nothing was", c.NothingSent, time.Duration(c.StartedNanos), silent)
			}
		})
	}
}

func TestTransactionLinesRefusesDamage(t *testing.T) {
	good := "rw,1000,7548000000001,0\n"
	tests := map[string]struct{ in, want string }{
		"two lines mixed":    {good + "rw,1000,75rw,1000,7548000000001,0\n480000001,1\n", `line 2 of the client's output, "rw,1000,75rw,1000,7548000000001,0"`},
		"a field missing":    {good + "rw,1000,7548000000001\n", "four fields"},
		"a field too many":   {"rw,1000,7548000000001,0,1\n", "field 4"},
		"not a number":       {"rw,1000,7548000000001,zero\n", `field 4 is "zero"`},
		"began before boot":  {"rw,7548000000002,7548000000001,0\n", "before the clock"},
		"negative":           {"rw,1000,-7548000000001,0\n", "field 3"},
		"overflow":           {"rw,1000,99999999999999999999,0\n", "field 3"},
		"a line of 1 MB":     {"rw," + strings.Repeat("1", 1<<20) + "\n", "line 1 is longer"},
		"only latency":       {"rw,1000\n", "four fields"},
		"an empty instant":   {"rw,1000,,0\n", "field 3"},
		"nul bytes (sparse)": {good + "rw,1000,7548\x00\x00\x00\n", "four fields"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(FormatTransactionLines, strings.NewReader(tc.in), options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestReadErrorsAreReported(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, format := range []string{FormatAssay, FormatTransactionLines} {
		r := io.MultiReader(strings.NewReader("rw,1000,7548000000001,0\n"), errReader{broken})
		if _, err := Parse(format, r, options); !errors.Is(err, broken) {
			t.Errorf("%s: error = %v, want %v", format, err, broken)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestAssay(t *testing.T) {
	good := results.Client{Index: 1, FirstClient: 2, Clients: 2, MeasureNanos: int64(2 * time.Second)}
	tests := map[string]struct {
		change func(*results.Client)
		want   string // of the error; empty: none
	}{
		"as expected":     {func(*results.Client) {}, ""},
		"another pod":     {func(c *results.Client) { c.Index = 0 }, "of client pod 0 with clients 2 to 3; it should be of pod 1"},
		"other clients":   {func(c *results.Client) { c.Clients = 3 }, "clients 2 to 4"},
		"another window":  {func(c *results.Client) { c.MeasureNanos = int64(time.Second) }, "window is 1s long; it should be 2s"},
		"with a failure":  {func(c *results.Client) { c.Failure = "the driver died" }, ""},
		"from other seed": {func(c *results.Client) { c.Driver = map[string]int64{"x": 1} }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := good
			tc.change(&want)
			b, err := results.EncodeClient(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(FormatAssay, strings.NewReader(string(b)), options)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error = %v, want one with %q", err, tc.want)
				}
				return
			}
			want.Format = results.ClientFormat
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := Parse("YCSB", strings.NewReader(""), options)
	if err == nil || !strings.Contains(err.Error(), "one of Assay, TransactionLines, RegularExpression, CSV") {
		t.Errorf("error = %v, want one that names the formats", err)
	}
}

func FuzzTransactionLines(f *testing.F) {
	f.Add(printed)
	f.Add("rw,1000,7548")
	f.Add("Servers: a, b\nrw,9223372036854775807,0,0\n")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := Parse(FormatTransactionLines, strings.NewReader(in), options)
		if err != nil {
			return
		}
		m, err := results.Merge([]results.Client{c})
		if err != nil {
			t.Fatalf("merge what was parsed: %v", err)
		}
		if m.Summary.Committed > int64(strings.Count(in, "\n")) {
			t.Errorf("%d transactions in %d lines", m.Summary.Committed, strings.Count(in, "\n"))
		}
		mustBeSound(t, c)
	})
}

func TestMemoryDoesNotGrowWithTheReport(t *testing.T) {
	const line = "rw,1000,7548000000001,0\n"
	// The total of allocations bounds the memory at any time. A slice that grows with the report
	// takes some bytes for each line.
	allocated := func(lines int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := Parse(FormatTransactionLines, io.LimitReader(&repeat{line: line}, int64(lines*len(line))), options)
		if err != nil || c.Counters.Committed != int64(lines) {
			t.Fatalf("committed %d (%v), want %d", c.Counters.Committed, err, lines)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	short, long := allocated(1_000), allocated(201_000)
	if more := int64(long) - int64(short); more > 200_000 {
		t.Errorf("%d bytes are allocated for 1,000 lines, and %d for 201,000; want less than one more for each line", short, long)
	}
}

type repeat struct {
	line string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.line[r.at]
		r.at = (r.at + 1) % len(r.line)
	}
	return len(p), nil
}
