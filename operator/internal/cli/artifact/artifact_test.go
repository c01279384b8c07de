package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/artifact"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/results"
)

const failureFP = "../../../../experiments/pesto/evidence/failure-fp.tar.zst"

func newSession() (s *session.Session, printed, said *bytes.Buffer) {
	printed, said = &bytes.Buffer{}, &bytes.Buffer{}
	return &session.Session{Out: printed, Err: said}, printed, said
}

func run(t *testing.T, o artifact.Options) (printed, said string) {
	t.Helper()
	s, out, err := newSession()
	if err := artifact.Run(t.Context(), s, o); err != nil {
		t.Fatal(err)
	}
	return out.String(), err.String()
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The folder of a bundle has the bundle, which verify accepts, and scripts that can be executed.
// The checklist is printed.
func TestFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "here")
	printed, said := run(t, artifact.Options{Name: failureFP, Output: folder})
	if !strings.Contains(printed, "there is no DOI") || !strings.Contains(printed, "claim C1") || !strings.Contains(said, "written to "+folder) {
		t.Errorf("it prints %s and says %s", printed, said)
	}
	s, out, _ := newSession()
	if err := verify.Run(s, verify.Options{Bundle: filepath.Join(folder, "bundle", "failure-fp.tar.zst")}); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	for _, script := range []string{"run-local.sh", "run-on-cluster.sh", "check.sh"} {
		if info, err := os.Stat(filepath.Join(folder, script)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", script, info, err)
		}
	}
	if strings.Contains(printed, "finds") {
		t.Errorf("differences are found in a bundle that verify accepts: %s", printed)
	}
}

