package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExperimentSpec is one evaluation of a paper: what to run, what to break, what the paper says came out.
// +kubebuilder:validation:XValidation:rule="size(self.profile) == 0 || self.profiles.exists(p, p.name == self.profile)",fieldPath=".profile",message="must be the name of one of profiles, or empty for the full evaluation",messageExpression="'\"' + self.profile + '\" must be the name of one of profiles, or empty for the full evaluation'"
// +kubebuilder:validation:XValidation:rule="self.clients.loop == 'Open' || !has(self.clients.arrivals)",fieldPath=".clients.arrivals",message="only an Open loop has arrivals; remove it or set loop: Open",messageExpression="'\"' + self.clients.arrivals + '\": only an Open loop has arrivals; remove it or set loop: Open'"
type ExperimentSpec struct {
	// source is the paper and section whose evaluation this is.
	// +optional
	Source *Source `json:"source,omitempty"`

	// systems under test. Several make a comparison: the system is then an axis of the sweep, named "system".
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Systems []SystemReference `json:"systems"`

	// topology says how many replicas run where.
	Topology Topology `json:"topology"`

	// network between the pods of a trial. Default: lan.
	// +optional
	// +kubebuilder:default={profile: "lan", backend: "Auto", shaping: "Auto"}
	Network Network `json:"network,omitempty"`

	// placement says which nodes trials run on, and who else may use them meanwhile. Default: any node, nobody else.
	// +optional
	// +kubebuilder:default={exclusive: true}
	Placement Placement `json:"placement,omitempty"`

	// priority of the experiment's trials in the queue: those of a higher priority start first, then those of the experiment that was created first. It may be
	// changed at any time. From -1000 to 1000. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// workload that the clients run.
	Workload WorkloadReference `json:"workload"`

	// parameters of the systems, for all points. Those of a sweep's point come on top.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]Value `json:"parameters,omitempty"`

	// clients say how the load is offered.
	Clients Clients `json:"clients"`

	// sweep lists the axes; their cross product is the points. No axis: one point. At most 8 axes and 1024 points.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:default={}
	Sweep []Axis `json:"sweep,omitempty"`

	// schedule of every trial.
	Schedule Schedule `json:"schedule"`

	// repetitions of each point. Default: 3.
	// +optional
	// +kubebuilder:default={min: 3}
	Repetitions Repetitions `json:"repetitions,omitempty"`

	// order of the trials. Default: RandomizedInterleaved.
	// +optional
	// +kubebuilder:default=RandomizedInterleaved
	Order TrialOrder `json:"order,omitempty"`

	// seed of everything random: the order of trials, keys, arrivals. Default: chosen at the start and recorded in status.seed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Seed *int64 `json:"seed,omitempty"`

	// retries is how many more trials a repetition may take when one of its trials is invalid or fails. Default: 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Retries *int32 `json:"retries,omitempty"`

	// faults that points may name, and what they do. A fault acts only in the points that name it, or in all when everyPoint is set.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Faults []Fault `json:"faults,omitempty"`

	// tolerances beyond which a trial is invalid.
	// +optional
	// +kubebuilder:default={}
	Tolerances Tolerances `json:"tolerances,omitempty"`

	// profiles are smaller or other sizes of the same evaluation.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:default={}
	Profiles []Profile `json:"profiles,omitempty"`

	// profile in use: the name of one of profiles. Default: empty, the full evaluation.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=40
	Profile string `json:"profile"`

	// results says where results are kept besides the cluster. Default: in the installation's default store, if it has one.
	// +optional
	Results *Results `json:"results,omitempty"`

	// reported holds the paper's curves and tables.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Reported []ReportedSeries `json:"reported,omitempty"`

	// claims of the paper, to be judged.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Claims []Claim `json:"claims,omitempty"`

	// measurements are numbers of each trial that the installation's Prometheus knows: columns of the results, and what claims may be about. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Measurements []Measurement `json:"measurements,omitempty"`

	// suspend stops new trials from being started; the running one ends normally. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Source is where an evaluation was published.
type Source struct {
	// title of the paper.
	// +kubebuilder:validation:MaxLength=512
	Title string `json:"title"`

	// section, figure or table.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Section string `json:"section,omitempty"`

	// url of the paper or artifact.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url,omitempty"`
}

// SystemReference names a System in the experiment's namespace.
type SystemReference struct {
	// name of the System.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// parameters for this system only, over those of the experiment, under those of the workload and of the point.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]Value `json:"parameters,omitempty"`
}

// Topology says how many replicas run where.
type Topology struct {
	// f is how many faulty replicas each shard tolerates; the System's replicas.count gives the number of replicas from it. Default: 1.
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

	// regions the replicas of every shard are in; the counts must add up to the System's number of replicas for f. Replicas
	// are numbered in this order. Empty: one region, "local", with all of them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Regions []Region `json:"regions,omitempty"`
}

// Region is a place with replicas.
type Region struct {
	// name of the region, at most 14 characters.
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// replicas of each shard in the region.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200
	Replicas int32 `json:"replicas"`
}

// Placement says which nodes the pods of a trial run on, and who else may use them meanwhile. A pool is the nodes whose label assay.dev/pool has its
// name; a taint of that key and value keeps other pods away and is tolerated. docs/guide/queue.md.
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

	// exclusive: while a trial runs, no other trial runs on its pools; a trial that may run on any node has them all. false lets other trials that are not
	// exclusive either run there at the same time, if there is room: for what is not measured. Default: true.
	// +optional
	// +kubebuilder:default=true
	Exclusive *bool `json:"exclusive,omitempty"`
}

