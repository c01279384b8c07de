package parsers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// maxLine is the longest line that is read as a whole; a longer one cannot be a transaction.
const maxLine = 64 << 10

// Driver counters that a report of transaction lines gets; those that are 0 are left out.
const (
	// counterEnds counts "#end" lines: clients that came to their end by themselves.
	counterEnds = "endLines"
	// counterOther counts lines that are not about transactions.
	counterOther = "otherLines"
	// counterCut is 1 when the last line is cut off, as it is when the client was killed while it
	// printed.
	counterCut = "cutLines"
	// counterSilent is 1 when no line is about an operation. Merged, it is the number of pods whose
	// clients may not have run at all.
	counterSilent = "silentPods"
	// counterBurst counts operations whose line came in a burst, more than burstError after the
	// output before it.
	counterBurst = "burstLines"
	// counterLong counts lines that were skipped since they are longer than maxLine.
	counterLong = "longLines"
	// counterUnlisted, with an outcome's text behind it, counts operations whose outcome no list
	// has.
	counterUnlisted = "unlistedOutcome:"
)

// parseTransactionLines reads one line for each committed transaction,
//
//	rw,3703921,7548133599816,0
//
// its name, its latency in ns from the first attempt to the commit, the CLOCK_MONOTONIC ns of the
// commit, and the client's id. Empty lines and lines that start with # are skipped ("#end,..." ones
// counted). A line without a digit after its first comma is other output of the program: skipped
// and counted. Any other line must be a whole transaction; else the report is damaged (lines of two
// threads mixed, a disk full), numbers are missing, and the report is refused. The one exception is
// a last line without its newline, which a killed client leaves. It is counted and dropped even
// when it looks whole, since its numbers may be cut.
//
// Aborts, errors and timeouts are not in these lines: their counters are unreported. Offered counts
// the committed transactions that were issued in the window. StartedNanos is the issue of the
// earliest transaction in the report; without one, NothingSent.
func parseTransactionLines(r io.Reader, o Options) (results.Client, error) {
	p := newLineParser(o)
	in := bufio.NewReaderSize(r, maxLine)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return results.Client{}, fmt.Errorf("line %d is longer than %d bytes; it is no transaction", number, maxLine)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return results.Client{}, fmt.Errorf("read line %d of the client's output: %w", number, err)
		}
		if err != nil {
			if len(line) > 0 {
				p.driver[counterCut]++
			}
			return p.finish()
		}
		if err := p.line(bytes.TrimRight(line, "\r\n")); err != nil {
			return results.Client{}, fmt.Errorf("line %d of the client's output, %q: %w", number, short(line), err)
		}
	}
}

func short(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n")
	return line[:min(len(line), 120)]
}

type lineParser struct {
	zero    int64
	measure time.Duration
	seen    bool
	first   time.Duration // issue of the earliest operation, however it ended
	rec     *results.Recorder
	driver  map[string]int64
	opts    Options
}

func newLineParser(o Options) *lineParser {
	return &lineParser{zero: o.ZeroMonotonicNanos, measure: o.Windows.Measure, opts: o,
		rec: results.NewRecorder(o.Windows), driver: map[string]int64{}}
}

func (p *lineParser) line(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if b[0] == '#' {
		if bytes.HasPrefix(b, []byte("#end")) {
			p.driver[counterEnds]++
		}
		return nil
	}
	t, isTransaction, err := parseTransaction(b)
	switch {
	case err != nil:
		return err
	case !isTransaction:
		p.driver[counterOther]++
		return nil
	}
	p.transaction(time.Duration(t.latency), time.Duration(t.end-p.zero))
	return nil
}

// transaction is one line about a transaction; times in ns.
type transaction struct {
	name                 []byte
	latency, end, client int64
}

// parseTransaction reads one line. It reports false for a line that has no digit after its first
// comma: other output of the program.
func parseTransaction(b []byte) (t transaction, isTransaction bool, err error) {
	name, rest, found := bytes.Cut(b, []byte(","))
	if !found || len(rest) == 0 || rest[0] < '0' || rest[0] > '9' {
		return t, false, nil
	}
	var numbers [3]int64
	for i := range numbers {
		field := rest
		if i < 2 {
			var ok bool
			if field, rest, ok = bytes.Cut(rest, []byte(",")); !ok {
				return t, false, errors.New("a transaction has four fields")
			}
		}
		n, err := strconv.ParseUint(string(field), 10, 63) // the conversion does not allocate
		if err != nil {
			return t, false, fmt.Errorf("field %d is %q, not a number of 0 or more", i+2, field)
		}
		numbers[i] = int64(n)
	}
	if numbers[0] > numbers[1] {
		return t, false, errors.New("the transaction began before the clock; latency and instant may be swapped")
	}
	return transaction{name: name, latency: numbers[0], end: numbers[1], client: numbers[2]}, true, nil
}

// operation notes when an operation was issued and when it ended.
func (p *lineParser) operation(issue, end time.Duration) {
	if s := p.opts.Seen; s != nil {
		if s.Operations == 0 || issue < s.First {
			s.First = issue
		}
		if s.Operations == 0 || end > s.Last {
			s.Last = end
		}
		s.Operations++
	}
	if !p.seen || issue < p.first {
		p.seen, p.first = true, issue
	}
}

func (p *lineParser) transaction(latency, end time.Duration) {
	p.operation(end-latency, end)
	p.commit(latency, end)
}

// commit adds a transaction, after operation was called for it.
func (p *lineParser) commit(latency, end time.Duration) {
	issue := end - latency
	if issue >= 0 && issue < p.measure {
		p.rec.Counters.Offered++
	}
	p.rec.Commit(end, latency)
}

// unreported are the counters that the lines do not report.
func (p *lineParser) unreported() []string {
	never := []string{
		results.CounterGivenUp, results.CounterRetries, results.CounterLateSends, results.CounterUnsent,
	}
	var outcome *results.RecordOutcome
	if p.opts.Records != nil {
		outcome = p.opts.Records.Outcome
	}
	for _, name := range []string{results.CounterAborted, results.CounterErrors, results.CounterTimeouts} {
		if !outcome.Reads(name) {
			never = append(never, name)
		}
	}
	slices.Sort(never)
	return never
}

func (p *lineParser) finish() (results.Client, error) {
	c := results.Client{
		Index: p.opts.Index, FirstClient: p.opts.FirstClient, Clients: p.opts.Clients,
		NothingSent: !p.seen, MeasureNanos: int64(p.measure),
		Driver: p.driver, Unreported: p.unreported(),
	}
	if p.seen {
		c.StartedNanos = int64(p.first + p.opts.Windows.WarmUp)
	} else {
		p.driver[counterSilent]++
	}
	if err := p.rec.Fill(&c); err != nil {
		return results.Client{}, err
	}
	return c, nil
}
