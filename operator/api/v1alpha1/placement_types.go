package v1alpha1

import "slices"

// Topology says how many replicas run where.
type Topology struct {
	// f is how many faulty replicas each shard tolerates; the System's replicas.count gives the
	// number of replicas from it. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=33
	F int32 `json:"f"`

	// shards is the number of shards. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Shards int32 `json:"shards,omitempty"`

	// regions of the replicas of every shard, for systems that name no regions themselves; the
	// counts must add up to the System's number of replicas for f. Replicas are numbered in this
	// order. Empty: one region, "local", with all of them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Regions []Region `json:"regions,omitempty"`

	// components whose pods are not all in the first region of the replicas. Default: all pods of
	// every component are in that region.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Components []ComponentRegions `json:"components,omitempty"`
}

// Region is a place with replicas.
type Region struct {
	// name of the region, at most 14 characters.
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// replicas of each shard in the region, or pods of the component.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200
	Replicas int32 `json:"replicas"`
}

// Placement says which nodes the pods of a trial run on, and who else may use them meanwhile. A
// pool is the nodes whose label assay.dev/pool has its name; a taint of that key and value keeps
// other pods away and is tolerated. docs/guide/queue.md.
type Placement struct {
	// replicas is the pool that replicas run on. Default: any node.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Replicas string `json:"replicas,omitempty"`

	// clients is the pool that the client pods and the prepare step run on. Default: any node.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Clients string `json:"clients,omitempty"`

	// components lists the components that have a pool of their own. The others run on the pool of
	// the replicas. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Components []ComponentPool `json:"components,omitempty"`

	// sets are two sets of nodes or more, each with pools of its own. As many trials of the
	// experiment run at once as there are sets, each alone on one. A repetition of all points runs
	// on one set, so that what is compared ran on the same nodes. Default: none; trials run one
	// after the other on replicas, clients and components.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	Sets []NodeSet `json:"sets,omitempty"`

	// byRegion puts the pods of each region on nodes of that region, within their pools. A trial
	// whose region has no node stays Unschedulable. The prepare step is of no region. Default:
	// regions choose no nodes.
	// +optional
	ByRegion *RegionNodes `json:"byRegion,omitempty"`

	// spread says how replicas and pods of components share nodes. Preferred: they are on different
	// nodes as far as there are nodes. Required: no node has two of them, and a trial with too few
	// nodes stays Unschedulable. Clients may share a node with any, unless they have a pool of
	// their own. Default: Preferred.
	// +optional
	// +kubebuilder:default=Preferred
	Spread Spread `json:"spread,omitempty"`

	// exclusive: while a trial runs, no other trial runs on its pools. A trial that may run on any
	// node has them all. The value false lets other trials that are not exclusive either run there
	// at the same time, if there is room. Use it for trials that measure nothing. Default: true.
	// +optional
	// +kubebuilder:default=true
	Exclusive *bool `json:"exclusive,omitempty"`
}

// NodeSet is the pools that a trial has for itself while others of its experiment run elsewhere.
type NodeSet struct {
	// name of the set. The results of each trial have it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// replicas is the pool that replicas run on. No other set may have it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Replicas string `json:"replicas"`

	// clients is the pool that the client pods and the prepare step run on. No other set may have
	// it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Clients string `json:"clients"`

	// components lists the components that have a pool of their own. The others run on the pool of
	// the replicas. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Components []ComponentPool `json:"components,omitempty"`
}

// On returns the placement of a trial on the set of that number, and the set's name. Without sets
// it returns the placement itself.
func (p Placement) On(set int) (on Placement, name string) {
	if len(p.Sets) == 0 {
		return p, ""
	}
	s := p.Sets[set]
	p.Replicas, p.Clients, p.Components, p.Sets = s.Replicas, s.Clients, slices.Clone(s.Components), nil
	return p, s.Name
}

// AtOnce is how many trials run at the same time.
func (p Placement) AtOnce() int { return max(1, len(p.Sets)) }

// Spread says how replicas and pods of components share nodes: Preferred; Required.
// +kubebuilder:validation:Enum=Preferred;Required
type Spread string

// How pods share nodes.
const (
	SpreadPreferred Spread = "Preferred"
	SpreadRequired  Spread = "Required"
)

// RegionNodes says which nodes are in which region.
type RegionNodes struct {
	// label of the nodes with the name of their region. Default: topology.kubernetes.io/region,
	// which clouds set.
	// +optional
	// +kubebuilder:default="topology.kubernetes.io/region"
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'assay.dev/pool'",message="assay.dev/pool says the pool of a node; name the label that says its region"
	Label string `json:"label,omitempty"`

	// values of the label, by region. Several regions may have one value. A list that is not empty
	// must have each region that holds pods. Default: a region's value is its name.
	// +optional
	// +listType=map
	// +listMapKey=region
	// +kubebuilder:validation:MaxItems=32
	Values []RegionValue `json:"values,omitempty"`
}

// RegionValue gives the value of the label on nodes of a region.
type RegionValue struct {
	// region, as topology and clients call it.
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Region string `json:"region"`

	// value of the label on the region's nodes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Value string `json:"value"`
}

// Of is the value of a region, and whether there is one.
func (r *RegionNodes) Of(region string) (value string, ok bool) {
	for i := range r.Values {
		if r.Values[i].Region == region {
			return r.Values[i].Value, true
		}
	}
	return "", false
}

// NodeSelector returns the labels of the nodes that may run the pods of a pool and a region. An
// empty pool or region allows any.
func (p *Placement) NodeSelector(pool, region string) map[string]string {
	wanted := map[string]string{}
	if pool != "" {
		wanted[LabelPool] = pool
	}
	if p.ByRegion != nil && region != "" {
		wanted[p.ByRegion.Label], _ = p.ByRegion.Of(region)
	}
	if len(wanted) == 0 {
		return nil
	}
	return wanted
}

// IsExclusive is exclusive with its default.
func (p Placement) IsExclusive() bool { return p.Exclusive == nil || *p.Exclusive }

// Pools returns the pools that a trial uses, each once. No pool means that it may use any node, and
// so all pools.
func (p Placement) Pools() []string {
	if p.Replicas == "" || p.Clients == "" {
		return nil
	}
	pools := []string{p.Replicas, p.Clients}
	for _, c := range p.Components {
		pools = append(pools, c.Pool)
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}
