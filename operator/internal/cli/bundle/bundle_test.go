package bundle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/cli/bundle"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// Files that are kept beside the results of a trial.
var (
	given    = map[string][]byte{"replica.config.json": []byte("{}"), "client.commands.json": []byte("[]")}
	reported = map[string][]byte{"e-0-c-0.json.gz": []byte("packed")}
	ofPod    = map[string][]byte{"out/stats.json": []byte("{}")}
)

// beside packs these files into the ConfigMap of a trial, as the manager does.
func beside(t *testing.T, m *corev1.ConfigMap) {
	t.Helper()
	m.BinaryData = map[string][]byte{}
	for key, files := range map[string]map[string][]byte{results.RenderedPack: given, results.ReportsPack: reported} {
		packed, err := results.PackFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		m.BinaryData[key] = packed
	}
}

func configMap(name, kind string, data map[string]string) *corev1.ConfigMap {
	labels := map[string]string{v1alpha1.LabelResults: kind, v1alpha1.LabelExperiment: "e"}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: labels}, Data: data}
}

// objects are the results of an experiment with a valid, an invalid and a lost trial, and two
// frozen Systems: one of this experiment and one of another.
func objects(t *testing.T) []client.Object {
	t.Helper()
	completed := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	h := results.NewHistogram()
	for i := range 200 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	latency, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e, err := results.EncodeExperiment(results.Experiment{
		Name: "e", UID: "u1", Seed: 7, Started: completed.Add(-time.Hour), Completed: &completed, Planned: 2, Source: map[string]string{"title": "A paper", "url": "https://example.org/paper"}, Points: []results.PointResult{{Valid: 1}},
		Trials: []results.TrialLine{
			{Name: "e-0", Number: 0, Outcome: "Succeeded", ConfigMap: "e-0-results"}, {Name: "e-1", Number: 1, Outcome: "Invalid", ConfigMap: "e-1-results"},
			{Name: "e-2", Number: 2, Outcome: "Failed", ConfigMap: "e-2-results"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := []client.Object{configMap("e-results", "experiment", map[string]string{"results.json": string(e), "spec.json": `{"systems":[{"name":"etcd"}]}`})}
	for name, outcome := range map[string]string{"e-0": "Succeeded", "e-1": "Invalid"} {
		timeline := results.NewTimeline(0, 1)
		b, err := results.EncodeTrial(results.Trial{
			Name: name, Outcome: outcome, Latency: latency, Timeline: &timeline, Coordinates: map[string]string{"clients": "10"},
			Software: &results.Software{Manager: "v0.2.0", ManagerImage: "manager@sha256:2", Kubernetes: "v1.36.1"},
			Pods:     []results.Pod{{Part: "replica", Images: "sha256:1", Kernel: "6.1", Agent: "v0.2.0", NodeSoftware: "kubelet v1.36.1, containerd://2.1.0"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		m := configMap(name+"-results", "trial", map[string]string{"trial.json": string(b)})
		if name == "e-0" {
			beside(t, m)
		}
		all = append(all, m)
	}
	files := configMap("e-0-results-files", v1alpha1.ResultsFiles, nil)
	packed, err := results.PackFiles(ofPod)
	if err != nil {
		t.Fatal(err)
	}
	files.BinaryData = map[string][]byte{"e-0-s0-0.tar.gz": packed}
	all = append(all, files)
	for name, owner := range map[string]string{"of-this": "u1", "of-another": "u2"} {
		all = append(all, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "ns", Labels: map[string]string{v1alpha1.LabelExperiment: "e", v1alpha1.LabelSystem: name},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "assay.dev/v1alpha1", Kind: "Experiment", Name: "e", UID: types.UID(owner)}},
			},
			Data: runtime.RawExtension{Raw: []byte(`{"replicas":"2 * f + 1"}`)},
		})
	}
	return all
}

func newSession(t *testing.T, objects ...client.Object) (*session.Session, *bytes.Buffer) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	said := &bytes.Buffer{}
	return &session.Session{Out: &bytes.Buffer{}, Err: said, Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "ns"}, nil }}, said
}

func makeBundle(t *testing.T, objects ...client.Object) (path string, said string) {
	t.Helper()
	return makeBundleOf(t, "e.tar.gz", objects...)
}

func makeBundleOf(t *testing.T, name string, objects ...client.Object) (path string, said string) {
	t.Helper()
	s, errOut := newSession(t, objects...)
	path = filepath.Join(t.TempDir(), name)
	if err := bundle.Run(t.Context(), s, bundle.Options{Name: "e", Output: path}); err != nil {
		t.Fatal(err)
	}
	return path, errOut.String()
}

// filesOf returns the files of a bundle, in its order.
func filesOf(t *testing.T, path string) (names []string, content map[string]string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content = map[string]string{}
	if err := archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, data []byte) error {
		names, content[name] = append(names, name), string(data)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names, content
}

func TestBundleHoldsEverything(t *testing.T) {
	path, said := makeBundle(t, objects(t)...)
	if !strings.Contains(said, "with 2 trials written to "+path) || !strings.Contains(said, "Left out: the results of 1 of 3 trials, whose ConfigMaps are gone") {
		t.Errorf("it says: %s", said)
	}
	names, content := filesOf(t, path)
	want := []string{
		"experiment.yaml", "systems/of-this.yaml",
		"trials/e-0/latency.hdr.base64", "trials/e-0/pods/e-0-s0-0/out/stats.json", "trials/e-0/rendered/client.commands.json", "trials/e-0/rendered/replica.config.json", "trials/e-0/reports/e-0-c-0.json.gz",
		"trials/e-0/timeline.csv", "trials/e-0/trial.json", "trials/e-1/latency.hdr.base64", "trials/e-1/timeline.csv", "trials/e-1/trial.json",
		"claims.csv", "latency.csv", "network.csv", "plots/cdf-01-latency.svg", "points.csv", "recovery.csv", "report.html", "report.md", "resources.csv", "results.json", "trials.csv", "use.csv", "versions.json", "README.md", "ro-crate-metadata.json",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"experiment.yaml": "kind: Experiment\nmetadata:\n  name: e\nspec:\n  seed: 7\n  systems:\n  - name: etcd\n", "systems/of-this.yaml": "kind: System\nmetadata:\n  name: of-this\nspec:\n  replicas: 2 * f + 1\n",
		"versions.json": `"v0.2.0, manager@sha256:2"`, "trials/e-0/reports/e-0-c-0.json.gz": "packed", "README.md": "Left out: the results of 1 of 3 trials", "report.html": "Latency distributions",
	} {
		if !strings.Contains(content[name], want) {
			t.Errorf("%s does not contain %q:\n%s", name, want, content[name])
		}
	}
	if _, err := results.DecodeHistogram(strings.TrimSpace(content["trials/e-0/latency.hdr.base64"])); err != nil {
		t.Error(err)
	}
}

// A bundle by zstd lacks the files that are made from its other files, and says nothing of them.
// The same report is made of it.
func TestSlimBundleHoldsWhatCannotBeMadeAgain(t *testing.T) {
	slim, _ := makeBundleOf(t, "e.tar.zst", objects(t)...)
	names, content := filesOf(t, slim)
	slices.Sort(names)
	want := []string{
		"README.md", "experiment.yaml", "results.json", "ro-crate-metadata.json", "systems/of-this.yaml",
		"trials/e-0/pods/e-0-s0-0/out/stats.json", "trials/e-0/rendered/client.commands.json", "trials/e-0/rendered/replica.config.json", "trials/e-0/reports/e-0-c-0.json.gz",
		"trials/e-0/trial.json", "trials/e-1/trial.json", "versions.json",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, name := range []string{"README.md", "ro-crate-metadata.json"} {
		for _, left := range []string{"report.html", "plots/", "points.csv", "timeline.csv", "latency.hdr"} {
			if strings.Contains(content[name], left) {
				t.Errorf("%s speaks of %s:\n%s", name, left, content[name])
			}
		}
	}
	whole, _ := makeBundle(t, objects(t)...)
	reports := map[string]string{}
	for _, file := range []string{slim, whole} {
		out := &bytes.Buffer{}
		if err := report.Run(t.Context(), &session.Session{Out: out, Err: &bytes.Buffer{}}, report.Options{File: file, Output: "markdown"}); err != nil {
			t.Fatal(err)
		}
		reports[file] = out.String()
	}
	if diff := cmp.Diff(reports[whole], reports[slim]); diff != "" {
		t.Errorf("(-of the whole +of the slim bundle):\n%s", diff)
	}
}

// Without -o, the bundle is slim and in the current directory.
func TestBundleHasANameByItself(t *testing.T) {
	t.Chdir(t.TempDir())
	s, _ := newSession(t, objects(t)...)
	if err := bundle.Run(t.Context(), s, bundle.Options{Name: "e"}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile("e.tar.zst"); err != nil || archive.Sniff(data) != archive.Zstd {
		t.Errorf("no bundle by zstd: %v", err)
	}
}

// A manager that passes its ConfigMap to the program gets the bytes that the verb writes.
func TestManagersGetTheSameBytes(t *testing.T) {
	path, _ := makeBundle(t, objects(t)...)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newSession(t, objects(t)...)
	cluster, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "e-results"}, stored); err != nil {
		t.Fatal(err)
	}
	given, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	cmd := bundle.ForManagers(func() (client.Reader, error) { return cluster.Client, nil })
	var out bytes.Buffer
	cmd.SetIn(bytes.NewReader(given))
	cmd.SetOut(&out)
	cmd.SetArgs([]string{})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("got %d bytes, want %d that are equal: %v", out.Len(), len(want), err)
	}
	cmd.SetIn(strings.NewReader("{"))
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "read the ConfigMap with the results") {
		t.Errorf("of half a ConfigMap: %v", err)
	}
}

