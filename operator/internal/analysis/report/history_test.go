package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// wobble is by how much runs of an unchanged system differ here, in a fixed order without a trend.
var wobble = []float64{0.3, -0.5, 0.9, -0.2, -0.8, 0.6, 0.1, -0.9, 0.7, -0.4, 0.5, -0.6, 0.8, -0.1, -0.7, 0.4}

// runOf is a run on a day, with one point whose metrics are given.
func runOf(day int, metrics map[string]float64) report.Historic {
	e := results.Experiment{
		Name: "kv", UID: fmt.Sprint(day), Started: time.Date(2026, 5, day, 1, 0, 0, 0, time.UTC),
		Axes:     []results.Axis{{Name: "clients", Values: []string{"10"}}},
		Fidelity: &results.Fidelity{Systems: []results.SystemFidelity{{System: "kv", Program: "KV", Version: fmt.Sprintf("1.%d", day)}}},
		Points:   []results.PointResult{{Coordinates: map[string]string{"clients": "10"}, Metrics: map[string]results.Aggregate{}}},
	}
	for name, mean := range metrics {
		e.Points[0].Metrics[name] = stats.Aggregate([]float64{mean - 1, mean, mean + 1})
	}
	return report.Historic{From: fmt.Sprintf("day-%d.tar.gz", day), Results: e}
}

// nightly are sixteen runs. From the eleventh on, throughput is a tenth less and latency a tenth
// more; aborts are as before, and so is what is better in no direction.
func nightly() []report.Historic {
	var runs []report.Historic
	for i, w := range wobble {
		change := 0.0
		if i >= 10 {
			change = 1
		}
		runs = append(runs, runOf(i+1, map[string]float64{
			stats.Throughput: 1000 + 5*w - 100*change, stats.MeanLatency: 20 + 0.1*w + 4*change, stats.P99Latency: 50 + w, stats.AbortRate: 0, "replicaCPU": 3 + 0.01*w + 1*change,
		}))
	}
	return runs
}

func historyOf(t *testing.T, runs []report.Historic, o report.HistoryOptions) report.History {
	t.Helper()
	h, err := report.NewHistory(runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHistoryFindsRegressions(t *testing.T) {
	h := historyOf(t, nightly(), report.HistoryOptions{})
	var got []string
	for _, m := range h.Metrics {
		for _, c := range m.Changes {
			got = append(got, fmt.Sprintf("%s %s at run %d, last %d, %d then %d, %.2f", m.Metric, c.Kind, c.At+1, c.Last+1, c.RunsBefore, c.RunsAfter, c.Ratio.Value))
		}
	}
	want := []string{
		"meanLatency Regression at run 11, last 10, 10 then 6, 1.20", "throughput Regression at run 11, last 10, 10 then 6, 0.90", "replicaCPU Change at run 11, last 10, 10 then 6, 1.33",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes, the largest regression first (-want +got):\n%s", diff)
	}
	if h.Runs[10].Version != "KV 1.11" || h.Undecided() || h.Drifts || len(h.Regressions()) != 2 {
		t.Errorf("history is %+v", h)
	}
}

// An improvement comes after all regressions, though it is of a metric that became worse, too.
func TestLargestRegressionsFirst(t *testing.T) {
	var runs []report.Historic
	for i, w := range append(append([]float64{}, wobble...), wobble...) {
		latency := 20 + 0.1*w
		if i >= 10 {
			latency -= 2
		}
		if i >= 20 {
			latency += 8
		}
		rate := 1000 + 5*w
		if i >= 20 {
			rate -= 50
		}
		runs = append(runs, runOf(i%28+1, map[string]float64{stats.Throughput: rate, stats.MeanLatency: latency}))
	}
	var b bytes.Buffer
	if err := report.HistoryGitHub(&b, historyOf(t, runs, report.HistoryOptions{AsGiven: true})); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(b.String()) {
		if cells := strings.Split(line, " | "); len(cells) == 9 && strings.Contains(line, "kv, clients") {
			rows = append(rows, strings.TrimPrefix(cells[0], "| ")+" "+cells[1])
		}
	}
	if diff := cmp.Diff([]string{"regression meanLatency ms", "regression throughput tx/s", "improvement meanLatency ms"}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s\n%s", diff, b.String())
	}
}

// Runs are in the order in which they started, however they are given, unless that is asked for.
func TestHistoryOrder(t *testing.T) {
	runs := nightly()
	runs[0], runs[15] = runs[15], runs[0]
	if h := historyOf(t, runs, report.HistoryOptions{}); h.Runs[0].From != "day-1.tar.gz" {
		t.Errorf("the first run is %s", h.Runs[0].From)
	}
	if h := historyOf(t, runs, report.HistoryOptions{AsGiven: true}); h.Runs[0].From != "day-16.tar.gz" {
		t.Errorf("in the order given, the first run is %s", h.Runs[0].From)
	}
}

func TestHistoryOfFewRuns(t *testing.T) {
	h := historyOf(t, nightly()[:7], report.HistoryOptions{})
	if !h.Undecided() || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "kv: 7 runs. Changes are looked for in 8 and more.") {
		t.Errorf("notes are %q", h.Notes)
	}
}

// A machine that becomes slower from run to run looks like a regression. It is called a drift.
func TestHistoryOfADrift(t *testing.T) {
	var runs []report.Historic
	for i := range 16 {
		runs = append(runs, runOf(i+1, map[string]float64{stats.Throughput: 1000 - 10*float64(i) + wobble[i], stats.MeanLatency: 20 + float64(i) + 0.1*wobble[i]}))
	}
	h := historyOf(t, runs, report.HistoryOptions{})
	changes := 0
	for _, m := range h.Metrics {
		changes += len(m.Changes)
	}
	if !h.Drifts || changes == 0 || len(h.Regressions()) > 0 || !strings.Contains(strings.Join(h.Notes, " "), "the machines may drift") {
		t.Errorf("%d changes, %d regressions, notes %q", changes, len(h.Regressions()), h.Notes)
	}
}

// twoVersions are runs that interleave an old and a new version on machines whose speed wanders:
// the new one is a fifth slower from the ninth run on.
func twoVersions() []report.Historic {
	var runs []report.Historic
	speed := 1.0
	for i, w := range wobble {
		speed *= 1 + 0.05*w
		r := runOf(i+1, nil)
		r.Results.Axes = []results.Axis{{Name: "clients", Values: []string{"10"}}, {Name: "system", Values: []string{"old", "new"}}}
		r.Results.Points = nil
		for _, version := range []string{"old", "new"} {
			rate := 1000 * speed
			if version == "new" {
				rate *= 1 + 0.002*w
				if i >= 8 {
					rate *= 0.8
				}
			}
			r.Results.Points = append(r.Results.Points, results.PointResult{Coordinates: map[string]string{"clients": "10", "system": version}, Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate([]float64{rate - 1, rate + 1})}})
		}
		runs = append(runs, r)
	}
	return runs
}

