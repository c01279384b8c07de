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

// If a fault replaces pods or restarts their containers, the report of Chaos Mesh is not enough. It
// says that a pod has failed once the images are replaced, but processes go on until the kubelet
// ends them. So the manager compares the pods with their state before the fault.

// evidence returns the parts of pods that such a fault must change, by pod, as JSON: the pod's UID,
// or the System's containers that run in it. For other faults there are none.
func (r *Run) evidence(t *fault.Occurrence) string {
	seen := map[string][]string{}
	for _, name := range t.Pods {
		seen[name] = r.standing(t, name)
	}
	raw, err := json.Marshal(seen)
	if err != nil {
		return "" // a text can always be encoded
	}
	return string(raw)
}

// standing returns the parts of a pod that the fault must end and that still run, by identity.
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

// runningContainers returns the IDs of the running containers of a pod, among the named ones.
// Without names, it returns all.
func runningContainers(p *corev1.Pod, names []string) []string {
	var out []string
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil && (len(names) == 0 || slices.Contains(names, c.Name)) {
			out = append(out, c.ContainerID)
		}
	}
	return out
}

// unchanged names a part that still runs although Chaos Mesh reported its end, or returns "".
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
