package trial

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/chaosmesh"
	"assay.dev/assay/operator/internal/protocol"
)

// restartSlack is how long after the end of a fault, or its beginning, the kubelet may still count restarts to it.
const restartSlack = 5 * time.Second

// plannedRestarts is how often the kubelet may have restarted containers of a pod until now, by faults that do that.
func (s *scope) plannedRestarts(p *corev1.Pod, name string) int32 {
	n := 0
	for _, t := range s.upheavals(name, chaosmesh.Restarts) {
		lasted := s.sinceZero() - t.from
		begun := s.zero().Add(t.from)
		if lasted < 0 || begun.Before(p.CreationTimestamp.Add(-time.Second)) { // of the pod before
			continue
		}
		if t.to != 0 {
			lasted = min(lasted, t.to-t.from)
		}
		n += s.restartedContainers(p, t) * chaosmesh.RestartLimit(t.fault, lasted+restartSlack)
	}
	return int32(n)
}

// restartedContainers counts the pod's containers that a fault restarts.
func (s *scope) restartedContainers(p *corev1.Pod, t *chaosTime) int {
	if !chaosmesh.RestartsAgent(t.fault) {
		if names := chaosmesh.RestartedContainers(t.fault); len(names) > 0 {
			return len(names)
		}
		return len(s.system.Replicas.Containers)
	}
	agents := slices.DeleteFunc(slices.Clone(p.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	return len(p.Spec.Containers) + len(agents)
}

// restartsOf are the times in which the containers of a pod may be restarted, for its agent.
func (s *scope) restartsOf(pod string) []protocol.Restart {
	var out []protocol.Restart
	for _, t := range s.upheavals(pod, chaosmesh.Restarts) {
		r := protocol.Restart{From: t.from, Until: t.to}
		if chaosmesh.OneShot(t.fault) {
			r.Until = t.from + 1 // they are to come back at once
		}
		out = append(out, r)
	}
	return out
}
