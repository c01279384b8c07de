// Package timeline is how agents see the faults of a trial: as dated actions of single pods.
// Package fault makes them. All times are relative to t = 0, the start of the measurement window:
//
//	-warmUp           0                    measure        +coolDown      +drain
//	   |-- warm-up ---|-- window ----------|-- cool-down --|-- drain ------|
//	   released                                            last request    over
//
// A fault may happen several times (repeat), a partition may come and go within one time (flap).
// Each beginning is an action of every pod that takes part in it, and so is each end. A fault that
// lasts to the end of the trial has no end here: the agents put everything back when they finish.
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

// ResultsGrace is how long after the drain the results may take to arrive.
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
	// Time of the fault that the action belongs to, from 1: a fault may repeat or flap.
	Time int `json:"time"`
	// Pod that acts.
	Pod string `json:"pod"`
	// Kind of the action.
	Kind Kind `json:"kind"`
	// At is the planned instant, relative to t = 0.
	At time.Duration `json:"at"`
	// After is the mark that the action counts from, in place of t = 0. Until the mark has come, At
	// is relative to it (see Dated). MarkAt is the mark's instant then, relative to t = 0.
	After  *After        `json:"after,omitempty"`
	MarkAt time.Duration `json:"markAt,omitempty"`
	// Ends is the ID of the action that this one ends.
	Ends string `json:"ends,omitempty"`
	// Role: the pod acts only if it has this role of its System shortly before At. An action that
	// ends such a one acts if that one did.
	Role string `json:"role,omitempty"`
	// LoseDisk empties the volumes of medium Disk and PersistentVolumeClaim too (Kill).
	LoseDisk bool `json:"loseDisk,omitempty"`
	// WithoutSilence: the pod's packets are not dropped before its processes die, nor let through
	// again after, since its agent may not touch its network. So its kernel tells the peers that
	// the connections are closed (Kill, Revive).
	WithoutSilence bool `json:"withoutSilence,omitempty"`
	// Out and In are the pods whose packets are lost, to and from them (Cut).
	Out []string `json:"out,omitempty"`
	In  []string `json:"in,omitempty"`
	// Links that become worse (Degrade).
	Links []LinkChange `json:"links,omitempty"`
	// Object of Chaos Mesh that does it, by kind and action: "NetworkChaos partition" (Inject,
	// Recover).
	Object string `json:"object,omitempty"`
	// Peers are the pods at the other end (Inject).
	Peers []string `json:"peers,omitempty"`
	// Command to run, with its timeout (Execute). Only the agent of the pod is told: the templates
	// of commands see addresses.
	Command []string      `json:"command,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// Profiler that samples the pod (Sample).
	Profiler *Profiler `json:"profiler,omitempty"`
}

// Profiler samples the processes of a pod.
type Profiler struct {
	Tool v1alpha1.ProfilerTool `json:"tool"`
	// For how long.
	For time.Duration `json:"for"`
	// Host, Port and Path are where a program is asked that samples itself.
	Host string `json:"host,omitempty"`
	Port int32  `json:"port,omitempty"`
	Path string `json:"path,omitempty"`
	// Program of the others, and how often a second it samples.
	Program   string `json:"program,omitempty"`
	Frequency int32  `json:"frequency,omitempty"`
}

// LinkedTo are the pods at the other ends of the links that the action touches, some of them twice.
func (a Action) LinkedTo() []string {
	names := slices.Concat(a.Out, a.In)
	for _, l := range a.Links {
		names = append(names, l.Peer)
	}
	return names
}

// LinkChange makes one direction of the link to a peer worse. Each directed link is in the actions
// of both its ends; which of them shapes it depends on the trial's backend: see InForce.
type LinkChange struct {
	Peer string `json:"peer"`
	// Side: Egress, the link to the peer; Ingress, the link from it.
	Side shaping.Side `json:"side"`
	// Worse is what is added, as network.Add does.
	Worse shaping.Link `json:"worse"`
}

// InForce leaves out the doing of the other end of each link, for a backend that acts on the given
// side. These are link changes of the other side, and actions that consist of nothing else. Without
// a backend (side "") there are no changes of links.
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
