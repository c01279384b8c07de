package document_test

import (
	"bytes"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// A report names the files that were collected from pods, and where they are kept.
func TestReportsNameCollectedFiles(t *testing.T) {
	e := results.Experiment{Name: "e", Trials: []results.TrialLine{{Name: "e-2", Number: 2}, {Name: "e-10", Number: 10}}}
	var d model.Details
	d.AddFiles("e-10", "e-10-s0-0", "ConfigMap e-10-results-files", map[string]int64{"logs/server.stdout": 512})
	d.AddFiles("e-2", "e-2-s0-1", "ConfigMap e-2-results-files", map[string]int64{"out/stats.json": 1024, "left-out.txt": 512})
	d.AddFiles("e-2", "e-2-s0-0", "ConfigMap e-2-results-files", map[string]int64{"out/stats.json": 2048})
	d.Into(&e)
	if n := len(e.Collected); n != 4 || e.Collected[1] != (results.CollectedFile{Trial: "e-2", Pod: "e-2-s0-0", Name: "out/stats.json", Bytes: 2048, In: "ConfigMap e-2-results-files"}) {
		t.Errorf("the results have %d files: %+v", n, e.Collected)
	}
	rows := []string{
		"| e-2 | 3 | 3.5 | left-out.txt, out/stats.json (2) | ConfigMap e-2-results-files |",
		"| e-10 | 1 | 0.5 | logs/server.stdout | ConfigMap e-10-results-files |",
	}
	for name, want := range map[string][]string{
		"text":     {"Collected files", "out/stats.json (2)"},
		"markdown": {"## Collected files", strings.Join(rows, "\n")},
		"html":     {">Collected files</h2>", "out/stats.json (2)", "ConfigMap e-10-results-files"},
	} {
		text := shown(t, name, e)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the report as %s does not say %q:\n%s", name, w, text)
			}
		}
	}
	if text := shown(t, "html", results.Experiment{Name: "e"}); strings.Contains(text, "Collected files") {
		t.Error("a report of no files has a heading for them")
	}
}

// If a trial has many traces, the first are named, and the others counted.
func TestManyCollectedFilesAreCounted(t *testing.T) {
	files := map[string]int64{}
	for _, digit := range "0123456789" {
		files["out/trace-"+string(digit)] = 1
	}
	var d model.Details
	d.AddFiles("e-0", "p", "trials/e-0/pods", files)
	e := results.Experiment{Name: "e"}
	d.Into(&e)
	if text := shown(t, "markdown", e); !strings.Contains(text, "out/trace-7, 2 more | trials/e-0/pods |") {
		t.Errorf("the report says:\n%s", text)
	}
}

// shown is a report in one of its forms.
func shown(t *testing.T, form string, e results.Experiment) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	if form == "text" {
		err = format.Text(&b, e, format.TextOptions{Width: 160})
	} else {
		err = format.Forms[form].Write(&b, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
