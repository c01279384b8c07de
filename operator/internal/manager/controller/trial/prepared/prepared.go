// Package prepared reads the output of a trial's prepare step. It also passes the output on to
// later trials of the experiment whose step would be the same.
//
// A trial's output lies in a Secret of the trial, even if it came from another trial: its readers
// look only there. Files to pass on lie in another Secret, one for each System of an experiment. It
// holds the output of the experiment's first trial. The experiment controller deletes it after the
// last trial.
package prepared

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/trial/objects"
)

const (
	// annotationTrial of a Secret names the trial whose step made its content, if that is another
	// trial.
	annotationTrial = "assay.dev/prepared-by"
	// annotationDigest of a shared Secret identifies the step: see render.Trial.PrepareDigest.
	annotationDigest = "assay.dev/prepare-digest"
)

// Cache reuses the outputs of prepare steps. All fields are needed.
type Cache struct {
	Objects objects.Children
	Trial   *v1alpha1.Trial
	System  *v1alpha1.SystemSpec
	Layout  *placement.Layout
}

// Reuse gives the trial the output of an earlier trial, if its System wants that and there is one.
// The trial then needs no Job. A trial that already has its Job keeps it, since the Job may have
// begun.
func (d Cache) Reuse(ctx context.Context, o *render.Objects) error {
	owner, digest := d.shared()
	if digest == "" || o.Prepare == nil {
		return nil
	}
	if found, err := d.get(ctx, o.Prepare.Name, &batchv1.Job{}); err != nil || found {
		return err
	}
	from := &corev1.Secret{}
	found, err := d.get(ctx, render.SharedPrepared(d.Trial.Spec.System.Revision), from)
	if err != nil || !found || !controlledBy(from, owner) || from.Annotations[annotationDigest] != digest {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Trial.Namespace, Name: d.Layout.PreparedSecret(), Annotations: map[string]string{annotationTrial: from.Annotations[annotationTrial]},
		Labels: map[string]string{v1alpha1.LabelTrial: d.Trial.Name, v1alpha1.LabelExperiment: d.Trial.Spec.Experiment},
	}, Data: from.Data}
	if err := d.Objects.Create(ctx, d.Trial, secret); err != nil {
		return err
	}
	o.Prepare = nil
	return nil
}

// Read reads the trial's output. Nil: it does not exist yet. Read keeps the files of the trial's
// own step for later trials, if its System wants that.
func (d Cache) Read(ctx context.Context) (packed []byte, err error) {
	secret := &corev1.Secret{}
	if found, err := d.get(ctx, d.Layout.PreparedSecret(), secret); err != nil || !found {
		return nil, err
	}
	if _, taken := secret.Annotations[annotationTrial]; !taken {
		if err := d.keep(ctx, secret.Data); err != nil {
			return nil, err
		}
	}
	return secret.Data[placement.PreparedKey], nil
}

// keep stores the output for later trials, unless an output is already there. If trials run in
// parallel, the first one stores its own.
func (d Cache) keep(ctx context.Context, data map[string][]byte) error {
	owner, digest := d.shared()
	if digest == "" {
		return nil
	}
	name := render.SharedPrepared(d.Trial.Spec.System.Revision)
	err := d.Objects.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Trial.Namespace, Name: name, Annotations: map[string]string{annotationTrial: d.Trial.Name, annotationDigest: digest},
		Labels:          map[string]string{v1alpha1.LabelExperiment: d.Trial.Spec.Experiment},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: owner.Controller}},
	}, Data: data})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("keep what the prepare step has made, in Secret %s: %w", name, err)
	}
	return nil
}

// shared returns the experiment whose trials share outputs, and the digest of this trial's step.
// Empty digest: nothing is shared. A step that cannot be rendered is reported when it is about to
// run.
func (d Cache) shared() (experiment *metav1.OwnerReference, digest string) {
	experiment = metav1.GetControllerOf(d.Trial)
	if experiment == nil || d.System.Prepare == nil || d.System.Prepare.Reuse != v1alpha1.PrepareReuseWithinExperiment {
		return nil, ""
	}
	t, err := render.NewTrial(&d.Trial.Spec, d.System, d.Layout)
	if err != nil {
		return nil, ""
	}
	if digest, err = t.PrepareDigest(); err != nil {
		return nil, ""
	}
	return experiment, digest
}

func (d Cache) get(ctx context.Context, name string, obj client.Object) (found bool, err error) {
	err = d.Objects.Reader.Get(ctx, client.ObjectKey{Namespace: d.Trial.Namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return true, nil
}

// controlledBy reports whether the Secret belongs to this experiment: not to a deleted one of the
// same name, and not to another owner.
func controlledBy(s *corev1.Secret, experiment *metav1.OwnerReference) bool {
	owner := metav1.GetControllerOf(s)
	return owner != nil && owner.UID == experiment.UID && s.DeletionTimestamp.IsZero()
}
