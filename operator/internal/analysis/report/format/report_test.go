package format_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/reports"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGolden(t *testing.T) {
	for file, write := range map[string]func(io.Writer, results.Experiment) error{
		"report.txt":  func(w io.Writer, e results.Experiment) error { return format.Text(w, e, format.TextOptions{}) },
		"report.md":   format.Markdown,
		"report.tex":  format.LaTeX,
		"report.csv":  csvfile.Points,
		"claims.csv":  format.ClaimsCSV,
		"report.html": format.HTML,
	} {
		t.Run(file, func(t *testing.T) {
			var got bytes.Buffer
			e := reports.Build()
			e.SpecSHA256 = strings.Repeat("5a", 32) // follows from the kind's fields, which change more often than reports
			if err := write(&got, e); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", file)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got); run the test with -update if it is meant:\n%s", path, diff)
			}
		})
	}
}

// The number of trials decides what stands beside a mean: nothing, the extremes, or the interval.
func TestTrialsDecideWhatIsShown(t *testing.T) {
	point := func(throughput ...float64) results.Experiment {
		var ls []results.TrialLine
		for i, x := range throughput {
			ls = append(ls, results.TrialLine{Name: fmt.Sprint("t-", i), Outcome: stats.Succeeded, Throughput: x, MeanMillis: 5, P99Millis: 9, Committed: 1, Coordinates: map[string]string{}})
		}
		return results.Experiment{Name: "e", Points: stats.Points(ls), Trials: ls}
	}
	for name, tc := range map[string]struct {
		e                 results.Experiment
		cell, median, not string
		warns             []string
	}{
		"one":   {point(100), "| 1 | 100 | 5.00 | 9.00 | 0 |", "100,,,", "given", []string{"n=1 at 1 point: one trial: there is no interval."}},
		"two":   {point(100, 104), "| 2 | 102.0 (100.0 to 104.0) | 5.00 (5.00 to 5.00) |", "102,100,104,0.5", "±", []string{"n=2 at 1 point: the table shows the least and the greatest", "mean latency ms at the only point: all trials gave the same value"}},
		"four":  {point(100, 104, 96, 120), "| 4 | 105 (96 to 120) |", "102,96,120,0.875", "±", []string{"n=4 at 1 point", "is 3.2 standard errors wide"}},
		"five":  {point(100, 104, 96, 120, 110), "| 5 | 106 ± 12 |", "104,96,120,0.9375", "n=5", nil},
		"seven": {point(100, 104, 96, 120, 110, 101, 102), "| 7 | 104.7 ± 7.4 |", "102,96,120,0.984375", "n=7", nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := reports.Section(t, tc.e, "Points")
			_, numbers, _ := strings.Cut(text, "\n\n| ") // the legend says what ± is
			for _, want := range append([]string{tc.cell}, tc.warns...) {
				if !strings.Contains(text, want) {
					t.Errorf("the report does not say %q:\n%s", want, text)
				}
			}
			if strings.Contains(numbers, tc.not) {
				t.Errorf("the report says %q:\n%s", tc.not, text)
			}
			var table bytes.Buffer
			if err := csvfile.Points(&table, tc.e); err != nil {
				t.Fatal(err)
			}
			header, row, _ := strings.Cut(table.String(), "\n")
			if !strings.Contains(header, ",throughput_median_tx_s,throughput_median_low_tx_s,throughput_median_high_tx_s,throughput_median_coverage,") || !strings.Contains(row, ","+tc.median+",") {
				t.Errorf("points.csv has no median %s:\n%s", tc.median, table.String())
			}
		})
	}
}

// Once, the table of every trial divided by committed and aborted attempts alone. If requests
// failed or timed out, its abort rates differed from those of the points.
func TestAbortsAreOfAllAttemptsThatEnded(t *testing.T) {
	l := results.TrialLine{Name: "t", Outcome: stats.Succeeded, Throughput: 77, MeanMillis: 1, P99Millis: 2, Committed: 50, Aborted: 10, Errors: 15, Timeouts: 25, Coordinates: map[string]string{}}
	e := results.Experiment{Name: "e", Points: stats.Points([]results.TrialLine{l}), Trials: []results.TrialLine{l}}
	for _, title := range []string{"Points", "Every trial"} {
		if text := reports.Section(t, e, title); !strings.Contains(text, " | 10.0") {
			t.Errorf("%s: 10 of 100 attempts aborted; want 10.0:\n%s", title, text)
		}
	}
}

