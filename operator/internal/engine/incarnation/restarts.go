package incarnation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/node/protocol"
)

// restartSlack is how long after the begin or the end of a fault the kubelet may still restart
// containers because of it.
const restartSlack = 5 * time.Second

// PlannedRestarts is how often the kubelet may have restarted containers of a pod until now because
// of faults.
func (r *History) PlannedRestarts(p *corev1.Pod, name string) int32 {
	n := 0
	for _, t := range r.disruptions(name, (*fault.Occurrence).Restarts) {
		lasted := r.sinceZero() - t.From
		begun := r.zero().Add(t.From)
		if lasted < 0 || begun.Before(p.CreationTimestamp.Add(-time.Second)) { // the fault hit the predecessor
			continue
		}
		if t.To != 0 {
			lasted = min(lasted, t.To-t.From)
		}
		n += r.restartedContainers(p, t) * chaosmesh.RestartLimit(t.Fault, lasted+restartSlack)
	}
	return int32(n)
}

// restartedContainers counts the pod's containers that a fault restarts.
func (r *History) restartedContainers(p *corev1.Pod, t *fault.Occurrence) int {
	if !t.RestartsAgent() {
		if names := chaosmesh.RestartedContainers(t.Fault); len(names) > 0 {
			return len(names)
		}
		return len(render.ContainersOf(r.System, t.Fault))
	}
	agents := slices.DeleteFunc(slices.Clone(p.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	return len(p.Spec.Containers) + len(agents)
}

// AgentRestartTimes tells a pod's agent when faults may restart the containers of the pod.
func (r *History) AgentRestartTimes(pod string) []protocol.Restart {
	var out []protocol.Restart
	for _, t := range r.disruptions(pod, (*fault.Occurrence).Restarts) {
		r := protocol.Restart{From: t.From, Until: t.To}
		if chaosmesh.OneShot(t.Fault) {
			r.Until = t.From + 1 // the containers are to come back at once
		}
		out = append(out, r)
	}
	return out
}
