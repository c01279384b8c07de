package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
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
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	start = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	axes  = []results.Axis{{Name: "clients", Values: []string{"5", "50"}}, {Name: "variant", Values: []string{"ideal", "failure-nofp", "failure-fp"}}}
)

// experiment is the failure experiment of the Pesto artifact's notes, at two of its loads.
func experiment() *v1alpha1.Experiment {
	value := v1alpha1.NewValue
	series := func(variant, metric, unit, low, high string) v1alpha1.ReportedSeries {
		return v1alpha1.ReportedSeries{
			Name: "u-" + variant + "-" + strings.ToLower(metric), Metric: metric, Unit: unit, At: map[string]v1alpha1.Value{"variant": value(variant)}, Axis: "clients",
			Values: []v1alpha1.ReportedValue{{X: value("5"), Y: value(low)}, {X: value("50"), Y: value(high)}},
		}
	}
	oneTimeout := value("4.1ms")
	extra := series("ideal", "P99Latency", "furlongs", "1", "2")
	odd := series("failure-fp", "MeanLatency", "ms", "8.2", "about 12")
	odd.Note = "The table gives 7 throughputs and 7 latencies; the second load is taken as 50."
	odd.Values = append(odd.Values, v1alpha1.ReportedValue{X: value("60"), Y: value("12.1")})
	return &v1alpha1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Name: "failure-fp", Namespace: "default", UID: "5d3c"},
		Spec: v1alpha1.ExperimentSpec{
			Source:      &v1alpha1.Source{Title: "Pesto (SOSP'25)", Section: "5 Failure", URL: "https://example.org/pesto", Systems: []v1alpha1.SourceSystem{{Name: "Basil"}}},
			Systems:     []v1alpha1.SystemReference{{Name: "basil"}},
			Repetitions: v1alpha1.Repetitions{Min: 3},
			Profile:     "smoke",
			Profiles: []v1alpha1.Profile{{Name: "smoke", Claims: []v1alpha1.ProfileClaim{
				{Name: "one-timeout", Within: "25%"}, {Name: "peaks", Skip: "two cores do not reach the peak"},
			}}},
			Reported: []v1alpha1.ReportedSeries{
				series("ideal", "Throughput", "tx/s", "3085", "7008"), series("failure-nofp", "Throughput", "ktx/s", "3.038", "5.816"), series("failure-fp", "Throughput", "tx/s", "3139", "5323"),
				series("ideal", "MeanLatency", "ms", "2.6", "4.4"), odd, extra,
			},
			Claims: []v1alpha1.Claim{
				{
					Name: "order-at-low-load", Statement: "Losing the fast path costs more than not having it.",
					Expr: "mean_latency(variant='ideal', clients=5) < mean_latency(variant='failure-nofp', clients=5) && mean_latency(variant='failure-nofp', clients=5) < mean_latency(variant='failure-fp', clients=5)",
				},
				{
					Name: "one-timeout", Statement: "Losing the fast path costs one fast-path timeout.",
					Expr: "mean_latency(variant='failure-fp', clients=5) - mean_latency(variant='failure-nofp', clients=5)", Reported: &oneTimeout, Within: "1%",
				},
				{Name: "peaks", Statement: "The ideal case peaks higher.", Expr: "max_throughput(variant='ideal') > max_throughput(variant='failure-nofp')"},
				{Name: "peak-order", Statement: "Without the fast path the peak is higher than after its loss.", Expr: "max_throughput(variant='failure-nofp') > max_throughput(variant='failure-fp')"},
			},
		},
		Status: v1alpha1.ExperimentStatus{
			Seed: 42, StartTime: &metav1.Time{Time: start}, CompletionTime: &metav1.Time{Time: start.Add(time.Hour)},
		},
	}
}