func TestColorMarksVerdictsOnly(t *testing.T) {
	var plain, color bytes.Buffer
	e := reports.Build()
	if err := format.Text(&plain, e, format.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := format.Text(&color, e, format.TextOptions{Color: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(color.String(), "\x1b["); n != 2*len(e.Claims) {
		t.Errorf("%d escape sequences for %d claims", n, len(e.Claims))
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("escape sequences without Color")
	}
}

// Text of users ends up in the page as text: in names, statements, messages and in the labels of
// curves.
func TestHTMLEscapes(t *testing.T) {
	const evil = `<script>alert("x")</script>`
	exp := reports.Experiment()
	exp.Spec.Claims[0].Statement, exp.Spec.Source.Title = evil, evil
	ls := reports.Lines()
	ls[0].Outcome, ls[0].Message = stats.Failed, evil
	hostile := []results.Axis{reports.Axes[0], {Name: "variant", Values: []string{evil, "failure-nofp", "failure-fp"}}}
	for i := range ls {
		if ls[i].Coordinates["variant"] == "ideal" {
			ls[i].Coordinates["variant"] = evil
		}
	}
	var page bytes.Buffer
	if err := format.HTML(&page, model.Build(exp, nil, hostile, ls, reports.Start)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "<script"); n != 1 {
		t.Errorf("%d scripts are in the page, want its own", n)
	}
	if n := strings.Count(page.String(), "&lt;script&gt;"); n < 6 {
		t.Errorf("the text is in the page %d times; want it in title, statement, table, message and plots", n)
	}
}

// The SVGs are well-formed XML, and every measured point of a plot is in it.
func TestPlots(t *testing.T) {
	var page bytes.Buffer
	if err := format.HTML(&page, reports.Build()); err != nil {
		t.Fatal(err)
	}
	svgs := regexp.MustCompile(`(?s)<svg viewBox.*?</svg>`).FindAllString(page.String(), -1)
	if len(svgs) != 1+3 {
		t.Fatalf("%d plots, want the headline and 3", len(svgs))
	}
	svgs = svgs[1:]
	for i, wantDots := range []int{6 + 6, 6 + 2 + 2, 6 + 2 + 1} { // measured, then what the paper reports
		if err := xml.Unmarshal([]byte(svgs[i]), &struct{}{}); err != nil {
			t.Fatalf("plot %d: %v", i, err)
		}
		for _, want := range []string{`role="img"`, "<title id=", "<desc id="} {
			if !strings.Contains(svgs[i], want) {
				t.Errorf("plot %d has no text alternative: no %s", i, want)
			}
		}
		dots := 0
		for _, d := range regexp.MustCompile(`class="dot[^>]*translate\(([0-9.-]+),([0-9.-]+)\)[^>]*><title>`).FindAllStringSubmatch(svgs[i], -1) { // those of the legend have no title
			dots++
			x, errX := strconv.ParseFloat(d[1], 64)
			y, errY := strconv.ParseFloat(d[2], 64)
			if errX != nil || errY != nil || x < 70 || x > 620 || y < 16 || y > 350 {
				t.Errorf("plot %d has a dot outside its frame: %s", i, d[0])
			}
		}
		if dots != wantDots {
			t.Errorf("plot %d has %d dots, want %d", i, dots, wantDots)
		}
	}
	oneLoad := []results.Axis{{Name: "variant", Values: []string{"ideal"}}}
	page.Reset()
	if err := format.HTML(&page, model.Build(reports.Experiment(), nil, oneLoad, nil, reports.Start)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<svg viewBox") {
		t.Error("a plot over an axis that is no number")
	}
}
