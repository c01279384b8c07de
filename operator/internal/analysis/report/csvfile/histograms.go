package csvfile

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// The columns of histograms that are there in every experiment; between them stand the axes.
var (
	histogramFirst = []string{"trial", "point", "repetition"}
	histogramLast  = []string{"from_us", "to_us", "count"}
)

// HistogramColumns names the columns of histograms: the axes between the trial and the bin.
func HistogramColumns(e results.Experiment) []string {
	columns := slices.Clone(histogramFirst)
	for _, a := range e.Axes {
		name := a.Name
		if slices.Contains(histogramFirst, name) || slices.Contains(histogramLast, name) {
			name += "_axis"
		}
		columns = append(columns, name)
	}
	return append(columns, histogramLast...)
}

// Histograms writes a line for each bin of each valid trial's latency histogram: count
// transactions took from from_us to to_us microseconds, both included. Bins have three significant
// digits; empty ones are left out.
func Histograms(w io.Writer, e results.Experiment, all []model.TrialHistogram) error {
	out := NewWriter(w)
	_ = out.Write(HistogramColumns(e)) // kept: out.Error below
	for _, h := range all {
		first := []string{h.Trial, strconv.Itoa(int(h.Point)), strconv.Itoa(int(h.Repetition))}
		for _, a := range e.Axes {
			first = append(first, h.Coordinates[a.Name])
		}
		for _, b := range h.Bins {
			_ = out.Write(append(slices.Clip(first), strconv.FormatInt(b.From, 10), strconv.FormatInt(b.To, 10), strconv.FormatInt(b.Count, 10)))
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the histograms as CSV: %w", err)
	}
	return nil
}
