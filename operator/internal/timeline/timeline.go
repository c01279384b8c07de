// Package timeline turns the faults of a trial into dated actions of single pods.
//
// It is pure: no clock, no client, no randomness. All times are relative to t = 0, the start of the measurement window:
//
//	-warmUp           0                    measure        +coolDown      +drain
//	   |-- warm-up ---|-- window ----------|-- cool-down --|-- drain ------|
//	   released                                            last request    over
package timeline

import "time"

// Windows divide a run.
type Windows struct {
	WarmUp   time.Duration `json:"warmUp"`
	Measure  time.Duration `json:"measure"`
	CoolDown time.Duration `json:"coolDown"`
	Drain    time.Duration `json:"drain"`
}

// LastRequest is when the last request may be sent, relative to t = 0.
func (w Windows) LastRequest() time.Duration { return w.Measure + w.CoolDown }

// End is when the drain is over, relative to t = 0.
func (w Windows) End() time.Duration { return w.Measure + w.CoolDown + w.Drain }

// Kind is what an action does to its pod.
type Kind string

const (
	// Kill drops every packet of the pod, then kills its processes with SIGKILL and keeps them down.
	Kill Kind = "Kill"
	// Revive lets packets pass again and starts the processes that a Kill ended.
	Revive Kind = "Revive"
)

// Action is one thing that one pod's agent does at one instant.
type Action struct {
	// ID is unique in the trial: "<fault>/<kill|revive>/<pod>".
	ID string `json:"id"`
	// Fault is the name of the fault that the action belongs to.
	Fault string `json:"fault"`
	// Pod that acts.
	Pod string `json:"pod"`
	// Kind of the action.
	Kind Kind `json:"kind"`
	// At is the planned instant, relative to t = 0.
	At time.Duration `json:"at"`
}
