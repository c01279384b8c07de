package local

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/flame"
)

// filesOf a bundle, by their names without the bundle's folder.
func filesOf(t *testing.T, bundle string) map[string]string {
	t.Helper()
	file, err := os.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for pack := tar.NewReader(zip); ; {
		header, err := pack.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(pack)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(content)
	}
}

// This test goes from the Experiment to a flame graph in its bundle, which the page links. Replicas
// really sample themselves. Basil's image has no perf, and the page names the missing program. The
// trial counts for no claim.
func TestFlameGraphsOfReplicas(t *testing.T) {
	dir := t.TempDir()
	out, said, code := run(t, dir, "run", "--wait", "-f", "testdata/flame.yaml", "-f", "../../../experiments/systems/basil.yaml")
	if !judged(code) || !strings.Contains(out, "1 of 1 planned trial valid") {
		t.Fatalf("exit code %d\n%s\n%s", code, said, out)
	}
	var flames []string
	all := trialsOf(t, dir, "flame")
	for name := range all {
		if trial := all[name]; !trial.Spec.Measures() {
			flames = append(flames, name)
			for _, c := range trial.Status.Conditions {
				if c.Type == v1alpha1.TrialValid {
					t.Logf("%s is %s, %s: %s", name, c.Status, c.Reason, c.Message)
				}
			}
		}
	}
	if len(flames) != 1 {
		t.Fatalf("%d trials draw flame graphs, want 1", len(flames))
	}
	bundle := filepath.Join(t.TempDir(), "flame.tar.gz")
	if _, said, code := run(t, dir, "bundle", "flame", "-o", bundle); code != 0 {
		t.Fatalf("the bundle: exit code %d\n%s", code, said)
	}
	files := filesOf(t, bundle)
	for _, pod := range []string{flames[0] + "-s0-local-0", flames[0] + "-s0-local-1"} {
		at := "trials/" + flames[0] + "/pods/" + pod + "/out/flamegraphs/cpu-1"
		stacks, err := flame.Read(strings.NewReader(files[at+".folded"]))
		if err != nil || !strings.Contains(files[at+".folded"], "replica.") {
			t.Errorf("%s: %v\n%.2000s", pod, err, files[at+".folded"])
		}
		t.Logf("%s: %d samples, %d stacks, %d bytes of picture", pod, stacks.Samples(), len(stacks), len(files[at+".svg"]))
		for file, want := range map[string]string{at + ".svg": "<title>" + pod + ", by Pprof</title>", "report.html": `<a href="` + at + `.svg">`} {
			if !strings.Contains(files[file], want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
	}
	for _, want := range []string{"never counts", "none: Perf: "} {
		if !strings.Contains(files["report.html"], want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if out, said, code := run(t, dir, "verify", bundle); code != 0 {
		t.Errorf("verify: exit code %d\n%s\n%s", code, said, out)
	}
}
