package plot_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/analysis/report/raster"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/reports"
)

func TestPicturesStandAlone(t *testing.T) {
	pictures, err := plot.Pictures(reports.WithEverything())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	seen := map[string]bool{}
	for _, p := range pictures {
		names = append(names, p.Name)
		if seen[p.Name] || strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("the name %q is there twice or holds more than letters, digits and hyphens", p.Name)
		}
		seen[p.Name] = true
		svg := string(p.SVG)
		if err := xml.Unmarshal(p.SVG, &struct{}{}); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		// No browser draws a file with a character reference after its root. Go's parser accepts
		// one.
		if _, after, _ := strings.Cut(svg, "</svg>"); strings.TrimSpace(after) != "" {
			t.Errorf("%s has %q after its root", p.Name, after)
		}
		for _, want := range []string{`xmlns="http://www.w3.org/2000/svg"`, ` width="640" height="`, `role="img"`, "<title id=", "<desc id=", `fill="#fff"`, "font-family="} {
			if !strings.Contains(svg, want) {
				t.Errorf("%s has no %s", p.Name, want)
			}
		}
		for _, not := range []string{"class=", "var(", "currentColor", "<style", `=""`, "system-ui"} {
			if strings.Contains(svg, not) {
				t.Errorf("%s needs more than itself: it has %s", p.Name, not)
			}
		}
		b, err := raster.PNG(p.SVG, 2)
		if err != nil {
			t.Errorf("%s as PNG: %v", p.Name, err)
			continue
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil || img.Bounds().Dx() != 1280 {
			t.Errorf("%s as PNG: %v, %v wide", p.Name, err, img.Bounds().Dx())
		}
	}
	want := "curve-01-throughput curve-02-mean-latency curve-03-latency-against-throughput time-01-clients-5-variant-failure-fp " +
		"time-02-clients-5-variant-failure-fp-mean-latency-of-each-trial cdf-01-latency-clients-5 cdf-02-latency-clients-50"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("pictures: %s\nwant: %s", got, want)
	}
}

// Once, more variants than can be told apart left out all three plots without a note. Now they get
// plots of eight variants each. If a page cannot hold all plots, it names the other variants.
func TestManyVariants(t *testing.T) {
	with := func(variants int) results.Experiment {
		e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2", "4"}}, {Name: "variant"}}}
		for v := range variants {
			name := fmt.Sprintf("v%d", v)
			e.Axes[1].Values = append(e.Axes[1].Values, name)
			for i, clients := range e.Axes[0].Values {
				e.Points = append(e.Points, results.PointResult{
					Index: int32(len(e.Points)), Valid: 1, Coordinates: map[string]string{"clients": clients, "variant": name},
					Metrics: map[string]results.Aggregate{"throughput": {N: 1, Mean: float64(100 * (i + 1))}, "meanLatency": {N: 1, Mean: float64(i + 1)}},
				})
			}
		}
		return e
	}
	for _, tc := range []struct {
		variants, plots int
		title, note     string
	}{
		{8, 3, "Throughput", ""}, {9, 6, "Throughput (variants 1 to 5 of 9)", ""}, {20, 9, "Latency against throughput (variants 15 to 20 of 20)", ""},
		{40, 12, "Mean latency (variants 25 to 32 of 40)", "The first 32 of 40 variants are drawn."},
	} {
		e := with(tc.variants)
		pictures, err := plot.Pictures(e)
		if err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if err := format.HTML(&page, e); err != nil {
			t.Fatal(err)
		}
		curves, drawn := 0, min(tc.variants, 32)
		for _, p := range pictures {
			curves += strings.Count(string(p.SVG), "v"+strconv.Itoa(drawn-1)+"</text>")
		}
		if len(pictures) != tc.plots || curves != 3 {
			t.Errorf("%d variants: %d plots, want %d; the last that is drawn is in %d, want 3", tc.variants, len(pictures), tc.plots, curves)
		}
		for _, want := range []string{"<figcaption><b>" + tc.title + "</b>", tc.note} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%d variants: the page does not say %q", tc.variants, want)
			}
		}
		if strings.Contains(page.String(), "are drawn.") != (tc.note != "") {
			t.Errorf("%d variants: the page says that some are not drawn", tc.variants)
		}
	}
}

// A curve without a name is called measured. Names that are too long for two columns get one
// column.
func TestLegends(t *testing.T) {
	svg := func(variant string) string {
		e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2"}}}}
		for i, clients := range e.Axes[0].Values {
			e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: map[string]string{"clients": clients}, Metrics: map[string]results.Aggregate{"throughput": {N: 1, Mean: 1}}})
		}
		if variant != "" {
			e.Axes = append(e.Axes, results.Axis{Name: "variant", Values: []string{variant, variant + "2"}})
			e.Points[0].Coordinates["variant"], e.Points[1].Coordinates["variant"] = variant, variant+"2"
		}
		pictures, err := plot.Pictures(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(pictures[0].SVG)
	}
	if got := svg(""); !strings.Contains(got, ">measured</text>") {
		t.Errorf("the only curve has no name:\n%s", got)
	}
	long := strings.Repeat("x", 39)
	for variant, want := range map[string][]string{"short": {`x="82.0" y="404.0"`, `x="382.0" y="404.0"`}, long: {`x="82.0" y="404.0"`, `x="82.0" y="422.0"`}} {
		for _, place := range want {
			if got := svg(variant); !strings.Contains(got, place) {
				t.Errorf("no name of %s is at %s:\n%s", variant, place, got)
			}
		}
	}
}

