package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/chaosmesh"
)

// checkChaosMesh checks a fault that Chaos Mesh carries out, and returns the replicas whose processes it may stop. Whether Chaos Mesh is installed, and what it says to
// the spec, is asked elsewhere.
func (e *expansion) checkChaosMesh(path *field.Path, c targetCheck, trial *v1alpha1.TrialSpec, f *v1alpha1.Fault) map[placed]bool {
	var containers []string
	for _, container := range c.system.spec.Replicas.Containers {
		containers = append(containers, container.Name)
	}
	e.add(chaosmesh.Check(path, f, containers)...)
	e.checkShapedChaos(path.Child("chaosMesh", "kind"), trial, f)
	c.path = path.Child("chaosMesh", "target")
	targets, ok := e.checkTarget(c, f.ChaosMesh.Target)
	if peers := f.ChaosMesh.Peers; peers != nil {
		c.path = path.Child("chaosMesh", "peers")
		candidates, peersOK := e.checkTarget(c, *peers)
		if ok && peersOK && !leaves(candidates, targets, pickedOf(c, f.ChaosMesh.Target)) {
			e.add(field.Invalid(c.path, describeTarget(*peers), "are all in target, and nobody is its own other end; name other replicas"))
		}
	}
	if !chaosmesh.StopsProcesses(f) {
		return nil
	}
	return targets
}

// pickedOf is how many replicas of each shard a target takes of those that it may mean.
func pickedOf(c targetCheck, t v1alpha1.Target) int {
	return t.PickCount(int(c.topology.F), int(shardReplicas(c.topology)))
}

// leaves reports whether some of all are left, whichever those are that the target takes: at most so many of each shard.
func leaves(all, targets map[placed]bool, picked int) bool {
	left, common := map[int32]int{}, map[int32]int{}
	for p := range all {
		if left[p.shard]++; targets[p] {
			common[p.shard]++
		}
	}
	for shard, n := range left {
		if n > min(common[shard], picked) {
			return true
		}
	}
	return false
}

// checkShapedChaos refuses what would take away what Assay does to the links of the same point.
func (e *expansion) checkShapedChaos(path *field.Path, trial *v1alpha1.TrialSpec, f *v1alpha1.Fault) {
	by := ""
	if len(trial.Network.Links) > 0 {
		by = "the experiment's network"
	}
	for i := range trial.Faults {
		if trial.Faults[i].Degrade != nil {
			by = "fault " + trial.Faults[i].Name + " of the same point"
		}
	}
	if by == "" || !chaosmesh.BreaksShaping(f) {
		return
	}
	why := "deletes the root queueing discipline of every interface of its pods, whatever its action is, when it begins and when it ends, and with it the links that"
	instead := "partition and degrade do the same without Chaos Mesh"
	if f.ChaosMesh.Kind != "NetworkChaos" {
		why, instead = "leads the packets of its pods through a bridge and a proxy of its own, past the links that", "take a network without shaping"
	}
	e.add(field.Forbidden(path, fmt.Sprintf("a %s %s %s shapes; %s", f.ChaosMesh.Kind, why, by, instead)))
}

// checkChaosMeshInstalled asks whether the cluster has what the faults need, each kind once.
func checkChaosMeshInstalled(p *Plan, checks Checks) (errs field.ErrorList) {
	if checks.ChaosMesh == nil {
		return nil
	}
	asked := map[string]bool{}
	for i, f := range p.Spec.Faults {
		if f.ChaosMesh == nil || asked[f.ChaosMesh.Kind] {
			continue
		}
		asked[f.ChaosMesh.Kind] = true
		if err := checks.ChaosMesh(f.ChaosMesh.Kind); err != nil {
			errs = append(errs, field.Forbidden(faultPath(i).Child("chaosMesh"), err.Error()))
		}
	}
	return errs
}
