package document_test

import (
	"bytes"
	"encoding/csv"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Once, errors, timeouts, requests that were never sent, and trials that do not count were in no
// table. A point with 2% of timeouts had the p99 of the rest, and five valid trials of nine were
// "n=5".
func TestFailuresAreInSight(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	line := func(point int32, clients string, l results.TrialLine) results.TrialLine {
		l.PointIndex, l.Coordinates = point, map[string]string{"clients": clients}
		if l.Outcome == "" {
			l.Outcome, l.Throughput, l.MeanMillis, l.P99Millis = stats.Succeeded, 100, 5, 9
		}
		return l
	}
	e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"5", "50", "500"}}}, Trials: []results.TrialLine{
		line(0, "5", results.TrialLine{Committed: 900, Errors: 40, Timeouts: 10, Unsent: 50, GivenUp: 1, ClientTimeShare: share(0.783)}),
		line(0, "5", results.TrialLine{Outcome: stats.Invalid, Reason: "NothingMeasured"}),
		line(1, "50", results.TrialLine{Committed: 1000, Unreported: []string{"aborted", "errors", "givenUp", "timeouts", "unsent"}}),
		line(2, "500", results.TrialLine{Committed: 1000000, Errors: 1}),
	}}
	e.Points = stats.Points(e.Trials)
	forms := map[string]func(io.Writer) error{
		"text":     func(w io.Writer) error { return format.Text(w, e, format.TextOptions{Width: 400}) },
		"Markdown": func(w io.Writer) error { return format.Markdown(w, e) },
		"HTML":     func(w io.Writer) error { return format.HTML(w, e) },
	}
	for form, write := range forms {
		var page bytes.Buffer
		if err := write(&page); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"Failures", "1 of 2", "1 NothingMeasured", "excluded", "timeouts %", "unsent %", "given up %", "failed %", "4.00", "1.00", "5.00", "0.10", "10.00",
			"More than 1% of requests failed, so that p99 of all of them is that of the table or more (≥): clients=5 (10.0%)",
			"client time %", "78.3", "≥ 9", "do not fit the number of clients (Little's law: clients = throughput times the sum of mean latency and think time): clients=5 (78.3%, 1 of 1 trial)",
			"p99 is that of another percentile where a trial has fewer than 1000 transactions, since fewer than ten are slower; no claim about it is judged there. Fewest of a trial: clients=5 (900).",
			"More than a fifth of the trials are excluded; they may be those that went badly: clients=5 (1 of 2)",
		} {
			if !strings.Contains(html.UnescapeString(page.String()), want) {
				t.Errorf("%s does not say %q:\n%s", form, want, page.String())
			}
		}
		if !strings.Contains(page.String(), "<0.01") && !strings.Contains(page.String(), "&lt;0.01") {
			t.Errorf("%s takes one error for none", form)
		}
	}
	var page bytes.Buffer
	if err := csvfile.Points(&page, e); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&page).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cell := func(row int, column string) string {
		for i, name := range rows[0] {
			if name == column {
				return rows[row][i]
			}
		}
		t.Fatalf("the CSV has no column %s: %v", column, rows[0])
		return ""
	}
	for column, want := range map[string][3]string{
		"requests": {"1000", "1000", "1000001"}, "errors": {"40", "", "1"}, "timeouts": {"10", "", "0"}, "unsent": {"50", "", "0"}, "givenUp": {"1", "", "0"}, "clientTime_ratio": {"0.783", "", ""},
		"abortRate_mean_ratio": {"0", "", "0"}, "invalid": {"1", "0", "0"},
	} {
		for i, text := range want {
			if got := cell(i+1, column); got != text {
				t.Errorf("CSV, point %d, %s: %q, want %q", i, column, got, text)
			}
		}
	}
}

// Once, numbers of the clients' whole run were shown as if they were of the window. A script's
// table may have rates alone. Then the number of requests is unknown, and not 0.
func TestRequestsThatAScriptDoesNotCount(t *testing.T) {
	e := results.Experiment{Name: "e", Trials: []results.TrialLine{{Outcome: stats.Succeeded, Throughput: 100, Script: "e-0"}}}
	e.Points = stats.Points(e.Trials)
	var page bytes.Buffer
	if err := format.Text(&page, e, format.TextOptions{Width: 400}); err != nil {
		t.Fatal(err)
	}
	_, failures, _ := strings.Cut(page.String(), "Failures")
	if !regexp.MustCompile(`the only one +1 +0 +- +- `).MatchString(failures) {
		t.Errorf("the table has a number of requests:\n%s", failures)
	}
}

func TestWholeRunsAreMarked(t *testing.T) {
	e := results.Experiment{Name: "e", Trials: []results.TrialLine{{Outcome: stats.Succeeded, RunSummary: true, Committed: 1000, Throughput: 100}}}
	e.Points = stats.Points(e.Trials)
	if _, has := e.Points[0].Metrics[stats.MeanLatency]; has {
		t.Error("a mean latency that no client said is 0 ms")
	}
	var page bytes.Buffer
	if err := format.Text(&page, e, format.TextOptions{Width: 400}); err != nil {
		t.Fatal(err)
	}
	if want := "numbers are of their whole run, not cut to the window"; !strings.Contains(page.String(), want) {
		t.Errorf("the report does not say %q:\n%s", want, page.String())
	}
}

// If trials are left out at one variant only, the other variants look worse. If they are left out
// evenly, none does.
func TestExclusionsThatDependOnTheVariant(t *testing.T) {
	for name, tc := range map[string]struct {
		left [3]int
		want string
	}{
		"none":            {},
		"here and there":  {left: [3]int{2, 1, 2}},
		"at one of three": {left: [3]int{0, 6, 0}, want: "Whether a trial counts depends on variant: 6 of 11 are left out at b, 0 of 10 elsewhere (Fisher's exact test, P 0.037)"},
	} {
		e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "variant", Values: []string{"a", "b", "c"}}}}
		for i, v := range e.Axes[0].Values {
			e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: map[string]string{"variant": v}, Valid: 5, Invalid: tc.left[i]})
		}
		var page bytes.Buffer
		if err := format.Markdown(&page, e); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(page.String(), "Whether a trial counts") != (tc.want != "") || !strings.Contains(page.String(), tc.want) {
			t.Errorf("%s: want %q:\n%s", name, tc.want, page.String())
		}
	}
}
