package figure

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// HistogramParquet writes the rows of report.HistogramCSV as Parquet, compressed with Zstandard.
// point and repetition are 32-bit integers, from_us, to_us and count 64-bit ones; the axes are
// text.
func HistogramParquet(w io.Writer, e results.Experiment, all []model.TrialHistogram) error {
	columns := csvfile.HistogramColumns(e)
	group := parquet.Group{}
	for _, name := range columns {
		group[name] = parquet.String()
	}
	for _, name := range []string{"point", "repetition"} {
		group[name] = parquet.Int(32)
	}
	for _, name := range []string{"from_us", "to_us", "count"} {
		group[name] = parquet.Int(64)
	}
	out := parquet.NewGenericWriter[map[string]any](w, parquet.NewSchema("histograms", group), parquet.Compression(&parquet.Zstd))
	for _, h := range all {
		rows := make([]map[string]any, 0, len(h.Bins))
		for _, b := range h.Bins {
			row := map[string]any{"trial": h.Trial, "point": h.Point, "repetition": h.Repetition, "from_us": b.From, "to_us": b.To, "count": b.Count}
			for i, a := range e.Axes {
				row[columns[3+i]] = h.Coordinates[a.Name]
			}
			rows = append(rows, row)
		}
		if _, err := out.Write(rows); err != nil {
			return fmt.Errorf("write the histogram of trial %s as Parquet: %w", h.Trial, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write the histograms as Parquet: %w", err)
	}
	return nil
}
