package parsers

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

// ycsbRaw is what YCSB writes with -p measurementtype=raw: the operation, the wall clock's ms when
// it was over, its latency in us, between other output.
const ycsbRaw = `READ latency raw data: op, timestamp(ms), latency(us)
READ,1795161599999,900
READ,1795161600000,4000
[READ], Total Operations, 4
READ,1795161600133,5000
READ,1795161602000,3500
`

var rawRecords = results.Records{
	Pattern: `^[A-Z]+,(?P<end>[0-9]+),(?P<latency>[0-9.]+)$`,
	Latency: results.RecordLatency{From: "latency", Unit: "us"},
	Instant: results.RecordInstant{From: "end", Unit: "ms", Clock: results.ClockWall, Of: results.OfEnd},
}

// lineRecords are columns of a CSV on CLOCK_MONOTONIC in seconds, when operations began.
var lineRecords = results.Records{
	Separator: ";",
	Latency:   results.RecordLatency{From: "took", Unit: "ms"},
	Instant:   results.RecordInstant{From: "began", Unit: "s", Clock: results.ClockMonotonic, Of: results.OfBegin},
	Outcome:   &results.RecordOutcome{From: "status", Committed: []string{"OK", "200"}, Aborted: []string{"CONFLICT"}, Errors: []string{"ERROR"}, Timeouts: []string{"TIMEOUT"}},
}

func withRecords(r results.Records) Options {
	o := options
	o.ZeroUnixNanos = 1_795_161_600_000_000_000
	o.Records = &r
	return o
}

func TestPatternRecords(t *testing.T) {
	c, err := Parse(FormatRegularExpression, strings.NewReader(ycsbRaw), withRecords(rawRecords))
	if err != nil {
		t.Fatal(err)
	}
	// The window is [0 s, 2 s): the operation that ended 1 ms before it and the one that ended with
	// it are outside.
	if diff := cmp.Diff(results.Counters{Committed: 2, Offered: 2}, c.Counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"otherLines": 2}, c.Driver); diff != "" {
		t.Errorf("driver counters (-want +got):\n%s", diff)
	}
	h, err := results.DecodeHistogram(c.Latency)
	if err != nil {
		t.Fatal(err)
	}
	if h.Count() != 2 || h.Max().Round(10*time.Microsecond) != 5*time.Millisecond {
		t.Errorf("%d latencies, the longest %v; want 2, 5ms", h.Count(), h.Max())
	}
	if c.Timeline.Committed[49] != 1 || c.Timeline.Committed[50] != 1 || c.Timeline.Committed[51] != 1 || c.Timeline.Committed[70] != 1 {
		t.Errorf("committed over time: %v", c.Timeline.Committed)
	}
}

func TestCSVRecords(t *testing.T) {
	const in = "status;began;took;note\n" +
		"OK;7548.0;1.5;\"a; b\"\n" +
		"CONFLICT;7548.5;2;\n" +
		"200;7549.9;150.25;\n" + // ends after the window
		"ERROR;7548.9;1;\n" +
		"TIMEOUT;7548.9;1000;\n"
	c, err := Parse(FormatCSV, strings.NewReader(in+"OK;7549;1"), withRecords(lineRecords))
	if err != nil {
		t.Fatal(err)
	}
	want := results.Counters{Committed: 1, Offered: 2, Aborted: 1, Errors: 1, Timeouts: 1}
	if diff := cmp.Diff(want, c.Counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"cutLines": 1}, c.Driver); diff != "" {
		t.Errorf("driver counters (-want +got):\n%s", diff)
	}
	if got := c.Timeline.Committed[70]; got != 1 {
		t.Errorf("%d transactions committed in the first 100 ms after the window, want 1", got)
	}
}

