// Package results is Assay's result format: the report of one client (Client), the results of a
// trial (Trial), the results of an experiment (Experiment). All are JSON with a format name; a
// reader refuses a format that it does not know.
//
// Latencies are in HdrHistograms of microseconds (1 us to 1 h, 3 significant digits) and are
// merged, never averaged. Times are relative to t = 0, the start of the measurement window.
package results

import (
	"cmp"
	"encoding/json"
	"time"
)

// The formats.
const (
	ClientFormat     = "assay.dev/client-result/v1"
	TrialFormat      = "assay.dev/trial-result/v1"
	ExperimentFormat = "assay.dev/experiment-result/v1"
)

// The range of every latency histogram.
const (
	HistogramLowestMicros  = 1
	HistogramHighestMicros = int64(time.Hour / time.Microsecond)
	HistogramDigits        = 3
)

// TimelineInterval is the width of a timeline's bins.
const TimelineInterval = 100 * time.Millisecond

// Counters count what happened to requests in the measurement window. A transaction belongs to the
// window when it ends there.
type Counters struct {
	// Offered requests: intended sends that lie in the window (open loop), first attempts sent in
	// it (closed loop).
	Offered int64 `json:"offered"`
	// Committed transactions.
	Committed int64 `json:"committed"`
	// Aborted attempts; each is tried again unless the attempts are used up.
	Aborted int64 `json:"aborted"`
	// GivenUp transactions: aborted in their last permitted attempt.
	GivenUp int64 `json:"givenUp"`
	// Errors are requests that failed otherwise.
	Errors int64 `json:"errors"`
	// Timeouts are requests without an answer in time.
	Timeouts int64 `json:"timeouts"`
	// Retries are attempts after the first.
	Retries int64 `json:"retries"`
	// LateSends are requests sent more than 1 ms after their intended instant (open loop).
	LateSends int64 `json:"lateSends"`
	// Unsent are intended requests never sent since all clients were busy (open loop).
	Unsent int64 `json:"unsent"`
	// OutOfRange latencies, which the histogram could not hold.
	OutOfRange int64 `json:"outOfRange"`
}

// Timeline is what happened over time, in bins of IntervalMillis, the first of which starts at
// FirstMillis. It covers warm-up, window and cool-down. All slices have the same length.
type Timeline struct {
	IntervalMillis int64   `json:"intervalMillis"`
	FirstMillis    int64   `json:"firstMillis"`
	Committed      []int64 `json:"committed"`
	Aborted        []int64 `json:"aborted"`
	Failed         []int64 `json:"failed"` // errors and timeouts
	// LatencySumMicros of the transactions committed in the bin.
	LatencySumMicros []int64 `json:"latencySumMicros"`
	// Offered requests of the bin: the planned requests of an open loop, or the first attempts that
	// a closed loop with phases has sent. Nil: the client does not say.
	Offered []int64 `json:"offered,omitempty"`
}

