// Package protocol is the protocol between the agent of a pod and the coordinator in the manager.
//
// It is level-triggered, like Kubernetes itself. The agent reports its whole state (Report) and
// gets its whole task (Directive), again and again. So either side may die and come back at any
// time and nothing is lost. The agent dials; no program dials into a pod.
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
// All requests are HTTPS with the pod's projected service-account token (audience Audience) as
// bearer token; the token names the pod. Errors: 401 unknown token, 403 pod of no trial, 503 this
// manager does not lead (dial again), 413 too large.
package protocol

import (
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

const (
	// Audience of the agents' service-account tokens.
	Audience = "assay-coordinator"
	// Port of the coordinator.
	Port = 7443
	// MaxHold is how long the coordinator delays the answer to a sync.
	MaxHold = 10 * time.Second
	// PreparedLimit bounds a prepare step's packed output, so that it fits a Secret.
	PreparedLimit = 768 << 10
	// ResultsLimit bounds a client's packed results, so that they fit a ConfigMap: the coordinator
	// acknowledges results only when they are stored.
	ResultsLimit = 900 << 10
)

// Paths in every pod of a trial. They are volumes of the pod, shared by the agent and the system's
// containers.
const (
	// BinDir holds the launcher and the load generator; the agent's postStart hook fills it.
	BinDir = "/assay/bin"
	// RunDir holds the launchers' sockets and the barrier's files.
	RunDir = "/assay/run"
	// OutDir holds the output and the reports of processes.
	OutDir = "/assay/out"
	// ReadyFile is the file that a client makes when it waits at the barrier (env
	// ASSAY_READY_FILE).
	ReadyFile = RunDir + "/ready"
	// StartFile is the file that the agent makes when t = 0 is agreed (env ASSAY_START_FILE): JSON,
	// see StartSignal.
	StartFile = RunDir + "/start"
	// ProgressFile is where a client may write its progress: JSON, see Progress.
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

// ManagerHeader of every answer names the manager that answers: a process, not a pod. Each manager
// has a clock of its own.
const ManagerHeader = "Assay-Manager"

// Clock is the coordinator's wall clock.
type Clock struct {
	UnixNanos int64 `json:"unixNanos"`
	// Manager whose clock was read, as in ManagerHeader.
	Manager string `json:"manager,omitempty"`
}

// File is one file that the agent writes before processes start. Path is absolute, in one of the
// pod's shared volumes.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content"`
}

// Directive is the whole task of a pod at this time. While a trial goes on, members are only added.
// The agent carries out the parts that it has not carried out yet.
type Directive struct {
	// Version is a digest of all other members.
	Version string `json:"version"`
	// FilesDigest names the wanted files; empty: they are not known yet.
	FilesDigest string `json:"filesDigest,omitempty"`
	// Resolve lists the names that must resolve to an address before any process starts.
	Resolve []string `json:"resolve,omitempty"`
	// Start says that the containers' processes must run. A client must run or wait at the barrier.
	Start bool `json:"start,omitempty"`
	// Containers to run, in order.
	Containers []Container `json:"containers,omitempty"`
	// Gates that must all have held before the pod is ready.
	Gates []Gate `json:"gates,omitempty"`
	// Commands to run once each, in order, in the first container, when the pod is ready.
	Commands []Command `json:"commands,omitempty"`
	// Prepare says that the pod's only container is a prepare step, whose output the agent must
	// send.
	Prepare *Prepare `json:"prepare,omitempty"`
	// Network says how the pod's links must be. Nil before every pod has an address.
	Network *Network `json:"network,omitempty"`
	// Roles of the System, if the trial's actions need them.
	Roles []RoleProbe `json:"roles,omitempty"`
	// Volumes of the pod: the agent measures their use, and a kill may empty them.
	Volumes []Volume `json:"volumes,omitempty"`
	// Client says how the agent holds and ends the pod's client, and reads its report. Nil for
	// replicas.
	Client *Client `json:"client,omitempty"`
	// Marks asks for the marks that the pod's program finds in lines of output.
	Marks bool `json:"marks,omitempty"`
	// Machine says that this pod resets its node, and is no pod of a System. Run's actions are then
	// Resets, and no other member is set.
	Machine *Machine `json:"machine,omitempty"`
	// SampleLoad asks for Report.Load, until Run is set.
	SampleLoad bool `json:"sampleLoad,omitempty"`
	// AwaitsIdle says that the trial only waits for idle machines: the agent reports each reading
	// of the load at once.
	AwaitsIdle bool `json:"awaitsQuiet,omitempty"`
	// Run is set once t = 0 is agreed.
	Run *Run `json:"run,omitempty"`
	// Finish says that the processes must end, since the run is over or given up.
	Finish bool `json:"finish,omitempty"`
	// HandOver asks for the pod's files, above all its logs, when Finish is done: they go to a
	// store.
	HandOver bool `json:"handOver,omitempty"`
	// Collect names the files of the pod to pack when Finish is done. Nil: none.
	Collect *Collect `json:"collect,omitempty"`
	// Stop says how the processes end.
	Stop Stop `json:"stop"`
}

// Collect says which files of its processes a pod packs. With HandOver the pack goes to the store
// as CollectedFile. Otherwise it goes to the coordinator, which keeps it.
type Collect struct {
	// Patterns of paths below OutDir, in the syntax of path.Match.
	Patterns []string `json:"patterns,omitempty"`
	// LogTail is how many bytes of the end of each container's streams are also packed.
	LogTail int64 `json:"logTail,omitempty"`
	// Limit of the pack in bytes.
	Limit int64 `json:"limit"`
}

// RoleProbe finds out whether the pod's replica has a role. Either Gate is set: a URL or a Command
// that holds in the replica with the role. Or Gained and Lost are set: patterns for lines of
// Container's Stream. Then the replica has the role if the last line that matches one of them
// matches Gained.
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
	// Memory: its content is lost whenever the replica loses its power.
	Memory bool `json:"memory,omitempty"`
}

