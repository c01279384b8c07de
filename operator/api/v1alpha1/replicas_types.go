package v1alpha1

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
