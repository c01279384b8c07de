package document_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// curvesOver is an experiment with a point for each value of an axis and each variant: throughput
// in tx/s and mean latency in ms, of one trial. The paper reports the curve of the first variant as
// 100 tx/s at 1 ms, 200 at 1.5 and 250 at 3, for 1, 2 and 4 of the axis.
func curvesOver(axis string, values []string, variants map[string][][2]float64) results.Experiment {
	e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: axis, Values: values}, {Name: "variant", Values: []string{"base"}}}}
	if len(variants) > 1 {
		e.Axes[1].Values = append(e.Axes[1].Values, "other")
	}
	for _, name := range e.Axes[1].Values {
		for i, xy := range variants[name] {
			e.Points = append(e.Points, results.PointResult{
				Index: int32(len(e.Points)), Valid: 1, Coordinates: map[string]string{axis: values[i], "variant": name},
				Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate(xy[:1]), stats.MeanLatency: stats.Aggregate(xy[1:])},
			})
		}
	}
	x := []string{"1", "2", "4"}
	e.Reported = []results.ReportedSeries{
		{Name: "t", Metric: "Throughput", Unit: "ktx/s", At: map[string]string{"variant": "base"}, Axis: axis, X: x, Y: []float64{0.1, 0.2, 0.25}},
		{Name: "l", Metric: "MeanLatency", Unit: "us", At: map[string]string{"variant": "base"}, Axis: axis, X: x, Y: []float64{1000, 1500, 3000}},
	}
	return e
}

// saturating grows to 190 tx/s at twice the least latency, and to 200 at thrice that; steep does so
// at half of it and never leaves the bound.
var (
	saturating = [][2]float64{{100, 2}, {190, 4}, {200, 6}, {195, 9}}
	steep      = [][2]float64{{50, 2}, {90, 2.5}, {95, 3}, {100, 3.5}}
)

func TestKneesAndPeaks(t *testing.T) {
	values := []string{"1", "2", "4", "8"}
	e := curvesOver("clients", values, map[string][][2]float64{"base": saturating, "other": steep})
	text := reports.Section(t, e, "Knees and peaks")
	for _, want := range []string{
		"| curve | points | knee tx/s | ms | at clients | bound ms | peak tx/s | ms | at clients | knee / paper | peak / paper |",
		"| base | 4 | 190 | 4.00 | 2 | 4.00 | 200 | 6.00 | 4 | 0.950 | 0.800 |",
		"| base (paper) | 3 | 200 | 1.50 | 2 | 2.00 | 250 | 3.00 | 4 | - | - |",
		"| other | 4 | ≥ 100 | 3.50 | 8 | 4.00 | 100 | 3.50 | 8 | - | - |",
		"Jain's usable capacity",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "ustained") {
		t.Errorf("a closed loop has a sustained load:\n%s", text)
	}
	var page bytes.Buffer
	if err := format.HTML(&page, e); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "M-8.5,0C"); n != 2*(3+1) {
		t.Errorf("%d knees are marked, want that of each of 3 curves and of the legend, in the headline and in the plot", n)
	}
	for _, want := range []string{">Knees and peaks</h2>", "A ring marks the knee", "; knee 4.00 at 190."} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Two points have no knee, but a peak. A point without a valid trial has neither, and one point is
// no curve.
func TestShortCurvesHaveNoKnee(t *testing.T) {
	e := curvesOver("clients", []string{"1", "2", "4"}, map[string][][2]float64{"base": saturating[:3]})
	e.Points[2].Metrics, e.Reported = map[string]results.Aggregate{}, nil
	if text, want := reports.Section(t, e, "Knees and peaks"), "| measured | 2 | - | - | - | - | 190 | 4.00 | 2 |\n"; !strings.Contains(text, want) {
		t.Errorf("the report does not say %q:\n%s", want, text)
	}
	e.Points[1].Metrics = map[string]results.Aggregate{}
	if text := reports.Section(t, e, "Knees and peaks"); text != "" {
		t.Errorf("a single point is taken for a curve:\n%s", text)
	}
}

