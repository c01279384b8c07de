package document_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
)

// Once, the verdicts of an experiment that was continued after a look were shown like any others.
func TestContinuedExperimentsSaySo(t *testing.T) {
	for more, want := range map[int]bool{0: false, 2: true} {
		e := results.Experiment{Name: "e", AdditionalRepetitions: more, Claims: []results.ClaimResult{{Name: "c", Verdict: "Reproduced"}}}
		for form, write := range map[string]func(io.Writer) error{
			"text":     func(w io.Writer) error { return format.Text(w, e, format.TextOptions{Width: 1000}) },
			"Markdown": func(w io.Writer) error { return format.Markdown(w, e) },
			"HTML":     func(w io.Writer) error { return format.HTML(w, e) },
		} {
			var page bytes.Buffer
			if err := write(&page); err != nil {
				t.Fatal(err)
			}
			said := strings.Index(page.String(), "2 repetitions of each point were added when the experiment was complete")
			if (said >= 0) != want {
				t.Errorf("%d more, %s: %s", more, form, page.String())
			}
			if want && said > strings.Index(page.String(), "Verdicts") {
				t.Errorf("%s says it below the verdicts", form)
			}
		}
	}
}