// Container is one process, which the launcher of the same name runs.
type Container struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"` // NAME=value, added to the image's environment
	Dir     string   `json:"dir,omitempty"`
	// Processors that the command may run on; nil: all.
	Processors *Processors `json:"processors,omitempty"`
	// Respawn restarts the process when an unplanned signal has ended it.
	Respawn bool `json:"respawn,omitempty"`
}

// Processors are some of a container's processors, in the order of their numbers. They are Count
// processors after the first After ones. After the last processor the count goes on with the first.
type Processors struct {
	Count int `json:"count"`
	After int `json:"after,omitempty"`
}

// Gate is one condition to wait for; exactly one of Log, Address, URL, Command is set.
type Gate struct {
	Log       string   `json:"log,omitempty"`    // regular expression that lines must match
	Lines     int32    `json:"lines,omitempty"`  // how many lines; 0 means 1
	Stream    string   `json:"stream,omitempty"` // Stdout, Stderr or Any
	Container string   `json:"container,omitempty"`
	Address   string   `json:"address,omitempty"` // host:port to connect to
	URL       string   `json:"url,omitempty"`
	Command   []string `json:"command,omitempty"`
}

// Command is a command that the launcher runs in the first container.
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

// Client says how the agent holds and ends a client, and reads its report.
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
	// Records describes the lines of reports in formats that have a line for each operation.
	Records *results.Records `json:"records,omitempty"`
	// Histograms describes reports in the format HdrHistogram.
	Histograms *results.Histograms `json:"histograms,omitempty"`
	// Summary says where a report in the format Summary has its numbers.
	Summary []results.SummaryNumber `json:"summary,omitempty"`
	// Index of the client pod, and the number of its clients.
	Index       int32 `json:"index"`
	FirstClient int32 `json:"firstClient"`
	Clients     int32 `json:"clients"`
	// Misbehaving is how many of them their program makes misbehave. Its report leaves them out.
	Misbehaving int32 `json:"misbehaving,omitempty"`
}

// ByArrival reports whether the lines of the client's report have no time stamps, so that only
// their arrival dates them.
func (c *Client) ByArrival() bool {
	return c.Records != nil && c.Records.Instant.From == results.FromArrival
}

// Machine is a node that may be reset.
type Machine struct {
	// Node is its name. The agent resets no other node.
	Node string `json:"node"`
}

