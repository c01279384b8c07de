package results

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Operation is what a client reports of one kind of operation: of those that committed in the
// window.
type Operation struct {
	Name      string `json:"name"`
	Committed int64  `json:"committed"`
	// Latency histogram, as in Client. It may lack latencies that are out of its range.
	Latency string `json:"latency"`
}

const (
	// MaxOperations is the most kinds that a client reports.
	MaxOperations = 33
	// MaxOperationName is the most bytes that the name of one has.
	MaxOperationName = 64
	// OtherOperations is the name of all kinds together that found no room.
	OtherOperations = "..."
)

// OperationSummary is what one kind of operation comes to over all clients of a trial.
type OperationSummary struct {
	Name string `json:"name"`
	// Committed operations of the window, and how many that are per second.
	Committed  int64   `json:"committed"`
	Throughput float64 `json:"throughput"`
	// Latencies in milliseconds; Percentiles by their names: P10, P50, P99, P9999.
	MeanMillis  float64            `json:"meanMillis"`
	MaxMillis   float64            `json:"maxMillis"`
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
}

// operationPercentiles are those of an OperationSummary.
var operationPercentiles = map[string]float64{
	"P10": 10, "P50": 50, "P75": 75, "P90": 90, "P95": 95, "P99": 99, "P999": 99.9, "P9999": 99.99, "P99999": 99.999,
}

// checkOperations refuses kinds that contradict themselves or the counters.
func (c Client) checkOperations() error {
	if len(c.Operations) > 0 && c.RunSummary != nil {
		return errors.New("a summary of the whole run has no kinds of operations")
	}
	if len(c.Operations) > MaxOperations {
		return fmt.Errorf("there are %d kinds of operations, %d are allowed", len(c.Operations), MaxOperations)
	}
	kinds := make([]OperationSummary, len(c.Operations))
	for i, o := range c.Operations {
		kinds[i] = OperationSummary{Name: o.Name, Committed: o.Committed}
	}
	return AgreeOperations(c.Counters.Committed, kinds)
}

// AgreeOperations reports how kinds of operations contradict each other or all that committed. As
// Agree, it is asked of clients' reports and of bundles.
func AgreeOperations(committed int64, kinds []OperationSummary) error {
	seen, sum := map[string]bool{}, int64(0)
	for _, o := range kinds {
		switch {
		case o.Name == "" || len(o.Name) > MaxOperationName:
			return fmt.Errorf("a kind of operation is called %q; its name must have 1 to %d bytes", o.Name, MaxOperationName)
		case seen[o.Name]:
			return fmt.Errorf("the kind of operation %s is there twice", o.Name)
		case o.Committed < 0 || o.Committed > committed-sum:
			return fmt.Errorf("of the kind of operation %s %d committed, and of all kinds %d", o.Name, o.Committed, committed)
		}
		seen[o.Name] = true
		sum += o.Committed
	}
	return nil
}

// operationSums add kinds of operations up over clients.
type operationSums map[string]*operationSum

type operationSum struct {
	committed int64
	latency   *histogramSum
}

func (sums operationSums) add(operations []Operation) error {
	for _, o := range operations {
		name := o.Name
		if sums[name] == nil && len(sums) >= MaxOperations {
			name = OtherOperations
		}
		if sums[name] == nil {
			sums[name] = &operationSum{latency: newHistogramSum()}
		}
		n, err := sums[name].latency.addIfAny(o.Latency)
		if err != nil {
			return fmt.Errorf("latency of %s: %w", o.Name, err)
		}
		if n > o.Committed {
			return fmt.Errorf("of the kind of operation %s %d are said to be committed, its histogram has %d", o.Name, o.Committed, n)
		}
		sums[name].committed += o.Committed
	}
	return nil
}

// summaries in the order of their names.
func (sums operationSums) summaries(window time.Duration) (all []OperationSummary) {
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		h := sums[name].latency.histogram()
		s := OperationSummary{Name: name, Committed: sums[name].committed, MeanMillis: float64(h.Mean()) / 1e6, MaxMillis: Millis(h.Max())}
		if window > 0 {
			s.Throughput = float64(s.Committed) / window.Seconds()
		}
		if h.Count() > 0 {
			s.Percentiles = map[string]float64{}
			for name, p := range operationPercentiles {
				s.Percentiles[name] = Millis(h.Percentile(p))
			}
		}
		all = append(all, s)
	}
	return all
}

// ownNumbers adds the numbers of a kind under the names that measurements have for them:
// operationP99Millis:READ.
func (s OperationSummary) ownNumbers(to map[string]float64) {
	if len(s.Percentiles) == 0 {
		return
	}
	to["operationMeanMillis:"+s.Name], to["operationMaxMillis:"+s.Name] = s.MeanMillis, s.MaxMillis
	for name, millis := range s.Percentiles {
		to["operation"+name+"Millis:"+s.Name] = millis
	}
}
