// Package placement decides which pods take part in a trial and where: replicas and clients, their
// names, their regions, and the pods that a target means. It is pure: random choices follow from
// the trial's seed.
package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Replica is one replica of a trial, or one pod of a component, in the form that templates use.
type Replica struct {
	Part      string         // "replica" or "component"
	Component string         // name; empty: it is a replica
	Index     int            // in its shard or component, from 0
	Global    int            // over all shards, shard by shard; of a component, as Index
	Shard     int            // from 0; of a component, NoShard
	Region    string         // name
	Name      string         // of the pod
	Host      string         // name that resolves to the pod
	IP        string         // address of the pod
	Ports     map[string]int // by name
}

// NoShard is the shard of pods of components.
const NoShard = -1

// Client is one client pod of a trial, in the form that templates use.
type Client struct {
	Part   string // "client"
	Index  int    // of the pod, from 0
	First  int    // index of its first client over all pods
	Count  int    // clients that it runs
	Region string // name
	Name   string // host name of the pod
	Host   string // name that resolves to the pod
	IP     string // address of the pod
}

// Set is one StatefulSet: the replicas of one shard in one region, or the pods of one component in
// one region.
type Set struct {
	Name      string
	Component string // empty: these are replicas
	Shard     int    // of a component, NoShard
	Region    string
	Base      int // index in the shard or component of ordinal 0
	Replicas  int
}

// ClientSet has the client pods that one Job makes: all of them, or those of a region.
type ClientSet struct {
	Name   string // of the Job
	Region string // empty: pods of all regions
	// Clients are the numbers of its pods in the layout. The first pod has the Job's index 0.
	Clients []int
}

// Layout has the pods that take part in a trial. Addresses are empty until Resolve.
type Layout struct {
	Trial     string
	Namespace string
	Sets      []Set
	// Servers are all replicas, shard by shard, then the pods of the components, in the order of
	// the System.
	Servers    []Replica
	Clients    []Client
	ClientSets []ClientSet

	f      int    // number of faults that each shard tolerates
	seed   int64  // of random choices
	domain string // of the cluster; part of all hosts
}

// DefaultClusterDomain is the domain of clusters whose owner did not choose one.
const DefaultClusterDomain = "cluster.local"

// NewLayout names all pods of a trial, in a cluster of the default domain. The names follow from
// the trial's name alone.
func NewLayout(namespace, name string, spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec) *Layout {
	system = system.Deployed()
	l := &Layout{Trial: name, Namespace: namespace, f: int(spec.Topology.F), seed: spec.Seed, domain: DefaultClusterDomain}
	for shard := range int(spec.Topology.Shards) {
		l.addGroup("", shard, spec.Topology.Regions, system.Replicas.Ports)
	}
	for _, c := range system.Components {
		l.addGroup(c.Name, NoShard, spec.Topology.RegionsOf(c.Name), c.Ports)
	}
	l.addClients(int(spec.Clients.Nodes), int(spec.Clients.Count), spec.Clients.Regions, spec.Placement.ByRegion != nil)
	return l
}

// InDomain returns a copy of the layout for a cluster of that domain, which is part of the hosts'
// names. Empty: the default domain.
func (l *Layout) InDomain(domain string) *Layout {
	named := *l
	named.domain = cmp.Or(domain, DefaultClusterDomain)
	named.Servers, named.Clients = slices.Clone(l.Servers), slices.Clone(l.Clients)
	for i := range named.Servers {
		named.Servers[i].Host = named.host(named.Servers[i].Name)
	}
	for i := range named.Clients {
		named.Clients[i].Host = named.host(named.Clients[i].Name)
	}
	return &named
}

// addGroup adds the replicas of a shard, or the pods of a component.
func (l *Layout) addGroup(component string, shard int, regions []v1alpha1.Region, declared []v1alpha1.Port) {
	ports := map[string]int{}
	for _, p := range declared {
		ports[p.Name] = int(p.Port)
	}
	part, what, before := v1alpha1.PodTypeReplica, fmt.Sprintf("s%d", shard), len(l.Servers)
	if component != "" {
		part, what, before = v1alpha1.PodTypeComponent, component, 0
	}
	base := 0
	for _, region := range regions {
		if region.Replicas == 0 {
			continue
		}
		set := Set{
			Name:      shortName(fmt.Sprintf("%s-%s-%s", l.Trial, what, region.Name)),
			Component: component, Shard: shard, Region: region.Name, Base: base, Replicas: int(region.Replicas),
		}
		l.Sets = append(l.Sets, set)
		for ordinal := range set.Replicas {
			name := fmt.Sprintf("%s-%d", set.Name, ordinal)
			l.Servers = append(l.Servers, Replica{
				Part: part, Component: component, Index: base + ordinal, Global: before + base + ordinal, Shard: shard, Region: region.Name,
				Name: name, Host: l.host(name), Ports: ports,
			})
		}
		base += set.Replicas
	}
}

// Spread returns how many clients each client pod runs: count clients over nodes pods, as evenly as
// possible. There is no pod without a client.
func Spread(nodes, count int) []int {
	spread := make([]int, min(nodes, count))
	for i := range spread {
		spread[i] = count / len(spread)
		if i < count%len(spread) {
			spread[i]++
		}
	}
	return spread
}

