package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SystemSpec says how to deploy one system under test, unchanged: its image needs to know nothing
// of Assay.
//
// Strings marked "template" are Go templates over the resolved topology;
// docs/reference/templates.md lists what they see.
type SystemSpec struct {
	// description says what the system is, in a sentence. At most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// parameters are the knobs that an Experiment may turn. Setting one that is not declared here
	// is refused.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Parameters []Parameter `json:"parameters,omitempty"`

	// workloads are what the system's clients can run. An Experiment names one of them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Workloads []Workload `json:"workloads"`

	// prepare makes files once for all replicas and clients of a trial (keys, certificates) before
	// any of them starts.
	// +optional
	Prepare *PrepareStep `json:"prepare,omitempty"`

	// datasets are directories of data that are made once on each node. Pods get a fresh copy
	// before a trial starts. The owner of the cluster provides the place: see
	// docs/guide/data-sets.md. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Datasets []DatasetSource `json:"datasets,omitempty"`

	// replicas says how many replicas a shard has and how one runs.
	Replicas ReplicasSpec `json:"replicas"`

	// components are pods of the system besides replicas and clients, such as a coordinator or a
	// proxy. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Components []Component `json:"components,omitempty"`

	// steps run in order after the replicas are ready and before the clients start: create a
	// keyspace, wait for the ring, load, flush.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Steps []Step `json:"steps,omitempty"`

	// clients says how one client pod runs and where its results are.
	Clients ClientsTemplate `json:"clients"`

	// checks run when the clients of a trial are over and the replicas still run: each says whether
	// the system kept its promises. What they say is a result of the trial. It makes no trial
	// invalid and none is repeated for it. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Checks []SafetyCheck `json:"checks,omitempty"`

	// roles say how to find the replica that plays a role (leader, primary) at a given moment.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Roles []Role `json:"roles,omitempty"`
}

// ParameterType is the type of a declared parameter: String; Integer (64-bit); Decimal; Boolean
// (true or false); Duration (such as 4ms).
// +kubebuilder:validation:Enum=String;Integer;Decimal;Boolean;Duration
type ParameterType string

// The types of a parameter.
const (
	ParameterString   ParameterType = "String"
	ParameterInteger  ParameterType = "Integer"
	ParameterDecimal  ParameterType = "Decimal"
	ParameterBoolean  ParameterType = "Boolean"
	ParameterDuration ParameterType = "Duration"
)

// Parameter declares one knob: what it is called, which values it takes, what it does.
type Parameter struct {
	// name is how experiments and templates call the parameter, in lowerCamelCase.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	Name string `json:"name"`

	// type of its values.
	Type ParameterType `json:"type"`

	// default is used where an experiment sets nothing. A parameter without a default must be set
	// by the experiment.
	// +optional
	Default *Value `json:"default,omitempty"`

	// allowed lists the only values that are accepted. Empty: any value of the type.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Allowed []Value `json:"allowed,omitempty"`

	// minimum is the least value accepted. For Integer, Decimal and Duration only.
	// +optional
	Minimum *Value `json:"minimum,omitempty"`

	// maximum is the greatest value accepted. For Integer, Decimal and Duration only.
	// +optional
	Maximum *Value `json:"maximum,omitempty"`

	// doc says in a sentence what the parameter does, with its unit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Doc string `json:"doc"`
}

// Workload is one thing that the system's clients can do.
type Workload struct {
	// name of the workload, as experiments call it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// doc says what a transaction or operation of the workload is.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Doc string `json:"doc,omitempty"`

	// parameters that only this workload has. Names must differ from the system's own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Parameters []Parameter `json:"parameters,omitempty"`
}

// StartOrder says how the replicas start: Parallel (all at once); OneByOne (each after the one
// before is ready, in order of shard and index).
// +kubebuilder:validation:Enum=Parallel;OneByOne
type StartOrder string

