package fault

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/text/suggest"
)

// targetCheck checks one target of a fault in one point.
type targetCheck struct {
	topology v1alpha1.Topology
	path     *field.Path
	// roles: the target may be chosen by a role.
	roles bool
	// taken are the pods that earlier groups have for certain. picks are how many more pods of each
	// shard or component they pick.
	taken map[placement.Place]bool
	picks map[placement.Unit]int
}

// checkTarget checks that the target names existing pods, and enough of them for its picks. It
// returns the pods that the target may mean.
func (e *checker) checkTarget(c targetCheck, t v1alpha1.Target) (map[placement.Place]bool, bool) {
	if t.Component != "" || len(t.Pods) > 0 {
		return e.checkComponent(c, t)
	}
	ok := e.checkTargetNames(c, t)
	if t.Role != "" {
		ok = e.checkRole(c, t) && ok
	}
	if len(t.Replicas) == 0 && len(t.Regions) == 0 && t.Role == "" && t.Pick == nil {
		e.add(field.Invalid(c.path, describeTarget(t), "none of machine, replicas, regions, role, pick, component is set; name at least one"))
		return nil, false
	}
	if !ok {
		return nil, false
	}
	candidates := placement.Targets(t, c.topology)
	if len(candidates) == 0 {
		e.add(field.Invalid(c.path, describeTarget(t), "chooses no replica: no replica of these indexes is in these regions; "+describeRegions(c.topology.Regions)))
		return nil, false
	}
	return candidates, t.Pick == nil || e.checkPick(c, t, candidates)
}

func (e *checker) checkTargetNames(c targetCheck, t v1alpha1.Target) bool {
	n, ok := placement.Size(c.topology, ""), true
	for j, r := range t.Replicas {
		if r < 0 || r >= n {
			ok = false
			e.add(field.Invalid(c.path.Child("replicas").Index(j), r, fmt.Sprintf(
				"System %q has %s = %d replicas in a shard for f = %d: 0 to %d", e.System, e.Count, n, c.topology.F, n-1)))
		}
	}
	for j, shard := range t.Shards {
		if shard < 0 || shard >= c.topology.Shards {
			ok = false
			e.add(field.Invalid(c.path.Child("shards").Index(j), shard, fmt.Sprintf("there are %d shards: 0 to %d", c.topology.Shards, c.topology.Shards-1)))
		}
	}
	return e.checkRegions(c, t, "the topology has no region") && ok
}

// checkRegions checks that the regions of a target are regions of its group.
func (e *checker) checkRegions(c targetCheck, t v1alpha1.Target, unknown string) bool {
	regions, ok := c.topology.RegionsOf(t.Component), true
	names := make([]string, len(regions))
	for i, r := range regions {
		names[i] = r.Name
	}
	for j, region := range t.Regions {
		if !slices.Contains(names, region) {
			ok = false
			e.add(field.Invalid(c.path.Child("regions").Index(j), region, suggest.Unknown(unknown, region, names)))
		}
	}
	return ok
}

// checkRole checks that the target's group has the role: the replicas, or a component.
func (e *checker) checkRole(c targetCheck, t v1alpha1.Target) bool {
	path, role := c.path.Child("role"), t.Role
	if !c.roles {
		e.add(field.Invalid(path, role, "only the replica itself knows whether it has a role: a role can be the target of nodeKill, pause, command, flameGraph and partition.isolate only"))
		return false
	}
	var names []string
	for _, r := range e.Spec.Roles {
		if r.Component == t.Component {
			names = append(names, r.Name)
		}
	}
	if !slices.Contains(names, role) {
		e.add(field.Invalid(path, role, fmt.Sprintf("System %q ", e.System)+suggest.Unknown("declares no role of "+group(t), role, names)))
		return false
	}
	return true
}

func (e *checker) checkPick(c targetCheck, t v1alpha1.Target, candidates map[placement.Place]bool) bool {
	size := int(placement.Size(c.topology, t.Component))
	wanted := t.PickCount(int(c.topology.F), size)
	path := c.path.Child("pick")
	if wanted < 1 {
		e.add(field.Invalid(path, t.Pick.String(), fmt.Sprintf("picks %d %s: f is %d and %s has %d %[2]s; nothing would happen", wanted, things(t), c.topology.F, unitName(t), size)))
		return false
	}
	for _, unit := range placement.UnitsOf(t, c.topology) {
		free := -c.picks[unit]
		for p := range candidates {
			if p.Unit == unit && !c.taken[p] {
				free++
			}
		}
		switch {
		case wanted <= free:
		case unit.Component != "":
			e.add(field.Invalid(path, t.Pick.String(), fmt.Sprintf("picks %d pods of component %s, but only %d match", wanted, unit.Component, max(free, 0))))
			return false
		default:
			e.add(field.Invalid(path, t.Pick.String(), fmt.Sprintf("picks %d replicas of each shard, but only %d match in shard %d", wanted, max(free, 0), unit.Shard)))
			return false
		}
	}
	return true
}

func intersect(a, b map[placement.Place]bool) bool {
	for p := range a {
		if b[p] {
			return true
		}
	}
	return false
}

func describeTarget(t v1alpha1.Target) string {
	if t.Component != "" {
		return fmt.Sprintf("component %s, pods %v, regions %v", t.Component, t.Pods, t.Regions)
	}
	return fmt.Sprintf("replicas %v, regions %v", t.Replicas, t.Regions)
}

func describeRegions(regions []v1alpha1.Region) string {
	text, base := "", int32(0)
	for _, r := range regions {
		if r.Replicas == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s has %d to %d", r.Name, base, base+r.Replicas-1)
		base += r.Replicas
	}
	return text
}
