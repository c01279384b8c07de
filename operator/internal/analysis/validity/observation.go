package validity

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// Observation has all known facts about a trial at one moment, as one value. They are the request,
// the report of every agent, the outcome of every fault, and, once the clients are done, their
// reports. It is written down as a results.Trial (Describe). It does not change once it is built.
type Observation struct {
	// Trial as read, with every tolerance set.
	Trial *v1alpha1.Trial
	// Layout has the place of each pod. Nil: the trial was given up before anything was made, and
	// there are no Pods.
	Layout *placement.Layout
	// Pods are the replicas, then the client pods, in the layout's order.
	Pods []Pod
	// Rendered: every pod has had an address, so that the Actions and links are known.
	Rendered bool
	// Replaces: faults replace pods. PodsDigest names the current pods by their UIDs; the digest in
	// the trial's status names the deployed pods.
	Replaces   bool
	PodsDigest string
	// ProbesOver is when all agents' probes of the window have ended.
	ProbesOver time.Time
	// Pairs are the links between any two pods. Empty if links are not judged, or some pod has no
	// address yet.
	Pairs []Pair
	// Actions of the trial's faults, as its shaping backend carries them out, and their outcomes by
	// ID.
	Actions []timeline.Action
	Records map[string]protocol.ActionRecord
	// Marks of lines of output, in order of time, and the actions whose marks have not come.
	Marks []timeline.Mark
	Later []timeline.Action
	// RowWindows are the parts of the run that the rows of a script are about. Nil: all rows are
	// about the whole run.
	RowWindows []results.RowWindow
	// Injections are the occurrences of faults that Chaos Mesh carries out.
	Injections []Injection
	// Clients are the reports of the client pods, Merged is their merged report, and Measured has
	// the answers of Prometheus.
	Clients  []results.Client
	Merged   results.Merged
	Measured []results.Measurement
	// Result is the written record of the run.
	Result *results.Trial
}

// Pod is one pod of the run.
type Pod struct {
	Name, Region string
	// Shard of a replica. Client is nil for a replica.
	Shard  int
	Client *placement.Client
	// Part, Node and Images (IDs, comma-separated) of the pod; empty: there is no such pod.
	Part, Node, Images string
	// Containers that run its processes, by the plan. Empty: the plan is not known.
	Containers []string
	// AgentImage is the ID of the agent's image.
	AgentImage string
	// Restarts of its containers by the kubelet, and how many of these restarts faults explain.
	Restarts, PlannedRestarts int32
	// Restarted describes the container that was restarted most: its name, image and exit code;
	// empty: none was.
	Restarted string
	// OutOfMemory is a container that the kernel killed last since it exceeded its memory limit;
	// empty: none.
	OutOfMemory string
	// Report is the last report of the pod's agent, received at the instant ReportedAt; nil: there
	// is none.
	Report     *protocol.Report
	ReportedAt time.Time
	// AgentInterrupted: as planned, the agent does not live through the run, and facts that only it
	// knew are lost. Interrupted: this is planned for some container, so that the pod's use is
	// unknown for a part of the window.
	AgentInterrupted, Interrupted bool
	// Exists: there is such a pod. HasAddress: it has been given one. Failed: none of its
	// containers will run again; FailedWhy is the cluster's reason.
	Exists, HasAddress, Failed bool
	FailedWhy                  string
	// Evicted says who ended the pod for the cluster's own needs, and why; empty: it was not
	// evicted.
	Evicted string
	// Deleting: the cluster ends the pod, since a user, the cluster or a fault deleted or evicted
	// it.
	Deleting bool
	// Terminating: as planned, the pod is ending or gone, and its replacement does not exist yet.
	// Refused says why a pod of this name has no place in the trial; empty: it has a place.
	Terminating bool
	Refused     string
	// Incarnations are the pods that have had this name since t = 0. Empty unless faults replace
	// pods.
	Incarnations []Incarnation
}

// Network is the last report of the pod's agent about its links, or nil.
func (p *Pod) Network() *protocol.NetworkReport {
	if p.Report == nil {
		return nil
	}
	return p.Report.Network
}

// Incarnation is one of the pods that have had a name. Times are relative to t = 0, by the
// manager's clock; 0: not yet.
type Incarnation struct {
	UID types.UID `json:"uid"`
	// CreatedAt is when the manager first saw a pod in the place of another. ReadyAt is when its
	// agent first reported its replica as ready.
	CreatedAt time.Duration `json:"came,omitempty"`
	ReadyAt   time.Duration `json:"ready,omitempty"`
	// DeletedAt is when the manager saw that the pod was gone.
	DeletedAt time.Duration `json:"gone,omitempty"`
	// Node is the pod's node, and Last the last report of its agent, once the pod is gone. Last is
	// nil if the manager that saw the pod's end had no report.
	Node string           `json:"node,omitempty"`
	Last *protocol.Report `json:"last,omitempty"`
}

// LastDeleted is when the manager saw that the last predecessor was gone.
func (p *Pod) LastDeleted() (gone time.Duration) {
	for _, m := range p.Incarnations {
		gone = max(gone, m.DeletedAt)
	}
	return gone
}

