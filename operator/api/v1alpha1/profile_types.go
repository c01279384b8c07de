package v1alpha1

// Profile is another size of the evaluation. Its fields replace those of the experiment.
type Profile struct {
	// name of the profile.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// doc says what the profile is for.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Doc string `json:"doc,omitempty"`

	// sweep replaces the axes of the same name; other axes stay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Sweep []Axis `json:"sweep,omitempty"`

	// schedule replaces the whole schedule.
	// +optional
	Schedule *Schedule `json:"schedule,omitempty"`

	// repetitions replace the whole repetitions.
	// +optional
	Repetitions *Repetitions `json:"repetitions,omitempty"`

	// topology replaces the whole topology.
	// +optional
	Topology *Topology `json:"topology,omitempty"`

	// network replaces the whole network.
	// +optional
	Network *Network `json:"network,omitempty"`

	// placement replaces the whole placement.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// faults replace those of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Faults []Fault `json:"faults,omitempty"`

	// tolerances replace all of the tolerances; those that are left out have their defaults.
	// +optional
	Tolerances *Tolerances `json:"tolerances,omitempty"`

	// disturbances replace all of the disturbances; those that are left out have their defaults.
	// +optional
	Disturbances *Disturbances `json:"disturbances,omitempty"`

	// nodes replaces the number of client pods.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Nodes *int32 `json:"nodes,omitempty"`

	// thinkTime replaces the clients' time between transactions.
	// +optional
	ThinkTime *Duration `json:"thinkTime,omitempty"`

	// phases replace those of the clients' load.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Phases []LoadPhase `json:"phases,omitempty"`

	// parameters come on top of the experiment's, under those of a point.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]Value `json:"parameters,omitempty"`

	// claims replace claims of the same name (scaled bounds); one with skip is not evaluated.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Claims []ProfileClaim `json:"claims,omitempty"`
}

// ProfileClaim changes a claim for a profile: at least one of skip, statement, expr, reported,
// expected, within is set beside its name.
// +kubebuilder:validation:MinProperties=2
type ProfileClaim struct {
	// name of the claim that is changed.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// skip says why the claim cannot be judged in this profile; its verdict is then NotEvaluated.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Skip string `json:"skip,omitempty"`

	// statement says in a sentence what is judged in this profile. It is required where expr,
	// reported, expected or within changes, or where the profile changes the points that the claim
	// reads.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Statement string `json:"statement,omitempty"`

	// widerBecause says why the tolerance may be wider than that of the full evaluation. It is
	// required if the tolerance is wider.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	WiderBecause string `json:"widerBecause,omitempty"`

	// expr replaces the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Expr string `json:"expr,omitempty"`

	// reported replaces the value.
	// +optional
	Reported *Value `json:"reported,omitempty"`

	// expected replaces the expected value.
	// +optional
	Expected *Value `json:"expected,omitempty"`

	// within replaces the tolerance.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(%( of the effect)?|ns|us|ms|s|m|h)?$`
	Within string `json:"within,omitempty"`
}
