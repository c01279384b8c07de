package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// stored returns a ConfigMap with results. Tests tell them apart by their seed.
func stored(t *testing.T, name string, seed int64, made time.Time) *corev1.ConfigMap {
	t.Helper()
	b, err := results.EncodeExperiment(results.Experiment{Name: "e", Seed: seed, Planned: 3, Points: []results.PointResult{{}}})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", CreationTimestamp: metav1.NewTime(made),
			Labels: map[string]string{v1alpha1.LabelResults: "experiment", v1alpha1.LabelExperiment: "e"},
		},
		Data: map[string]string{"results.json": string(b)},
	}
}

func experiment(configMap string) *v1alpha1.Experiment {
	return &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "ns"}, Status: v1alpha1.ExperimentStatus{ResultsConfigMap: configMap}}
}

func newSession(t *testing.T, objects ...client.Object) (*session.Session, *bytes.Buffer) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	out := &bytes.Buffer{}
	return &session.Session{Out: out, Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "ns"}, nil }}, out
}

func TestFindsResults(t *testing.T) {
	day := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	other := stored(t, "trial", 9, day)
	other.Labels[v1alpha1.LabelResults] = "trial"
	empty := stored(t, "empty", 0, day)
	empty.Data = nil
	strange := stored(t, "strange", 0, day)
	strange.Data["results.json"] = strings.Replace(strange.Data["results.json"], "experiment-result/v1", "experiment-result/v9", 1)
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string // in the output, or in the error
		fails   bool
	}{
		"of the experiment":                      {objects: []client.Object{experiment("old"), stored(t, "old", 1, day), stored(t, "new", 2, day.Add(time.Hour))}, want: `"seed": 1`},
		"of one that is gone: the last":          {objects: []client.Object{stored(t, "old", 1, day), stored(t, "new", 2, day.Add(time.Hour)), other}, want: `"seed": 2`},
		"none yet":                               {objects: []client.Object{experiment("")}, fails: true, want: "has no results yet; see how far it is with kubectl assay watch e"},
		"nothing of that name":                   {objects: []client.Object{other}, fails: true, want: "experiment e is not in namespace ns, nor are results of it"},
		"the ConfigMap was deleted":              {objects: []client.Object{experiment("old")}, fails: true, want: "get the results of experiment e, ConfigMap old in namespace ns"},
		"the ConfigMap holds something else":     {objects: []client.Object{empty}, fails: true, want: "ConfigMap empty in namespace ns has no key results.json"},
		"the results are of a version we do not": {objects: []client.Object{strange}, fails: true, want: "experiment-result/v9"},
	} {
		t.Run(name, func(t *testing.T) {
			s, out := newSession(t, tc.objects...)
			err := report.Run(t.Context(), s, report.Options{Name: "e", Output: "json"})
			got := out.String()
			if err != nil {
				got = err.Error()
			}
			if (err != nil) != tc.fails || !strings.Contains(got, tc.want) {
				t.Errorf("got %s\nwant: %s", got, tc.want)
			}
		})
	}
}

func TestForms(t *testing.T) {
	for output, want := range map[string]string{
		"text": "Not complete: 0 of 3 planned trials valid", "markdown": "# e\n", "html": "<h1>e</h1>", "csv": "point,valid,invalid,failed,", "json": `"format": "assay.dev/experiment-result/v1"`,
	} {
		s, out := newSession(t, experiment("cm"), stored(t, "cm", 1, time.Time{}))
		if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: output}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("-o %s does not contain %q:\n%s", output, want, out)
		}
	}
}

// The command reads details from the trials' own results, and names the results that it cannot
// read.
func TestDetails(t *testing.T) {
	trial := func(name, network string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: "e"}},
			Data:       map[string]string{"trial.json": `{"format": "assay.dev/trial-result/v1", "name": "` + name + `", "outcome": "Succeeded", "network": ` + network + `}`},
		}
	}
	results := stored(t, "cm", 1, time.Time{})
	results.Data["results.json"] = strings.Replace(results.Data["results.json"], `"trials":null`,
		`"trials":[{"name":"t0","outcome":"Succeeded","configMap":"t0-results"},{"name":"t1","outcome":"Succeeded","configMap":"t1-results"}]`, 1)
	network := `{"backend": "EDT", "regions": [{"from": "us", "to": "eu", "pairs": 1, "worstPair": "a <-> b", "worstErrorMillis": 0.25}]}`
	s, out := newSession(t, experiment("cm"), results, trial("t0-results", network), trial("of-another-trial", network))
	if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: "text"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"us - eu", "+0.250", "Left out: network, faults, timelines and latencies of 1 trial, whose ConfigMaps are gone"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
}

