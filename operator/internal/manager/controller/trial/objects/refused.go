package objects

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/experiment/podsecurity"
	"assay.dev/assay/operator/internal/experiment/render"
)

// ForbiddenError is the cluster's owner's doing: pods of the trial are not allowed in its
// namespace.
type ForbiddenError struct{ error }

// CheckPodSecurity asks the namespace's Pod Security profile before anything is made. The
// experiment was checked when it was applied; labels change, and a System may have come later.
func (m Children) CheckPodSecurity(ctx context.Context, namespace string, o *render.Objects) error {
	ns := &corev1.Namespace{}
	if err := m.Reader.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return fmt.Errorf("read the trial's Namespace: %w", err)
	}
	for _, t := range o.Templates() {
		refusal, err := podsecurity.Check(ns.Labels, t.Spec)
		if err != nil {
			return err
		}
		if refusal != nil {
			return &ForbiddenError{fmt.Errorf("namespace %s enforces the Pod Security profile %s, which does not admit the %s pods: %s",
				ns.Name, refusal.Profile, t.What, refusal.Why)}
		}
	}
	return nil
}

// RefusedPods says why the API server refuses pods that the owners, StatefulSets and Jobs by their
// names, are to make; or nothing. StatefulSets and Jobs try for ever, and report it in events only.
func (m Children) RefusedPods(ctx context.Context, namespace string, owners []string) (string, error) {
	for _, owner := range owners {
		list := &corev1.EventList{}
		err := m.Reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(fields.Set{
			"involvedObject.name": owner, "reason": "FailedCreate",
		})})
		if err != nil {
			return "", fmt.Errorf("list the events of %s: %w", owner, err)
		}
		for i := range list.Items {
			if why := list.Items[i].Message; final(why) {
				return why, nil
			}
		}
	}
	return "", nil
}

// final tells a refusal that will be repeated from one that the next attempt may be spared.
func final(why string) bool {
	passing := strings.Contains(why, "error looking up service account") || strings.Contains(why, "status unknown for quota")
	return strings.Contains(why, "forbidden") && !passing || strings.Contains(why, "denied the request")
}

// Denied reports whether a webhook or a ValidatingAdmissionPolicy refused an object; the latter
// call it invalid.
func Denied(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request"))
}
