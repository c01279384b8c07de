package parsers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// inPieces reads a text some bytes at a time, and then fails with err.
type inPieces struct {
	text string
	size int
	err  error
}

func (p *inPieces) Read(b []byte) (int, error) {
	n := copy(b[:min(len(b), p.size)], p.text)
	if p.text = p.text[n:]; n == 0 {
		return 0, p.err
	}
	return n, nil
}

// TestLinesOfATextInPieces: the lines of a text, their numbers and where they end, whatever pieces
// the text is read in.
func TestLinesOfATextInPieces(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, tc := range map[string]struct {
		text       string
		returns    bool // end lines
		skipLong   bool
		want       []string // number, end in the text, first bytes
		err        string
		last       string
		skipped    int
		onlyLarger bool // pieces, to save time
	}{
		"lines":                       {text: "a\n\nbc\n", want: []string{"1 2 a", "2 3 ", "3 6 bc"}},
		"of Windows":                  {text: "a\r\nbc\r\n", want: []string{"1 3 a", "2 7 bc"}},
		"a return is within a line":   {text: "a\rb\n", want: []string{"1 4 a\rb"}},
		"cut":                         {text: "a\nbc", want: []string{"1 2 a"}, err: `file:2: the last line, "bc", has no newline`, last: "bc"},
		"nothing":                     {text: ""},
		"a progress bar":              {returns: true, text: "1%\r2%\rdone\n", want: []string{"1 3 1%", "2 6 2%", "3 11 done"}},
		"a progress bar of Windows":   {returns: true, text: "1%\r2%\r\nd\r\n", want: []string{"1 3 1%", "2 7 2%", "3 10 d"}},
		"it ends in a return":         {returns: true, text: "a\nb\r", want: []string{"1 2 a", "2 4 b"}},
		"two returns":                 {returns: true, text: "a\r\r\nb\n", want: []string{"1 2 a", "2 4 ", "3 6 b"}},
		"cut after a return":          {returns: true, text: "a\rb", want: []string{"1 2 a"}, err: `file:2: the last line, "b"`, last: "b"},
		"as long as may be":           {onlyLarger: true, text: long[1:] + "\nb\n", want: []string{fmt.Sprint("1 ", maxLine, " xxxx"), fmt.Sprint("2 ", maxLine+2, " b")}},
		"longer":                      {onlyLarger: true, text: "a\n" + long + "\nb\n", want: []string{"1 2 a"}, err: fmt.Sprintf("file:2: the line is longer than %d bytes", maxLine)},
		"longer, and skipped":         {onlyLarger: true, skipLong: true, text: "a\n" + long + "\nb\n", want: []string{"1 2 a", fmt.Sprint("3 ", maxLine+5, " b")}, skipped: 1},
		"much longer, and skipped":    {onlyLarger: true, skipLong: true, text: long + long + "xy\nb\n" + long + "z\nc\n", want: []string{fmt.Sprint("2 ", 2*maxLine+5, " b"), fmt.Sprint("4 ", 3*maxLine+9, " c")}, skipped: 2},
		"skipped up to a return":      {onlyLarger: true, returns: true, skipLong: true, text: long + "x\rb\n", want: []string{fmt.Sprint("2 ", maxLine+4, " b")}, skipped: 1},
		"skipped up to the end":       {onlyLarger: true, skipLong: true, text: "a\n" + long + "x", want: []string{"1 2 a"}, skipped: 1},
		"skipped, and the last is it": {onlyLarger: true, skipLong: true, text: long + "x\nb", err: `file:2: the last line, "b"`, last: "b", skipped: 1},
	} {
		for _, size := range []int{1, 2, 3, 7, maxLine - 1, maxLine, 2*maxLine + 1} {
			if tc.onlyLarger && size < 7 {
				continue
			}
			in := newLines("file", &inPieces{tc.text, size, io.EOF})
			in.carriageReturns, in.skipLong = tc.returns, tc.skipLong
			var got []string
			var err error
			for {
				var line []byte
				if line, err = in.next(); err != nil {
					break
				}
				got = append(got, fmt.Sprintf("%d %d %s", in.number, in.end, line[:min(len(line), 4)]))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s, %d bytes at a time: (-want +got)\n%s", name, size, diff)
			}
			if tc.err == "" && !errors.Is(err, io.EOF) || tc.err != "" && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s, %d bytes at a time: ends with %v, want %q", name, size, err, tc.err)
			}
			if in.long != tc.skipped || string(in.last) != tc.last {
				t.Errorf("%s, %d bytes at a time: %d lines skipped, the last is %q; want %d and %q", name, size, in.long, in.last, tc.skipped, tc.last)
			}
		}
	}
}

