package pequin

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// replicasOf is the number of replicas of a shard in the notation of a System, by the artifact's
// name of the protocol.
var replicasOf = map[string]string{
	"pequin": "5*f+1", "indicus": "5*f+1",
	"tapir": "2*f+1", "morty": "2*f+1", "strong": "2*f+1", "weak": "2*f+1",
	"pbft": "3*f+1", "hotstuff": "3*f+1", "bftsmart": "3*f+1", "augustus": "3*f+1", "peloton-smr": "3*f+1", "pg-smr": "3*f+1",
	"pg":   "1",
	"crdb": "f", // the artifact gives the number of nodes as fault_tolerance
}

// placement says in which regions the replicas of a configuration are.
type placement struct {
	count    string // expression over f
	f        int32
	replicas int // of one shard
	shards   int
	hosts    []string // server_names
	regions  []v1alpha1.Region
	links    []v1alpha1.RegionLink
	wan      bool // the network is shaped
	local    bool // all on one machine
	matrix   *object
	notes    []string
}

// place reads the topology and the network of one series.
func place(get func(string) any, protocol string) (*placement, error) {
	p := &placement{shards: 1}
	for _, name := range []string{"num_shards", "num_groups"} { // the second one counts
		if v := get(name); v != nil {
			n, err := whole(name, v, 1, 64)
			if err != nil {
				return nil, err
			}
			p.shards = n
		}
	}
	if v := get("num_shards"); v != nil && text(v) != strconv.Itoa(p.shards) {
		p.note("num_shards is %s and num_groups %d; the number of groups of replicas is what counts here, and num_shards stays a parameter", text(v), p.shards)
	}
	f, err := whole("fault_tolerance", get("fault_tolerance"), 0, 33)
	if err != nil {
		return nil, err
	}
	p.f = int32(f)
	if v := get("server_names"); v != nil {
		if p.hosts, err = texts(v); err != nil {
			return nil, wrong("server_names", "server_names: %w", err)
		}
	}
	if err := p.size(protocol); err != nil {
		return nil, err
	}
	if err := p.emulates(get); err != nil {
		return nil, err
	}
	if p.matrix, err = roundTripsOf(get); err != nil {
		return nil, err
	}
	if err := p.place(get("server_regions")); err != nil {
		return nil, err
	}
	return p, p.network(get)
}

// emulates finds out whether the artifact shapes the network: server_emulate_wan has no effect on a
// run on one machine.
func (p *placement) emulates(get func(string) any) error {
	for name, to := range map[string]*bool{"server_emulate_wan": &p.wan, "run_locally": &p.local} {
		v := get(name)
		b, ok := v.(bool)
		if !ok && v != nil {
			return wrong(name, "%s is %s; it must be true or false", name, short(text(v)))
		}
		*to = b
	}
	if p.wan && p.local {
		p.wan = false
		p.note("run_locally is true, so that server_emulate_wan has no effect in the artifact; nor has it here, where each replica has a pod of its own")
	}
	return nil
}

// roundTripsOf returns the matrix of round trips between regions. Older configurations have a
// matrix of round trips between servers instead.
func roundTripsOf(get func(string) any) (*object, error) {
	for _, name := range []string{"region_rtt_latencies", "server_ping_latencies"} {
		v := get(name)
		matrix, ok := v.(*object)
		if !ok && v != nil {
			return nil, wrong(name, "%s is %s; it must be an object with an object of round trips for each region", name, short(text(v)))
		}
		if matrix != nil {
			return matrix, nil
		}
	}
	return nil, nil
}

