package csvfile_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// Where the lines of the trials did not fit into the results, there is no median, and the rest is
// as before.
func TestNoMedianWithoutTheTrials(t *testing.T) {
	e := reports.Build()
	e.Trials = e.Trials[:1]
	var table bytes.Buffer
	if err := csvfile.Points(&table, e); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range rows[0] {
		for _, row := range rows[1:] {
			if strings.Contains(name, "_median") && row[i] != "" {
				t.Errorf("point %s has %s = %s, though of its trials one at most is there", row[0], name, row[i])
			}
			if name == "throughput_mean_tx_s" && row[i] == "" {
				t.Errorf("point %s has no mean", row[0])
			}
		}
	}
}
