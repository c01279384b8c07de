package plot_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/analysis/report/raster"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// variants is an experiment without an axis of numbers: three variants in two networks.
func variants() results.Experiment {
	e := results.Experiment{
		Name:     "variants",
		Axes:     []results.Axis{{Name: "network", Values: []string{"lan", "continental"}}, {Name: "variant", Values: []string{"ideal", "fast path & a crash", "no <fast> path"}}},
		Reported: []results.ReportedSeries{{Metric: "Throughput", Unit: "ktx/s", Axis: "variant", At: map[string]string{"network": "lan"}, X: []string{"ideal", "no <fast> path"}, Y: []float64{1.1, 0.9}}},
	}
	for i, network := range e.Axes[0].Values {
		for k, variant := range e.Axes[1].Values {
			base := 1000 - 400*float64(i) - 100*float64(k)
			at := map[string]string{"network": network, "variant": variant}
			p := results.PointResult{Index: int32(len(e.Points)), Coordinates: at, Valid: 3, Metrics: map[string]results.Aggregate{}}
			of := map[string][]float64{}
			for n, by := range []float64{0.95, 1, 1.02} {
				line := results.TrialLine{Name: fmt.Sprintf("t-%d-%d", p.Index, n), PointIndex: p.Index, Coordinates: at, Outcome: stats.Succeeded, Throughput: base * by, MeanMillis: 5000 / base / by, P99Millis: 9000 / base / by, Committed: 1000}
				e.Trials = append(e.Trials, line)
				for _, metric := range []string{stats.Throughput, stats.MeanLatency, stats.P99Latency} {
					of[metric] = append(of[metric], stats.Of(line, metric))
				}
			}
			for metric, values := range of {
				p.Metrics[metric] = stats.Aggregate(values)
			}
			e.Points = append(e.Points, p)
		}
	}
	return e
}

