package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/node/protocol"
)

// begin starts the pod as a kubelet does.
func (a *agent) begin() {
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid || a.over || !a.node.up || a.up {
		return
	}
	if pod.DeletionTimestamp != nil {
		a.terminate()
		return
	}
	now := pod.DeepCopy()
	now.Status.Phase, now.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.%d.%d.%d", a.number>>16&255, a.number>>8&255, a.number&255)
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(a.now)}}
	now.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "agent", ImageID: "sha256:agent", State: state}}
	for _, c := range pod.Spec.Containers {
		now.Status.ContainerStatuses = append(now.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, ImageID: "sha256:" + c.Name, State: state})
	}
	a.write(now)
	a.boot()
}

// boot starts the agent's container.
func (a *agent) boot() {
	a.up = true
	a.life++
	a.talking, a.failures = false, 0
	a.mem = remembered{begun: map[string]bool{}, incarnation: fmt.Sprintf("%d.%d", a.number, a.life)}
	a.tell()
	a.act()
}

// restartAgent crashes only the agent's container.
func (a *agent) restartAgent() {
	if !a.alive() {
		return
	}
	a.up = false
	a.life++
	a.after(a.between(100*time.Millisecond, 2*time.Second), func() {
		if !a.over && a.node.up && !a.up {
			a.boot()
			a.after(a.between(0, 3*time.Second), func() { a.count(true, false) })
		}
	})
}

// powerOff has the effects on the pod of a node that goes down.
func (a *agent) powerOff() {
	a.up = false
	a.life++
	a.dies(137, false)
}

// powerOn starts the pod's containers again. It fails the pod if its containers are never
// restarted.
func (a *agent) powerOn() {
	if a.over {
		return
	}
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid {
		return
	}
	if pod.Status.PodIP == "" {
		a.after(a.between(time.Second, 5*time.Second), a.begin)
		return
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		a.fails("Error", "The node was shut down.")
		return
	}
	a.process.launcher++
	a.process.lost = a.disk.launched != 0
	a.after(a.between(time.Second, 10*time.Second), func() {
		if a.over || !a.node.up || a.up {
			return
		}
		a.boot()
		// The kubelet reports the restarts in its next turn.
		a.after(a.between(200*time.Millisecond, 10*time.Second), func() { a.count(true, true) })
	})
}

// restartContainers ends all containers of the system with their launchers, as a runtime that loses
// its shims does. It fails a pod whose containers are never restarted.
func (a *agent) restartContainers() {
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid || !a.alive() {
		return
	}
	a.dies(137, false)
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		a.fails("Error", "")
		return
	}
	a.process.launcher++
	a.process.lost = a.disk.launched != 0
	a.tell()
	a.later(a.between(10*time.Millisecond, 3*time.Second), func() { a.count(false, true) })
}

// count reports restarts in the pod's status.
func (a *agent) count(agent, containers bool) {
	pod, _ := a.find("Pod", a.key).(*corev1.Pod)
	if pod == nil || pod.UID != a.uid || a.over || !a.node.reachable() {
		return
	}
	now := pod.DeepCopy()
	for i := range now.Status.InitContainerStatuses {
		if agent {
			now.Status.InitContainerStatuses[i].RestartCount++
		}
	}
	for i := range now.Status.ContainerStatuses {
		if containers {
			now.Status.ContainerStatuses[i].RestartCount++
		}
	}
	a.write(now)
}

// fails ends the pod for good, with the kubelet's reason: its containers are not restarted, or the
// kubelet evicts the pod.
func (a *agent) fails(reason, message string) {
	a.dies(137, false)
	a.up, a.over = false, true
	a.life++
	a.after(a.between(20*time.Millisecond, time.Second), func() {
		pod, _ := a.find("Pod", a.key).(*corev1.Pod)
		if pod == nil || pod.UID != a.uid {
			return
		}
		now := pod.DeepCopy()
		now.Status.Phase, now.Status.Reason, now.Status.Message = corev1.PodFailed, reason, message
		a.write(now)
		if pod.DeletionTimestamp != nil {
			a.gone()
		}
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "StatefulSet" {
			a.after(a.between(20*time.Millisecond, time.Second), func() {
				a.syncSet(types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name})
			})
		}
	})
}

// terminate ends a deleted pod as the kubelet does: processes get SIGTERM, the agent sends its last
// report, and the object is deleted.
func (a *agent) terminate() {
	if !a.node.reachable() {
		return // the kubelet ends the pod when the node is back
	}
	if a.over {
		a.gone()
		return
	}
	// The launcher gets the signal and kills its process, so the exit counts as requested.
	if a.process.state == protocol.StateRunning {
		a.dies(137, true)
		a.process.state, a.process.expected = protocol.StateHeld, true
		a.tell()
	}
	a.after(a.between(50*time.Millisecond, 3*time.Second), func() {
		if !a.node.reachable() {
			return
		}
		a.up, a.over = false, true
		a.life++
		pod, _ := a.find("Pod", a.key).(*corev1.Pod)
		if pod == nil || pod.UID != a.uid {
			a.removed()
			return
		}
		now := pod.DeepCopy()
		now.Status.Phase = corev1.PodSucceeded
		a.write(now)
		a.gone()
	})
}

// gone lets the kubelet delete the pod's object.
func (a *agent) gone() {
	a.after(a.between(20*time.Millisecond, 800*time.Millisecond), func() {
		zero := int64(0)
		if p := a.find("Pod", a.key); p != nil && p.GetUID() == a.uid && a.node.reachable() {
			_ = a.remove(p, client.DeleteOptions{GracePeriodSeconds: &zero})
		}
	})
}

// removed forgets the pod: its object is gone. If the kubelet has seen that, its processes are
// gone, too.
func (a *agent) removed() {
	if a.node.reachable() || !a.node.up {
		a.up, a.over = false, true
		a.life++
		a.dies(137, true)
		delete(a.node.pods, a.uid)
	}
}

// dies ends the process, if it runs.
func (a *agent) dies(code int, expected bool) {
	if a.process.state != protocol.StateRunning {
		return
	}
	a.process.state, a.process.code, a.process.expected = protocol.StateExited, code, expected
	a.process.exited = 0
	if d := a.disk.directive; d == nil || !d.Finish && d.Prepare == nil && (d.Client == nil || code != 0) {
		a.world.processDied(a)
	}
	if d := a.disk.directive; d != nil && d.Run != nil && a.disk.settled {
		if a.process.exited = a.now.Sub(a.zero()); a.process.exited == 0 {
			a.process.exited = 1
		}
	}
	if d := a.disk.directive; d != nil && (d.Finish || d.Prepare != nil || d.Client != nil && d.Run != nil) {
		a.process.expected = true
	}
}