// The orders of start.
const (
	StartParallel StartOrder = "Parallel"
	StartOneByOne StartOrder = "OneByOne"
)

// ReplicasSpec says how many replicas a shard has and how one runs. A component has the same
// fields. The word replica means a pod of the component there.
type ReplicasSpec struct {
	// count is a CEL expression over f (faults tolerated, an integer) that gives the number of
	// replicas of one shard, or of pods of the component: "5*f+1", "2*f+1", "1". It may name the
	// System's parameters of type Integer: "parameters.proxies". From 1 to 200.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Count string `json:"count"`

	// ports that every replica listens on.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Ports []Port `json:"ports,omitempty"`

	// containers of a replica's pod. The first one is the replica; a fault on the replica acts on
	// all of them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Containers []Container `json:"containers"`

	// files are rendered before the containers' commands start.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=8
	Files []FileSet `json:"files,omitempty"`

	// volumes that the replica writes to.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Volumes []Volume `json:"volumes,omitempty"`

	// collect lists the replica's own files that are kept with the trial's results: patterns of
	// paths below /assay/out, such as stats.json or traces/*.csv. They are read when the processes
	// have ended. At most 64 files of a pod, of 64 MiB each; docs/guide/debug-a-trial.md says how
	// much is kept where. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*(/[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*)*$`
	Collect []string `json:"collect,omitempty"`

	// metrics that every replica serves for Prometheus. Default: none.
	// +optional
	Metrics *MetricsEndpoint `json:"metrics,omitempty"`

	// start is the order in which replicas start. Default: Parallel.
	// +optional
	// +kubebuilder:default=Parallel
	Start StartOrder `json:"start,omitempty"`

	// ready lists what must hold before the replica counts as ready. All must hold. Empty: its
	// processes run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Ready []Gate `json:"ready,omitempty"`

	// readyTimeout is how long after its start a replica may take to be ready. Default: 60s. At
	// most 2h.
	// +optional
	// +kubebuilder:default="60s"
	ReadyTimeout Duration `json:"readyTimeout,omitempty"`

	// stop says how the replica's processes are ended after the trial. Default: SIGTERM, then
	// SIGKILL after 2s.
	// +optional
	Stop *StopSpec `json:"stop,omitempty"`
}

// Gate is one thing to wait for. Exactly one of its members is set.
// +kubebuilder:validation:XValidation:rule="[has(self.log), has(self.port), has(self.http), has(self.command)].filter(x, x).size() == 1",message="set exactly one of log, port, http, command",messageExpression=`(has(self.log) ? 'log ' : "") + (has(self.port) ? 'port ' : "") + (has(self.http) ? 'http ' : "") + (has(self.command) ? 'command ' : "") + 'is set; set exactly one of log, port, http, command'`
type Gate struct {
	// log waits for a line that the container prints.
	// +optional
	Log *LogGate `json:"log,omitempty"`

	// port waits until a TCP connection to the named port is accepted. An open port often means
	// nothing: prefer log.
	// +optional
	// +kubebuilder:validation:MaxLength=15
	Port string `json:"port,omitempty"`

	// http waits until a GET answers with a status from 200 to 399.
	// +optional
	HTTP *HTTPGate `json:"http,omitempty"`

	// command waits until the command, run in the first container, exits with 0. It is repeated
	// every second. Template.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`
}

// OutputStream is where a process prints: Stdout; Stderr; Any (either).
// +kubebuilder:validation:Enum=Stdout;Stderr;Any
type OutputStream string

// The streams of a process.
const (
	StreamStdout OutputStream = "Stdout"
	StreamStderr OutputStream = "Stderr"
	StreamAny    OutputStream = "Any"
)

