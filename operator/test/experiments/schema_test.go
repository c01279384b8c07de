package experiments

import (
	"os"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// A plan does not check these rules of the API server: lengths, patterns and numbers of items.
func TestFilesFitTheSchemas(t *testing.T) {
	schemas := map[string]validation.SchemaValidator{"System": schema(t, "systems"), "Experiment": schema(t, "experiments")}
	for _, d := range documents(t, "../../../experiments/*.yaml", "../../../experiments/*/*.yaml", "../e2e/testdata/*.yaml") {
		validator, ok := schemas[d.kind]
		if !ok {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal(d.text, &object); err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		for _, err := range validator.Validate(object).Errors {
			t.Errorf("%s: %s: %v", d.file, d.kind, err)
		}
	}
}

func schema(t *testing.T, plural string) validation.SchemaValidator {
	t.Helper()
	text, err := os.ReadFile("../../../config/crd/bases/assay.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return validator
}
