// Package nodes finds the nodes for pods, and reports the outcomes of Jobs that run once on each of
// them.
package nodes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Ready returns the nodes that take pods, by name.
func Ready(ctx context.Context, reader client.Reader, opts ...client.ListOption) (map[string]*corev1.Node, error) {
	list := &corev1.NodeList{}
	if err := reader.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	found := map[string]*corev1.Node{}
	for i := range list.Items {
		n := &list.Items[i]
		ready := !n.Spec.Unschedulable
		for _, c := range n.Status.Conditions {
			ready = ready && (c.Type != corev1.NodeReady || c.Status == corev1.ConditionTrue)
		}
		if ready {
			found[n.Name] = n
		}
	}
	return found, nil
}

// For returns the names of the nodes on which pods with a node selector may run now, sorted. Pods
// of a pool tolerate the taint of their pool and no other.
func For(ctx context.Context, reader client.Reader, selector map[string]string) ([]string, error) {
	ready, err := Ready(ctx, reader, client.MatchingLabels(selector))
	if err != nil {
		return nil, err
	}
	var names []string
	for name, n := range ready {
		if tolerated(n, selector[v1alpha1.LabelPool]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// tolerated reports whether pods of a pool tolerate all taints of a node.
func tolerated(n *corev1.Node, pool string) bool {
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && (t.Key != v1alpha1.LabelPool || pool == "" || t.Value != pool) {
			return false
		}
	}
	return true
}

// Labelled says, for a sentence about nodes, which labels they must have. It returns "" for no
// labels.
func Labelled(selector map[string]string) string {
	if len(selector) == 0 {
		return ""
	}
	return " with the label " + labels.FormatLabels(selector)
}
