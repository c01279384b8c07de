package parsers

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"

	"assay.dev/assay/operator/internal/results"
)

// parseSummary reads what a client prints of its whole run: one number in each line that a pattern
// matches. A line may have several numbers. A last line without its newline is what a killed client
// leaves: it is dropped and counted.
//
// A pattern that matches no line makes the report unreadable, unless it is of a count of what went
// wrong, which many programs print only when it is not 0.
func parseSummary(r io.Reader, o Options) (results.Client, error) {
	if err := results.CheckSummary(o.Summary); err != nil {
		return results.Client{}, fmt.Errorf("the summary: %w", err)
	}
	readers := make([]numberReader, len(o.Summary))
	for i, n := range o.Summary {
		pattern, group, err := n.Compile()
		if err != nil {
			return results.Client{}, fmt.Errorf("the pattern of %s %w", n.Name, err)
		}
		readers[i] = numberReader{SummaryNumber: n, pattern: pattern, group: group}
	}
	cut := false
	in := newLines("the client's output", r)
	for {
		line, err := in.next()
		if errors.Is(err, errCutOff) {
			cut = true
			break
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return results.Client{}, err
		}
		for i := range readers {
			if err := readers[i].read(line); err != nil {
				return results.Client{}, in.errorf("%q: %s: %v", short(line), readers[i].Name, err)
			}
		}
	}
	c, err := wholeOf(readers, o)
	if err == nil && cut {
		c.Driver = map[string]int64{counterCut: 1}
	}
	return c, err
}

// numberReader collects one number.
type numberReader struct {
	results.SummaryNumber
	pattern *regexp.Regexp
	group   int
	lines   int
	value   float64
}

func (n *numberReader) read(line []byte) error {
	match := n.pattern.FindSubmatchIndex(line)
	if len(match) <= 2*n.group || match[2*n.group] < 0 {
		return nil
	}
	x, err := parseCountable(string(line[match[2*n.group]:match[2*n.group+1]]))
	if err != nil {
		return err
	}
	if n.lines++; n.Sum {
		x += n.value
	}
	if x > mostSummed {
		return fmt.Errorf("%g is too large", x)
	}
	n.value = x
	return nil
}

// mostSummed is the greatest number of a summary: a float64 holds whole ones up to it exactly.
const mostSummed = 1 << 53

// millis of a time.
func (n *numberReader) millis() float64 {
	return n.value * float64(results.RecordUnits[n.Unit]) / 1e6
}

// wholeOf makes a report of what was read.
func wholeOf(readers []numberReader, o Options) (results.Client, error) {
	c := results.Client{
		Format: results.ClientFormat, Index: o.Index, FirstClient: o.FirstClient, Clients: o.Clients, MeasureNanos: int64(o.Windows.Measure),
		NothingSent: true, // a summary does not say when the first request was sent
		Timeline:    results.NewTimeline(0, 0), Whole: &results.Whole{},
		Unreported: []string{
			results.CounterAborted, results.CounterErrors, results.CounterGivenUp, results.CounterLateSends, results.CounterOffered,
			results.CounterRetries, results.CounterTimeouts, results.CounterUnsent,
		},
	}
	counts := map[string]struct {
		to      *int64
		counter string
	}{
		results.NumberCommitted: {&c.Counters.Committed, ""}, results.NumberAborted: {&c.Counters.Aborted, results.CounterAborted},
		results.NumberErrors: {&c.Counters.Errors, results.CounterErrors}, results.NumberTimeouts: {&c.Counters.Timeouts, results.CounterTimeouts},
	}
	var runMillis float64
	said := false
	if o.Misbehaving > 0 && o.Misbehaving == o.Clients { // there is nothing to print
		return c, nil
	}
	for i := range readers {
		n := &readers[i]
		count, counted := counts[n.Name]
		if n.lines == 0 && count.counter == "" {
			return c, fmt.Errorf("no line of the client's output matches the pattern of %s, %s", n.Name, n.Pattern)
		}
		switch {
		case counted && n.value != math.Trunc(n.value):
			return c, fmt.Errorf("%s is %g, which is no count", n.Name, n.value)
		case counted:
			*count.to = int64(n.value)
			c.Unreported = slices.DeleteFunc(c.Unreported, func(name string) bool { return name == count.counter })
		case n.Name == results.NumberThroughput:
			c.Whole.Throughput, said = n.value, true
		case n.Name == results.NumberRunTime:
			runMillis = n.millis()
		default:
			to, millis := c.Whole.Latency(n.Name), n.millis()
			if to == nil {
				return c, fmt.Errorf("a summary has no number %s", n.Name)
			}
			*to = &millis
		}
	}
	if !said {
		if runMillis < 1e-6 {
			return c, errors.New("the client says that it ran for no time at all")
		}
		c.Whole.Throughput = float64(c.Counters.Committed) / (runMillis / 1000)
	}
	return c, nil
}
