package chaosmesh

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// State is the state that Chaos Mesh writes into an object's status.
type State struct {
	// Said: the status has content. Chaos Mesh writes it as soon as it has seen the object.
	Said bool
	// Selected: Chaos Mesh has chosen pods or containers.
	Selected bool
	// Injected: the fault is in force in all chosen pods or containers.
	Injected bool
	// Recovered: the fault was in force and was undone in all of them. RecoveredAt is when the last
	// was undone, by Chaos Mesh's clock in whole seconds.
	Recovered   bool
	RecoveredAt time.Time
	// Pods are the chosen pods, in order. Peers are those at the other end.
	Pods, Peers []string
	// Failure is the last message of Chaos Mesh about a failed attempt. Empty: no attempt failed,
	// or a later one succeeded.
	Failure string
}

// status has the fields of an object's status that are read. The id of a record is
// "<namespace>/<pod>" or "<namespace>/<pod>/<container>".
type status struct {
	Conditions []struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	} `json:"conditions"`
	Experiment struct {
		Records []record `json:"containerRecords"`
	} `json:"experiment"`
}

type record struct {
	ID          string `json:"id"`
	SelectorKey string `json:"selectorKey"`
	Events      []struct {
		Type      string      `json:"type"`
		Operation string      `json:"operation"`
		Message   string      `json:"message"`
		Timestamp metav1.Time `json:"timestamp"`
	} `json:"events"`
}

// failure returns the message of the record's last event, if that event is a failure.
func (r record) failure() string {
	if n := len(r.Events); n > 0 && r.Events[n-1].Type == "Failed" {
		return fmt.Sprintf("Chaos Mesh says that to %s %s failed: %s", strings.ToLower(r.Events[n-1].Operation), r.ID, r.Events[n-1].Message)
	}
	return ""
}

// recovered returns when the record's pod or container was recovered. It is zero if the last event
// is another one.
func (r record) recovered() time.Time {
	if n := len(r.Events); n > 0 && r.Events[n-1].Type == "Succeeded" && r.Events[n-1].Operation == "Recover" {
		return r.Events[n-1].Timestamp.Time
	}
	return time.Time{}
}

// Read reads the state of an object.
func Read(u *unstructured.Unstructured) (State, error) {
	raw, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil {
		return State{}, fmt.Errorf("read the status of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	st := status{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &st); err != nil {
		return State{}, fmt.Errorf("read the status of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	out := State{Said: len(st.Conditions) > 0}
	for _, c := range st.Conditions {
		is := c.Status == "True"
		switch c.Type {
		case "Selected":
			out.Selected = is
		case "AllInjected":
			out.Injected = is
		}
	}
	// The condition AllRecovered is also true before anything was injected.
	out.Recovered = len(st.Experiment.Records) > 0
	for _, r := range st.Experiment.Records {
		parts := strings.Split(r.ID, "/")
		if len(parts) < 2 {
			return State{}, fmt.Errorf("read the status of %s %s: record %q names no pod", u.GetKind(), u.GetName(), r.ID)
		}
		if r.SelectorKey == ".Target" {
			out.Peers = append(out.Peers, parts[1])
		} else {
			out.Pods = append(out.Pods, parts[1])
		}
		if out.Failure == "" {
			out.Failure = r.failure()
		}
		at := r.recovered()
		out.Recovered = out.Recovered && !at.IsZero()
		if at.After(out.RecoveredAt) {
			out.RecoveredAt = at
		}
	}
	if !out.Recovered {
		out.RecoveredAt = time.Time{}
	}
	out.Pods, out.Peers = set(out.Pods), set(out.Peers)
	return out, nil
}

// set sorts names and removes repetitions: a pod of two containers has two records.
func set(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// WrongPods names the pods that Chaos Mesh chose and the fault did not mean, and the reverse. It is
// empty if both are the same.
func (s State) WrongPods(pods, peers []string) string {
	for _, list := range []struct {
		what      string
		got, want []string
	}{{"the target", s.Pods, pods}, {"the peers", s.Peers, peers}} {
		if want := set(slices.Clone(list.want)); !slices.Equal(list.got, want) {
			return fmt.Sprintf("Chaos Mesh chose %v for %s, which is %v", list.got, list.what, want)
		}
	}
	return ""
}

// Explain adds a hint to a message of Chaos Mesh: the reason for a failure of its daemon is only in
// the daemon's log.
func Explain(message string) string {
	if strings.Contains(message, "unable to set tcs") {
		return message + " (the nodes' kernels must have what this needs: sch_netem for delay, loss, duplicate and corrupt; sch_prio and sch_sfq for bandwidth with peers)"
	}
	return message
}
