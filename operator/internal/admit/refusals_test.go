package admit_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/admit"
	"assay.dev/assay/operator/internal/testkit/refusals"
)

// Every bound and every rule of the schemas, at every place that has it, refuses what violates it.
// The test of the same name in operator/test/integration asks a real API server.
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
			d := admit.Of(&unstructured.Unstructured{Object: tc.Object}, "")
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

// names reports whether some problem is of the field, or of one in it or around it.
func names(problems admit.Problems, field string) bool {
	for _, p := range problems {
		if p.Field == field || strings.HasPrefix(p.Field, field+"[") || strings.HasPrefix(p.Field, field+".") {
			return true
		}
	}
	return false
}

// Every case of the webhooks that needs no cluster is refused, and its field is named.
func TestEveryWrittenCaseIsRefused(t *testing.T) {
	valid := map[string]map[string]any{}
	for _, d := range samples(t) {
		if name := d.Object.GetKind() + " " + d.Object.GetName(); name == "System kv" || name == "Experiment faults" {
			valid[d.Object.GetKind()] = d.Object.Object
		}
	}
	systems := map[string]v1alpha1.SystemSpec{}
	for _, object := range refusals.Systems(valid["System"]) {
		system, problems := admit.System(t.Context(), admit.Of(&unstructured.Unstructured{Object: object}, ""))
		if err := problems.OrNil(); err != nil {
			t.Fatal(err)
		}
		systems[system.Name] = system.Spec
	}
	check := func(name string, wrong refusals.Wrong, problems admit.Problems) {
		if !strings.Contains(problems.Error(), wrong.Field) {
			t.Errorf("%s: the problems do not name %s:\n%s", name, wrong.Field, problems.Error())
		}
	}
	for name, wrong := range refusals.WrongSystems {
		_, problems := admit.System(t.Context(), admit.Of(&unstructured.Unstructured{Object: wrong.Apply(valid["System"])}, ""))
		check(name, wrong, problems)
	}
	for name, wrong := range refusals.WrongExperiments {
		if refusals.NeedCluster[name] {
			continue
		}
		_, problems := admit.Experiment(t.Context(), admit.Of(&unstructured.Unstructured{Object: wrong.Apply(valid["Experiment"])}, ""), systems)
		check(name, wrong, problems)
	}
	t.Logf("%d Experiments and %d Systems that webhooks or schemas refuse", len(refusals.WrongExperiments)-len(refusals.NeedCluster), len(refusals.WrongSystems))
}
