package placement

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Replicas returns the replicas of all shards, shard by shard.
func (l *Layout) Replicas() []Replica { return l.Group("") }

// Group returns the pods of the component of that name; for "", all replicas.
func (l *Layout) Group(component string) []Replica {
	var group []Replica
	for _, r := range l.Servers {
		if r.Component == component {
			group = append(group, r)
		}
	}
	return group
}

// GroupPods names the pods of a group.
func (l *Layout) GroupPods(component string) []string {
	var pods []string
	for _, r := range l.Group(component) {
		pods = append(pods, r.Name)
	}
	return pods
}

// Choose returns the pods that a target means, in order of shard and index. It draws picks from the
// trial's seed and salt, shard by shard, and never picks a pod in except. If a shard has fewer
// matching pods than the target picks, it takes all of them. A component counts as a shard.
func (l *Layout) Choose(t v1alpha1.Target, salt string, except []string) []string {
	size := map[int]int{} // number of replicas of each shard
	matching := map[int][]string{}
	var shards []int
	for _, r := range l.Group(t.Component) {
		if size[r.Shard] == 0 {
			shards = append(shards, r.Shard)
		}
		size[r.Shard]++
		if matches(indexes(t), int32(r.Index)) && matches(t.Shards, int32(r.Shard)) && matches(t.Regions, r.Region) && !slices.Contains(except, r.Name) {
			matching[r.Shard] = append(matching[r.Shard], r.Name)
		}
	}
	var pods []string
	for _, shard := range shards {
		pods = append(pods, l.pick(t, salt, shard, matching[shard], size[shard])...)
	}
	return pods
}

func (l *Layout) pick(t v1alpha1.Target, salt string, shard int, names []string, size int) []string {
	if t.Pick == nil {
		return names
	}
	n := t.PickCount(l.f, size)
	if n >= len(names) {
		return names
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(salt)) // never fails
	random := rand.New(rand.NewPCG(uint64(l.seed), h.Sum64()+uint64(shard)))
	indexes := random.Perm(len(names))[:n]
	slices.Sort(indexes)
	picked := make([]string, n)
	for i, index := range indexes {
		picked[i] = names[index]
	}
	return picked
}

// ServerPods names the pods of all replicas and components.
func (l *Layout) ServerPods() []string {
	var pods []string
	for _, r := range l.Servers {
		pods = append(pods, r.Name)
	}
	return pods
}

// ClientPods names the pods of all clients.
func (l *Layout) ClientPods() []string {
	var pods []string
	for _, c := range l.Clients {
		pods = append(pods, c.Name)
	}
	return pods
}

func matches[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// RegionNames returns the region of each pod, clients last.
func (l *Layout) RegionNames() []string {
	var out []string
	for _, r := range l.Servers {
		out = append(out, r.Region)
	}
	for _, c := range l.Clients {
		out = append(out, c.Region)
	}
	return out
}

// IPs returns the addresses of all pods, clients last.
func (l *Layout) IPs() []string {
	var out []string
	for _, r := range l.Servers {
		out = append(out, r.IP)
	}
	for _, c := range l.Clients {
		out = append(out, c.IP)
	}
	return out
}