func TestHistoryByABaseline(t *testing.T) {
	h := historyOf(t, twoVersions(), report.HistoryOptions{Baseline: "system=old"})
	if len(h.Metrics) != 1 || len(h.Metrics[0].Changes) != 1 {
		t.Fatalf("metrics are %+v", h.Metrics)
	}
	m := h.Metrics[0]
	if c := m.Changes[0]; c.At != 8 || c.Kind != report.Regression || c.Before < 0.99 || c.Before > 1.01 || m.Point != "clients=10, system=new" || m.Unit != "of system=old" {
		t.Errorf("the change is %+v of %+v", c, m)
	}
	for baseline, want := range map[string]string{"system": "not AXIS=VALUE", "system=older": "at no point; the axes are clients (10), system (old, new)"} {
		if _, err := report.NewHistory(twoVersions(), report.HistoryOptions{Baseline: baseline}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--baseline %s: error is %v, want %q", baseline, err, want)
		}
	}
}

func TestHistoryForms(t *testing.T) {
	h := historyOf(t, nightly(), report.HistoryOptions{})
	h.Runs[10].Version = "KV <b>1.11</b> | x"
	written := map[string]string{}
	for form, write := range report.HistoryForms {
		var b bytes.Buffer
		if err := write(&b, h); err != nil {
			t.Fatal(err)
		}
		written[form] = b.String()
	}
	var text bytes.Buffer
	if err := report.HistoryText(&text, h, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	written["text"] = text.String()
	for form, wants := range map[string][]string{
		"text":     {"16 runs, 5 metrics: 2 metrics are worse at the end, 3 changes in all.", "regression  meanLatency ms   kv, clients=10"},
		"markdown": {"**Benchmarks over time.**", "| regression | throughput tx/s |", `KV &lt;b>1.11&lt;/b> \| x`},
		"github":   {"## Benchmarks over time", "| change | replicaCPU |", "<details><summary>Runs</summary>"},
		"html":     {"<h1>Benchmarks over time</h1>", "KV &lt;b&gt;1.11&lt;/b&gt; | x", "Metrics without a change", "<svg"},
		"json":     {`"kind": "Regression"`, `"level": 0.05`},
		"csv":      {"kv,,clients=10,meanLatency,ms,11,2026-05-11T01:00:00Z"},
		"junit":    {`failures="2"`, `tests="5"`},
	} {
		for _, want := range wants {
			if !strings.Contains(written[form], want) {
				t.Errorf("%s lacks %q:\n%.2000s", form, want, written[form])
			}
		}
	}
	if strings.Contains(written["markdown"], "replicaCPU") {
		t.Error("the comment has changes that are no regression")
	}
	for _, elsewhere := range []string{"src=", "href=", "@import", "<script "} {
		if strings.Contains(written["html"], elsewhere) {
			t.Errorf("the page has %s", elsewhere)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(written["csv"])).ReadAll()
	if err != nil || len(rows) != 1+16*5 {
		t.Errorf("the CSV has %d rows, %v", len(rows), err)
	}
	var suites struct {
		Suites []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(written["junit"]), &suites); err != nil {
		t.Fatal(err)
	}
	if c := suites.Suites[0].Cases[0]; c.Name != "meanLatency clients=10" || c.Failure == nil || !strings.Contains(c.Failure.Message, "is worse since 2026-05-11") {
		t.Errorf("the first test is %+v", c)
	}
}

// The same runs give the same page.
func TestHistoryIsTheSameTwice(t *testing.T) {
	pages := make([]string, 2)
	for i := range pages {
		var b bytes.Buffer
		if err := report.HistoryHTML(&b, historyOf(t, nightly(), report.HistoryOptions{})); err != nil {
			t.Fatal(err)
		}
		pages[i] = b.String()
	}
	if pages[0] != pages[1] {
		t.Error("two pages of the same runs differ")
	}
}
