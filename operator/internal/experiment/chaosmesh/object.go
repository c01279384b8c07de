package chaosmesh

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json" // keeps whole numbers whole

	"assay.dev/assay/operator/api/v1alpha1"
)

// GroupVersion of Chaos Mesh's kinds.
var GroupVersion = schema.GroupVersion{Group: "chaos-mesh.org", Version: "v1alpha1"}

// margin is how much longer than the fault the object's own duration is. Assay ends a fault by
// deleting its object. The duration ends it if no manager is there. Chaos Mesh counts in whole
// seconds from the object's creation, by its own clock, so it may be a second early. With the
// margin it is at most a quarter of a second late beyond that. So a run without a manager for a
// while is not lost.
const margin = 1250 * time.Millisecond

// podNameLabel is the label that Kubernetes gives to every pod of a StatefulSet.
const podNameLabel = "statefulset.kubernetes.io/pod-name"

// Occurrence is one time of a fault in one trial.
type Occurrence struct {
	Namespace, Trial, Experiment string
	// Fault has only the field chaosMesh.
	Fault *v1alpha1.Fault
	// Time of the fault, from 1.
	Time int
	// Pods are those of the target, Peers those at the other end.
	Pods, Peers []string
	// Containers of the pods of the target.
	Containers []string
	// Left is how long the fault still lasts. 0: the fault is over at once.
	Left time.Duration
}

// Name returns the name of the object.
func (o Occurrence) Name() string { return fmt.Sprintf("%s-%s-%d", o.Trial, o.Fault.Name, o.Time) }

// Object makes the object that carries out this time of the fault. It has no owner yet.
func (o Occurrence) Object() (*unstructured.Unstructured, error) {
	c := o.Fault.ChaosMesh
	spec := map[string]any{}
	if err := json.Unmarshal(c.Spec.Raw, &spec); err != nil {
		return nil, fmt.Errorf("decode the spec of fault %s: %w", o.Fault.Name, err)
	}
	spec["selector"], spec["mode"] = o.selector(c.Target.Component, o.Pods), "all"
	if len(o.Peers) > 0 {
		component := ""
		if c.Peers != nil {
			component = c.Peers.Component
		}
		spec["target"] = map[string]any{"selector": o.selector(component, o.Peers), "mode": "all"}
	}
	if _, given := spec["containerNames"]; !given && actsOnContainers(o.Fault) {
		spec["containerNames"] = anys(o.Containers)
	}
	if o.Left > 0 {
		spec["duration"] = (o.Left + margin).Round(time.Millisecond).String()
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(GroupVersion.WithKind(c.Kind))
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name())
	u.SetLabels(map[string]string{v1alpha1.LabelTrial: o.Trial, v1alpha1.LabelExperiment: o.Experiment})
	return u, nil
}

// selector selects pods of the trial by name. All of them must be in the trial's namespace and
// belong to the trial.
func (o Occurrence) selector(component string, pods []string) map[string]any {
	labels := map[string]any{v1alpha1.LabelTrial: o.Trial, v1alpha1.LabelPodType: v1alpha1.PodTypeReplica}
	if component != "" {
		labels[v1alpha1.LabelPodType], labels[v1alpha1.LabelComponent] = v1alpha1.PodTypeComponent, component
	}
	return map[string]any{
		"namespaces":     []any{o.Namespace},
		"labelSelectors": labels,
		"expressionSelectors": []any{
			map[string]any{"key": podNameLabel, "operator": "In", "values": anys(pods)},
		},
	}
}

// Component returns the component whose pods a fault of Chaos Mesh targets. Empty: the fault
// targets replicas.
func Component(f *v1alpha1.Fault) string {
	if f.ChaosMesh == nil {
		return ""
	}
	return f.ChaosMesh.Target.Component
}

// Kinds returns the kinds of the objects that faults need, in order.
func Kinds(faults []v1alpha1.Fault) []string {
	set := map[string]bool{}
	for i := range faults {
		if c := faults[i].ChaosMesh; c != nil {
			set[c.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}
