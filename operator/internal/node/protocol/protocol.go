// Package protocol is what the agent of a pod and the coordinator in the manager say to each other.
//
// It is level-triggered, like Kubernetes itself. The agent reports all that it sees (Report) and
// gets all that it should do (Directive), again and again. So either side may die and come back at
// any time and nothing is lost. The agent dials; nothing dials into a pod.
//
//	POST /v1/sync      Report -> Directive. The answer is held back until the directive differs from Report.DirectiveVersion, for
//	                   MaxHold at most, so that a change reaches the agent at once without polling.
//	GET  /v1/clock     -> Clock. The agent takes several and keeps the one with the shortest round trip.
//	GET  /v1/files     -> []File for this pod, whose digest is Directive.FilesDigest.
//	POST /v1/prepared  <- gzipped tar of the prepare step's output (prepare pods only), PreparedLimit bytes at most.
//	POST /v1/results   <- gzipped JSON results.Client (client pods only), ResultsLimit bytes at most; larger ones go by /v1/keep, where there is a store.
//	POST /v1/collected <- gzipped tar of a pod's files, Directive.Collect.Limit bytes at most, where the trial has no store.
//	POST /v1/upload, /v1/keep: see handover.go.
//
// All are HTTPS with the pod's projected service-account token (audience Audience) as bearer token;
// the token names the pod. Errors: 401 unknown token, 403 pod of no trial, 503 this manager does
// not lead (dial again), 413 too large.
package protocol

import (
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

const (
	// Audience of the agents' service-account tokens.
	Audience = "assay-coordinator"
	// Port that the coordinator listens on.
	Port = 7443
	// MaxHold is how long the coordinator holds back the answer to a sync.
	MaxHold = 10 * time.Second
	// PreparedLimit is the most that a prepare step's packed output may take, so that it fits a
	// Secret.
	PreparedLimit = 768 << 10
	// ResultsLimit is the most that a client's packed results may take, so that they fit a
	// ConfigMap: the coordinator acknowledges them only when they are stored.
	ResultsLimit = 900 << 10
)

// Paths in every pod of a trial. They are volumes of the pod, shared by the agent and the system's
// containers.
const (
	// BinDir holds the launcher and the load generator; the agent's postStart hook fills it.
	BinDir = "/assay/bin"
	// RunDir holds the launchers' sockets and the barrier's files.
	RunDir = "/assay/run"
	// OutDir holds what processes print and report.
	OutDir = "/assay/out"
	// ReadyFile is made by a client that waits at the barrier (env ASSAY_READY_FILE).
	ReadyFile = RunDir + "/ready"
	// StartFile is made by the agent when t = 0 is agreed (env ASSAY_START_FILE): JSON, see
	// StartSignal.
	StartFile = RunDir + "/start"
	// ProgressFile is where a client that can tells how far it is: JSON, see Progress.
	ProgressFile = RunDir + "/progress.json"
	// LoadgenConfigFile is the load generator's configuration, delivered as a File.
	LoadgenConfigFile = RunDir + "/loadgen.json"
	// LoadgenResultFile is where the load generator writes its results.Client.
	LoadgenResultFile = OutDir + "/result.json"
)

// StartSignal is the content of StartFile. Instants are on the CLOCK_MONOTONIC of the node, in
// nanoseconds.
type StartSignal struct {
	// ZeroMonotonicNanos is t = 0.
	ZeroMonotonicNanos int64 `json:"zeroMonotonicNanos"`
	// ZeroUnixNanos is t = 0 on the pod's own wall clock.
	ZeroUnixNanos int64 `json:"zeroUnixNanos"`
	timeline.Windows
}

// ManagerHeader of every answer names the manager that gives it: a process, not a pod. Each has a
// clock of its own.
const ManagerHeader = "Assay-Manager"

// Clock is the coordinator's wall clock.
type Clock struct {
	UnixNanos int64 `json:"unixNanos"`
	// Manager whose clock it is, as in ManagerHeader.
	Manager string `json:"manager,omitempty"`
}

// File is one file that the agent writes before processes start. Path is absolute, in one of the
// pod's shared volumes.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content"`
}

