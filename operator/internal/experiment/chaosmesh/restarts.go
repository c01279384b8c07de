package chaosmesh

import (
	"encoding/json"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
)

// RestartsAgent reports whether the fault restarts every container of its pods, the agent's
// included (pod-failure). So no agent acts in the pod during the fault.
func RestartsAgent(f *v1alpha1.Fault) bool { return podAction(f) == podFailure }

// restartBackOff is how long the kubelet first waits before it restarts a container that ended.
// Each wait is twice as long as the one before, up to maxRestartBackOff.
const (
	restartBackOff    = 10 * time.Second
	maxRestartBackOff = 5 * time.Minute
)

// RestartLimit is how often one time of the fault restarts one of the pod's containers at most.
// lasted is how long the fault was or has been in force.
//
// A container-kill restarts the container once. A pod-failure restarts it once when its image is
// replaced, and once when the image is put back. Between them the kubelet restarts the container
// each time that it finds no such program in the image: at once, and then after its back-off.
func RestartLimit(f *v1alpha1.Fault, lasted time.Duration) int {
	switch podAction(f) {
	case containerKill:
		return 1
	case podFailure:
		n := 3
		for wait := restartBackOff; lasted >= wait; wait = min(2*wait, maxRestartBackOff) {
			lasted -= wait
			n++
		}
		return n
	default:
		return 0
	}
}

// RestartedContainers names the containers that a container-kill ends. Nil: all containers of the
// system.
func RestartedContainers(f *v1alpha1.Fault) []string {
	if podAction(f) != containerKill {
		return nil
	}
	spec := struct {
		Names []string `json:"containerNames"`
	}{}
	if json.Unmarshal(f.ChaosMesh.Spec.Raw, &spec) != nil {
		return nil // Check reports the mistake
	}
	return spec.Names
}