// Run is the agreed run of a trial.
type Run struct {
	// ZeroUnixNanos is t = 0 on the coordinator's clock.
	ZeroUnixNanos int64 `json:"zeroUnixNanos"`
	timeline.Windows
	// Ended is when the run was over, relative to t = 0. Agents measure until then. 0: the run goes
	// on, or agents measure the window, whenever the run ends.
	Ended time.Duration `json:"ended,omitempty"`
	// Actions of this pod. Later are the actions that count from marks still to come. They need the
	// same preparations as the others, and have no instants.
	Actions []timeline.Action `json:"actions,omitempty"`
	Later   []timeline.Action `json:"later,omitempty"`
	// Measured are the parts of a finished run for which agents report resources separately.
	// ByParts: there will be some.
	ByParts  bool            `json:"byParts,omitempty"`
	Measured []timeline.Span `json:"measured,omitempty"`
	// Whole: clients report numbers of their whole run. Agents read until its end. Their report on
	// the window is then about the one part in Measured.
	Whole bool `json:"whole,omitempty"`
	// Restarts of the pod's containers that a fault plans and another program carries out.
	Restarts []Restart `json:"restarts,omitempty"`
}

// Restart is a time in which the kubelet ends containers of the pod and starts them again, relative
// to t = 0. From From on, a container may have a new launcher. At Until, the agent starts the
// process in that launcher, without any step. Until equals From if the containers must come back at
// once. It is 0 if they do not come back.
type Restart struct {
	From  time.Duration `json:"from"`
	Until time.Duration `json:"until"`
}

// Stop says how processes end.
type Stop struct {
	Signal string        `json:"signal"` // such as SIGTERM; empty: SIGTERM
	Grace  time.Duration `json:"grace"`
}

// Report is the whole state that an agent knows.
type Report struct {
	// Incarnation changes when the agent itself is restarted.
	Incarnation string `json:"incarnation"`
	// Sequence counts the reports of an incarnation. The coordinator ignores a report that arrives
	// after a later one.
	Sequence uint64 `json:"sequence"`
	// DirectiveVersion that the agent got last.
	DirectiveVersion string `json:"directiveVersion"`
	// ClockOffset is what must be added to the pod's wall clock to get the coordinator's clock.
	// ClockError bounds its error (half the round trip).
	ClockOffset time.Duration `json:"clockOffset"`
	ClockError  time.Duration `json:"clockError"`
	// ClockManager is the manager whose clock the run uses, once it is agreed. ClockStepped is how
	// far a later sample of that clock, or of the clock of a new manager, differed from it, beyond
	// measuring errors and drift.
	ClockManager string        `json:"clockManager,omitempty"`
	ClockStepped time.Duration `json:"clockStepped,omitempty"`
	// FilesDigest of the files that are written.
	FilesDigest string `json:"filesDigest,omitempty"`
	// Unresolved names; NamesResolved is true when there are none.
	Unresolved    []string `json:"unresolved,omitempty"`
	NamesResolved bool     `json:"namesResolved"`
	// Containers and their processes.
	Containers []ContainerState `json:"containers,omitempty"`
	// Ready: every process runs and every gate has held. WaitingFor names the missing condition.
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
	// Progress of a running client, if the client reports it.
	Progress *Progress `json:"progress,omitempty"`
	// Client says when and how the pod's client ran. Nil: the pod has no client, or has not
	// released it.
	Client *ClientRun `json:"client,omitempty"`
	// Load of the pod's machine, for Directive.SampleLoad. The agent reports the first reading at
	// once. It reports others once a second, or at once if Directive.AwaitsIdle is set.
	Load *Load `json:"load,omitempty"`
	// Over: the client or prepare step is over. Sent: the coordinator has accepted its results or
	// output.
	Over bool `json:"over"`
	Sent bool `json:"sent"`
	// Finished: no process of the system runs any more, as Directive.Finish demands.
	Finished bool `json:"finished"`
	// HandedOver: the pod's files are in the store, or the manager keeps them, as far as there is
	// room. Directive.HandOver and Directive.Collect ask for it.
	HandedOver bool `json:"handedOver,omitempty"`
	// TCPResets is how many connections of the pod were reset from t = 0 less the warm-up to the
	// last request (EstabResets of /proc/net/snmp). ResetsCounted: that time is over, and the
	// number is final.
	TCPResets     int64 `json:"tcpResets"`
	ResetsCounted bool  `json:"resetsCounted,omitempty"`
	// Resources that the pod used, once the window is over.
	Resources *results.Resources `json:"resources,omitempty"`
	// Measured is the pod's use in each part of Run.Measured. The use in an entry without seconds
	// is unknown.
	Measured []results.Resources `json:"measured,omitempty"`
	// Failure is set when the agent cannot go on; it gives the reason. Unreadable: the reason is
	// the output of the pod's process. The client's report or the prepare step's output is missing,
	// damaged or too long, or the step failed.
	Failure    string `json:"failure,omitempty"`
	Unreadable bool   `json:"unreadable,omitempty"`
	// Host facts, for provenance.
	Host Host `json:"host"`
}

