package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrialSpec is one run of one point, with everything resolved. It is made by the experiment
// controller and never changes.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: a changed trial is a new Trial"
type TrialSpec struct {
	// experiment that the trial belongs to, in the same namespace.
	// +kubebuilder:validation:MaxLength=24
	Experiment string `json:"experiment"`

	// point that is run.
	Point Point `json:"point"`

	// number of the trial in its experiment, from 0, in order of creation.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Number int32 `json:"number"`

	// repetition of the point, from 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Repetition int32 `json:"repetition"`

	// attempt at the repetition, from 0; more than 0 after an invalid or failed trial.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Attempt int32 `json:"attempt"`

	// seed of everything random in the trial.
	Seed int64 `json:"seed"`

	// seal is the hash in the seal of the experiment. Empty: the experiment has none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{64})?$`
	Seal string `json:"seal,omitempty"`

	// system as it was when the experiment was accepted.
	System SystemSnapshot `json:"system"`

	// datasets that the pods begin with.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Datasets []TrialDataset `json:"datasets,omitempty"`

	// workload that the clients run.
	// +kubebuilder:validation:MaxLength=63
	Workload string `json:"workload"`

	// parameters of system and workload, defaults included.
	// +optional
	// +kubebuilder:validation:MaxProperties=288
	Parameters map[string]Value `json:"parameters,omitempty"`

	// topology with its regions filled in.
	Topology Topology `json:"topology"`

	// network between the pods.
	Network Network `json:"network"`

	// placement of the pods. Default: any node, which the trial has to itself.
	// +optional
	Placement Placement `json:"placement,omitempty"`

	// nodeSet is the name of the experiment's set of nodes that the trial runs on. Empty: the
	// experiment has no sets.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	NodeSet string `json:"nodeSet,omitempty"`

	// clients with every default filled in.
	Clients Clients `json:"clients"`

	// misbehavingClients is how many clients of each client pod the client program itself makes
	// misbehave, in the order of the pods (clients.misbehaving of the System). Empty: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	MisbehavingClients []int32 `json:"misbehavingClients,omitempty"`

	// schedule of the trial.
	Schedule Schedule `json:"schedule"`

	// script lists the points that the rows of the System's script are results of. Absent: the
	// System has no script.
	// +optional
	Script *TrialScript `json:"script,omitempty"`

	// faults that act in the trial.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Faults []Fault `json:"faults,omitempty"`

	// measurements that Prometheus is asked for after the window.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Measurements []Measurement `json:"measurements,omitempty"`

	// tolerances beyond which the trial is invalid.
	// +optional
	Tolerances Tolerances `json:"tolerances,omitempty"`

	// idleWait is how long the trial may wait for idle machines before its clients start, as in the
	// experiment's disturbances. Default: 0s, no wait.
	// +optional
	IdleWait Duration `json:"idleWait,omitempty"`

	// idleThreshold is the share of processor time that others may take on an idle machine, as in
	// the experiment's disturbances. Default: 0%.
	// +optional
	IdleThreshold Percentage `json:"idleThreshold,omitempty"`

	// keepLogs is how much of the end of each container's output is kept, as in the experiment's
	// debug. Default: 64Ki if the trial does not count, else nothing.
	// +optional
	KeepLogs *resource.Quantity `json:"keepLogs,omitempty"`

	// purpose of the trial. Measurement; FlameGraphs: profilers sample its pods, and it never
	// counts. Default: Measurement.
	// +optional
	Purpose TrialPurpose `json:"purpose,omitempty"`

	// resultsStore is the store that the trial's files are put in; empty: the results are in the
	// cluster only.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	ResultsStore string `json:"resultsStore,omitempty"`
}

// TrialPurpose is what a trial is for.
// +kubebuilder:validation:Enum=Measurement;FlameGraphs
type TrialPurpose string

// The purposes of trials.
const (
	PurposeMeasurement TrialPurpose = "Measurement"
	PurposeFlameGraphs TrialPurpose = "FlameGraphs"
)

// Measures reports whether the trial may count.
func (s *TrialSpec) Measures() bool { return s.Purpose != PurposeFlameGraphs }

// Point is one combination of the sweep's axes.
type Point struct {
	// index of the point in the cross product, from 0; the last axis moves fastest.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Index int32 `json:"index"`

	// coordinates: the value of each axis.
	// +optional
	// +kubebuilder:validation:MaxProperties=9
	Coordinates map[string]string `json:"coordinates,omitempty"`
}

