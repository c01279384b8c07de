package cacheopts

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// decoded returns a trial as it comes from the API server: each of its strings has its own memory.
func decoded(t *testing.T, number int) *v1alpha1.Trial {
	t.Helper()
	p, errs := plan.Expand(builders.Experiment("e").System("basil").Values("clients", 10).NodeKill("crash", "1s", 5).
		Set(func(s *v1alpha1.ExperimentSpec) { s.Faults[0].EveryPoint = true }).Obj(),
		map[string]v1alpha1.SystemSpec{"basil": builders.System("basil").Obj().Spec})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	trial := builders.Trial(fmt.Sprintf("e-0000-%d", number)).Spec(*plan.Next(p, 1, nil).Create).Complete(v1alpha1.ReasonSucceeded).Obj()
	trial.Labels = map[string]string{v1alpha1.LabelExperiment: "e"}
	trial.Finalizers = []string{v1alpha1.FinalizerTrial}
	trial.OwnerReferences = []metav1.OwnerReference{{APIVersion: "assay.dev/v1alpha1", Kind: "Experiment", Name: "e", UID: "u"}}
	text, err := json.Marshal(trial)
	if err != nil {
		t.Fatal(err)
	}
	out := &v1alpha1.Trial{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The cache has the same content as the API server, without managedFields. All Trials share their
// strings.
func TestTrialsShareStrings(t *testing.T) {
	// A garbage collection between the two trials may drop a string that only its copies hold.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var cached []*v1alpha1.Trial
	for n := range 2 {
		trial := decoded(t, n)
		want := trial.DeepCopy()
		trial.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "someone"}}
		got, err := shareStrings(trial)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(v1alpha1.Value{})); diff != "" {
			t.Errorf("cached (-want +got):\n%s", diff)
		}
		cached = append(cached, trial)
	}
	for what, of := range map[string]func(*v1alpha1.Trial) string{
		"message of a condition": func(t *v1alpha1.Trial) string { return t.Status.Conditions[0].Message },
		"parameter":              func(t *v1alpha1.Trial) string { return t.Spec.Parameters["fastPathTimeout"].String() },
		"label":                  func(t *v1alpha1.Trial) string { return t.Labels[v1alpha1.LabelExperiment] },
		"fault":                  func(t *v1alpha1.Trial) string { return t.Spec.Faults[0].Name },
	} {
		if unsafe.StringData(of(cached[0])) != unsafe.StringData(of(cached[1])) {
			t.Errorf("two trials have a copy each of their %s %q", what, of(cached[0]))
		}
	}
}

func TestOtherObjectsStay(t *testing.T) {
	exp := builders.Experiment("e").Obj()
	if got, err := shareStrings(exp); err != nil || got != any(exp) {
		t.Errorf("%v, %v", got, err)
	}
}