// addClients spreads clients over pods. The pods take turns over the given regions. If regions
// choose nodes, each region has a Job of its own, since all pods of a Job have one template.
func (l *Layout) addClients(nodes, count int, regions []string, apart bool) {
	first := 0
	for i, n := range Spread(nodes, count) {
		region := ""
		if len(regions) > 0 {
			region = regions[i%len(regions)]
		}
		set := l.clientSet(region, apart)
		name := fmt.Sprintf("%s-%d", set.Name, len(set.Clients))
		set.Clients = append(set.Clients, i)
		l.Clients = append(l.Clients, Client{Part: v1alpha1.PodTypeClient, Index: i, First: first, Count: n, Region: region, Name: name, Host: l.host(name)})
		first += n
	}
}

// clientSet returns the set for a client of a region. It makes the set for the first such client.
func (l *Layout) clientSet(region string, apart bool) *ClientSet {
	set := ClientSet{Name: l.Trial + "-c"}
	if apart {
		set = ClientSet{Name: shortName(fmt.Sprintf("%s-c-%s", l.Trial, region)), Region: region}
	}
	i := slices.IndexFunc(l.ClientSets, func(s ClientSet) bool { return s.Name == set.Name })
	if i < 0 {
		i, l.ClientSets = len(l.ClientSets), append(l.ClientSets, set)
	}
	return &l.ClientSets[i]
}

// ClientOf returns the client pod that a Job makes for an index.
func (l *Layout) ClientOf(job string, index int) (Client, bool) {
	for _, set := range l.ClientSets {
		if set.Name == job && index >= 0 && index < len(set.Clients) {
			return l.Clients[set.Clients[index]], true
		}
	}
	return Client{}, false
}

// host returns a fully qualified name. So the resolver's search list costs no failing look-ups in
// clusters whose ndots is 5. The name has no final dot, since the parsers of some artifacts reject
// one.
func (l *Layout) host(pod string) string {
	return fmt.Sprintf("%s.%s.%s.svc.%s", pod, l.Service(), l.Namespace, l.domain)
}

// Names of the trial's objects.

// Service is the headless Service that gives every pod its name.
func (l *Layout) Service() string { return l.Trial }

// PrepareJob is the Job of the prepare step.
func (l *Layout) PrepareJob() string { return l.Trial + "-prepare" }

// FilesConfigMap shows the rendered files.
func (l *Layout) FilesConfigMap() string { return l.Trial + "-files" }

// AddressesConfigMap holds the addresses at the release of a trial that resets machines.
func (l *Layout) AddressesConfigMap() string { return l.Trial + "-addresses" }

// ChaosConfigMap holds the records of Chaos Mesh in a trial, until its results are stored.
func (l *Layout) ChaosConfigMap() string { return l.Trial + "-chaos" }

// PreparedSecret holds the prepare step's output.
func (l *Layout) PreparedSecret() string { return l.Trial + "-prepared" }

// PreparedKey is the key in PreparedSecret that holds a gzipped tar.
const PreparedKey = "output.tar.gz"

// ClientResultConfigMap holds one client's report until the trial's results are stored.
func (l *Layout) ClientResultConfigMap(index int) string {
	return fmt.Sprintf("%s-client-%d", l.Trial, index)
}

// CollectedConfigMap holds the files of the trial's pods. It is deleted with the results.
func (l *Layout) CollectedConfigMap() string { return l.ResultsConfigMap() + v1alpha1.FilesSuffix }

// ResultsConfigMap holds the trial's results. It outlives the trial, and so does
// CollectedConfigMap.
func (l *Layout) ResultsConfigMap() string { return l.Trial + "-results" }

// statefulSetNameLimit is the longest name of a StatefulSet. The controller appends a dash and a
// hash of ten characters in a label, which may have 63.
const statefulSetNameLimit = 52

// shortName cuts a long name and appends a hash of the whole name.
func shortName(name string) string {
	if len(name) <= statefulSetNameLimit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:statefulSetNameLimit-6] + "-" + hex.EncodeToString(sum[:])[:5]
}

// Resolve returns a copy of the layout with the addresses of the pods. missing names the pods
// without an address.
func (l *Layout) Resolve(addresses map[string]string) (resolved *Layout, missing []string) {
	r := *l
	r.Servers = append([]Replica(nil), l.Servers...)
	r.Clients = append([]Client(nil), l.Clients...)
	for i := range r.Servers {
		if r.Servers[i].IP = addresses[r.Servers[i].Name]; r.Servers[i].IP == "" {
			missing = append(missing, r.Servers[i].Name)
		}
	}
	for i := range r.Clients {
		if r.Clients[i].IP = addresses[r.Clients[i].Name]; r.Clients[i].IP == "" {
			missing = append(missing, r.Clients[i].Name)
		}
	}
	return &r, missing
}

// Addresses returns the addresses of all pods as one text. If it changes, the trial is rendered
// again.
func (l *Layout) Addresses() string {
	var b strings.Builder
	for _, p := range l.Servers {
		b.WriteString(p.Name + "=" + p.IP + ",")
	}
	for _, p := range l.Clients {
		b.WriteString(p.Name + "=" + p.IP + ",")
	}
	return b.String()
}