// Client is what one client pod reports.
type Client struct {
	Format string `json:"format"`
	// Pod index, the first of its clients and how many there are.
	Index       int32 `json:"index"`
	FirstClient int32 `json:"firstClient"`
	Clients     int32 `json:"clients"`
	// StartedNanos is when the first request was sent, relative to t = 0 less the warm-up.
	StartedNanos int64 `json:"startedNanos"`
	// NothingSent: nothing tells that a request was sent, let alone when. StartedNanos means
	// nothing then, and the start spread is that of the other pods.
	NothingSent bool `json:"nothingSent,omitempty"`
	// MeasureNanos is the length of the window.
	MeasureNanos int64 `json:"measureNanos"`
	// Counters of the window.
	Counters Counters `json:"counters"`
	// Unreported are the counters that this client does not know, by their names in JSON: they are
	// 0 in Counters, and mean nothing. A reader adds those whose members are not there.
	Unreported []string `json:"unreported,omitempty"`
	// Latency histogram of the window's committed transactions: HdrHistogram V2, compressed,
	// base64.
	Latency string `json:"latency"`
	// SendLag histogram: actual less intended send (open loop). Empty for a closed loop.
	SendLag string `json:"sendLag,omitempty"`
	// GeneratorLag histogram: of the requests for which a client was free at the intended instant.
	// So only the generator made them late (open loop).
	GeneratorLag string `json:"generatorLag,omitempty"`
	// Timeline of the whole run.
	Timeline Timeline `json:"timeline"`
	// Operations are the kinds of operations that the client tells apart, as far as they committed
	// in the window.
	Operations []Operation `json:"operations,omitempty"`
	// Nodes that answered the client, as it calls them, and the operations that they answered, as
	// far as they committed in the window.
	Nodes []Operation `json:"nodes,omitempty"`
	// RunSummary is what the client says of its whole run, where it says no more. Counters are of
	// the whole run then, too, and there are no histograms and no timeline. Agents send it as
	// "whole", which is the name in the format of clients' reports.
	RunSummary *RunSummary `json:"whole,omitempty"`
	// Driver counters, as the driver reports them.
	Driver map[string]int64 `json:"driver,omitempty"`
	// MisbehavingClients of the Clients misbehaved on purpose: nothing that they did is in the
	// counters, histograms and timeline. MisbehavingDriver are the counters of their own driver.
	// MisbehavingCounters count what became of their requests in the window, as that driver said.
	// Nil: there are no such clients, or the client does not say.
	MisbehavingClients  int32            `json:"misbehavingClients,omitempty"`
	MisbehavingDriver   map[string]int64 `json:"misbehavingDriver,omitempty"`
	MisbehavingCounters *Counters        `json:"misbehavingCounters,omitempty"`
	// Table is what a script left. Nil: the client is no script.
	Table *ScriptTable `json:"table,omitempty"`
	// Failure says why the client's results cannot be trusted, though it reported: its driver died.
	// Empty: nothing failed.
	Failure string `json:"failure,omitempty"`
}

// Summary is the outcome of a measurement window in numbers.
type Summary struct {
	Counters
	// Unreported are the counters that some client does not know, by their names in JSON.
	Unreported []string `json:"unreported,omitempty"`
	// RunSummary: the clients say of their whole run what is here. Nothing is cut to the window,
	// and a latency that is 0 is not known.
	RunSummary bool `json:"runSummary,omitempty"`
	// Throughput is committed transactions per second of the window.
	Throughput float64 `json:"throughput"`
	// Latencies of committed transactions, in milliseconds.
	MeanMillis float64 `json:"meanMillis"`
	// P10Millis is 0 in older results.
	P10Millis  float64 `json:"p10Millis,omitempty"`
	P50Millis  float64 `json:"p50Millis"`
	P90Millis  float64 `json:"p90Millis"`
	P99Millis  float64 `json:"p99Millis"`
	P999Millis float64 `json:"p999Millis"`
	MaxMillis  float64 `json:"maxMillis"`
	// Percentiles are those that have no member of their own, in milliseconds, by their names (P75,
	// P95, P9999). Absent in older results, and not known of several clients' summaries.
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
	// Numbers are a client's own, by the names that its System gives them, of its whole run.
	Numbers map[string]float64 `json:"numbers,omitempty"`
	// Remarks say what a reader must know of these numbers: which were computed, and from which
	// others.
	Remarks []string `json:"remarks,omitempty"`
	// Operations are the kinds that the clients tell apart, in the order of their names.
	Operations []OperationSummary `json:"operations,omitempty"`
	// Nodes that answered, where clients say it, and Regions of the clients, where there are
	// several. Each has the operations of the window, in the order of the names.
	Nodes   []OperationSummary `json:"nodes,omitempty"`
	Regions []OperationSummary `json:"regions,omitempty"`
	// OfAll are percentiles of committed and failed requests. Nil: none failed, or these are older
	// results, or the clients say of their whole run what is here.
	OfAll *Percentiles `json:"ofAll,omitempty"`
	// SendLagP99Millis is how late requests were sent (open loop).
	SendLagP99Millis float64 `json:"sendLagP99Millis,omitempty"`
	// GeneratorLagP99Millis is how late those were sent for which a client was free in time (open
	// loop).
	GeneratorLagP99Millis float64 `json:"generatorLagP99Millis,omitempty"`
}

