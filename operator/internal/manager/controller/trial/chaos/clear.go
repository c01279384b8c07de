package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
)

// At the end of a trial, for any outcome, nothing of Chaos Mesh may be left:
//
//	its objects are deleted, and the pods kept for Recovery (Stuck, if it has failed so far), so that it can undo in them what it did
//	-> the pods are deleted: with them goes what it did to them, and most of what it could not undo it then takes for undone
//	-> after another Recovery it is told to let go of its objects (its own annotation)
//	-> after Forced they are let go without it: it does not run any more

const (
	// AnnotationCleanFinalizer and its value make Chaos Mesh release an object in deletion, even if
	// it has not undone the fault.
	AnnotationCleanFinalizer = "chaos-mesh.chaos-mesh.org/cleanFinalizer"
	cleanFinalizerForced     = "forced"
	// Stuck is how long the pods are kept for an object on which Chaos Mesh has failed so far.
	Stuck = 5 * time.Second
	// Forced is how long Chaos Mesh may take to release an object after it is told to.
	Forced = 10 * time.Second
	// letGo is the reason of the event that reports a forced release.
	letGo = "ChaosMeshForced"
)

// Clear deletes the trial's objects of Chaos Mesh, and returns the objects that still exist. The
// result hold reports whether the pods are still needed.
func (x *Executor) Clear(ctx context.Context, trial *v1alpha1.Trial, m *Memory) (left []unstructured.Unstructured, hold bool, err error) {
	for _, kind := range chaosmesh.Kinds(trial.Spec.Faults) {
		items, err := x.objects(ctx, trial, kind)
		switch {
		case unserved(err):
			continue // the kind is gone, and all its objects with it
		case apierrors.IsForbidden(err):
			// This manager can do nothing. The trial owns the objects, so they are deleted after
			// it.
			log.FromContext(ctx).Info("The manager may not look for objects of Chaos Mesh any more", "kind", kind, "trial", trial.Name)
			continue
		case err != nil:
			return nil, false, err
		}
		for i := range items {
			if err := x.delete(ctx, &items[i]); err != nil {
				return nil, false, err
			}
		}
		left = append(left, items...)
	}
	if len(left) == 0 {
		return nil, false, nil
	}
	wait := Recovery
	if slices.ContainsFunc(left, stuck) {
		wait = Stuck
	}
	return left, x.waited(m) < wait, nil
}

// stuck reports whether Chaos Mesh has failed on an object so far. Chaos Mesh undoes a fault only
// after it has injected it, and tries as long as the pod exists.
func stuck(u unstructured.Unstructured) bool {
	state, err := chaosmesh.Read(&u)
	return err == nil && state.Failure != ""
}

func (x *Executor) delete(ctx context.Context, u *unstructured.Unstructured) error {
	if !u.GetDeletionTimestamp().IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return wrap("delete "+u.GetKind()+" "+u.GetName(), client.IgnoreNotFound(x.Client.Delete(ctx, u)))
}

// waited returns how long this manager has waited for the last of a trial's objects to go.
func (x *Executor) waited(m *Memory) time.Duration {
	now := x.Clock.Now()
	if m.ending.IsZero() {
		m.ending = now
	}
	return now.Sub(m.ending)
}

// Force releases objects that Chaos Mesh does not release. The pods are gone, so there is nothing
// left to undo.
func (x *Executor) Force(ctx context.Context, trial *v1alpha1.Trial, m *Memory, left []unstructured.Unstructured) error {
	waited := x.waited(m)
	for i := range left {
		u := &left[i]
		before := u.DeepCopy()
		what := ""
		switch {
		case waited >= 2*Recovery+Forced:
			u.SetFinalizers(nil)
			what = "its finalizers are removed: Chaos Mesh does not run, or does not answer"
		case waited >= 2*Recovery && u.GetAnnotations()[AnnotationCleanFinalizer] == "":
			annotations := u.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[AnnotationCleanFinalizer] = cleanFinalizerForced
			u.SetAnnotations(annotations)
			what = "Chaos Mesh is told to let go of it"
		default:
			continue
		}
		if err := client.IgnoreNotFound(x.patch(ctx, u, before)); err != nil {
			return err
		}
		x.Recorder.Eventf(trial, nil, corev1.EventTypeWarning, letGo, "CleanUp",
			"%s %s is still there %v after its deletion, and the trial's pods are gone; %s.%s", u.GetKind(), u.GetName(), waited.Round(time.Second), what, lastWords(u))
	}
	return nil
}

func (x *Executor) patch(ctx context.Context, u, before *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return wrap("let go of "+u.GetKind()+" "+u.GetName(), x.Client.Patch(ctx, u, client.MergeFrom(before)))
}

// lastWords returns the last message of Chaos Mesh about a failure.
func lastWords(u *unstructured.Unstructured) string {
	if state, err := chaosmesh.Read(u); err == nil && state.Failure != "" {
		return " " + chaosmesh.Explain(state.Failure) + "."
	}
	return ""
}

// Remains names the objects of Chaos Mesh that still exist.
func Remains(left []unstructured.Unstructured) string {
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d objects of Chaos Mesh, such as %s %s", len(left), left[0].GetKind(), left[0].GetName())
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