// IsExclusive is exclusive with its default.
func (p Placement) IsExclusive() bool { return p.Exclusive == nil || *p.Exclusive }

// Pools that a trial uses, each once; none: any node, hence all pools.
func (p Placement) Pools() []string {
	switch {
	case p.Replicas == "" || p.Clients == "":
		return nil
	case p.Replicas == p.Clients:
		return []string{p.Replicas}
	case p.Replicas < p.Clients:
		return []string{p.Replicas, p.Clients}
	default:
		return []string{p.Clients, p.Replicas}
	}
}

// WorkloadReference names a workload of the System.
type WorkloadReference struct {
	// name of the workload, as the System declares it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// parameters of the workload, for all points.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Parameters map[string]Value `json:"parameters,omitempty"`
}

// Loop is how clients offer load: Closed (each client sends its next request after the last reply); Open (requests arrive at
// an offered rate, whatever the replies do).
// +kubebuilder:validation:Enum=Closed;Open
type Loop string

// The loops.
const (
	LoopClosed Loop = "Closed"
	LoopOpen   Loop = "Open"
)

// Arrivals is how requests of an open loop are spaced: Constant (evenly); Poisson (exponentially distributed gaps).
// +kubebuilder:validation:Enum=Constant;Poisson
type Arrivals string

// The arrivals.
const (
	ArrivalsConstant Arrivals = "Constant"
	ArrivalsPoisson  Arrivals = "Poisson"
)

// Clients say how load is offered. The axes "clients" and "rate" of a sweep set count and rate.
type Clients struct {
	// loop of the clients.
	Loop Loop `json:"loop"`

	// nodes is the number of client pods that the clients are spread over. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Nodes int32 `json:"nodes,omitempty"`

	// regions that the client pods are in, one after the other, from the first again when there are more pods. Default: the regions of the
	// topology that have replicas, in their order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=14
	Regions []string `json:"regions,omitempty"`

	// count of clients over all nodes. Closed loop: each has one request outstanding. Open loop: the most requests that may be outstanding
	// at once. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Count int32 `json:"count,omitempty"`

	// rate offered by all nodes together, in requests per second. Open loop only.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	Rate *int64 `json:"rate,omitempty"`

	// arrivals of an open loop. Default for an open loop: Poisson.
	// +optional
	Arrivals *Arrivals `json:"arrivals,omitempty"`

	// thinkTime is how long a client of a closed loop waits after the end of a transaction before it begins the next. Its first wait is a random
	// part of that, so that clients do not march in step. From 0s to 10m. Default: 0s.
	// +optional
	// +kubebuilder:default="0s"
	ThinkTime Duration `json:"thinkTime,omitempty"`

	// timeout after which a request counts as timed out. Default: 10s. From 1ms to 10m.
	// +optional
	// +kubebuilder:default="10s"
	Timeout Duration `json:"timeout,omitempty"`

	// retry of aborted transactions. A transaction's latency spans all its attempts and the waits between them, as the Basil and Pesto
	// artifacts count it.
	// +optional
	// +kubebuilder:default={}
	Retry Retry `json:"retry,omitempty"`
}

// Retry says how aborted transactions are tried again.
type Retry struct {
	// attempts at most, the first included. 0: no limit. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Attempts int32 `json:"attempts,omitempty"`

	// backoff before the second attempt; each further wait is twice as long, and each is drawn uniformly between half of it and all of it.
	// Default: 2ms.
	// +optional
	// +kubebuilder:default="2ms"
	Backoff Duration `json:"backoff,omitempty"`

	// maxBackoff is the longest wait. Default: 300ms.
	// +optional
	// +kubebuilder:default="300ms"
	MaxBackoff Duration `json:"maxBackoff,omitempty"`
}

