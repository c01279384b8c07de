package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/engine"
)

// settle marks a pod as over when its containers are over, if they run only once.
func (p *pod) settle() {
	if p.spec.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return
	}
	p.mu.Lock()
	phase := corev1.PodSucceeded
	for _, s := range p.mains {
		switch t := s.State.Terminated; {
		case t == nil:
			p.mu.Unlock()
			return
		case t.ExitCode != 0:
			phase = corev1.PodFailed
		}
	}
	p.phase = phase
	p.mu.Unlock()
	p.publish()
}

// conclude writes how a deleted pod ended.
func (p *pod) conclude() {
	p.mu.Lock()
	if p.phase != corev1.PodSucceeded && p.phase != corev1.PodFailed {
		p.phase = corev1.PodSucceeded
		for _, s := range p.mains {
			if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
				p.phase = corev1.PodFailed
			}
		}
	}
	p.mu.Unlock()
	p.publish()
}

// status returns the status of a container. The caller holds p.mu.
func (p *pod) status(name string) *corev1.ContainerStatus {
	for _, all := range [][]corev1.ContainerStatus{p.inits, p.mains} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return &corev1.ContainerStatus{}
}

func (p *pod) note(container string, change func(*corev1.ContainerStatus)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.status(container))
}

// publish writes the pod's status.
func (p *pod) publish() {
	p.mu.Lock()
	status := corev1.PodStatus{
		Phase: p.phase, Message: p.failure, HostIP: gateway.String(), PodIP: p.ip.String(), PodIPs: []corev1.PodIP{{IP: p.ip.String()}},
		InitContainerStatuses: slices.Clone(p.inits), ContainerStatuses: slices.Clone(p.mains),
	}
	p.mu.Unlock()
	if p.network == "" {
		status.PodIP, status.PodIPs = "", nil
	}
	if p.failure != "" {
		status.Reason = engine.PodNotRunnable
	}
	ready := corev1.ConditionFalse
	if status.Phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready},
	}
	if err := p.m.writeStatus(p.spec, status); err != nil {
		p.m.Log.Error(err, "Failed to write a pod's status", "pod", p.spec.Name)
	}
}

// statuses returns the statuses of containers that have not started.
func statuses(all []corev1.Container) (out []corev1.ContainerStatus) {
	for i := range all {
		out = append(out, corev1.ContainerStatus{
			Name: all[i].Name, Image: all[i].Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
		})
	}
	return out
}
