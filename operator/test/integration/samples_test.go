package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// Every file of config/samples is accepted without changes, and the object that the API server
// stores is accepted again.
func TestSamplesAreAccepted(t *testing.T) {
	env := testenv.Get(t)
	env.ChaosMesh(t) // one of the samples uses it
	ns := env.Namespace(t)
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"systems/*.yaml", "experiment-*.yaml"} { // Systems first
		files, err := filepath.Glob(filepath.Join(root, "config", "samples", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no samples %s: %v", pattern, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				name, err := filepath.Rel(filepath.Join(root, "config", "samples"), file)
				if err != nil {
					t.Fatal(err)
				}
				obj := sample(t, name)
				obj.SetNamespace(ns)
				if err := env.Client.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
				obj.SetLabels(map[string]string{"touched": "yes"})
				if err := env.Client.Update(t.Context(), obj); err != nil {
					t.Errorf("update of an unchanged spec: %v", err)
				}
			})
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "config", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "systems" && !strings.HasPrefix(e.Name(), "experiment-") {
			t.Errorf("config/samples/%s: it is neither the folder systems nor does its name begin with experiment-, so nothing tests it", e.Name())
		}
	}
}

// The longest allowed names are accepted; one letter more is rejected.
func TestLongestNamesAreAccepted(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	for file, length := range map[string]int{"systems/driver.yaml": 40, "experiment-minimal.yaml": 24} {
		for extra := range 2 {
			obj := sample(t, file)
			obj.SetNamespace(ns)
			obj.SetName(strings.Repeat("a", length+extra))
			if err := apply(t, env, obj); (err == nil) != (extra == 0) {
				t.Errorf("%s with a name of %d letters: %v", file, length+extra, err)
			}
		}
	}
}
