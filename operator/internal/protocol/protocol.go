// Package protocol is what the agent of a pod and the coordinator in the manager say to each other.
//
// It is level-triggered, like Kubernetes itself: the agent reports all that it sees (Report) and gets all that it should do
// (Directive), again and again, so that either side may die and come back at any time and nothing is lost. The agent dials; nothing
// dials into a pod.
//
//	POST /v1/sync      Report -> Directive. The answer is held back until the directive differs from Report.DirectiveVersion, for
//	                   MaxHold at most, so that a change reaches the agent at once without polling.
//	GET  /v1/clock     -> Clock. The agent takes several and keeps the one with the shortest round trip.
//	GET  /v1/files     -> []File for this pod, whose digest is Directive.FilesDigest.
//	POST /v1/prepared  <- gzipped tar of the prepare step's output (prepare pods only), PreparedLimit bytes at most.
//	POST /v1/results   <- gzipped JSON results.Client (client pods only), ResultsLimit bytes at most.
//
// All are HTTPS with the pod's projected service-account token (audience Audience) as bearer token; the token names the pod. Errors: 401
// unknown token, 403 pod of no trial, 503 this manager does not lead (dial again), 413 too large.
package protocol

import (
	"time"

	"assay.dev/assay/operator/internal/timeline"
)

const (
	// Audience of the agents' service-account tokens.
	Audience = "assay-coordinator"
	// Port that the coordinator listens on.
	Port = 7443
	// MaxHold is how long the coordinator holds back the answer to a sync.
	MaxHold = 10 * time.Second
	// PreparedLimit is the most that a prepare step's packed output may take, so that it fits a Secret.
	PreparedLimit = 768 << 10
	// ResultsLimit is the most that a client's packed results may take, so that they fit a ConfigMap: the coordinator acknowledges them only
	// when they are stored.
	ResultsLimit = 900 << 10
)

// Paths in every pod of a trial. They are volumes of the pod, shared by the agent and the system's containers.
const (
	// BinDir holds the launcher and the load generator; the install container fills it.
	BinDir = "/assay/bin"
	// RunDir holds the launchers' sockets and the barrier's files.
	RunDir = "/assay/run"
	// OutDir holds what processes print and report.
	OutDir = "/assay/out"
	// ReadyFile is made by a client that waits at the barrier (env ASSAY_READY_FILE).
	ReadyFile = RunDir + "/ready"
	// StartFile is made by the agent when t = 0 is agreed (env ASSAY_START_FILE): JSON, see StartSignal.
	StartFile = RunDir + "/start"
	// ProgressFile is where a client that can tells how far it is: JSON, see Progress.
	ProgressFile = RunDir + "/progress.json"
	// LoadgenConfigFile is the load generator's configuration, delivered as a File.
	LoadgenConfigFile = RunDir + "/loadgen.json"
	// LoadgenResultFile is where the load generator writes its results.Client.
	LoadgenResultFile = OutDir + "/result.json"
)

// StartSignal is the content of StartFile. Instants are on the CLOCK_MONOTONIC of the node, in nanoseconds.
type StartSignal struct {
	// ZeroMonotonicNanos is t = 0.
	ZeroMonotonicNanos int64 `json:"zeroMonotonicNanos"`
	// ZeroUnixNanos is t = 0 on the pod's own wall clock.
	ZeroUnixNanos int64 `json:"zeroUnixNanos"`
	timeline.Windows
}

// Clock is the coordinator's wall clock.
type Clock struct {
	UnixNanos int64 `json:"unixNanos"`
}

// File is one file that the agent writes before processes start. Path is absolute, in one of the pod's shared volumes.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content"`
}

