package figure_test

import (
	"bytes"
	"compress/zlib"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/figure"
	"assay.dev/assay/operator/internal/analysis/report/plot"
)

var update = flag.Bool("update", false, "write the golden files")

// figures of every kind: curves beside the paper's, a line over time with faults, distributions.
func figures() map[string]plot.Figure {
	measured := plot.FigureCurve{Name: "ideal_case", Color: "#0072b2", Points: []plot.FigurePoint{
		{X: 2000, Y: 2.5, XLow: 1900, XHigh: 2100, YLow: 2.25, YHigh: 2.75, Interval: true}, {X: 5000, Y: 4, XLow: 5000, XHigh: 5000, YLow: 4, YHigh: 4}}}
	paper := plot.FigureCurve{Name: "ideal_case (paper)", Color: "#0072b2", Paper: true, Points: []plot.FigurePoint{{X: 3085, Y: 2.6}, {X: 7008, Y: 4.4}}}
	seventh := plot.FigureCurve{Name: "100% & more", Style: 6, Color: "#000000", Points: []plot.FigurePoint{{X: 1000, Y: 9}, {X: 1500, Y: 10}}}
	over := plot.FigureCurve{Name: "mean of 2 trials", Color: "#0072b2", Line: true, Band: true, Points: []plot.FigurePoint{
		{X: -0.5, Y: 10, YLow: 5, YHigh: 15, Interval: true}, {X: 0.5, Y: 20, YLow: 10, YHigh: 30, Interval: true}, {X: 1.5, Y: 2, YLow: 0, YHigh: 4, Interval: true}}}
	cdf := plot.FigureCurve{Name: "ideal", Style: 1, Color: "#c34f00", Line: true, Points: []plot.FigurePoint{{X: 1, Y: 0.01}, {X: 2.5, Y: 0.5}, {X: 9, Y: 0.99}}}
	thousands := plot.FigureAxis{Label: "throughput (tx/s)", Max: 1500, Ticks: []float64{0, 500, 1000, 1500}}
	share := plot.FigureAxis{Label: "share of transactions", Max: 1, Ticks: []float64{0, 0.5, 1}}
	return map[string]plot.Figure{
		"curves": {
			Name: "curve-01-latency-against-throughput", Title: "Latency against throughput",
			X:      plot.FigureAxis{Label: "throughput (tx/s)", Max: 8000, Ticks: []float64{0, 2000, 4000, 6000, 8000}},
			Y:      plot.FigureAxis{Label: "mean latency (ms)", Max: 10, Ticks: []float64{0, 5, 10}},
			Curves: []plot.FigureCurve{measured, paper, seventh},
		},
		"time": {
			Name: "time-01-throughput", Title: "Over time",
			X:      plot.FigureAxis{Label: "time from the start of the window (s)", Min: -0.5, Max: 1.5, Ticks: []float64{0, 0.5, 1, 1.5}},
			Y:      plot.FigureAxis{Label: "throughput (tx/s)", Max: 40, Ticks: []float64{0, 20, 40}},
			Curves: []plot.FigureCurve{over},
			Marks:  []plot.FigureMark{{X: 0.1, Name: "replica-crash began"}, {X: 0.6, Name: "replica-crash ended", Ends: true}, {X: 1.1, Name: "replica-crash began"}},
		},
		"cdf": {
			Name: "cdf-01-latency", Title: "Latency",
			X:      plot.FigureAxis{Label: "latency (ms)", Log: true, Min: 1, Max: 10, Ticks: []float64{1, 2, 5, 10}},
			Y:      share,
			Curves: []plot.FigureCurve{cdf},
		},
		"bars": {
			Name: "bars-01-throughput", Title: "Throughput", X: thousands, Y: plot.FigureAxis{Label: "variant"},
			Bars: []plot.FigureBar{
				{Group: "network=lan", Name: "ideal_case", Color: "#0072b2", Value: 990, Low: 900, High: 1080, Interval: true, Paper: 1100, HasPaper: true},
				{Group: "network=lan", Name: "no fast path", Color: "#c34f00", Value: 792},
				{Group: "network=wan", Name: "ideal_case", Color: "#0072b2", Value: 594, Low: 540, High: 648, Interval: true},
			},
		},
		"stack": {
			Name: "figure-01-steps", Title: "Steps", Y: plot.FigureAxis{Label: "scheme"}, X: plot.FigureAxis{Label: "total (us)", Max: 400, Ticks: []float64{0, 200, 400}},
			Parts: []plot.FigurePart{{Name: "log", Color: "#0072b2"}, {Name: "memory", Color: "#c34f00"}, {Name: "disk", Color: "#007a59"}},
			Bars: []plot.FigureBar{
				{Name: "hats", Value: 200, Low: 150, High: 250, Interval: true, Parts: []float64{20, 30, 150}, Paper: 210, HasPaper: true, PaperParts: []float64{20, 40, 150}, Color: "#0072b2"},
				{Name: "mlsm", Value: 330, Low: 300, High: 360, Interval: true, Parts: []float64{30, 0, 300}, Color: "#c34f00"},
			},
		},
		"speedup": {
			Name: "figure-02-gain", Title: "Gain", X: plot.FigureAxis{Label: "throughput / that of system=old", Max: 2, Ticks: []float64{0, 0.5, 1, 1.5, 2}}, One: "system=old",
			Bars: []plot.FigureBar{{Name: "new", Color: "#c34f00", Value: 1.4, Low: 1.3, High: 1.5, Interval: true, Paper: 1.5, HasPaper: true}},
		},
		"speedup-curves": {
			Name: "figure-03-gain", Title: "Gain", X: plot.FigureAxis{Label: "throughput (tx/s)", Max: 8000, Ticks: []float64{0, 4000, 8000}}, Y: plot.FigureAxis{Label: "throughput / that of system=old", Max: 4, Ticks: []float64{0, 2, 4}}, One: "system=old",
			Curves: []plot.FigureCurve{measured},
		},
	}
}

