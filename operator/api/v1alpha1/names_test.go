package v1alpha1_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Argo Rollouts has the short name exp, Katib has the kinds Experiment and Trial, Fluid has
// Dataset: a short name that says whose it is reaches the right one.
func TestShortNamesAreOurs(t *testing.T) {
	want := map[string]string{"Experiment": "aexp", "Trial": "atr", "System": "asys", "Dataset": "ads"}
	files, err := filepath.Glob("../../../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kind := crd.Spec.Names.Kind
		if got := crd.Spec.Names.ShortNames; !slices.Equal(got, []string{want[kind]}) {
			t.Errorf("%s has the short names %v, want %s", kind, got, want[kind])
		}
		delete(want, kind)
	}
	for kind := range want {
		t.Errorf("there is no CRD of %s", kind)
	}
}
