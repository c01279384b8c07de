package validity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/internal/experiment/render"
)

// Read copies the facts that the cluster has about the pod.
func (p *Pod) Read(pod *corev1.Pod) {
	p.Part, p.Node, p.Restarts, p.OutOfMemory = render.WhatOf(pod.Labels), pod.Spec.NodeName, podRestarts(pod), outOfMemory(pod)
	p.Images, p.AgentImage = podImages(pod)
	p.Restarted = restarted(pod)
	p.Exists, p.HasAddress = true, pod.Status.PodIP != ""
	p.Deleting = pod.DeletionTimestamp != nil
	p.Evicted = evicted(pod)
	p.Failed, p.FailedWhy = pod.Status.Phase == corev1.PodFailed, FailedWhy(pod)
}

// FailedWhy returns the cluster's reason and message for a failed pod, or else how the first failed
// container ended. Empty: the pod has not failed.
func FailedWhy(p *corev1.Pod) string {
	if p.Status.Phase != corev1.PodFailed {
		return ""
	}
	if text := strings.TrimSpace(p.Status.Reason + " " + p.Status.Message); text != "" {
		return text
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("container %s (image %s) ended with %s (%s).", c.Name, c.Image, exitText(int(t.ExitCode)), t.Reason)
		}
	}
	return "the cluster does not say why."
}

// evictions are the reasons in the status of a failed pod by which a kubelet says that it ended the
// pod for the node's sake.
var evictions = map[string]bool{"Evicted": true, "Preempting": true, "NodeShutdown": true, "Terminated": true}

// evicted says why the cluster ends a pod, or nothing. A component that evicts, preempts or gives
// up a pod first writes the condition DisruptionTarget (KEP-3329). Faults that delete pods do not
// write it.
func evicted(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return strings.TrimSuffix(c.Reason+": "+c.Message, ".")
		}
	}
	if p.Status.Phase == corev1.PodFailed && evictions[p.Status.Reason] {
		return strings.TrimSuffix(p.Status.Reason+": "+p.Status.Message, ".")
	}
	return ""
}

// PodEnded reports whether a pod is being deleted and no container of it runs. A kubelet reports
// such phases of a pod only when all of its containers have stopped for good (KEP-3329).
func PodEnded(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
}

// PodsEnding reports whether all of a trial's pods are being deleted, and some have not ended yet.
func PodsEnding(pods map[string]*corev1.Pod) bool {
	ending := false
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			return false
		}
		ending = ending || !PodEnded(p)
	}
	return ending
}

// lacking are the reasons for which a container waits that has no image.
var lacking = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}

// LacksImage reports whether a container of a pod waits for an image that it cannot have for now.
func LacksImage(p *corev1.Pod) bool {
	return p != nil && slices.ContainsFunc(append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...), func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && slices.Contains(lacking, c.State.Waiting.Reason)
	})
}

// PodWaiting words the cluster's reason for a pod that does not come up.
func PodWaiting(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return " (" + c.Message + ")"
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w, last := c.State.Waiting, c.LastTerminationState.Terminated; w != nil && last != nil && last.Message != "" {
			return fmt.Sprintf(" (%s: %s)", c.Name, strings.TrimSpace(last.Message))
		}
		if w := c.State.Waiting; w != nil && w.Message != "" {
			return fmt.Sprintf(" (%s: %s)", c.Name, w.Message)
		}
	}
	return ""
}

// podRestarts counts the restarts of the pod's containers.
func podRestarts(p *corev1.Pod) int32 {
	var n int32
	for _, c := range p.Status.InitContainerStatuses {
		n += c.RestartCount
	}
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// restarted describes the container that the kubelet restarted most. A webhook of the cluster may
// have added it.
func restarted(p *corev1.Pod) string {
	var most corev1.ContainerStatus
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c.RestartCount > most.RestartCount {
			most = c
		}
	}
	if most.Name == "" {
		return ""
	}
	text := fmt.Sprintf("container %s (image %s)", most.Name, most.Image)
	for _, last := range []*corev1.ContainerStateTerminated{most.LastTerminationState.Terminated, most.State.Terminated} {
		if last != nil {
			return fmt.Sprintf("%s, which ended with %s (%s)", text, exitText(int(last.ExitCode)), last.Reason)
		}
	}
	return text
}

// outOfMemory is a container of the system that was killed last since it exceeded its memory limit,
// or nothing.
func outOfMemory(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if !limited(p, c.Name) {
			continue // then its node was out of memory, no matter which program used it
		}
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if state.Terminated != nil && state.Terminated.Reason == "OOMKilled" {
				return c.Name
			}
		}
	}
	return ""
}

// nodeRanOut says why a container that the out-of-memory killer killed had not reached its limit:
// its node had less memory left. Empty: the reason is unknown. The runtime calls both cases
// OOMKilled (issue 12133 of containerd).
func (p *Pod) nodeRanOut(container string) string {
	if p.Report == nil {
		return ""
	}
	for _, c := range p.Report.Containers {
		if left := c.MemoryLeft; c.Name == container && left != nil && left.Node < left.Container {
			return fmt.Sprintf("shortly before, it could take %d MiB more by its limit, and the node had %d MiB left", left.Container>>20, left.Node>>20)
		}
	}
	return ""
}

// limited reports whether a container has a limit of memory.
func limited(p *corev1.Pod, container string) bool {
	i := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	return i >= 0 && !p.Spec.Containers[i].Resources.Limits.Memory().IsZero()
}

// podImages are the IDs of the images of the pod's containers, and of its agent.
func podImages(p *corev1.Pod) (ofContainers, ofAgent string) {
	var images []string
	for _, c := range p.Status.ContainerStatuses {
		images = append(images, c.ImageID)
	}
	for _, c := range p.Status.InitContainerStatuses { // all have the agent's image
		ofAgent = c.ImageID
	}
	return strings.Join(images, ","), ofAgent
}

// PodsDigest names the pods that take part, by their UIDs.
func PodsDigest(names []string, pods map[string]*corev1.Pod) string {
	h := sha256.New()
	for _, name := range names {
		if p := pods[name]; p != nil {
			fmt.Fprintf(h, "%s=%s\n", name, p.UID)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
