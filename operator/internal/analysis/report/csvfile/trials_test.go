package csvfile_test

import (
	"bytes"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
)

// A value that a trial's line does not have was once written as 0: percentiles and counts of
// results that were imported from tables of throughput and mean latency.
func TestTrialsWithoutNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		line      results.TrialLine
		row, cell string // from the outcome on
	}{
		"of a table":           {results.TrialLine{Throughput: 1000, MeanMillis: 4}, "| - | 1000 | 4.00 | - | - |", ",Succeeded,,1000,4,,,,,,,,,"},
		"of runs":              {results.TrialLine{Throughput: 1000, MeanMillis: 4, P50Millis: 3, P99Millis: 9, Committed: 10}, "| - | 1000 | 4.00 | 9.00 | 0.00 |", ",Succeeded,,1000,4,3,9,0,10,0,0,0,0,0,,"},
		"nothing committed":    {results.TrialLine{Aborted: 3, Errors: 1}, "| - | 0 | - | - | 75.00 |", ",Succeeded,,0,,,,0.75,0,3,1,0,0,0,,"},
		"nothing was answered": {results.TrialLine{}, "| - | 0 | - | - | - |", ",Succeeded,,0,,,,,0,0,0,0,0,0,,"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.line.Name, tc.line.Outcome = "e-0", "Succeeded"
			e := results.Experiment{Name: "e", Trials: []results.TrialLine{tc.line}}
			var page, csv bytes.Buffer
			if err := format.Markdown(&page, e); err != nil {
				t.Fatal(err)
			}
			if err := csvfile.Trials(&csv, e); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page.String(), "| Succeeded "+tc.row) {
				t.Errorf("the table has no %q:\n%s", tc.row, page.String())
			}
			if !strings.Contains(csv.String(), tc.cell) {
				t.Errorf("the CSV has no %q:\n%s", tc.cell, csv.String())
			}
		})
	}
}