// If the lines of trials did not fit, the command finds the trials' own results by their labels and
// names. It once did not look for them.
func TestDetailsOfTrialsWithoutLines(t *testing.T) {
	trial := func(run string, number int, backend string) *corev1.ConfigMap {
		b, err := results.EncodeTrial(results.Trial{
			Name: fmt.Sprintf("e-%s-%d", run, number), Number: int32(number), Outcome: "Succeeded", GapSeconds: 2,
			Network:  &results.Network{Backend: backend, Regions: []results.RegionLinks{{From: "us", To: "eu", Pairs: 1, WorstPair: "a <-> b", WorstErrorMillis: 0.25}}},
			Recovery: []results.Recovery{{Fault: "crash", Time: 1, Kind: "Kill", Dipped: true, Recovered: true, RecoverMillis: 1234}},
		})
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: "e"}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("e-%s-%d-results", run, number), Labels: labels}, Data: map[string]string{"trial.json": string(b)}}
	}
	kept := stored(t, "e-1a2b-results", 1, time.Time{})
	b, err := results.EncodeExperiment(results.Experiment{
		Name: "e", Planned: 3, Points: []results.PointResult{{Valid: 3}}, LeftOut: []string{"the lines of trials that succeeded: see the trials' own results"},
	})
	if err != nil {
		t.Fatal(err)
	}
	kept.Data["results.json"] = string(b)
	s, out := newSession(t, experiment("e-1a2b-results"), kept, trial("1a2b", 0, "EDT"), trial("1a2b", 12, "EDT"), trial("ffff", 0, "NFQueue"))
	if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: "markdown"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| us - eu |", "| crash | 2 | 2 | 0 |", "1234 (1234 to 1234)", "| e-1a2b-0 |", "| e-1a2b-12 |", "median 2.0 s, max 2.0 s, n=2",
		"the lines of 1 trial, which did not fit, and whose own results were not read", "network, faults, timelines and latencies of 1 trial, whose ConfigMaps are gone",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
	for _, not := range []string{"NFQueue", "ffff", "see the trials' own results"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("the report says %q:\n%s", not, out)
		}
	}
}

func TestWritesFiles(t *testing.T) {
	for name, want := range map[string]string{"r.txt": "Not complete", "r.md": "# e\n", "r.html": "<!DOCTYPE html>", "r.csv": "point,valid", "r.json": `"format"`} {
		s, out := newSession(t, experiment("cm"), stored(t, "cm", 1, time.Time{}))
		said := &bytes.Buffer{}
		s.Err, s.Color = said, true
		path := filepath.Join(t.TempDir(), name)
		if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: path}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(got), want) || strings.Contains(string(got), "\x1b") {
			t.Errorf("%s (%v):\n%s", name, err, got)
		}
		if out.Len() > 0 || !strings.Contains(said.String(), path) {
			t.Errorf("stdout %q, stderr %q; want nothing and the file's name", out, said)
		}
	}
}