// SystemSnapshot refers to the System as it was when the experiment was accepted.
type SystemSnapshot struct {
	// name of the System.
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// revision is the ControllerRevision that holds its spec.
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`
}

// TrialStatus is the state of a trial. It is small: nothing in it grows with replicas, clients or
// time.
type TrialStatus struct {
	// conditions: Admitted, Deployed, NetworkVerified, Started, Loaded, Running, Collected, Valid,
	// CleanedUp, Complete, and with a store ResultsStored.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// times of the trial's life.
	// +optional
	Times TrialTimes `json:"times,omitempty"`

	// zeroUnixNanos is t = 0 in nanoseconds of Unix time on the manager's clock. It is written
	// before the run is released and never changed.
	// +optional
	ZeroUnixNanos int64 `json:"zeroUnixNanos,omitempty"`

	// gapMilliseconds is the time in which the machines measured nothing before this trial's
	// warm-up. It begins at the end of the drain of the last trial of any experiment. 0 for the
	// first trial of an experiment.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GapMilliseconds int64 `json:"gapMilliseconds,omitempty"`

	// idleGate says how long the trial waited for idle machines, and what ended the wait. Absent:
	// the trial has not been released, or its spec asks for no wait.
	// +optional
	IdleGate *IdleGate `json:"idleGate,omitempty"`

	// network that the pods are given. It is written before the first link is shaped and never
	// changed, so that the next manager uses the same network.
	// +optional
	Network *TrialNetwork `json:"network,omitempty"`

	// podsDigest names the pods that were deployed. If Kubernetes makes a pod again later, the
	// digest differs, and the trial is lost.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodsDigest string `json:"podsDigest,omitempty"`

	// nodes is how many nodes the pods of the trial were on when it was deployed. 0: the trial was
	// not deployed, or an older version of Assay ran it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes,omitempty"`

	// datasets that the pods got copies of. Absent: the System has none, or the trial was given up
	// before all were made.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Datasets []DatasetCopies `json:"datasets,omitempty"`

	// checks of the System and their verdicts. Absent: the System has no checks, or the trial was
	// given up before they ran.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Checks []CheckStatus `json:"checks,omitempty"`

	// headline numbers of the measurement window.
	// +optional
	Headline *Headline `json:"headline,omitempty"`

	// rows of the trial's script. Absent: the trial has no script, or no row was read.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Rows []RowStatus `json:"rows,omitempty"`

	// resultsConfigMap is where the results are; it stays when the trial is deleted.
	// +optional
	ResultsConfigMap string `json:"resultsConfigMap,omitempty"`

	// resultsDigest is the SHA-256, in hexadecimal, of the trial's results as JSON. It is of the
	// results in the ConfigMap. If the ConfigMap lacks room and the trial has a store, it is of all
	// results. The manager writes the digest before the results, and stores no others as the
	// trial's results. Empty: the trial has no results, or an earlier manager wrote them.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ResultsDigest string `json:"resultsDigest,omitempty"`
}

// SafetyVerdict is what a check says of a run. Holds: the system kept its promise. Violated: it did
// not. Unknown: the check gave no answer.
// +kubebuilder:validation:Enum=Holds;Violated;Unknown
type SafetyVerdict string

// The verdicts of a check.
const (
	SafetyHolds    SafetyVerdict = "Holds"
	SafetyViolated SafetyVerdict = "Violated"
	SafetyUnknown  SafetyVerdict = "Unknown"
)

