package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
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

// The evaluation that the README promises, in a namespace where pods have no rights. Each kill is
// carried out, reported, and marked as without silence. If the profile does not admit pods that
// shape, the error comes when the experiment is applied. The nodes pull the images first, by pods
// that such a namespace also admits.
func TestRestricted(t *testing.T) {
	e := newEnv(t)
	e.apply(t, basilFile, func(o client.Object) { // these pods can use the cluster's default storage class
		if o, ok := o.(*v1alpha1.System); ok {
			o.Spec.Replicas.Volumes = append(o.Spec.Replicas.Volumes, v1alpha1.Volume{Name: "claimed", MountPath: "/claimed", Medium: v1alpha1.VolumePersistentVolumeClaim, Size: resource.MustParse("1Mi")})
		}
	})
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
		spec.Profile, spec.Network.Shaping, spec.PrePull = "smoke", v1alpha1.ShapingNone, &v1alpha1.PrePull{Timeout: "2m"}
		spec.Claims, spec.Reported, spec.Profiles[0].Claims = nil, nil, nil
		spec.Profiles[0].Repetitions = &v1alpha1.Repetitions{Min: 1}
		// This is the variant with a kill and the shortest way to a decision. TestFailureFP has the
		// others.
		spec.Sweep[1].Points = slices.DeleteFunc(spec.Sweep[1].Points, func(p v1alpha1.AxisPoint) bool { return p.Name != "failure-nofp" })
	})
	trials := e.complete(t, exp, 4*time.Minute)
	e.pulled(t, exp)
	e.releasesVolumes(t)
	r := lastValid(t, trials)
	if r.Summary.Committed == 0 {
		t.Errorf("%s committed nothing", r.Name)
	}
	if len(r.Faults) != 1 || r.Faults[0].Kind != string(timeline.Kill) || !r.Faults[0].WithoutSilence || r.Faults[0].Error != "" {
		t.Errorf("%s: faults %+v, want one kill without silence that was confirmed", r.Name, r.Faults)
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
	if told == 0 {
		t.Errorf("none of %d events tells of the kill", len(events.Items))
	}
}

// releasesVolumes checks that no volume of the namespace's claims outlives its trial.
func (e *env) releasesVolumes(t *testing.T) {
	t.Helper()
	e.eventually(t, time.Minute, "the volumes of the trials are gone", func(ctx context.Context) (bool, error) {
		volumes := &corev1.PersistentVolumeList{}
		if err := e.List(ctx, volumes); err != nil {
			return false, err
		}
		for _, v := range volumes.Items {
			if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Namespace == e.namespace {
				return false, fmt.Errorf("volume %s of claim %s is %s", v.Name, v.Spec.ClaimRef.Name, v.Status.Phase)
			}
		}
		return true, nil
	})
}

// pulled checks that all nodes pulled the images before the trials, and that no Job is left.
func (e *env) pulled(t *testing.T, exp *v1alpha1.Experiment) {
	t.Helper()
	if err := e.Get(t.Context(), client.ObjectKeyFromObject(exp), exp); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentImagesReady)
	if c == nil || c.Reason != v1alpha1.ReasonPulled {
		t.Errorf("condition ImagesReady is %+v, want True Pulled", c)
	}
	jobs := &batchv1.JobList{}
	if err := e.List(t.Context(), jobs, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelImages: exp.Name}); err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs.Items {
		if j.DeletionTimestamp.IsZero() {
			t.Errorf("Job %s is left", j.Name)
		}
	}
}
