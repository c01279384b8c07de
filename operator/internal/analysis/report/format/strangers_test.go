package format_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/testkit/reports"
	"assay.dev/assay/operator/internal/text/printable"
)

// The reader's terminal, browser, spreadsheet or shell must not execute text in a bundle of a
// stranger.
func TestTextOfStrangersDoesNotAct(t *testing.T) {
	const payload = "\x1b]0;owned\x07\u009b2J<img src=x onerror=alert(1)></text><script>alert(1)</script>$(touch owned)`\r"
	keep := map[string]bool{} // words that the report itself compares
	built := model.Build(reports.Experiment(), nil, reports.Axes, reports.Lines(), reports.Start.Add(time.Hour))
	for _, c := range built.Claims {
		keep[c.Verdict] = true
	}
	for _, p := range built.Points {
		for m := range p.Metrics {
			keep[m] = true
		}
	}
	for _, l := range built.Trials {
		keep[l.Outcome] = true
	}
	keep[built.Format] = true
	poisoned := printable.All(built, func(s string) string {
		if keep[s] || s == "" {
			return s
		}
		return s + payload
	})
	poisoned.Name = "e;touch owned"
	check := func(form, text string, bad ...string) {
		t.Helper()
		for _, b := range bad {
			for line := range strings.Lines(text) {
				if strings.Contains(line, b) && !strings.Contains(line, ": `` ") { // text with backticks, as code
					t.Errorf("%s has %q: %.200q", form, b, line)
				}
			}
		}
	}
	var text bytes.Buffer
	if err := format.Text(&text, poisoned, format.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `\x1b]0;owned`) {
		t.Error("the text does not show what was in the results")
	}
	check("text", text.String(), "\x1b", "\u009b", "-f e;touch")
	for form, bad := range map[string][]string{"markdown": {"\x1b", "\u009b", "<img", "<script", "-f e;touch"}, "html": {"<img", "<script>alert", "-f e;touch"}} {
		var b bytes.Buffer
		if err := format.Forms[form].Write(&b, poisoned); err != nil {
			t.Fatal(err)
		}
		check(form, b.String(), bad...)
	}
}

func TestCellsAreNoFormulas(t *testing.T) {
	e := model.Build(reports.Experiment(), nil, reports.Axes, reports.Lines(), reports.Start.Add(time.Hour))
	for i := range e.Claims {
		e.Claims[i].Distance = "=cmd|' /C calc'!A0"
		e.Claims[i].Name = "-3"
	}
	var b bytes.Buffer
	if err := format.Forms["csv"].Write(&b, e); err != nil {
		t.Fatal(err)
	}
	if err := format.ClaimsCSV(&b, e); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, ",=cmd") || !strings.Contains(text, "'=cmd") || !strings.Contains(text, "-3,") || strings.Contains(text, "'-3,") {
		t.Errorf("formulas in cells:\n%s", text)
	}
}
