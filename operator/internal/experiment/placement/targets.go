package placement

import (
	"maps"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/network"
)

// Unit is a shard, or a component. A target picks from each unit separately. The clients' pods have
// a unit of their own: shard -1 of no component.
type Unit struct {
	Component string // empty: a shard
	Shard     int32
}

// Place is the place of a pod: its shard or component, and its index there.
type Place struct {
	Unit
	Index int32
}

// UnitsOf returns the shards that a target may mean, or its component.
func UnitsOf(t v1alpha1.Target, topology v1alpha1.Topology) []Unit {
	if t.Component != "" {
		return []Unit{{t.Component, NoShard}}
	}
	var units []Unit
	for shard := range topology.Shards {
		if matches(t.Shards, shard) {
			units = append(units, Unit{Shard: shard})
		}
	}
	return units
}

// indexes returns the indexes that a target names.
func indexes(t v1alpha1.Target) []int32 {
	if t.Component != "" {
		return t.Pods
	}
	return t.Replicas
}

// Targets lists the replicas, or pods of a component, that a target may mean.
func Targets(t v1alpha1.Target, topology v1alpha1.Topology) map[Place]bool {
	chosen := map[Place]bool{}
	for _, unit := range UnitsOf(t, topology) {
		base := int32(0)
		for _, region := range topology.RegionsOf(unit.Component) {
			for index := base; index < base+region.Replicas; index++ {
				if matches(indexes(t), index) && matches(t.Regions, region.Name) {
					chosen[Place{unit, index}] = true
				}
			}
			base += region.Replicas
		}
	}
	return chosen
}

// Size counts the replicas of one shard, or the pods of a component.
func Size(topology v1alpha1.Topology, component string) int32 {
	n := int32(0)
	for _, r := range topology.RegionsOf(component) {
		n += r.Replicas
	}
	return n
}

// Ends has pods by their region.
type Ends map[string][]Place

// EndsOf groups replicas and pods of components by their regions.
func EndsOf(pods map[Place]bool, topology v1alpha1.Topology) Ends {
	found := Ends{}
	for p := range pods {
		base := int32(0)
		for _, region := range topology.RegionsOf(p.Component) {
			if p.Index >= base && p.Index < base+region.Replicas {
				found[region.Name] = append(found[region.Name], p)
			}
			base += region.Replicas
		}
	}
	return found
}

// Everyone returns all pods by region. As in Layout, client pods take turns over their regions.
func Everyone(trial *v1alpha1.TrialSpec) Ends {
	servers := Targets(v1alpha1.Target{}, trial.Topology)
	for _, c := range trial.Topology.Components {
		maps.Copy(servers, Targets(v1alpha1.Target{Component: c.Name}, trial.Topology))
	}
	all := EndsOf(servers, trial.Topology)
	for i := range min(trial.Clients.Nodes, trial.Clients.Count) {
		region := trial.Clients.Regions[int(i)%len(trial.Clients.Regions)]
		all[region] = append(all[region], Place{Unit{Shard: -1}, i})
	}
	return all
}

// Directions lists the links between two sets of pods. No pod has a link with itself.
func Directions(from, to Ends) []network.Direction {
	var found []network.Direction
	for _, a := range slices.Sorted(maps.Keys(from)) {
		for _, b := range slices.Sorted(maps.Keys(to)) {
			if len(from[a]) > 1 || len(to[b]) > 1 || from[a][0] != to[b][0] {
				found = append(found, network.Direction{From: a, To: b})
			}
		}
	}
	return found
}

// Regions lists the regions that hold replicas.
func Regions(t v1alpha1.Topology) []string { return RegionsOf(t, "") }

// RegionsOf lists the regions that hold replicas, or pods of a component.
func RegionsOf(t v1alpha1.Topology, component string) []string {
	return inUse(nil, t.RegionsOf(component))
}

// ServerRegions lists the regions of replicas, then the regions that only have pods of components.
func ServerRegions(t v1alpha1.Topology) []string {
	names := Regions(t)
	for _, c := range t.Components {
		names = inUse(names, c.Regions)
	}
	return names
}

// inUse adds the names of regions that hold pods, each once.
func inUse(names []string, regions []v1alpha1.Region) []string {
	for _, r := range regions {
		if r.Replicas > 0 && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}
