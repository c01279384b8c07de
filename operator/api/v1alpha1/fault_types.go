package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Fault is something that is broken, or done, at a planned time. Exactly one of nodeKill, pause,
// partition, degrade, chaosMesh, clientBehavior, command and flameGraph is set.
// +kubebuilder:validation:XValidation:rule="[has(self.nodeKill), has(self.pause), has(self.partition), has(self.degrade), has(self.chaosMesh), has(self.clientBehavior), has(self.command), has(self.flameGraph)].filter(x, x).size() == 1",message="set exactly one of nodeKill, pause, partition, degrade, chaosMesh, clientBehavior, command, flameGraph",messageExpression=`(has(self.nodeKill) ? 'nodeKill ' : "") + (has(self.pause) ? 'pause ' : "") + (has(self.partition) ? 'partition ' : "") + (has(self.degrade) ? 'degrade ' : "") + (has(self.chaosMesh) ? 'chaosMesh ' : "") + (has(self.clientBehavior) ? 'clientBehavior ' : "") + (has(self.command) ? 'command ' : "") + (has(self.flameGraph) ? 'flameGraph ' : "") + 'is set; set exactly one of nodeKill, pause, partition, degrade, chaosMesh, clientBehavior, command, flameGraph'`
// +kubebuilder:validation:XValidation:rule="has(self.clientBehavior) != has(self.at)",fieldPath=".at",message="at says when the fault begins: it is needed, but for clientBehavior, which lasts the whole trial",messageExpression="has(self.at) ? 'must not be set: clients behave that way during the whole trial' : 'is needed: when the fault begins, relative to t = 0, such as -2s'"
// +kubebuilder:validation:XValidation:rule="!has(self.clientBehavior) || !has(self.__for__)",fieldPath=".for",message="must not be set: clients behave that way during the whole trial"
// +kubebuilder:validation:XValidation:rule="!has(self.repeat) || has(self.__for__) || has(self.command)",fieldPath=".for",message="is needed with repeat: each time must end before the next begins"
// +kubebuilder:validation:XValidation:rule="!has(self.command) || !has(self.__for__)",fieldPath=".for",message="must not be set: a command ends by itself"
// +kubebuilder:validation:XValidation:rule="!has(self.flameGraph) || has(self.__for__)",fieldPath=".for",message="is needed with flameGraph: how long the profiler samples, such as 5s"
type Fault struct {
	// name of the fault.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// mark of a script from which at counts, in place of t = 0. A trial without that mark is
	// invalid. Default: none.
	// +optional
	Mark *FaultMark `json:"mark,omitempty"`

	// at is when the fault begins, relative to t = 0 or to the mark. A negative time lies in the
	// warm-up. From a mark at least 250ms, since the other machines must hear of it.
	// +optional
	At Duration `json:"at,omitempty"`

	// for is how long the fault lasts. Default: until the end of the trial.
	// +optional
	For *Duration `json:"for,omitempty"`

	// repeat makes the fault happen again.
	// +optional
	Repeat *Repeat `json:"repeat,omitempty"`

	// everyPoint makes the fault act in every point, named or not. Default: false.
	// +optional
	EveryPoint bool `json:"everyPoint,omitempty"`

	// nodeKill kills replicas as a power cut would.
	// +optional
	NodeKill *NodeKill `json:"nodeKill,omitempty"`

	// pause stops replicas' processes (SIGSTOP) and lets them go on (SIGCONT); their kernels go on
	// answering.
	// +optional
	Pause *Pause `json:"pause,omitempty"`

	// partition loses all packets between some pods.
	// +optional
	Partition *Partition `json:"partition,omitempty"`

	// degrade makes links worse.
	// +optional
	Degrade *Degrade `json:"degrade,omitempty"`

	// chaosMesh lets Chaos Mesh, where it is installed, do what it can to replicas.
	// +optional
	ChaosMesh *ChaosMesh `json:"chaosMesh,omitempty"`

	// clientBehavior makes a share of the clients misbehave. These clients are not measured.
	// +optional
	ClientBehavior *ClientBehavior `json:"clientBehavior,omitempty"`

	// command runs a command in pods: a reconfiguration, a new member, a flush, a compaction.
	// +optional
	RunCommand *Command `json:"command,omitempty"`

	// flameGraph has a profiler sample pods, in trials of their own that never count.
	// +optional
	FlameGraph *FlameGraph `json:"flameGraph,omitempty"`
}