// Injection is one occurrence of a fault that Chaos Mesh carries out.
type Injection struct {
	Fault       *v1alpha1.Fault
	Time        int
	Pods, Peers []string
	// Confirmed is when the manager saw the fault in force, and Ended when it asked for the end,
	// relative to t = 0. Nil: that did not happen.
	Confirmed, Ended *time.Duration
}

// Separates reports whether two pods are on the two sides of the fault.
func (i *Injection) Separates(a, b string) bool {
	here, there := slices.Contains(i.Pods, a), slices.Contains(i.Pods, b)
	if len(i.Peers) == 0 {
		return here || there
	}
	return here && slices.Contains(i.Peers, b) || there && slices.Contains(i.Peers, a)
}

// Spec of the trial, with every tolerance set.
func (o *Observation) Spec() *v1alpha1.TrialSpec { return &o.Trial.Spec }

// Windows of the run.
func (o *Observation) Windows() timeline.Windows { return timeline.FromSchedule(o.Trial.Spec.Schedule) }

// Shaped reports whether a backend shapes the trial's links.
func (o *Observation) Shaped() bool {
	return o.Trial.Status.Network != nil && o.Trial.Status.Network.Backend != "" && len(o.Pairs) > 0
}

// Pod of a name, or nil.
func (o *Observation) Pod(name string) *Pod {
	for i := range o.Pods {
		if o.Pods[i].Name == name {
			return &o.Pods[i]
		}
	}
	return nil
}

// LongestRoundTrip that is asked of any pair.
func (o *Observation) LongestRoundTrip() time.Duration { return LongestRoundTrip(o.Pairs) }

// LongestRoundTrip that is asked of any of the pairs, jitter included.
func LongestRoundTrip(pairs []Pair) time.Duration {
	var longest time.Duration
	for _, p := range pairs {
		longest = max(longest, p.Out.Delay+p.Out.Jitter+p.In.Delay+p.In.Jitter)
	}
	return longest
}

// AgentActions are the actions that a pod's own agent carries out. A separate agent resets
// machines, and the manager takes care of Chaos Mesh.
func AgentActions(actions []timeline.Action, pod string) []timeline.Action {
	return slices.DeleteFunc(timeline.OfPod(actions, pod), func(a timeline.Action) bool { return a.Kind.By() != timeline.PodAgent })
}

// AgentActs reports whether the pod's own agent carries out a fault. The results of its probes are
// then counted separately.
func (o *Observation) AgentActs(pod string) bool { return len(AgentActions(o.Actions, pod)) > 0 }

// Faulted has the pods that a fault stopped or killed, and the pairs whose links a fault changed.
type Faulted struct {
	pods  map[string]bool
	pairs map[[2]string]bool
}

// Pair reports whether a fault touched either end of a pair or the links between them.
func (f Faulted) Pair(a, b string) bool {
	return f.pods[a] || f.pods[b] || f.pairs[[2]string{a, b}] || f.pairs[[2]string{b, a}]
}

// Faulted returns the pods and links that some fault of the trial touched, at any time. An agent
// leaves the effects of its own faults out of its canaries. It does not know the faults of others.
func (o *Observation) Faulted() Faulted {
	f := Faulted{map[string]bool{}, map[[2]string]bool{}}
	for _, a := range o.Actions {
		if o.Records[a.ID].Skipped {
			continue
		}
		if a.Kind.Silences() {
			f.pods[a.Pod] = true
		}
		for _, peer := range a.LinkedTo() {
			f.pairs[[2]string{a.Pod, peer}] = true
		}
	}
	return f
}

// PairsOf joins the request for every two pods with the measurements of their agents. The function
// asked returns the request for a pod's links. Many pods have very many pairs, so PairsOf allocates
// nothing else for each pod.
func PairsOf(pods []Pod, asked func(pod string) *protocol.Network) []Pair {
	at := make(map[string]int, len(pods))
	for i := range pods {
		at[pods[i].Name] = i
	}
	said := make([]*protocol.LinkReport, len(pods)*len(pods)) // by the reporting pod, then by the pod at the other end
	for i := range pods {
		n := pods[i].Network()
		if n == nil {
			continue
		}
		for k := range n.Links {
			if j, known := at[n.Links[k].Peer]; known {
				said[i*len(pods)+j] = &n.Links[k]
			}
		}
	}
	pairs, links := make([]Pair, 0, len(pods)*max(0, len(pods)-1)/2), make([]*protocol.NetworkPeer, len(pods))
	for i := range pods {
		a := &pods[i]
		clear(links)
		for p := range asked(a.Name).All() {
			if j, known := at[p.Name]; known {
				links[j] = p
			}
		}
		for j := i + 1; j < len(pods); j++ {
			b := &pods[j]
			p := Pair{A: a.Name, B: b.Name, RegionA: a.Region, RegionB: b.Region, ByA: said[i*len(pods)+j], ByB: said[j*len(pods)+i]}
			if links[j] != nil {
				p.Out, p.In = links[j].Out, links[j].In
			}
			pairs = append(pairs, p)
		}
	}
	return pairs
}
