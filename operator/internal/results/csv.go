package results

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// WriteTimelineCSV writes a timeline as CSV, a line for each bin. It has the bin's start in ms
// relative to t = 0, the transactions committed, attempts aborted, requests failed, and committed
// per second. Then comes the mean latency of the committed ones in ms (empty when there are none).
// The last column has the offered requests, if the clients report them.
func WriteTimelineCSV(w io.Writer, t Timeline) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("write the timeline: %w", err)
	}
	out := csv.NewWriter(w)
	columns := []string{"startMillis", "committed", "aborted", "failed", "throughput", "meanMillis"}
	if t.Offered != nil {
		columns = append(columns, "offered")
	}
	_ = out.Write(columns) // kept: out.Error below
	for i, committed := range t.Committed {
		mean := ""
		if committed > 0 {
			mean = strconv.FormatFloat(float64(t.LatencySumMicros[i])/float64(committed)/1e3, 'f', 3, 64)
		}
		line := []string{
			strconv.FormatInt(t.FirstMillis+int64(i)*t.IntervalMillis, 10),
			strconv.FormatInt(committed, 10), strconv.FormatInt(t.Aborted[i], 10), strconv.FormatInt(t.Failed[i], 10),
			strconv.FormatFloat(float64(committed)*1e3/float64(t.IntervalMillis), 'f', -1, 64), mean,
		}
		if t.Offered != nil {
			line = append(line, strconv.FormatInt(t.Offered[i], 10))
		}
		_ = out.Write(line)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the timeline: %w", err)
	}
	return nil
}
