package csvfile

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Recovery writes a line for each occurrence of each fault in each valid trial. Numbers are not
// rounded; missing values are empty. Where recovered is false, recovered_ms is a lower bound: the
// end of the data. For a reset, confirmed_ms is when it began. For a fault of Chaos Mesh, it is
// when the manager asked for the fault. An experiment without such faults gives the header alone.
func Recovery(w io.Writer, e results.Experiment) error {
	out := NewWriter(w)
	header := []string{"point"}
	for _, a := range e.Axes {
		header = append(header, a.Name)
	}
	_ = out.Write(append(header, "trial", "repetition", "fault", "time", "kind", "confirmed_ms", "before_tx_s", "dipped", "detected_ms", "depth_ratio", // kept: out.Error below
		"recovered", "recovered_ms", "lost_tx", "cautions", "error"))
	for _, l := range e.Trials {
		if l.Outcome != stats.Succeeded {
			continue
		}
		for _, r := range l.Recovery {
			row := []string{strconv.Itoa(int(l.PointIndex))}
			for _, a := range e.Axes {
				row = append(row, l.Coordinates[a.Name])
			}
			_ = out.Write(append(row, l.Name, strconv.Itoa(int(l.Repetition)), r.Fault, strconv.Itoa(r.Time), r.Kind, Exact(r.ConfirmedMillis, r.Kind != ""),
				Exact(r.ThroughputBefore, r.ThroughputBefore > 0), strconv.FormatBool(r.Dipped), Exact(r.DetectMillis, r.Dipped), Exact(r.Depth, r.Dipped),
				strconv.FormatBool(r.Recovered), Exact(r.RecoverMillis, r.Dipped), Exact(r.LostTransactions, r.Dipped), strings.Join(r.Cautions, " "), r.Error))
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the recoveries as CSV: %w", err)
	}
	return nil
}
