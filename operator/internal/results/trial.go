package results

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
	// ReapedMillis is when a kill had left no process: the proof of the confirmed kill.
	ReapedMillis float64 `json:"reapedMillis,omitempty"`
	// WithoutSilence: the pod was killed while its network stayed as it was. Its peers got a FIN or
	// RST, as from a process that crashes, and not the silence of a machine without power.
	WithoutSilence bool `json:"withoutSilence,omitempty"`
	// Ends is the ID of the action that this one ended.
	Ends string `json:"ends,omitempty"`
	// Role that the fault targets. Skipped: the pod did not have the role and did nothing.
	// Unanswered says why it was unknown in time whether the pod had the role. Empty: it was known.
	Role       string `json:"role,omitempty"`
	Skipped    bool   `json:"skipped,omitempty"`
	Unanswered string `json:"unanswered,omitempty"`
	// Object of Chaos Mesh that made the fault, by kind and action: "NetworkChaos partition". The
	// instants are the manager's: when it asked for the object or its deletion, and when it saw the
	// object in force or gone.
	Object string `json:"object,omitempty"`
	// Peers is how many other pods a partition or a change of links concerned in this pod. Packets
	// is how many packets a partition dropped here, known at its end.
	Peers   int    `json:"peers,omitempty"`
	Packets uint64 `json:"packets,omitempty"`
	Error   string `json:"error,omitempty"`
	// Mark that the fault counts from, its instant, and when the pod's agent heard of it.
	Mark        string  `json:"mark,omitempty"`
	MarkMillis  float64 `json:"markMillis,omitempty"`
	KnownMillis float64 `json:"knownMillis,omitempty"`
	// Profiler that sampled the pod, for how long, and how many samples it took.
	Profiler      string  `json:"profiler,omitempty"`
	SampledMillis float64 `json:"sampledMillis,omitempty"`
	Samples       int64   `json:"samples,omitempty"`
}

// Mark is the instant at which a certain line of output was read.
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
	// Region of the pod in the experiment's network. Empty: the pod has no region, or the results
	// are older.
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
	// Machine has the node's labels about its settings and its place (pool, region, zone,
	// machine.assay.dev/...), as they were when the trial was over.
	Machine           map[string]string `json:"machine,omitempty"`
	ClockOffsetMillis float64           `json:"clockOffsetMillis"`
	ClockErrorMillis  float64           `json:"clockErrorMillis"`
	// ClockStepMillis is by how much the manager's clock changed in the run.
	ClockStepMillis float64 `json:"clockStepMillis,omitempty"`
	TCPResets       int64   `json:"tcpResets"`
	// ClientRun says when and how the pod's client ran. Nil: it is no client, or was not released.
	ClientRun *ClientRun `json:"clientRun,omitempty"`
	Restarts  int32      `json:"restarts"` // by the kubelet
	// GeneratorLagP99Millis is how late its load generator sent requests for which a client was
	// free (open loop).
	GeneratorLagP99Millis float64 `json:"generatorLagP99Millis,omitempty"`
	// Resources that the pod used. Nil: the pod's agent did not report them.
	Resources *Resources `json:"resources,omitempty"`
	// UID of the pod, when it was created, relative to t = 0, and when its replica was ready (0:
	// never), as the manager saw it. These are set only for a pod that replaced another in the run.
	UID           string  `json:"uid,omitempty"`
	CreatedMillis float64 `json:"createdMillis,omitempty"`
	ReadyMillis   float64 `json:"readyMillis,omitempty"`
	// Predecessors are the pods that had this name before, first to last. All other fields are
	// about the last pod of the name.
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
	// CreatedMillis and ReadyMillis are as in Pod; 0 for the first pod. DeletedMillis is when the
	// manager saw that the pod was gone.
	CreatedMillis float64 `json:"createdMillis,omitempty"`
	ReadyMillis   float64 `json:"readyMillis,omitempty"`
	DeletedMillis float64 `json:"deletedMillis"`
	// Reported: the manager that saw the pod's end had a report of its agent. The next fields are
	// of the agent's last report.
	Reported          bool    `json:"reported"`
	ClockOffsetMillis float64 `json:"clockOffsetMillis,omitempty"`
	ClockErrorMillis  float64 `json:"clockErrorMillis,omitempty"`
	TCPResets         int64   `json:"tcpResets,omitempty"`
}