// CheckStatus is the verdict of one of the System's checks.
type CheckStatus struct {
	// name of the check.
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// verdict of the check.
	Verdict SafetyVerdict `json:"verdict"`
	// message names the pod in which the check found a violation or gave no answer, and has its
	// last output. Empty: the promise holds.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// TrialNetwork is Assay's choice for a trial's network.
type TrialNetwork struct {
	// backend that shapes in every pod: the one that the spec asks for, or the one that was chosen
	// because it works in every pod. Empty when the trial asks for nothing that must be shaped.
	// +optional
	Backend ShapingBackend `json:"backend,omitempty"`
}

// IdleGate is how a trial's wait for idle machines ended.
type IdleGate struct {
	// idle is true when the machines were idle, and false when idleWait was over first.
	Idle bool `json:"idle"`
	// waitedMilliseconds is how long the trial waited after every client stood at the start
	// barrier.
	// +kubebuilder:validation:Minimum=0
	WaitedMilliseconds int64 `json:"waitedMilliseconds"`
	// message says what disturbed the machines last. Empty: nothing did.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// TrialTimes are instants of a trial's life, on the manager's clock. Each is written once.
type TrialTimes struct {
	// admitted is when the trial was allowed to start.
	// +optional
	Admitted *metav1.MicroTime `json:"admitted,omitempty"`
	// deployed is when every pod ran and its agent had reported.
	// +optional
	Deployed *metav1.MicroTime `json:"deployed,omitempty"`
	// networkVerified is when every link had been measured and was as asked.
	// +optional
	NetworkVerified *metav1.MicroTime `json:"networkVerified,omitempty"`
	// started is when every replica was ready.
	// +optional
	Started *metav1.MicroTime `json:"started,omitempty"`
	// loaded is when the system's steps were done.
	// +optional
	Loaded *metav1.MicroTime `json:"loaded,omitempty"`
	// barrier is when every client stood at the start barrier and nothing was missing but idle
	// machines.
	// +optional
	Barrier *metav1.MicroTime `json:"barrier,omitempty"`
	// released is when the clients were told to start.
	// +optional
	Released *metav1.MicroTime `json:"released,omitempty"`
	// drained is when the last client was over.
	// +optional
	Drained *metav1.MicroTime `json:"drained,omitempty"`
	// collected is when every result was stored.
	// +optional
	Collected *metav1.MicroTime `json:"collected,omitempty"`
	// kept is when the pods' time for inspection was over. Absent: the pods did not stay
	// (spec.debug.keepFailed of the experiment).
	// +optional
	Kept *metav1.MicroTime `json:"kept,omitempty"`
	// done is when everything of the trial was confirmed gone.
	// +optional
	Done *metav1.MicroTime `json:"done,omitempty"`
}

// PercentilesOfAll are percentiles of latency, of committed and failed requests together. A failed
// request counts as slower than any committed one, so a percentile of 0 lies among the failed ones.
type PercentilesOfAll struct {
	// p10Microseconds is the 10th percentile.
	// +optional
	P10Microseconds int64 `json:"p10Microseconds,omitempty"`
	// p50Microseconds is the median.
	// +optional
	P50Microseconds int64 `json:"p50Microseconds,omitempty"`
	// p90Microseconds is the 90th percentile.
	// +optional
	P90Microseconds int64 `json:"p90Microseconds,omitempty"`
	// p99Microseconds is the 99th percentile.
	// +optional
	P99Microseconds int64 `json:"p99Microseconds,omitempty"`
	// p999Microseconds is the 99.9th percentile.
	// +optional
	P999Microseconds int64 `json:"p999Microseconds,omitempty"`
	// p75Microseconds is the 75th percentile. This field and the next three are 0 in older trials.
	// +optional
	P75Microseconds int64 `json:"p75Microseconds,omitempty"`
	// p95Microseconds is the 95th percentile.
	// +optional
	P95Microseconds int64 `json:"p95Microseconds,omitempty"`
	// p9999Microseconds is the 99.99th percentile.
	// +optional
	P9999Microseconds int64 `json:"p9999Microseconds,omitempty"`
	// p99999Microseconds is the 99.999th percentile.
	// +optional
	P99999Microseconds int64 `json:"p99999Microseconds,omitempty"`
}

// WindowCause says why a measurement window is not steady. Start: its start is unlike the rest.
// Drift: the level rises or falls from its start to its end. Change: the level changes within it.
// End: clients ended before the window did.
// +kubebuilder:validation:Enum=Start;Drift;Change;End
type WindowCause string

// UnsteadyWindow says how something was not steady in a trial's measurement window.
type UnsteadyWindow struct {
	// of is what was not steady: Throughput, or Latency, which is mean latency.
	// +kubebuilder:validation:Enum=Throughput;Latency
	Of string `json:"of"`
	// cause says why it was not steady.
	Cause WindowCause `json:"cause"`
	// movesPerMillion is by how much the cause moves the mean of the window, as a share of that
	// mean.
	MovesPerMillion int64 `json:"movesPerMillion"`
}

// Headline numbers of a trial's measurement window. The full results are in its ConfigMap.
type Headline struct {
	// committed transactions.
	Committed int64 `json:"committed"`
	// aborted attempts.
	Aborted int64 `json:"aborted"`
	// errors are requests that failed otherwise.
	Errors int64 `json:"errors"`
	// timeouts are requests without an answer in time.
	Timeouts int64 `json:"timeouts"`
	// offered is the number of requests that were to be sent in the window. 0 in older trials.
	// +optional
	Offered int64 `json:"offered,omitempty"`
	// givenUp is the number of transactions that aborted in their last permitted attempt. 0 in
	// older trials.
	// +optional
	GivenUp int64 `json:"givenUp,omitempty"`
	// unsent is the number of requests of an open loop that found no free client. 0 in older
	// trials.
	// +optional
	Unsent int64 `json:"unsent,omitempty"`
	// unreported are the counters that some client does not report, by name, such as aborted. Their
	// values are unknown, and 0 here.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Unreported []string `json:"unreported,omitempty"`
	// runSummary is true when the numbers are those that clients print of their whole run: they are
	// not cut to the window, and a latency of 0 is not known.
	// +optional
	RunSummary bool `json:"runSummary,omitempty"`
	// throughputMilli is committed transactions per 1000 seconds.
	ThroughputMilli int64 `json:"throughputMilli"`
	// meanLatencyMicroseconds of committed transactions.
	MeanLatencyMicroseconds int64 `json:"meanLatencyMicroseconds"`
	// p10LatencyMicroseconds is their 10th percentile. 0 in older trials.
	// +optional
	P10LatencyMicroseconds int64 `json:"p10LatencyMicroseconds,omitempty"`
	// p50LatencyMicroseconds is their median.
	P50LatencyMicroseconds int64 `json:"p50LatencyMicroseconds"`
	// p99LatencyMicroseconds is their 99th percentile.
	P99LatencyMicroseconds int64 `json:"p99LatencyMicroseconds"`
	// p90LatencyMicroseconds is their 90th percentile. 0 in older trials.
	// +optional
	P90LatencyMicroseconds int64 `json:"p90LatencyMicroseconds,omitempty"`
	// p999LatencyMicroseconds is their 99.9th percentile. 0 in older trials.
	// +optional
	P999LatencyMicroseconds int64 `json:"p999LatencyMicroseconds,omitempty"`
	// percentiles of the latency of committed transactions, besides those above.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Percentiles []HeadlinePercentile `json:"percentiles,omitempty"`
	// ofAll are percentiles of committed and failed requests together. Absent: no request failed,
	// or the trial is older than this field.
	// +optional
	OfAll *PercentilesOfAll `json:"ofAll,omitempty"`
	// unsteady says how throughput and latency were not steady in the window. Empty: both were
	// steady, or Assay could not tell, as in windows with a fault.
	// +optional
	// +listType=map
	// +listMapKey=of
	// +kubebuilder:validation:MaxItems=2
	Unsteady []UnsteadyWindow `json:"unsteady,omitempty"`
	// correctClients is the number of clients without those that a fault makes misbehave. 0 in
	// older trials.
	// +optional
	CorrectClients int32 `json:"correctClients,omitempty"`
	// throttledPerMillion is the share of the window in which a CPU limit held a container back,
	// for the container with the greatest share. Absent: not measured.
	// +optional
	ThrottledPerMillion *int32 `json:"throttledPerMillion,omitempty"`
	// stealPerMillion is the share of the wanted processor time that a hypervisor gave to others,
	// for the node with the greatest share. Absent: not measured.
	// +optional
	StealPerMillion *int32 `json:"stealPerMillion,omitempty"`
	// contendedPerMillion is the share of moments at which other programs had a processor that the
	// trial wanted, for the machine with the greatest share. Absent: not measured.
	// +optional
	ContendedPerMillion *int32 `json:"contendedPerMillion,omitempty"`
	// clientTimePerMillion is the share of the clients' time in the window that their transactions
	// and think time fill: 1,000,000 by Little's law. Absent: the loop is not closed, or the share
	// is unknown.
	// +optional
	ClientTimePerMillion *int32 `json:"clientTimePerMillion,omitempty"`
	// clientBusyPerMillion is how busy the client pods were: the greatest used share of a
	// container's CPU limit or of a node's processors. Absent: not measured.
	// +optional
	ClientBusyPerMillion *int32 `json:"clientBusyPerMillion,omitempty"`
	// recoveries from faults in the window, the first 16 at most. The full results have all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Recoveries []FaultRecovery `json:"recoveries,omitempty"`
	// measurements that Prometheus was asked for.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Measurements []MeasuredValue `json:"measurements,omitempty"`
}

// RecoveryOutcome says what throughput did after a fault. NoDip: it did not fall, or not by more
// than its noise. Recovered: it fell and came back. NotRecovered: it was not back at the end of the
// window. Unknown: there is nothing to measure. The fault lies at the edge of the window, or
// nothing was committed before it.
// +kubebuilder:validation:Enum=NoDip;Recovered;NotRecovered;Unknown
type RecoveryOutcome string

// The outcomes of a fault.
const (
	RecoveryNoDip        RecoveryOutcome = "NoDip"
	RecoveryRecovered    RecoveryOutcome = "Recovered"
	RecoveryNotRecovered RecoveryOutcome = "NotRecovered"
	RecoveryUnknown      RecoveryOutcome = "Unknown"
)

// FaultRecovery is the effect of one occurrence of a fault on throughput;
// docs/reference/statistics.md says how it is measured.
type FaultRecovery struct {
	// fault is its name.
	// +kubebuilder:validation:MaxLength=63
	Fault string `json:"fault"`
	// time is the number of the occurrence, from 1: faults may repeat.
	Time int32 `json:"time"`
	// outcome says what throughput did.
	Outcome RecoveryOutcome `json:"outcome"`
	// detectMicroseconds from the confirmed fault to the start of the dip.
	// +optional
	DetectMicroseconds int64 `json:"detectMicroseconds,omitempty"`
	// depthPerMillion of the dip: 1000000 is a throughput of nothing.
	// +optional
	DepthPerMillion int64 `json:"depthPerMillion,omitempty"`
	// recoverMicroseconds from the confirmed fault until throughput was back at 90%; NotRecovered:
	// until the end of the window.
	// +optional
	RecoverMicroseconds int64 `json:"recoverMicroseconds,omitempty"`
	// lostMilli are thousandths of transactions that were not committed from the dip to the
	// recovery or the end of the window. Below 0: the system made up for more than it lost.
	// +optional
	LostMilli int64 `json:"lostMilli,omitempty"`
	// leastDipPerMillion is the depth of the shallowest dip that 97.7% of trials tell from noise. A
	// shallower dip, or no dip, says only that the dip was at most this deep. 0 in older trials: it
	// is not known.
	// +optional
	LeastDipPerMillion int64 `json:"leastDipPerMillion,omitempty"`
	// resolvedMicroseconds is how long throughput must be below 90% to be noticed. 0: noise may
	// hide a dip of any length, or the trial is older than this field.
	// +optional
	ResolvedMicroseconds int64 `json:"resolvedMicroseconds,omitempty"`
}

// Trial is one run of one point of an experiment. It is created by the experiment controller only.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=assay,shortName=atr
// +kubebuilder:printcolumn:name="Experiment",type=string,JSONPath=`.spec.experiment`
// +kubebuilder:printcolumn:name="Point",type=integer,JSONPath=`.spec.point.index`
// +kubebuilder:printcolumn:name="Rep",type=integer,JSONPath=`.spec.repetition`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`
// +kubebuilder:printcolumn:name="Committed",type=integer,JSONPath=`.status.headline.committed`
// +kubebuilder:printcolumn:name="Mean us",type=integer,JSONPath=`.status.headline.meanLatencyMicroseconds`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Safety",type=string,priority=1,JSONPath=`.status.checks[*].verdict`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
type Trial struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the trial.
	Spec TrialSpec `json:"spec"`

	// status of the trial.
	// +optional
	Status TrialStatus `json:"status,omitempty"`
}

// TrialList is a list of Trials.
// +kubebuilder:object:root=true
type TrialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Trial `json:"items"`
}

// HeadlinePercentile is a percentile of the latency of a trial's committed transactions.
type HeadlinePercentile struct {
	// name of the percentile: P95 is the 95th, P9999 the 99.99th.
	// +kubebuilder:validation:MaxLength=8
	Name string `json:"name"`

	// microseconds is the value of the percentile.
	Microseconds int64 `json:"microseconds"`
}