// lines are three trials of each point but the last, which has one, with an invalid and a failed
// attempt among them.
func lines() []results.TrialLine {
	mean := []float64{2.63, 4.08, 8.21, 7.1, 8.5, 9.2}
	var ls []results.TrialLine
	add := func(point int, repetition, attempt int32) *results.TrialLine {
		number := int32(len(ls))
		ls = append(ls, results.TrialLine{
			Name: fmt.Sprintf("failure-fp-%d", number), Number: number, PointIndex: int32(point), Repetition: repetition, Attempt: attempt, Outcome: stats.Succeeded,
			Coordinates: map[string]string{"clients": axes[0].Values[point/3], "variant": axes[1].Values[point%3]}, GapSeconds: 2 + float64(number%5)/10, ConfigMap: fmt.Sprintf("failure-fp-%d-results", number),
		})
		return &ls[len(ls)-1]
	}
	for repetition := range int32(3) {
		for point := range 6 {
			if point == 5 && repetition > 0 {
				continue
			}
			if point == 2 && repetition == 1 {
				l := add(point, repetition, 0)
				l.Outcome, l.Reason, l.Message, l.Throughput = stats.Invalid, "FaultLate", "Fault replica-crash was confirmed 31 ms late; 20 ms are tolerated.", 1
			}
			attempt := int32(0)
			if point == 2 && repetition == 1 {
				attempt = 1
			}
			l := add(point, repetition, attempt)
			clients := []float64{5, 50}[point/3]
			l.MeanMillis = mean[point] * []float64{1, 0.985, 1.012}[repetition]
			l.P50Millis, l.P99Millis, l.Throughput = l.MeanMillis*0.93, l.MeanMillis*2.4, clients*1000/l.MeanMillis
			l.Committed = int64(l.Throughput * 20)
			l.Aborted = l.Committed / int64(40+repetition)
		}
	}
	ls[0].GapSeconds = 0
	l := add(5, 1, 0)
	l.Outcome, l.Reason, l.Message, l.GapSeconds = stats.Failed, "RunLost", "The pods of the run are gone.", 31.4
	return ls
}

// systems that the experiment runs: another Basil than its authors'.
var systems = map[string]v1alpha1.SystemSpec{"basil": {Program: &v1alpha1.Program{Name: "Basil in Go", Version: "1", Reimplements: "Basil"}}}

func build() results.Experiment {
	return report.Build(experiment(), systems, axes, lines(), start.Add(time.Hour+time.Second))
}

func TestBuild(t *testing.T) {
	e := build()
	if e.Planned != 18 || len(e.Points) != 6 || e.Points[5].Valid != 1 || e.Points[5].Failed != 1 || e.Points[2].Invalid != 1 {
		t.Errorf("planned %d, points %+v", e.Planned, e.Points)
	}
	var verdicts []string
	for _, c := range e.Claims {
		verdicts = append(verdicts, c.Name+" "+c.Verdict)
	}
	want := []string{"order-at-low-load Replicated", "one-timeout Consistent", "peaks NotEvaluated", "peak-order Inconclusive"}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if got := e.Claims[2].Message; got != "profile smoke skips it: two cores do not reach the peak" {
		t.Errorf("message of the skipped claim: %q", got)
	}
	if len(e.LeftOut) != 1 || !strings.Contains(e.LeftOut[0], `"about 12" is not a number`) {
		t.Errorf("left out: %q", e.LeftOut)
	}
}

// Results of an experiment that has not started still list every point and judge every claim.
func TestBuildWithoutTrials(t *testing.T) {
	exp := experiment()
	exp.Status = v1alpha1.ExperimentStatus{}
	e := report.Build(exp, nil, axes, nil, start)
	if len(e.Points) != 6 || e.Points[4].Coordinates["clients"] != "50" || e.Points[4].Coordinates["variant"] != "failure-nofp" {
		t.Errorf("points: %+v", e.Points)
	}
	for _, c := range e.Claims {
		if c.Verdict != "NotEvaluated" {
			t.Errorf("%s is %s without a trial", c.Name, c.Verdict)
		}
	}
	var text bytes.Buffer
	if err := report.Text(&text, e, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Not complete: 0 of 18 planned trials valid, over 6 points; as of 2026-03-04T10:00:00Z.", "n=0 at 6 points: no valid trial."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, text.String())
		}
	}
}

func TestSpecHashIgnoresWhatMayChange(t *testing.T) {
	a, b, c := experiment().Spec, experiment().Spec, experiment().Spec
	b.Suspend, b.Priority, b.AdditionalRepetitions, b.Debug = true, 7, 2, &v1alpha1.Debug{KeepFailed: "30m"}
	c.Repetitions.Min = 4
	if report.SpecSHA256(a) != report.SpecSHA256(b) {
		t.Error("suspending an experiment, another priority or additional repetitions change its hash")
	}
	if report.SpecSHA256(a) == report.SpecSHA256(c) {
		t.Error("another number of repetitions does not change the hash")
	}
}

