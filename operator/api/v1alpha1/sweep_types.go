package v1alpha1

// Axis is one dimension of the sweep: either values of one thing, or named points whose settings
// move together. It has either values or points; admission checks that, since CEL rules of a CRD
// cannot see a Value.
type Axis struct {
	// axis is its name. With values it says what is set: clients, rate, f, shards, network (its
	// profile), or a parameter of the system or workload. With points it is free; "system" is
	// taken.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	Axis string `json:"axis"`

	// values of the thing that the axis is named after.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []Value `json:"values,omitempty"`

	// points are settings that move together.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Points []AxisPoint `json:"points,omitempty"`
}

// AxisPoint is one named value of an axis.
type AxisPoint struct {
	// name of the point: the value of the axis in results and claims.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$`
	Name string `json:"name"`

	// parameters of the system or workload that the point sets.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]Value `json:"parameters,omitempty"`

	// faults that act in the point, by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=40
	Faults []string `json:"faults,omitempty"`

	// network overrides the network's profile; its links stay.
	// +optional
	Network NetworkProfile `json:"network,omitempty"`

	// links come after the network's own: they replace what its profile and links say of the same
	// direction. So a point may have a distance between regions beside one that has none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Links []RegionLink `json:"links,omitempty"`

	// clients overrides the number of clients.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Clients *int32 `json:"clients,omitempty"`
}

// Schedule divides a trial. t = 0 is the start of the measurement window; every time in a spec is
// relative to it.
type Schedule struct {
	// warmUp runs load before t = 0 that is not measured. Default: 5s. At most 1h.
	// +optional
	// +kubebuilder:default="5s"
	WarmUp Duration `json:"warmUp,omitempty"`

	// measure is the length of the measurement window, from t = 0. From 1s to 24h.
	Measure Duration `json:"measure"`

	// coolDown runs load after the window that is not measured. Default: 2s. At most 1h.
	// +optional
	// +kubebuilder:default="2s"
	CoolDown Duration `json:"coolDown,omitempty"`

	// drain waits for late replies after the last request. Default: 10s. At most 1h.
	// +optional
	// +kubebuilder:default="10s"
	Drain Duration `json:"drain,omitempty"`
}

// Repetitions say how many valid trials each point gets: min, or from min to max until its means
// are known well enough. Admission checks how the fields go together: a message of a CEL rule that
// names a number costs more than the API server allows.
type Repetitions struct {
	// min is the number of valid trials of each point; with until, the least of them. From 1 to
	// 100, with until from 3. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Min int32 `json:"min,omitempty"`

	// max is the most valid trials that a point gets; more than min only with until. From min to
	// 100. Default: min.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Max *int32 `json:"max,omitempty"`

	// until says when all points have enough trials. While one has not, all of them get another
	// one, up to max. Default: each point gets min.
	// +optional
	Until *Precision `json:"until,omitempty"`
}

// Precision is how well a point's means must be known.
type Precision struct {
	// relativeCI is the most that half of the 95% interval of a mean may be of that mean: 5%. Above
	// 0% and at most 100%.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	RelativeCI string `json:"relativeCI"`

	// of which metrics; each must be known as well. Default: MeanLatency and Throughput, the two
	// axes of a latency-throughput curve.
	// +optional
	// +listType=set
	// +kubebuilder:default={"MeanLatency","Throughput"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Of []PrecisionMetric `json:"of,omitempty"`
}

// PrecisionMetric is what repetitions can go by: MeanLatency; Throughput; P50Latency (the median
// within each trial); P99Latency (the 99th percentile within each trial).
// +kubebuilder:validation:Enum=MeanLatency;Throughput;P50Latency;P99Latency
type PrecisionMetric string

// The metrics that repetitions can go by.
const (
	PrecisionMeanLatency PrecisionMetric = "MeanLatency"
	PrecisionThroughput  PrecisionMetric = "Throughput"
	PrecisionP50Latency  PrecisionMetric = "P50Latency"
	PrecisionP99Latency  PrecisionMetric = "P99Latency"
)

// TrialOrder is the order in which trials run. RandomizedInterleaved: each round runs every point
// once, in a random order of its own, so that drift of the machines does not look like a result.
// Sequential: all repetitions of a point, then the next point.
// +kubebuilder:validation:Enum=RandomizedInterleaved;Sequential
type TrialOrder string

// The orders.
const (
	OrderRandomizedInterleaved TrialOrder = "RandomizedInterleaved"
	OrderSequential            TrialOrder = "Sequential"
)
