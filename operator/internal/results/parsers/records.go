package parsers

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// parsePatternRecords reads a report in which each line that matches a pattern is an operation.
// Other lines are skipped and counted (otherLines): a pattern cannot tell an operation's line that
// got damaged from other output, so that the count is to be compared with what the client prints
// besides.
func parsePatternRecords(r io.Reader, o Options) (results.Client, error) {
	if o.Records == nil {
		return results.Client{}, errors.New("the format RegularExpression needs records")
	}
	pattern, err := o.Records.CompilePattern()
	if err != nil {
		return results.Client{}, fmt.Errorf("the pattern %w", err)
	}
	fields := o.Records.Fields()
	groups := make([]int, len(fields))
	for i, name := range fields {
		groups[i] = pattern.SubexpIndex(name)
	}
	return readRecords(r, o, func(line string) ([]string, error) { return matchFields(pattern, groups, line), nil })
}

// matchFields are the groups' texts; nil when the line does not match.
func matchFields(pattern *regexp.Regexp, groups []int, line string) []string {
	match := pattern.FindStringSubmatchIndex(line)
	if match == nil {
		return nil
	}
	texts := make([]string, len(groups))
	for i, g := range groups {
		if match[2*g] >= 0 {
			texts[i] = line[match[2*g]:match[2*g+1]]
		}
	}
	return texts
}

// parseCSVRecords reads a report with a header and a line for each operation under it. Every line
// must be whole.
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
	return readRecords(r, o, func(line string) ([]string, error) {
		record, err := csvRecord(line, comma)
		switch {
		case err != nil:
			return nil, err
		case columns == nil:
			columns, err = findColumns(record, spec)
			names = len(record)
			return nil, err
		case len(record) != names:
			return nil, fmt.Errorf("the line has %d columns, the header %d", len(record), names)
		}
		texts := make([]string, len(columns))
		for i, c := range columns {
			texts[i] = strings.TrimSpace(record[c])
		}
		return texts, nil
	})
}

// readRecords reads a report line by line. split gives the texts of latency, instant and outcome;
// nil for a line that is about no operation.
//
// As with transaction lines, a last line without its newline is what a killed client leaves: it is
// dropped and counted, since its numbers may be cut.
func readRecords(r io.Reader, o Options, split func(line string) ([]string, error)) (results.Client, error) {
	if err := o.Records.Check(); err != nil {
		return results.Client{}, err
	}
	p := recordParser{lineParser: newLineParser(o), records: *o.Records}
	if o.Records.ByArrival() {
		if o.Arrivals == nil {
			return results.Client{}, errors.New("nothing says when the lines arrived")
		}
		p.arrivals = newArrivals(o.Arrivals, o.ZeroMonotonicNanos-int64(o.Windows.WarmUp))
	}
	in := newLines("the client's output", r)
	for {
		line, err := in.next()
		switch {
		case errors.Is(err, errCutOff):
			p.driver[counterCut]++
			return p.end()
		case errors.Is(err, io.EOF):
			return p.end()
		case err != nil:
			return results.Client{}, err
		case len(line) == 0:
			continue
		}
		texts, err := split(string(line))
		if err == nil && texts != nil {
			err = p.operation(texts, in)
		}
		if err != nil {
			return results.Client{}, in.errorf("%q: %v", short(line), err)
		}
		if texts == nil && o.Records.Pattern != "" {
			p.driver[counterOther]++
		}
	}
}

type recordParser struct {
	*lineParser
	records  results.Records
	arrivals *arrivals // nil: lines have their own instants
}

// end finishes the report, unless its lines came in bursts.
func (p *recordParser) end() (results.Client, error) {
	if p.arrivals != nil {
		late, err := p.arrivals.bursts()
		if err != nil {
			return results.Client{}, err
		}
		if late > 0 {
			p.driver[counterBurst] = late
		}
	}
	return p.finish()
}

// instant at which the operation of a line began or ended, relative to t = 0.
func (p *recordParser) instant(texts []string, in *lines) (time.Duration, error) {
	if p.arrivals != nil {
		at, err := p.arrivals.of(in.begin, in.end)
		return time.Duration(at - p.zero), err
	}
	instant, err := nanos(texts[1], results.RecordUnits[p.records.Instant.Unit])
	zero := p.zero
	if p.records.Instant.Clock == results.ClockWall {
		zero = p.opts.ZeroUnixNanos
	}
	return time.Duration(instant - zero), err
}

// operation takes in one line.
func (p *recordParser) operation(texts []string, in *lines) error {
	outcome, how := p.records.Outcome, texts[len(texts)-1] // the outcome's, if there is one
	latency, err := nanos(texts[0], results.RecordUnits[p.records.Latency.Unit])
	if err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	end, err := p.instant(texts, in)
	if err != nil {
		return fmt.Errorf("instant: %w", err)
	}
	if p.records.Instant.Of == results.OfBegin {
		end += time.Duration(latency)
	}
	p.began(end - time.Duration(latency)) // clients that start among conflicts do not commit first
	switch {
	case outcome == nil || slices.Contains(outcome.Committed, how):
		p.transaction(time.Duration(latency), end)
	case slices.Contains(outcome.Aborted, how):
		p.rec.Abort(end, false)
	case slices.Contains(outcome.Errors, how):
		p.rec.Fail(end, false)
	case slices.Contains(outcome.Timeouts, how):
		p.rec.Fail(end, true)
	default:
		return fmt.Errorf("the outcome %q is none of those that records.outcome lists", how)
	}
	return nil
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