// Directive is all that a pod should do now. Members are only ever added while a trial goes on; the agent carries out what it has not
// carried out yet.
type Directive struct {
	// Version is a digest of all other members.
	Version string `json:"version"`
	// FilesDigest names the files to have; empty: none yet.
	FilesDigest string `json:"filesDigest,omitempty"`
	// Resolve lists the names that must resolve to an address before anything starts.
	Resolve []string `json:"resolve,omitempty"`
	// Start says that the containers' processes shall run (for a client: shall run or wait at the barrier).
	Start bool `json:"start,omitempty"`
	// Containers to run, in order.
	Containers []Container `json:"containers,omitempty"`
	// Gates that must all hold before the pod is ready.
	Gates []Gate `json:"gates,omitempty"`
	// Commands to run once each, in order, in the first container, when the pod is ready.
	Commands []Command `json:"commands,omitempty"`
	// Prepare says that the pod's only container is a prepare step whose output is to be sent.
	Prepare *Prepare `json:"prepare,omitempty"`
	// Client says how the pod's client is held, ended and read. Nil for replicas.
	Client *Client `json:"client,omitempty"`
	// Run is set once t = 0 is agreed.
	Run *Run `json:"run,omitempty"`
	// Finish says that the processes shall end, since the run is over or given up.
	Finish bool `json:"finish,omitempty"`
	// Stop says how they end.
	Stop Stop `json:"stop"`
}

// Container is one process that the launcher of that name runs.
type Container struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"` // NAME=value, added to the image's
	Dir     string   `json:"dir,omitempty"`
}

// Gate is one thing to wait for; exactly one of Log, Address, URL, Command is set.
type Gate struct {
	Log       string   `json:"log,omitempty"`    // regular expression that a line must match
	Stream    string   `json:"stream,omitempty"` // Stdout, Stderr or Any
	Container string   `json:"container,omitempty"`
	Address   string   `json:"address,omitempty"` // host:port to connect to
	URL       string   `json:"url,omitempty"`
	Command   []string `json:"command,omitempty"`
}

// Command is run in the first container by its launcher.
type Command struct {
	ID      string        `json:"id"`
	Command []string      `json:"command"`
	Until   string        `json:"until"` // ExitZero, Retry or AnyExit
	Timeout time.Duration `json:"timeout"`
}

// Prepare is a prepare step.
type Prepare struct {
	OutputPath string        `json:"outputPath"`
	Timeout    time.Duration `json:"timeout"`
}

// Client says how a client is held, ended and read.
type Client struct {
	// WaitReady: the client makes ReadyFile and waits for StartFile. Otherwise it is started at t = 0 less the warm-up.
	WaitReady bool `json:"waitReady"`
	// EndLog ends the client when it prints a matching line.
	EndLog *Gate `json:"endLog,omitempty"`
	// EndAfterDrain ends the client when the drain is over.
	EndAfterDrain bool `json:"endAfterDrain,omitempty"`
	// Format, Source and Path of the report, as in ClientResults.
	Format string `json:"format"`
	Source string `json:"source"`
	Path   string `json:"path,omitempty"`
	// Index of the client pod and the clients that it runs.
	Index       int32 `json:"index"`
	FirstClient int32 `json:"firstClient"`
	Clients     int32 `json:"clients"`
}

// Run is the agreed run of a trial.
type Run struct {
	// ZeroUnixNanos is t = 0 on the coordinator's clock.
	ZeroUnixNanos int64 `json:"zeroUnixNanos"`
	timeline.Windows
	// Actions of this pod.
	Actions []timeline.Action `json:"actions,omitempty"`
}

// Stop says how processes end.
type Stop struct {
	Signal string        `json:"signal"` // SIGTERM, ...; empty: SIGTERM
	Grace  time.Duration `json:"grace"`
}