func TestGolden(t *testing.T) {
	for file, write := range map[string]func(io.Writer, results.Experiment) error{
		"report.txt":  func(w io.Writer, e results.Experiment) error { return report.Text(w, e, report.TextOptions{}) },
		"report.md":   report.Markdown,
		"report.tex":  report.LaTeX,
		"report.csv":  report.CSV,
		"claims.csv":  report.ClaimCSV,
		"report.html": report.HTML,
	} {
		t.Run(file, func(t *testing.T) {
			var got bytes.Buffer
			e := build()
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

// How many trials there are decides what stands beside a mean: nothing, the extremes, the interval.
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
			text := section(t, tc.e, "Points")
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
			if err := report.CSV(&table, tc.e); err != nil {
				t.Fatal(err)
			}
			header, row, _ := strings.Cut(table.String(), "\n")
			if !strings.Contains(header, ",throughput_median_tx_s,throughput_median_low_tx_s,throughput_median_high_tx_s,throughput_median_coverage,") || !strings.Contains(row, ","+tc.median+",") {
				t.Errorf("points.csv has no median %s:\n%s", tc.median, table.String())
			}
		})
	}
}

// The table of every trial once divided by committed and aborted attempts alone, so that its aborts
// were others than those of the points where requests failed or timed out.
func TestAbortsAreOfAllAttemptsThatEnded(t *testing.T) {
	l := results.TrialLine{Name: "t", Outcome: stats.Succeeded, Throughput: 77, MeanMillis: 1, P99Millis: 2, Committed: 50, Aborted: 10, Errors: 15, Timeouts: 25, Coordinates: map[string]string{}}
	e := results.Experiment{Name: "e", Points: stats.Points([]results.TrialLine{l}), Trials: []results.TrialLine{l}}
	for _, title := range []string{"Points", "Every trial"} {
		if text := section(t, e, title); !strings.Contains(text, " | 10.0") {
			t.Errorf("%s: 10 of 100 attempts aborted; want 10.0:\n%s", title, text)
		}
	}
}

// Where the lines of the trials did not fit into the results, there is no median, and the rest is
// as before.
func TestNoMedianWithoutTheTrials(t *testing.T) {
	e := build()
	e.Trials = e.Trials[:1]
	var table bytes.Buffer
	if err := report.CSV(&table, e); err != nil {
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

func TestColorMarksVerdictsOnly(t *testing.T) {
	var plain, color bytes.Buffer
	e := build()
	if err := report.Text(&plain, e, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := report.Text(&color, e, report.TextOptions{Color: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(color.String(), "\x1b["); n != 2*len(e.Claims) {
		t.Errorf("%d escape sequences for %d claims", n, len(e.Claims))
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("escape sequences without Color")
	}
}

func TestFitLeavesTrialsOut(t *testing.T) {
	e := build()
	whole, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	empty := build()
	empty.Trials = nil
	without, err := json.Marshal(empty)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ limit, trials, leftOut int }{
		"all fits":          {len(whole) + 100, 18, 1},
		"not the succeeded": {len(whole) - 500, 2, 2},
		"no trials":         {len(without) + 100, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := report.Fit(e, atMost(tc.limit))
			if err != nil {
				t.Fatal(err)
			}
			got, err := results.DecodeExperiment(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > tc.limit || len(got.Trials) != tc.trials || len(got.LeftOut) != tc.leftOut || len(got.Points) != 6 || len(got.Claims) != 4 {
				t.Errorf("%d bytes of %d, %d trials, left out %q", len(b), tc.limit, len(got.Trials), got.LeftOut)
			}
		})
	}
	if _, err := report.Fit(e, atMost(100)); err == nil {
		t.Error("100 bytes hold no results, and Fit does not say so")
	}
	if len(e.Trials) != 18 || len(e.LeftOut) != 1 {
		t.Error("Fit changed its argument")
	}
}

// Text of users ends up in the page as text: in names, statements, messages and in the labels of
// curves.
func TestHTMLEscapes(t *testing.T) {
	const evil = `<script>alert("x")</script>`
	exp := experiment()
	exp.Spec.Claims[0].Statement, exp.Spec.Source.Title = evil, evil
	ls := lines()
	ls[0].Outcome, ls[0].Message = stats.Failed, evil
	hostile := []results.Axis{axes[0], {Name: "variant", Values: []string{evil, "failure-nofp", "failure-fp"}}}
	for i := range ls {
		if ls[i].Coordinates["variant"] == "ideal" {
			ls[i].Coordinates["variant"] = evil
		}
	}
	var page bytes.Buffer
	if err := report.HTML(&page, report.Build(exp, nil, hostile, ls, start)); err != nil {
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
	if err := report.HTML(&page, build()); err != nil {
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
	if err := report.HTML(&page, report.Build(experiment(), nil, oneLoad, nil, start)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<svg viewBox") {
		t.Error("a plot over an axis that is no number")
	}
}

func atMost(limit int) func([]byte) bool { return func(b []byte) bool { return len(b) <= limit } }
