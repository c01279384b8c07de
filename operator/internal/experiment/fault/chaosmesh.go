package fault

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// chaos is a fault of Chaos Mesh on replicas. Package chaosmesh knows the meaning of its objects.
type chaos struct {
	always
	f *v1alpha1.Fault
}

func init() {
	add("chaosMesh", func(f *v1alpha1.Fault) kind {
		if f.ChaosMesh == nil {
			return nil
		}
		return chaos{f: f}
	})
}

func (k chaos) targets() []*v1alpha1.Target {
	return []*v1alpha1.Target{&k.f.ChaosMesh.Target, k.f.ChaosMesh.Peers}
}

func (chaos) notOnOneMachine() string { return "Chaos Mesh needs a cluster" }

// begin returns the actions of Chaos Mesh. No pod is its own other end: a target is never a peer.
func (k chaos) begin(salt string, cast Cast) ([]timeline.Action, error) {
	pods := cast.Choose(k.f.ChaosMesh.Target, salt, nil)
	like := timeline.Action{Kind: timeline.Inject, Object: chaosmesh.Describe(k.f)}
	if p := k.f.ChaosMesh.Peers; p != nil {
		if like.Peers = cast.Choose(*p, salt+"/peers", pods); len(like.Peers) == 0 {
			return nil, errors.New("peers choose only replicas that are targets, too")
		}
	}
	return each(pods, like), nil
}

// checkChaosMesh checks a fault that Chaos Mesh carries out, and returns the replicas whose
// processes it may stop. Another check asks whether Chaos Mesh is installed, and whether it accepts
// the spec.
func (e *checker) checkChaosMesh(path *field.Path, c targetCheck, f *v1alpha1.Fault) map[placement.Place]bool {
	var containers []string
	if group := e.Spec.Group(f.ChaosMesh.Target.Component); group != nil { // otherwise the check of the target reports it
		for _, container := range group.Containers {
			containers = append(containers, container.Name)
		}
	}
	e.add(chaosmesh.Check(path, f, containers)...)
	e.checkShapedChaos(path.Child("chaosMesh", "kind"), f)
	c.path = path.Child("chaosMesh", "target")
	targets, ok := e.checkTarget(c, f.ChaosMesh.Target)
	if peers := f.ChaosMesh.Peers; peers != nil {
		c.path = path.Child("chaosMesh", "peers")
		candidates, peersOK := e.checkTarget(c, *peers)
		if ok && peersOK && !leaves(candidates, targets, pickedOf(c, f.ChaosMesh.Target)) {
			e.add(field.Invalid(c.path, describeTarget(*peers), "are all in target, and no pod is its own other end; name other replicas"))
		}
	}
	if !chaosmesh.StopsProcesses(f) {
		return nil
	}
	return targets
}

// pickedOf returns how many pods of each shard or component a target picks.
func pickedOf(c targetCheck, t v1alpha1.Target) int {
	return t.PickCount(int(c.topology.F), int(placement.Size(c.topology, t.Component)))
}

// leaves reports whether some of all pods are left for any choice of the target. The target picks
// at most picked pods of each shard or component.
func leaves(all, targets map[placement.Place]bool, picked int) bool {
	left, common := map[placement.Unit]int{}, map[placement.Unit]int{}
	for p := range all {
		if left[p.Unit]++; targets[p] {
			common[p.Unit]++
		}
	}
	for unit, n := range left {
		if n > min(common[unit], picked) {
			return true
		}
	}
	return false
}

// checkShapedChaos refuses a fault that would remove Assay's shaping of the links of the same
// point.
func (e *checker) checkShapedChaos(path *field.Path, f *v1alpha1.Fault) {
	trial := e.Trial
	by := ""
	if len(trial.Network.Links) > 0 {
		by = "the experiment's network"
	}
	for i := range trial.Faults {
		if ShapesLinks(trial.Faults[i : i+1]) {
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

func (k chaos) check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool {
	return e.checkChaosMesh(path, c, k.f)
}

// oneShot reports whether the fault is over at once, so that nothing needs recovery.
func (k chaos) oneShot() bool { return k.f.ChaosMesh != nil && chaosmesh.OneShot(k.f) }
