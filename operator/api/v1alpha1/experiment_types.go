package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExperimentSpec is one evaluation of a paper: what to run, what to break, and the paper's own
// results.
// +kubebuilder:validation:XValidation:rule="size(self.profile) == 0 || self.profiles.exists(p, p.name == self.profile)",fieldPath=".profile",message="must be the name of one of profiles, or empty for the full evaluation",messageExpression="'\"' + self.profile + '\" must be the name of one of profiles, or empty for the full evaluation'"
// +kubebuilder:validation:XValidation:rule="self.clients.loop == 'Open' || !has(self.clients.arrivals)",fieldPath=".clients.arrivals",message="only an Open loop has arrivals; remove it or set loop: Open",messageExpression="'\"' + self.clients.arrivals + '\": only an Open loop has arrivals; remove it or set loop: Open'"
type ExperimentSpec struct {
	// source is the paper and section whose evaluation this is.
	// +optional
	Source *Source `json:"source,omitempty"`

	// systems under test. Several make a comparison: the system is then an axis of the sweep, named
	// "system".
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Systems []SystemReference `json:"systems"`

	// topology says how many replicas run where. Default: that of f = 1 in one region.
	// +optional
	// +kubebuilder:default={}
	Topology Topology `json:"topology,omitempty"`

	// network between the pods of a trial. Default: lan.
	// +optional
	// +kubebuilder:default={profile: "lan", backend: "Auto", shaping: "Auto"}
	Network Network `json:"network,omitempty"`

	// placement says which nodes trials run on, and who else may use them meanwhile. Default: any
	// node, which the trial has to itself.
	// +optional
	// +kubebuilder:default={exclusive: true}
	Placement Placement `json:"placement,omitempty"`

	// priority of the experiment's trials in the queue: trials of a higher priority start first,
	// then trials of the experiment that was created first. It may be changed at any time. From
	// -1000 to 1000. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// prePull has all nodes that a trial's pods may run on pull the images before the trial is
	// made. A trial whose pods pull images themselves holds its pools meanwhile. Default: pods pull
	// their images.
	// +optional
	PrePull *PrePull `json:"prePull,omitempty"`

	// workload that the clients run. Default: the only one that the systems have.
	// +optional
	// +kubebuilder:default={}
	Workload WorkloadReference `json:"workload,omitempty"`

	// parameters of the systems, for all points. Those of a sweep's point come on top.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]Value `json:"parameters,omitempty"`

	// clients say how the load is offered. Systems with a script have clients of their own and need
	// nothing here.
	// +optional
	// +kubebuilder:default={}
	Clients Clients `json:"clients,omitempty"`

	// sweep lists the axes; their cross product is the points. No axis: one point. At most 8 axes
	// and 1024 points.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:default={}
	Sweep []Axis `json:"sweep,omitempty"`

	// schedule of every trial.
	// +optional
	// +kubebuilder:default={}
	Schedule Schedule `json:"schedule,omitempty"`

	// repetitions of each point. Default: 3.
	// +optional
	// +kubebuilder:default={min: 3}
	Repetitions Repetitions `json:"repetitions,omitempty"`

	// order of the trials. Default: RandomizedInterleaved.
	// +optional
	// +kubebuilder:default=RandomizedInterleaved
	Order TrialOrder `json:"order,omitempty"`

	// seed of everything random: the order of trials, keys, arrivals. Default: chosen at the start
	// and recorded in status.seed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Seed *int64 `json:"seed,omitempty"`

	// retries is how many more trials a repetition may take when the system under test made one of
	// its trials invalid or fail. Trials that the environment disturbed count against
	// disturbances.retryFor instead. From 0 to 10. Default: 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Retries *int32 `json:"retries,omitempty"`

	// disturbances says how long trials that the environment disturbed are repeated, and how long a
	// trial waits for idle machines.
	// +optional
	// +kubebuilder:default={}
	Disturbances Disturbances `json:"disturbances,omitempty"`

	// budget bounds what the experiment may take: a trial that would exceed it does not start.
	// Verdicts then rest on the trials so far. It may be changed at any time, and a greater budget
	// lets the experiment go on. Default: none.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// faults that points may name, and what they do. A fault acts only in the points that name it,
	// or in all when everyPoint is set.
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

	// results says where results are kept besides the cluster. Default: in the installation's
	// default store, if it has one.
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

	// measurements are further numbers of each trial, from the installation's Prometheus, the
	// clients or the pods. Each is a column of the results, and claims and figures may use it.
	// Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Measurements []Measurement `json:"measurements,omitempty"`

	// figures of the report, beside those that every experiment has. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Figures []Figure `json:"figures,omitempty"`

	// additionalRepetitions is how many more valid trials each point gets than repetitions asks
	// for. It may rise at any time: an experiment that is complete then goes on, and its verdicts
	// rest on the old and the new trials. It may never fall. From 0 to 99. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	AdditionalRepetitions int32 `json:"additionalRepetitions,omitempty"`

	// recurrence has the experiment run again and again, at the due times of a cron expression.
	// Default: it runs once.
	// +optional
	Recurrence *Recurrence `json:"recurrence,omitempty"`

	// suspend stops new trials from being started; the running one ends normally. Where the
	// experiment recurs, it stops new runs instead. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// debug is what helps to find out why trials fail. It may be changed at any time. Default:
	// nothing.
	// +optional
	Debug *Debug `json:"debug,omitempty"`
}