// Percentiles of latency, of committed and failed requests together, in milliseconds. A request
// that failed counts as slower than any that committed. A percentile of 0 lies among those that
// failed.
type Percentiles struct {
	P10Millis  float64 `json:"p10Millis,omitempty"`
	P50Millis  float64 `json:"p50Millis,omitempty"`
	P90Millis  float64 `json:"p90Millis,omitempty"`
	P99Millis  float64 `json:"p99Millis,omitempty"`
	P999Millis float64 `json:"p999Millis,omitempty"`
	// These are 0 in older results, too.
	P75Millis    float64 `json:"p75Millis,omitempty"`
	P95Millis    float64 `json:"p95Millis,omitempty"`
	P9999Millis  float64 `json:"p9999Millis,omitempty"`
	P99999Millis float64 `json:"p99999Millis,omitempty"`
}

// ClosedLoop is how the clients of a closed loop wait.
type ClosedLoop struct {
	// ThinkMillis is the time that a client waits after each of its transactions.
	ThinkMillis float64 `json:"thinkMillis,omitempty"`
	// TimeoutMillis is the time after which a request without an answer counts as a timeout.
	TimeoutMillis float64 `json:"timeoutMillis,omitempty"`
}

// FaultRecord is what one pod did for a fault, in milliseconds relative to t = 0.
type FaultRecord struct {
	// ID of the action, unique in the trial: "<fault>/<time, from 1>/<kind in lower case>/<pod>".
	ID              string  `json:"id,omitempty"`
	Fault           string  `json:"fault"`
	Time            int     `json:"time,omitempty"` // of the fault, from 1; 0 in results from before this field
	Pod             string  `json:"pod"`
	Kind            string  `json:"kind"`
	PlannedMillis   float64 `json:"plannedMillis"`
	StartedMillis   float64 `json:"startedMillis"`
	ConfirmedMillis float64 `json:"confirmedMillis"`
	// ReapedMillis is when no process was left, for a kill: the proof that what was confirmed was
	// so.
	ReapedMillis float64 `json:"reapedMillis,omitempty"`
	// WithoutSilence: the pod was killed with its network as it was, as a process that crashes and
	// not as a machine without power: peers were told by FIN or RST.
	WithoutSilence bool `json:"withoutSilence,omitempty"`
	// Ends is the ID of what this ended.
	Ends string `json:"ends,omitempty"`
	// Role that the fault was for; Skipped: the pod did not have it and did nothing. Unanswered
	// says why it was not known in time whether the pod had it; empty: it was.
	Role       string `json:"role,omitempty"`
	Skipped    bool   `json:"skipped,omitempty"`
	Unanswered string `json:"unanswered,omitempty"`
	// Object of Chaos Mesh that did it, by kind and action: "NetworkChaos partition". Its instants
	// are the manager's: when it asked for the object, or for its deletion, and when it saw that it
	// was in force, or gone.
	Object string `json:"object,omitempty"`
	// Peers is how many other pods a partition or a change of links was about in this pod; Packets
	// is what a partition dropped here, known at its end.
	Peers   int    `json:"peers,omitempty"`
	Packets uint64 `json:"packets,omitempty"`
	Error   string `json:"error,omitempty"`
	// Mark that the fault counts from, its instant, and when the pod's agent heard of it.
	Mark        string  `json:"mark,omitempty"`
	MarkMillis  float64 `json:"markMillis,omitempty"`
	KnownMillis float64 `json:"knownMillis,omitempty"`
}

// Mark is an instant that a line of output named, when the line was read.
type Mark struct {
	Name     string            `json:"name"`
	Groups   map[string]string `json:"groups,omitempty"`
	AtMillis float64           `json:"atMillis"`
	Line     string            `json:"line,omitempty"`
}

