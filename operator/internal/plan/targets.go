package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// placed is one replica.
type placed struct{ shard, replica int32 }

// targetCheck checks one target of a fault in one point.
type targetCheck struct {
	system   system
	topology v1alpha1.Topology
	path     *field.Path
	// roles: the target may be whoever has a role.
	roles bool
	// taken are the replicas that groups before this one have for certain, and how many more of each shard they pick.
	taken map[placed]bool
	picks map[int32]int
}

// checkTarget checks that everything that the target names exists, and that there is as much as it picks. It returns the replicas that the target
// may mean.
func (e *expansion) checkTarget(c targetCheck, t v1alpha1.Target) (map[placed]bool, bool) {
	ok := e.checkTargetNames(c, t)
	if t.Role != "" {
		ok = e.checkRole(c, t.Role) && ok
	}
	if len(t.Replicas) == 0 && len(t.Regions) == 0 && t.Role == "" && t.Pick == nil {
		e.add(field.Invalid(c.path, describeTarget(t), "none of replicas, regions, role, pick is set; name at least one"))
		return nil, false
	}
	if !ok {
		return nil, false
	}
	candidates := targets(t, c.topology)
	if len(candidates) == 0 {
		e.add(field.Invalid(c.path, describeTarget(t), "chooses no replica: no replica of these indexes is in these regions; "+describeRegions(c.topology)))
		return nil, false
	}
	return candidates, t.Pick == nil || e.checkPick(c, t, candidates)
}

func (e *expansion) checkTargetNames(c targetCheck, t v1alpha1.Target) bool {
	n, ok := shardReplicas(c.topology), true
	for j, r := range t.Replicas {
		if r < 0 || r >= n {
			ok = false
			e.add(field.Invalid(c.path.Child("replicas").Index(j), r, fmt.Sprintf(
				"System %q has %s = %d replicas in a shard for f = %d: 0 to %d", c.system.name, c.system.count.text, n, c.topology.F, n-1)))
		}
	}
	for j, shard := range t.Shards {
		if shard < 0 || shard >= c.topology.Shards {
			ok = false
			e.add(field.Invalid(c.path.Child("shards").Index(j), shard, fmt.Sprintf("there are %d shards: 0 to %d", c.topology.Shards, c.topology.Shards-1)))
		}
	}
	names := make([]string, len(c.topology.Regions))
	for i, r := range c.topology.Regions {
		names[i] = r.Name
	}
	for j, region := range t.Regions {
		if !slices.Contains(names, region) {
			ok = false
			e.add(field.Invalid(c.path.Child("regions").Index(j), region, unknownName("the topology has no region", region, names)))
		}
	}
	return ok
}

func (e *expansion) checkRole(c targetCheck, role string) bool {
	path := c.path.Child("role")
	if !c.roles {
		e.add(field.Invalid(path, role, "who has a role is known to that replica alone: a role can be the target of nodeKill, pause and partition.isolate only"))
		return false
	}
	names := make([]string, len(c.system.spec.Roles))
	for i, r := range c.system.spec.Roles {
		names[i] = r.Name
	}
	if !slices.Contains(names, role) {
		e.add(field.Invalid(path, role, fmt.Sprintf("System %q ", c.system.name)+unknownName("declares no role", role, names)))
		return false
	}
	return true
}

func (e *expansion) checkPick(c targetCheck, t v1alpha1.Target, candidates map[placed]bool) bool {
	size := int(shardReplicas(c.topology))
	wanted := t.PickCount(int(c.topology.F), size)
	path := c.path.Child("pick")
	if wanted < 1 {
		e.add(field.Invalid(path, t.Pick.String(), fmt.Sprintf("picks %d replicas: f is %d and a shard has %d replicas; nothing would happen", wanted, c.topology.F, size)))
		return false
	}
	for shard := range c.topology.Shards {
		if len(t.Shards) > 0 && !slices.Contains(t.Shards, shard) {
			continue
		}
		free := -c.picks[shard]
		for p := range candidates {
			if p.shard == shard && !c.taken[p] {
				free++
			}
		}
		if wanted > free {
			e.add(field.Invalid(path, t.Pick.String(), fmt.Sprintf("picks %d replicas of each shard, but only %d match in shard %d", wanted, max(free, 0), shard)))
			return false
		}
	}
	return true
}

// targets lists the replicas that a target may mean.
func targets(t v1alpha1.Target, topology v1alpha1.Topology) map[placed]bool {
	chosen := map[placed]bool{}
	for shard := range topology.Shards {
		if len(t.Shards) > 0 && !slices.Contains(t.Shards, shard) {
			continue
		}
		base := int32(0)
		for _, region := range topology.Regions {
			for replica := base; replica < base+region.Replicas; replica++ {
				if (len(t.Replicas) == 0 || slices.Contains(t.Replicas, replica)) && (len(t.Regions) == 0 || slices.Contains(t.Regions, region.Name)) {
					chosen[placed{shard, replica}] = true
				}
			}
			base += region.Replicas
		}
	}
	return chosen
}

func shardReplicas(topology v1alpha1.Topology) int32 {
	n := int32(0)
	for _, r := range topology.Regions {
		n += r.Replicas
	}
	return n
}

func intersect(a, b map[placed]bool) bool {
	for p := range a {
		if b[p] {
			return true
		}
	}
	return false
}

func describeTarget(t v1alpha1.Target) string {
	return fmt.Sprintf("replicas %v, regions %v", t.Replicas, t.Regions)
}

func describeRegions(topology v1alpha1.Topology) string {
	text, base := "", int32(0)
	for _, r := range topology.Regions {
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