// LogGate waits for lines of output.
type LogGate struct {
	// pattern is a regular expression (RE2) that lines must match.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern"`

	// stream to read. Default: Any.
	// +optional
	// +kubebuilder:default=Any
	Stream OutputStream `json:"stream,omitempty"`

	// container whose output is read. Default: the first.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Container string `json:"container,omitempty"`

	// lines that must match, 1 to 1000000: for a program of several processes or rounds, each of
	// which prints the line once. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Lines int32 `json:"lines,omitempty"`
}

// HTTPGate waits for an HTTP answer.
type HTTPGate struct {
	// port name, as declared in ports.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Port string `json:"port"`

	// path to GET. Default: /.
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`
}

// StopSpec says how a process is ended.
type StopSpec struct {
	// signal that asks the process to end. Use SIGKILL for one that destroys its results on
	// SIGTERM. Default: SIGTERM.
	// +optional
	// +kubebuilder:default=SIGTERM
	// +kubebuilder:validation:Enum=SIGTERM;SIGINT;SIGQUIT;SIGHUP;SIGKILL
	Signal string `json:"signal,omitempty"`

	// grace is how long the process has to end before SIGKILL. Default: 2s. At most 10m.
	// +optional
	// +kubebuilder:default="2s"
	Grace Duration `json:"grace,omitempty"`
}

// PrepareStep makes files once for a trial.
type PrepareStep struct {
	// container that makes the files. It must exit with 0.
	Container Container `json:"container"`

	// outputPath is the directory that the command fills, absolute. All of it, at most 768 KiB
	// packed, is put into every replica and client at the same path. Only their user can read it.
	// It is kept in a Secret that goes with the trial.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	OutputPath string `json:"outputPath"`

	// timeout of the step. Default: 60s. At most 1h.
	// +optional
	// +kubebuilder:default="60s"
	Timeout Duration `json:"timeout,omitempty"`
}

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

	// runsOn says in which pods the command runs, in the pod's first container. In several, all of
	// them must agree that the promise holds. A replica that is down has no verdict.
	RunsOn StepTarget `json:"runsOn"`

	// component whose pods run the command, instead of replicas. With runsOn: EveryReplica or
	// FirstReplica. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Component string `json:"component,omitempty"`

	// command to run, with all arguments: exit code 0 says that the promise holds, violatedExitCode
	// that it does not. Any other code, and none in time, says that it is not known. Template.
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

// ClientBarrier says how the clients of all pods are held until t = 0 is agreed. Start: the command
// itself is started at the agreed instant, which is t = 0 less the warm-up. Ready: the command
// starts early, connects, creates the file named by ASSAY_READY_FILE and waits for the file named
// by ASSAY_START_FILE. That file says when t = 0 is; see docs/reference/client-interface.md.
// +kubebuilder:validation:Enum=Start;Ready
type ClientBarrier string

// The ways to hold clients.
const (
	BarrierStart ClientBarrier = "Start"
	BarrierReady ClientBarrier = "Ready"
)

// ClientSetting is a setting of an Experiment's clients that a complete client carries out itself:
// rate, arrivals, thinkTime, timeout, retry, each as spec.clients of Experiments has it.
// +kubebuilder:validation:Enum=rate;arrivals;thinkTime;timeout;retry
type ClientSetting string

// The settings.
const (
	SettingRate      ClientSetting = "rate"
	SettingArrivals  ClientSetting = "arrivals"
	SettingThinkTime ClientSetting = "thinkTime"
	SettingTimeout   ClientSetting = "timeout"
	SettingRetry     ClientSetting = "retry"
)

// ClientsTemplate says how one client pod runs and where its results are.
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.containers.size() == 1",fieldPath=".containers",message="there is more than one; with a driver there is exactly one container"
type ClientsTemplate struct {
	// containers of a client pod. The first one is the client. With driver set, its command is the
	// driver that Assay's load generator starts and talks to (docs/reference/driver-protocol.md);
	// without, it is a complete client.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Containers []Container `json:"containers"`

	// driver makes Assay's load generator run the workload: it paces, retries and measures; the
	// container's command only carries out single transactions.
	// +optional
	Driver *DriverSpec `json:"driver,omitempty"`

	// files are rendered before the containers' commands start.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=8
	Files []FileSet `json:"files,omitempty"`

	// collect lists the client's own files that are kept with the trial's results, as
	// replicas.collect does. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*(/[A-Za-z0-9_*?][-A-Za-z0-9_.*?]*)*$`
	Collect []string `json:"collect,omitempty"`

	// metrics that every client pod serves for Prometheus. Default: none.
	// +optional
	Metrics *MetricsEndpoint `json:"metrics,omitempty"`

	// barrier says how the clients are held until all are there. Ignored with a driver. Default:
	// Start.
	// +optional
	// +kubebuilder:default=Start
	Barrier ClientBarrier `json:"barrier,omitempty"`

	// uses lists the settings of an Experiment's clients that a complete client is given, by
	// templates (.Load, docs/reference/templates.md), and carries out. An Experiment that sets
	// another one is refused, since nothing would carry it out. Ignored with a driver, whose load
	// generator carries out all. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	Uses []ClientSetting `json:"uses,omitempty"`

	// end says when a client is over. Ignored with a driver. Default: when it exits.
	// +optional
	End *ClientEnd `json:"end,omitempty"`

	// results say what the client reports and where. Ignored with a driver.
	// +optional
	Results *ClientResults `json:"results,omitempty"`
}

