package document

import (
	"bytes"
	"encoding/csv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// Columns of measurements: a number of every trial, of some, of none.
func TestMeasurementColumns(t *testing.T) {
	exp := builders.Experiment("exp").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Measurements = []v1alpha1.Measurement{
			{Name: "cpu", Query: "sum(cpu)", Over: v1alpha1.OverLast, Unit: "s"}, {Name: "memory", Query: "max(memory)", Over: v1alpha1.OverMaximum},
		}
	}).Obj()
	axes := []results.Axis{{Name: "variant", Values: []string{"all", "some", "none", "unrun"}}}
	x, y := 10.0, 14.0
	line := func(n, point int32, cpu *float64) results.TrialLine {
		m := results.Measurement{Name: "cpu", Value: cpu}
		if cpu == nil {
			m.Reason = "nothing was scraped"
		}
		return results.TrialLine{Name: "t", Number: n, PointIndex: point, Coordinates: map[string]string{"variant": axes[0].Values[point]}, Outcome: "Succeeded",
			Committed: 1, Throughput: 1, MeanMillis: 1, Measurements: []results.Measurement{m, {Name: "memory", Value: &x}}}
	}
	e := model.Build(exp, nil, axes, []results.TrialLine{line(0, 0, &x), line(1, 0, &y), line(2, 1, &x), line(3, 1, nil), line(4, 2, nil), line(5, 2, nil)}, time.Unix(0, 0))

	table := pointsTable(e)
	last := len(table.Columns) - 2
	if got := table.Columns[last].Name; got != "cpu s" {
		t.Errorf("the column is called %q", got)
	}
	var cells []string
	for _, row := range table.Rows {
		cells = append(cells, row[last])
	}
	if cells[0] != "12.0 (10.0 to 14.0)" {
		t.Errorf("both trials have it: %q", cells[0])
	}
	if diff := cmp.Diff([]string{"10.0 (n=1)", "NotMeasured", "-"}, cells[1:]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}

	var out bytes.Buffer
	if err := csvfile.Points(&out, e); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	from := len(rows[0]) - 14
	if diff := cmp.Diff([]string{"cpu_n", "cpu_mean_s", "cpu_stddev_s"}, rows[0][from:from+3]); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	for i, want := range [][]string{{"2", "12"}, {"1", "10"}, {"0", "NotMeasured"}, {"0", ""}} {
		if diff := cmp.Diff(want, rows[i+1][from:from+2]); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}
}

// The table of measurements explains each number.
func TestMeasurementTable(t *testing.T) {
	table := measurementTable(results.Experiment{Measurements: []results.MeasurementColumn{
		{Name: "cpu", Unit: "s", Query: "sum( cpu )", Over: "Last"},
		{Name: "perRead", Counter: "micros", Per: "reads"},
		{Name: "written", Unit: "MiB", Use: &results.Use{Resource: "DiskWritten", Part: "replica", Over: "Total"}},
		{Name: "data", Unit: "B", Use: &results.Use{Resource: "VolumeSize", Over: "End", Volume: "data", Pods: results.PodsLargest}},
	}})
	want := [][]string{
		{"cpu", "s", "Last", "sum( cpu )"},
		{"perRead", "", "-", "micros / reads"},
		{"written", "MiB", "Total", "DiskWritten, sum of all replicas"},
		{"data", "B", "End", "VolumeSize data, largest of all pods"},
	}
	if diff := cmp.Diff(want, table.Rows); diff != "" {
		t.Errorf("the rows (-want +got):\n%s", diff)
	}
}
