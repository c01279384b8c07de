// Package timeline describes the faults of a trial for agents, as dated actions of single pods.
// Package fault makes the actions. All times are relative to t = 0, the start of the measurement
// window:
//
//	-warmUp           0                    measure        +coolDown      +drain
//	   |-- warm-up ---|-- window ----------|-- cool-down --|-- drain ------|
//	   released                                            last request    over
//
// A fault may happen several times (repeat). A partition may come and go within one time (flap).
// Each begin and each end is an action of every pod that takes part. A fault that lasts to the end
// of the trial has no end here: the agents restore everything when they finish.
package timeline

import (
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
)

// Windows divide a run.
type Windows struct {
	WarmUp   time.Duration `json:"warmUp"`
	Measure  time.Duration `json:"measure"`
	CoolDown time.Duration `json:"coolDown"`
	Drain    time.Duration `json:"drain"`
}

// FromSchedule returns the windows of a schedule.
func FromSchedule(s v1alpha1.Schedule) Windows {
	return Windows{WarmUp: s.WarmUp.OrZero(), Measure: s.Measure.OrZero(), CoolDown: s.CoolDown.OrZero(), Drain: s.Drain.OrZero()}
}

// ResultsGrace is how long after the drain the results may arrive.
const ResultsGrace = time.Minute

// LastRequest is when the last request may be sent, relative to t = 0.
func (w Windows) LastRequest() time.Duration { return w.Measure + w.CoolDown }

// End is when the drain is over, relative to t = 0.
func (w Windows) End() time.Duration { return w.Measure + w.CoolDown + w.Drain }

// Action is one thing that one pod's agent does at one instant.
type Action struct {
	// ID is unique in the trial: "<fault>/<time, from 1>/<kind in lower case>/<pod>".
	ID string `json:"id"`
	// Fault is the name of the fault that the action belongs to.
	Fault string `json:"fault"`
	// Time says which time of the fault the action belongs to, from 1. A fault may repeat or flap.
	Time int `json:"time"`
	// Pod that acts.
	Pod string `json:"pod"`
	// Kind of the action.
	Kind Kind `json:"kind"`
	// At is the planned instant, relative to t = 0.
	At time.Duration `json:"at"`
	// After is the mark that the action counts from, instead of t = 0. Until the mark has come, At
	// is relative to the mark (see Dated). MarkAt is the mark's instant, relative to t = 0.
	After  *After        `json:"after,omitempty"`
	MarkAt time.Duration `json:"markAt,omitempty"`
	// Ends is the ID of the action that this one ends.
	Ends string `json:"ends,omitempty"`
	// Role: the pod acts only if it has this role of its System shortly before At. An end of such
	// an action acts only if the action did.
	Role string `json:"role,omitempty"`
	// LoseDisk also empties the volumes of medium Disk and PersistentVolumeClaim (Kill).
	LoseDisk bool `json:"loseDisk,omitempty"`
	// WithoutSilence: the agent does not drop the pod's packets before its processes die, since it
	// may not change the pod's network. So the pod's kernel tells the peers that the connections
	// are closed (Kill, Revive).
	WithoutSilence bool `json:"withoutSilence,omitempty"`
	// Out lists the pods that get no packets, In the pods whose packets are lost (Cut).
	Out []string `json:"out,omitempty"`
	In  []string `json:"in,omitempty"`
	// Links that become worse (Degrade).
	Links []LinkChange `json:"links,omitempty"`
	// Object of Chaos Mesh for the action, by kind and action: "NetworkChaos partition" (Inject,
	// Recover).
	Object string `json:"object,omitempty"`
	// Peers are the pods at the other end (Inject).
	Peers []string `json:"peers,omitempty"`
	// Command to run, with its timeout (Execute). Only the agent of the pod gets it, since
	// templates of commands can use addresses.
	Command []string      `json:"command,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// Profiler that samples the pod (Sample).
	Profiler *Profiler `json:"profiler,omitempty"`
}

// Profiler samples the processes of a pod.
type Profiler struct {
	Tool v1alpha1.ProfilerTool `json:"tool"`
	// For is how long it samples.
	For time.Duration `json:"for"`
	// Host, Port and Path are the address of a program that samples itself.
	Host string `json:"host,omitempty"`
	Port int32  `json:"port,omitempty"`
	Path string `json:"path,omitempty"`
	// Program is that of another profiler. Frequency is how often it samples per second.
	Program   string `json:"program,omitempty"`
	Frequency int32  `json:"frequency,omitempty"`
}

// LinkedTo returns the pods at the other ends of the affected links. It may return a pod twice.
func (a Action) LinkedTo() []string {
	names := slices.Concat(a.Out, a.In)
	for _, l := range a.Links {
		names = append(names, l.Peer)
	}
	return names
}

// LinkChange makes one direction of the link to a peer worse. The actions of both ends have each
// directed link. The trial's backend decides which end shapes it: see InForce.
type LinkChange struct {
	Peer string `json:"peer"`
	// Side: Egress for the link to the peer, Ingress for the link from it.
	Side shaping.Side `json:"side"`
	// Worse is the effect that network.Add adds to the link.
	Worse shaping.Link `json:"worse"`
}

// InForce returns the actions for a backend that acts on the given side. It leaves out link changes
// of the other side, and actions that consist only of those. Without a backend (side "") it leaves
// out all changes of links.
func InForce(actions []Action, side shaping.Side) []Action {
	out := make([]Action, 0, len(actions))
	empty := map[string]bool{}
	for _, a := range actions {
		if a.Kind == Degrade {
			var links []LinkChange
			for _, l := range a.Links {
				if l.Side == side {
					links = append(links, l)
				}
			}
			if a.Links = links; len(links) == 0 {
				empty[a.ID] = true
				continue
			}
		}
		if empty[a.Ends] {
			continue
		}
		out = append(out, a)
	}
	return out
}

// OfPod returns the actions of one pod.
func OfPod(actions []Action, pod string) []Action {
	var out []Action
	for _, a := range actions {
		if a.Pod == pod {
			out = append(out, a)
		}
	}
	return out
}
