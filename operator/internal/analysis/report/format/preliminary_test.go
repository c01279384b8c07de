package format_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/results"
)

// In every form of a report, verdicts of an experiment that still runs are called preliminary.
func TestVerdictsArePreliminaryUntilTheEnd(t *testing.T) {
	low, high, value := 9.0, 11.0, 10.0
	done := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	running := results.Experiment{Name: "e", Written: done, Planned: 6, Points: []results.PointResult{{Valid: 2}},
		Claims: []results.ClaimResult{{Name: "a", Statement: "A holds.", Verdict: "Holds", Expr: "throughput()", Measured: &value, Low: &low, High: &high,
			BoundLow: new(5.0), BoundHigh: new(15.0), Expected: "10", Within: "50%", N: 2, NMost: 2}}}
	over := running
	over.Completed = &done
	picture := func(w io.Writer, e results.Experiment) error {
		p, drawn, err := plot.VerdictPicture(e)
		if err == nil && !drawn {
			t.Error("nothing is drawn")
		}
		_, _ = w.Write(p.SVG)
		return err
	}
	for form, write := range map[string]func(io.Writer, results.Experiment) error{
		"text": func(w io.Writer, e results.Experiment) error { return format.Text(w, e, format.TextOptions{}) }, "markdown": format.Markdown, "html": format.HTML,
		"claims-csv": format.ClaimsCSV, "latex": format.LaTeX, "picture": picture,
	} {
		t.Run(form, func(t *testing.T) {
			says := func(e results.Experiment) string {
				var b bytes.Buffer
				if err := write(&b, e); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}
			word := "reliminary"
			if form == "claims-csv" {
				word = ",true,"
			}
			said := says(running)
			if !strings.Contains(said, word) {
				t.Errorf("it does not call the verdict preliminary:\n%s", said)
			}
			if _, body, _ := strings.Cut(says(over), "</style>"); form == "html" && strings.Contains(body, "Preliminary") || form != "html" && strings.Contains(says(over), word) {
				t.Errorf("the experiment is over:\n%s", says(over))
			}
		})
	}
}
