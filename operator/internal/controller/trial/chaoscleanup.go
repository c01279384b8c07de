package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/chaosmesh"
)

// At the end of a trial, whatever end that is, nothing of Chaos Mesh may be left:
//
//	its objects are deleted, and the pods kept for chaosRecovery (chaosStuck, if it has failed so far), so that it can undo in them what it did
//	-> the pods are deleted: with them goes what it did to them, and most of what it could not undo it then takes for undone
//	-> after another chaosRecovery it is told to let go of its objects (its own annotation)
//	-> after chaosForced they are let go without it: it does not run any more

const (
	// annotationCleanFinalizer and its value make Chaos Mesh let go of an object that is being deleted, undone or not.
	annotationCleanFinalizer = "chaos-mesh.chaos-mesh.org/cleanFinalizer"
	cleanFinalizerForced     = "forced"
	// chaosStuck is how long the pods are kept for an object at which Chaos Mesh has failed so far.
	chaosStuck = 5 * time.Second
	// chaosForced is how long Chaos Mesh may take to let go when told to.
	chaosForced = 10 * time.Second
	// chaosLetGo is the reason of the event that tells of either.
	chaosLetGo = "ChaosMeshForced"
)

// clearChaos deletes the trial's objects of Chaos Mesh, and returns those that are still there. hold: the pods are still needed.
func (r *Reconciler) clearChaos(ctx context.Context, trial *v1alpha1.Trial) (left []unstructured.Unstructured, hold bool, err error) {
	for _, kind := range chaosmesh.Kinds(trial.Spec.Faults) {
		items, err := r.chaosObjects(ctx, trial, kind)
		switch {
		case unserved(err):
			continue // its kind is gone, and all objects with it
		case apierrors.IsForbidden(err):
			// Nothing can be done by this manager. The trial owns the objects, so that they are deleted after it.
			logFor(ctx).Info("The manager may not look for objects of Chaos Mesh any more", "kind", kind, "trial", trial.Name)
			continue
		case err != nil:
			return nil, false, err
		}
		for i := range items {
			if err := r.deleteChaos(ctx, &items[i]); err != nil {
				return nil, false, err
			}
		}
		left = append(left, items...)
	}
	if len(left) == 0 {
		return nil, false, nil
	}
	patience := chaosRecovery
	if slices.ContainsFunc(left, stuck) {
		patience = chaosStuck
	}
	return left, r.chaosWaited(trial) < patience, nil
}

// stuck reports whether Chaos Mesh has failed at an object so far. It must have done what the object says before it can undo it, and tries for as long as there is
// the pod.
func stuck(u unstructured.Unstructured) bool {
	state, err := chaosmesh.Read(&u)
	return err == nil && state.Failure != ""
}

func (r *Reconciler) deleteChaos(ctx context.Context, u *unstructured.Unstructured) error {
	if !u.GetDeletionTimestamp().IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, chaosCall)
	defer cancel()
	return wrap("delete "+u.GetKind()+" "+u.GetName(), client.IgnoreNotFound(r.Client.Delete(ctx, u)))
}

// chaosWaited is for how long this manager has waited for the last of a trial's objects to go.
func (r *Reconciler) chaosWaited(trial *v1alpha1.Trial) time.Duration {
	now := r.Clock.Now()
	var since time.Time
	r.remember(trial, func(m *memo) {
		if m.chaosEnding.IsZero() {
			m.chaosEnding = now
		}
		since = m.chaosEnding
	})
	return now.Sub(since)
}

// forceChaos lets go of what Chaos Mesh does not let go of. The pods are gone: nothing is left in which anything could be undone.
func (r *Reconciler) forceChaos(ctx context.Context, trial *v1alpha1.Trial, left []unstructured.Unstructured) error {
	waited := r.chaosWaited(trial)
	for i := range left {
		u := &left[i]
		before := u.DeepCopy()
		what := ""
		switch {
		case waited >= 2*chaosRecovery+chaosForced:
			u.SetFinalizers(nil)
			what = "its finalizers are removed: Chaos Mesh does not run, or does not answer"
		case waited >= 2*chaosRecovery && u.GetAnnotations()[annotationCleanFinalizer] == "":
			annotations := u.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[annotationCleanFinalizer] = cleanFinalizerForced
			u.SetAnnotations(annotations)
			what = "Chaos Mesh is told to let go of it"
		default:
			continue
		}
		if err := client.IgnoreNotFound(r.patchChaos(ctx, u, before)); err != nil {
			return err
		}
		r.Recorder.Eventf(trial, nil, corev1.EventTypeWarning, chaosLetGo, "CleanUp",
			"%s %s is still there %v after its deletion, and the trial's pods are gone; %s.%s", u.GetKind(), u.GetName(), waited.Round(time.Second), what, lastWords(u))
	}
	return nil
}

func (r *Reconciler) patchChaos(ctx context.Context, u, before *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, chaosCall)
	defer cancel()
	return wrap("let go of "+u.GetKind()+" "+u.GetName(), r.Client.Patch(ctx, u, client.MergeFrom(before)))
}

// lastWords are what Chaos Mesh said last of a failure.
func lastWords(u *unstructured.Unstructured) string {
	if state, err := chaosmesh.Read(u); err == nil && state.Failure != "" {
		return " " + chaosmesh.Explain(state.Failure) + "."
	}
	return ""
}

// remainsOf says what is still there of Chaos Mesh.
func remainsOf(left []unstructured.Unstructured) string {
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d objects of Chaos Mesh, such as %s %s", len(left), left[0].GetKind(), left[0].GetName())
}

// deleteEverything deletes every object of a trial but its results, those of Chaos Mesh first, and says what is still there.
func (r *Reconciler) deleteEverything(ctx context.Context, trial *v1alpha1.Trial) (string, error) {
	left, hold, err := r.clearChaos(ctx, trial)
	if err != nil || hold {
		return remainsOf(left), err
	}
	remains, err := r.deleteAll(ctx, client.ObjectKeyFromObject(trial))
	if err != nil || remains != "" || len(left) == 0 {
		return remains, err
	}
	return remainsOf(left), r.forceChaos(ctx, trial, left)
}