// plotted writes a file with the results of an experiment that has plots.
func plotted(t *testing.T) string {
	t.Helper()
	e := results.Experiment{
		Name: "e", Planned: 2, Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2"}}},
		Points: []results.PointResult{
			{Coordinates: map[string]string{"clients": "1"}, Valid: 1, Metrics: map[string]results.Aggregate{"throughput": {N: 1, Mean: 10}, "meanLatency": {N: 1, Mean: 2}}},
			{Index: 1, Coordinates: map[string]string{"clients": "2"}, Valid: 1, Metrics: map[string]results.Aggregate{"throughput": {N: 1, Mean: 19}, "meanLatency": {N: 1, Mean: 3}}},
		},
	}
	b, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A folder gets every form, or the form that -o names. Each plot is a file.
func TestWritesFolders(t *testing.T) {
	const captions = " plots/captions.txt"
	const plots = "plots/curve-01-throughput.X plots/curve-02-mean-latency.X plots/curve-03-latency-against-throughput.X"
	for output, want := range map[string]string{
		"": "claims.csv latency.csv network.csv " + strings.ReplaceAll(plots, "X", "png") + " " + strings.ReplaceAll(plots, "X", "svg") + " " + strings.ReplaceAll(plots, "X", "pdf") + " " + strings.ReplaceAll(plots, "X", "tex") +
			" " + strings.ReplaceAll(plots, "X", "vl.json") + " " + strings.ReplaceAll(plots, "X", "py") + " " + strings.ReplaceAll(plots, "X", "R") + captions + " points.csv recovery.csv report.html report.md report.txt resources.csv results.json tables.tex trials.csv use.csv",
		"pdf": strings.ReplaceAll(plots, "X", "pdf") + captions, "pgfplots": strings.ReplaceAll(plots, "X", "tex") + captions, "vega-lite": strings.ReplaceAll(plots, "X", "vl.json") + captions,
		"matplotlib": strings.ReplaceAll(plots, "X", "py") + captions, "ggplot": strings.ReplaceAll(plots, "X", "R") + captions, "latex": "tables.tex",
		"svg": strings.ReplaceAll(plots, "X", "svg"), "png": strings.ReplaceAll(plots, "X", "png"), "markdown": "report.md",
	} {
		said := &bytes.Buffer{}
		dir := filepath.Join(t.TempDir(), "a", "b")
		if err := report.Run(t.Context(), &session.Session{Err: said}, report.Options{File: plotted(t), Output: output, OutputDir: dir}); err != nil {
			t.Fatal(err)
		}
		var names []string
		err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				name, _ := filepath.Rel(dir, path)
				names = append(names, filepath.ToSlash(name))
				if info, err := entry.Info(); err != nil || info.Size() == 0 {
					t.Errorf("%s is empty (%v)", name, err)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if got, want := strings.Join(names, " "), strings.Join(wanted, " "); got != want {
			t.Errorf("-o %q writes %s\nwant %s", output, got, want)
		}
		if !strings.Contains(said.String(), dir) {
			t.Errorf("-o %q says %q and not where", output, said)
		}
	}
}

// For an experiment without plots, the command says that there are none, and why.
func TestFolderWithoutPlots(t *testing.T) {
	s, _ := newSession(t, experiment("cm"), stored(t, "cm", 1, time.Time{}))
	said := &bytes.Buffer{}
	s.Err = said
	if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: "svg", OutputDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "Experiment e has no plots") {
		t.Errorf("it says %q", said)
	}
}

// The command reads a file of -o json without a cluster.
func TestFile(t *testing.T) {
	s, out := newSession(t, experiment("cm"), stored(t, "cm", 77, time.Time{}))
	if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: "json"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	offline := &session.Session{Out: &again, Connect: func() (session.Cluster, error) { return session.Cluster{}, errors.New("no cluster") }}
	if err := report.Run(t.Context(), offline, report.Options{File: path, Output: "text"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(again.String(), "seed        77") {
		t.Errorf("the report of the file:\n%s", again.String())
	}
}

func TestRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		options report.Options
		want    string
	}{
		"no name":           {report.Options{Output: "text"}, "give the NAME of an experiment"},
		"name and file":     {report.Options{Output: "text", Name: "e", File: "f"}, "give the NAME of an experiment, or --file"},
		"an unknown form":   {report.Options{Output: "eps", Name: "e"}, "-o eps: choose one of claims-csv, csv, histograms-csv, html, json, latency-csv, latex, markdown, network-csv, parquet, recovery-csv, resources-csv, text, trials-csv, use-csv, yaml, svg, png, pdf, pgfplots, vega-lite, matplotlib, ggplot, or a file whose name ends in .csv, "},
		"plots on stdout":   {report.Options{Output: "svg", Name: "e"}, "-o svg: a report has a file for each plot; say where they go with --output-dir"},
		"plots in one file": {report.Options{Output: "e.png", Name: "e"}, "-o e.png: a report has a file for each plot"},
		"no ending":         {report.Options{Output: "out", Name: "e"}, "-o out: choose one of"},
		"file and folder":   {report.Options{Output: "r.html", OutputDir: "d", Name: "e"}, "-o r.html: with --output-dir, choose one of claims-csv, csv, histograms-csv, html, json, "},
		"figures on stdout": {report.Options{Output: "pdf", Name: "e"}, "-o pdf: a report has a file for each plot"},
		"no width":          {report.Options{File: plotted(t), OutputDir: t.TempDir(), Figures: report.FigureFlags{Width: "3"}}, "--width: \"3\" is no length; write a number above 0 and in, cm, mm, pt or bp"},
		"no font":           {report.Options{File: plotted(t), OutputDir: t.TempDir(), Figures: report.FigureFlags{Font: "comic"}}, "--font comic: choose serif or sans"},
		"no such axis":      {report.Options{File: plotted(t), OutputDir: t.TempDir(), Figures: report.FigureFlags{Log: "z"}}, "--log z: choose x, y, xy or linear"},
		"no text":           {report.Options{File: plotted(t), OutputDir: t.TempDir(), Figures: report.FigureFlags{Labels: []string{"clients="}}}, "--label clients=: write NAME=TEXT"},
		"no such curve":     {report.Options{File: plotted(t), Output: "pdf", OutputDir: t.TempDir(), Figures: report.FigureFlags{Curves: []string{"ideal"}}}, "no figure has a curve \"ideal\"; there are measured"},
		"nothing to label":  {report.Options{File: plotted(t), Output: "pdf", OutputDir: t.TempDir(), Figures: report.FigureFlags{Labels: []string{"rate=r"}}}, "no figure has \"rate\" to label; there are clients, mean latency (ms), measured, throughput (tx/s)"},
		"no histograms":     {report.Options{File: plotted(t), Output: "parquet"}, "experiment e: no histograms were found; they are in the results of valid trials in the cluster and in a bundle"},
		"no such file":      {report.Options{Output: "text", File: "/does/not/exist"}, "--file: read /does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t)
			if err := report.Run(t.Context(), s, tc.options); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want: %s", err, tc.want)
			}
		})
	}
}