func TestSameResultsGiveTheSameBytes(t *testing.T) {
	first, _ := makeBundle(t, objects(t)...)
	second, _ := makeBundle(t, objects(t)...)
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("%d and %d bytes differ (%v, %v)", len(a), len(b), errA, errB)
	}
}

// The report of a cluster says which ConfigMap has the files of pods.
func TestReportNamesFilesOfPods(t *testing.T) {
	s, _ := newSession(t, objects(t)...)
	out := &bytes.Buffer{}
	s.Out = out
	if err := report.Run(t.Context(), s, report.Options{Name: "e", Output: "markdown"}); err != nil {
		t.Fatal(err)
	}
	if want := "out/stats.json | ConfigMap e-0-results-files |"; !strings.Contains(out.String(), want) {
		t.Errorf("the report does not say %q:\n%s", want, out)
	}
}

// The report of a bundle is the one that was put in it.
func TestReportReadsABundle(t *testing.T) {
	path, _ := makeBundle(t, objects(t)...)
	out := &bytes.Buffer{}
	offline := &session.Session{Out: out, Err: &bytes.Buffer{}, Connect: func() (session.Cluster, error) { return session.Cluster{}, errors.New("no cluster") }}
	if err := report.Run(t.Context(), offline, report.Options{File: path, Output: "markdown"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed string
	if err := archive.Read(bytes.NewReader(data), func(n string) bool { return n == "report.md" }, func(_ string, data []byte) error { packed = string(data); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(packed, out.String()); diff != "" || !strings.Contains(packed, "kernel: 6.1") || !strings.Contains(packed, "out/stats.json | trials/e-0/pods |") {
		t.Errorf("(-in the bundle +made of it):\n%s", diff)
	}
}

// Results of a large experiment have no room for the lines of its trials. Bundles of such
// experiments once left out all trials that succeeded, and did not say so.
func TestBundleHoldsTrialsWithoutLines(t *testing.T) {
	e, err := results.EncodeExperiment(results.Experiment{
		Name: "e", UID: "u1", Points: []results.PointResult{{Valid: 3, Invalid: 1}}, LeftOut: []string{"the lines of trials that succeeded: see the trials' own results"},
		Trials: []results.TrialLine{{Name: "e-1a2b-3", Number: 3, Outcome: "Invalid", ConfigMap: "e-1a2b-3-results"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := []client.Object{configMap("e-1a2b-results", "experiment", map[string]string{"results.json": string(e), "spec.json": "{}"})}
	for name, number := range map[string]int32{"e-1a2b-3": 3, "e-1a2b-10": 10, "e-1a2b-2": 2, "e-ffff-2": 2} {
		outcome := "Succeeded"
		if number == 3 {
			outcome = "Invalid"
		}
		b, err := results.EncodeTrial(results.Trial{Name: name, Number: number, Outcome: outcome, Pods: []results.Pod{{Part: "replica", Images: "sha256:1", Kernel: "6.1"}}})
		if err != nil {
			t.Fatal(err)
		}
		c := configMap(name+"-results", "trial", map[string]string{"trial.json": string(b)})
		c.Labels[v1alpha1.LabelTrial] = name
		all = append(all, c)
	}
	path, said := makeBundle(t, all...)
	if !strings.Contains(said, "with 3 trials written to ") || !strings.Contains(said, "Left out: the results of 1 of 4 trials, whose ConfigMaps are gone") {
		t.Errorf("it says: %s", said)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var trials []string
	var packed string
	if err := archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, data []byte) error {
		if strings.HasPrefix(name, "trials/") {
			trials = append(trials, name)
		}
		if name == "report.md" {
			packed = string(data)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"trials/e-1a2b-2/trial.json", "trials/e-1a2b-3/trial.json", "trials/e-1a2b-10/trial.json"}, trials); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	out := &bytes.Buffer{}
	if err := report.Run(t.Context(), &session.Session{Out: out}, report.Options{File: path, Output: "markdown"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(packed, out.String()); diff != "" || !strings.Contains(packed, "| e-1a2b-10 |") || !strings.Contains(packed, "the lines of 1 trial, which did not fit") {
		t.Errorf("(-in the bundle +made of it):\n%s\n%s", diff, packed)
	}
}

func TestSystemsThatAreGoneAreNamed(t *testing.T) {
	_, said := makeBundle(t, objects(t)[:3]...)
	if !strings.Contains(said, "Left out: the Systems, which were kept with the Experiment: it is gone") {
		t.Errorf("it says: %s", said)
	}
}

func TestRefuses(t *testing.T) {
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		o    bundle.Options
		want string
	}{
		"another form":  {bundle.Options{Name: "e", Output: filepath.Join(folder, "e.zip")}, "give it a name that ends in .tar.zst, .tar.gz or .tgz"},
		"no experiment": {bundle.Options{Name: "f", Output: filepath.Join(folder, "f.tgz")}, "experiment f is not in namespace ns"},
		"no folder":     {bundle.Options{Name: "e", Output: filepath.Join(folder, "none", "e.tgz")}, "write the bundle"},
	} {
		s, _ := newSession(t, objects(t)...)
		if err := bundle.Run(t.Context(), s, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want: %s", name, err, tc.want)
		}
	}
	broken := objects(t)
	broken[1].(*corev1.ConfigMap).Data["trial.json"] = "{"
	s, _ := newSession(t, broken...)
	if err := bundle.Run(t.Context(), s, bundle.Options{Name: "e", Output: filepath.Join(folder, "e.tgz")}); err == nil || !strings.Contains(err.Error(), "results of trial") {
		t.Errorf("a trial that cannot be read: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v (%v)", left, err)
	}
}
