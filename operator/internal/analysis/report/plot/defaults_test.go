package plot_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// swept has three trials at each value of an axis. The argument paper is how many times greater the
// source's throughput is; 0: the source reports none.
func swept(axis string, paper float64, throughput func(x float64) float64, values ...float64) results.Experiment {
	e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: axis}}}
	series := results.ReportedSeries{Name: "s", Metric: "Throughput", Unit: "tx/s", Axis: axis}
	for i, x := range values {
		label := strconv.FormatFloat(x, 'f', -1, 64)
		e.Axes[0].Values = append(e.Axes[0].Values, label)
		series.X, series.Y = append(series.X, label), append(series.Y, paper*throughput(x))
		for k := range 3 {
			share := 1 + 0.02*float64(k)
			e.Trials = append(e.Trials, results.TrialLine{Number: int32(3*i + k), PointIndex: int32(i), Coordinates: map[string]string{axis: label}, Outcome: stats.Succeeded,
				Repetition: int32(k), Committed: 1000, Throughput: share * throughput(x), MeanMillis: share * 10, P99Millis: share * 20})
		}
	}
	if paper > 0 {
		e.Reported = []results.ReportedSeries{series}
	}
	e.Points = stats.Points(e.Trials)
	return e
}

func flat(float64) float64 { return 1000 }

// further lets the source's series reach beyond the measured points.
func further(e results.Experiment, x string, y float64) results.Experiment {
	e.Reported[0].X, e.Reported[0].Y = append(e.Reported[0].X, x), append(e.Reported[0].Y, y)
	return e
}

