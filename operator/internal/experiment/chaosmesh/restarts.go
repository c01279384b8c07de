package chaosmesh

import (
	"encoding/json"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
)

// RestartsAgent reports whether the fault restarts every container of its pods, the agent's
// included (pod-failure), so that no agent acts in the pod while it lasts.
func RestartsAgent(f *v1alpha1.Fault) bool { return podAction(f) == podFailure }

// restartBackOff and maxRestartBackOff are how long the kubelet waits before it starts a container
// again that ended: twice as long each time.
const (
	restartBackOff    = 10 * time.Second
	maxRestartBackOff = 5 * time.Minute
)

// RestartLimit is the most often that one of the pod's containers is restarted by one time of the
// fault; lasted is how long it has been in force, or was. Container-kill: once. Pod-failure
// restarts it once when its image is replaced, and once when it is put back. Between them the
// kubelet restarts the container each time that it finds no such program in that image: at once,
// and then after its back-off.
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

// RestartedContainers names the containers that a container-kill ends. Nil: those of the system,
// each of them.
func RestartedContainers(f *v1alpha1.Fault) []string {
	if podAction(f) != containerKill {
		return nil
	}
	spec := struct {
		Names []string `json:"containerNames"`
	}{}
	if json.Unmarshal(f.ChaosMesh.Spec.Raw, &spec) != nil {
		return nil // Check says what is wrong with it
	}
	return spec.Names
}
