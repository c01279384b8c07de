package v1alpha1_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Argo Rollouts has the short name exp, Katib has the kinds Experiment and Trial, and Fluid has
// Dataset. Short names of Assay begin with an a, so that they reach Assay's kinds.
func TestShortNamesAreOurs(t *testing.T) {
	want := map[string]string{"Experiment": "aexp", "Trial": "atr", "System": "asys", "Dataset": "ads"}
	for _, crd := range definitions(t) {
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

// API server 1.32.13 takes numbers of more than 32 bits for the format int32. One such object
// would keep the manager from reading any object of its kind.
func TestNumbersOfASpecFitTheirType(t *testing.T) {
	numbers := 0
	var look func(at string, p apiextensionsv1.JSONSchemaProps)
	look = func(at string, p apiextensionsv1.JSONSchemaProps) {
		if p.Format == "int32" {
			numbers++
			if p.Maximum == nil || *p.Maximum > math.MaxInt32 || p.Minimum == nil || *p.Minimum < math.MinInt32 {
				t.Errorf("%s has no bounds that an int32 holds", at)
			}
		}
		for name, below := range p.Properties {
			look(at+"."+name, below)
		}
		if p.Items != nil && p.Items.Schema != nil {
			look(at+"[]", *p.Items.Schema)
		}
		if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
			look(at+"{}", *p.AdditionalProperties.Schema)
		}
	}
	for _, crd := range definitions(t) {
		for _, version := range crd.Spec.Versions {
			look(crd.Spec.Names.Kind+".spec", version.Schema.OpenAPIV3Schema.Properties["spec"])
		}
	}
	if numbers < 50 {
		t.Errorf("there are %d numbers of 32 bits", numbers)
	}
}

// definitions are the CustomResourceDefinitions as they are installed.
func definitions(t *testing.T) (all []apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
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
		all = append(all, crd)
	}
	return all
}
