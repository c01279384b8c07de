package chaos

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/fault"
)

// Where a fault replaces pods or restarts their containers, Chaos Mesh's word is not enough. It
// calls a pod failed when its images are replaced, and the processes go on until their kubelet ends
// them. It compares the pods' present state with their state before.

// evidence is what such a fault must change, by pod, as JSON: which pod it is, or which containers
// of the System run in it. Of other faults: nothing.
func (r *Run) evidence(t *fault.Occurrence) string {
	seen := map[string][]string{}
	for _, name := range t.Pods {
		seen[name] = r.standing(t, name)
	}
	raw, err := json.Marshal(seen)
	if err != nil {
		return "" // texts can always be encoded
	}
	return string(raw)
}

// standing are the parts of a pod that the fault is to end, by identity. Those that do not run are
// left out.
func (r *Run) standing(t *fault.Occurrence, name string) []string {
	p := r.Pods[name]
	switch {
	case p == nil || !p.DeletionTimestamp.IsZero():
		return nil
	case chaosmesh.Replaces(t.Fault):
		return []string{string(p.UID)}
	case chaosmesh.Restarts(t.Fault):
		return runningContainers(p, chaosmesh.RestartedContainers(t.Fault))
	}
	return nil
}

// runningContainers identifies the running containers of a pod, among the named ones; without
// names, among all.
func runningContainers(p *corev1.Pod, names []string) []string {
	var out []string
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil && (len(names) == 0 || slices.Contains(names, c.Name)) {
			out = append(out, c.ContainerID)
		}
	}
	return out
}

// unchanged says what is still there that Chaos Mesh says it has ended, or nothing.
func (r *Run) unchanged(t *fault.Occurrence, u *unstructured.Unstructured) string {
	before := map[string][]string{}
	if err := json.Unmarshal([]byte(u.GetAnnotations()[annotationBefore]), &before); err != nil {
		return fmt.Sprintf("it is not known what the pods were before: the annotation %s of %s %s is %v", annotationBefore, u.GetKind(), u.GetName(), err)
	}
	for _, name := range t.Pods {
		for _, part := range r.standing(t, name) {
			if slices.Contains(before[name], part) {
				return fmt.Sprintf("Chaos Mesh said that %s was done, and pod %s, or a container of it, was still the one before", chaosmesh.Describe(t.Fault), name)
			}
		}
	}
	return ""
}
