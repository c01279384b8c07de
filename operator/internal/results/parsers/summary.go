package parsers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// parseSummary reads the numbers that a client prints of its whole run. A number is in each line
// that a pattern matches, or in each node of its JSON that a path selects. A line may have several
// numbers. A carriage return ends a line, as progress bars have it, and a line that is too long is
// skipped.
//
// A last line without its newline counts if the client ended by itself, with 0. Otherwise a killed
// client has left it: the line is dropped and counted.
//
// A missing number makes the report unreadable. A missing count of failures does not: many programs
// print it only when it is not 0.
func parseSummary(r io.Reader, o Options) (results.Client, error) {
	s, err := readSummary(r, o)
	if err != nil {
		return results.Client{}, err
	}
	c, err := s.client(o)
	if err == nil && s.cut != nil {
		c.Driver = map[string]int64{counterCut: 1}
	}
	return c, err
}

// summaryText is what was read of a summary.
type summaryText struct {
	readers []numberReader
	cut     []byte // the last line, if it was dropped
	long    int    // lines that were too long
	// other, if it is not nil, is called with each line without a number.
	other func(line []byte)
}

// readSummary collects the numbers.
func readSummary(r io.Reader, o Options) (*summaryText, error) {
	if err := results.CheckSummary(o.Summary); err != nil {
		return nil, fmt.Errorf("the summary: %w", err)
	}
	s := &summaryText{readers: make([]numberReader, len(o.Summary)), other: o.Other}
	for i, n := range o.Summary {
		s.readers[i] = numberReader{SummaryNumber: n}
		if err := s.readers[i].compile(); err != nil {
			return nil, err
		}
	}
	if o.Summary[0].Path != "" {
		return s, s.readJSON(r)
	}
	return s, s.readLines(r, o)
}

func (s *summaryText) readLines(r io.Reader, o Options) error {
	in := newLines("the client's output", r)
	in.carriageReturns, in.skipLong = true, true
	for {
		line, err := in.next()
		if errors.Is(err, errCutOff) {
			if !o.Whole {
				s.cut = bytes.Clone(in.last)
				return nil
			}
			line, err = in.last, nil
		}
		if errors.Is(err, io.EOF) {
			s.long = in.long
			return nil
		}
		if err != nil {
			return err
		}
		matched := false
		for i := range s.readers {
			found, err := s.readers[i].read(line, in.number)
			if err != nil {
				return in.errorf("%q: %s: %v", short(line), s.readers[i].Name, err)
			}
			matched = matched || found
		}
		if !matched {
			s.skipped(line)
		}
	}
}

func (s *summaryText) skipped(line []byte) {
	if s.other != nil && len(bytes.TrimSpace(line)) > 0 {
		s.other(line)
	}
}

// numberReader collects one number.
type numberReader struct {
	results.SummaryNumber
	pattern results.SummaryPattern
	// literal must be in each line that matches. A search for it is much faster than the pattern.
	literal []byte
	path    jsonPath

	times  int // that it was there
	line   int // of the last time
	value  float64
	step   float64
	fell   bool                // it was once less than before
	latest map[string]quantity // by the text of the group each
}

func (n *numberReader) compile() (err error) {
	if n.Path != "" {
		if n.path, err = n.CompilePath(); err != nil {
			return fmt.Errorf("the path of %s %w", n.Name, err)
		}
		return nil
	}
	if n.pattern, err = n.Compile(); err != nil {
		return fmt.Errorf("the pattern of %s %w", n.Name, err)
	}
	n.literal = neededText(n.Pattern)
	return nil
}

// read looks for the number in a line, and reports whether it is there.
func (n *numberReader) read(line []byte, number int) (bool, error) {
	if !bytes.Contains(line, n.literal) {
		return false, nil
	}
	match := n.pattern.FindSubmatchIndex(line)
	group := func(i int) string {
		if i < 0 || match[2*i] < 0 {
			return ""
		}
		return string(line[match[2*i]:match[2*i+1]])
	}
	if len(match) == 0 || match[2*n.pattern.Value] < 0 {
		return false, nil
	}
	q, err := parseQuantity(n.SummaryNumber, group(n.pattern.Value), group(n.pattern.Unit))
	if err == nil {
		err = n.take(q, group(n.pattern.Each), number)
	}
	return true, err
}

// mostSummed is the greatest number of a summary: a float64 holds whole ones up to it exactly.
const mostSummed = 1 << 53

// mostEach bounds the kinds of lines of LastOfEach.
const mostEach = 4096

// take adds one number to the earlier ones. The argument line is where the number, or its document,
// is.
func (n *numberReader) take(q quantity, each string, line int) error {
	n.times++
	switch n.Of {
	case results.OfSum, results.OfMean:
		n.value, n.step = n.value+q.value, n.step+q.step
	case results.OfLast:
		n.fell = n.fell || n.times > 1 && q.value < n.value
		n.value, n.step = q.value, q.step
	case results.OfLastOfEach:
		if n.latest == nil {
			n.latest = map[string]quantity{}
		}
		before, known := n.latest[each]
		if !known && len(n.latest) >= mostEach {
			return fmt.Errorf("the group each has more than %d texts", mostEach)
		}
		n.latest[each] = q
		n.value, n.step = n.value+q.value-before.value, n.step+q.step-before.step
	default:
		if n.times > 1 && q.value != n.value {
			return fmt.Errorf("it is %g here, and was %g at %d: say by the pattern which of them it is, or by of: %s, %s, %s or %s what they are together",
				q.value, n.value, n.line, results.OfLast, results.OfSum, results.OfMean, results.OfLastOfEach)
		}
		n.value, n.step = q.value, q.step
	}
	n.line = line
	if math.Abs(n.value) > mostSummed {
		return fmt.Errorf("%g is too large", n.value)
	}
	return nil
}

// oneOfMany warns if the number is the last of several that its pattern or path found. It returns
// nothing for a count that only rises as the run goes on.
func (n *numberReader) oneOfMany() string {
	rises := !strings.HasSuffix(n.Name, "Latency") && n.Name != results.NumberThroughput && n.Name != results.NumberEndedRate
	if n.Of != results.OfLast || n.times < 2 || rises && !n.fell {
		return ""
	}
	found := "lines that match its pattern"
	if n.Path != "" {
		found = "values at its path"
	}
	return fmt.Sprintf("%s is that of the last of %d %s (of: Last)", n.Name, n.times, found)
}

// number computes one number from all its lines.
func (n *numberReader) number() quantity {
	if n.Of == results.OfMean && n.times > 0 {
		return quantity{n.value / float64(n.times), n.step / float64(n.times)}
	}
	return quantity{n.value, n.step}
}
