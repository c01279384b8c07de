package history_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

var rates = []float64{1003, 995, 1009, 998, 992, 1006, 1001, 991, 907, 896, 905, 894, 908}

// encoded are the results of a run on a day.
func encoded(t *testing.T, day int, rate float64) []byte {
	t.Helper()
	b, err := results.EncodeExperiment(results.Experiment{
		Name: "kv", UID: fmt.Sprint("u", day), Started: time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC),
		Points: []results.PointResult{{Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate([]float64{rate})}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// folder has a file for each run, and one file that is no run.
func folder(t *testing.T, rates []float64) string {
	t.Helper()
	dir := t.TempDir()
	for i, rate := range rates {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("run-%02d.json", i)), encoded(t, i+1, rate), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExitCodes(t *testing.T) {
	steady := append([]float64{}, rates[:8]...)
	for name, tc := range map[string]struct {
		rates []float64
		code  int
		want  string
	}{
		"a regression": {rates, session.ExitDifferent, "worse at the end: throughput"},
		"steady":       {steady, 0, ""},
		"too few":      {rates[:5], session.ExitUndecided, "too few runs"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := history.Run(t.Context(), &session.Session{Out: &out, Err: &bytes.Buffer{}}, history.Options{Runs: []string{folder(t, tc.rates)}, Output: "text"})
			if session.ExitCode(err) != tc.code || tc.want != "" && !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("code %d, %v; want %d, %q\n%s", session.ExitCode(err), err, tc.code, tc.want, out.String())
			}
		})
	}
}

// The runs of an experiment that recurs have different names, and form one series.
func TestRunsThatRecurAreOneSeries(t *testing.T) {
	dir := t.TempDir()
	for i, rate := range rates {
		e, err := results.DecodeExperiment(encoded(t, i+1, rate))
		if err != nil {
			t.Fatal(err)
		}
		e.Name, e.Recurs = fmt.Sprintf("kv-26050%02d0300", i), "kv"
		text, err := results.EncodeExperiment(e)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name+".json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	err := history.Run(t.Context(), &session.Session{Out: &out, Err: &bytes.Buffer{}}, history.Options{Runs: []string{dir}, Output: "text"})
	if session.ExitCode(err) != session.ExitDifferent || !strings.Contains(fmt.Sprint(err), "worse at the end: throughput") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A name stands for all runs of the experiment, the earliest first. A run counts once.
func TestRunsOfACluster(t *testing.T) {
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for i, rate := range rates {
		of := map[string]string{v1alpha1.LabelResults: "experiment", v1alpha1.LabelExperiment: "kv"}
		if i > 5 { // later runs are of an experiment that recurs
			of[v1alpha1.LabelExperiment], of[v1alpha1.LabelRecurs] = fmt.Sprint("kv-", i), "kv"
		}
		at := metav1.NewTime(time.Date(2026, 5, i+1, 0, 0, 0, 0, time.UTC))
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kv-%d-results", i), Namespace: "ns", CreationTimestamp: at, Labels: of},
			Data:       map[string]string{"results.json": string(encoded(t, i+1, rate))},
		})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	var out, said bytes.Buffer
	s := &session.Session{Out: &out, Err: &said, Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "ns"}, nil }}
	file := filepath.Join(t.TempDir(), "history.xml")
	err = history.Run(t.Context(), s, history.Options{Runs: []string{"kv", "kv~2"}, Output: file})
	if session.ExitCode(err) != session.ExitDifferent || !strings.Contains(said.String(), "History of 13 runs") || !strings.Contains(said.String(), "counts once") {
		t.Errorf("%v: %s", err, said.String())
	}
	if page, err := os.ReadFile(file); err != nil || !strings.Contains(string(page), "<failure") {
		t.Errorf("the file is %s, %v", page, err)
	}
	if err := history.Run(t.Context(), s, history.Options{Runs: []string{"other"}, Output: "text"}); err == nil || !strings.Contains(err.Error(), "experiment other is not in namespace ns") {
		t.Errorf("error is %v", err)
	}
}

func TestRefuses(t *testing.T) {
	empty := t.TempDir()
	for name, tc := range map[string]struct {
		o    history.Options
		want string
		code int
	}{
		"a form":          {history.Options{Runs: []string{empty}, Output: "pdf"}, "choose text, csv, github", session.ExitUsage},
		"an empty folder": {history.Options{Runs: []string{empty}, Output: "text"}, "has no bundle", session.ExitError},
		"no such file":    {history.Options{Runs: []string{filepath.Join(empty, "none.tar.gz")}, Output: "text"}, "none.tar.gz", session.ExitUsage},
		"a baseline":      {history.Options{Runs: []string{folder(t, rates)}, Output: "text", Baseline: "system=old"}, "at no point", session.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			err := history.Run(t.Context(), &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || session.ExitCode(err) != tc.code {
				t.Errorf("error is %v with code %d, want %q with %d", err, session.ExitCode(err), tc.want, tc.code)
			}
		})
	}
}
