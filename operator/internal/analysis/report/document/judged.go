package document

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// judgedAnew says that the verdicts are not those of the run, and names the claims behind them.
func judgedAnew(e results.Experiment) []string {
	j := e.Judged
	if j == nil || model.Imported(e) {
		return nil
	}
	fact := fmt.Sprintf("Judged anew on %s by the claims of %s. The trials are those of the run, as they were.", j.At.Format(time.DateOnly), j.File)
	if n := len(j.Differences); n > 0 {
		fact += fmt.Sprintf(" They ran under a spec that differs from this file in %s: see where this comes from.", model.Count(n, "field"))
	}
	return []string{fact}
}

// judgedRows name the file and the version by which the results were judged anew.
func judgedRows(e results.Experiment) [][2]string {
	j := e.Judged
	if j == nil {
		return nil
	}
	rows := [][2]string{
		{"judged", j.At.Format(time.RFC3339) + ", by Assay " + j.By},
		{"claims of", j.File + ", spec sha256:" + j.SpecSHA256},
	}
	for _, d := range j.Differences {
		rows = append(rows, [2]string{"since the run", d})
	}
	for _, n := range j.Notes {
		rows = append(rows, [2]string{"note", n})
	}
	return rows
}
