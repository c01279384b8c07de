package document_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
)

// Once, a sweep with other loads than the paper's had a dash in most rows of the column "paper".
func TestPaperBetweenItsPoints(t *testing.T) {
	e := results.Experiment{
		Name: "e", Planned: 4, Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2", "4", "8"}}},
		Reported: []results.ReportedSeries{{Name: "curve", Metric: "Throughput", Unit: "ktx/s", Axis: "clients", X: []string{"4", "1"}, Y: []float64{4, 1}}},
	}
	for i, clients := range []int{1, 2, 4, 8} {
		e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: map[string]string{"clients": strconv.Itoa(clients)}, Valid: 1,
			Metrics: map[string]results.Aggregate{"throughput": {N: 1, Mean: 1000, Min: 1000, Max: 1000}}})
	}
	var b bytes.Buffer
	if err := format.Markdown(&b, e); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(b.String()) {
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "| \n"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if _, seen := rows[cells[0]]; !seen && len(cells) > 4 {
			rows[cells[0]] = cells[3:5]
		}
	}
	for clients, want := range map[string][2]string{"1": {"1000", "1.00"}, "2": {"≈2000", "≈0.500"}, "4": {"4000", "0.250"}, "8": {"-", "-"}} {
		if got := rows[clients]; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("clients=%s: paper and ratio are %v, want %v", clients, got, want)
		}
	}
	if !strings.Contains(b.String(), "no verdict uses it") {
		t.Errorf("the report does not say what ≈ means:\n%s", b.String())
	}
}