// Once, if the greatest value of an axis with a valid trial was 0, places in the frame were 0/0,
// and no picture could be made. Values below 0 were all drawn at 0.
func TestAxesWithoutValuesAboveZero(t *testing.T) {
	for name, tc := range map[string]struct {
		values     []string // of the axis; the last one has no valid trial
		throughput float64
		dots       []string // where the points of the plot of throughput are
		labels     []string // of the axis
	}{
		"only 0":            {[]string{"0", "1"}, 100, []string{"70.0"}, []string{"70.0 0", "620.0 1"}},
		"nothing committed": {[]string{"0", "1", "2"}, 0, []string{"70.0", "620.0"}, []string{"70.0 0", "180.0 0.2", "620.0 1"}},
		"both sides of 0":   {[]string{"-20", "0", "30", "40"}, 100, []string{"70.0", "290.0", "620.0"}, []string{"70.0 -20", "290.0 0", "620.0 30"}},
		"below 0 alone":     {[]string{"-0.3", "-0.1", "1"}, 100, []string{"70.0", "436.7"}, []string{"70.0 -0.3", "436.7 -0.1", "620.0 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "skew", Values: tc.values}}}
			for i, v := range tc.values {
				p := results.PointResult{Index: int32(i), Coordinates: map[string]string{"skew": v}, Metrics: map[string]results.Aggregate{}}
				if i < len(tc.values)-1 {
					p.Metrics = map[string]results.Aggregate{"throughput": {N: 1, Mean: tc.throughput}, "meanLatency": {N: 1, Mean: 5}}
				}
				e.Points = append(e.Points, p)
			}
			pictures, err := plot.Pictures(e)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pictures {
				if _, err := raster.PNG(p.SVG, 1); err != nil || bytes.Contains(p.SVG, []byte("NaN")) {
					t.Errorf("%s has a place that is none (%v):\n%s", p.Name, err, p.SVG)
				}
			}
			var dots, labels []string
			for _, m := range regexp.MustCompile(`translate\((\d+\.\d),[\d.]+\)[^>]*><title>`).FindAllSubmatch(pictures[0].SVG, -1) {
				dots = append(dots, string(m[1]))
			}
			for _, m := range regexp.MustCompile(`<text x="([\d.]+)" y="368.0"[^>]*>([^<]*)</text>`).FindAllSubmatch(pictures[0].SVG, -1) {
				labels = append(labels, string(m[1])+" "+string(m[2]))
			}
			if diff := cmp.Diff(tc.dots, dots); diff != "" {
				t.Errorf("points are at (-want +got):\n%s\n%s", diff, pictures[0].SVG)
			}
			for _, want := range tc.labels {
				if !slices.Contains(labels, want) {
					t.Errorf("labels are %q, want also %q", labels, want)
				}
			}
		})
	}
}

// luminance as WCAG 2.2 defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 4 {
		hex = "#" + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:3], 2) + strings.Repeat(hex[3:4], 2)
	}
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// Curves stand out from the page, light, dark and printed, with the contrast that WCAG asks of
// graphics (3:1), and text with that of text (4.5:1).
func TestContrast(t *testing.T) {
	var page bytes.Buffer
	if err := format.HTML(&page, reports.Build()); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`:root \{[^}]*\}`).FindAllString(page.String(), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of colours, want those of light, dark and print", len(blocks))
	}
	for _, block := range blocks {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z0-9]+): (#[0-9a-f]{3,6})\b`).FindAllStringSubmatch(block, -1) {
			colors[m[1]] = m[2]
		}
		paper := luminance(t, colors["paper"])
		least := map[string]float64{"ink": 4.5, "soft": 4.5, "good": 4.5, "bad": 4.5, "open": 4.5, "mark": 3}
		for i := range 8 {
			least[fmt.Sprintf("c%d", i)] = 3
		}
		for name, want := range least {
			if colors[name] == "" {
				t.Errorf("no colour %s in %s", name, block)
				continue
			}
			l := luminance(t, colors[name])
			if ratio := (max(l, paper) + 0.05) / (min(l, paper) + 0.05); ratio < want {
				t.Errorf("%s (%s) has a contrast of %.2f with %s, want %.1f", name, colors[name], ratio, colors["paper"], want)
			}
		}
	}
}

// Once, bars meant the minimum and the maximum of up to four trials, and the interval of five
// trials or more. So a point with fewer trials looked more precise. Now bars are always the
// interval, and trials are dots.
func TestPlotsShowIntervalAndTrials(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 8} {
		e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"5", "50"}}}}
		for point, clients := range e.Axes[0].Values {
			for k := range n {
				share := 1 + 0.01*float64(k%3)
				e.Trials = append(e.Trials, results.TrialLine{PointIndex: int32(point), Coordinates: map[string]string{"clients": clients}, Outcome: stats.Succeeded,
					Repetition: int32(k), Committed: 1000, Throughput: 1000 * share, MeanMillis: 10 * share, P99Millis: 30 * share})
			}
		}
		e.Points = stats.Points(e.Trials)
		var page bytes.Buffer
		if err := format.HTML(&page, e); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(page.String(), `class="trial"`), 4*2*n; got != want {
			t.Errorf("n=%d: %d trials are drawn in the headline and three plots, want %d", n, got, want)
		}
		figures, err := plot.Figures(e, plot.FigureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range figures[0].Curves[0].Points {
			if a := e.Points[i].Metrics[stats.Throughput]; !p.Interval || p.YLow != a.Low || p.YHigh != a.High {
				t.Errorf("n=%d: %+v, want the interval [%g, %g]", n, p, a.Low, a.High)
			}
		}
	}
}
