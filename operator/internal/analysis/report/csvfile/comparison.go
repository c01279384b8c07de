package csvfile

import (
	"fmt"
	"io"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/report/model"
)

// Comparison writes a line for each point and metric. Numbers are not rounded; what does not
// exist is empty.
func Comparison(w io.Writer, c model.Comparison) error {
	out := NewWriter(w)
	var header []string
	for _, a := range c.A.Axes {
		header = append(header, a.Name)
	}
	_ = out.Write(append(header, "metric", "unit", "a_n", "a_mean", "a_stddev", "b_n", "b_mean", "b_stddev", "ratio", "ratio_low95", "ratio_high95", // kept: out.Error below
		"difference", "difference_low95", "difference_high95", "p", "p_holm", "significant", "p_mann_whitney"))
	for _, r := range c.Rows {
		var row []string
		for _, a := range c.A.Axes {
			row = append(row, r.Coordinates[a.Name])
		}
		known := r.HasRatio && r.Ratio.Known
		significant := ""
		if r.Tested {
			significant = strconv.FormatBool(r.Significant())
		}
		_ = out.Write(append(row, r.Metric, model.UnitOf[r.Metric], strconv.Itoa(r.A.N), Exact(r.A.Mean, true), Exact(r.A.StdDev, r.A.N > 1), strconv.Itoa(r.B.N), Exact(r.B.Mean, true), Exact(r.B.StdDev, r.B.N > 1),
			Exact(r.Ratio.Value, r.HasRatio), Exact(r.Ratio.Low, known), Exact(r.Ratio.High, known),
			Exact(r.Difference.Value, true), Exact(r.Difference.Low, r.Difference.Known), Exact(r.Difference.High, r.Difference.Known), Exact(r.P, r.Tested), Exact(r.Adjusted, r.Tested), significant, Exact(r.RankP, r.Ranked)))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the comparison as CSV: %w", err)
	}
	return nil
}