// Once, only committed operations showed when a pod began. Clients whose first attempts aborted
// seemed to start late, and a valid trial became Invalid for its start spread.
func TestRecordsStartWithTheFirstOperationOfAnyOutcome(t *testing.T) {
	const header, late = "status;began;took\n", "OK;7546;1\n"
	began := map[string]time.Duration{ // after the start of the warm-up, which is at 7543 s
		late:                         3 * time.Second,
		"CONFLICT;7543.25;5\n":       250 * time.Millisecond,
		"ERROR;7543.5;5\n" + late:    500 * time.Millisecond,
		late + "TIMEOUT;7543;1000\n": 0,
	}
	for lines, want := range began {
		c, err := Parse(FormatCSV, strings.NewReader(header+lines), withRecords(lineRecords))
		if got := time.Duration(c.StartedNanos); err != nil || got != want || c.NothingSent {
			t.Errorf("%q: the first operation began at %v, nothing sent: %t (%v); want %v", lines, got, c.NothingSent, err, want)
		}
	}
	// If instants are of the end, the beginning is earlier by the latency.
	atEnd := lineRecords
	atEnd.Instant.Of = results.OfEnd
	c, err := Parse(FormatCSV, strings.NewReader(header+"CONFLICT;7543.25;50\n"), withRecords(atEnd))
	if got := time.Duration(c.StartedNanos); err != nil || got != 200*time.Millisecond {
		t.Errorf("the first operation began at %v (%v), want 200ms", got, err)
	}
	if c, err = Parse(FormatCSV, strings.NewReader(header), withRecords(lineRecords)); err != nil || !c.NothingSent || c.Driver["silentPods"] != 1 {
		t.Errorf("without an operation, nothing sent is %t, driver counters %v (%v)", c.NothingSent, c.Driver, err)
	}
}