// Pod is one pod of a trial, for provenance.
type Pod struct {
	Name string `json:"name"`
	Part string `json:"part"`
	// Region of the pod in the experiment's network. Empty: it has none, or these are older
	// results.
	Region string `json:"region,omitempty"`
	Node   string `json:"node"`
	Images string `json:"images"` // IDs of the images of the System's containers, comma-separated
	// AgentImage is the ID of the image of Assay's agent, launcher and load generator.
	AgentImage string `json:"agentImage,omitempty"`
	// Agent is the version that the agent was built as.
	Agent string `json:"agent,omitempty"`
	// NodeSoftware is what its node runs: versions of the kubelet, the container runtime and the
	// operating system.
	NodeSoftware string `json:"nodeSoftware,omitempty"`
	Kernel       string `json:"kernel,omitempty"`
	CPUModel     string `json:"cpuModel,omitempty"`
	CPUs         int    `json:"cpus,omitempty"`
	// Machine says how the node is set and where it stands, as its labels (pool, region, zone,
	// machine.assay.dev/...) did when the trial was over.
	Machine           map[string]string `json:"machine,omitempty"`
	ClockOffsetMillis float64           `json:"clockOffsetMillis"`
	ClockErrorMillis  float64           `json:"clockErrorMillis"`
	// ClockStepMillis is by how much the manager's clock was seen to change in the run.
	ClockStepMillis float64 `json:"clockStepMillis,omitempty"`
	TCPResets       int64   `json:"tcpResets"`
	// ClientRun says when and how the pod's client ran. Nil: it is no client, or was not released.
	ClientRun *ClientRun `json:"clientRun,omitempty"`
	Restarts  int32      `json:"restarts"` // by the kubelet
	// GeneratorLagP99Millis is how late its load generator sent requests for which a client was
	// free (open loop).
	GeneratorLagP99Millis float64 `json:"generatorLagP99Millis,omitempty"`
	// Resources that the pod used. Nil: its agent did not say.
	Resources *Resources `json:"resources,omitempty"`
	// UID of the pod, when it was created, relative to t = 0, and when its replica was ready (0:
	// never), as the manager saw it. Only of a pod that replaced another in the run.
	UID           string  `json:"uid,omitempty"`
	CreatedMillis float64 `json:"createdMillis,omitempty"`
	ReadyMillis   float64 `json:"readyMillis,omitempty"`
	// Predecessors are the pods that had its name before, first to last. All else here is about the
	// last one.
	Predecessors []Predecessor `json:"predecessors,omitempty"`
}

// ClientRun is when and how a client ran, relative to t = 0.
type ClientRun struct {
	// ReleasedMillis is when the client could begin; EndedMillis when it exited or was told to end,
	// 0: it did not.
	ReleasedMillis float64 `json:"releasedMillis"`
	EndedMillis    float64 `json:"endedMillis,omitempty"`
	// ExitCode, or 128 + the signal's number. Asked: its log or the end of the drain ended it.
	ExitCode int  `json:"exitCode,omitempty"`
	Asked    bool `json:"asked,omitempty"`
}

// Predecessor is a pod that a fault replaced in the run. The last output of its processes is in the
// logs as "pod@uid/container".
type Predecessor struct {
	UID  string `json:"uid"`
	Node string `json:"node,omitempty"`
	// CreatedMillis and ReadyMillis are as of Pod; 0 of the first. DeletedMillis is when the
	// manager saw that it was gone.
	CreatedMillis float64 `json:"createdMillis,omitempty"`
	ReadyMillis   float64 `json:"readyMillis,omitempty"`
	DeletedMillis float64 `json:"deletedMillis"`
	// Reported: the manager that saw it go had a report of its agent. The next fields are of its
	// agent's last report.
	Reported          bool    `json:"reported"`
	ClockOffsetMillis float64 `json:"clockOffsetMillis,omitempty"`
	ClockErrorMillis  float64 `json:"clockErrorMillis,omitempty"`
	TCPResets         int64   `json:"tcpResets,omitempty"`
}