// Trial holds the results of a trial.
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
	// NodeSet is the name of the experiment's set of nodes that the trial ran on. Empty: the
	// experiment has no sets.
	NodeSet string `json:"nodeSet,omitempty"`
	// Outcome: Succeeded, Invalid or Failed, with its reason and message.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// NotMeasuring: profilers sampled the trial's pods, and it never counts.
	NotMeasuring bool `json:"notMeasuring,omitempty"`
	// Imported says where the numbers are from. Nil: Assay ran the trial.
	Imported *Imported `json:"imported,omitempty"`
	// Seal is the hash in the seal of the experiment, as it was when the trial was created. Empty:
	// the experiment had none.
	Seal string `json:"seal,omitempty"`
	// ZeroUnixNanos is t = 0 on the manager's clock.
	ZeroUnixNanos int64 `json:"zeroUnixNanos,omitempty"`
	MeasureNanos  int64 `json:"measureNanos"`
	// GapSeconds is the time from the end of the drain of the previous trial, of any experiment, to
	// the warm-up of this one. It is 0 for the first trial of an experiment.
	GapSeconds float64 `json:"gapSeconds,omitempty"`
	// IdleGate is how the trial's wait for idle machines ended. Nil: the trial was not released, or
	// its spec asks for no wait.
	IdleGate *IdleGate `json:"idleGate,omitempty"`
	// PhaseSeconds: how long each phase took: deployed, networkVerified, started, loaded, released,
	// run.
	PhaseSeconds map[string]float64 `json:"phaseSeconds,omitempty"`
	Clients      int32              `json:"clients"`
	// ClosedLoop says how clients of a closed loop wait. Nil: the loop is open, or the results are
	// from before it was kept here.
	ClosedLoop *ClosedLoop `json:"closedLoop,omitempty"`
	// ChangingLoad: phases or a trace changed the load in the run. So the window need not have one
	// level.
	ChangingLoad bool `json:"changingLoad,omitempty"`
	// CorrectClients counts the clients whose requests are in the numbers: all but those that
	// misbehaved on purpose. It is 0 in older results.
	CorrectClients int32   `json:"correctClients,omitempty"`
	Summary        Summary `json:"summary"`
	// ClientSummaries has a summary of the whole run for each of several client pods. Empty: there
	// is one client, or the clients' numbers are of the window.
	ClientSummaries []ClientSummary `json:"clientSummaries,omitempty"`
	// Rows of the trial's script, one for each of their points. Empty: the trial has no script.
	Rows []Row `json:"rows,omitempty"`
	// Sessions are what ran on the trial's machines by SSH, and when. Empty: the trial has no
	// machines.
	Sessions []Session `json:"sessions,omitempty"`
	// Marks are the instants of certain lines of output, in order of time.
	Marks []Mark `json:"marks,omitempty"`
	// Script is the name of the trial of which this is a row: see ByRow. It is not stored.
	Script   string           `json:"-"`
	Latency  string           `json:"latency,omitempty"` // merged histogram, as in Client
	Timeline *Timeline        `json:"timeline,omitempty"`
	Driver   map[string]int64 `json:"driver,omitempty"`
	// MisbehavingDriver are the counters of drivers of clients that misbehaved on purpose, added
	// up. Driver has those of the other clients. MisbehavingCounters are as in Client, of all
	// client pods; nil: some pod with such clients does not report them.
	MisbehavingDriver   map[string]int64 `json:"misbehavingDriver,omitempty"`
	MisbehavingCounters *Counters        `json:"misbehavingCounters,omitempty"`
	Faults              []FaultRecord    `json:"faults,omitempty"`
	// Recovery from each occurrence of each fault.
	Recovery []Recovery `json:"recovery,omitempty"`
	// Checks of the System with their verdicts on the trial.
	Checks []Check `json:"checks,omitempty"`
	// Datasets that the pods began with.
	Datasets []Dataset `json:"datasets,omitempty"`
	// Measurements of Prometheus, of the clients' counters and of the pods' resources, in the order
	// of the spec.
	Measurements []Measurement `json:"measurements,omitempty"`
	// Use is the total use of the pods of each part, and of all pods. A part is left out if its use
	// over time is unknown.
	Use []PartUse `json:"use,omitempty"`
	// Network of the pods, asked and measured. Nil: the trial was given up before the network was
	// measured.
	Network *Network `json:"network,omitempty"`
	Pods    []Pod    `json:"pods,omitempty"`
	// Machines that the pods were on, and who had their processors in the window.
	Machines   []MachineUse      `json:"machines,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Software that carried the trial out. Nil in older results.
	Software *Software `json:"software,omitempty"`
	// Rendered describes the files and commands of the pods, and Reports the reports of the client
	// pods as they sent them. Both are kept beside these results. Nil: they are not kept.
	Rendered *FileSet `json:"rendered,omitempty"`
	Reports  *FileSet `json:"reports,omitempty"`
	// Logs: the tails of the output of processes that failed, by "pod/container".
	Logs map[string]string `json:"logs,omitempty"`
	// LeftOut names the parts that did not fit.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Session is a session of SSH on a machine, or the run of the script, or an event there. Times are
// relative to t = 0, by the machine's own clock.
type Session struct {
	// Kind is session, refused, unanswered, script, deadline, start or boot, as package machine has
	// it; in a report also mark or fault.
	Kind    string `json:"kind"`
	Machine string `json:"machine"`
	// Pod is the machine's pod. Only sessions of kind start have it.
	Pod     string `json:"pod,omitempty"`
	From    string `json:"from,omitempty"`
	What    string `json:"what,omitempty"`
	Command string `json:"command,omitempty"`
	// BeginMillis and EndMillis; EndMillis nil: it did not end.
	BeginMillis float64  `json:"beginMillis"`
	EndMillis   *float64 `json:"endMillis,omitempty"`
	// ClosedMillis is when the session's connection ended for the script's machine, by that
	// machine's clock. An ssh that gives up by itself may end some seconds before its connection.
	// Nil: that is not known, or the session came from another machine.
	ClosedMillis *float64 `json:"closedMillis,omitempty"`
	// ExitCode of the command, or 128 and the number of the signal that ended it. Nil: no end.
	ExitCode *int   `json:"exitCode,omitempty"`
	Message  string `json:"message,omitempty"`
	// Fault that ended the session with its machine, and when the fault was confirmed.
	Fault       string  `json:"fault,omitempty"`
	FaultMillis float64 `json:"faultMillis,omitempty"`
	// Count is the number of connections from there that were refused, or that had no session.
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
	// the machines last.
	Idle bool `json:"idle"`
	// WaitedSeconds is the time from when every client stood at the start barrier.
	WaitedSeconds float64 `json:"waitedSeconds"`
	Message       string  `json:"message,omitempty"`
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

// Check is the verdict of a check of the System on a trial: Holds, Violated or Unknown.
type Check struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	// Message names the pod in which the check found a violation or gave no answer, and has its
	// last output.
	Message string `json:"message,omitempty"`
	// Numbers that the check printed, by pod and name. Each pod in which it ran is there. Nil: it
	// printed none, or gave no answer. Only a trial's results have them.
	Numbers map[string]map[string]float64 `json:"numbers,omitempty"`
}
