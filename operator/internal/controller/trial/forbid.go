package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/podsecurity"
	"assay.dev/assay/operator/internal/render"
)

// refusalPoll is how often it is looked whether pods that do not exist yet have been refused: nothing wakes us up for that.
const refusalPoll = 2 * time.Second

// forbiddenError is the cluster's owner's doing: pods of the trial are not allowed in its namespace.
type forbiddenError struct{ error }

// checkPodSecurity asks the namespace's Pod Security profile before anything is made. The experiment was checked when it was applied; labels change, and a System
// may have come later.
func (r *Reconciler) checkPodSecurity(ctx context.Context, s *scope, o *render.Objects) error {
	ns := &corev1.Namespace{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: s.key.Namespace}, ns); err != nil {
		return fmt.Errorf("read the trial's Namespace: %w", err)
	}
	for _, t := range o.Templates() {
		refusal, err := podsecurity.Check(ns.Labels, t.Spec)
		if err != nil {
			return err
		}
		if refusal != nil {
			return &forbiddenError{fmt.Errorf("namespace %s enforces the Pod Security profile %s, which does not admit the %s pods: %s",
				ns.Name, refusal.Profile, t.What, refusal.Why)}
		}
	}
	return nil
}

// refusedPods says why the API server refuses pods that are missing, or nothing. StatefulSets and Jobs try for ever, and tell of it in events only.
func (r *Reconciler) refusedPods(ctx context.Context, s *scope) (string, error) {
	for _, owner := range s.ownersOfMissing() {
		list := &corev1.EventList{}
		err := r.Reader.List(ctx, list, client.InNamespace(s.key.Namespace), client.MatchingFieldsSelector{Selector: fields.SelectorFromSet(fields.Set{
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

// denied reports whether a webhook or a ValidatingAdmissionPolicy refused an object; the latter call it invalid.
func denied(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request"))
}

// ownersOfMissing are the names of the StatefulSets and Jobs that have not made all of their pods.
func (s *scope) ownersOfMissing() []string {
	var owners []string
	add := func(name string) {
		if len(owners) == 0 || owners[len(owners)-1] != name {
			owners = append(owners, name)
		}
	}
	i := 0
	for _, set := range s.layout.Sets {
		for range set.Replicas {
			if s.pods[s.layout.Replicas[i].Name] == nil {
				add(set.Name)
			}
			i++
		}
	}
	for _, c := range s.layout.Clients {
		if s.pods[c.Name] == nil {
			add(s.layout.ClientJob())
		}
	}
	if s.system.Prepare != nil && s.pods[s.layout.PrepareJob()] == nil {
		add(s.layout.PrepareJob())
	}
	return owners
}

// forbidden gives the trial up when pods of it are refused, and else says how soon to look again.
func (r *Reconciler) forbidden(ctx context.Context, s *scope) (time.Duration, error) {
	if len(s.ownersOfMissing()) == 0 {
		return 0, nil
	}
	why, err := r.refusedPods(ctx, s)
	if err != nil {
		return 0, err
	}
	if why != "" {
		s.giveUp(v1alpha1.ReasonPodsForbidden, "The cluster refuses pods of the trial: %s", why)
	}
	return refusalPoll, nil
}