// ProfilerTool samples processes. Pprof: the program samples itself, and is asked over HTTP, as Go
// programs with net/http/pprof are. Perf: perf(1) of Linux. AsyncProfiler: async-profiler, for Java
// programs. The image of the pod's first container must have the last two.
// +kubebuilder:validation:Enum=Pprof;Perf;AsyncProfiler
type ProfilerTool string

// The profilers.
const (
	ProfilerPprof         ProfilerTool = "Pprof"
	ProfilerPerf          ProfilerTool = "Perf"
	ProfilerAsyncProfiler ProfilerTool = "AsyncProfiler"
)

// FlameGraph says which pods are profiled, and how. It happens in trials of their own, one for each
// point, after all others. They never count: a profiler takes time from the process that it
// samples.
// +kubebuilder:validation:XValidation:rule="has(self.port) == (self.tool == 'Pprof')",fieldPath=".port",message="is needed for Pprof, and for no other tool"
type FlameGraph struct {
	// target says which pods.
	Target Target `json:"target"`

	// tool that samples.
	Tool ProfilerTool `json:"tool"`

	// port of the pod that the program answers on (Pprof).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// path of the profile of processor time (Pprof). Default: /debug/pprof/profile.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^/.*`
	Path string `json:"path,omitempty"`

	// program is the profiler in the image (Perf, AsyncProfiler). Default: perf or asprof, as PATH
	// has it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Program string `json:"program,omitempty"`

	// frequency of samples in each second of processor time (Perf, AsyncProfiler). From 1 to 1000.
	// Default: 99.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Frequency int32 `json:"frequency,omitempty"`

	// points that are profiled, by the values of axes: {clients: 8}. Default: every point.
	// +optional
	// +kubebuilder:validation:MaxProperties=9
	Points map[string]Value `json:"points,omitempty"`
}

// Command is a command that runs in pods at an instant. It must be begun punctually, and is
// confirmed when it has exited with 0. Reports draw it where it began.
type Command struct {
	// target says in which pods. The command runs beside the process of the pod's first container,
	// in its environment.
	Target Target `json:"target"`

	// run is the command, with all arguments. Template, which sees what the System's steps see.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Run []string `json:"run"`

	// timeout of the command. One that takes longer is ended, and the trial is invalid. From 1ms to
	// 1h. Default: 60s.
	// +optional
	// +kubebuilder:default="60s"
	Timeout Duration `json:"timeout,omitempty"`
}

// FaultMark is a mark that a fault counts from.
type FaultMark struct {
	// name of the mark, as the System's script declares it.
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// groups are the texts that named groups of the mark's pattern must have matched. Default: any
	// text.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Groups map[string]Value `json:"groups,omitempty"`

	// occurrence is the number of the mark among those that match, from 1. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Occurrence int32 `json:"occurrence,omitempty"`
}

// Repeat makes a fault happen several times.
type Repeat struct {
	// every is the time from one beginning to the next. More than the fault lasts.
	Every Duration `json:"every"`

	// times that it happens in all. From 2 to 100.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100
	Times int32 `json:"times"`
}

// The modes of a NodeKill.
const (
	KillPods    = "Pods"
	KillMachine = "Machine"
)