// DriverSpec chooses how the load generator reaches the system.
type DriverSpec struct {
	// protocol of the driver. Process: the container's command speaks the driver protocol on its
	// stdin and stdout. Echo: the load generator's own TCP echo driver; the command's only element
	// is host:port.
	// +kubebuilder:validation:Enum=Process;Echo
	// +kubebuilder:default=Process
	// +optional
	Protocol string `json:"protocol,omitempty"`
}

// Role says how to find the replica that plays a role: each replica is asked for itself, shortly
// before a fault that targets the role. Exactly one of command, http and log is set.
// +kubebuilder:validation:XValidation:rule="[has(self.log), has(self.http), has(self.command)].filter(x, x).size() == 1",message="set exactly one of log, http, command",messageExpression=`(has(self.log) ? 'log ' : "") + (has(self.http) ? 'http ' : "") + (has(self.command) ? 'command ' : "") + 'is set; set exactly one of log, http, command'`
type Role struct {
	// name of the role: leader, primary.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// command exits with 0 in the replica that has the role. Template.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command,omitempty"`

	// http answers with a status from 200 to 299 in the replica that has the role.
	// +optional
	HTTP *HTTPGate `json:"http,omitempty"`

	// log tells by what the replica prints.
	// +optional
	Log *RoleLog `json:"log,omitempty"`
}

// RoleLog finds a role in a replica's output: the replica has the role if of all lines that match
// either pattern the last one matches gained.
type RoleLog struct {
	// gained is a regular expression (RE2) of a line that a replica prints when it gets the role.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Gained string `json:"gained"`

	// lost is a regular expression (RE2) of a line that it prints when it has lost the role, or
	// sees another one that has it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Lost string `json:"lost"`

	// stream to read. Default: Any.
	// +optional
	// +kubebuilder:default=Any
	Stream OutputStream `json:"stream,omitempty"`

	// container whose output is read. Default: the first.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Container string `json:"container,omitempty"`
}

// System is one system under test: how to deploy it, how its clients run, what they report.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=assay,shortName=asys
// +kubebuilder:printcolumn:name="Replicas",type=string,JSONPath=`.spec.replicas.count`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name: at most 40 characters, since the names of other objects contain it",messageExpression="'metadata.name: \"' + self.metadata.name + '\" is too long: at most 40 characters, since the names of other objects contain it'"
type System struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the system.
	Spec SystemSpec `json:"spec"`
}

// SystemList is a list of Systems.
// +kubebuilder:object:root=true
type SystemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []System `json:"items"`
}