// ContainerState is the state of one container as its launcher reports it.
type ContainerState struct {
	Name string `json:"name"`
	// State of the process: Waiting (not started), Running, Exited, Held (killed by a fault and
	// kept down), Lost (with its container, and no fault has restarted that).
	State string `json:"state"`
	// ExitCode, or 128 + the signal's number, of a process that exited.
	ExitCode int `json:"exitCode,omitempty"`
	// Expected: a fault, Finish or a client's end made it exit.
	Expected bool `json:"expected,omitempty"`
	// Starts of the process.
	Starts int `json:"starts"`
	// Exited is when an exited process exited, relative to t = 0; 0: that is unknown, or t = 0 is
	// not agreed.
	Exited time.Duration `json:"exited,omitempty"`
	// Tail of the process's output, of both streams, at most TailLimit bytes.
	Tail string `json:"tail,omitempty"`
	// MemoryLeft is the last reading of the memory that was left, up to two seconds before the
	// process was killed or its launcher disappeared. Nil: the process runs, or there is no
	// reading, or the container has no limit.
	MemoryLeft *MemoryLeft `json:"memoryLeft,omitempty"`
}

// MemoryLeft is how many bytes a container had left to its limit of memory, and how many its node
// had left.
type MemoryLeft struct {
	// Container is the limit less the container's working set.
	Container int64 `json:"container"`
	// Node is MemAvailable in /proc/meminfo.
	Node int64 `json:"node"`
}

// ClientRun says when and how a client ran. Instants are relative to t = 0, by the agent's estimate
// of the coordinator's clock.
type ClientRun struct {
	// Released is when the client could begin: its start file existed, or its process was started.
	// It should be t = 0 less the warm-up, or earlier for a client that waits at the barrier.
	Released time.Duration `json:"released"`
	// Ended is when it exited or the agent ended it; 0: it runs.
	Ended time.Duration `json:"ended,omitempty"`
	// ExitCode, or 128 + the signal's number, of the client's process. Asked: it did not exit by
	// itself. Its log or the end of the drain ended it.
	ExitCode int  `json:"exitCode,omitempty"`
	Asked    bool `json:"asked,omitempty"`
}

// The states of a process.
const (
	StateWaiting = "Waiting"
	StateRunning = "Running"
	StateExited  = "Exited"
	// StateLost: the container was restarted, and its process is gone. It is unknown how the
	// process ended.
	StateLost = "Lost"
	StateHeld = "Held"
)

// TailLimit is how many bytes of a process's output a report carries at most.
const TailLimit = 4 << 10

// CheckID is the ID of the command of a System's check.
func CheckID(check string) string { return "check/" + check }

// CommandResult is a command that is over.
type CommandResult struct {
	ID       string `json:"id"`
	ExitCode int    `json:"exitCode"`
	// Error says why the command could not run or took too long.
	Error  string `json:"error,omitempty"`
	Output string `json:"output,omitempty"` // tail, at most TailLimit bytes
}