// Once, named variants had no picture at all: curves need an axis of numbers.
func TestBarsOfNamedVariants(t *testing.T) {
	pictures, err := plot.Pictures(variants())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pictures {
		names = append(names, p.Name)
	}
	if want := "bars-01-throughput bars-02-mean-latency bars-03-99th-percentile-of-latency"; strings.Join(names, " ") != want {
		t.Fatalf("pictures %q, want %s", names, want)
	}
	const golden = "testdata/bars.svg"
	if *update {
		if err := os.WriteFile(golden, pictures[0].SVG, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if !bytes.Equal(want, pictures[0].SVG) {
		t.Errorf("%s is not what the report draws now; run the test with -update if that is meant", golden)
	}
	svg := string(pictures[0].SVG)
	for _, text := range []string{"network=lan", "network=continental", ">ideal<", "no &lt;fast&gt; path", "lan, ideal: 990, interval", "the paper&#39;s 1100", ">594<"} {
		if !strings.Contains(svg, text) {
			t.Errorf("the bars do not say %q", text)
		}
	}
	if n := strings.Count(svg, "(paper): "); n != 2 {
		t.Errorf("the paper has %d dots, want 2: it reports two of six points", n)
	}
	if _, err := raster.PNG(pictures[0].SVG, 1); err != nil {
		t.Errorf("as a PNG: %v", err)
	}
	var page bytes.Buffer
	if err := format.HTML(&page, variants()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "<figure>"); n != 1+3 || !strings.Contains(page.String(), ">Variants</h2>") {
		t.Errorf("the page has %d figures, want the headline and 3 under Variants", n)
	}
}

// Once, the first screen showed throughput over time, though the claims compared the median latency
// of three variants.
func TestTheHeadlineShowsWhatClaimsCompare(t *testing.T) {
	for name, tc := range map[string]struct{ expr, verdict, want string }{
		"a metric of points":        {"p50_latency(variant='ideal') < p50_latency(variant='no <fast> path')", "Holds", "Median of latency"},
		"one that bars always show": {"throughput(variant='ideal') > 10", "Fails", "Throughput"},
		"how a fault was survived":  {"time_to_detect(fault='crash') < 1s", "Holds", "Over time, network=lan, variant=ideal"},
		"nothing: it was skipped":   {"p50_latency(variant='ideal') < 5ms", "", "Over time, network=lan, variant=ideal"},
	} {
		t.Run(name, func(t *testing.T) {
			e := variants()
			e.Reported = nil
			for i, p := range e.Points {
				p.Metrics[stats.P50Latency] = stats.Aggregate([]float64{1, 2, float64(i)})
			}
			e.Series = []results.PointSeries{{Coordinates: e.Points[0].Coordinates, Trials: 3, IntervalMillis: 500, Throughput: []float64{1, 2}, ThroughputMin: []float64{1, 2}, ThroughputMax: []float64{1, 2}, Latency: []float64{3, 4}, Committed: []int64{1, 1}}}
			c := results.ClaimResult{Name: "c", Expr: tc.expr, Verdict: tc.verdict}
			if tc.verdict != "" {
				c.Terms = []results.ClaimTerm{{Outcome: "True"}}
			}
			e.Claims = []results.ClaimResult{c}
			drawn, _ := plot.Headline(e)
			if len(drawn) != 1 || drawn[0].Title != tc.want {
				t.Errorf("the headline is %v, want %s", titles(drawn), tc.want)
			}
		})
	}
}

func titles(drawn []plot.Drawn) (all []string) {
	for _, d := range drawn {
		all = append(all, d.Title)
	}
	return all
}

// Curves show an axis of numbers, and bars beside them would repeat it. If there are very many
// points, the first are drawn, and the page says so. Once, bars of 150 tx/s beside the paper's
// 21,919 could not be seen.
func TestPaperOfAnotherOrderHasItsOwnBars(t *testing.T) {
	for name, tc := range map[string]struct {
		paper float64 // ktx/s; 1 is measured
		apart bool
	}{"a hundred times as much": {100, true}, "a hundredth": {0.01, true}, "four times as much": {4, false}, "six times as much": {6, true}} {
		t.Run(name, func(t *testing.T) {
			e := variants()
			e.Reported[0].Y = []float64{tc.paper, 0.9 * tc.paper}
			pictures, err := plot.Pictures(e)
			if err != nil {
				t.Fatal(err)
			}
			if apart := pictures[1].Name == "bars-02-throughput-in-the-paper"; apart != tc.apart {
				t.Fatalf("the second plot is %s", pictures[1].Name)
			}
			if beside := strings.Contains(string(pictures[0].SVG), "the paper&#39;s"); beside == tc.apart {
				t.Errorf("the measured bars have the paper's beside them: %t", beside)
			}
			if want := fmt.Sprintf(", ideal: %g", 1000*tc.paper); tc.apart && !strings.Contains(string(pictures[1].SVG), want) {
				t.Errorf("the paper's bars do not say %q: %s", want, pictures[1].SVG)
			}
		})
	}
}

// Once, bars said 75, and the table below them 75.2.
func TestBarsAndTablesRoundAlike(t *testing.T) {
	e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "variant", Values: []string{"a", "b"}}}}
	for i, trials := range [][]float64{{70, 75.2, 80.4}, {9.3, 9.8, 10.3}} {
		at := map[string]string{"variant": e.Axes[0].Values[i]}
		e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: at, Valid: 3, Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate(trials)}})
	}
	pictures, err := plot.Pictures(e)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := format.Text(&text, e, format.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"75.2", "9.80"} {
		if !strings.Contains(text.String(), want+" (") || !strings.Contains(string(pictures[0].SVG), ">"+want+"<") {
			t.Errorf("the table or the bars do not say %s:\n%s", want, text.String())
		}
	}
}

func TestWhereBarsAreDrawn(t *testing.T) {
	for _, p := range must(plot.Pictures(reports.WithEverything())) {
		if strings.HasPrefix(p.Name, "bars") {
			t.Errorf("%s beside curves", p.Name)
		}
	}
	e := variants()
	e.Points = e.Points[:1]
	if p := must(plot.Pictures(e)); len(p) > 0 {
		t.Errorf("%d pictures of a single point", len(p))
	}
	e = variants()
	for len(e.Points) < 50 {
		e.Points = append(e.Points, e.Points[0])
	}
	var page bytes.Buffer
	if err := format.HTML(&page, e); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "The first 40 of 50 points are drawn.") {
		t.Error("the page does not say that points are missing")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
