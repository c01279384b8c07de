package folder

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Kind is a kind of objects that the folder serves.
type Kind struct {
	Group, Version, Resource, Kind string
	// Cluster: the objects are in no namespace.
	Cluster bool
	// Kept: the objects are files. Objects of other kinds, such as pods, live as long as the
	// process that made them.
	Kept bool
	// Shared: the objects are files in a folder that all experiments of the machine share
	// (Store.Share). Without such a folder they live as long as the process.
	Shared bool
	// Ours: a kind of Assay, with a schema, a status of its own and a generation.
	Ours bool
}

// GroupVersionKind returns the kind of its objects.
func (k *Kind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

func (k *Kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

func (k *Kind) apiVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// The kinds that other packages of this module use.
var (
	Pods         = &Kind{Version: "v1", Resource: "pods", Kind: "Pod"}
	StatefulSets = &Kind{Group: "apps", Version: "v1", Resource: "statefulsets", Kind: "StatefulSet"}
	Jobs         = &Kind{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job"}
	Nodes        = &Kind{Version: "v1", Resource: "nodes", Kind: "Node", Cluster: true}
	Namespaces   = &Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace", Cluster: true}
	Claims       = &Kind{Version: "v1", Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim"}
	Events       = &Kind{Version: "v1", Resource: "events", Kind: "Event"}
	Experiments  = &Kind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "experiments", Kind: "Experiment", Kept: true, Ours: true}
	Trials       = &Kind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "trials", Kind: "Trial", Kept: true, Ours: true}
)

// Kinds are all kinds. A Secret holds a private key or the output of a prepare step. It does not
// outlive the process, and is made again.
var Kinds = []*Kind{
	Pods, StatefulSets, Jobs, Nodes, Namespaces, Claims, Events, Experiments, Trials,
	{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "systems", Kind: "System", Kept: true, Ours: true},
	{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "datasets", Kind: "Dataset", Shared: true, Ours: true},
	{Version: "v1", Resource: "services", Kind: "Service"},
	{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Kept: true},
	{Version: "v1", Resource: "secrets", Kind: "Secret"},
	{Version: "v1", Resource: "resourcequotas", Kind: "ResourceQuota"},
	{Group: "apps", Version: "v1", Resource: "controllerrevisions", Kind: "ControllerRevision", Kept: true},
	{Group: "events.k8s.io", Version: "v1", Resource: "events", Kind: "Event"},
}

// kindOf finds a kind by the parts of a path.
func kindOf(group, version, resource string) *Kind {
	for _, k := range Kinds {
		if k.Group == group && k.Version == version && k.Resource == resource {
			return k
		}
	}
	return nil
}