// Directive is all that a pod should do now. Members are only ever added while a trial goes on; the
// agent carries out what it has not carried out yet.
type Directive struct {
	// Version is a digest of all other members.
	Version string `json:"version"`
	// FilesDigest names the files to have; empty: none yet.
	FilesDigest string `json:"filesDigest,omitempty"`
	// Resolve lists the names that must resolve to an address before anything starts.
	Resolve []string `json:"resolve,omitempty"`
	// Start says that the containers' processes must run (for a client: must run or wait at the
	// barrier).
	Start bool `json:"start,omitempty"`
	// Containers to run, in order.
	Containers []Container `json:"containers,omitempty"`
	// Gates that must all hold before the pod is ready.
	Gates []Gate `json:"gates,omitempty"`
	// Commands to run once each, in order, in the first container, when the pod is ready.
	Commands []Command `json:"commands,omitempty"`
	// Prepare says that the pod's only container is a prepare step whose output is to be sent.
	Prepare *Prepare `json:"prepare,omitempty"`
	// Network says what the pod's links must be. Nil before every pod has an address.
	Network *Network `json:"network,omitempty"`
	// Roles of the System, as far as the trial's actions need them.
	Roles []RoleProbe `json:"roles,omitempty"`
	// Volumes of the pod: what is on them is measured, and a kill may empty them.
	Volumes []Volume `json:"volumes,omitempty"`
	// Client says how the pod's client is held, ended and read. Nil for replicas.
	Client *Client `json:"client,omitempty"`
	// Marks asks for the marks that the pod's program finds in lines of output.
	Marks bool `json:"marks,omitempty"`
	// Machine says that this is no pod of a System, but the one that resets its node: Run's actions
	// are Resets, and nothing else is set.
	Machine *Machine `json:"machine,omitempty"`
	// SampleLoad asks for Report.Load, until Run is set.
	SampleLoad bool `json:"sampleLoad,omitempty"`
	// AwaitsIdle says that only idle machines are missing: each reading of the load is
	// reported at once.
	AwaitsIdle bool `json:"awaitsQuiet,omitempty"`
	// Run is set once t = 0 is agreed.
	Run *Run `json:"run,omitempty"`
	// Finish says that the processes must end, since the run is over or given up.
	Finish bool `json:"finish,omitempty"`
	// HandOver says that the pod's files, its logs above all, are wanted when Finish is done: they
	// go to a store.
	HandOver bool `json:"handOver,omitempty"`
	// Collect says which files of the pod are wanted in one pack, when Finish is done. Nil: none.
	Collect *Collect `json:"collect,omitempty"`
	// Stop says how they end.
	Stop Stop `json:"stop"`
}

// Collect is the part of its processes' files that a pod packs. With HandOver the pack goes to the
// store as CollectedFile; otherwise to the coordinator, which keeps it.
type Collect struct {
	// Patterns of paths below OutDir, as path.Match has them.
	Patterns []string `json:"patterns,omitempty"`
	// LogTail is how many bytes of the end of each stream of each container are packed, too.
	LogTail int64 `json:"logTail,omitempty"`
	// Limit of the pack in bytes.
	Limit int64 `json:"limit"`
}

// RoleProbe finds out whether the pod's replica has a role. Either Gate is set (a URL or a Command
// that holds in the replica that has it), or Gained and Lost are. Then, of all lines of Container's
// Stream that match either, the last one matches Gained in the replica that has it.
type RoleProbe struct {
	Role      string `json:"role"`
	Gate      *Gate  `json:"gate,omitempty"`
	Gained    string `json:"gained,omitempty"`
	Lost      string `json:"lost,omitempty"`
	Stream    string `json:"stream,omitempty"`
	Container string `json:"container,omitempty"`
}

// Volume is a writable directory of a replica.
type Volume struct {
	// Name in the System.
	Name string `json:"name,omitempty"`
	// Path in the first container.
	Path string `json:"path"`
	// Memory: what is on it is lost whenever the replica loses its power.
	Memory bool `json:"memory,omitempty"`
}

// Container is one process that the launcher of that name runs.
type Container struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"` // NAME=value, added to the image's
	Dir     string   `json:"dir,omitempty"`
	// Processors that the command may run on; nil: all.
	Processors *Processors `json:"processors,omitempty"`
	// Respawn starts the process again when a signal has ended it that is not of the plan.
	Respawn bool `json:"respawn,omitempty"`
}

// Processors are Count of those that a container has, in the order of their numbers, after the
// first After ones. After the last one the first comes again.
type Processors struct {
	Count int `json:"count"`
	After int `json:"after,omitempty"`
}

