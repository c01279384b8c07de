package plot_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/analysis/report/raster"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

var update = flag.Bool("update", false, "write the golden files")

// breakdown is an experiment that measures the time of an operation by its steps: the numbers are
// those of HATS, Exp#6, and its trials deviate from them.
func breakdown() results.Experiment {
	e := results.Experiment{
		Name: "breakdown", Axes: []results.Axis{{Name: "workload", Values: []string{"a", "c"}}, {Name: "scheme", Values: []string{"hats", "depart-5.0", "mlsm"}}},
		Figures: []results.Figure{{Name: "steps", Title: "Time of an operation", Stack: &results.Stack{}}},
	}
	parts := []string{"WAL", "writeMemTable", "flushing", "compaction", "selection", "readMemTable", "caches", "disk"}
	paper := map[string][]float64{
		"a hats": {8, 11, 7, 38, 183, 9, 18, 802}, "a depart-5.0": {8, 12, 6, 56, 1013, 10, 28, 1389}, "a mlsm": {17, 11, 7, 202, 245, 9, 59, 2706},
		"c hats": {0, 0, 0, 0, 90, 1, 1, 96}, "c depart-5.0": {0, 0, 0, 0, 113, 1, 0, 321}, "c mlsm": {0, 0, 0, 0, 0, 1, 4, 274},
	}
	e.Figures[0].Stack.Parts = parts
	for _, part := range parts {
		e.Measurements = append(e.Measurements, results.MeasurementColumn{Name: part, Unit: "us", Counter: part + "Micros", Per: "operations"})
	}
	for _, workload := range e.Axes[0].Values {
		for _, scheme := range e.Axes[1].Values {
			at := map[string]string{"workload": workload, "scheme": scheme}
			for n, by := range []float64{0.8, 0.9, 0.97} {
				l := results.TrialLine{Name: fmt.Sprintf("t-%d", len(e.Trials)), Number: int32(len(e.Trials)), PointIndex: int32(len(e.Trials) / 3), Repetition: int32(n), Coordinates: at, Outcome: stats.Succeeded,
					Committed: 1000, Throughput: 1000, MeanMillis: 1, P50Millis: 1, P99Millis: 2}
				for k, part := range parts {
					v := paper[workload+" "+scheme][k] * by
					l.Measurements = append(l.Measurements, results.Measurement{Name: part, Value: &v})
				}
				e.Trials = append(e.Trials, l)
			}
		}
		for k, part := range parts {
			s := results.ReportedSeries{Name: workload + "-" + strings.ToLower(part), Metric: "Measurement", Measurement: part, Unit: "us", Axis: "scheme", At: map[string]string{"workload": workload}}
			for _, scheme := range []string{"hats", "mlsm"} {
				s.X, s.Y = append(s.X, scheme), append(s.Y, paper[workload+" "+scheme][k])
			}
			e.Reported = append(e.Reported, s)
		}
	}
	e.Points = stats.Points(e.Trials)
	return e
}

// golden compares a picture with a file, which -update writes, and sees that it can be a PNG.
func golden(t *testing.T, name string, svg []byte) {
	t.Helper()
	path := "testdata/" + name + ".svg"
	if *update {
		if err := os.WriteFile(path, svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if !bytes.Equal(want, svg) {
		t.Errorf("%s is not what the report draws now; run the test with -update if that is meant", path)
	}
	if _, err := raster.PNG(svg, 1); err != nil {
		t.Errorf("%s as a PNG: %v", name, err)
	}
}

// picture returns the picture of that name.
func picture(t *testing.T, e results.Experiment, name string) []byte {
	t.Helper()
	var names []string
	for _, p := range must(plot.Pictures(e)) {
		if p.Name == name {
			return p.SVG
		}
		names = append(names, p.Name)
	}
	t.Fatalf("there is no picture %s, only %s", name, strings.Join(names, ", "))
	return nil
}

func contains(t *testing.T, what, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q", what, w)
		}
	}
}

func TestStackedBars(t *testing.T) {
	svg := picture(t, breakdown(), "figure-01-steps")
	golden(t, "stack", svg)
	contains(t, "the picture", string(svg), "total (us)", ">n=3<", "workload=a, hats: 958, interval 729 to 1186", "disk 714", "the paper&#39;s 1076", ">readMemTable<")
	if n := strings.Count(string(svg), ">paper</text>"); n != 5 { // with the legend's
		t.Errorf("%d texts are of the paper, want 5: it reports four of six points", n)
	}
	var page bytes.Buffer
	if err := format.HTML(&page, breakdown()); err != nil {
		t.Fatal(err)
	}
	contains(t, "the page", page.String(), ">Time of an operation</h2>", "with warm-up and cool-down", "<th scope=\"col\" class=\"number\">disk us</th>")
	live := plot.CurvePlots(breakdown())
	if last := live[len(live)-1]; last.Title != "Time of an operation" {
		t.Errorf("the live page ends with %s", last.Title)
	}
}

// A trial without one of its parts would make the total too small.
func TestAStackIsOfTrialsThatHaveAllParts(t *testing.T) {
	e := breakdown()
	e.Trials[0].Measurements[2].Value = nil
	below := -598.0 // as HATS prints: it computes a part as a difference
	e.Trials[4].Measurements[4].Value = &below
	var text bytes.Buffer
	if err := format.Text(&text, e, format.TextOptions{Width: 1000}); err != nil {
		t.Fatal(err)
	}
	contains(t, "the report", text.String(), "since not all of WAL, writeMemTable, flushing, compaction, selection, readMemTable, caches, disk were measured: "+
		"1 of 3 valid trials at workload=a, scheme=hats; 1 of 3 valid trials at workload=a, scheme=depart-5.0.")
	contains(t, "the picture", string(picture(t, e, "figure-01-steps")), ">n=2<", "workload=a, hats: 1006, interval")
	for i := range e.Trials {
		e.Trials[i].Measurements = nil
	}
	for _, p := range must(plot.Pictures(e)) {
		if strings.HasPrefix(p.Name, "figure") {
			t.Errorf("%s has nothing to draw", p.Name)
		}
	}
}