// The form of a plot follows from the measured values.
func TestPlotsChooseTheirAxes(t *testing.T) {
	for name, tc := range map[string]struct {
		e            results.Experiment
		titles       string
		logX, logY   bool // of the plot of throughput
		bands        int
		inTheCaption string
	}{
		"a load":                   {swept("clients", 0, flat, 1, 2, 3, 4), "Throughput, Mean latency, Latency against throughput", false, false, 2, "3 valid trials of each of 4 points."},
		"a load over two decades":  {swept("clients", 0, flat, 1, 10, 100, 300), "Throughput, Mean latency, Latency against throughput", true, false, 2, "3 valid trials of each of 4 points."},
		"two values far apart":     {swept("clients", 0, flat, 1, 1000), "Throughput, Mean latency, Latency against throughput", false, false, 0, "3 valid trials of each of 2 points."},
		"no load":                  {swept("batch", 0, flat, 1, 2, 3), "Throughput, Mean latency", false, false, 0, "3 valid trials of each of 3 points."},
		"throughput over decades":  {swept("batch", 0, func(x float64) float64 { return 10 * x * x }, 1, 10, 100, 200), "Throughput, Mean latency", true, true, 2, "3 valid trials of each of 4 points."},
		"the paper beside":         {swept("batch", 3, flat, 1, 2, 3, 4), "Throughput, Mean latency", false, false, 2, "Dashed, hollow: the source."},
		"the paper apart":          {swept("batch", 6, flat, 1, 2, 3, 4), "Throughput, Throughput in the paper, Mean latency", false, false, 2, "3 valid trials of each of 4 points."},
		"values that double":       {swept("batch", 0, flat, 1, 2, 4, 8), "Throughput, Mean latency", true, false, 2, "3 valid trials of each of 4 points."},
		"three values that double": {swept("batch", 0, flat, 1, 2, 4), "Throughput, Mean latency", false, false, 0, "3 valid trials of each of 3 points."},
		"the paper's double":       {further(further(further(swept("batch", 9, flat, 1, 16), "2", 9000), "4", 9000), "8", 9000), "Throughput, Throughput in the paper, Mean latency", true, false, 0, "3 valid trials of each of 2 points."},
		"the paper goes further":   {further(swept("batch", 3, flat, 1, 2, 3, 4), "400", 100_000), "Throughput, Mean latency", true, true, 2, "Dashed, hollow: the source."},
		"the paper far below":      {swept("batch", 0.1, flat, 1, 2, 3, 4), "Throughput, Throughput in the paper, Mean latency", false, false, 2, "3 valid trials of each of 4 points."},
	} {
		t.Run(name, func(t *testing.T) {
			pictures, err := plot.Pictures(tc.e)
			if err != nil {
				t.Fatal(err)
			}
			var titles []string
			for _, p := range pictures {
				titles = append(titles, p.Title)
			}
			if got := strings.Join(titles, ", "); got != tc.titles {
				t.Errorf("plots: %s; want %s", got, tc.titles)
			}
			figures, err := plot.Figures(tc.e, plot.FigureOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if f := figures[0]; f.X.Log != tc.logX || f.Y.Log != tc.logY || !strings.Contains(f.Caption, tc.inTheCaption) {
				t.Errorf("the axes are logarithmic: %t, %t; want %t, %t; caption: %s", f.X.Log, f.Y.Log, tc.logX, tc.logY, f.Caption)
			}
			if got := strings.Contains(string(pictures[0].SVG), ">"+tc.e.Axes[0].Name+", logarithmic<"); got != tc.logX {
				t.Errorf("the plot says that its axis is logarithmic: %t", got)
			}
			bands := 0
			for _, p := range pictures {
				bands += strings.Count(string(p.SVG), `fill-opacity="0.2"`)
			}
			if bands != tc.bands {
				t.Errorf("%d bands, want %d", bands, tc.bands)
			}
			linear, err := plot.Figures(tc.e, plot.FigureOptions{Linear: true})
			if err != nil {
				t.Fatal(err)
			}
			if linear[0].X.Log || linear[0].Y.Log {
				t.Error("an axis is logarithmic against the reader's wish")
			}
		})
	}
}

// Once, bars of a twentieth of the paper's length could not be seen. Neither could bars beside one
// that was a thousand times as long.
func TestBarsCanBeSeen(t *testing.T) {
	named := func(paper float64, values ...float64) results.Experiment {
		e := swept("clients", paper, func(x float64) float64 { return values[int(x)] }, func() (xs []float64) {
			for i := range values {
				xs = append(xs, float64(i))
			}
			return xs
		}()...)
		for i, v := range e.Axes[0].Values {
			e.Axes[0].Values[i] = "v" + v
		}
		e.Axes[0].Name = "variant"
		for i := range e.Trials {
			e.Trials[i].Coordinates = map[string]string{"variant": fmt.Sprintf("v%d", e.Trials[i].PointIndex)}
		}
		for i := range e.Reported {
			e.Reported[i].Axis, e.Reported[i].X = "variant", e.Axes[0].Values
		}
		e.Points = stats.Points(e.Trials)
		return e
	}
	for name, tc := range map[string]struct {
		e      results.Experiment
		titles []string
		log    bool
	}{
		"alike":          {named(0, 100, 120, 90), []string{"Throughput"}, false},
		"over decades":   {named(0, 1, 30, 900), []string{"Throughput"}, true},
		"the paper's":    {named(20, 100, 120, 90), []string{"Throughput", "Throughput in the paper"}, false},
		"nothing at one": {named(0, 0, 30, 900), []string{"Throughput"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			figures, err := plot.Figures(tc.e, plot.FigureOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var titles []string
			for _, f := range figures {
				if strings.HasPrefix(f.Title, "Throughput") {
					titles = append(titles, f.Title)
				}
				for _, b := range f.Bars {
					if share := (b.Value - f.X.Min) / (f.X.Max - f.X.Min); !f.X.Log && b.Value > 0 && share < 0.01 {
						t.Errorf("%s: the bar of %s takes %.4f of the axis", f.Title, b.Name, share)
					}
				}
			}
			if !slices.Equal(titles, tc.titles) || figures[0].X.Log != tc.log {
				t.Errorf("figures %q, logarithmic %t; want %q, %t", titles, figures[0].X.Log, tc.titles, tc.log)
			}
		})
	}
}

// searched has a search whose trials meet the objective up to a load of 300.
func searched(t *testing.T) results.Experiment {
	t.Helper()
	spec := v1alpha1.ExperimentSpec{Sweep: []v1alpha1.Axis{{Axis: "rate", Search: &v1alpha1.CapacitySearch{From: 100, To: 1000, Precision: "5%", Trials: 20, Objective: v1alpha1.LoadObjective{MeanLatency: "20ms"}}}}}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	low, high, middle := 290.0, 312.0, 301.0
	e := results.Experiment{Name: "e", Spec: data, Axes: []results.Axis{{Name: "rate", Searched: true}},
		Capacities: []results.Capacity{{Axis: "rate", At: map[string]string{}, Objective: "mean latency at most 20ms", From: 100, To: 1000, Precision: 0.05, Outcome: "Found", Trials: 12, Capacity: &middle, Low: &low, High: &high}}}
	for i, load := range []int64{316, 178, 237, 274, 295, 316, 288, 309, 281, 316, 295, 309} {
		label := strconv.FormatInt(load, 10)
		if !slices.Contains(e.Axes[0].Values, label) {
			e.Axes[0].Values = append(e.Axes[0].Values, label)
		}
		latency := 10.0
		if load > 300 {
			latency = 40
		}
		e.Trials = append(e.Trials, results.TrialLine{Number: int32(i), PointIndex: int32(slices.Index(e.Axes[0].Values, label)), Coordinates: map[string]string{"rate": label}, Outcome: stats.Succeeded,
			Committed: 5000, Offered: 5000, Throughput: float64(load), MeanMillis: latency, P99Millis: latency})
	}
	e.Points = stats.Points(e.Trials)
	return e
}

// Once, a search was drawn as a curve of means over loads, some with a single trial: a zigzag
// without the search's interval.
func TestSearchIsDrawnAsProbability(t *testing.T) {
	e := searched(t)
	pictures, err := plot.Pictures(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(pictures) != 1 || pictures[0].Title != "Capacity" {
		t.Fatalf("%d pictures, the first %q; want one of the capacity", len(pictures), pictures[0].Title)
	}
	svg := string(pictures[0].SVG)
	if got := strings.Count(svg, `fill-opacity="0.55"`); got != len(e.Trials) {
		t.Errorf("%d trials are drawn, want %d", got, len(e.Trials))
	}
	if !strings.Contains(svg, "measured: 301 [290, 312]") {
		t.Errorf("the plot does not say the interval:\n%s", svg)
	}
	figures, err := plot.Figures(e, plot.FigureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	curve := figures[0].Curves[0].Points
	for i := 1; i < len(curve); i++ {
		if curve[i].Y > curve[i-1].Y+1e-9 {
			t.Errorf("the probability rises from %g at %g to %g at %g", curve[i-1].Y, curve[i-1].X, curve[i].Y, curve[i].X)
		}
	}
	half := slices.IndexFunc(curve, func(p plot.FigurePoint) bool { return p.Y < 0.5 })
	if half < 0 || math.Abs(curve[half].X-300) > 15 {
		t.Errorf("the probability is one half at place %d of %v, want about 300", half, curve)
	}
	interval := figures[0].Curves[2].Points[0]
	if interval.XLow != 290 || interval.XHigh != 312 || interval.Y != 0.5 {
		t.Errorf("the interval is %+v", interval)
	}
}

// Once, a bar said 75, and the table below it 75.2.
func TestPlotsAndTablesRoundAlike(t *testing.T) {
	e := reports.WithEverything()
	var page strings.Builder
	if err := format.HTML(&page, e); err != nil {
		t.Fatal(err)
	}
	cells := map[string]bool{}
	for _, m := range regexp.MustCompile(`<td class="number">([0-9.]+)`).FindAllStringSubmatch(page.String(), -1) {
		cells[m[1]] = true
	}
	said := regexp.MustCompile(`<title>([^<]*): [^<]*, ([0-9.]+)</title>`).FindAllStringSubmatch(page.String(), -1)
	if len(said) < 10 {
		t.Fatalf("%d points say their value", len(said))
	}
	for _, m := range said {
		if !cells[m[2]] && !strings.HasSuffix(m[1], "(paper)") { // the source may report points that were not run
			t.Errorf("a point of %s says %s, which no table has", m[1], m[2])
		}
	}
}

// Once, the interval of a mean looked like another curve: as thick, and without ends. Now it is a
// thin line with a stroke across each end that the frame does not cut off.
func TestWhiskersAreNoPieceOfACurve(t *testing.T) {
	e := swept("clients", 0, flat, 1, 2)
	for i := range e.Trials { // the second load varies so much that its interval begins below 0
		if e.Trials[i].PointIndex == 1 {
			e.Trials[i].Throughput = 500 + 500*float64(e.Trials[i].Repetition)
		}
	}
	e.Points = stats.Points(e.Trials)
	pictures, err := plot.Pictures(e)
	if err != nil {
		t.Fatal(err)
	}
	thin := regexp.MustCompile(`<path [^>]*stroke-width="1"[^>]*>`)
	places := regexp.MustCompile(` d="([^"]*)"`)
	for _, p := range pictures {
		var ends []int
		for _, path := range thin.FindAllString(string(p.SVG), -1) {
			ends = append(ends, strings.Count(places.FindStringSubmatch(path)[1], "h7"))
		}
		if p.Title == "Throughput" && !slices.Equal(ends, []int{2, 1}) {
			t.Errorf("whiskers of throughput have %v strokes across standing ends, want 2, and 1 where 0 cuts one off:\n%s", ends, p.SVG)
		}
		if p.Title == "Latency against throughput" && len(ends) != 2 {
			t.Errorf("%d points of latency against throughput have a whisker, want 2", len(ends))
		}
	}
	if !slices.ContainsFunc(pictures, func(p plot.Picture) bool { return p.Title == "Throughput" }) {
		t.Error("there is no picture of throughput")
	}
}
