package importer

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// TestWhatIsWrittenFitsTheSchemas checks what a plan does not: lengths, patterns and numbers of
// items, as the API server would.
func TestWhatIsWrittenFitsTheSchemas(t *testing.T) {
	schemas := map[string]validation.SchemaValidator{"System": schema(t, "systems"), "Experiment": schema(t, "experiments")}
	for name := range byHand {
		text, _, err := run(t, PequinOptions{File: filepath.Join(configs, name)})
		if err != nil {
			t.Fatal(err)
		}
		documents := strings.Split(text, "\n---\n")
		if len(documents) != 2 {
			t.Fatalf("%s: %d documents", name, len(documents))
		}
		for _, document := range documents {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			kind, _ := object["kind"].(string)
			for _, err := range schemas[kind].Validate(object).Errors {
				t.Errorf("%s: %s: %v", name, kind, err)
			}
		}
	}
}

var schemas sync.Map // by plural: making one takes longer than all that is checked with it

func schema(t *testing.T, plural string) validation.SchemaValidator {
	t.Helper()
	if v, ok := schemas.Load(plural); ok {
		return v.(validation.SchemaValidator)
	}
	b, err := os.ReadFile("../../../../config/crd/bases/assay.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(b, &crd); err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crd.Spec.Versions[0].Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	v, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	schemas.Store(plural, v)
	return v
}