// Report is all that an agent sees.
type Report struct {
	// Incarnation changes when the agent itself is restarted.
	Incarnation string `json:"incarnation"`
	// Sequence counts the reports of an incarnation. A report that is overtaken by a later one on its way is ignored.
	Sequence uint64 `json:"sequence"`
	// DirectiveVersion that the agent has seen last.
	DirectiveVersion string `json:"directiveVersion"`
	// ClockOffset is what must be added to the pod's wall clock to get the coordinator's; ClockError bounds its error (half the round trip).
	ClockOffset time.Duration `json:"clockOffset"`
	ClockError  time.Duration `json:"clockError"`
	// FilesDigest of the files that are written.
	FilesDigest string `json:"filesDigest,omitempty"`
	// Unresolved names; NamesResolved is true when there is none.
	Unresolved    []string `json:"unresolved,omitempty"`
	NamesResolved bool     `json:"namesResolved"`
	// Containers and their processes.
	Containers []ContainerState `json:"containers,omitempty"`
	// Ready: every process runs and every gate holds. WaitingFor says what is missing.
	Ready      bool   `json:"ready"`
	WaitingFor string `json:"waitingFor,omitempty"`
	// Commands that are over.
	Commands []CommandResult `json:"commands,omitempty"`
	// AtBarrier: the client waits for the start.
	AtBarrier bool `json:"atBarrier"`
	// Actions that were carried out.
	Actions []ActionRecord `json:"actions,omitempty"`
	// Progress of a running client, if it tells.
	Progress *Progress `json:"progress,omitempty"`
	// Over: the client or prepare step is over. Sent: its results or output have been accepted.
	Over bool `json:"over"`
	Sent bool `json:"sent"`
	// Finished: no process of the system runs any more, as Directive.Finish asks.
	Finished bool `json:"finished"`
	// TCPResets is how many connections of the pod were reset from t = 0 less the warm-up to the last request (EstabResets of /proc/net/snmp).
	TCPResets int64 `json:"tcpResets"`
	// Failure is set when the agent cannot go on; it says why.
	Failure string `json:"failure,omitempty"`
	// Host facts, for provenance.
	Host Host `json:"host"`
}

// ContainerState is what one launcher sees.
type ContainerState struct {
	Name string `json:"name"`
	// State of the process: Waiting (not started), Running, Exited, Held (killed by a fault and kept down).
	State string `json:"state"`
	// ExitCode, or 128 + the signal's number, of a process that exited.
	ExitCode int `json:"exitCode,omitempty"`
	// Expected: a fault, Finish or a client's end made it exit.
	Expected bool `json:"expected,omitempty"`
	// Starts of the process.
	Starts int `json:"starts"`
	// Tail of what it printed last, both streams, TailLimit bytes at most.
	Tail string `json:"tail,omitempty"`
}

// The states of a process.
const (
	StateWaiting = "Waiting"
	StateRunning = "Running"
	StateExited  = "Exited"
	StateHeld    = "Held"
)

// TailLimit is the most of a process's output that a report carries.
const TailLimit = 4 << 10

// CommandResult is a command that is over.
type CommandResult struct {
	ID       string `json:"id"`
	ExitCode int    `json:"exitCode"`
	// Error says why the command could not run or took too long.
	Error  string `json:"error,omitempty"`
	Output string `json:"output,omitempty"` // tail, TailLimit bytes at most
}

// ActionRecord says what an action did and when, relative to t = 0. A kill's instants are its planned one plus what the pod's monotonic clock says it was off
// by; how well that clock knows the coordinator's is Report.ClockError.
type ActionRecord struct {
	ID string `json:"id"`
	// Planned instant.
	Planned time.Duration `json:"planned"`
	// Started is when the agent began to act; for a Kill, when the first packet could have been dropped.
	Started time.Duration `json:"started"`
	// Confirmed is when the effect was seen: for a Kill, when the last process was reaped; for a Revive, when all ran again.
	Confirmed time.Duration `json:"confirmed"`
	// Error says why the action failed; it is then not confirmed.
	Error string `json:"error,omitempty"`
}

// Progress of a running client, cumulative.
type Progress struct {
	// Committed transactions so far, warm-up included.
	Committed int64 `json:"committed"`
	// PerSecond over the last second.
	PerSecond int64 `json:"perSecond"`
}

// Host facts, for provenance.
type Host struct {
	Kernel   string `json:"kernel,omitempty"`
	CPUModel string `json:"cpuModel,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
}
