package v1alpha1

// NetworkProfile is a ready-made network. The value lan adds nothing to the cluster's own network.
// The value regional adds 10 ms of round trip between every two regions, whatever their names. The
// value continental has us-east-1 on one coast, us-west-1 and eu-west-1 on the other: 63, 68 and 22
// ms. The value aws-6 has us-east-1, us-west-1, eu-west-1, eu-central-1, ap-northeast-1 and
// ap-southeast-2: 26 to 255 ms. The figures are those of the Pequin artifact's configurations.
// +kubebuilder:validation:Enum=lan;regional;continental;aws-6
type NetworkProfile string

// The profiles.
const (
	NetworkLAN         NetworkProfile = "lan"
	NetworkRegional    NetworkProfile = "regional"
	NetworkContinental NetworkProfile = "continental"
	NetworkAWS6        NetworkProfile = "aws-6"
)

// ShapingBackend is the part of the kernel that delays packets. EDT: eBPF and the fq qdisc. Netem:
// HTB and the netem qdisc. NFQueue: nftables and the agent itself. Auto: the first of these that
// works in every pod of the trial. See docs/guide/networks.md, which compares them.
// +kubebuilder:validation:Enum=Auto;EDT;Netem;NFQueue
type ShapingBackend string

// The backends.
const (
	ShapingAuto    ShapingBackend = "Auto"
	ShapingEDT     ShapingBackend = "EDT"
	ShapingNetem   ShapingBackend = "Netem"
	ShapingNFQueue ShapingBackend = "NFQueue"
)

// Shaping says what Assay may do to the network of a trial's pods. Auto: what the network and the
// faults need, and nothing where they need nothing. None: nothing at all. No container has a
// capability, and Assay's own do not run as root, as the restricted Pod Security profile wants it.
// The network is then the cluster's own, and faults are nodeKill, pause and clientBehavior. A
// nodeKill is not silent; see docs/guide/restricted.md.
// +kubebuilder:validation:Enum=Auto;None
type Shaping string

// The kinds of shaping.
const (
	ShapingAllowed Shaping = "Auto"
	ShapingNone    Shaping = "None"
)

// Network is the network between the pods of a trial: what is added to the cluster's own, between
// pods of given regions. Nothing else is delayed: not the kubelet's probes, not DNS, not the API
// server, not scrapes.
type Network struct {
	// profile to start from. Default: lan.
	// +optional
	// +kubebuilder:default=lan
	Profile NetworkProfile `json:"profile,omitempty"`

	// links between regions, and inside one; they override the profile for the same direction. If
	// two links are for the same direction, the later one applies.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Links []RegionLink `json:"links,omitempty"`

	// backend that shapes. Default: Auto.
	// +optional
	// +kubebuilder:default=Auto
	Backend ShapingBackend `json:"backend,omitempty"`

	// shaping says whether Assay may touch the pods' network. Default: Auto.
	// +optional
	// +kubebuilder:default=Auto
	Shaping Shaping `json:"shaping,omitempty"`
}

// RegionLink is what is added to every packet between the pods of two regions, or inside one
// region. It is given either for both directions (between, with rtt) or for one (from and to, with
// delay).
// +kubebuilder:validation:XValidation:rule="has(self.between) != (has(self.from) && has(self.to)) && has(self.from) == has(self.to)",message="set either between (both directions), or from and to (one direction)"
// +kubebuilder:validation:XValidation:rule="!has(self.rtt) || has(self.between)",fieldPath=".rtt",message="a round trip has no direction: use it with between, or set delay"
// +kubebuilder:validation:XValidation:rule="!(has(self.rtt) && has(self.delay))",fieldPath=".delay",message="rtt is set too: set either rtt (half of it each way) or delay (each way)"
type RegionLink struct {
	// between two regions, or a region and itself: both directions alike.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=14
	Between []string `json:"between,omitempty"`

	// from is the region that sends the packets. Set with to.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	From string `json:"from,omitempty"`

	// to is the region that receives the packets: the link is for this direction only.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	To string `json:"to,omitempty"`

	// rtt is the round-trip time, as papers give it; half of it is added each way. From 0s to 20s.
	// +optional
	RTT *Duration `json:"rtt,omitempty"`

	LinkEffect `json:",inline"`
}

// LinkEffect is what happens to the packets of one direction of a link.
type LinkEffect struct {
	// delay is added one way. From 0s to 10s. Default: 0s.
	// +optional
	Delay *Duration `json:"delay,omitempty"`

	// jitter is how far the delay of a packet may be from delay, either way, uniformly. At most the
	// delay. Packets keep their order. Default: 0s.
	// +optional
	Jitter *Duration `json:"jitter,omitempty"`

	// loss is the share of packets that are lost: 0.1%. Default: 0%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	Loss string `json:"loss,omitempty"`

	// rate of the link: 100Mbit. From 1kbit to 100Gbit. Packets that would wait longer than 50ms
	// for it are lost. Default: 1Gbit on a link that is shaped, no limit on one that is not.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(k|M|G)bit$`
	Rate string `json:"rate,omitempty"`
}
