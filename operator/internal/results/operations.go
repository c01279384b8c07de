package results

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Operation is a client's report of one kind of operation. Only operations that committed in the
// window count.
type Operation struct {
	Name      string `json:"name"`
	Committed int64  `json:"committed"`
	// Latency histogram, as in Client. It may lack latencies that are out of its range.
	Latency string `json:"latency"`
}

const (
	// MaxOperations is the most kinds that a client reports.
	MaxOperations = 33
	// MaxOperationName is the most bytes that the name of a kind has.
	MaxOperationName = 64
	// OtherOperations is the common name of all kinds that found no room.
	OtherOperations = "..."
)

// OperationSummary summarizes one kind of operation over all clients of a trial.
type OperationSummary struct {
	Name string `json:"name"`
	// Committed operations of the window, and their number per second.
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
	if len(c.Operations)+len(c.Nodes) > 0 && c.RunSummary != nil {
		return errors.New("a summary of the whole run has no kinds of operations and no nodes")
	}
	for _, of := range []struct {
		one, many string
		all       []Operation
	}{{"kind of operation", "kinds of operations", c.Operations}, {"node that answered", "nodes that answered", c.Nodes}} {
		if len(of.all) > MaxOperations {
			return fmt.Errorf("there are %d %s, %d are allowed", len(of.all), of.many, MaxOperations)
		}
		kinds := make([]OperationSummary, len(of.all))
		for i, o := range of.all {
			kinds[i] = OperationSummary{Name: o.Name, Committed: o.Committed}
		}
		if err := agreeParts(of.one, c.Counters.Committed, kinds); err != nil {
			return err
		}
	}
	return nil
}

// AgreeParts reports contradictions of kinds of operations, of nodes that answered or of regions of
// clients. They may contradict each other, or the count of all committed operations. Like Agree, it
// is called on clients' reports and on bundles.
func (s Summary) AgreeParts() error {
	return errors.Join(agreeParts("kind of operation", s.Committed, s.Operations), agreeParts("node that answered", s.Committed, s.Nodes),
		agreeParts("region of clients", s.Committed, s.Regions))
}

func agreeParts(what string, committed int64, parts []OperationSummary) error {
	seen, sum := map[string]bool{}, int64(0)
	for _, o := range parts {
		switch {
		case o.Name == "" || len(o.Name) > MaxOperationName:
			return fmt.Errorf("a %s is called %q; its name must have 1 to %d bytes", what, o.Name, MaxOperationName)
		case seen[o.Name]:
			return fmt.Errorf("the %s %s is there twice", what, o.Name)
		case o.Committed < 0 || o.Committed > committed-sum:
			return fmt.Errorf("of the %s %s %d committed, and of all %d", what, o.Name, o.Committed, committed)
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
			return fmt.Errorf("operation kind %s states %d committed operations, and its histogram has %d", o.Name, o.Committed, n)
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

// RegionsOf summarizes the clients' transactions by region. The argument regions has the region of
// each client pod, by its index. The result is nil if all clients are in one region, or if a client
// has no region or no latencies.
func RegionsOf(clients []Client, regions []string, window time.Duration) ([]OperationSummary, error) {
	sums := operationSums{}
	for _, c := range clients {
		if c.RunSummary != nil || int(c.Index) >= len(regions) || regions[c.Index] == "" {
			return nil, nil
		}
		if err := sums.add([]Operation{{Name: regions[c.Index], Committed: c.Counters.Committed, Latency: c.Latency}}); err != nil {
			return nil, fmt.Errorf("client %d: %w", c.Index, err)
		}
	}
	if len(sums) < 2 {
		return nil, nil
	}
	return sums.summaries(window), nil
}

// RegionsOfClients are the regions of a trial's client pods, which are in the order of their
// indices.
func RegionsOfClients(pods []Pod) (regions []string) {
	for _, p := range pods {
		if p.Part == partClient {
			regions = append(regions, p.Region)
		}
	}
	return regions
}

// partClient is the part of client pods.
const partClient = "client"

// ownNumbers adds the numbers of parts under the names that measurements have for them:
// operationP99Millis:READ, nodeP99Millis:replica-1, regionP99Millis:europe.
func ownNumbers(prefix string, parts []OperationSummary, to map[string]float64) {
	for _, s := range parts {
		if prefix != operationPrefix { // which clients count themselves
			to[prefix+":"+s.Name] = float64(s.Committed)
		}
		if len(s.Percentiles) == 0 {
			continue
		}
		to[prefix+"MeanMillis:"+s.Name], to[prefix+"MaxMillis:"+s.Name] = s.MeanMillis, s.MaxMillis
		for name, millis := range s.Percentiles {
			to[prefix+name+"Millis:"+s.Name] = millis
		}
	}
	variations(prefix, parts, to)
}

// The prefixes of the names of numbers by parts.
const (
	operationPrefix = "operation"
	nodePrefix      = "node"
	regionPrefix    = "region"
)

// variations adds how much the parts differ: nodeVariation is the coefficient of variation, over
// the nodes, of the number of operations that they answered. nodeMeanMillisVariation is that of
// their mean latency. Both are unknown if some nodes found no room in a report. Kinds of operations
// have no such numbers.
func variations(prefix string, parts []OperationSummary, to map[string]float64) {
	other := func(s OperationSummary) bool { return s.Name == OtherOperations }
	if len(parts) == 0 || prefix == operationPrefix || slices.ContainsFunc(parts, other) {
		return
	}
	of := func(name string, number func(OperationSummary) float64) {
		var values []float64
		for _, s := range parts {
			values = append(values, number(s))
		}
		if cov, ok := variation(values); ok {
			to[prefix+name+"Variation"] = cov
		}
	}
	of("", func(s OperationSummary) float64 { return float64(s.Committed) })
	if slices.ContainsFunc(parts, func(s OperationSummary) bool { return len(s.Percentiles) == 0 }) {
		return
	}
	of("MeanMillis", func(s OperationSummary) float64 { return s.MeanMillis })
	for name := range operationPercentiles {
		of(name+"Millis", func(s OperationSummary) float64 { return s.Percentiles[name] })
	}
}

// variation is the coefficient of variation of all values: their standard deviation divided by
// their mean.
func variation(values []float64) (cov float64, ok bool) {
	mean, square := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		square += (v - mean) * (v - mean) / float64(len(values))
	}
	return math.Sqrt(square) / mean, mean != 0
}

// LatencyVariation is the coefficient of variation of the parts' mean latencies. It is false if
// there is one part, if some parts found no room in a report, or if some mean is unknown.
func LatencyVariation(parts []OperationSummary) (cov float64, ok bool) {
	var means []float64
	for _, s := range parts {
		if s.Name == OtherOperations || len(s.Percentiles) == 0 {
			return 0, false
		}
		means = append(means, s.MeanMillis)
	}
	if len(means) < 2 {
		return 0, false
	}
	return variation(means)
}
