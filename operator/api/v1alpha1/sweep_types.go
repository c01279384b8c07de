package v1alpha1

// Axis is one dimension of the sweep: values of one thing, named points whose settings move
// together, or a search for the highest load that meets an objective. It has one of the three;
// admission checks that, since CEL rules of a CRD cannot see a Value.
type Axis struct {
	// axis is its name. With values it names the thing that they set: clients, rate, f, shards,
	// network (its profile), or a parameter of the system or workload. With a search it is rate or
	// clients. With points it may be any name but "system".
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

	// search looks for the capacity: the highest load that meets an objective, one for each
	// combination of the other axes. At most one axis has a search, and there are at most 32
	// combinations. Trials are then planned one by one, each by what those before it measured;
	// repetitions do not apply.
	// +optional
	Search *CapacitySearch `json:"search,omitempty"`
}

// CapacitySearch looks for the load that half of the trials carry: at this load, half of them meet
// the objective. It ends when the 95% interval of that load is narrow enough.
type CapacitySearch struct {
	// from is the lowest load that is tried: requests per second on the axis rate, clients on the
	// axis clients. Loads are whole numbers, so that from times precision must be 1 or more: 20 or
	// more for 5%. From 1 to 100000000; at most 100000 clients.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	From int64 `json:"from"`

	// to is the highest load that is tried, in the unit of from: more than from, at most 100000000,
	// and at most 100000 clients.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	To int64 `json:"to"`

	// precision is how far the ends of the interval may lie from its middle, relative to the
	// middle. The search tries loads that are half the precision apart. From 0.5% to 50%. Default:
	// 5%.
	// +optional
	// +kubebuilder:default="5%"
	Precision Percentage `json:"precision,omitempty"`

	// trials is the most valid trials of one search. From 1 to 200. Default: 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=200
	Trials int32 `json:"trials,omitempty"`

	// objective that a trial must meet to carry its load.
	Objective LoadObjective `json:"objective"`
}

// LoadObjective is the condition that each trial is judged by. All fields that are set must hold;
// at least one is set. A trial that commits nothing does not meet the objective.
// +kubebuilder:validation:MinProperties=1
type LoadObjective struct {
	// meanLatency is the most that the mean latency of committed transactions may be: 5ms. From 1us
	// to 1h.
	// +optional
	MeanLatency Duration `json:"meanLatency,omitempty"`

	// p50Latency is the most that their median may be. From 1us to 1h. A trial does not meet the
	// bound of any percentile if so many requests fail that this percentile of all requests is a
	// failed one.
	// +optional
	P50Latency Duration `json:"p50Latency,omitempty"`

	// p90Latency is the most that their 90th percentile may be. From 1us to 1h.
	// +optional
	P90Latency Duration `json:"p90Latency,omitempty"`

	// p99Latency is the most that their 99th percentile may be. From 1us to 1h.
	// +optional
	P99Latency Duration `json:"p99Latency,omitempty"`

	// p999Latency is the most that their 99.9th percentile may be. From 1us to 1h.
	// +optional
	P999Latency Duration `json:"p999Latency,omitempty"`

	// kneeLatency is the most that the mean latency may be, relative to that at the lowest load:
	// 200%. The search then finds the knee: the highest load at which requests hardly wait for each
	// other. It begins with three trials at from, whose mean is the reference. From 110% to 1000%;
	// reports have the knee of a curve at 200%.
	// +optional
	KneeLatency Percentage `json:"kneeLatency,omitempty"`

	// goodput is the least share of the offered requests that must commit in the window: 95%. Above
	// 0% and at most 100%. Only an Open loop offers requests.
	// +optional
	Goodput Percentage `json:"goodput,omitempty"`
}

// CapacityOutcome is how a search for a capacity stands. Searching: trials are to run. Found: the
// interval is as narrow as was asked for. OutOfTrials: the interval is wider, and there are no
// trials left. AboveHighest: the objective is met at the highest load, too. BelowLowest: the
// objective is not met at the lowest load. GivenUp: no trial of the next load counted, and the
// retries are used up. NotJudged: a trial lacks a number that the objective needs.
// +kubebuilder:validation:Enum=Searching;Found;OutOfTrials;AboveHighest;BelowLowest;GivenUp;NotJudged
type CapacityOutcome string

