package plan

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// checkMachine refuses what cannot go together with the reset of a machine. Whether a node may be reset at all is seen when the trial's pods are on it.
func (e *expansion) checkMachine(path *field.Path, trial *v1alpha1.TrialSpec, f *v1alpha1.Fault) {
	kill := f.NodeKill
	if kill.Mode != v1alpha1.KillMachine {
		return
	}
	if kill.Target.Role != "" {
		e.add(field.Forbidden(path.Child("nodeKill", "target", "role"),
			"which machine that would be must be known before the run, to see that it may be reset; name replicas, or let some be picked"))
	}
	if kill.Disk == "Lose" {
		e.add(field.Forbidden(path.Child("nodeKill", "disk"), "a machine that is reset keeps its disks; set disk: Keep"))
	}
	if len(trial.Network.Links) > 0 {
		e.add(field.Forbidden(path.Child("nodeKill", "mode"),
			"Machine cannot be together with a shaped network: pods come back with other addresses, to which no link has been shaped or proven; choose profile: lan, or mode: Pods"))
	}
	for i := range trial.Faults {
		other := &trial.Faults[i]
		if other.ClientBehavior == nil && (other.NodeKill == nil || other.NodeKill.Mode != v1alpha1.KillMachine) {
			e.add(field.Forbidden(path.Child("nodeKill", "mode"),
				"Machine cannot be together with fault "+other.Name+" of the same point: what an agent on that machine did and knew is lost with it; "+
					"only other machines and clientBehavior can; use mode: Pods, or another point"))
		}
	}
}
