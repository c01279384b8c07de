package imported

import (
	"bytes"
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

// readHdrHistogram makes one result of a log of HdrHistograms, or one of each of its tags. The log
// does not mark the measurement, so all of the log counts.
func readHdrHistogram(name string, data []byte, o Options) ([]Result, []string, error) {
	if results.RecordUnits[o.Unit] == 0 {
		return nil, nil, fmt.Errorf("%s: the log does not say the unit of its values: name it by --unit, one of ns, us, ms, s", name)
	}
	parse := func(po parsers.Options) (results.Client, error) {
		po.Clients, po.Whole, po.Histograms = 1, true, &results.Histograms{Unit: o.Unit}
		c, err := parsers.Parse(parsers.FormatHdrHistogram, bytes.NewReader(data), po)
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		return c, nil
	}
	var seen parsers.Seen
	if _, err := parse(parsers.Options{Seen: &seen}); err != nil {
		return nil, nil, err
	}
	if seen.Operations == 0 || seen.Last <= seen.First {
		return nil, nil, fmt.Errorf("%s: no interval of it has an operation, or all take no time", name)
	}
	c, err := parse(parsers.Options{ZeroUnixNanos: int64(seen.First), Windows: timeline.Windows{Measure: seen.Last - seen.First}})
	if err != nil {
		return nil, nil, err
	}
	m, err := results.Merge([]results.Client{c})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	s := m.Summary
	run := results.Millis(seen.Last - seen.First)
	if !o.ByOperation {
		r := ofLog(map[string]string{}, s.Committed, run, s.MeanMillis, s.MaxMillis, map[string]float64{
			"P10": s.P10Millis, "P50": s.P50Millis, "P90": s.P90Millis, "P99": s.P99Millis, "P999": s.P999Millis})
		return []Result{r}, nil, nil
	}
	if len(s.Operations) == 0 {
		return nil, nil, fmt.Errorf("%s: none of its intervals has a tag, and a tag is what names the kind of operation", name)
	}
	var all []Result
	for _, k := range s.Operations {
		all = append(all, ofLog(map[string]string{"operation": k.Name}, k.Committed, run, k.MeanMillis, k.MaxMillis, k.Percentiles))
	}
	return all, nil, nil
}

// ofLog makes the result of a part of a log. The argument run is its length in milliseconds.
func ofLog(labels map[string]string, committed int64, run, mean, longest float64, percentiles map[string]float64) Result {
	number := func(x float64) *float64 { return &x }
	return Result{Labels: labels, Numbers: Numbers{
		Throughput: number(float64(committed) / (run / float64(time.Second/time.Millisecond))), Committed: number(float64(committed)), RunMillis: number(run),
		Mean: number(mean), Max: number(longest), P10: number(percentiles["P10"]), P50: number(percentiles["P50"]), P90: number(percentiles["P90"]),
		P99: number(percentiles["P99"]), P999: number(percentiles["P999"]),
	}}
}
