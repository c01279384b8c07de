package plan_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

func TestCheckChange(t *testing.T) {
	accepted := func(e *v1alpha1.Experiment) {
		e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionTrue}}
		e.Status.Points = 4
	}
	refused := func(e *v1alpha1.Experiment) {
		e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionFalse}}
	}
	recurs := func(e *v1alpha1.Experiment) { e.Spec.Recurrence = &v1alpha1.Recurrence{Cron: "0 3 * * *"} }
	more := func(n int32) func(*v1alpha1.Experiment) {
		return func(e *v1alpha1.Experiment) { e.Spec.AdditionalRepetitions = n }
	}
	seeded := func(e *v1alpha1.Experiment) { e.Status.Seed = 7 }
	clients := func(e *v1alpha1.Experiment) { e.Spec.Clients.Count = 99 }
	type changes []func(*v1alpha1.Experiment)
	const fixed = "has been accepted and its trials are planned: only spec.suspend, spec.priority, spec.budget and spec.debug may change, faults with a flameGraph may come and go, and spec.additionalRepetitions may rise"
	for name, tc := range map[string]struct {
		is     changes // the experiment before the change
		change changes
		anew   bool
		field  string // the refused field; empty: none
		says   string
	}{
		"nothing, before any plan":                    {},
		"nothing, of a plan":                          {is: changes{accepted}},
		"anything, before any plan":                   {change: changes{clients}, anew: true},
		"anything, after a refusal":                   {is: changes{refused}, change: changes{clients}, anew: true},
		"the number of clients, of a plan":            {is: changes{accepted}, change: changes{clients}, field: "spec", says: fixed},
		"the number of clients, when a seed is drawn": {is: changes{seeded}, change: changes{clients}, field: "spec", says: fixed},
		"suspend, priority and debug": {is: changes{accepted}, change: changes{func(e *v1alpha1.Experiment) {
			e.Spec.Suspend, e.Spec.Priority, e.Spec.Debug = !e.Spec.Suspend, 5, &v1alpha1.Debug{KeepFailed: "1m"}
		}}},
		"suspend, and the number of clients":  {is: changes{accepted}, change: changes{func(e *v1alpha1.Experiment) { e.Spec.Suspend = true }, clients}, field: "spec", says: fixed},
		"more repetitions":                    {is: changes{accepted, more(1)}, change: changes{more(2)}},
		"fewer repetitions":                   {is: changes{accepted, more(2)}, change: changes{more(1)}, field: "spec", says: fixed},
		"more repetitions than are possible":  {is: changes{accepted}, change: changes{more(200)}, field: "spec.additionalRepetitions", says: "at most 100 are possible"},
		"a recurrence, which it did not have": {change: changes{recurs}, field: "spec.recurrence", says: `Experiment "e" recurs all its life or never`},
		"a recurrence no more": {is: changes{recurs}, change: changes{func(e *v1alpha1.Experiment) { e.Spec.Recurrence = nil }},
			field: "spec.recurrence", says: "apply the change under another name"},
		"anything, of one that recurs": {is: changes{recurs, accepted}, change: changes{clients}, anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := builders.Experiment("e").System("s").Obj()
			for _, change := range tc.is {
				change(before)
			}
			after := before.DeepCopy()
			for _, change := range tc.change {
				change(after)
			}
			anew, wrong, err := plan.CheckChange(before, after)
			if err != nil || anew != tc.anew {
				t.Fatalf("got anew %v, %v, %v; want anew %v", anew, wrong, err, tc.anew)
			}
			switch {
			case wrong == nil && tc.field != "":
				t.Errorf("nothing is refused, want %s", tc.field)
			case wrong != nil && (wrong.Field != tc.field || !strings.Contains(wrong.Detail, tc.says)):
				t.Errorf("refused is %v, want %s: %s", wrong, tc.field, tc.says)
			}
		})
	}
}

// Another spelling of a value that is stored alike is no change.
func TestTheSameSpecIsNoChange(t *testing.T) {
	before := builders.Experiment("e").System("s").Obj()
	before.Status.Seed = 7
	after := before.DeepCopy()
	after.Spec.Faults, after.Spec.Parameters = []v1alpha1.Fault{}, map[string]v1alpha1.Value{}
	if anew, wrong, err := plan.CheckChange(before, after); anew || wrong != nil || err != nil {
		t.Errorf("empty lists in place of none: anew %v, %v, %v", anew, wrong, err)
	}
}