// PrePull says how nodes pull images before a trial.
type PrePull struct {
	// timeout of a node: how long it may take for all images of a trial that it lacks. From 10s to
	// 24h. Default: 1h.
	// +optional
	// +kubebuilder:default="1h"
	Timeout Duration `json:"timeout,omitempty"`
}

// TimeoutOrDefault returns timeout, or its default. A spec that did not come from an API server
// lacks the default.
func (p *PrePull) TimeoutOrDefault() Duration { return cmp.Or(p.Timeout, "1h") }

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

	// systems are the programs that the source measured in this section, as it names them. A System
	// is an Original if its program has one of these names. It is a Reimplementation if the program
	// re-implements one of them, and a StandIn otherwise. Default: not known; then no System counts
	// as an Original.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Systems []SourceSystem `json:"systems,omitempty"`
}

// SourceSystem is a program that the source of an evaluation measured.
type SourceSystem struct {
	// name of the program, as its authors call it: Basil.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// version that the source measured. Another version of the same program is named beside each
	// verdict. Default: not known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
}

// SystemReference names a System in the experiment's namespace.
type SystemReference struct {
	// name of the System.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// parameters for this system only. They override the experiment's parameters. Those of the
	// workload and of the point override them.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]Value `json:"parameters,omitempty"`

	// regions that this system's replicas are in, instead of topology.regions: systems that are
	// compared may have different numbers of replicas for the same f. The counts must add up to the
	// System's number of replicas for f. Default: topology.regions.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Regions []Region `json:"regions,omitempty"`
}

// WorkloadReference names a workload of the System.
type WorkloadReference struct {
	// name of the workload, as the System declares it. Default: the only workload of the systems,
	// if each has exactly one, and all have the same name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// parameters of the workload, for all points.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Parameters map[string]Value `json:"parameters,omitempty"`
}

