package v1alpha1

// ComponentOrder says when the pods of a component start their processes: BeforeReplicas (the
// replicas start when the component is ready); AfterReplicas (the component starts when the
// replicas are ready). Components of one order start in the order of the list, each when the one
// before is ready.
// +kubebuilder:validation:Enum=BeforeReplicas;AfterReplicas
type ComponentOrder string

// The orders of components.
const (
	OrderBeforeReplicas ComponentOrder = "BeforeReplicas"
	OrderAfterReplicas  ComponentOrder = "AfterReplicas"
)

// Component is pods of the system besides its replicas and clients: a coordinator, a proxy, a cold
// tier, memory nodes. A component has the fields of replicas, but no shards: count gives the number
// of its pods. Faults name the pods by target.component, templates by .Components.
type Component struct {
	// name of the component, as templates, faults and experiments call it: at most 14 lower-case
	// letters and digits, beginning with a letter. Not replica, client or prepare, and not a
	// shard's name, such as s0.
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['replica', 'replicas', 'client', 'clients', 'prepare', 'c']) && !self.matches('^s[0-9]+$')",message="the name is taken: replicas, clients, the prepare step and shards (s0) are called so; call the component otherwise"
	Name string `json:"name"`

	// order says when the component starts: BeforeReplicas; AfterReplicas. Within one order
	// components start as they are listed, each when the one before is ready. Default:
	// BeforeReplicas.
	// +optional
	// +kubebuilder:default=BeforeReplicas
	Order ComponentOrder `json:"order,omitempty"`

	ReplicasSpec `json:",inline"`
}

// ComponentRegions says where the pods of one component are.
type ComponentRegions struct {
	// name of the component, as the System has it.
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Name string `json:"name"`

	// regions that its pods are in; the counts, called replicas here too, must add up to the
	// component's number of pods for f. Pods are numbered in this order.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Regions []Region `json:"regions"`
}

// ComponentPool says which nodes the pods of one component run on.
type ComponentPool struct {
	// name of the component, as the System has it.
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Name string `json:"name"`

	// pool that its pods run on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Pool string `json:"pool"`
}

// Group returns the component of that name, or the replicas for an empty name. It returns nil if
// the System has no such component.
func (s *SystemSpec) Group(component string) *ReplicasSpec {
	if component == "" {
		return &s.Replicas
	}
	for i := range s.Components {
		if s.Components[i].Name == component {
			return &s.Components[i].ReplicasSpec
		}
	}
	return nil
}

// RegionsOf returns the regions of the pods of the component of that name. For an empty name it
// returns the regions of each shard's replicas.
func (t *Topology) RegionsOf(component string) []Region {
	if component == "" {
		return t.Regions
	}
	for i := range t.Components {
		if t.Components[i].Name == component {
			return t.Components[i].Regions
		}
	}
	return nil
}

// PoolOf returns the pool of the component of that name. It returns the pool of the replicas if the
// name is empty, or if the component has no pool of its own.
func (p *Placement) PoolOf(component string) string {
	for i := range p.Components {
		if component != "" && p.Components[i].Name == component {
			return p.Components[i].Pool
		}
	}
	return p.Replicas
}