// Gate is one thing to wait for; exactly one of Log, Address, URL, Command is set.
type Gate struct {
	Log       string   `json:"log,omitempty"`    // regular expression that lines must match
	Lines     int32    `json:"lines,omitempty"`  // how many; 0 is 1
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
	// WaitReady: the client makes ReadyFile and waits for StartFile. Otherwise it is started at t =
	// 0 less the warm-up.
	WaitReady bool `json:"waitReady"`
	// EndLog ends the client when it has printed the matching lines.
	EndLog *Gate `json:"endLog,omitempty"`
	// EndAfterDrain ends the client when the drain is over.
	EndAfterDrain bool `json:"endAfterDrain,omitempty"`
	// Format, Source and Path of the report, as in ClientResults.
	Format string `json:"format"`
	Source string `json:"source"`
	Path   string `json:"path,omitempty"`
	// Records of the formats that have a line for each operation and say here what is in it.
	Records *results.Records `json:"records,omitempty"`
	// Histograms of the format HdrHistogram.
	Histograms *results.Histograms `json:"histograms,omitempty"`
	// Summary says where a report in the format Summary has its numbers.
	Summary []results.SummaryNumber `json:"summary,omitempty"`
	// Index of the client pod and the clients that it runs.
	Index       int32 `json:"index"`
	FirstClient int32 `json:"firstClient"`
	Clients     int32 `json:"clients"`
	// Misbehaving of them are made to misbehave by their program, and are not in its report.
	Misbehaving int32 `json:"misbehaving,omitempty"`
}

// ByArrival reports whether the lines of the client's report have no instants other than their
// arrival.
func (c *Client) ByArrival() bool {
	return c.Records != nil && c.Records.Instant.From == results.FromArrival
}

// Machine is a node that may be reset.
type Machine struct {
	// Node is its name. The agent resets nothing unless it runs there.
	Node string `json:"node"`
}

// Run is the agreed run of a trial.
type Run struct {
	// ZeroUnixNanos is t = 0 on the coordinator's clock.
	ZeroUnixNanos int64 `json:"zeroUnixNanos"`
	timeline.Windows
	// Ended is when the run was over, relative to t = 0. Agents measure until then. 0: it goes on,
	// or agents measure the window, whenever the run is over.
	Ended time.Duration `json:"ended,omitempty"`
	// Actions of this pod. Later are the actions that count from marks still to come: they need the
	// same things as the others, and have no instants.
	Actions []timeline.Action `json:"actions,omitempty"`
	Later   []timeline.Action `json:"later,omitempty"`
	// Measured are the parts, of a run that is over, for which agents report resources separately.
	// ByParts: there will be some.
	ByParts  bool            `json:"byParts,omitempty"`
	Measured []timeline.Span `json:"measured,omitempty"`
	// Whole: clients report numbers of their whole run. Agents read until its end, and what they
	// say of the window is about the one part that is Measured.
	Whole bool `json:"whole,omitempty"`
	// Restarts of the pod's containers that a fault plans, which another program carries out.
	Restarts []Restart `json:"restarts,omitempty"`
}

