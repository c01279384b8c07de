package experiment

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
)

// annotationSeal of a results ConfigMap is the hash of the experiment's seal.
const annotationSeal = "assay.dev/seal"

// sealName depends on the sealed text and on the experiment, like the names of snapshots.
func sealName(exp *v1alpha1.Experiment, text []byte) string {
	return fmt.Sprintf("%s-claims-%s", exp.Name, hash(string(exp.UID) + "\n" + string(text))[:10])
}

// sealClaims records from what the verdicts will be made, together with the plan and so before the
// first Trial. The text goes into a ControllerRevision, its hash into the status. An attempt that
// ended before it wrote the status may leave other texts behind: the hash says which text counts.
func (r *Reconciler) sealClaims(ctx context.Context, s *scope) error {
	text := seal.Text(s.exp.Spec)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.exp.Namespace,
			Name:      sealName(s.exp, text),
			Labels:    map[string]string{v1alpha1.LabelExperiment: s.exp.Name, v1alpha1.LabelSeal: "claims"},
		},
		Data:     runtime.RawExtension{Raw: text},
		Revision: 1,
	}
	if err := controllerutil.SetControllerReference(s.exp, revision, r.Client.Scheme()); err != nil {
		return fmt.Errorf("own the sealed claims: %w", err)
	}
	if err := r.Client.Create(ctx, revision); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the sealed claims: %w", err)
	}
	sealed := &v1alpha1.Seal{SHA256: seal.Of(s.exp.Spec), Time: s.now}
	if err := r.countEarlier(ctx, s.exp, sealed); err != nil {
		return err
	}
	s.exp.Status.Seal, s.sealed = sealed, text
	return nil
}

// countEarlier counts the earlier experiments with this name whose results are in the namespace. An
// author who runs an experiment again until a claim is decided leaves them there.
func (r *Reconciler) countEarlier(ctx context.Context, exp *v1alpha1.Experiment, sealed *v1alpha1.Seal) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(configMapKind.GroupVersion().WithKind("ConfigMapList"))
	of := client.MatchingLabels{v1alpha1.LabelResults: "experiment", v1alpha1.LabelExperiment: exp.Name}
	if err := r.Reader.List(ctx, list, client.InNamespace(exp.Namespace), of); err != nil {
		return fmt.Errorf("list the results of earlier experiments of this name: %w", err)
	}
	for _, m := range list.Items {
		if m.Annotations[annotationUID] == string(exp.UID) {
			continue
		}
		sealed.EarlierRuns++
		if m.Annotations[annotationSeal] != sealed.SHA256 {
			sealed.EarlierOtherClaims++
		}
	}
	return nil
}

// observeSeal finds the text of the seal in the experiment's ControllerRevisions.
func (s *scope) observeSeal(revisions []appsv1.ControllerRevision) {
	if s.exp.Status.Seal == nil {
		return
	}
	for _, c := range revisions {
		if digest, err := seal.Digest(c.Data.Raw); err == nil && digest == s.exp.Status.Seal.SHA256 {
			s.sealed = json.RawMessage(c.Data.Raw)
		}
	}
}

// sealOf returns the seal in the form of results, with the differences between it and the present
// spec. Once the plan is fixed, a spec can change only if an administrator switches admission off.
func (s *scope) sealOf() (*results.Seal, error) {
	kept := s.exp.Status.Seal
	if kept == nil {
		return nil, nil
	}
	out := &results.Seal{At: kept.Time.UTC(), SHA256: kept.SHA256, Sealed: s.sealed,
		EarlierRuns: int(kept.EarlierRuns), EarlierOtherClaims: int(kept.EarlierOtherClaims)}
	if s.sealed == nil { // a user deleted it: only the hash is left, so the difference cannot be named
		return out, nil
	}
	var err error
	out.Changes, err = seal.Since(s.sealed, s.exp.Spec)
	return out, err
}
