package ui

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// The page of an experiment lists profiles and links their pictures. The page serves no other file
// of a trial.
func TestFlameGraphsAreLinked(t *testing.T) {
	s, c := serving(t, 2)
	if page := ask(s, "/experiments/ns/e", nil).Body.String(); strings.Contains(page, "Flame graphs") {
		t.Errorf("the page of an experiment without profilers has flame graphs:\n%s", page)
	}

	sample := results.FaultRecord{ID: "cpu/1/sample/e-0-s0-0", Fault: "cpu", Time: 1, Pod: "e-0-s0-0", Kind: "Sample", Profiler: "Pprof", PlannedMillis: 1000, StartedMillis: 1002, ConfirmedMillis: 6100, SampledMillis: 5000, Samples: 321}
	refused := sample
	refused.Pod, refused.Error, refused.Samples, refused.Profiler = "e-0-s0-1", "Perf: it exited with 255", 0, "Perf"
	encoded, err := results.EncodeTrial(results.Trial{Name: "e-0", Outcome: "Invalid", NotMeasuring: true, Faults: []results.FaultRecord{sample, refused}})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := results.Pack(encoded)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := results.PackFiles(map[string][]byte{
		"out/flamegraphs/cpu-1.svg": []byte("<svg>the picture</svg>"), "out/flamegraphs/cpu-1.folded": []byte("main 321\n"), "out/flamegraphs/other.svg": []byte("SECRET"), "out/notes.txt": []byte("SECRET"),
	})
	if err != nil {
		t.Fatal(err)
	}
	files := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e-0-results-files", Labels: map[string]string{v1alpha1.LabelTrial: "e-0", v1alpha1.LabelResults: v1alpha1.ResultsFiles}},
		BinaryData: map[string][]byte{"e-0-s0-0.tar.gz": packed},
	}
	for _, o := range []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e-0-results"}, BinaryData: map[string][]byte{results.StoredKey: stored}}, files} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var trial v1alpha1.Trial
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "e-0"}, &trial); err != nil {
		t.Fatal(err)
	}
	trial.Spec.Purpose, trial.Status.ResultsConfigMap = v1alpha1.PurposeFlameGraphs, "e-0-results"
	if err := c.Update(t.Context(), &trial); err != nil {
		t.Fatal(err)
	}

	const address = "/trials/ns/e-0/flamegraphs/e-0-s0-0/cpu-1.svg"
	page := ask(s, "/experiments/ns/e", nil).Body.String()
	for _, want := range []string{"<h2>Flame graphs</h2>", `<a href="` + address + `"`, `<td class="number">321</td>`, `<td class="number">1.002</td><td class="number">6.002</td>`, "none: Perf: it exited with 255"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}

	w := ask(s, address, nil)
	if w.Code != http.StatusOK || w.Body.String() != "<svg>the picture</svg>" || w.Header().Get("Content-Type") != "image/svg+xml" {
		t.Errorf("the picture: %d, %v: %s", w.Code, w.Header(), w.Body)
	}
	// A program of the trial may have written the picture.
	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "sandbox") || strings.Contains(csp, "script-src") || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("a picture may run scripts: %s", csp)
	}
	for name, path := range map[string]string{
		"the stacks":             "/trials/ns/e-0/flamegraphs/e-0-s0-0/cpu-1.folded",
		"no profiler's picture":  "/trials/ns/e-0/flamegraphs/e-0-s0-0/other.svg",
		"another file":           "/trials/ns/e-0/flamegraphs/e-0-s0-0/..%2fnotes.txt",
		"of another pod":         "/trials/ns/e-0/flamegraphs/e-0-s0-1/cpu-1.svg",
		"of a trial that counts": "/trials/ns/e-1/flamegraphs/e-0-s0-0/cpu-1.svg",
		"of no trial":            "/trials/ns/none/flamegraphs/e-0-s0-0/cpu-1.svg",
	} {
		if w := ask(s, path, nil); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("%s: status %d: %.100s", name, w.Code, w.Body)
		}
	}
	s.MaySee = func(_ context.Context, namespace string) bool { return namespace != "ns" }
	if w := ask(s, address, nil); w.Code != http.StatusNotFound {
		t.Errorf("a visitor who may not see the namespace gets the picture: %d", w.Code)
	}
}