// Trial is what a trial comes to.
type Trial struct {
	Format     string `json:"format"`
	Name       string `json:"name"`
	Experiment string `json:"experiment"`
	Number     int32  `json:"number"`
	Repetition int32  `json:"repetition"`
	Attempt    int32  `json:"attempt"`
	PointIndex int32  `json:"pointIndex"`
	// Coordinates of the point: axis -> value.
	Coordinates map[string]string `json:"coordinates"`
	Seed        int64             `json:"seed"`
	// Outcome: Succeeded, Invalid or Failed, with its reason and message.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Imported says where the numbers are from. Nil: Assay ran the trial.
	Imported *Imported `json:"imported,omitempty"`
	// Seal is the hash in the seal of the experiment, as it was when the trial was created. Empty:
	// the experiment had none.
	Seal string `json:"seal,omitempty"`
	// ZeroUnixNanos is t = 0 on the manager's clock.
	ZeroUnixNanos int64 `json:"zeroUnixNanos,omitempty"`
	MeasureNanos  int64 `json:"measureNanos"`
	// GapSeconds from the end of the drain of the trial before, whosever it was, to the warm-up of
	// this one; 0 for the first of an experiment.
	GapSeconds float64 `json:"gapSeconds,omitempty"`
	// IdleGate is how the trial's wait for idle machines ended. Nil: it was not released, or was
	// not to wait.
	IdleGate *IdleGate `json:"idleGate,omitempty"`
	// PhaseSeconds: how long each phase took: deployed, networkVerified, started, loaded, released,
	// run.
	PhaseSeconds map[string]float64 `json:"phaseSeconds,omitempty"`
	Clients      int32              `json:"clients"`
	// ClosedLoop says how clients of a closed loop wait. Nil: the loop is open, or the results are
	// from before it was kept here.
	ClosedLoop *ClosedLoop `json:"closedLoop,omitempty"`
	// ChangingLoad: the load changed in the run because it was to, by phases or a trace. So the
	// window has no one level that it could be at.
	ChangingLoad bool `json:"changingLoad,omitempty"`
	// CorrectClients are those whose doing is in the numbers: all but those that a fault made
	// behave otherwise. 0 in results from before there were such.
	CorrectClients int32   `json:"correctClients,omitempty"`
	Summary        Summary `json:"summary"`
	// Rows of the trial's script, one for each point that they are of. Empty: it has no script.
	Rows []Row `json:"rows,omitempty"`
	// Sessions are what ran on the trial's machines by SSH, and when. Empty: it has no machines.
	Sessions []Session `json:"sessions,omitempty"`
	// Marks that lines of output were, in order of time.
	Marks []Mark `json:"marks,omitempty"`
	// Script is the name of the trial whose row this is: see ByRow. It is not kept.
	Script   string           `json:"-"`
	Latency  string           `json:"latency,omitempty"` // merged histogram, as in Client
	Timeline *Timeline        `json:"timeline,omitempty"`
	Driver   map[string]int64 `json:"driver,omitempty"`
	// MisbehavingDriver are the counters of drivers of clients that misbehaved on purpose, added
	// up. Driver has those of the other clients. MisbehavingCounters are as in Client, of all
	// client pods; nil: some pod with such clients does not say.
	MisbehavingDriver   map[string]int64 `json:"misbehavingDriver,omitempty"`
	MisbehavingCounters *Counters        `json:"misbehavingCounters,omitempty"`
	Faults              []FaultRecord    `json:"faults,omitempty"`
	// Recovery from each time of each fault.
	Recovery []Recovery `json:"recovery,omitempty"`
	// Checks of the System and what they say of the trial.
	Checks []Check `json:"checks,omitempty"`
	// Datasets that the pods began with.
	Datasets []Dataset `json:"datasets,omitempty"`
	// Measurements of Prometheus, of the clients' counters and of the pods' resources, in the order
	// of the spec.
	Measurements []Measurement `json:"measurements,omitempty"`
	// Use is what the pods of each part used together, and what all pods did. A part is left out of
	// which that is not known over time.
	Use []PartUse `json:"use,omitempty"`
	// Network of the pods, asked and measured. Nil: it was not measured, since the trial was given
	// up before.
	Network *Network `json:"network,omitempty"`
	Pods    []Pod    `json:"pods,omitempty"`
	// Machines that the pods were on, and who had their processors in the window.
	Machines   []MachineUse      `json:"machines,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Software that carried the trial out. Nil in older results.
	Software *Software `json:"software,omitempty"`
	// Rendered are the files and commands that the pods were given, Reports what the client pods
	// reported, as they sent it. Both are kept beside these results. Nil: they are not.
	Rendered *FileSet `json:"rendered,omitempty"`
	Reports  *FileSet `json:"reports,omitempty"`
	// Logs: the tails of the output of processes that failed, by "pod/container".
	Logs map[string]string `json:"logs,omitempty"`
	// LeftOut says what did not fit.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Session is what one session of SSH did on a machine, or the script, or an event there. Times are
// relative to t = 0, by the machine's own clock.
type Session struct {
	// Kind is session, refused, unanswered, script, deadline, start or boot, as package machine has
	// it; in a report also mark or fault.
	Kind    string `json:"kind"`
	Machine string `json:"machine"`
	// Pod that the machine is, where it came up.
	Pod     string `json:"pod,omitempty"`
	From    string `json:"from,omitempty"`
	What    string `json:"what,omitempty"`
	Command string `json:"command,omitempty"`
	// BeginMillis and EndMillis; EndMillis nil: it did not end.
	BeginMillis float64  `json:"beginMillis"`
	EndMillis   *float64 `json:"endMillis,omitempty"`
	// ClosedMillis is when the session's connection ended for the script's machine, by the clock of
	// that. An ssh that gives up by itself may end some seconds before its connection. Nil: that is
	// not known, or the session came from another machine.
	ClosedMillis *float64 `json:"closedMillis,omitempty"`
	// ExitCode of the command, or 128 and the number of the signal that ended it. Nil: no end.
	ExitCode *int   `json:"exitCode,omitempty"`
	Message  string `json:"message,omitempty"`
	// Fault that ended the session with its machine, and when that was confirmed.
	Fault       string  `json:"fault,omitempty"`
	FaultMillis float64 `json:"faultMillis,omitempty"`
	// Count of the connections from there that were refused, or that came to no session.
	Count int `json:"count,omitempty"`
}

// Software is what carried a trial out, besides what is in its pods.
type Software struct {
	// Manager is the version that the manager was built as, ManagerImage the ID of its image.
	// Empty: the manager could not read its own pod.
	Manager      string `json:"manager"`
	ManagerImage string `json:"managerImage,omitempty"`
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// IdleGate is how a trial's wait for idle machines ended.
type IdleGate struct {
	// Idle: the machines were idle. Otherwise idleWait was over, and Message says what disturbed
	// them last.
	Idle bool `json:"idle"`
	// WaitedSeconds from when every client stood at the start barrier.
	WaitedSeconds float64 `json:"waitedSeconds"`
	Message       string  `json:"message,omitempty"`
}

// Aggregate is one metric over the valid trials of a point. Interval is the 95% Student-t interval
// of the mean; it is present for two trials and more (Low and High are equal to Mean otherwise).
type Aggregate struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stdDev"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// PointResult is what a point comes to over its valid trials.
type PointResult struct {
	Index       int32             `json:"index"`
	Coordinates map[string]string `json:"coordinates"`
	// Valid, Invalid and Failed trials.
	Valid   int `json:"valid"`
	Invalid int `json:"invalid"`
	Failed  int `json:"failed"`
	// Metrics by name: throughput (tx/s), meanLatency, p50Latency, p99Latency (ms), abortRate
	// (aborted attempts by all ended attempts), and the experiment's measurements, each over the
	// trials that have it.
	Metrics map[string]Aggregate `json:"metrics"`
}

// TrialLine is one trial in an experiment's results: enough to aggregate again. The rest is in the
// trial's own ConfigMap.
type TrialLine struct {
	Name        string            `json:"name"`
	Number      int32             `json:"number"`
	PointIndex  int32             `json:"pointIndex"`
	Coordinates map[string]string `json:"coordinates"`
	Repetition  int32             `json:"repetition"`
	Attempt     int32             `json:"attempt"`
	Outcome     string            `json:"outcome"`
	Reason      string            `json:"reason,omitempty"`
	Message     string            `json:"message,omitempty"`
	// Imported is as in Trial.
	Imported   *Imported `json:"imported,omitempty"`
	GapSeconds float64   `json:"gapSeconds,omitempty"`
	Committed  int64     `json:"committed"`
	Aborted    int64     `json:"aborted"`
	Errors     int64     `json:"errors"`
	Timeouts   int64     `json:"timeouts"`
	// Offered, GivenUp and Unsent are as in Counters; 0 in older results.
	Offered int64 `json:"offered,omitempty"`
	GivenUp int64 `json:"givenUp,omitempty"`
	Unsent  int64 `json:"unsent,omitempty"`
	// Unreported are the counters that some client does not know, by their names in JSON: they are
	// 0 here, and mean nothing.
	Unreported []string `json:"unreported,omitempty"`
	// RunSummary is as in Summary.
	RunSummary bool    `json:"runSummary,omitempty"`
	Throughput float64 `json:"throughput"`
	MeanMillis float64 `json:"meanMillis"`
	P50Millis  float64 `json:"p50Millis"`
	P99Millis  float64 `json:"p99Millis"`
	// P10Millis, P90Millis, P999Millis and CorrectClients are 0 in older results.
	P10Millis      float64 `json:"p10Millis,omitempty"`
	P90Millis      float64 `json:"p90Millis,omitempty"`
	P999Millis     float64 `json:"p999Millis,omitempty"`
	CorrectClients int32   `json:"correctClients,omitempty"`
	// OfAll is as in Summary.
	OfAll *Percentiles `json:"ofAll,omitempty"`
	// ThrottledShare of the container, and StealShare of the node, that had most of it. Nil: not
	// measured.
	ThrottledShare *float64 `json:"throttledShare,omitempty"`
	StealShare     *float64 `json:"stealShare,omitempty"`
	// ContendedShare of the machine on which the trial waited most for others. Nil: not known.
	ContendedShare *float64 `json:"contendedShare,omitempty"`
	// ClientTimeShare of a closed loop is the share of the clients' time in the window that their
	// transactions and think time fill: 1 by Little's law. ClientBusyShare is the greatest share of
	// a CPU limit or of a node's processors that client pods used. Nil: not known, or not kept in
	// these results.
	ClientTimeShare *float64 `json:"clientTimeShare,omitempty"`
	ClientBusyShare *float64 `json:"clientBusyShare,omitempty"`
	// Script is the name of the trial whose script wrote the row that this is. Empty: it is all of
	// its trial.
	Script string `json:"script,omitempty"`
	// Measurements of Prometheus and of the clients' counters, in the order of the spec.
	Measurements []Measurement `json:"measurements,omitempty"`
	// Recovery from the first times of faults, at most 16. Their cautions and the throughput before
	// are in the trial's own results.
	Recovery []Recovery `json:"recovery,omitempty"`
	// Checks of the System and what they say of the trial, valid or not.
	Checks []Check `json:"checks,omitempty"`
	// Datasets that the pods began with.
	Datasets  []Dataset `json:"datasets,omitempty"`
	ConfigMap string    `json:"configMap,omitempty"`
	// Window says whether the window was steady. The manager's lines have it where it was not, with
	// what moves the mean and by how much; a report computes the rest from the trial's timeline.
	// Nil: it was steady, or that is not known, or the trial does not count.
	Window *WindowCheck `json:"window,omitempty"`
	// P95Millis is 0 in older results, and where it is not known. A report reads it off the trial's
	// histogram then.
	P95Millis float64 `json:"p95Millis,omitempty"`
	// Percentiles are as in Summary.
	Percentiles map[string]float64 `json:"percentiles,omitempty"`
	// Remarks are as in Summary. Only a report has them.
	Remarks []string `json:"remarks,omitempty"`
}

// Dataset is a data set that the pods of a trial began with.
type Dataset struct {
	// Name in the System, and Object: the name of the Dataset.
	Name   string `json:"name"`
	Object string `json:"object"`
	// Digest of the tree, with which every copy was compared.
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	Files  int64  `json:"files"`
	// PreparedNodes had the data when the trial was made. PrepareSeconds is how long the recipe,
	// the hash and keeping took on the slowest of them.
	PreparedNodes  int32   `json:"preparedNodes"`
	PrepareSeconds float64 `json:"prepareSeconds"`
	// Copies of the trial, one in each pod that uses the set; Method is Reflink, Copy or Mixed,
	// Check Sizes or Content.
	Copies int32  `json:"copies"`
	Method string `json:"method,omitempty"`
	Check  string `json:"check,omitempty"`
	// FastestSeconds and SlowestSeconds of a copy with its check.
	FastestSeconds float64 `json:"fastestSeconds"`
	SlowestSeconds float64 `json:"slowestSeconds"`
}

// CollectedFile is a file that a pod of a trial wrote.
type CollectedFile struct {
	Trial string `json:"trial"`
	Pod   string `json:"pod"`
	// Name below the pod's folder: out/stats.json, or logs/server.stdout.
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	// In says where it is: the name of a ConfigMap, or a folder of the bundle.
	In string `json:"in"`
}

// Check is what a check of the System says of a trial: Holds, Violated or Unknown.
type Check struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	// Message says where it was violated or gave no answer, and what it printed last.
	Message string `json:"message,omitempty"`
}

// Experiment is what an experiment comes to.
type Experiment struct {
	Format string `json:"format"`
	Name   string `json:"name"`
	// Recurs is the experiment that recurs and has this one as a run. The runs of one history have
	// the same. Empty: this one was applied by itself.
	Recurs     string            `json:"recurs,omitempty"`
	UID        string            `json:"uid"`
	Profile    string            `json:"profile,omitempty"`
	Seed       int64             `json:"seed"`
	SpecSHA256 string            `json:"specSHA256"`
	Source     map[string]string `json:"source,omitempty"` // title, section, url
	// Fidelity says what ran, relative to the source. Older results lack it.
	Fidelity  *Fidelity  `json:"fidelity,omitempty"`
	Started   time.Time  `json:"started"`
	Completed *time.Time `json:"completed,omitempty"`
	// Written is when these results were put together: they are about the trials that were done by
	// then.
	Written time.Time `json:"written"`
	// Judged says that all but the trials was made anew after the run. Nil: it was not.
	Judged *Judged `json:"judged,omitempty"`
	// Seal says what the claims were before the first trial. Nil: the results do not have it.
	Seal *Seal `json:"seal,omitempty"`
	// Method is the version of the statistics by which claims and searches were judged. 0: one from
	// before it was kept.
	Method int `json:"method,omitempty"`
	// Planned is the number of valid trials that the experiment wants.
	Planned int `json:"planned,omitempty"`
	// AdditionalRepetitions of each point were asked for when the experiment was complete: after a
	// look at its results.
	AdditionalRepetitions int `json:"additionalRepetitions,omitempty"`
	// Stopped says why trials are missing that the experiment's budget does not pay for. Empty: it
	// has no budget, or none is missing.
	Stopped string `json:"stopped,omitempty"`
	// Look is the one at which the claims are judged, where repetitions go on until claims are
	// decided; absent: verdicts are looked at once.
	Look *Look `json:"look,omitempty"`
	// Axes in the order of the sweep, with their values in order.
	Axes []Axis `json:"axes"`
	// Measurements that the experiment asks Prometheus or the clients for, in their order.
	Measurements []MeasurementColumn `json:"measurements,omitempty"`
	// Figures that the experiment declares.
	Figures []Figure `json:"figures,omitempty"`

	Points []PointResult `json:"points"`
	// Capacities are what searches came to, one for each combination of the other axes.
	Capacities []Capacity `json:"capacities,omitempty"`

	Trials   []TrialLine      `json:"trials"`
	Claims   []ClaimResult    `json:"claims"`
	Reported []ReportedSeries `json:"reported,omitempty"`
	// Networks and Faults of the valid trials, and what they did over time. Only a report has them:
	// they are in the trials' own results.
	Networks   []NetworkLine  `json:"networks,omitempty"`
	Faults     []FaultLine    `json:"faults,omitempty"`
	Series     []PointSeries  `json:"series,omitempty"`
	Latencies  []PointLatency `json:"latencies,omitempty"`
	Resources  []ResourceLine `json:"resources,omitempty"`
	LatencyBy  []LatencyBy    `json:"latencyBy,omitempty"`
	Provenance *Provenance    `json:"provenance,omitempty"`
	// Collected are the files of pods' own that are kept beside the trials' results, and the ends
	// of logs. Only a report has them.
	Collected []CollectedFile `json:"collected,omitempty"`
	// Scripts are what scripts did on the trials' machines, of one trial for each kind of run. Only
	// a report has them.
	Scripts []ScriptRun `json:"scripts,omitempty"`
	// Spec of the experiment with its profile applied, as JSON. Only a report has it: it is stored
	// beside the results.
	Spec    json.RawMessage `json:"spec,omitempty"`
	LeftOut []string        `json:"leftOut,omitempty"`
}

// HistoryName is what the runs of one history have in common: the name of the experiment, or of the
// one that recurs.
func (e *Experiment) HistoryName() string { return cmp.Or(e.Recurs, e.Name) }

// Axis of a sweep.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	// Searched: the values are loads that a search may try; in results, those that it tried.
	Searched bool `json:"searched,omitempty"`
}

// ReportedSeries is a curve of the paper.
type ReportedSeries struct {
	Name   string            `json:"name"`
	Metric string            `json:"metric"`
	Unit   string            `json:"unit"`
	At     map[string]string `json:"at,omitempty"`
	Axis   string            `json:"axis"`
	X      []string          `json:"x"`
	Y      []float64         `json:"y"`
	Note   string            `json:"note,omitempty"`
	// Measurement that the series is of, where Metric is Measurement.
	Measurement string `json:"measurement,omitempty"`
	// Correction is by what the values are multiplied before they are compared; 0: by nothing.
	Correction float64 `json:"correction,omitempty"`
}
