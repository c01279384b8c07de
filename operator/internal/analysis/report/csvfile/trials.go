package csvfile

import (
	"fmt"
	"io"
	"strconv"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Trials writes a line for each trial in the order in which they ran, valid or not. Numbers are not
// rounded; missing values are empty. Examples are the numbers of a trial that does not count, and
// checks of a window that were not possible (unchecked says why).
func Trials(w io.Writer, e results.Experiment) error {
	out := NewWriter(w)
	header := []string{"trial", "point"}
	for _, a := range e.Axes {
		header = append(header, a.Name)
	}
	_ = out.Write(append(header, "repetition", "attempt", "outcome", "reason", "throughput_tx_s", "meanLatency_ms", "p50Latency_ms", "p99Latency_ms", "abortRate_ratio", // kept: out.Error below
		"committed", "aborted", "errors", "timeouts", "unsent", "givenUp", "throttled_ratio", "steal_ratio", "contended_ratio", "clientTime_ratio", "clientBusy_ratio",
		"steady", "throughput_transient_ms", "throughput_bias_ratio", "latency_transient_ms", "latency_bias_ratio", "unchecked"))
	for _, l := range e.Trials {
		row := []string{l.Name, strconv.Itoa(int(l.PointIndex))}
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		row = append(row, strconv.Itoa(int(l.Repetition)), strconv.Itoa(int(l.Attempt)), l.Outcome, l.Reason)
		counts := l.Outcome == stats.Succeeded
		for _, m := range stats.Metrics {
			row = append(row, Exact(stats.Of(l, m), counts && stats.Has(l, m)))
		}
		row = append(row, Exact(float64(l.Committed), counts && knowsCounts(l)))
		for _, c := range []struct {
			counter string
			n       int64
		}{{results.CounterAborted, l.Aborted}, {results.CounterErrors, l.Errors}, {results.CounterTimeouts, l.Timeouts}, {results.CounterUnsent, l.Unsent}, {results.CounterGivenUp, l.GivenUp}} {
			row = append(row, Exact(float64(c.n), counts && knowsCounts(l) && stats.Reports(l, c.counter)))
		}
		row = append(row, exactShare(l.ThrottledShare), exactShare(l.StealShare), exactShare(l.ContendedShare), exactShare(l.ClientTimeShare), exactShare(l.ClientBusyShare))
		_ = out.Write(append(row, windowCells(l.Window)...))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the trials as CSV: %w", err)
	}
	return nil
}

// knowsCounts reports whether a line has the number of operations: imported results may have
// throughput without them.
func knowsCounts(l results.TrialLine) bool { return stats.Ended(l) > 0 || l.Throughput == 0 }

func exactShare(share *float64) string {
	if share == nil {
		return ""
	}
	return Exact(*share, true)
}

func windowCells(w *results.WindowCheck) []string {
	cells := make([]string, 6)
	if w == nil {
		return cells
	}
	if steady, known := w.Steady(); known {
		cells[0] = strconv.FormatBool(steady)
	}
	for i, t := range []*results.Transient{w.Throughput, w.Latency} {
		if t != nil {
			cells[1+2*i], cells[2+2*i] = Exact(t.Millis, true), Exact(t.Bias, true)
		}
	}
	cells[5] = w.Unchecked
	return cells
}
