package chaosmesh

import (
	"encoding/json"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Kinds that are treated in a special way. The others that a fault may name are like each other:
// they act on containers for a time.
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

// Action is what the object of a fault does, as its spec says: "pod-kill", "partition"; empty for
// kinds that do one thing only, and for faults of another kind.
func Action(f *v1alpha1.Fault) string {
	if f.ChaosMesh == nil {
		return ""
	}
	spec := struct {
		Action string `json:"action"`
	}{}
	if json.Unmarshal(f.ChaosMesh.Spec.Raw, &spec) != nil {
		return "" // Check says what is wrong with it
	}
	return spec.Action
}

// podAction is the action of a PodChaos, or nothing.
func podAction(f *v1alpha1.Fault) string {
	if f.ChaosMesh == nil || f.ChaosMesh.Kind != podChaos {
		return ""
	}
	return Action(f)
}

// Replaces reports whether the pods that the fault is for are deleted: they come back as other pods
// of the same name.
func Replaces(f *v1alpha1.Fault) bool { return podAction(f) == podKill }

// Restarts reports whether containers of the pods that the fault is for end and are started again
// by the kubelet, in the same pods. They are those of the whole pod, its agent's included, twice
// (pod-failure): once when their images are replaced, and once when they are put back. Or they are
// the named ones, once (container-kill).
func Restarts(f *v1alpha1.Fault) bool {
	action := podAction(f)
	return action == podFailure || action == containerKill
}

// OneShot reports whether the fault is over as soon as it has happened, so that nothing is left to
// be recovered.
func OneShot(f *v1alpha1.Fault) bool {
	action := podAction(f)
	return action == podKill || action == containerKill
}

// Separates reports whether the fault loses every packet between its target and its peers, or
// everybody, on every device.
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
