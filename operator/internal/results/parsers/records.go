package parsers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// parsePatternRecords reads a report in which each line that matches a pattern is an operation.
// Other lines are skipped and counted (otherLines). A pattern cannot tell an operation's damaged
// line from other output. So users compare the count with the client's other output.
func parsePatternRecords(r io.Reader, o Options) (results.Client, error) {
	if o.Records == nil {
		return results.Client{}, errors.New("the format RegularExpression needs records")
	}
	pattern, err := o.Records.CompilePattern()
	if err != nil {
		return results.Client{}, fmt.Errorf("the pattern %w", err)
	}
	m := newLineMatcher(pattern, o.Records.Fields())
	return readRecords(r, o, anyLine, func(line []byte) ([]string, error) {
		texts, _ := m.match(line)
		return texts, nil
	})
}

// parseCSVRecords reads a report with a header and a record for each operation under it. A field in
// quotation marks may have newlines (RFC 4180). Every record must be whole.
func parseCSVRecords(r io.Reader, o Options) (results.Client, error) {
	if o.Records == nil {
		return results.Client{}, errors.New("the format CSV needs records")
	}
	comma := ','
	if o.Records.Separator != "" {
		comma = rune(o.Records.Separator[0])
	}
	var spec Spec
	for _, name := range o.Records.Fields() {
		spec.Fields = append(spec.Fields, Field{From: name})
	}
	var columns []int
	names := 0
	var record []string // plain records are split into the same memory again and again
	texts := make([]string, len(spec.Fields))
	return readRecords(r, o, wholeRecords, func(line []byte) (_ []string, err error) {
		text := string(line)
		if strings.IndexByte(text, '"') < 0 {
			record = appendSplit(record[:0], text, byte(comma))
		} else if record, err = csvRecord(text, comma); err != nil {
			return nil, err
		}
		switch {
		case columns == nil:
			columns, err = findColumns(record, spec)
			names = len(record)
			return nil, err
		case len(record) != names:
			return nil, fmt.Errorf("the line has %d columns, the header %d", len(record), names)
		}
		for i, c := range columns {
			texts[i] = strings.TrimSpace(record[c])
		}
		return texts, nil
	})
}

// appendSplit appends the parts of a text between separators.
func appendSplit(to []string, text string, separator byte) []string {
	for {
		at := strings.IndexByte(text, separator)
		if at < 0 {
			return append(to, text)
		}
		to, text = append(to, text[:at]), text[at+1:]
	}
}

// reportForm says what lines a report has.
type reportForm int

const (
	anyLine      reportForm = iota // operations among other output
	wholeRecords                   // operations only; one may be several lines, in quotation marks
)

// readRecords reads a report line by line. split gives the texts of the fields; nil for a line that
// is about no operation.
//
// As with transaction lines, a killed client leaves a last line without its newline. That line is
// dropped and counted, since its numbers may be cut. It is read if the client ended by itself with
// exit code 0.
func readRecords(r io.Reader, o Options, form reportForm, split func(line []byte) ([]string, error)) (results.Client, error) {
	p, err := newRecordParser(o)
	if err != nil {
		return results.Client{}, err
	}
	in := newLines("the client's output", r)
	in.carriageReturns, in.skipLong = form == anyLine, form == anyLine
	for {
		line, err := in.next()
		if errors.Is(err, errCutOff) && o.Whole {
			line, err = in.last, nil
		}
		begin, number := in.begin, in.number
		if err == nil && form == wholeRecords {
			line, err = wholeRecord(in, line)
		}
		switch {
		case errors.Is(err, errCutOff):
			p.driver[counterCut]++
			return p.end(in)
		case errors.Is(err, io.EOF):
			return p.end(in)
		case err != nil:
			return results.Client{}, err
		case len(line) == 0:
			continue
		}
		texts, err := split(line)
		if err == nil && texts != nil {
			err = p.operation(texts, begin, in.end)
		}
		if err != nil {
			return results.Client{}, fmt.Errorf("%s:%d: %q: %w", in.file, number, short(line), err)
		}
		if texts == nil && form == anyLine {
			p.others++
			if o.Other != nil {
				o.Other(line)
			}
		}
	}
}