// Restart is a time in which the kubelet ends containers of the pod and starts them again, relative
// to t = 0. From From on a launcher may be another one than before; when Until has come, its
// process is started in it, without any step. Until is From when the containers are to come back at
// once, and 0 when they are not.
type Restart struct {
	From  time.Duration `json:"from"`
	Until time.Duration `json:"until"`
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
	// Sequence counts the reports of an incarnation. A report that is overtaken by a later one on
	// its way is ignored.
	Sequence uint64 `json:"sequence"`
	// DirectiveVersion that the agent has seen last.
	DirectiveVersion string `json:"directiveVersion"`
	// ClockOffset is what must be added to the pod's wall clock to get the coordinator's;
	// ClockError bounds its error (half the round trip).
	ClockOffset time.Duration `json:"clockOffset"`
	ClockError  time.Duration `json:"clockError"`
	// ClockManager is the manager whose clock the run goes by, once it is agreed. ClockStepped is
	// how far that clock, or the clock of a manager that took over, was seen to differ later,
	// beyond measuring errors and drift.
	ClockManager string        `json:"clockManager,omitempty"`
	ClockStepped time.Duration `json:"clockStepped,omitempty"`
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
	// Marks that the pod's program has found, in their order.
	Marks []timeline.Mark `json:"marks,omitempty"`
	// Network of the pod.
	Network *NetworkReport `json:"network,omitempty"`
	// Progress of a running client, if it tells.
	Progress *Progress `json:"progress,omitempty"`
	// Client says when and how the pod's client ran. Nil: it is no client, or has not been
	// released.
	Client *ClientRun `json:"client,omitempty"`
	// Load of the pod's machine, as Directive.SampleLoad asks. The first is reported at once,
	// others once a second, or as Directive.AwaitsIdle says.
	Load *Load `json:"load,omitempty"`
	// Over: the client or prepare step is over. Sent: its results or output have been accepted.
	Over bool `json:"over"`
	Sent bool `json:"sent"`
	// Finished: no process of the system runs any more, as Directive.Finish asks.
	Finished bool `json:"finished"`
	// HandedOver: the pod's files are in the store or kept by the manager, as far as there is room,
	// as Directive.HandOver and Directive.Collect ask.
	HandedOver bool `json:"handedOver,omitempty"`
	// TCPResets is how many connections of the pod were reset from t = 0 less the warm-up to the
	// last request (EstabResets of /proc/net/snmp). ResetsCounted: that time is over, and the
	// number is the last one.
	TCPResets     int64 `json:"tcpResets"`
	ResetsCounted bool  `json:"resetsCounted,omitempty"`
	// Resources that the pod used, once the window is over.
	Resources *results.Resources `json:"resources,omitempty"`
	// Measured is what the pod used in each of Run.Measured; an entry without seconds is not known.
	Measured []results.Resources `json:"measured,omitempty"`
	// Failure is set when the agent cannot go on; it says why. Unreadable: it is about what the
	// pod's process has left. The client's report or the prepare step's output is missing, damaged
	// or too long, or the step failed.
	Failure    string `json:"failure,omitempty"`
	Unreadable bool   `json:"unreadable,omitempty"`
	// Host facts, for provenance.
	Host Host `json:"host"`
}

// ContainerState is what one launcher sees.
type ContainerState struct {
	Name string `json:"name"`
	// State of the process: Waiting (not started), Running, Exited, Held (killed by a fault and
	// kept down), Lost (with its container, which no fault restarted).
	State string `json:"state"`
	// ExitCode, or 128 + the signal's number, of a process that exited.
	ExitCode int `json:"exitCode,omitempty"`
	// Expected: a fault, Finish or a client's end made it exit.
	Expected bool `json:"expected,omitempty"`
	// Starts of the process.
	Starts int `json:"starts"`
	// Exited is when an exited process exited, relative to t = 0; 0: that is not known, or t = 0 is
	// not agreed.
	Exited time.Duration `json:"exited,omitempty"`
	// Tail of what it printed last, both streams, TailLimit bytes at most.
	Tail string `json:"tail,omitempty"`
	// MemoryLeft is what was left of memory when it was read last, up to two seconds before the
	// process was killed or its launcher went. Nil: the process runs, or that is not known, or the
	// container has no limit.
	MemoryLeft *MemoryLeft `json:"memoryLeft,omitempty"`
}

// MemoryLeft says how far a container was from its limit of memory, and its node from having none,
// in bytes.
type MemoryLeft struct {
	// Container is the limit less the container's working set.
	Container int64 `json:"container"`
	// Node is what /proc/meminfo calls MemAvailable.
	Node int64 `json:"node"`
}

// ClientRun says when and how a client ran. Instants are relative to t = 0, as the agent knows the
// coordinator's clock.
type ClientRun struct {
	// Released is when the client could begin: its start file was there, or its process was
	// started. It is to be t = 0 less the warm-up, or before that for a client that waits at the
	// barrier.
	Released time.Duration `json:"released"`
	// Ended is when it exited or was told to end; 0: it has not.
	Ended time.Duration `json:"ended,omitempty"`
	// ExitCode, or 128 + the signal's number, of the client's process. Asked: it did not exit by
	// itself; its log or the end of the drain ended it.
	ExitCode int  `json:"exitCode,omitempty"`
	Asked    bool `json:"asked,omitempty"`
}

