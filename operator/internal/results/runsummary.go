package results

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// RunSummary has the numbers that a client itself computed over its whole run. They are not cut to
// the window. Latencies are in milliseconds; nil: the client did not report it.
type RunSummary struct {
	// Throughput is committed transactions per second of the run.
	Throughput float64  `json:"throughput"`
	MeanMillis *float64 `json:"meanMillis,omitempty"`
	P10Millis  *float64 `json:"p10Millis,omitempty"`
	P50Millis  *float64 `json:"p50Millis,omitempty"`
	P90Millis  *float64 `json:"p90Millis,omitempty"`
	P99Millis  *float64 `json:"p99Millis,omitempty"`
	P999Millis *float64 `json:"p999Millis,omitempty"`
	MaxMillis  *float64 `json:"maxMillis,omitempty"`
	// Percentiles are those that have no member of their own, in milliseconds, by their names: P95,
	// P9999.
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
	// Numbers are the client's own, by the names that its System gives them.
	Numbers map[string]float64 `json:"numbers,omitempty"`
	// Remarks say what a reader must know of the numbers: which were computed, and from which
	// others.
	Remarks []string `json:"remarks,omitempty"`
}

// maxRunSummaryNames bounds the numbers and remarks of a client's summary.
const maxRunSummaryNames = 64

// Latency is where a latency of the name is kept; nil for other names.
func (w *RunSummary) Latency(name string) **float64 {
	return map[string]**float64{
		NumberMean: &w.MeanMillis, NumberP10: &w.P10Millis, NumberP50: &w.P50Millis, NumberP90: &w.P90Millis,
		NumberP99: &w.P99Millis, NumberP999: &w.P999Millis, NumberMax: &w.MaxMillis,
	}[name]
}

// SetLatency keeps a latency of the name, in milliseconds.
func (w *RunSummary) SetLatency(name string, millis float64) {
	if to := w.Latency(name); to != nil {
		*to = &millis
		return
	}
	if w.Percentiles == nil {
		w.Percentiles = map[string]float64{}
	}
	w.Percentiles[strings.TrimSuffix(name, latencySuffix)] = millis
}

// SetNumber keeps a number of the client's own.
func (w *RunSummary) SetNumber(name string, value float64) {
	if w.Numbers == nil {
		w.Numbers = map[string]float64{}
	}
	w.Numbers[name] = value
}

// check refuses what is no number of a run.
func (w *RunSummary) check(c Client) error {
	numbers := []float64{w.Throughput}
	for _, latency := range []*float64{w.MeanMillis, w.P10Millis, w.P50Millis, w.P90Millis, w.P99Millis, w.P999Millis, w.MaxMillis} {
		if latency != nil {
			numbers = append(numbers, *latency)
		}
	}
	if max(len(w.Percentiles), len(w.Numbers), len(w.Remarks)) > maxRunSummaryNames {
		return fmt.Errorf("the summary of the whole run has more than %d percentiles, own numbers or remarks", maxRunSummaryNames)
	}
	for name := range w.Percentiles {
		if Percentile(name+latencySuffix) == 0 {
			return fmt.Errorf("the summary of the whole run has a percentile %q; its name must be such as P95", name)
		}
	}
	for _, x := range w.Numbers {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the summary of the whole run has %g, which is no number", x)
		}
	}
	for _, x := range slices.Concat(numbers, slices.Collect(maps.Values(w.Percentiles))) {
		if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the summary of the whole run has %g; its numbers must be 0 or more", x)
		}
	}
	if c.Latency != "" || len(c.Timeline.Committed) > 0 {
		return errors.New("a report has either a summary of the whole run, or a histogram and a timeline of the window")
	}
	return nil
}

// mergeRunSummaries merges summaries of whole runs. Throughput is the sum, the mean latency is over
// all transactions, and the longest latency is the longest of all. The percentiles of several
// clients are not known.
func mergeRunSummaries(counters Counters, clients []Client) Summary {
	s := Summary{Counters: counters, RunSummary: true}
	mean, longest, known := 0.0, 0.0, true
	for _, c := range clients {
		w := c.RunSummary
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
	if !slices.ContainsFunc(clients, func(c Client) bool { return c.RunSummary.MaxMillis == nil }) {
		s.MaxMillis = longest
	}
	if len(clients) == 1 {
		w := clients[0].RunSummary
		s.P10Millis, s.P50Millis, s.P90Millis = valueOf(w.P10Millis), valueOf(w.P50Millis), valueOf(w.P90Millis)
		s.P99Millis, s.P999Millis = valueOf(w.P99Millis), valueOf(w.P999Millis)
		s.Percentiles, s.Numbers = w.Percentiles, w.Numbers
	}
	s.Remarks = remarksOf(clients)
	return s
}

func valueOf(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// remarksOf are the clients' remarks, each once.
func remarksOf(clients []Client) []string {
	var all []string
	for _, c := range clients {
		if c.RunSummary == nil {
			continue
		}
		for _, remark := range c.RunSummary.Remarks {
			if !slices.Contains(all, remark) && len(all) < maxRunSummaryNames {
				all = append(all, remark)
			}
		}
	}
	return all
}
