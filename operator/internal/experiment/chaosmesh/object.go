package chaosmesh

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole

	"assay.dev/assay/operator/api/v1alpha1"
)

// GroupVersion of Chaos Mesh's kinds.
var GroupVersion = schema.GroupVersion{Group: "chaos-mesh.org", Version: "v1alpha1"}

// margin is how much longer than the fault the object's own duration is. Assay ends a fault by
// deleting its object; the duration is for the case that no manager is there to do so. Chaos Mesh
// counts from the object's creation in whole seconds, and by its own clock, so that it may be a
// second early. The sum is up to a quarter of a second over a second late. So a run that no manager
// sees for a while is not lost for it.
const margin = 1250 * time.Millisecond

// podNameLabel is given to every pod of a StatefulSet by Kubernetes.
const podNameLabel = "statefulset.kubernetes.io/pod-name"

// Occurrence is one time of a fault in one trial.
type Occurrence struct {
	Namespace, Trial, Experiment string
	// Fault is nothing but a chaosMesh.
	Fault *v1alpha1.Fault
	// Time of the fault, from 1.
	Time int
	// Pods of the target, and those at the other end.
	Pods, Peers []string
	// Containers of the pods of the target.
	Containers []string
	// Left is how long the fault still lasts. 0: it is over at once.
	Left time.Duration
}

// Name of the object.
func (o Occurrence) Name() string { return fmt.Sprintf("%s-%s-%d", o.Trial, o.Fault.Name, o.Time) }

// Object makes the object that carries the fault out this time. It has no owner yet.
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

// selector of some pods of the trial by name, all of which must be in its namespace and be the
// trial's.
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

// Component whose pods a fault of Chaos Mesh is for; empty: replicas.
func Component(f *v1alpha1.Fault) string {
	if f.ChaosMesh == nil {
		return ""
	}
	return f.ChaosMesh.Target.Component
}

// Kinds of the objects that faults need, in order.
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