// wholeRecord joins the lines of a record, as long as a quotation mark is open: a quoted one is
// two.
func wholeRecord(in *lines, line []byte) ([]byte, error) {
	if bytes.Count(line, []byte{'"'})%2 == 0 {
		return line, nil
	}
	line = bytes.Clone(line) // the next line takes its place
	for number := in.number; bytes.Count(line, []byte{'"'})%2 == 1; {
		next, err := in.next()
		switch {
		case errors.Is(err, errCutOff):
			return nil, err
		case errors.Is(err, io.EOF), err == nil && len(line)+len(next) > maxLine:
			return nil, fmt.Errorf("%s:%d: %q: a quotation mark is not closed in this record, or the record is longer than %d bytes", in.file, number, short(line), maxLine)
		case err != nil:
			return nil, err
		}
		line = append(append(line, '\n'), next...)
	}
	return line, nil
}

type recordParser struct {
	*lineParser
	records  results.Records
	arrivals *arrivals // nil: lines have their own instants
	layout   string
	location *time.Location
	// Units of the latency, the instant and its fraction.
	latencyUnit, instantUnit, fractionUnit time.Duration
	// others counts the lines that the pattern does not match.
	others int64
	// Where the fields are in the texts of a line; -1: there is none.
	latency, since, instant, fraction, outcome, kind, node int
	unlisted                                               map[string]int64
	// kinds of operations that committed in the window.
	kinds kinds
	// nodes that answered these.
	nodes results.Kinds
}

func newRecordParser(o Options) (*recordParser, error) {
	if err := o.Records.Check(); err != nil {
		return nil, err
	}
	p := &recordParser{lineParser: newLineParser(o), records: *o.Records, unlisted: map[string]int64{}}
	if o.Records.ByArrival() {
		if o.Arrivals == nil {
			return nil, errors.New("nothing says when the lines arrived")
		}
		p.arrivals = newArrivals(o.Arrivals, o.ZeroMonotonicNanos-int64(o.Windows.WarmUp))
	}
	if p.layout = o.Records.Instant.Layout; p.layout == results.LayoutRFC3339 {
		p.layout = time.RFC3339
	}
	var err error
	if p.location, err = o.Records.Instant.Location(); err != nil {
		return nil, err
	}
	fields := o.Records.Fields()
	at := func(name string) int {
		if name == "" {
			return -1
		}
		return slices.Index(fields, name)
	}
	p.latency, p.since = at(o.Records.Latency.From), at(o.Records.Latency.Since)
	p.kind, p.node = at(o.Records.Operation), at(o.Records.Node)
	p.instant, p.fraction, p.outcome = at(o.Records.Instant.From), -1, -1
	p.latencyUnit, p.instantUnit = results.RecordUnits[o.Records.Latency.Unit], results.RecordUnits[o.Records.Instant.Unit]
	if f := o.Records.Instant.Fraction; f != nil {
		p.fraction, p.fractionUnit = at(f.From), results.RecordUnits[f.Unit]
	}
	if o.Records.Outcome != nil {
		p.outcome = at(o.Records.Outcome.From)
	}
	return p, nil
}

// end finishes the report, unless its lines came in bursts.
func (p *recordParser) end(in *lines) (results.Client, error) {
	if p.arrivals != nil {
		late, err := p.arrivals.bursts()
		if err != nil {
			return results.Client{}, err
		}
		if late > 0 {
			p.driver[counterBurst] = late
		}
	}
	if p.others > 0 {
		p.driver[counterOther] = p.others
	}
	if in.long > 0 {
		p.driver[counterLong] = int64(in.long)
	}
	for text, n := range p.unlisted {
		p.driver[counterUnlisted+text] = n
	}
	c, err := p.finish()
	if err != nil {
		return results.Client{}, err
	}
	if c.Nodes, err = p.nodes.Operations(); err == nil {
		err = p.kinds.fill(&c)
	}
	return c, err
}

// ended is the instant of a line, relative to t = 0: when its operation ended, or began.
func (p *recordParser) ended(texts []string, begin, end int64) (time.Duration, error) {
	if p.arrivals != nil {
		at, err := p.arrivals.of(begin, end)
		return time.Duration(at - p.zero), err
	}
	at, err := p.at(texts[p.instant])
	if err == nil && p.fraction >= 0 {
		var fraction int64
		fraction, err = nanos(texts[p.fraction], p.fractionUnit)
		at += time.Duration(fraction)
	}
	return at, err
}

// at is an instant of a text, relative to t = 0.
func (p *recordParser) at(text string) (time.Duration, error) {
	if p.layout != "" {
		return p.date(text)
	}
	instant, err := nanos(text, p.instantUnit)
	switch p.records.Instant.Clock {
	case results.ClockWall:
		instant -= p.opts.ZeroUnixNanos
	case results.ClockSinceStart:
		instant += p.opts.StartNanos
	default:
		instant -= p.zero
	}
	return time.Duration(instant), err
}

