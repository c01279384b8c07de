package csvfile

import (
	"fmt"
	"io"
	"strconv"

	"assay.dev/assay/operator/internal/results"
)

// Resources writes a line for each point and part: the use of resources by its pods, and how even
// the use is. Numbers are not rounded. An experiment without resources gives the header alone.
func Resources(w io.Writer, e results.Experiment) error {
	out := NewWriter(w)
	header := []string{"point"}
	for _, a := range e.Axes {
		header = append(header, a.Name)
	}
	_ = out.Write(append(header, "part", "pods", "trials", "cpu_mean_cores", "cpu_total_cores", "cpu_max_cores", "memory_max_bytes", // kept: out.Error below
		"received_bytes_s", "sent_bytes_s", "node_busy_ratio", "throttled_max_ratio", "steal_max_ratio",
		"cpu_cov", "cpu_max_to_mean", "cpu_mean_cov", "cpu_outside_ratio", "sent_cov", "sent_max_to_mean"))
	number := func(x float64) string { return Exact(x, true) }
	for _, l := range e.Resources {
		row := []string{strconv.Itoa(int(l.Point))}
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		row = append(row, l.Part, strconv.Itoa(l.Pods), strconv.Itoa(l.Trials), number(l.CPUMeanCores), number(l.CPUTotalCores), number(l.CPUMaxCores),
			strconv.FormatInt(l.MemoryMaxBytes, 10), number(l.ReceivedPerSecond), number(l.SentPerSecond), number(l.BusyShare), number(l.ThrottledShare), number(l.StealShare))
		_ = out.Write(append(row, balanceExact(l.Balance)...))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the resources as CSV: %w", err)
	}
	return nil
}

// balanceExact are the numbers of the table, not rounded.
func balanceExact(b *results.PartBalance) []string {
	if b == nil {
		return make([]string, 6)
	}
	series := b.SeriesTrials > 0
	return []string{Exact(b.CPUCoV, true), Exact(b.CPUMaxToMean, true), Exact(b.CPUMeanCoV, series), Exact(b.CPUOutside, series), Exact(b.SentCoV, true), Exact(b.SentMaxToMean, true)}
}
