package model_test

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/reports"
)

func TestHistoryFindsRegressions(t *testing.T) {
	h := reports.HistoryOf(t, reports.Nightly(), model.HistoryOptions{})
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

// An improvement comes after all regressions, even if its metric became worse, too.
func TestLargestRegressionsFirst(t *testing.T) {
	var runs []model.Historic
	for i, w := range append(append([]float64{}, reports.Wobble...), reports.Wobble...) {
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
		runs = append(runs, reports.RunOf(i%28+1, map[string]float64{stats.Throughput: rate, stats.MeanLatency: latency}))
	}
	var b bytes.Buffer
	if err := format.HistoryGitHub(&b, reports.HistoryOf(t, runs, model.HistoryOptions{AsGiven: true})); err != nil {
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

// Runs are in the order in which they started. They are in the given order only on request.
func TestHistoryOrder(t *testing.T) {
	runs := reports.Nightly()
	runs[0], runs[15] = runs[15], runs[0]
	if h := reports.HistoryOf(t, runs, model.HistoryOptions{}); h.Runs[0].From != "day-1.tar.gz" {
		t.Errorf("the first run is %s", h.Runs[0].From)
	}
	if h := reports.HistoryOf(t, runs, model.HistoryOptions{AsGiven: true}); h.Runs[0].From != "day-16.tar.gz" {
		t.Errorf("in the order given, the first run is %s", h.Runs[0].From)
	}
}

func TestHistoryOfFewRuns(t *testing.T) {
	h := reports.HistoryOf(t, reports.Nightly()[:7], model.HistoryOptions{})
	if !h.Undecided() || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "kv: 7 runs. Changes are looked for in 8 and more.") {
		t.Errorf("notes are %q", h.Notes)
	}
}

// A machine that becomes slower from run to run looks like a regression. It is called a drift.
func TestHistoryOfADrift(t *testing.T) {
	var runs []model.Historic
	for i := range 16 {
		runs = append(runs, reports.RunOf(i+1, map[string]float64{stats.Throughput: 1000 - 10*float64(i) + reports.Wobble[i], stats.MeanLatency: 20 + float64(i) + 0.1*reports.Wobble[i]}))
	}
	h := reports.HistoryOf(t, runs, model.HistoryOptions{})
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
func twoVersions() []model.Historic {
	var runs []model.Historic
	speed := 1.0
	for i, w := range reports.Wobble {
		speed *= 1 + 0.05*w
		r := reports.RunOf(i+1, nil)
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
	h := reports.HistoryOf(t, twoVersions(), model.HistoryOptions{Baseline: "system=old"})
	if len(h.Metrics) != 1 || len(h.Metrics[0].Changes) != 1 {
		t.Fatalf("metrics are %+v", h.Metrics)
	}
	m := h.Metrics[0]
	if c := m.Changes[0]; c.At != 8 || c.Kind != model.Regression || c.Before < 0.99 || c.Before > 1.01 || m.Point != "clients=10, system=new" || m.Unit != "of system=old" {
		t.Errorf("the change is %+v of %+v", c, m)
	}
	for baseline, want := range map[string]string{"system": "not AXIS=VALUE", "system=older": "at no point; the axes are clients (10), system (old, new)"} {
		if _, err := model.NewHistory(twoVersions(), model.HistoryOptions{Baseline: baseline}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--baseline %s: error is %v, want %q", baseline, err, want)
		}
	}
}

func TestHistoryForms(t *testing.T) {
	h := reports.HistoryOf(t, reports.Nightly(), model.HistoryOptions{})
	h.Runs[10].Version = "KV <b>1.11</b> | x"
	written := map[string]string{}
	for form, write := range format.HistoryForms {
		var b bytes.Buffer
		if err := write(&b, h); err != nil {
			t.Fatal(err)
		}
		written[form] = b.String()
	}
	var text bytes.Buffer
	if err := format.HistoryText(&text, h, format.TextOptions{}); err != nil {
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
		if err := format.HistoryHTML(&b, reports.HistoryOf(t, reports.Nightly(), model.HistoryOptions{})); err != nil {
			t.Fatal(err)
		}
		pages[i] = b.String()
	}
	if pages[0] != pages[1] {
		t.Error("two pages of the same runs differ")
	}
}