// The outcomes of a search.
const (
	CapacitySearching    CapacityOutcome = "Searching"
	CapacityFound        CapacityOutcome = "Found"
	CapacityOutOfTrials  CapacityOutcome = "OutOfTrials"
	CapacityAboveHighest CapacityOutcome = "AboveHighest"
	CapacityBelowLowest  CapacityOutcome = "BelowLowest"
	CapacityGivenUp      CapacityOutcome = "GivenUp"
	CapacityNotJudged    CapacityOutcome = "NotJudged"
)

// CapacityStatus is the state of one search. Loads are in thousandths of the unit of its axis:
// requests per second, or clients.
type CapacityStatus struct {
	// variant is the combination of the other axes, as "system=etcd, variant=ideal"; empty: the
	// search is the only one.
	// +optional
	// +kubebuilder:validation:MaxLength=1400
	Variant string `json:"variant,omitempty"`
	// outcome of the search so far.
	Outcome CapacityOutcome `json:"outcome"`
	// trials that count.
	// +kubebuilder:validation:Minimum=0
	Trials int32 `json:"trials"`
	// capacityMilli is the load that half of the trials carry. Absent: it lies beyond the loads
	// that are tried, or no trial counts yet.
	// +optional
	CapacityMilli int64 `json:"capacityMilli,omitempty"`
	// lowMilli is the lower end of its 95% interval. Absent: the interval reaches below the lowest
	// load.
	// +optional
	LowMilli int64 `json:"lowMilli,omitempty"`
	// highMilli is the upper end. Absent: the interval reaches beyond the highest load.
	// +optional
	HighMilli int64 `json:"highMilli,omitempty"`
	// message says why the search is NotJudged.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
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

	// links come after the network's own: they override its profile and links for the same
	// direction. So one point may have a distance between regions, and another point none.
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
	// warmUp runs load before t = 0; that load is not measured. Default: 5s. At most 1h.
	// +optional
	// +kubebuilder:default="5s"
	WarmUp Duration `json:"warmUp,omitempty"`

	// measure is the length of the measurement window, from t = 0. From 1s to 24h. Required, unless
	// the systems have a script: then it is the longest that the script may take. Default of a
	// script: 1h.
	// +optional
	Measure Duration `json:"measure,omitempty"`

	// coolDown runs load after the window; that load is not measured. Default: 2s. At most 1h.
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
	// min is the number of valid trials of each point; with until, the least number. From 1 to 100,
	// with until from 3. Default: 3.
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

	// until says when all points have enough trials. As long as one point has too few, every point
	// gets another trial, up to max. Default: each point gets min.
	// +optional
	Until *StoppingRule `json:"until,omitempty"`
}

// StoppingRule says when all points have enough trials: when their means are known well enough
// (relativeCI), or when the claims are decided (claims). Admission asks for one of them.
type StoppingRule struct {
	// claims: Decided stops after the first round in which each claim is decided, or hopeless. A
	// claim is hopeless if max would decide it with a probability of less than 10%. Assay looks at
	// verdicts after min rounds and after each further one. Their intervals are wider for that
	// reason: all looks together are wrong in at most 5% of experiments. It needs order:
	// RandomizedInterleaved, and no claim about a crossover. Default: claims do not end
	// repetitions.
	// +optional
	Claims ClaimsUntil `json:"claims,omitempty"`

	// relativeCI is the greatest half-width of the 95% interval of a mean, relative to that mean:
	// 5%. Above 0% and at most 100%. Default: precision does not end repetitions.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	RelativeCI string `json:"relativeCI,omitempty"`

	// of lists the metrics that relativeCI is about. Each of them must be known that well. Default:
	// MeanLatency and Throughput, the two axes of a latency-throughput curve.
	// +optional
	// +listType=set
	// +kubebuilder:default={"MeanLatency","Throughput"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Of []PrecisionMetric `json:"of,omitempty"`
}

// ClaimsUntil is the state of the claims that ends repetitions. Decided: each claim is decided, or
// hopeless.
// +kubebuilder:validation:Enum=Decided
type ClaimsUntil string

// ClaimsDecided ends repetitions when all claims are decided or hopeless.
const ClaimsDecided ClaimsUntil = "Decided"

// PrecisionMetric is a metric whose precision can end repetitions: MeanLatency; Throughput;
// P50Latency (the median within each trial); P99Latency (the 99th percentile within each trial).
// +kubebuilder:validation:Enum=MeanLatency;Throughput;P50Latency;P99Latency
type PrecisionMetric string

// The metrics whose precision can end repetitions.
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