// date is the instant of a date, relative to t = 0. Without a year it is a time of day, of the day
// with which it is nearest to t = 0.
func (p *recordParser) date(text string) (time.Duration, error) {
	at, err := time.ParseInLocation(p.layout, text, p.location)
	if err != nil {
		return 0, fmt.Errorf("%q is no date of the form %s: %w", text[:min(len(text), 120)], p.layout, err)
	}
	zero := time.Unix(0, p.opts.ZeroUnixNanos)
	if at.Year() == 0 {
		year, month, day := zero.In(p.location).Date()
		at = time.Date(year, month, day, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), at.Location())
		switch after := at.Sub(zero); {
		case after > 12*time.Hour:
			at = at.AddDate(0, 0, -1)
		case after < -12*time.Hour:
			at = at.AddDate(0, 0, 1)
		}
	}
	// Sub saturates at 292 years, and what is computed from it must not overflow.
	return max(min(at.Sub(zero), mostNanos), -mostNanos), nil
}

// ending is how an operation ended.
type ending int

const (
	committed ending = iota
	aborted
	failed
	timedOut
	skipped
)

// ending of an operation whose line has the text how. inPlace: it stands where the latency would
// be.
func (p *recordParser) ending(how string, inPlace bool) ending {
	o := p.records.Outcome
	switch {
	case o == nil || slices.Contains(o.Committed, how):
		return committed
	case slices.Contains(o.Aborted, how):
		return aborted
	case slices.Contains(o.Errors, how):
		return failed
	case slices.Contains(o.Timeouts, how):
		return timedOut
	}
	if inPlace {
		if _, err := parseCountable(how); err == nil {
			return committed
		}
	}
	name := how[:min(len(how), 64)]
	if _, known := p.unlisted[name]; !known && len(p.unlisted) >= mostUnlisted {
		name = "..."
	}
	p.unlisted[name]++
	switch o.Others {
	case results.OthersCommitted:
		return committed
	case results.OthersAborted:
		return aborted
	case results.OthersTimeouts:
		return timedOut
	case results.OthersSkipped:
		return skipped
	}
	return failed
}

// mostUnlisted bounds the outcomes that are counted by name.
const mostUnlisted = 16

// operation takes in one line.
func (p *recordParser) operation(texts []string, begin, lineEnd int64) error {
	how := committed
	if p.outcome >= 0 {
		how = p.ending(texts[p.outcome], p.outcome == p.latency)
	}
	end, err := p.ended(texts, begin, lineEnd)
	if err != nil {
		return fmt.Errorf("instant: %w", err)
	}
	if how == skipped {
		return nil
	}
	latency, err := p.took(texts, end, how)
	if err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	if p.records.Instant.Of == results.OfBegin {
		end += latency
	}
	p.lineParser.operation(end-latency, end) // clients that start among conflicts do not commit first
	switch how {
	case committed:
		p.commit(latency, end)
		if p.node >= 0 && p.rec.InWindow(end) {
			p.nodes.Commit(texts[p.node], 1, latency)
		}
		if p.kind >= 0 && p.rec.InWindow(end) {
			return p.kinds.commit(texts[p.kind], p.outcome != -1, 1, latency)
		}
	case aborted:
		p.rec.Abort(end, false)
	case failed, timedOut:
		p.rec.Fail(end, how == timedOut)
	}
	return nil
}

// took is how long an operation took. An operation that did not commit need not say it.
func (p *recordParser) took(texts []string, end time.Duration, how ending) (time.Duration, error) {
	if p.since >= 0 {
		begin, err := p.at(texts[p.since])
		if err == nil && begin > end {
			err = fmt.Errorf("the operation began at %s, after its end, %s", texts[p.since], texts[p.instant])
		}
		return end - begin, err
	}
	if p.latency == p.outcome && how != committed {
		return 0, nil
	}
	latency, err := nanos(texts[p.latency], p.latencyUnit)
	return time.Duration(latency), err
}

// mostNanos is half of what 64 bits hold, so that sums of two stay in them: 146 years, or until
// 2116.
const mostNanos = math.MaxInt64 / 2

// nanos reads a number of 0 or more of a unit, whole ones exactly.
func nanos(text string, unit time.Duration) (int64, error) {
	if whole, err := strconv.ParseUint(text, 10, 63); err == nil {
		if whole > mostNanos/uint64(unit) {
			return 0, fmt.Errorf("%s is too large", text)
		}
		return int64(whole) * int64(unit), nil
	}
	x, err := parseCountable(text)
	if err != nil {
		return 0, err
	}
	if x *= float64(unit); x > mostNanos {
		return 0, fmt.Errorf("%s is too large", text)
	}
	return int64(math.Round(x)), nil
}
