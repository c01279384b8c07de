package v1alpha1

// PrepareStep makes files once for a trial.
type PrepareStep struct {
	// container that makes the files. It must exit with 0.
	Container Container `json:"container"`

	// outputPath is the directory that the command fills, absolute. All of it, at most 768 KiB
	// packed, is put into every replica and client at the same path. The pod's group has the same
	// rights on each file as its owner. ssh therefore rejects a private key there: copy the key and
	// give the copy mode 600. The files are kept in a Secret until the trial is over; with reuse,
	// until the last trial of the experiment is over.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	OutputPath string `json:"outputPath"`

	// timeout of the step. Default: 60s. At most 1h.
	// +optional
	// +kubebuilder:default="60s"
	Timeout Duration `json:"timeout,omitempty"`

	// reuse of what the step has made. Never: the step runs in every trial. WithinExperiment: a
	// trial gets the files that the experiment's first trial of this System has made, and the step
	// does not run. A trial in which the image, command or environment of the step differs runs the
	// step itself. WithinExperiment is for files such as keys. Use Never where the files decide
	// what is measured, since repetitions must differ there. Default: Never.
	// +optional
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;WithinExperiment
	Reuse PrepareReuse `json:"reuse,omitempty"`
}

// PrepareReuse says which trials get what a prepare step has made.
type PrepareReuse string

// Which trials get what a prepare step has made.
const (
	PrepareReuseNever            PrepareReuse = "Never"
	PrepareReuseWithinExperiment PrepareReuse = "WithinExperiment"
)

// StepTarget says where a step runs: EveryReplica (at the same time); FirstReplica (shard 0, index
// 0); FirstReplicaOfEachShard; EveryClient; FirstClient. With a component, EveryReplica and
// FirstReplica mean its pods.
// +kubebuilder:validation:Enum=EveryReplica;FirstReplica;FirstReplicaOfEachShard;EveryClient;FirstClient
type StepTarget string

// The targets of a step.
const (
	StepEveryReplica            StepTarget = "EveryReplica"
	StepFirstReplica            StepTarget = "FirstReplica"
	StepFirstReplicaOfEachShard StepTarget = "FirstReplicaOfEachShard"
	StepEveryClient             StepTarget = "EveryClient"
	StepFirstClient             StepTarget = "FirstClient"
)

// Step is a command between the replicas' readiness and the clients' start.
// +kubebuilder:validation:XValidation:rule="!has(self.component) || self.runsOn in ['EveryReplica', 'FirstReplica']",message="with component, runsOn is EveryReplica (every pod of it) or FirstReplica (its pod 0)"
type Step struct {
	// name of the step.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// runsOn says in which pods the command runs, in the pod's first container.
	RunsOn StepTarget `json:"runsOn"`

	// component whose pods run the command, instead of replicas. With runsOn: EveryReplica or
	// FirstReplica. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Component string `json:"component,omitempty"`

	// command to run, with all arguments. Template.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command"`

	// until says when the step is done: ExitZero (a failure ends the trial); Retry (repeat every
	// second until it exits with 0); AnyExit (the exit code means nothing). Default: ExitZero.
	// +optional
	// +kubebuilder:default=ExitZero
	// +kubebuilder:validation:Enum=ExitZero;Retry;AnyExit
	Until string `json:"until,omitempty"`

	// timeout of the step. Default: 60s. At most 24h.
	// +optional
	// +kubebuilder:default="60s"
	Timeout Duration `json:"timeout,omitempty"`
}

// SafetyCheck is a command that looks at what a run has left behind: a checker of histories that
// clients wrote, or a comparison of replicas.
// +kubebuilder:validation:XValidation:rule="!has(self.component) || self.runsOn in ['EveryReplica', 'FirstReplica']",message="with component, runsOn is EveryReplica (every pod of it) or FirstReplica (its pod 0)"
type SafetyCheck struct {
	// name of the check.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// doc says in a sentence what the system promises.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Doc string `json:"doc,omitempty"`

	// runsOn says in which pods the command runs, in the pod's first container. If there are
	// several pods, the promise holds only if all of them agree. A replica that is down has no
	// verdict.
	RunsOn StepTarget `json:"runsOn"`

	// component whose pods run the command, instead of replicas. With runsOn: EveryReplica or
	// FirstReplica. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Component string `json:"component,omitempty"`

	// command to run, with all arguments: exit code 0 says that the promise holds, violatedExitCode
	// that it does not. Any other code, or no exit in time, means Unknown. Template.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command"`

	// violatedExitCode is the exit code that says Violated. From 1 to 125. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=125
	ViolatedExitCode int32 `json:"violatedExitCode,omitempty"`

	// timeout of the command. Default: 60s. At most 1h.
	// +optional
	// +kubebuilder:default="60s"
	Timeout Duration `json:"timeout,omitempty"`
}