// The states of a process.
const (
	StateWaiting = "Waiting"
	StateRunning = "Running"
	StateExited  = "Exited"
	// StateLost: the container was restarted, and its process is gone. How it ended is not known.
	StateLost = "Lost"
	StateHeld = "Held"
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

// ActionRecord says what an action did and when, relative to t = 0. A kill's instants are its
// planned one plus what the pod's monotonic clock says it was off by; Report.ClockError says how
// well that clock knows the clock of the coordinator.
type ActionRecord struct {
	ID string `json:"id"`
	// Planned instant.
	Planned time.Duration `json:"planned"`
	// Known is when the agent heard of an action that counts from a mark.
	Known time.Duration `json:"known,omitempty"`
	// Started is when the agent began to act; for a Kill, when the first packet could have been
	// dropped. For a Reset, it is what was written down before the machine went down. That is right
	// to within a millisecond, or, when it was later than that, to within one write to its disk.
	Started time.Duration `json:"started"`
	// Confirmed is when the effect was seen. For a Kill, the pod was silent and no thread could get
	// back to its program any more. For a Revive, all ran again. For a Pause or Resume, every
	// process was stopped or ran, as /proc says. For a Cut, Heal, Degrade or Restore, the kernel
	// had taken it, as read back. For a Reset, the machine, known to be another one than before,
	// ran its pods again.
	Confirmed time.Duration `json:"confirmed"`
	// Reaped is when no process was left, for a Kill: between Confirmed and that, the kernel gives
	// back the memory of what is dead.
	Reaped time.Duration `json:"reaped,omitempty"`
	// Error says why the action failed; it is then not confirmed.
	Error string `json:"error,omitempty"`
	// Skipped: the action was for anyone who has a role, and this replica did not have it.
	Skipped bool `json:"skipped,omitempty"`
	// Unanswered says of an action that was skipped why it was not known in time whether the
	// replica had the role. Empty: it did not have it.
	Unanswered string `json:"unanswered,omitempty"`
	// Packets that a Cut had dropped by its end (in the record of the Heal).
	Packets uint64 `json:"packets,omitempty"`
	// Samples that a profiler took of the pod (Sample).
	Samples int64 `json:"samples,omitempty"`
}

// Progress of a running client, cumulative.
type Progress struct {
	// Committed transactions so far, warm-up included.
	Committed int64 `json:"committed"`
	// PerSecond over the last second.
	PerSecond int64 `json:"perSecond"`
	// LatencySumMicros is the sum of the latencies of the committed transactions. 0: the client
	// does not tell.
	LatencySumMicros int64 `json:"latencySumMicros,omitempty"`
}

// TrialProgress is what the manager writes to a running Trial's annotation assay.dev/progress: the
// sum over its clients, and what faults did.
type TrialProgress struct {
	Progress
	// AtMillis is when the manager wrote it, relative to t = 0. The clients' numbers are up to 2 s
	// older.
	AtMillis int64 `json:"atMillis"`
	// Clients that have told their progress: the sums are theirs.
	Clients int `json:"clients,omitempty"`
	// Faults that were carried out so far, each action once, at the first pod that confirmed it;
	// MostLiveFaults at most.
	Faults []LiveFault `json:"faults,omitempty"`
}

// Known says whether some client told its progress. Without one the sums are 0, and nothing is
// known. An older manager does not count clients: its sums are known unless they are 0.
func (p TrialProgress) Known() bool { return p.Clients > 0 || p.Progress != Progress{} }

// MostLiveFaults bounds TrialProgress.Faults: an annotation is written every 2 s.
const MostLiveFaults = 40

// LiveFault is an action of a fault that took effect.
type LiveFault struct {
	Fault string `json:"fault"`
	// Time of the fault, from 1.
	Time int `json:"time"`
	// Kind of the action, and whether it ends the fault.
	Kind string `json:"kind"`
	Ends bool   `json:"ends,omitempty"`
	// Object of Chaos Mesh that did it. Empty: Assay did.
	Object string `json:"object,omitempty"`
	// Millis relative to t = 0.
	Millis float64 `json:"millis"`
}

// Load is what a machine's processors did lately, and the pod's part in it. Cores are processors on
// average over Seconds.
type Load struct {
	// Machine is the boot ID of its kernel: nodes that are containers of one machine have the same.
	// Empty: not known.
	Machine string `json:"machine,omitempty"`
	// CPUs of the machine.
	CPUs int `json:"cpus"`
	// Seconds that the averages are over.
	Seconds float64 `json:"seconds"`
	// BusyCores were at work, StolenCores were wanted and the hypervisor gave them to others.
	BusyCores   float64 `json:"busyCores"`
	StolenCores float64 `json:"stolenCores"`
	// OwnCores are those of BusyCores that the pod's containers used, but for the agent.
	OwnCores float64 `json:"ownCores"`
}

// Host facts, for provenance.
type Host struct {
	Kernel   string `json:"kernel,omitempty"`
	CPUModel string `json:"cpuModel,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
	// Agent is the version of the agent that says so.
	Agent string `json:"agent,omitempty"`
}