// NodeKill makes replicas go silent and kills their processes, as a power cut would. Packets are
// dropped first, so that peers see silence and no reset. Then every process of the pod gets
// SIGKILL. Nothing restarts them before the fault is over.
type NodeKill struct {
	// mode of the kill. Pods: the pods' network and processes; nothing on the node. Machine: the
	// nodes that the target's pods run on are reset. They come back by themselves, and for must be
	// left out. Each node must allow it by the annotation assay.dev/allow-machine-faults: "true".
	// Pods of other owners may not run on it. Default: Pods.
	// +optional
	// +kubebuilder:default=Pods
	// +kubebuilder:validation:Enum=Pods;Machine
	Mode string `json:"mode,omitempty"`

	// disk says what becomes of the replica's volumes of medium Disk and PersistentVolumeClaim:
	// Keep; Lose (they are emptied while it is down). Volumes of medium Memory are always emptied.
	// Default: Keep.
	// +optional
	// +kubebuilder:default=Keep
	// +kubebuilder:validation:Enum=Keep;Lose
	Disk string `json:"disk,omitempty"`

	// target says which replicas.
	Target Target `json:"target"`
}

// Pause stops processes for a time.
type Pause struct {
	// target says which replicas.
	Target Target `json:"target"`
}

// Partition loses packets. Exactly one of groups, isolate and (from and to) is set.
// +kubebuilder:validation:XValidation:rule="[has(self.groups), has(self.isolate), has(self.from) || has(self.to)].filter(x, x).size() == 1 && has(self.from) == has(self.to)",message="set exactly one of: groups; isolate; from and to"
type Partition struct {
	// groups that cannot reach each other. Replicas in no group reach all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	Groups []Target `json:"groups,omitempty"`

	// isolate cuts each of these replicas from all other replicas and from all components.
	// +optional
	Isolate *Target `json:"isolate,omitempty"`

	// from: the partition loses packets that go from these replicas to those of to, in this
	// direction only.
	// +optional
	From *Target `json:"from,omitempty"`

	// to: packets from the replicas of from do not reach these replicas.
	// +optional
	To *Target `json:"to,omitempty"`

	// clients say whom the clients reach: Everyone; FirstGroup (with groups: only replicas of the
	// first group and of none; with isolate: all replicas but the isolated). Default: Everyone.
	// +optional
	// +kubebuilder:default=Everyone
	// +kubebuilder:validation:Enum=Everyone;FirstGroup
	Clients string `json:"clients,omitempty"`

	// flap makes the partition come and go while the fault lasts. Default: it stays.
	// +optional
	Flap *Flap `json:"flap,omitempty"`
}

// Flap makes a partition come and go.
type Flap struct {
	// period from one cut to the next. From 20ms to 1h.
	Period Duration `json:"period"`

	// cut is how long each cut lasts. From 10ms and twice tolerances.faultLateness; less than the
	// period. Default: half of the period.
	// +optional
	Cut *Duration `json:"cut,omitempty"`
}

// Degrade adds to links for a time: delay and jitter are added to what the network says, losses
// combine, the lower rate holds. Either target, or from or to or both, are set.
// +kubebuilder:validation:XValidation:rule="has(self.target) != (has(self.from) || has(self.to))",message="set either target (all links of these replicas, both ways), or from or to or both (one direction)"
// +kubebuilder:validation:XValidation:rule="has(self.delay) || has(self.jitter) || has(self.loss) || has(self.rate)",message="changes nothing: set at least one of delay, jitter, loss, rate"
type Degrade struct {
	// target: all links from and to these replicas.
	// +optional
	Target *Target `json:"target,omitempty"`

	// from: links from these replicas. Default with to: from every pod, the clients' included.
	// +optional
	From *Target `json:"from,omitempty"`

	// to: links to these replicas. Default with from: to every pod, the clients' included.
	// +optional
	To *Target `json:"to,omitempty"`

	LinkEffect `json:",inline"`
}

// ChaosMesh is a fault that Chaos Mesh carries out (https://chaos-mesh.org): an object of it is
// made when the fault begins and deleted when it ends.
type ChaosMesh struct {
	// kind of the object, of chaos-mesh.org/v1alpha1. Each acts on pods; those that act on whole
	// nodes, clouds or workflows cannot be asked for.
	// +kubebuilder:validation:Enum=PodChaos;NetworkChaos;StressChaos;TimeChaos;IOChaos;HTTPChaos;DNSChaos;JVMChaos
	Kind string `json:"kind"`

	// target says which replicas. It becomes the object's selector.
	Target Target `json:"target"`

	// peers of a NetworkChaos are its other end. They become the object's spec.target, without the
	// replicas of target. Default: all pods, the manager included.
	// +optional
	Peers *Target `json:"peers,omitempty"`

	// spec of the object, as Chaos Mesh documents it. It leaves out the fields that Assay sets from
	// target, at, for and peers: selector, mode, value, duration, scheduler, remoteCluster and, of
	// a NetworkChaos, target. An example is action: bandwidth, bandwidth: {rate: 1mbps, limit:
	// 20971520, buffer: 10000}. When it leaves out containerNames, the fault acts on the replica's
	// own containers.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec"`
}

