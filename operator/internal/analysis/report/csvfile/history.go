package csvfile

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/model"
)

// History writes a line for each metric in each run, with the level that it belongs to.
func History(w io.Writer, h model.History) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"experiment", "profile", "point", "metric", "unit", "run", "started", "version", "from", "n", "mean", "low", "high", "level", "change", "p", "drifts"}}
	number := func(x *float64) string {
		if x == nil {
			return ""
		}
		return strconv.FormatFloat(*x, 'g', -1, 64)
	}
	for _, m := range h.Metrics {
		level := 0
		for _, v := range m.Values {
			kind, p := "", ""
			for _, change := range m.Changes {
				if change.At == v.Run {
					level++
					kind, p = change.Kind, number(&change.P)
				}
			}
			r := h.Runs[v.Run]
			rows = append(rows, []string{
				m.Experiment, m.Profile, m.Point, m.Metric, m.Unit, strconv.Itoa(v.Run + 1), r.Started.Format(time.RFC3339), r.Version, r.From, strconv.Itoa(v.N),
				number(&v.Mean), number(v.Low), number(v.High), strconv.Itoa(level + 1), kind, p, strconv.FormatBool(h.Drifts),
			})
		}
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}