func (p *placement) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// size finds the number of replicas of a shard.
func (p *placement) size(protocol string) error {
	count, known := replicasOf[protocol]
	if most := 2*int(p.f) + 1; !known && len(p.hosts) > 0 && len(p.hosts) < most {
		p.replicas = max(1, len(p.hosts)/p.shards)
		p.count = strconv.Itoa(p.replicas)
		p.note("replication_protocol %q is not known here; %d server_names for %d groups are read as %d replicas in each shard, whatever f is", protocol, len(p.hosts), p.shards, p.replicas)
		return nil
	} else if !known {
		count = "2*f+1"
		p.note("replication_protocol %q has no number of replicas of its own in the artifact's scripts; as there, a shard has %s = %d", protocol, count, most)
	}
	p.count = count
	p.replicas = map[string]int{"5*f+1": 5*int(p.f) + 1, "3*f+1": 3*int(p.f) + 1, "2*f+1": 2*int(p.f) + 1, "1": 1, "f": int(p.f)}[count]
	if p.replicas == 0 {
		return wrong("fault_tolerance", "fault_tolerance is 0; with %s it is the number of nodes, so that there would be none", protocol)
	}
	if want := p.replicas * p.shards; len(p.hosts) > 0 && len(p.hosts) != want {
		p.note("%s with fault_tolerance %d has %s = %d replicas in each of %d shards, %d in all, on the %d machines of server_names; here each replica has a pod of its own",
			protocol, p.f, count, p.replicas, p.shards, want, len(p.hosts))
	}
	return nil
}

var regionName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// place puts the replicas of a shard into regions.
func (p *placement) place(regions any) error {
	of, err := regionsOfHosts(regions)
	if err != nil {
		return err
	}
	if len(p.hosts) == 0 {
		p.note("there are no server_names; all replicas are in one region")
		return nil
	}
	first := p.regionsOf(0, of)
	if regions == nil && !p.wan && slices.ContainsFunc(first, func(name string) bool { return !isRegion(name) }) {
		p.note("there are no server_regions, and the server_names are no names of regions; all replicas are in one region")
		return nil
	}
	for shard := 1; shard < p.shards; shard++ {
		if there := p.regionsOf(shard, of); !slices.Equal(first, there) {
			p.note("the artifact's shards are in other regions than the first (shard %d in %s); an Experiment places all shards alike", shard, strings.Join(slices.Compact(there), ", "))
			break
		}
	}
	for _, name := range first {
		i := slices.IndexFunc(p.regions, func(r v1alpha1.Region) bool { return r.Name == name })
		if i < 0 {
			p.regions = append(p.regions, v1alpha1.Region{Name: name})
			i = len(p.regions) - 1
		}
		p.regions[i].Replicas++
	}
	if !slices.IsSortedFunc(first, func(a, b string) int { return p.order(a) - p.order(b) }) {
		p.note("server_names alternates between regions; replicas are numbered region by region here")
	}
	for _, r := range p.regions {
		if !isRegion(r.Name) {
			return wrong("server_regions", "server_regions: %q: a region's name has at most 14 lower-case letters, digits and dashes; rename it in the configuration", r.Name)
		}
	}
	if len(p.regions) > 16 {
		return wrong("server_regions", "server_regions: a shard is in %d regions; at most 16 are possible", len(p.regions))
	}
	return nil
}

func isRegion(name string) bool { return len(name) <= 14 && regionName.MatchString(name) }

// regionsOfHosts inverts server_regions: it returns the region of each server.
func regionsOfHosts(regions any) (map[string]string, error) {
	of := map[string]string{}
	table, ok := regions.(*object)
	if !ok && regions != nil {
		return nil, wrong("server_regions", "server_regions is %s; it must be regions with the names of their servers", short(text(regions)))
	}
	if table == nil {
		return of, nil
	}
	for _, region := range table.names {
		names, err := texts(table.values[region])
		if err != nil {
			return nil, wrong("server_regions", "server_regions: %s: %w", region, err)
		}
		for _, name := range names {
			of[name] = region
		}
	}
	return of, nil
}

func (p *placement) order(region string) int {
	return slices.IndexFunc(p.regions, func(r v1alpha1.Region) bool { return r.Name == region })
}

// regionsOf returns the regions of a shard's replicas, as the artifact writes them into its
// shard.config. With n replicas in a shard and x = machines / n, replica i of group g is on machine
// i*x + g mod x. So the machines of a shard are x apart.
func (p *placement) regionsOf(shard int, of map[string]string) []string {
	out := make([]string, p.replicas)
	apart := len(p.hosts) / p.replicas
	for i := range out {
		at := shard*p.replicas + i // the artifact has no rule for too few machines
		if apart > 0 {
			at = i*apart + shard%apart
		}
		out[i] = p.regionOf(p.hosts[at%len(p.hosts)], of)
	}
	return out
}

