package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testuntil"
	"assay.dev/assay/operator/internal/timeline"
)

// enforce makes the test's namespace enforce another Pod Security profile.
func (e *env) enforce(t *testing.T, profile string) {
	t.Helper()
	ns := &corev1.Namespace{}
	if err := e.Get(t.Context(), client.ObjectKey{Name: e.namespace}, ns); err != nil {
		t.Fatal(err)
	}
	before := ns.DeepCopy()
	ns.Labels["pod-security.kubernetes.io/enforce"] = profile
	if err := e.Patch(t.Context(), ns, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// The evaluation that the README promises, where pods may do nothing: each kill is carried out, told of, and said to have been without silence. Where the profile does
// not admit pods that shape, that is said when the experiment is applied.
func TestRestricted(t *testing.T) {
	testuntil.Needs(t, 150*time.Second)
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	for _, profile := range []string{"baseline", "restricted"} {
		e.enforce(t, profile)
		for _, obj := range load(t, failureFile) {
			obj.SetNamespace(e.namespace)
			err := e.Create(t.Context(), obj, client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "enforces the Pod Security profile "+profile) || !strings.Contains(err.Error(), "spec.network.shaping") {
				t.Errorf("under %s a trial that shapes gives %v; want a refusal that names the profile and the field", profile, err)
			}
		}
	}
	exp := e.apply(t, failureFile, func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		spec.Profile, spec.Network.Shaping = "smoke", v1alpha1.ShapingNone
		for i := range spec.Profiles {
			// Once is enough to see that it runs; TestFailureFP repeats it.
			spec.Profiles[i].Repetitions = &v1alpha1.Repetitions{Min: 1}
		}
	})
	trials := e.complete(t, exp, 10*time.Minute)
	measured, kills := valid(t, trials), 0
	n := judge(t, trials...)
	if len(measured) != 3 {
		n.Errorf("%d of %d trials succeeded, want one of each variant", len(measured), len(trials))
	}
	for _, r := range measured {
		for _, f := range r.Faults {
			if f.Kind != string(timeline.Kill) || !f.WithoutSilence || f.Error != "" {
				t.Errorf("%s: fault %+v, want a kill without silence that was confirmed", r.Name, f)
			}
			kills++
		}
		if (r.Coordinates["variant"] == "ideal") != (len(r.Faults) == 0) {
			t.Errorf("%s, %v, has %d faults", r.Name, r.Coordinates, len(r.Faults))
		}
	}
	events := &corev1.EventList{}
	if err := e.List(t.Context(), events, client.InNamespace(e.namespace), client.MatchingFields{"involvedObject.name": exp.Name, "reason": "FaultCarriedOut"}); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, ev := range events.Items {
		t.Log(ev.Message)
		if strings.Contains(ev.Message, "fault replica-crash: Kill of ") && strings.Contains(ev.Message, "without silence") {
			told++
		}
	}
	if told < kills {
		t.Errorf("%d events tell of %d kills", told, kills)
	}
	n.decide()
}
