package results

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// The numbers of a client's summary, named as v1alpha1.SummaryNumberName names them.
const (
	NumberCommitted  = "Committed"
	NumberAborted    = "Aborted"
	NumberErrors     = "Errors"
	NumberTimeouts   = "Timeouts"
	NumberThroughput = "Throughput"
	NumberRunTime    = "RunTime"
	NumberMean       = "MeanLatency"
	NumberP10        = "P10Latency"
	NumberP50        = "P50Latency"
	NumberP90        = "P90Latency"
	NumberP99        = "P99Latency"
	NumberP999       = "P999Latency"
	NumberMax        = "MaxLatency"
)

// SummaryNumber says where a client's summary has a number. As v1alpha1.SummaryNumber, with its
// defaults in place.
type SummaryNumber struct {
	Name    string `json:"name"`
	Pattern string `json:"pattern"`
	Unit    string `json:"unit,omitempty"` // of RunTime and latencies: ns, us, ms or s
	Sum     bool   `json:"sum,omitempty"`  // of all lines that match; otherwise the last one counts
}

// summaryValue is the group of a pattern that holds the number.
const summaryValue = "value"

// Compile compiles the pattern, and refuses one without the group value.
func (n SummaryNumber) Compile() (pattern *regexp.Regexp, group int, err error) {
	if pattern, err = regexp.Compile(n.Pattern); err != nil {
		return nil, 0, fmt.Errorf("must be a regular expression as RE2 has them (no look-around, no back-references): %w", err)
	}
	if group = pattern.SubexpIndex(summaryValue); group < 0 {
		return nil, 0, fmt.Errorf("has no group (?P<%s>...)", summaryValue)
	}
	return pattern, group, nil
}

// Timed reports whether the number is a time, which has a unit.
func (n SummaryNumber) Timed() bool {
	return n.Name == NumberRunTime || strings.HasSuffix(n.Name, "Latency")
}

// CheckSummary refuses numbers that do not make a summary.
func CheckSummary(numbers []SummaryNumber) error {
	has := func(name string) bool {
		return slices.ContainsFunc(numbers, func(n SummaryNumber) bool { return n.Name == name })
	}
	for _, n := range numbers {
		if n.Timed() && RecordUnits[n.Unit] == 0 {
			return fmt.Errorf("the unit of %s is %q; it must be ns, us, ms or s", n.Name, n.Unit)
		}
	}
	switch {
	case !has(NumberCommitted):
		return errors.New("Committed is missing: without it nothing says that the client did anything")
	case !has(NumberThroughput) && !has(NumberRunTime):
		return errors.New("Throughput is missing, and so is RunTime, from which it can be computed")
	}
	return nil
}

// Whole is what a client says of its whole run in a summary, as it computed it itself. Nothing in
// it is cut to the window. Latencies are in milliseconds; nil: the client did not say.
type Whole struct {
	Throughput float64  `json:"throughput"`
	MeanMillis *float64 `json:"meanMillis,omitempty"`
	P10Millis  *float64 `json:"p10Millis,omitempty"`
	P50Millis  *float64 `json:"p50Millis,omitempty"`
	P90Millis  *float64 `json:"p90Millis,omitempty"`
	P99Millis  *float64 `json:"p99Millis,omitempty"`
	P999Millis *float64 `json:"p999Millis,omitempty"`
	MaxMillis  *float64 `json:"maxMillis,omitempty"`
}

// Latency is where a latency of the name is kept; nil for other names.
func (w *Whole) Latency(name string) **float64 {
	return map[string]**float64{
		NumberMean: &w.MeanMillis, NumberP10: &w.P10Millis, NumberP50: &w.P50Millis, NumberP90: &w.P90Millis,
		NumberP99: &w.P99Millis, NumberP999: &w.P999Millis, NumberMax: &w.MaxMillis,
	}[name]
}

// check refuses what is no number of a run.
func (w *Whole) check(c Client) error {
	numbers := []float64{w.Throughput}
	for _, latency := range []*float64{w.MeanMillis, w.P10Millis, w.P50Millis, w.P90Millis, w.P99Millis, w.P999Millis, w.MaxMillis} {
		if latency != nil {
			numbers = append(numbers, *latency)
		}
	}
	for _, x := range numbers {
		if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the summary of the whole run has %g; its numbers must be 0 or more", x)
		}
	}
	if c.Latency != "" || len(c.Timeline.Committed) > 0 {
		return errors.New("a report has either a summary of the whole run, or a histogram and a timeline of the window")
	}
	return nil
}

// summarizeWhole puts summaries of whole runs together, as far as that can be done: throughput is
// the sum, the mean latency that of all transactions, and the longest the longest of all. The
// percentiles of several clients are not known.
func summarizeWhole(counters Counters, clients []Client) Summary {
	s := Summary{Counters: counters, WholeRun: true}
	mean, longest, known := 0.0, 0.0, true
	for _, c := range clients {
		w := c.Whole
		s.Throughput += w.Throughput
		if c.Counters.Committed == 0 {
			continue
		}
		known = known && w.MeanMillis != nil
		mean += valueOf(w.MeanMillis) * float64(c.Counters.Committed) / float64(max(1, counters.Committed))
		longest = max(longest, valueOf(w.MaxMillis))
	}
	if known {
		s.MeanMillis = mean
	}
	if !slices.ContainsFunc(clients, func(c Client) bool { return c.Whole.MaxMillis == nil }) {
		s.MaxMillis = longest
	}
	if len(clients) == 1 {
		w := clients[0].Whole
		s.P10Millis, s.P50Millis, s.P90Millis = valueOf(w.P10Millis), valueOf(w.P50Millis), valueOf(w.P90Millis)
		s.P99Millis, s.P999Millis = valueOf(w.P99Millis), valueOf(w.P999Millis)
	}
	return s
}

func valueOf(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
