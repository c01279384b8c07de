package fault

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// kill ends the processes of replicas, or resets the machines that they run on.
type kill struct {
	always
	k *v1alpha1.NodeKill
}

func init() {
	add("nodeKill", func(f *v1alpha1.Fault) kind {
		if f.NodeKill == nil {
			return nil
		}
		return kill{k: f.NodeKill}
	})
}

func (k kill) targets() []*v1alpha1.Target { return []*v1alpha1.Target{&k.k.Target} }

func (k kill) setDefaults() {
	k.k.Mode, k.k.Disk = cmp.Or(k.k.Mode, v1alpha1.KillPods), cmp.Or(k.k.Disk, "Keep")
}

func (k kill) notOnOneMachine() string {
	if !k.machine() {
		return ""
	}
	return "mode Machine would reset the machine that measures; mode Pods kills the replica's processes and cuts it off"
}

func (k kill) begin(salt string, cast Cast) ([]timeline.Action, error) {
	like := timeline.Action{Kind: timeline.Kill, Role: k.k.Target.Role, LoseDisk: k.k.Disk == "Lose"}
	if k.machine() {
		like.Kind = timeline.Reset
	}
	return each(cast.Choose(k.k.Target, salt, nil), like), nil
}

func (k kill) machine() bool { return k.k.Mode == v1alpha1.KillMachine }

// checkMachine refuses what cannot be combined with the reset of a machine. Whether a node may be
// reset is known only when the trial's pods are on it.
func (e *checker) checkMachine(path *field.Path, k kill) {
	trial := e.Trial
	if k.k.Target.Role != "" {
		e.add(field.Forbidden(path.Child("nodeKill", "target", "role"),
			"which machine that would be must be known before the run, to see that it may be reset; name replicas, or let some be picked"))
	}
	if k.k.Disk == "Lose" {
		e.add(field.Forbidden(path.Child("nodeKill", "disk"), "a machine that is reset keeps its disks; set disk: Keep"))
	}
	if len(trial.Network.Links) > 0 {
		e.add(field.Forbidden(path.Child("nodeKill", "mode"),
			"Machine cannot be together with a shaped network: pods come back with other addresses, to which no link has been shaped or proven; choose profile: lan, or mode: Pods"))
	}
	for i := range trial.Faults {
		other := &trial.Faults[i]
		if of(other) != nil && of(other).dated() && !ResetsMachines(trial.Faults[i:i+1]) {
			e.add(field.Forbidden(path.Child("nodeKill", "mode"),
				"Machine cannot be together with fault "+other.Name+" of the same point: an agent loses its state when its machine is reset; "+
					"combine it only with clientBehavior or other machines; use mode: Pods, or another point"))
		}
	}
}

func (k kill) check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool {
	c.path, c.roles = path.Child("nodeKill", "target"), true
	stopped, _ := e.checkTarget(c, k.k.Target)
	if k.machine() {
		e.checkMachine(path, k)
	}
	return stopped
}

func (k kill) role() bool { return k.k.Target.Role != "" }
