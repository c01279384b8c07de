package placement

import (
	"maps"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/network"
)

// Place is that of a replica: its shard and its index in the shard. A client's pod is in shard -1.
type Place struct{ Shard, Index int32 }

// Targets lists the replicas that a target may mean.
func Targets(t v1alpha1.Target, topology v1alpha1.Topology) map[Place]bool {
	chosen := map[Place]bool{}
	for shard := range topology.Shards {
		if len(t.Shards) > 0 && !slices.Contains(t.Shards, shard) {
			continue
		}
		base := int32(0)
		for _, region := range topology.Regions {
			for replica := base; replica < base+region.Replicas; replica++ {
				if (len(t.Replicas) == 0 || slices.Contains(t.Replicas, replica)) && (len(t.Regions) == 0 || slices.Contains(t.Regions, region.Name)) {
					chosen[Place{shard, replica}] = true
				}
			}
			base += region.Replicas
		}
	}
	return chosen
}

// ShardReplicas counts the replicas of one shard.
func ShardReplicas(topology v1alpha1.Topology) int32 {
	n := int32(0)
	for _, r := range topology.Regions {
		n += r.Replicas
	}
	return n
}

// Ends are pods by their region. A client's pod is in shard -1.
type Ends map[string][]Place

// EndsOf puts replicas into their regions.
func EndsOf(replicas map[Place]bool, topology v1alpha1.Topology) Ends {
	found := Ends{}
	base := int32(0)
	for _, region := range topology.Regions {
		for p := range replicas {
			if p.Index >= base && p.Index < base+region.Replicas {
				found[region.Name] = append(found[region.Name], p)
			}
		}
		base += region.Replicas
	}
	return found
}

// Everyone is every pod, placed as Layout does: client pods are in their regions in turn.
func Everyone(trial *v1alpha1.TrialSpec) Ends {
	all := EndsOf(Targets(v1alpha1.Target{}, trial.Topology), trial.Topology)
	for i := range min(trial.Clients.Nodes, trial.Clients.Count) {
		region := trial.Clients.Regions[int(i)%len(trial.Clients.Regions)]
		all[region] = append(all[region], Place{-1, i})
	}
	return all
}

// Directions lists the links between two sets of pods: no pod has one with itself.
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
func Regions(t v1alpha1.Topology) []string {
	var names []string
	for _, r := range t.Regions {
		if r.Replicas > 0 {
			names = append(names, r.Name)
		}
	}
	return names
}
