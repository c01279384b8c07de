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

// ForbiddenError means that the cluster's owner does not allow the trial's pods in its namespace.
type ForbiddenError struct{ error }

// CheckPodSecurity checks the pods against the namespace's Pod Security profile before anything is
// made. The experiment was checked when it was applied, but labels change, and a System may be
// applied later.
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

// RefusedPods returns why the API server refuses pods of the owners, which are names of
// StatefulSets and Jobs. Empty: it refuses none. StatefulSets and Jobs try forever, and report
// refusals only in events.
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

// final reports whether every further attempt would be refused, too.
func final(why string) bool {
	passing := strings.Contains(why, "error looking up service account") || strings.Contains(why, "status unknown for quota")
	return strings.Contains(why, "forbidden") && !passing || strings.Contains(why, "denied the request")
}

// Denied reports whether a webhook or a ValidatingAdmissionPolicy refused an object. The latter
// call the object invalid.
func Denied(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request"))
}
