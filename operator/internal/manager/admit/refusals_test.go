package admit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/testkit/refusals"
)

// Every bound and every rule of the schemas, at every place that has it, refuses values that
// violate it. The test of the same name in operator/test/integration asks a real API server.
func TestEveryBoundAndRuleRefuses(t *testing.T) {
	tried := 0
	for _, kind := range admit.Kinds {
		schema, err := admit.SchemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := refusals.Generate(kind, schema.Props)
		if err != nil {
			t.Error(err)
		}
		for _, tc := range cases {
			d := admit.Textless(&unstructured.Unstructured{Object: tc.Object}, "")
			problems := d.Schema(t.Context())
			switch {
			case len(problems) == 0:
				t.Errorf("accepted: %s", tc.Name)
			case tc.Field != "" && !names(problems, tc.Field):
				t.Errorf("%s: the problems do not name %s:\n%s", tc.Name, tc.Field, problems.Error())
			}
			if tc.Says != "" && !strings.Contains(problems.Error(), tc.Says) {
				t.Errorf("%s: the problems do not say %q:\n%s", tc.Name, tc.Says, problems.Error())
			}
			tried++
		}
	}
	t.Logf("%d objects, each with one bound or rule violated", tried)
}

// names reports whether one of the problems is about the field, a part of it, or an object around
// it.
func names(problems admit.Problems, field string) bool {
	for _, p := range problems {
		if p.Field == field || strings.HasPrefix(p.Field, field+"[") || strings.HasPrefix(p.Field, field+".") {
			return true
		}
	}
	return false
}

// Every hand-written case that needs no cluster is refused. The problems name its field. If a
// webhook refuses the case, they also state the correct form; a schema has other words for it here.
func TestEveryWrittenCaseIsRefused(t *testing.T) {
	read := func(file string) map[string]any {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "config", "samples", file))
		if err != nil {
			t.Fatal(err)
		}
		object, err := refusals.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	systems := map[string]v1alpha1.SystemSpec{}
	for _, object := range refusals.AllSystems(read("systems/driver.yaml"), read("systems/components.yaml"), read("systems/machines.yaml")) {
		system, problems := admit.System(t.Context(), admit.Textless(&unstructured.Unstructured{Object: object}, ""))
		if err := problems.OrNil(); err != nil {
			t.Fatal(err)
		}
		systems[system.Name] = system.Spec
	}
	cases := 0
	for _, table := range refusals.Tables {
		valid := read(table.File)
		for name, wrong := range table.Cases {
			if refusals.NeedCluster[name] {
				continue
			}
			cases++
			var problems admit.Problems
			document := admit.Textless(&unstructured.Unstructured{Object: wrong.Apply(valid)}, "")
			if table.Kind == "System" {
				_, problems = admit.System(t.Context(), document)
			} else {
				_, problems = admit.Experiment(t.Context(), document, systems)
			}
			parts := []string{wrong.Field}
			if table.Words {
				parts = append(parts, wrong.Right)
			}
			for _, part := range parts {
				if !strings.Contains(problems.Error(), part) {
					t.Errorf("%s: %s: the problems do not say %q:\n%s", table.File, name, part, problems.Error())
				}
			}
		}
	}
	t.Logf("%d written cases are refused", cases)
}