// Axis is one dimension of the sweep: either values of one thing, or named points whose settings move together.
// It has either values or points; admission checks that, since CEL rules of a CRD cannot see a Value.
type Axis struct {
	// axis is its name. With values it says what is set: clients, rate, f, shards, network (its profile), or a parameter of the system or workload. With points it
	// is free; "system" is taken.
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

	// clients overrides the number of clients.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Clients *int32 `json:"clients,omitempty"`
}

// Schedule divides a trial. t = 0 is the start of the measurement window; every time in a spec is relative to it.
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

// Repetitions say how many valid trials each point gets: min, or from min to max until its means are known well enough.
// Admission checks how the fields go together: a message of a CEL rule that names a number costs more than the API server allows.
type Repetitions struct {
	// min is the number of valid trials of each point; with until, the least of them. From 1 to 100, with until from 3. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Min int32 `json:"min,omitempty"`

	// max is the most valid trials that a point gets; more than min only with until. From min to 100. Default: min.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Max *int32 `json:"max,omitempty"`

	// until says when a point has enough trials. A point that does not gets another one in the next round, up to max. Default: each point gets min.
	// +optional
	Until *Precision `json:"until,omitempty"`
}

// Precision is how well a point's means must be known.
type Precision struct {
	// relativeCI is the most that half of the 95% interval of a mean may be of that mean: 5%. Above 0% and at most 100%.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	RelativeCI string `json:"relativeCI"`

	// of which metrics; each must be known as well. Default: MeanLatency and Throughput, the two axes of a latency-throughput curve.
	// +optional
	// +listType=set
	// +kubebuilder:default={"MeanLatency","Throughput"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Of []PrecisionMetric `json:"of,omitempty"`
}

// PrecisionMetric is what repetitions can go by: MeanLatency; Throughput; P50Latency (the median within each trial); P99Latency (the 99th percentile within
// each trial).
// +kubebuilder:validation:Enum=MeanLatency;Throughput;P50Latency;P99Latency
type PrecisionMetric string

// The metrics that repetitions can go by.
const (
	PrecisionMeanLatency PrecisionMetric = "MeanLatency"
	PrecisionThroughput  PrecisionMetric = "Throughput"
	PrecisionP50Latency  PrecisionMetric = "P50Latency"
	PrecisionP99Latency  PrecisionMetric = "P99Latency"
)

// TrialOrder is the order in which trials run: RandomizedInterleaved (each round runs every point once, in a random order of its own, so that
// drift of the machines does not look like a result); Sequential (all repetitions of a point, then the next point).
// +kubebuilder:validation:Enum=RandomizedInterleaved;Sequential
type TrialOrder string

// The orders.
const (
	OrderRandomizedInterleaved TrialOrder = "RandomizedInterleaved"
	OrderSequential            TrialOrder = "Sequential"
)

// Profile is another size of the evaluation. What it sets replaces what the experiment says.
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

	// nodes replaces the number of client pods.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Nodes *int32 `json:"nodes,omitempty"`

	// thinkTime replaces the clients' time between transactions.
	// +optional
	ThinkTime *Duration `json:"thinkTime,omitempty"`

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

// ProfileClaim changes a claim for a profile: at least one of skip, expr, reported, within is set beside its name.
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

	// expr replaces the expression.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Expr string `json:"expr,omitempty"`

	// reported replaces the value.
	// +optional
	Reported *Value `json:"reported,omitempty"`

	// within replaces the tolerance.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(%|ns|us|ms|s|m|h)?$`
	Within string `json:"within,omitempty"`
}