// ExperimentStatus is the state of an experiment. It holds counts and references, never lists that
// grow with trials.
type ExperimentStatus struct {
	// observedGeneration of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Accepted, Complete, ResultsStored, Supported, and with a budget WithinBudget.
	// Ready, Reconciling and Stalled are for tools that read kstatus.
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

	// seal of the claims, written before the first trial is created. Absent: an older version of
	// Assay accepted the experiment.
	// +optional
	Seal *Seal `json:"seal,omitempty"`

	// progress in words and numbers, for people, dashboards and scripts.
	// +optional
	Progress Progress `json:"progress,omitempty"`

	// disturbedSeconds is the time that disturbed trials took. spec.disturbances.retryFor bounds
	// it.
	// +optional
	DisturbedSeconds int64 `json:"disturbedSeconds,omitempty"`

	// nodeSeconds is the time for which trials that are done held nodes, each node counted by
	// itself. spec.budget.nodeHours bounds it.
	// +optional
	NodeSeconds int64 `json:"nodeSeconds,omitempty"`

	// startTime is when the first trial was created.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last trial was done.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// resultsConfigMap is where the results are; it stays when the experiment is deleted.
	// +optional
	ResultsConfigMap string `json:"resultsConfigMap,omitempty"`

	// resultsDigest is the SHA-256, in hexadecimal, of the results in that ConfigMap. Assay accepts
	// no others as the results. Empty: there are no results, or an earlier manager wrote them.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ResultsDigest string `json:"resultsDigest,omitempty"`

	// recurrence counts the runs of an experiment that recurs. Absent: the experiment does not
	// recur.
	// +optional
	Recurrence *RecurrenceStatus `json:"recurrence,omitempty"`

	// archive says how the results stand in the experiment's store. Absent: the experiment has no
	// store.
	// +optional
	Archive *ResultsArchive `json:"archive,omitempty"`

	// capacities are the states of the searches for a capacity, one for each combination of the
	// other axes, in the order of the points. Absent: no axis has a search.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Capacities []CapacityStatus `json:"capacities,omitempty"`

	// claims and their verdicts, one for each claim of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Claims []ClaimStatus `json:"claims,omitempty"`
}

// Progress of an experiment.
type Progress struct {
	// percent of the planned trials that are done and valid, from 0 to 100, rounded down.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`

	// trials that are done and valid, of the planned ones, as "12/72".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Trials string `json:"trials,omitempty"`

	// claims that the trials support, of all that the profile judges, as "4/6", or "4/6 so far"
	// while trials are to run. Empty: the profile judges no claim.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Claims string `json:"claims,omitempty"`

	// estimatedCompletion is when the experiment may be complete, if each remaining trial takes the
	// average time of the finished ones. It is estimated again with each trial that ends. Absent:
	// no trial is done yet, or nothing runs.
	// +optional
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
}

// TrialCounts counts trials by outcome.
type TrialCounts struct {
	// planned is the number of valid trials that the experiment wants; with repetitions.until, an
	// estimate from the trials so far.
	Planned int32 `json:"planned"`
	// active trials are not done.
	Active int32 `json:"active"`
	// succeeded trials are done and valid.
	Succeeded int32 `json:"succeeded"`
	// invalid trials are done, and their results cannot be trusted.
	Invalid int32 `json:"invalid"`
	// failed trials could not be carried out.
	Failed int32 `json:"failed"`
	// disturbed trials are invalid or failed because of the environment. They count against
	// spec.disturbances.retryFor and not against spec.retries.
	// +optional
	Disturbed int32 `json:"disturbed,omitempty"`
}

// Experiment is one evaluation of a paper.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=assay,shortName=aexp
// +kubebuilder:printcolumn:name="Trials",type=string,JSONPath=`.status.progress.trials`
// +kubebuilder:printcolumn:name="Supported",type=string,JSONPath=`.status.progress.claims`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`
// +kubebuilder:printcolumn:name="Invalid",type=integer,JSONPath=`.status.trials.invalid`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.trials.failed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Profile",type=string,priority=1,JSONPath=`.spec.profile`
// +kubebuilder:printcolumn:name="Ends about",type=string,priority=1,JSONPath=`.status.progress.estimatedCompletion`
// +kubebuilder:printcolumn:name="Seed",type=integer,priority=1,JSONPath=`.status.seed`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.recurrence) || self.metadata.name.size() <= 13",message="metadata.name: at most 13 characters where spec.recurrence is set, since its runs append their due times",messageExpression="'metadata.name: \"' + self.metadata.name + '\" is too long: at most 13 characters where spec.recurrence is set, since its runs append their due times'"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 24",message="metadata.name: at most 24 characters, since the names of replicas contain it",messageExpression="'metadata.name: \"' + self.metadata.name + '\" is too long: at most 24 characters, since the names of replicas contain it'"
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the experiment. Only suspend, priority, budget, debug and faults with a flameGraph
	// may change after the first trial, and additionalRepetitions may rise. The spec of an
	// experiment that recurs may change at any time; later runs use the new spec.
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
