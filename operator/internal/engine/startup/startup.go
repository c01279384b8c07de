// Package startup decides which pods of a trial may run their processes. It also says what the
// trial waits for before its load can begin: replicas that are not ready, and steps that are not
// done. It is pure. Package engine reads the agents' reports, and keeps the deadlines.
package startup

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Reports returns the last report of a pod's agent, or nil.
type Reports func(pod string) *protocol.Report

// Group is a number of pods that start together.
type Group struct {
	Pods []string
	// OneByOne: each pod starts when the pod before it is ready.
	OneByOne bool
	// Timeout is how long one pod may take to be ready.
	Timeout time.Duration
}

// GroupOf returns the group of pods that start as a spec says.
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

// Order lists groups that start one after another. Each group starts when the group before it is
// ready.
type Order []Group

// OrderOf returns the order of a System: components that start before the replicas, the replicas,
// and components that start after them. The function pods returns the pods of a component. For the
// empty string it returns the pods of the replicas.
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

// Started returns the pods of all groups that must run now. waiting names a pod that is not ready.
// Empty: all pods are ready.
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

// StopGrace is how long the processes of replicas and components may take to end. All are ended
// together, so it is the longest grace of any of them.
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

// Started returns the pods of the group that must run now. waiting names a pod that is not ready.
// Empty: all pods of the group are ready.
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

// unready says why a pod is not ready. Empty: it is ready.
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
// yet, failed where it failed. Both are empty if it is done in all pods.
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

// stepSlack is how long after its timeout a step may take to report its end.
const stepSlack = 10 * time.Second

// reportSlack is how long the reports of all steps together may take to arrive.
const reportSlack = time.Minute

// StepsLimit is how long all steps together may take.
func StepsLimit(steps []v1alpha1.Step) time.Duration {
	limit := reportSlack
	for _, s := range steps {
		limit += s.Timeout.OrZero() + stepSlack
	}
	return limit
}
