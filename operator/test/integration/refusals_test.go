package integration

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/testkit/refusals"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// The verb plan gives the same answer about a file as a cluster. Every bound and rule of the
// schemas, at every place that has it, and every case of the webhooks, goes to both. They must
// agree on the verdict, and plan must name every field that the cluster names. The test of the same
// cases in package admit needs no cluster.
func TestPlanAndClusterRefuseTheSame(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	systems := map[string]v1alpha1.SystemSpec{}
	for _, u := range createSystems(t, env, ns) {
		system, problems := admit.System(t.Context(), admit.Textless(u, ""))
		if err := problems.OrNil(); err != nil {
			t.Fatal(err)
		}
		systems[u.GetName()] = system.Spec
	}
	cases := allCases(t)
	var wait sync.WaitGroup
	next := make(chan refusals.Case)
	for range 4 { // most of the time is spent waiting for requests
		wait.Go(func() {
			for tc := range next {
				compare(t, env, ns, tc, systems)
			}
		})
	}
	for _, tc := range cases {
		next <- tc
	}
	close(next)
	wait.Wait()
	t.Logf("%d objects were offered to an API server with webhooks and to plan", len(cases))
}

// allCases are the cases of the schemas, the cases written by hand, and their samples.
func allCases(t *testing.T) (cases []refusals.Case) {
	t.Helper()
	for _, kind := range admit.Kinds {
		schema, err := admit.SchemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		generated, err := refusals.Generate(kind, schema.Props)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, generated...)
	}
	for _, table := range refusals.Tables {
		valid := sample(t, table.File).Object
		for _, name := range slices.Sorted(maps.Keys(table.Cases)) {
			if !refusals.NeedCluster[name] {
				cases = append(cases, refusals.Case{Name: table.File + ": " + name, Kind: table.Kind, Object: table.Cases[name].Apply(valid)})
			}
		}
	}
	return cases
}

// compare gives one object to both.
func compare(t *testing.T, env *testenv.Env, ns string, tc refusals.Case, systems map[string]v1alpha1.SystemSpec) {
	u := (&unstructured.Unstructured{Object: tc.Object}).DeepCopy()
	u.SetNamespace(ns)
	problems := planned(t, admit.Textless(u, ""), systems)
	err := env.Client.Create(t.Context(), u.DeepCopy(), client.DryRunAll, &client.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	switch {
	case err != nil && !errors.As(err, new(apierrors.APIStatus)):
		t.Errorf("%s: the API server does not answer: %v", tc.Name, err)
	case err == nil && len(problems) == 0:
		t.Errorf("%s: both accept it", tc.Name)
	case err == nil:
		t.Errorf("%s: the cluster accepts it, and plan says:\n%s", tc.Name, problems.Error())
	case len(problems) == 0:
		t.Errorf("%s: plan accepts it, and the cluster says:\n%v", tc.Name, err)
	default:
		for _, field := range fieldsOf(err) {
			if !slices.ContainsFunc(problems, func(p *admit.Problem) bool { return p.Field == field }) {
				t.Errorf("%s: the cluster names %s:\n%v\nplan does not:\n%s", tc.Name, field, err, problems.Error())
			}
		}
	}
}

// planned is the answer of plan about a document.
func planned(t *testing.T, d *admit.Document, systems map[string]v1alpha1.SystemSpec) (problems admit.Problems) {
	switch d.Object.GetKind() {
	case "System":
		_, problems = admit.System(t.Context(), d)
	case "Experiment":
		_, problems = admit.Experiment(t.Context(), d, systems)
	default:
		problems = d.Schema(t.Context())
	}
	return problems
}

// fieldsOf a rejection. Two errors have no field: that an API server checks no rules of an object,
// and that a number does not fit.
func fieldsOf(err error) (fields []string) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && cause.Field != "<nil>" && !strings.HasPrefix(cause.Field, "metadata.managedFields") {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// A change of an immutable field is rejected by both, with the same words.
func TestChangesAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	for kind, change := range map[string]refusals.Edit{
		"Dataset": {Path: "spec.recipe.image", Value: "another"},
		"Trial":   {Path: "spec.number", Value: "7"},
	} {
		schema, err := admit.SchemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: refusals.Least(kind, schema.Props)}
		u.SetNamespace(ns)
		if err := env.Client.Create(t.Context(), u); err != nil {
			t.Fatalf("the least %s: %v", kind, err)
		}
		changed := &unstructured.Unstructured{Object: refusals.Wrong{Edits: []refusals.Edit{change}}.Apply(u.Object)}
		errs := schema.Changes(t.Context(), u.Object, changed.Object)
		if len(errs) != 1 {
			t.Fatalf("%s: plan's library says %v", kind, errs)
		}
		if err := env.Client.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), errs[0].Detail) {
			t.Errorf("%s: the cluster says %v, and the library %v", kind, err, errs)
		}
	}
}