func column(t *testing.T) figure.Style {
	t.Helper()
	width, err := figure.ParseLength("3.33in")
	if err != nil {
		t.Fatal(err)
	}
	size, err := figure.ParseLength("8pt")
	if err != nil {
		t.Fatal(err)
	}
	s, err := figure.NewStyle(width, 0, size, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPGFPlotsGolden(t *testing.T) {
	for name, f := range figures() {
		t.Run(name, func(t *testing.T) {
			got, err := figure.PGFPlots(f, column(t))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".tex")
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// streams of a PDF: those that are compressed, as text.
func streams(t *testing.T, pdf []byte) string {
	t.Helper()
	var all strings.Builder
	for part := range bytes.SplitSeq(pdf, []byte("stream\n")) {
		if r, err := zlib.NewReader(bytes.NewReader(part)); err == nil {
			_, _ = io.Copy(&all, r) // what follows the stream is no error of it
		}
	}
	return all.String()
}

func TestPDFIsAsWideAndItsTextAsHighAsAsked(t *testing.T) {
	heights := map[string]string{"bars": "130.71", "stack": "78.11", "speedup": "60.57"}
	for name, f := range figures() {
		t.Run(name, func(t *testing.T) {
			pdf, err := figure.PDF(f, column(t))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := figure.PDF(f, column(t)); err != nil || !bytes.Equal(pdf, again) {
				t.Errorf("the same figure gave other bytes (%v)", err)
			}
			height, ofBars := heights[name]
			if !ofBars {
				height = "148.18"
			}
			box := regexp.MustCompile(`/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]`).FindSubmatch(pdf)
			if len(box) < 3 || string(box[1]) != "239.76" || string(box[2]) != height { // 3.33 in, and by 1.618; of bars as their rows need
				t.Errorf("the page is %q, want 239.76 by %s points", box, height)
			}
			if !bytes.Contains(pdf, []byte("/FontFile2")) || !bytes.Contains(pdf, []byte("LiberationSerif")) {
				t.Error("the font Liberation Serif is not embedded")
			}
			var sizes []string
			for _, m := range regexp.MustCompile(`/F[0-9a-f]+ ([0-9.]+) Tf`).FindAllStringSubmatch(streams(t, pdf), -1) {
				sizes = append(sizes, m[1])
			}
			slices.Sort(sizes)
			if sizes = slices.Compact(sizes); !slices.Equal(sizes, []string{"7.97"}) { // 8 points of TeX in points of PDF
				t.Errorf("text has the sizes %v, want 7.97 only", sizes)
			}
		})
	}
}

// A height that was asked for is kept, unless the bars would have no room.
func TestHeightOfBars(t *testing.T) {
	f := figures()["bars"]
	for asked, want := range map[figure.Length]string{200: "200.00", 80: "97.20"} {
		s, err := figure.NewStyle(240, asked, 8, false)
		if err != nil {
			t.Fatal(err)
		}
		pdf, err := figure.PDF(f, s)
		if err != nil {
			t.Fatal(err)
		}
		if box := regexp.MustCompile(`/MediaBox \[0 0 240.00 ([0-9.]+)\]`).FindSubmatch(pdf); len(box) != 2 || string(box[1]) != want {
			t.Errorf("asked for %v, the page is %q high, want %s", asked, box, want)
		}
	}
}

func TestPDFRefusesWhatItsFontsCannotShow(t *testing.T) {
	f := figures()["cdf"]
	f.X.Label = "延迟 (ms)"
	if _, err := figure.PDF(f, column(t)); err == nil || !strings.Contains(err.Error(), "give it another label, or use pgfplots") {
		t.Errorf("got %v", err)
	}
}

func TestLengths(t *testing.T) {
	for text, want := range map[string]float64{"1in": 72, "2.54cm": 72, "25.4 mm": 72, "72.27pt": 72, "72bp": 72} {
		if got, err := figure.ParseLength(text); err != nil || float64(got) < want-1e-9 || float64(got) > want+1e-9 {
			t.Errorf("%s is %v points (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "3", "in", "-1in", "0mm", "3em", "Infin", "NaNin"} {
		if got, err := figure.ParseLength(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
	for name, s := range map[string][3]figure.Length{"width: ": {10, 0, 8}, "height: ": {200, 9000, 8}, "font size: ": {200, 0, 1}, "no room": {200, 80, 12}} {
		if _, err := figure.NewStyle(s[0], s[1], s[2], false); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: got %v, want %q in it", s, err, name)
		}
	}
}

// A document with every figure, as PDF and for pgfplots, and its tables, goes through LaTeX.
func TestLaTeXCompilesADocument(t *testing.T) {
	if _, err := exec.LookPath("pdflatex"); err != nil {
		t.Skip("there is no pdflatex (Debian: apt-get install texlive-latex-recommended texlive-pictures)")
	}
	dir := t.TempDir()
	if keep := os.Getenv("ASSAY_SCREENSHOTS"); keep != "" {
		dir = keep
	}
	var body strings.Builder
	write := func(name string, data []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := column(t)
	for _, name := range slices.Sorted(maps.Keys(figures())) {
		f := figures()[name]
		pdf, err := figure.PDF(f, s)
		write(name+".pdf", pdf, err)
		tex, err := figure.PGFPlots(f, s)
		write(name+"-pgf.tex", tex, err)
		body.WriteString("\\noindent\\includegraphics{" + name + ".pdf}\n\n\\noindent\\input{" + name + "-pgf.tex}\n\n")
	}
	tables, err := os.ReadFile(filepath.Join("..", "format", "testdata", "report.tex"))
	write("tables.tex", tables, err)
	document := "\\documentclass[sigconf]{article}\\usepackage{graphicx,booktabs,pgfplots}\\pgfplotsset{compat=1.16}\\begin{document}\n" + body.String() + "\\input{tables.tex}\n\\end{document}\n"
	write("paper.tex", []byte(document), nil)
	cmd := exec.CommandContext(t.Context(), "pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pdflatex: %v\n%s", err, out)
	}
	pages := regexp.MustCompile(`Output written on paper.pdf \(([0-9]+) pages?`).FindSubmatch(out)
	if pages == nil {
		t.Fatalf("pdflatex wrote no page:\n%s", out)
	}
	if n, err := strconv.Atoi(string(pages[1])); err != nil || n < 2 {
		t.Errorf("the document has %q pages, want 2 and more", pages[1])
	}
	if bytes.Contains(out, []byte("Missing character")) {
		t.Errorf("characters are missing:\n%s", out)
	}
}