// ClientBehavior makes some clients misbehave, as Byzantine clients do. The clients of the system
// must have a driver. The counters, latencies and timelines of the results leave these clients out.
type ClientBehavior struct {
	// share of the clients that misbehave, spread evenly over the client pods: 30%. More than 0%,
	// less than 100%. The number is rounded down.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?%$`
	Share string `json:"share"`

	// parameters of these clients, on top of all others.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Parameters map[string]Value `json:"parameters"`
}

// Target chooses replicas, or pods of a component. A replica or pod is chosen if it meets every
// field that is set. At least one of machine, replicas, regions, role, pick and component is set.
// +kubebuilder:validation:XValidation:rule="has(self.machine) || has(self.replicas) || has(self.regions) || has(self.role) || has(self.pick) || has(self.component)",message="none of machine, replicas, regions, role, pick, component is set; name at least one"
// +kubebuilder:validation:XValidation:rule="!has(self.component) || !(has(self.replicas) || has(self.shards))",fieldPath=".component",message="replicas and shards choose replicas, not pods of a component: choose those by pods, regions, role, pick"
// +kubebuilder:validation:XValidation:rule="has(self.component) || !has(self.pods)",fieldPath=".pods",message="are those of a component: name it by component, or choose replicas by replicas"
// +kubebuilder:validation:XValidation:rule="!(has(self.role) && has(self.pick))",fieldPath=".pick",message="role is set too: the replica that has the role is chosen when the fault begins, and cannot be picked from"
type Target struct {
	// machine is the host name of a machine, for a System with machines. With it, no other field is
	// set. Default: machines are chosen as replicas or as pods of a component.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine,omitempty"`

	// component of the System whose pods are chosen, instead of replicas. Default: replicas are.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	Component string `json:"component,omitempty"`

	// pods of the component by their index, from 0. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	Pods []int32 `json:"pods,omitempty"`

	// replicas by their index in the shard, from 0.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	Replicas []int32 `json:"replicas,omitempty"`

	// shards by their index, from 0. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=2147483647
	Shards []int32 `json:"shards,omitempty"`

	// regions by name. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:MaxLength=14
	Regions []string `json:"regions,omitempty"`

	// role chooses the replica of each shard that has this role of the System when the fault
	// begins, as the System's probe says. In nodeKill, pause, command, flameGraph and
	// partition.isolate only.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Role string `json:"role,omitempty"`

	// pick chooses this many of the matching replicas of each shard, at random by the trial's seed:
	// a number; f; majority; minority (of all replicas of the shard). A component counts as one
	// shard. In partition.groups, each group picks from the replicas that earlier groups left.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(f|majority|minority|[1-9][0-9]?|1[0-9][0-9]|200)$`
	Pick *intstr.IntOrString `json:"pick,omitempty"`
}

// PickCount returns how many replicas the pick chooses in a shard of the given size that tolerates
// f faults. Without a pick it returns size.
func (t Target) PickCount(f, size int) int {
	switch {
	case t.Pick == nil:
		return size
	case t.Pick.Type == intstr.Int:
		return int(t.Pick.IntVal)
	case t.Pick.IntValue() > 0: // a number that was written as text
		return t.Pick.IntValue()
	case t.Pick.StrVal == "f":
		return f
	case t.Pick.StrVal == "majority":
		return size/2 + 1
	case t.Pick.StrVal == "minority":
		return size - size/2 - 1
	default:
		return 0
	}
}
