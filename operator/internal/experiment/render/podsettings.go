package render

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// PodSettings are the settings of a cluster's owner for the pods that Assay makes in namespaces of
// experiments. These are the pods of trials, the pods that pull images, and the pods that keep data
// sets. The zero value changes nothing.
type PodSettings struct {
	// Tolerations besides the toleration of the pod's pool.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClassName of the pods. Empty: the cluster's default.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// RuntimeClassName of the pods. Empty: the nodes' default. The scheduler counts the overhead of
	// a class, but Assay does not when it looks for room.
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// ImagePullSecrets in each namespace of experiments. They replace those of the namespace's
	// default account.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// TopologyKey is a label of nodes. Replicas of a trial, and its clients, are spread over the
	// values of the label as far as there is room. Empty: kubernetes.io/hostname.
	TopologyKey string `json:"topologyKey,omitempty"`
	// Users says who chooses users and groups; empty: Assay.
	Users Users `json:"users,omitempty"`
}

// Users says who chooses the users and groups of pods.
type Users string

const (
	// UsersOfAssay: 65532 for Systems that name no user, 65533 for agents, group 65532.
	UsersOfAssay Users = "Assay"
	// UsersOfNamespace: the cluster chooses from the range of the namespace, as OpenShift's SCC
	// restricted-v2 does. Systems that name a user keep it. Agents with a capability stay root.
	UsersOfNamespace Users = "Namespace"
)

// Check refuses settings that the API server would refuse in each pod of each trial.
func (s PodSettings) Check() error {
	for i, t := range s.Tolerations {
		if err := checkToleration(t); err != nil {
			return fmt.Errorf("tolerations[%d]: %w", i, err)
		}
	}
	for field, name := range map[string]string{"priorityClassName": s.PriorityClassName, "runtimeClassName": s.RuntimeClassName} {
		if wrong := validation.IsDNS1123Subdomain(name); name != "" && len(wrong) > 0 {
			return fmt.Errorf("%s %q: %s", field, name, strings.Join(wrong, "; "))
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if wrong := validation.IsDNS1123Subdomain(secret.Name); len(wrong) > 0 {
			return fmt.Errorf("imagePullSecrets[%d].name %q: %s", i, secret.Name, strings.Join(wrong, "; "))
		}
	}
	if wrong := validation.IsQualifiedName(s.TopologyKey); s.TopologyKey != "" && len(wrong) > 0 {
		return fmt.Errorf("topologyKey %q: %s", s.TopologyKey, strings.Join(wrong, "; "))
	}
	if !slices.Contains([]Users{"", UsersOfAssay, UsersOfNamespace}, s.Users) {
		return fmt.Errorf("users is %q; it must be %s or %s", s.Users, UsersOfAssay, UsersOfNamespace)
	}
	return nil
}

func checkToleration(t corev1.Toleration) error {
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case !exists && t.Operator != "" && t.Operator != corev1.TolerationOpEqual:
		return fmt.Errorf("operator is %q; it must be %s or %s", t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists)
	case exists && t.Value != "":
		return fmt.Errorf("value is %q; with the operator Exists it must be empty", t.Value)
	case t.Key == "" && !exists:
		return fmt.Errorf("key is empty; with the operator Equal it must name a taint")
	case !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect):
		return fmt.Errorf("effect is %q; it must be NoSchedule, PreferNoSchedule, NoExecute or empty", t.Effect)
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return fmt.Errorf("tolerationSeconds is for the effect NoExecute only")
	}
	return nil
}

// apply applies the settings to a pod that has all its containers.
func (s PodSettings) apply(pod *corev1.PodSpec) {
	pod.Tolerations = append(pod.Tolerations, s.Tolerations...)
	pod.PriorityClassName = s.PriorityClassName
	if s.RuntimeClassName != "" {
		pod.RuntimeClassName = ptr(s.RuntimeClassName)
	}
	pod.ImagePullSecrets = slices.Clone(s.ImagePullSecrets)
	for i := range pod.TopologySpreadConstraints {
		if s.TopologyKey != "" {
			pod.TopologySpreadConstraints[i].TopologyKey = s.TopologyKey
		}
	}
	if s.Users == UsersOfNamespace {
		leaveUsers(pod)
	}
}

// leaveUsers removes the users and groups that Assay chose from a pod. Then all containers have the
// first user of the namespace's range, and one group of volumes.
func leaveUsers(pod *corev1.PodSpec) {
	pod.SecurityContext.FSGroup = nil
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			c := containers[i].SecurityContext
			c.RunAsGroup = nil
			if c.RunAsUser != nil && (*c.RunAsUser == systemUID || *c.RunAsUser == plainUID) {
				c.RunAsUser, c.RunAsNonRoot = nil, ptr(true)
			}
		}
	}
}