func TestRecordsRefuseDamage(t *testing.T) {
	const header = "status;began;took\nOK;7548;1\n"
	tests := map[string]struct{ format, in, want string }{
		"CSV columns":        {FormatCSV, header + "OK;7548\n", `the client's output:3: "OK;7548": the line has 2 columns, the header 3`},
		"CSV header":         {FormatCSV, "state;began;took\n", `the header has no column "status"; it has state, began, took`},
		"CSV quote":          {FormatCSV, header + "\"OK;7548;1\n", "the client's output:3: "},
		"CSV NaN":            {FormatCSV, header + "OK;NaN;1\n", `instant: "NaN" is not a decimal number`},
		"CSV negative":       {FormatCSV, header + "OK;7548;-1\n", "latency: -1 is negative"},
		"CSV no number":      {FormatCSV, header + "OK;;1\n", "instant: "},
		"CSV huge":           {FormatCSV, header + "OK;7548;99999999999999999999\n", "latency: 99999999999999999999 is too large"},
		"CSV huge whole":     {FormatCSV, header + "OK;9223372036854775807;1\n", "instant: 9223372036854775807 is too large"},
		"CSV endless line":   {FormatCSV, header + strings.Repeat("1", 1<<20) + "\n", "the client's output:3: the line is longer than 65536 bytes"},
		"pattern NaN":        {FormatRegularExpression, "READ,1795161600000,4000\nREAD,1795161600000,.\n", `the client's output:2: "READ,1795161600000,.": latency: `},
		"pattern huge":       {FormatRegularExpression, "READ,99999999999999999999,1\n", "instant: 99999999999999999999 is too large"},
		"a summary":          {FormatYCSB, ycsbSample, `the results format is "YCSB"; a client of a trial reports in one of Assay, TransactionLines, RegularExpression, CSV, JSONLines, Summary, Reckon, HdrHistogram, since what it holds can neither be cut`},
		"a folder's lines":   {FormatPequinClient, printed, `the results format is "PequinClient"`},
		"no format of ours":  {"Parquet", "", `the results format is "Parquet"; a client of a trial reports in one of Assay, TransactionLines, RegularExpression, CSV`},
		"stats.json":         {FormatPequinStats, "{}", "neither be cut to the trial's window nor merged over clients"},
		"a document in JSON": {FormatJSONPath, "[]", "neither be cut to the trial's window nor merged over clients"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			records := lineRecords
			if tc.format == FormatRegularExpression {
				records = rawRecords
			}
			_, err := Parse(tc.format, strings.NewReader(tc.in), withRecords(records))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestRecordsAreChecked(t *testing.T) {
	tests := map[string]struct {
		format string
		change func(*results.Records)
		want   string
	}{
		"unit":         {FormatCSV, func(r *results.Records) { r.Latency.Unit = "minutes" }, `the unit of latency is "minutes"`},
		"clock":        {FormatCSV, func(r *results.Records) { r.Instant.Clock = "Sundial" }, `the clock of instant is "Sundial"`},
		"begin or end": {FormatCSV, func(r *results.Records) { r.Instant.Of = "" }, "it must be of Begin or End"},
		"no column":    {FormatCSV, func(r *results.Records) { r.Latency.From = "" }, "latency must have either from and unit, or since"},
		"two meanings": {FormatCSV, func(r *results.Records) {
			r.Outcome = &results.RecordOutcome{From: "x", Committed: []string{"a"}, Errors: []string{"a"}}
		}, "two meanings"},
		"pattern":          {FormatRegularExpression, func(r *results.Records) { r.Pattern = "(" }, "the pattern must be a regular expression"},
		"group":            {FormatRegularExpression, func(r *results.Records) { r.Pattern = "(?P<latency>.)" }, "the pattern has no group (?P<end>...)"},
		"group of outcome": {FormatRegularExpression, func(r *results.Records) { r.Outcome = &results.RecordOutcome{From: "status"} }, "the pattern has no group (?P<status>...)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			records := rawRecords
			tc.change(&records)
			_, err := Parse(tc.format, strings.NewReader(""), withRecords(records))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
	for _, format := range []string{FormatCSV, FormatRegularExpression} {
		if _, err := Parse(format, strings.NewReader(""), options); err == nil || !strings.Contains(err.Error(), "needs records") {
			t.Errorf("%s without records: %v", format, err)
		}
		broken := errors.New("disk on fire")
		if _, err := Parse(format, errReader{broken}, withRecords(rawRecords)); !errors.Is(err, broken) {
			t.Errorf("%s: error = %v, want %v", format, err, broken)
		}
	}
}

// TestLongRecordsStream reads 13 MB of lines made as they are read; memory must not grow with them.
func TestLongRecordsStream(t *testing.T) {
	line := "READ,1795161600500,4000.5\n"
	const lines = 1 << 19
	p := &peak{r: io.LimitReader(&repeat{line: line}, int64(lines*len(line)))}
	c, err := Parse(FormatRegularExpression, p, withRecords(rawRecords))
	if err != nil || c.Counters.Committed != lines {
		t.Fatalf("%d committed (%v), want %d", c.Counters.Committed, err, lines)
	}
	if p.bytes > 100<<20 {
		t.Errorf("the process used %d bytes", p.bytes)
	}
}

// fuzzRecords checks what must hold of any report of a trial: no panic, and a count that equals the
// histogram's.
func fuzzRecords(f *testing.F, format string, records results.Records, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
		f.Add(s[:len(s)/2])
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := Parse(format, strings.NewReader(in), withRecords(records))
		if err != nil {
			return
		}
		h, err := results.DecodeHistogram(c.Latency)
		if err != nil {
			t.Fatal(err)
		}
		if h.Count()+c.Counters.OutOfRange != c.Counters.Committed || c.Counters.Committed > int64(strings.Count(in, "\n")) {
			t.Errorf("%d latencies, %d committed, %d lines", h.Count(), c.Counters.Committed, strings.Count(in, "\n"))
		}
		mustBeSound(t, c)
	})
}

func FuzzJSONLines(f *testing.F)      { fuzzRecords(f, FormatJSONLines, jsonRecords, jsonSample) }
func FuzzPatternRecords(f *testing.F) { fuzzRecords(f, FormatRegularExpression, rawRecords, ycsbRaw) }
func FuzzCSVRecords(f *testing.F) {
	fuzzRecords(f, FormatCSV, lineRecords, "status;began;took\nOK;7548.5;1.5\n\"TIMEOUT\";7549;2\n")
}

// An operation whose name says that it failed never counts as committed in silence.
func TestOperationsThatSayTheyFailed(t *testing.T) {
	lines := func(name string) string {
		return "READ,1795161600133,5000\n" + name + ",1795161600200,10\n"
	}
	for name, refused := range map[string]bool{
		"READ-FAILED": true, "update_error": true, "TIMEOUT": true, "aborted": true,
		"UPDATE": false, "FAILOVER": false, "default": false, "terror": false,
	} {
		t.Run(name, func(t *testing.T) {
			r := rawRecords
			r.Pattern, r.Operation = `^(?P<op>[-_A-Za-z]+),(?P<end>[0-9]+),(?P<latency>[0-9.]+)$`, "op"
			_, err := Parse(FormatRegularExpression, strings.NewReader(lines(name)), withRecords(r))
			if (err != nil) != refused {
				t.Fatalf("error %v, want one: %t", err, refused)
			}
			if refused && !strings.Contains(err.Error(), "would count as committed: say which operations failed") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Records that say how an operation ended are believed, whatever its name. Here the first column
// says it.
func TestOutcomesOfOperationsThatSayTheyFailed(t *testing.T) {
	r := lineRecords
	r.Operation = "op"
	c, err := Parse(FormatCSV, strings.NewReader("status;began;took;op\nOK;7548.5;2;READ-FAILED\n"), withRecords(r))
	if err != nil || c.Counters.Committed != 1 || c.Driver["operation:READ-FAILED"] != 1 {
		t.Errorf("%v, %d committed, %v", err, c.Counters.Committed, c.Driver)
	}
}
