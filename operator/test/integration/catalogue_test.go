package integration

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// Every System and every Experiment of the catalogue is admitted without changes, and with each of
// its profiles.
func TestCatalogueIsAdmitted(t *testing.T) {
	t.Parallel()
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	env := testenv.Get(t)
	ns := env.Namespace(t)
	systems := 0
	for _, obj := range objects(t, filepath.Join(root, "experiments", "systems", "*.yaml")) {
		obj.SetNamespace(ns)
		if err := env.Client.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s: %v", obj.GetName(), err)
		}
		systems++
	}
	experiments := 0
	var wait sync.WaitGroup
	offered := make(chan *unstructured.Unstructured)
	for range 2 { // the largest ones need a processor for seconds, and webhooks have half a minute
		wait.Go(func() {
			for try := range offered {
				if err := env.Client.Create(t.Context(), try, client.DryRunAll); err != nil {
					profile, _, _ := unstructured.NestedString(try.Object, "spec", "profile")
					t.Errorf("%s, profile %q: %v", try.GetName(), profile, err)
				}
			}
		})
	}
	for _, obj := range objects(t, filepath.Join(root, "experiments", "*.yaml"), filepath.Join(root, "experiments", "*", "*.yaml")) {
		if obj.GetKind() != "Experiment" {
			continue
		}
		experiments++
		profiles, _, err := unstructured.NestedSlice(obj.Object, "spec", "profiles")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range append([]any{map[string]any{"name": ""}}, profiles...) {
			profile := p.(map[string]any)["name"].(string)
			try := obj.DeepCopy()
			try.SetNamespace(ns)
			if profile != "" {
				if err := unstructured.SetNestedField(try.Object, profile, "spec", "profile"); err != nil {
					t.Fatal(err)
				}
			}
			offered <- try
		}
	}
	close(offered)
	wait.Wait()
	if systems < 9 || experiments < 25 {
		t.Errorf("%d Systems and %d Experiments; the catalogue has more", systems, experiments)
	}
}

func objects(t *testing.T, patterns ...string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, document := range strings.Split(string(text), "\n---\n") {
				obj := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				all = append(all, obj)
			}
		}
	}
	return all
}
