package chaosmesh

import (
	"encoding/json"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Kinds with rules of their own. The other kinds of a fault are alike: they act on containers for a
// time.
const (
	podChaos     = "PodChaos"
	networkChaos = "NetworkChaos"
	httpChaos    = "HTTPChaos"
)

// The actions of a PodChaos.
const (
	podKill       = "pod-kill"
	podFailure    = "pod-failure"
	containerKill = "container-kill"
)

// Action is the action that a fault's spec names, such as "pod-kill" or "partition". It is empty
// for kinds with one action only, and for faults of another kind.
func Action(f *v1alpha1.Fault) string {
	if f.ChaosMesh == nil {
		return ""
	}
	spec := struct {
		Action string `json:"action"`
	}{}
	if json.Unmarshal(f.ChaosMesh.Spec.Raw, &spec) != nil {
		return "" // Check reports the mistake
	}
	return spec.Action
}

// podAction is the action of a PodChaos, or "".
func podAction(f *v1alpha1.Fault) string {
	if f.ChaosMesh == nil || f.ChaosMesh.Kind != podChaos {
		return ""
	}
	return Action(f)
}

// Replaces reports whether the fault deletes its target pods, which come back as other pods of the
// same name.
func Replaces(f *v1alpha1.Fault) bool { return podAction(f) == podKill }

// Restarts reports whether the fault ends containers of its target pods, which the kubelet then
// restarts in the same pods. The action pod-failure restarts all containers of a pod, its agent's
// included, twice: once when their images are replaced, and once when they are put back. The action
// container-kill restarts the named containers once.
func Restarts(f *v1alpha1.Fault) bool {
	action := podAction(f)
	return action == podFailure || action == containerKill
}

// OneShot reports whether the fault is over as soon as it has happened, so that nothing needs
// recovery.
func OneShot(f *v1alpha1.Fault) bool {
	action := podAction(f)
	return action == podKill || action == containerKill
}

// Separates reports whether the fault loses every packet between its target and its peers, or all
// other pods, on every device.
func Separates(f *v1alpha1.Fault) bool {
	if f.ChaosMesh == nil || f.ChaosMesh.Kind != networkChaos || Action(f) != "partition" {
		return false
	}
	spec := struct {
		Device          string   `json:"device"`
		TargetDevice    string   `json:"targetDevice"`
		ExternalTargets []string `json:"externalTargets"`
	}{}
	if json.Unmarshal(f.ChaosMesh.Spec.Raw, &spec) != nil {
		return false
	}
	return spec.Device == "" && spec.TargetDevice == "" && (len(spec.ExternalTargets) == 0 || f.ChaosMesh.Peers != nil)
}
