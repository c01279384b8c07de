package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/model/timeline"
)

// Resets are the actions that reset a node, by node.
type Resets map[string][]timeline.Action

// resetsOf returns the resets of the nodes on which the target pods run. Pods are by their names in
// the layout, and stay on their nodes.
func resetsOf(actions []timeline.Action, pods map[string]*corev1.Pod) Resets {
	byNode := Resets{}
	for _, a := range actions {
		if p := pods[a.Pod]; a.Kind.By() == timeline.MachineAgent && p != nil {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], a)
		}
	}
	return byNode
}

// Nodes returns the nodes that are reset, in order.
func (r Resets) Nodes() []string { return slices.Sorted(maps.Keys(r)) }

// Hits reports whether the node of a pod is reset, also if another pod is the target.
func (r Resets) Hits(p *corev1.Pod) bool {
	return p != nil && p.Spec.NodeName != "" && len(r[p.Spec.NodeName]) > 0
}

// Past counts the planned resets of a node until an instant relative to t = 0. Two faults, or two
// targets, may share one reset.
func (r Resets) Past(node string, by time.Duration) int {
	var past []time.Duration
	for _, a := range r[node] {
		if a.At <= by && !slices.Contains(past, a.At) {
			past = append(past, a.At)
		}
	}
	return len(past)
}