func TestSustainedLoad(t *testing.T) {
	values := []string{"100", "200", "300", "400"}
	for name, tc := range map[string]struct {
		throughput []float64
		want, note string
	}{
		"to the second":    {[]float64{100, 196, 260, 270}, "200", "Not sustained: measured at rate = 300, 400."},
		"all":              {[]float64{100, 196, 295, 390}, "400 or more", ""},
		"none":             {[]float64{90, 150, 150, 150}, "less than 100", "Not sustained: measured at rate = 100, 200, 300, 400."},
		"chance in one":    {[]float64{100, 150, 298, 300}, "100", "Not sustained: measured at rate = 200, 400."},
		"a curve of three": {[]float64{100, 200, 300}, "300 or more", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var points [][2]float64
			for i, x := range tc.throughput {
				points = append(points, [2]float64{x, 1 + float64(i)})
			}
			e := curvesOver("rate", values, map[string][][2]float64{"base": points})
			e.Reported = nil
			text := reports.Section(t, e, "Knees and peaks")
			if want := " | " + tc.want + " |\n"; !strings.Contains(text, want) || !strings.Contains(text, "within 5% of the rate") {
				t.Errorf("the report does not say %q:\n%s", want, text)
			}
			if !strings.Contains(text, tc.note) || strings.Contains(text, "Not sustained") != (tc.note != "") {
				t.Errorf("the report does not say %q:\n%s", tc.note, text)
			}
		})
	}
}

// Along an axis that is no load, such as the number of faults, latency over throughput has no knee.
// Named points that set the number of clients are a load.
func TestOnlyLoadsHaveKnees(t *testing.T) {
	values := []string{"1", "2", "4", "8"}
	along := func(axis string, clients bool) results.Experiment {
		e := curvesOver(axis, values, map[string][][2]float64{"base": saturating})
		point := `{"name":"%s"}`
		if clients {
			point = `{"name":"%s","clients":7}`
		}
		var points []string
		for _, v := range values {
			points = append(points, fmt.Sprintf(point, v))
		}
		e.Spec = json.RawMessage(`{"sweep":[{"axis":"` + axis + `","points":[` + strings.Join(points, ",") + `]}]}`)
		return e
	}
	for name, tc := range map[string]struct {
		e    results.Experiment
		want bool
	}{
		"clients": {along("clients", false), true}, "f": {along("f", false), false}, "named points without clients": {along("step", false), false}, "named points with clients": {along("step", true), true},
	} {
		if got := reports.Section(t, tc.e, "Knees and peaks") != ""; got != tc.want {
			t.Errorf("%s: there is a table of knees: %t", name, got)
		}
		var page bytes.Buffer
		if err := format.HTML(&page, tc.e); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(page.String(), "M-8.5,0C"); got != tc.want {
			t.Errorf("%s: a knee is marked: %t", name, got)
		}
	}
}

// Once, the nominal rate counted as the offered load. A system that keeps up did not sustain 10
// requests a second if chance sent only 187 of 200. And a system at 104% of its capacity did.
func TestSustainedThroughputIsJudgedByOfferedLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		offered, committed int64
		want               string
	}{
		"fewer came, all were served": {offered: 187, committed: 187, want: "| 10 or more |"},
		"as many as asked for":        {offered: 200, committed: 200, want: "| 10 or more |"},
		"a queue that grows":          {offered: 200, committed: 192, want: "| 5 |"},
		"collapse":                    {offered: 200, committed: 100, want: "| 5 |"},
	} {
		e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "rate", Values: []string{"1", "5", "10"}}}}
		for point, rate := range e.Axes[0].Values {
			for k := range 3 {
				offered, committed := int64(20*[]int{1, 5, 10}[point]), int64(20*[]int{1, 5, 10}[point])
				if point == 2 {
					offered, committed = tc.offered+int64(k), tc.committed+int64(k)
				}
				e.Trials = append(e.Trials, results.TrialLine{Number: int32(len(e.Trials)), PointIndex: int32(point), Coordinates: map[string]string{"rate": rate}, Repetition: int32(k),
					Outcome: stats.Succeeded, Offered: offered, Committed: committed, Throughput: float64(committed) / 20, MeanMillis: 10, P99Millis: 30})
			}
		}
		e.Points = stats.Points(e.Trials)
		var page bytes.Buffer
		if err := format.Markdown(&page, e); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), tc.want) {
			t.Errorf("%s: want %q:\n%s", name, tc.want, page.String())
		}
	}
}