// When the command runs again, it reads about.yaml of the folder. It keeps files that the authors
// changed or added.
func TestASecondRunKeepsFilesOfTheAuthors(t *testing.T) {
	folder := t.TempDir()
	o := artifact.Options{Name: failureFP, Output: folder}
	run(t, o)
	for name, text := range map[string]string{"about.yaml": "license: CC-BY-4.0\n", "appendix/usenix.md": "Our own words.\n", "notes.txt": "mine"} {
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	printed, said := run(t, o)
	if strings.Contains(printed, "licence") {
		t.Errorf("the licence of about.yaml is not read: %s", printed)
	}
	for name, want := range map[string]string{"about.yaml": "license: CC-BY-4.0\n", "appendix/usenix.md": "Our own words.\n", "notes.txt": "mine"} {
		if got := read(t, folder, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(said, "appendix/usenix.md was changed since: it stays") || !strings.Contains(read(t, folder, "appendix", "usenix.md.new"), "# Abstract") {
		t.Errorf("the new appendix is not beside the old one: %s", said)
	}
	if !strings.Contains(read(t, folder, "CITATION.cff"), "license: CC-BY-4.0") {
		t.Error("CITATION.cff has no licence")
	}
	sum := sha256.Sum256([]byte("Our own words.\n"))
	if !strings.Contains(read(t, folder, "SHA256SUMS"), hex.EncodeToString(sum[:])+"  appendix/usenix.md\n") {
		t.Error("SHA256SUMS is not of the files that are there")
	}
	_, said = run(t, o)
	if read(t, folder, "appendix", "usenix.md") != "Our own words.\n" {
		t.Error("a second run lost what the author wrote")
	}
	if strings.Contains(said, "README.md was changed") || strings.Contains(said, "CITATION.cff was changed") {
		t.Errorf("files that nobody changed count as changed: %s", said)
	}
}

func TestArchiveOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "images")
	writeImages(t, images)
	about := filepath.Join(dir, "about.yaml")
	if err := os.WriteFile(about, []byte("doi: 10.5281/zenodo.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "artifact.tar.gz")
	printed, _ := run(t, artifact.Options{Name: failureFP, Output: file, About: about, Images: images})
	if strings.Contains(printed, "DOI") || !strings.Contains(printed, "the archive images/basil.tar is not the image that ran") {
		t.Errorf("the checklist is %s", printed)
	}
	names := map[string]int64{}
	for name, mode := range entries(t, file) {
		names[name] = mode
	}
	for name, mode := range map[string]int64{
		"failure-fp-artifact/README.md": 0o644, "failure-fp-artifact/run-local.sh": 0o755, "failure-fp-artifact/images/basil.tar": 0o644, "failure-fp-artifact/bundle/failure-fp.tar.zst": 0o644,
	} {
		if names[name] != mode {
			t.Errorf("%s has the mode %o, want %o", name, names[name], mode)
		}
	}
	if _, there := names["failure-fp-artifact/images/other.tar"]; there {
		t.Error("an image that no System names is in the archive")
	}
}

func entries(t *testing.T, file string) map[string]int64 {
	t.Helper()
	gz, err := gzip.NewReader(strings.NewReader(read(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for in := tar.NewReader(gz); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = h.Mode
	}
}

// writeImages writes archives as docker save does, with no layers.
func writeImages(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tag := range map[string]string{"basil": "docker.io/assay/basil:dev", "other": "docker.io/assay/other:dev"} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		manifest := `[{"Config":"blobs/sha256/0123","RepoTags":["` + tag + `"],"Layers":[]}]`
		if err := w.WriteHeader(&tar.Header{Name: "manifest.json", Mode: 0o644, Size: int64(len(manifest))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(manifest)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Close(), os.WriteFile(filepath.Join(dir, name+".tar"), b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// The artifact of an experiment of a cluster has the results that are left when its trials are
// gone.
func TestArtifactOfAnExperimentInACluster(t *testing.T) {
	completed := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	encoded, err := results.EncodeExperiment(results.Experiment{Name: "e", UID: "u1", Seed: 7, Started: completed.Add(-time.Hour), Completed: &completed})
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "e-results", Namespace: "ns", Labels: map[string]string{v1alpha1.LabelResults: "experiment", v1alpha1.LabelExperiment: "e"}},
		Data:       map[string]string{"results.json": string(encoded), "spec.json": `{"systems":[{"name":"etcd"}],"profile":"smoke"}`},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
	s, out, _ := newSession()
	s.Connect = func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "ns"}, nil }
	t.Chdir(t.TempDir())
	if err := artifact.Run(t.Context(), s, artifact.Options{Name: "e"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "the bundle has no Systems") || !strings.Contains(read(t, "e-artifact", "experiment.yaml"), "seed: 7") {
		t.Errorf("it prints %s", out)
	}
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a-file")
	about := filepath.Join(dir, "about.yaml")
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{file: "x", filepath.Join(other, "README.md"): "mine", about: "licence: x\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		o    artifact.Options
		want string
		code int
	}{
		"output is a file":            {artifact.Options{Name: failureFP, Output: file}, "name a folder, or a file", session.ExitUsage},
		"no such bundle":              {artifact.Options{Name: filepath.Join(dir, "none.tar.gz"), Output: dir}, "none.tar.gz", session.ExitUsage},
		"no such about":               {artifact.Options{Name: failureFP, Output: filepath.Join(dir, "out"), About: filepath.Join(dir, "none.yaml")}, "none.yaml", session.ExitUsage},
		"a wrong about":               {artifact.Options{Name: failureFP, Output: filepath.Join(dir, "out"), About: about}, "about.yaml: line 1: licence", session.ExitError},
		"no folder of images":         {artifact.Options{Name: failureFP, Output: filepath.Join(dir, "out"), Images: filepath.Join(dir, "none")}, "--images", session.ExitUsage},
		"a folder of another program": {artifact.Options{Name: failureFP, Output: other}, "README.md in", session.ExitError},
		"no bundle":                   {artifact.Options{Name: "./" + filepath.Base(file), Output: dir}, "", session.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := newSession()
			err := artifact.Run(t.Context(), s, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || session.ExitCode(err) != tc.code {
				t.Errorf("error is %v with code %d, want %q with %d", err, session.ExitCode(err), tc.want, tc.code)
			}
			if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
				t.Error("something was written")
			}
		})
	}
}