// regionOf returns the region of a machine. us-east-1-0 is in us-east-1, unless server_regions or a
// matrix of round trips between servers states another region.
func (p *placement) regionOf(host string, of map[string]string) string {
	if region, known := of[host]; known {
		return region
	}
	if p.matrix.get(host) != nil {
		return host
	}
	if at := strings.LastIndexByte(host, '-'); at > 0 {
		return host[:at]
	}
	return host
}

// network reads the matrix of round trips. Without server_emulate_wan the artifact does not apply
// the matrix, so the import writes the links as a comment only.
func (p *placement) network(get func(string) any) error {
	if p.matrix == nil {
		if p.wan {
			return wrong("server_emulate_wan", "server_emulate_wan is true, and there is no region_rtt_latencies")
		}
		return nil
	}
	rate, err := bandwidth(get("max_bandwidth"))
	if err != nil {
		p.note("%v; the rate of links is left at its default", err)
	}
	odd := false
	for i, a := range p.regions {
		for _, b := range p.regions[i:] {
			there, err := p.rtt(a.Name, b.Name)
			if err != nil {
				return err
			}
			back, err := p.rtt(b.Name, a.Name)
			if err != nil {
				return err
			}
			odd = odd || int64(there)%2 == 1 || int64(back)%2 == 1
			p.link(a.Name, b.Name, there, back, rate)
		}
	}
	if p.wan && odd {
		p.note("the artifact delays each way by half the round trip in whole ms, so that it runs an odd one 1 ms shorter than configured; here it is as configured")
	}
	return nil
}

// rtt is an entry of the matrix, in ms.
func (p *placement) rtt(from, to string) (float64, error) {
	row, _ := p.matrix.get(from).(*object)
	n, ok := row.get(to).(number)
	if !ok {
		if from == to || !p.wan {
			return 0, nil
		}
		return 0, wrong("region_rtt_latencies", "region_rtt_latencies has no number from %s to %s", from, to)
	}
	ms, err := strconv.ParseFloat(string(n), 64)
	if err != nil || ms < 0 || ms > 20_000 {
		return 0, wrong("region_rtt_latencies", "region_rtt_latencies: %s from %s to %s; it must be from 0 to 20000 ms", n, from, to)
	}
	return ms, nil
}

func (p *placement) link(a, b string, there, back float64, rate string) {
	ms := func(x float64) *v1alpha1.Duration {
		d := v1alpha1.Duration(strconv.FormatFloat(x, 'f', -1, 64) + "ms")
		return &d
	}
	switch {
	case there == 0 && back == 0:
	case there == back:
		p.links = append(p.links, v1alpha1.RegionLink{Between: []string{a, b}, RTT: ms(there), LinkEffect: v1alpha1.LinkEffect{Rate: rate}})
	default:
		p.links = append(p.links,
			v1alpha1.RegionLink{From: a, To: b, LinkEffect: v1alpha1.LinkEffect{Delay: ms(there / 2), Rate: rate}},
			v1alpha1.RegionLink{From: b, To: a, LinkEffect: v1alpha1.LinkEffect{Delay: ms(back / 2), Rate: rate}})
	}
}

var rates = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([kmgt]?)(i?)(bit|bps)$`)

// bandwidth converts a rate in the notation of tc into ours: 1gibps is 2^30 bytes in a second,
// 8.589934592Gbit.
func bandwidth(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	s, _ := v.(string)
	m := rates.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return "", fmt.Errorf("max_bandwidth %s is no rate that is understood", short(text(v)))
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return "", fmt.Errorf("max_bandwidth %s: %w", s, err)
	}
	thousand := 1000.
	if m[3] == "i" {
		thousand = 1024
	}
	for range map[string]int{"": 0, "k": 1, "m": 2, "g": 3, "t": 4}[m[2]] {
		n *= thousand
	}
	if m[4] == "bps" {
		n *= 8
	}
	if n < 1000 || n > 100e9 {
		return "", fmt.Errorf("max_bandwidth %s is not from 1 kbit/s to 100 Gbit/s", s)
	}
	return strconv.FormatFloat(n/1e9, 'f', -1, 64) + "Gbit", nil
}