// A reader that fails, or that gives nothing and says no error.
func TestLinesOfABrokenReader(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{{errors.New("the pipe is broken"), "file:2: read: the pipe is broken"}, {nil, "file:2: read: multiple Read calls return no data or error"}} {
		in := newLines("file", &inPieces{"a\nb", 3, tc.err})
		if line, err := in.next(); err != nil || string(line) != "a" {
			t.Errorf("the first line is %q, %v", line, err)
		}
		if _, err := in.next(); err == nil || err.Error() != tc.want {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}

// TestBoundsOfBursts: 17 lines in one piece, more than 100 ms after the piece before, are a burst.
// So are all lines of a piece that begins within one. One line of a hundred may be in a burst.
func TestBoundsOfBursts(t *testing.T) {
	const ms = time.Millisecond
	lines := func(n int) string { return strings.Repeat("lat=1\n", n) }
	one := func(n int) []piece { // each line alone
		var all []piece
		for i := range n {
			all = append(all, piece{lines(1), time.Duration(i) * ms})
		}
		return all
	}
	for name, tc := range map[string]struct {
		pieces []piece
		bursts int64
		err    string
	}{
		"16 lines after a second":             {append(one(1), piece{lines(16), time.Second}), 0, ""},
		"17 lines after 100 ms":               {append(one(1), piece{lines(17), 100 * ms}), 0, ""},
		"17 lines after more":                 {append(one(1), piece{lines(17), 100*ms + 1}), 0, "17 of 18 lines came in bursts"},
		"as many as may be":                   {append(one(1683), piece{lines(17), 3 * time.Second}), 17, ""},
		"one more":                            {append(one(1682), piece{lines(17), 3 * time.Second}), 0, "17 of 1699 lines came in bursts"},
		"torn after 100 ms":                   {[]piece{{"lat=", 0}, {"1\n", 100 * ms}}, 0, ""},
		"torn after more":                     {[]piece{{"lat=", 0}, {"1\n", 100*ms + 1}}, 0, "1 of 1 lines came in bursts"},
		"the first piece, long after a start": {[]piece{{lines(17), 5 * time.Second}}, 0, "17 of 17 lines"},
		"the first piece, before the start":   {[]piece{{lines(1), -2 * time.Second}}, 0, ""},
		"two at the same instant":             {[]piece{{lines(1), time.Second}, {lines(1), time.Second}}, 0, ""},
		"a piece before the one before":       {[]piece{{lines(1), time.Second}, {lines(1), time.Second - 1}}, 0, "goes back in time"},
		"an empty piece":                      {[]piece{{lines(1), time.Second}, {"", time.Second}, {lines(1), time.Second}}, 0, ""},
	} {
		c, err := byArrival(tc.pieces)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || c.Driver[counterBurst] != tc.bursts {
			t.Errorf("%s: %d lines of bursts, %v; want %d, %q", name, c.Driver[counterBurst], err, tc.bursts, tc.err)
		}
	}
}

// TestSecondsOfARun: how long a run was, from what its client says of it.
func TestSecondsOfARun(t *testing.T) {
	type said map[string]float64
	const committed, ended, answered, timeouts = results.NumberCommitted, results.NumberEnded, results.NumberAnswered, results.NumberTimeouts
	const throughput, endedRate, runTime = results.NumberThroughput, results.NumberEndedRate, results.NumberRunTime
	for name, tc := range map[string]struct {
		said    said
		failed  float64
		load    time.Duration
		want    float64
		remarks string
	}{
		"it says so":                             {said: said{runTime: 1500, committed: 9, throughput: 3}, want: 1.5},
		"a count and its rate":                   {said: said{committed: 9, throughput: 0.5}, want: 18},
		"attempts and their rate":                {said: said{ended: 9, endedRate: 0.5}, want: 18},
		"the committed go first":                 {said: said{committed: 9, throughput: 0.5, ended: 12, endedRate: 0.5}, want: 18},
		"a rate of 0 says nothing":               {said: said{committed: 0, throughput: 0, ended: 12, endedRate: 0.5}, want: 24},
		"attempts and the rate of commits":       {said: said{ended: 9, throughput: 0.5}, want: 18},
		"commits and the rate of attempts":       {said: said{committed: 9, endedRate: 0.5}, failed: 1, want: 20},
		"answers and the rate of attempts":       {said: said{answered: 9, timeouts: 3, endedRate: 0.5}, want: 24},
		"a count alone: the load":                {said: said{committed: 9}, load: 7 * time.Second, want: 7},
		"a count and a rate of 0: the load":      {said: said{ended: 9, throughput: 0, endedRate: 0}, load: 7 * time.Second, want: 7},
		"a rate alone":                           {said: said{throughput: 5}, load: 7 * time.Second, want: 7, remarks: "counts are its rate in 7s, the time of the load"},
		"a rate alone, and the load is not said": {said: said{throughput: 5}, want: 0, remarks: "in a trial, counts are its rate in the time of the load"},
	} {
		d := determination{said: map[string]quantity{}, failed: tc.failed, load: tc.load}
		for name, value := range tc.said {
			d.said[name] = quantity{value: value}
		}
		got, remarks := d.seconds(), strings.Join(d.remarks, "; ")
		if got != tc.want || (remarks == "") != (tc.remarks == "") || !strings.Contains(remarks, tc.remarks) {
			t.Errorf("%s: %g s, remarks %q; want %g and %q", name, got, remarks, tc.want, tc.remarks)
		}
	}
}

// TestWhyANumberIsMissing: the error says all that may be the reason.
func TestWhyANumberIsMissing(t *testing.T) {
	pattern := []results.SummaryNumber{{Name: results.NumberThroughput, Pattern: "^rate (?P<value>.+)$"}}
	path := []results.SummaryNumber{{Name: results.NumberThroughput, Path: "$.rate"}}
	long := strings.Repeat("x", maxLine) + "\n"
	const noLine = "no line of the client's output matches the pattern of Throughput, ^rate (?P<value>.+)$"
	const cut = `; its last line, "rate 1", has no newline and was dropped, since the client did not end by itself with exit code 0`
	for name, tc := range map[string]struct {
		numbers    []results.SummaryNumber
		text, want string
		whole      bool
	}{
		"no line":             {pattern, "a\n", noLine, false},
		"no document":         {path, "{\"b\": 1}\n", "no JSON document of the client's output has the path of Throughput, $.rate", false},
		"a cut line":          {pattern, "a\nrate 1", noLine + cut, false},
		"a whole one":         {pattern, "a\nrate 1", "", true},
		"a long line":         {pattern, long, noLine + fmt.Sprintf("; 1 lines are longer than %d bytes and were skipped", maxLine), true},
		"two long lines":      {pattern, long + long, noLine + fmt.Sprintf("; 2 lines are longer than %d bytes and were skipped", maxLine), true},
		"a long one, and all": {pattern, long + "rate 1\n", "", true},
	} {
		_, err := Parse(FormatSummary, strings.NewReader(tc.text), Options{Clients: 1, Whole: tc.whole, Summary: tc.numbers, Windows: timeline.Windows{Measure: time.Second}})
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestDocumentsAmongLines: which parts of a text are JSON documents, and which lines are not.
func TestDocumentsAmongLines(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    []string // line and content
		skipped []string
		err     string
	}{
		"one that fills it":                 {text: "{\n\"a\": 1\n}\n", want: []string{"1 map[a:1]"}},
		"without a newline":                 {text: "{\"a\": 1}", want: []string{"1 map[a:1]"}},
		"one in each line":                  {text: "{\"a\": 1}\n[2]\n", want: []string{"1 map[a:1]", "2 [2]"}},
		"after other output":                {text: "ready\n\n{\"a\": 1}\n", want: []string{"3 map[a:1]"}, skipped: []string{"ready", ""}},
		"an array whose bracket is alone":   {text: "[\n1,\n2\n]\n", want: []string{"1 [1 2]"}},
		"an array that begins with a text":  {text: "[\"a\",\n\"b\"]\n", want: []string{"1 [a b]"}},
		"an array that begins with a blank": {text: "[ true,\n1]\n", want: []string{"1 [true 1]"}},
		"a log line with an open bracket":   {text: "[x\n{\"a\": 1}\n", want: []string{"2 map[a:1]"}, skipped: []string{"[x"}},
		"a longer one":                      {text: "[main {\n1\n{\"a\": 1}\n", want: []string{"3 map[a:1]"}, skipped: []string{"[main {", "1"}},
		"a log line with a closed bracket":  {text: "[main] INFO\n[2]\n", want: []string{"2 [2]"}, skipped: []string{"[main] INFO"}},
		"brackets within a text":            {text: "{\"a\": \"}\\\"{\",\n\"b\": 2}\n", want: []string{"1 map[a:}\"{ b:2]"}},
		"a mark of the order of bytes":      {text: "\xef\xbb\xbf {\"a\": 1}\n", want: []string{"1 map[a:1]"}},
		"an object that is damaged":         {text: "x\n{\"a\": 1,\n}\n", skipped: []string{"x"}, err: "the client's output:2: the JSON document that begins here"},
		"an object that is cut off":         {text: "{\"a\": 1,\n\"b\"", err: "the client's output:1: the JSON document that begins here"},
		"braces in a line of another kind":  {text: "{x}\n{\"a\": 1}\n", want: []string{"2 map[a:1]"}, skipped: []string{"{x}"}},
	} {
		var got, skipped []string
		docs := jsonDocuments{in: bufio.NewReaderSize(strings.NewReader(tc.text), maxLine), skipped: func(line []byte) { skipped = append(skipped, strings.TrimRight(string(line), "\n")) }}
		var err error
		for {
			var document any
			var line int
			if document, line, err = docs.next(); err != nil {
				break
			}
			got = append(got, fmt.Sprint(line, " ", document))
		}
		if diff := cmp.Diff([][]string{tc.want, tc.skipped}, [][]string{got, skipped}); diff != "" {
			t.Errorf("%s: documents and other lines (-want +got)\n%s", name, diff)
		}
		if tc.err == "" && !errors.Is(err, io.EOF) || tc.err != "" && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q", name, err, tc.err)
		}
	}
}

// TestLongLinesOfDocuments: a line may be longer than the buffer, up to the bound of a document.
func TestLongLinesOfDocuments(t *testing.T) {
	for _, tc := range []struct {
		size int // of the line, its newline included
		err  string
	}{{maxLine, ""}, {maxLine + 1, ""}, {3*maxLine + 5, ""}, {maxJSONDocument, ""}, {maxJSONDocument + 1, "the client's output:2: the document is larger than"}} {
		text := "x\n[\"" + strings.Repeat("y", tc.size-5) + "\"]\nend\n"
		docs := jsonDocuments{in: bufio.NewReaderSize(strings.NewReader(text), maxLine), skipped: func([]byte) {}}
		document, line, err := docs.next()
		if tc.err != "" || err != nil {
			if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%d bytes: %v, want %q", tc.size, err, tc.err)
			}
			continue
		}
		if all, ok := document.([]any); !ok || line != 2 || len(all) != 1 || len(all[0].(string)) != tc.size-5 {
			t.Errorf("%d bytes: a document of line %d that is not the one written", tc.size, line)
		}
		if next, err := docs.readLine(); err != nil || string(next) != "end\n" || docs.line != 3 {
			t.Errorf("%d bytes: the next line is %d, %q, %v; want 3, end", tc.size, docs.line, next, err)
		}
	}
}

// TestInstantsOfReckon: seconds of Unix time, above 0 and up to 2116.
func TestInstantsOfReckon(t *testing.T) {
	for _, tc := range []struct {
		seconds float64
		want    time.Duration
		ok      bool
	}{
		{0, 0, false}, {-1, 0, false}, {math.NaN(), 0, false}, {math.Inf(1), 0, false},
		{0.5, 500 * time.Millisecond, true}, {1, time.Second, true}, {1e-9, 1, true}, {1.25, 1250 * time.Millisecond, true},
		{4611686018, 4611686018 * time.Second, true}, {4611686019, 0, false},
	} {
		if got, err := reckonInstant(tc.seconds); got != tc.want || (err == nil) != tc.ok {
			t.Errorf("%g s: %v, %v; want %v", tc.seconds, got, err, tc.want)
		}
	}
}

// TestLinesOfYCSB: what a line that begins with a bracket must be.
func TestLinesOfYCSB(t *testing.T) {
	const whole = "[OVERALL], Throughput(ops/sec), 1\n"
	for line, want := range map[string]string{
		"[READ], AverageLatency(us)":    `file:2: "[READ], AverageLatency(us)" is not "[SECTION], metric, number"`,
		"[], Operations, 1":             `file:2: "[], Operations, 1" is not "[SECTION], metric, number"`,
		"[READ], , 1":                   `file:2: "[READ], , 1" is not "[SECTION], metric, number"`,
		"[READ]":                        `file:2: "[READ]" is not "[SECTION], metric, number"`,
		"[READ], Operations, ":          `file:2: "[READ], Operations, "`,
		"[READ], Operations, 1":         "",
		"[READ":                         "",
		"READ], Operations, 1":          "",
		"[READ], 17, 3":                 "",
		"[READ], >17, 3":                "",
		"[READ], >, 3":                  "",
		"[OVERALL], Throughput(ops), 1": `file:2: [OVERALL] has Throughput twice; the file holds more than one report`,
	} {
		_, err := ReadTable(FormatYCSB, "file", strings.NewReader(whole+line+"\n"), Spec{})
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// TestTimesOfDay: a time of day is of the day with which it is nearest to t = 0; of two as near,
// it is the day of t = 0.
func TestTimesOfDay(t *testing.T) {
	day := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	east := time.FixedZone("east", 2*3600)
	for _, tc := range []struct {
		zero   time.Duration // since midnight
		layout string
		text   string
		zone   *time.Location
		want   time.Duration
		ok     bool
	}{
		{12 * time.Hour, time.TimeOnly, "12:00:01", time.UTC, time.Second, true},
		{24*time.Hour - time.Second, time.TimeOnly, "00:00:01", time.UTC, 2 * time.Second, true},
		{time.Second, time.TimeOnly, "23:59:59", time.UTC, -2 * time.Second, true},
		{time.Hour, time.TimeOnly, "13:00:00", time.UTC, 12 * time.Hour, true},
		{time.Hour, time.TimeOnly, "13:00:01", time.UTC, -12*time.Hour + time.Second, true},
		{13 * time.Hour, time.TimeOnly, "01:00:00", time.UTC, -12 * time.Hour, true},
		{13 * time.Hour, time.TimeOnly, "00:59:59", time.UTC, 12*time.Hour - time.Second, true},
		{12 * time.Hour, time.TimeOnly, "14:00:01", east, time.Second, true},
		{23 * time.Hour, time.TimeOnly, "01:00:01", east, time.Second, true}, // there it is the next day
		{12 * time.Hour, "15:04:05.000", "12:00:00.250", time.UTC, 250 * time.Millisecond, true},
		{12 * time.Hour, time.DateTime, "2026-11-27 12:00:01", time.UTC, time.Second, true},
		{12 * time.Hour, time.DateTime, "2026-11-28 12:00:01", time.UTC, 24*time.Hour + time.Second, true},
		{12 * time.Hour, time.DateTime, "9999-01-01 00:00:00", time.UTC, mostNanos, true},
		{12 * time.Hour, time.DateTime, "1000-01-01 00:00:00", time.UTC, -mostNanos, true},
		{12 * time.Hour, time.TimeOnly, "noon", time.UTC, 0, false},
	} {
		o := Options{ZeroUnixNanos: day.Add(tc.zero).UnixNano()}
		p := &recordParser{lineParser: newLineParser(o), layout: tc.layout, location: tc.zone}
		if got, err := p.date(tc.text); got != tc.want || (err == nil) != tc.ok {
			t.Errorf("%v after midnight, %s: %v, %v; want %v", tc.zero, tc.text, got, err, tc.want)
		}
	}
}

// TestNanos: numbers of a unit in nanoseconds, up to 146 years.
func TestNanos(t *testing.T) {
	for _, tc := range []struct {
		text string
		unit time.Duration
		want int64
		ok   bool
	}{
		{"0", time.Second, 0, true}, {"7", time.Nanosecond, 7, true}, {"7", time.Millisecond, 7_000_000, true}, {"1.5", time.Second, 1_500_000_000, true},
		{"0.4", time.Nanosecond, 0, true}, {"0.5", time.Nanosecond, 1, true}, {"1e3", time.Microsecond, 1_000_000, true}, {"-1", time.Second, 0, false}, {"x", time.Second, 0, false},
		{"4611686018427387903", time.Nanosecond, mostNanos, true}, {"4611686018427387904", time.Nanosecond, 0, false},
		{"4611686018", time.Second, 4611686018e9, true}, {"4611686019", time.Second, 0, false}, {"4611686019.5", time.Second, 0, false},
	} {
		if got, err := nanos(tc.text, tc.unit); got != tc.want || (err == nil) != tc.ok {
			t.Errorf("%s of %v: %d, %v; want %d", tc.text, tc.unit, got, err, tc.want)
		}
	}
}

// TestEndingsOfOperations: what an operation's text counts as, and which texts are counted by name.
func TestEndingsOfOperations(t *testing.T) {
	outcome := func(others string) *results.RecordOutcome {
		return &results.RecordOutcome{From: "how", Committed: []string{"ok"}, Aborted: []string{"conflict"}, Errors: []string{"error"}, Timeouts: []string{"late"}, Others: others}
	}
	for _, tc := range []struct {
		o       *results.RecordOutcome
		how     string
		inPlace bool
		want    ending
		named   bool
	}{
		{nil, "x", false, committed, false},
		{outcome(""), "ok", false, committed, false}, {outcome(""), "conflict", false, aborted, false}, {outcome(""), "error", false, failed, false}, {outcome(""), "late", false, timedOut, false},
		{outcome(""), "17", false, failed, true}, {outcome(""), "17", true, committed, false}, {outcome(""), "0", true, committed, false}, {outcome(""), "-1", true, failed, true}, {outcome(""), "x", true, failed, true},
		{outcome(results.OthersCommitted), "x", false, committed, true}, {outcome(results.OthersAborted), "x", false, aborted, true},
		{outcome(results.OthersTimeouts), "x", false, timedOut, true}, {outcome(results.OthersSkipped), "x", false, skipped, true}, {outcome(""), "x", false, failed, true},
	} {
		p := &recordParser{records: results.Records{Outcome: tc.o}, unlisted: map[string]int64{}}
		if got := p.ending(tc.how, tc.inPlace); got != tc.want || (p.unlisted[tc.how] == 1) != tc.named {
			t.Errorf("%q in %+v: %d, by name %v; want %d, %v", tc.how, tc.o, got, p.unlisted, tc.want, tc.named)
		}
	}
	p := &recordParser{records: results.Records{Outcome: outcome("")}, unlisted: map[string]int64{}}
	for i := range 20 {
		p.ending(fmt.Sprintf("%02d%s", i, strings.Repeat("x", 100)), false)
		p.ending("00"+strings.Repeat("x", 100), false)
	}
	// Sixteen names of 64 bytes, and the other four together.
	if first := "00" + strings.Repeat("x", 62); len(p.unlisted) != 17 || p.unlisted["..."] != 4 || p.unlisted[first] != 21 {
		t.Errorf("%d names, %d others, %d of the first; want 17, 4 and 21: %v", len(p.unlisted), p.unlisted["..."], p.unlisted[first], p.unlisted)
	}
}

// TestScriptResultsAreRead: what ran on machines, with instants relative to t = 0.
func TestScriptResultsAreRead(t *testing.T) {
	const zero = 1_800_000_000_000_000_000
	two := 2
	text := fmt.Sprintf(`{"table": "a,b\n", "missing": "none", "files": [{}], "events": [
		{"kind": "session", "machine": "m", "pod": "p", "from": "f", "what": "w", "command": "c", "message": "x", "beginUnixNanos": %d, "endUnixNanos": %d, "closedUnixNanos": %d, "exitCode": 2, "count": 3},
		{"kind": "open", "beginUnixNanos": %d}]}`, int64(zero-500_000_000), int64(zero+1_500_000), int64(zero+2_000_000), int64(zero))
	c, err := Parse(FormatRows, strings.NewReader(text), Options{Index: 4, FirstClient: 5, Clients: 6, ZeroUnixNanos: zero, Windows: timeline.Windows{Measure: 3 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	end, closed := 1.5, 2.0
	want := []results.Session{
		{Kind: "session", Machine: "m", Pod: "p", From: "f", What: "w", Command: "c", Message: "x", BeginMillis: -500, EndMillis: &end, ClosedMillis: &closed, ExitCode: &two, Count: 3},
		{Kind: "open"},
	}
	if diff := cmp.Diff(want, c.Table.Sessions); diff != "" {
		t.Errorf("sessions (-want +got)\n%s", diff)
	}
	if c.Table.Text != "a,b\n" || c.Table.Missing != "none" || len(c.Table.Files) != 1 || !c.NothingSent || c.MeasureNanos != 3e9 || c.Index != 4 || c.FirstClient != 5 || c.Clients != 6 {
		t.Errorf("%+v with the table %+v", c, c.Table)
	}
	unreported := []string{
		results.CounterAborted, results.CounterErrors, results.CounterGivenUp, results.CounterLateSends, results.CounterOffered,
		results.CounterRetries, results.CounterTimeouts, results.CounterUnsent,
	}
	if diff := cmp.Diff(unreported, c.Unreported); diff != "" { // in the order of the alphabet
		t.Errorf("not reported (-want +got)\n%s", diff)
	}
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"no JSON":      {"x", false},
		"no UTF-8":     {"{\"table\": \"\xff\"}", false},
		"the greatest": {`{"table": "` + strings.Repeat("x", maxRowsReport-13) + `"}`, true},
		"too large":    {`{"table": "` + strings.Repeat("x", maxRowsReport-12) + `"}`, false},
	} {
		if _, err := Parse(FormatRows, strings.NewReader(tc.text), Options{}); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNumbersTogether: what the numbers of several lines come to.
func TestNumbersTogether(t *testing.T) {
	type found struct {
		value, step float64
		each        string
	}
	for name, tc := range map[string]struct {
		of          string
		all         []found
		value, step float64
		err         string
	}{
		"the same twice":          {"", []found{{5, 1, ""}, {5, 1, ""}}, 5, 1, ""},
		"another":                 {"", []found{{5, 1, ""}, {6, 1, ""}}, 0, 0, "it is 6 here, and was 5 at 1"},
		"a sum":                   {results.OfSum, []found{{5, 1, ""}, {6, 2, ""}, {7, 1, ""}}, 18, 4, ""},
		"a mean":                  {results.OfMean, []found{{5, 1, ""}, {6, 2, ""}, {7, 3, ""}, {8, 2, ""}}, 6.5, 2, ""},
		"the last":                {results.OfLast, []found{{5, 1, ""}, {6, 2, ""}, {4, 3, ""}}, 4, 3, ""},
		"the last of each":        {results.OfLastOfEach, []found{{5, 1, "a"}, {6, 2, "b"}, {7, 4, "a"}, {1, 3, "b"}, {10, 1, "c"}}, 18, 8, ""},
		"as large as may be":      {results.OfSum, []found{{1 << 52, 1, ""}, {1 << 52, 1, ""}}, 1 << 53, 2, ""},
		"larger":                  {results.OfSum, []found{{1 << 52, 1, ""}, {1<<52 + 2, 1, ""}}, 0, 0, "is too large"},
		"larger, and negative":    {results.OfSum, []found{{-1 << 52, 1, ""}, {-1<<52 - 2, 1, ""}}, 0, 0, "is too large"},
		"one of a mean of one is": {results.OfMean, []found{{5, 1, ""}}, 5, 1, ""},
	} {
		n := numberReader{SummaryNumber: results.SummaryNumber{Name: "gc", Of: tc.of}}
		var err error
		for i, f := range tc.all {
			if err = n.take(quantity{f.value, f.step}, f.each, i+1); err != nil {
				break
			}
		}
		if tc.err != "" || err != nil {
			if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %q", name, err, tc.err)
			}
			continue
		}
		if q := n.number(); q.value != tc.value || q.step != tc.step {
			t.Errorf("%s: %g, known to %g; want %g, %g", name, q.value, q.step, tc.value, tc.step)
		}
	}
	each := numberReader{SummaryNumber: results.SummaryNumber{Of: results.OfLastOfEach}}
	for i := range mostEach {
		if err := each.take(quantity{1, 1}, fmt.Sprint(i), i); err != nil {
			t.Fatal(err)
		}
	}
	if err := each.take(quantity{2, 1}, "0", 1); err != nil || each.value != mostEach+1 {
		t.Errorf("a known one of %d: %g, %v", mostEach, each.value, err)
	}
	if err := each.take(quantity{1, 1}, "another", 1); err == nil {
		t.Errorf("%d kinds of lines are read", mostEach+1)
	}
}

// TestOneOfMany: a number is said to be one of several where it is the last of them, unless it is a
// count that only rose.
func TestOneOfMany(t *testing.T) {
	for _, tc := range []struct {
		name, of, path string
		values         []float64
		want           string
	}{
		{results.NumberCommitted, results.OfLast, "", []float64{1, 2, 3}, ""},
		{results.NumberCommitted, results.OfLast, "", []float64{1, 1}, ""},
		{results.NumberCommitted, results.OfLast, "", []float64{1, 3, 2, 4}, "Committed is that of the last of 4 lines that match its pattern (of: Last)"},
		{results.NumberThroughput, results.OfLast, "", []float64{1, 2}, "Throughput is that of the last of 2 lines that match its pattern (of: Last)"},
		{results.NumberThroughput, results.OfLast, "$.x", []float64{1, 2}, "Throughput is that of the last of 2 values at its path (of: Last)"},
		{results.NumberEndedRate, results.OfLast, "", []float64{1, 2}, results.NumberEndedRate + " is that of the last of 2 lines that match its pattern (of: Last)"},
		{results.NumberP99, results.OfLast, "", []float64{1, 2}, "P99Latency is that of the last of 2 lines that match its pattern (of: Last)"},
		{results.NumberThroughput, results.OfLast, "", []float64{1}, ""},
		{results.NumberThroughput, results.OfSum, "", []float64{1, 2}, ""},
	} {
		n := numberReader{SummaryNumber: results.SummaryNumber{Name: tc.name, Of: tc.of, Path: tc.path}}
		for i, v := range tc.values {
			if err := n.take(quantity{v, 1}, "", i+1); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.oneOfMany(); got != tc.want {
			t.Errorf("%s of %v: %q, want %q", tc.name, tc.values, got, tc.want)
		}
	}
}

// TestTransactionsOfAPequinClient: three transactions of two kinds, all their lines counted.
func TestTransactionsOfAPequinClient(t *testing.T) {
	got := table(t, FormatPequinClient, "get,1000000,5000000,0\nhello\nput,2000000,6000000,0\nput,4000000,7000000,1\nput,1", Spec{})
	if diff := cmp.Diff(map[string]int{"other lines": 1, "cut lines": 1}, got.Skipped); diff != "" || len(got.Warnings) != 1 {
		t.Errorf("skipped (-want +got)\n%s; warnings %q, want one", diff, got.Warnings)
	}
	type row = map[string]float64
	want := map[string]row{ // ms; the rank of a percentile is rounded up
		"combined": {"ops": 3, "mean": 7. / 3, "p50": 2, "p90": 4, "p99": 4, "max": 4},
		"get":      {"ops": 1, "mean": 1, "p50": 1, "p90": 1, "p99": 1, "max": 1},
		"put":      {"ops": 2, "mean": 3, "p50": 2, "p90": 4, "p99": 4, "max": 4},
	}
	for _, r := range got.Rows {
		of := want[r.Labels["operation"]]
		delete(want, r.Labels["operation"])
		for name, number := range of {
			unit := "ms"
			if name == "ops" {
				unit = ""
			}
			if v, ok := r.Get(name); !ok || v.Unit != unit || math.Abs(v.Number-number) > 0.001*number {
				t.Errorf("%v: %s is %v %q, want %v %q", r.Labels, name, v.Number, v.Unit, number, unit)
			}
		}
	}
	if len(want) > 0 || len(got.Rows) != 3 {
		t.Errorf("%d rows, without %v", len(got.Rows), want)
	}
	if none := table(t, FormatPequinClient, "hello\n", Spec{}); len(none.Rows) != 0 || none.Skipped["other lines"] != 1 || none.Skipped["cut lines"] != 0 || len(none.Warnings) != 0 {
		t.Errorf("of no transaction: %+v", none)
	}
}

// Rows and values have bounds of their own.
func TestTablesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		rows, values int // before one row with one value
		want         bool
	}{
		"the last row and value": {maxRows - 1, maxValues - 1, true},
		"a row too many":         {maxRows, 0, false},
		"a value too many":       {0, maxValues, false},
	} {
		table := newTable()
		table.Rows, table.values = make([]Row, tc.rows), tc.values
		if err := table.add(Row{Values: make([]Value, 1)}); (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