// ReportedSeries is one curve or row of a table of the paper.
type ReportedSeries struct {
	// name of the series, unique in the experiment.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// metric that the series reports: Throughput (transactions per second); ThroughputPerCorrectClient (the same by the number of clients that no fault made
	// behave otherwise); MeanLatency; P50Latency; P99Latency (ms).
	// +kubebuilder:validation:Enum=Throughput;ThroughputPerCorrectClient;MeanLatency;P50Latency;P99Latency
	Metric string `json:"metric"`

	// unit of the values, as the paper gives them: tx/s, ms.
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit"`

	// at fixes the other axes: {variant: ideal}.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	At map[string]Value `json:"at,omitempty"`

	// axis that x runs along.
	// +kubebuilder:validation:MaxLength=40
	Axis string `json:"axis"`

	// values, in the order of the paper.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []ReportedValue `json:"values"`

	// note says what was unclear in the source and how it was read.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// ReportedValue is one point of a curve.
type ReportedValue struct {
	// x is the value of the axis.
	X Value `json:"x"`
	// value is what the paper reports there, in the series' unit. It is not called y, since YAML 1.1 reads an unquoted y as true.
	Y Value `json:"value"`
}

// Claim is a statement of the paper, as an expression over results.
//
// With reported, the expression gives a quantity that must lie within the tolerance of it. Without, it is a comparison, and
// holds or does not. Reported and within go together.
type Claim struct {
	// name of the claim.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// statement in the paper's words or in plain ones.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Statement string `json:"statement"`

	// expr is the expression; docs/reference/claims.md lists its functions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expr string `json:"expr"`

	// reported is the value that the paper gives: a number, or a duration for latencies (4.1ms).
	// +optional
	Reported *Value `json:"reported,omitempty"`

	// within is how far from it still counts as reproduced: a percentage of it (25%), or an amount in its unit (0.5ms, 100).
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(%|ns|us|ms|s|m|h)?$`
	Within string `json:"within,omitempty"`
}

// Verdict of a claim: Reproduced; NotReproduced; Inconclusive (the interval straddles the bound); NotEvaluated (no data, or skipped by the
// profile).
// +kubebuilder:validation:Enum=Reproduced;NotReproduced;Inconclusive;NotEvaluated
type Verdict string

// The verdicts.
const (
	VerdictReproduced    Verdict = "Reproduced"
	VerdictNotReproduced Verdict = "NotReproduced"
	VerdictInconclusive  Verdict = "Inconclusive"
	VerdictNotEvaluated  Verdict = "NotEvaluated"
)

// ExperimentStatus is what is known of an experiment. It holds counts and references, never lists that grow with trials.
type ExperimentStatus struct {
	// observedGeneration of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Accepted, Complete, ResultsStored.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// seed in use.
	// +optional
	Seed int64 `json:"seed,omitempty"`

	// points of the sweep.
	// +optional
	Points int32 `json:"points,omitempty"`

	// trials counts the trials by outcome.
	// +optional
	Trials TrialCounts `json:"trials,omitempty"`

	// startTime is when the first trial was created.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last trial was done.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// resultsConfigMap is where the results are; it stays when the experiment is deleted.
	// +optional
	ResultsConfigMap string `json:"resultsConfigMap,omitempty"`

	// archive is what has become of the results in the experiment's store. Absent: it has none.
	// +optional
	Archive *ResultsArchive `json:"archive,omitempty"`

	// claims and their verdicts, one for each claim of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Claims []ClaimStatus `json:"claims,omitempty"`
}

// TrialCounts counts trials by outcome.
type TrialCounts struct {
	// planned is the number of valid trials that the experiment wants; with repetitions.until, as far as the trials so far can tell.
	Planned int32 `json:"planned"`
	// active are those that are not done.
	Active int32 `json:"active"`
	// succeeded are done and valid.
	Succeeded int32 `json:"succeeded"`
	// invalid are done and cannot be trusted.
	Invalid int32 `json:"invalid"`
	// failed could not be carried out.
	Failed int32 `json:"failed"`
}

// ClaimStatus is the verdict of one claim.
type ClaimStatus struct {
	// name of the claim.
	Name string `json:"name"`
	// verdict of the claim.
	Verdict Verdict `json:"verdict"`
	// message says what was measured and what was wanted.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Experiment is one evaluation of a paper.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=assay,shortName=exp
// +kubebuilder:printcolumn:name="Trials",type=integer,JSONPath=`.status.trials.planned`
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.trials.succeeded`
// +kubebuilder:printcolumn:name="Invalid",type=integer,JSONPath=`.status.trials.invalid`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.trials.failed`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Profile",type=string,priority=1,JSONPath=`.spec.profile`
// +kubebuilder:printcolumn:name="Seed",type=integer,priority=1,JSONPath=`.status.seed`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 24",message="metadata.name: at most 24 characters, since the names of replicas contain it",messageExpression="'metadata.name: \"' + self.metadata.name + '\" is too long: at most 24 characters, since the names of replicas contain it'"
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the experiment. Only suspend and priority may change after the first trial.
	Spec ExperimentSpec `json:"spec"`

	// status of the experiment.
	// +optional
	Status ExperimentStatus `json:"status,omitempty"`
}

// ExperimentList is a list of Experiments.
// +kubebuilder:object:root=true
type ExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Experiment `json:"items"`
}
