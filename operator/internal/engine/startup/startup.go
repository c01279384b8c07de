// Package startup says which pods of a trial may run their processes yet. It also says what the
// trial waits for until its load can begin: replicas that are not ready, and steps that are not
// done. It is pure; package trial reads the agents' reports, and keeps the deadlines.
package startup

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Reports are what the agents said last, by pod; nil: nothing.
type Reports func(pod string) *protocol.Report

// Group is pods that start together.
type Group struct {
	Pods []string
	// OneByOne: each starts when the one before is ready.
	OneByOne bool
	// Timeout is how long one pod may take to be ready.
	Timeout time.Duration
}

// GroupOf are pods that run as a System says.
func GroupOf(pods []string, spec *v1alpha1.ReplicasSpec) Group {
	return Group{Pods: pods, OneByOne: spec.Start == v1alpha1.StartOneByOne, Timeout: spec.ReadyTimeout.OrZero()}
}

// Limit is how long the whole group may take to be ready.
func (g Group) Limit() time.Duration {
	if g.OneByOne {
		return g.Timeout * time.Duration(len(g.Pods))
	}
	return g.Timeout
}

// Order is groups that start one after another: each when the one before is ready.
type Order []Group

// OrderOf a System: the components before the replicas, the replicas, and the components after
// them. pods names the pods of the replicas, for "", and of a component.
func OrderOf(system *v1alpha1.SystemSpec, pods func(component string) []string) Order {
	var before, after Order
	for i := range system.Components {
		c := &system.Components[i]
		group := GroupOf(pods(c.Name), &c.ReplicasSpec)
		if c.Order == v1alpha1.OrderAfterReplicas {
			after = append(after, group)
		} else {
			before = append(before, group)
		}
	}
	return slices.Concat(before, Order{GroupOf(pods(""), &system.Replicas)}, after)
}

// Limit is how long all groups together may take to be ready.
func (o Order) Limit() (limit time.Duration) {
	for _, g := range o {
		limit += g.Limit()
	}
	return limit
}

// Started are the pods of all groups that must run now. waiting says which of them is not ready;
// empty: all pods are.
func (o Order) Started(reports Reports) (started map[string]bool, waiting string) {
	started = map[string]bool{}
	for _, g := range o {
		var now map[string]bool
		now, waiting = g.Started(reports)
		maps.Copy(started, now)
		if waiting != "" {
			break
		}
	}
	return started, waiting
}

// StopGrace is how long the processes of replicas and components have to end: the longest that any
// of them has, since they are ended together.
func StopGrace(system *v1alpha1.SystemSpec) (grace time.Duration) {
	if s := system.Replicas.Stop; s != nil {
		grace = s.Grace.OrZero()
	}
	for _, c := range system.Components {
		if c.Stop != nil {
			grace = max(grace, c.Stop.Grace.OrZero())
		}
	}
	return grace
}

// Started are the pods of the group that must run now. waiting says which of them is not ready;
// empty: all pods of the group are.
func (g Group) Started(reports Reports) (started map[string]bool, waiting string) {
	started = map[string]bool{}
	for _, pod := range g.Pods {
		if g.OneByOne && waiting != "" {
			break
		}
		started[pod] = true
		if waiting == "" {
			waiting = unready(pod, reports(pod))
		}
	}
	return started, waiting
}

// unready says why a pod is not ready; empty: it is.
func unready(pod string, rep *protocol.Report) string {
	switch {
	case rep != nil && rep.Ready:
		return ""
	case rep != nil && rep.WaitingFor != "":
		return pod + " is not ready: " + rep.WaitingFor
	default:
		return pod + " is not ready"
	}
}

// Step looks at one step of the System in the pods that run it. waiting says where it is not done
// yet, failed where it failed. Both are empty when it is done in all of them.
func Step(step v1alpha1.Step, pods []string, reports Reports) (waiting, failed string) {
	for _, pod := range pods {
		result := reports(pod).Command(step.Name)
		if result == nil {
			return fmt.Sprintf("step %s runs in %s", step.Name, pod), ""
		}
		if lost := reports(pod).LostContainer(); result.Error != "" && lost != "" {
			return fmt.Sprintf("step %s could not run in container %s of %s, which was restarted: the cluster is about to say so", step.Name, lost, pod), ""
		}
		if result.Error != "" || result.ExitCode != 0 && step.Until != "AnyExit" {
			return "", fmt.Sprintf("Step %s failed in %s with exit code %d. %s It printed: %s", step.Name, pod, result.ExitCode, result.Error, result.Output)
		}
	}
	return "", ""
}

// stepSlack is how long after its timeout a step's end may take to be reported.
const stepSlack = 10 * time.Second

// reportSlack is how long the reports of all steps together may take to come in.
const reportSlack = time.Minute

// StepsLimit is how long steps may take together.
func StepsLimit(steps []v1alpha1.Step) time.Duration {
	limit := reportSlack
	for _, s := range steps {
		limit += s.Timeout.OrZero() + stepSlack
	}
	return limit
}