// ActionRecord says what an action did and when, relative to t = 0. The instants of a kill are the
// planned one plus the deviation on the pod's monotonic clock. Report.ClockError bounds the error
// of the agent's estimate of the coordinator's clock.
type ActionRecord struct {
	ID string `json:"id"`
	// Planned instant.
	Planned time.Duration `json:"planned"`
	// Known is when the agent got an action that counts from a mark.
	Known time.Duration `json:"known,omitempty"`
	// Started is when the agent began to act. For a Kill it is when the first packet could have
	// been dropped. For a Reset, it is the instant that was written down before the machine went
	// down. It is right to within a millisecond. After a later start, it is right to within one
	// write to the disk.
	Started time.Duration `json:"started"`
	// Confirmed is when the agent observed the effect. For a Kill, the pod was silent and no thread
	// could return to its program any more. For a Revive, all processes ran again. For a Pause or
	// Resume, every process was stopped or ran, as /proc says. For a Cut, Heal, Degrade or Restore,
	// the kernel had applied it, as read back. For a Reset, the machine had another identity than
	// before, and ran its pods again.
	Confirmed time.Duration `json:"confirmed"`
	// Reaped is when no process was left after a Kill. Between Confirmed and Reaped, the kernel
	// frees the memory of the dead processes.
	Reaped time.Duration `json:"reaped,omitempty"`
	// Error says why the action failed; the action is then not confirmed.
	Error string `json:"error,omitempty"`
	// Skipped: the action was for replicas with a role, and this replica did not have the role.
	Skipped bool `json:"skipped,omitempty"`
	// Unanswered says, of a skipped action, why it was not known in time whether the replica had
	// the role. Empty: it did not have it.
	Unanswered string `json:"unanswered,omitempty"`
	// Packets that a Cut had dropped by its end (in the record of the Heal).
	Packets uint64 `json:"packets,omitempty"`
	// Samples that a profiler took of the pod (for the action Sample).
	Samples int64 `json:"samples,omitempty"`
}

// Progress of a running client, cumulative.
type Progress struct {
	// Committed transactions so far, warm-up included.
	Committed int64 `json:"committed"`
	// PerSecond over the last second.
	PerSecond int64 `json:"perSecond"`
	// LatencySumMicros is the sum of the latencies of the committed transactions. 0: the client
	// does not report it.
	LatencySumMicros int64 `json:"latencySumMicros,omitempty"`
}

// TrialProgress is the content of a running Trial's annotation assay.dev/progress, which the
// manager writes: the sum over the trial's clients, and the effects of faults.
type TrialProgress struct {
	Progress
	// AtMillis is when the manager wrote it, relative to t = 0. The clients' numbers are up to 2 s
	// older.
	AtMillis int64 `json:"atMillis"`
	// Clients is how many clients have reported their progress: the sums are theirs.
	Clients int `json:"clients,omitempty"`
	// Faults that were carried out so far, at most MostLiveFaults. Each action is listed once, for
	// the first pod that confirmed it.
	Faults []LiveFault `json:"faults,omitempty"`
}

// Known reports whether some client has reported its progress. Without one the sums are 0 and
// unknown. An older manager does not count clients: its sums are known unless they are 0.
func (p TrialProgress) Known() bool { return p.Clients > 0 || p.Progress != Progress{} }

// MostLiveFaults bounds TrialProgress.Faults, since the annotation is written every 2 s.
const MostLiveFaults = 40

// LiveFault is an action of a fault that has taken effect.
type LiveFault struct {
	Fault string `json:"fault"`
	// Time is which time of the fault it is, from 1.
	Time int `json:"time"`
	// Kind of the action, and whether it ends the fault.
	Kind string `json:"kind"`
	Ends bool   `json:"ends,omitempty"`
	// Object of Chaos Mesh that carried it out. Empty: Assay did.
	Object string `json:"object,omitempty"`
	// Millis relative to t = 0.
	Millis float64 `json:"millis"`
}

// Load is the recent load of a machine's processors, and the pod's part of it. Cores are numbers of
// processors, averaged over Seconds.
type Load struct {
	// Machine is the boot ID of its kernel: nodes that are containers of one machine have the same
	// ID. Empty: it is unknown.
	Machine string `json:"machine,omitempty"`
	// CPUs of the machine.
	CPUs int `json:"cpus"`
	// Seconds of the averages.
	Seconds float64 `json:"seconds"`
	// BusyCores were at work. StolenCores were wanted, but the hypervisor gave them to others.
	BusyCores   float64 `json:"busyCores"`
	StolenCores float64 `json:"stolenCores"`
	// OwnCores is the part of BusyCores that the pod's containers used, without the agent.
	OwnCores float64 `json:"ownCores"`
}

// Host facts, for provenance.
type Host struct {
	Kernel   string `json:"kernel,omitempty"`
	CPUModel string `json:"cpuModel,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
	// Agent is the version of the agent.
	Agent string `json:"agent,omitempty"`
}
