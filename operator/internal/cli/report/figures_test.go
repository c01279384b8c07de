package report_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

func TestFiguresHaveTheLabelsAndAxesAskedFor(t *testing.T) {
	dir := t.TempDir()
	flags := report.FigureFlags{Width: "84mm", FontSize: "9pt", Log: "y", Labels: []string{"clients=Closed-loop clients", "measured=Ours_1"}, Curves: []string{"measured"}}
	if err := report.Run(t.Context(), &session.Session{Err: &bytes.Buffer{}}, report.Options{File: plotted(t), Output: "pgfplots", OutputDir: dir, Figures: flags}); err != nil {
		t.Fatal(err)
	}
	tex, err := os.ReadFile(filepath.Join(dir, "plots", "curve-02-mean-latency.tex"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"width=239.003pt", `\fontsize{9pt}{10.8pt}`, "xlabel={Closed-loop clients}", "ymode=log", "ymin=2, ymax=5", "1 2\\\\\n2 3\\\\"} {
		if !strings.Contains(string(tex), want) {
			t.Errorf("the figure has no %s:\n%s", want, tex)
		}
	}
}

// Figures may be declared long after an experiment. The bundle of Basil's fast path is older than
// figures.
func TestFiguresOfAFileAreDrawnFromABundle(t *testing.T) {
	const experiments = "../../../../experiments/basil/"
	var out bytes.Buffer
	o := report.Options{File: experiments + "evidence/fast-path.tar.zst", FiguresFile: experiments + "fast-path.yaml", Output: "markdown"}
	if err := report.Run(t.Context(), &session.Session{Out: &out, Err: &bytes.Buffer{}}, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Decisions by path\n\n| workload | fastPath | n | fastCommits decisions | slowCommits decisions | fastAborts decisions | slowAborts decisions | total decisions |",
		"| rw-u | off | 3 | 0 | ", "| fastCommits | decisions | - | fastPathCommits |",
		"## Speed-up over fastPath=off, throughput", "## Speed-up over fastPath=off, p50 latency",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
	for file, want := range map[string]string{"nowhere.yaml": "no such file", experiments + "crypto.yaml": "experiment basil-crypto declares no figures (spec.figures)"} {
		o.FiguresFile = file
		if err := report.Run(t.Context(), &session.Session{Out: &out, Err: &bytes.Buffer{}}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--figures %s: got %v, want %s", file, err, want)
		}
	}
}

// trialsWithLatencies returns an experiment of two trials with their results. Only one trial
// counts.
func trialsWithLatencies(t *testing.T) []client.Object {
	t.Helper()
	h := results.NewHistogram()
	for _, d := range []time.Duration{100 * time.Microsecond, 100 * time.Microsecond, 4 * time.Millisecond} {
		h.Record(d)
	}
	latency, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e := results.Experiment{
		Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"5"}}}, Points: []results.PointResult{{Valid: 1, Invalid: 1}},
		Trials: []results.TrialLine{{Name: "t0", Outcome: "Succeeded", ConfigMap: "t0-results"}, {Name: "t1", Outcome: "Invalid", ConfigMap: "t1-results"}},
	}
	encoded, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	cm := stored(t, "cm", 1, time.Time{})
	cm.Data["results.json"] = string(encoded)
	objects := []client.Object{experiment("cm"), cm}
	for name, outcome := range map[string]string{"t0": "Succeeded", "t1": "Invalid"} {
		trial, err := results.EncodeTrial(results.Trial{Name: name, Outcome: outcome, Coordinates: map[string]string{"clients": "5"}, Repetition: 2, Latency: latency})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-results", Labels: map[string]string{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: "e"}},
			Data:       map[string]string{"trial.json": string(trial)},
		})
	}
	return objects
}

// The histograms have every transaction of the valid trials, and no other.
func TestHistogramsOfValidTrials(t *testing.T) {
	want := [][]string{
		{"trial", "point", "repetition", "clients", "from_us", "to_us", "count"},
		{"t0", "0", "2", "5", "100", "100", "2"}, {"t0", "0", "2", "5", "4000", "4001", "1"},
	}
	s, out := newSession(t, trialsWithLatencies(t)...)
	if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: "histograms-csv"}); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	path := filepath.Join(t.TempDir(), "h.parquet")
	s.Err = &bytes.Buffer{}
	if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: path}); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Trial      string `parquet:"trial"`
		Point      int32  `parquet:"point"`
		Repetition int32  `parquet:"repetition"`
		Clients    string `parquet:"clients"`
		From       int64  `parquet:"from_us"`
		To         int64  `parquet:"to_us"`
		Count      int64  `parquet:"count"`
	}
	rows, err := parquet.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	if wantRows := []row{{"t0", 0, 2, "5", 100, 100, 2}, {"t0", 0, 2, "5", 4000, 4001, 1}}; !slices.Equal(rows, wantRows) {
		t.Errorf("the file has %+v, want %+v", rows, wantRows)
	}
}
