package render

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// links returns the links of a trial, by region. shapes reports whether any of them must be shaped:
// by the network, or for a time by a fault.
func links(spec *v1alpha1.TrialSpec, l *placement.Layout) (matrix network.Matrix, shapes bool, err error) {
	count := map[string]int{} // pods of each region
	var regions []string
	for _, region := range l.RegionNames() {
		if count[region]++; count[region] == 1 {
			regions = append(regions, region)
		}
	}
	if matrix, err = network.Resolve(spec.Network, regions); err != nil {
		return nil, false, fmt.Errorf("spec.network.%w", err)
	}
	for d, link := range matrix {
		shapes = shapes || link != shaping.Link{} && (d.From != d.To || count[d.From] > 1)
	}
	return matrix, shapes || fault.ShapesLinks(spec.Faults), nil
}

// Shapes reports whether links must be shaped in this trial, at some time or all the time.
func (t *Trial) Shapes() bool { return t.shapes }

// everyone has the pods of a trial, in the form that its network needs.
type everyone struct {
	at        map[string]int // index of each pod in the layout
	names     []string
	regions   []string
	addresses []netip.Addr
	meshes    map[string]*protocol.Mesh // by region
}

func everyoneOf(l *placement.Layout) (*everyone, error) {
	e := &everyone{names: append(l.ServerPods(), l.ClientPods()...), regions: l.RegionNames(), at: map[string]int{}, meshes: map[string]*protocol.Mesh{}}
	for i, ip := range l.IPs() {
		address, err := netip.ParseAddr(ip)
		if err != nil {
			return nil, fmt.Errorf("the address of %s: %w", e.names[i], err)
		}
		e.at[e.names[i]], e.addresses = i, append(e.addresses, address)
	}
	return e, nil
}

// Network returns the wanted links between one pod and all others: two directions for each peer, by
// the regions of both ends. The manager adds the parts that do not follow from the trial's spec:
// the key of the probes, and whether and by what to shape.
func (t *Trial) Network(pod string) (*protocol.Network, error) {
	if t.everyone == nil {
		var err error
		if t.everyone, err = everyoneOf(t.Layout); err != nil {
			return nil, err
		}
	}
	self, ok := t.everyone.at[pod]
	if !ok {
		return nil, fmt.Errorf("no pod of the trial is called %q", pod)
	}
	mesh, err := t.mesh(t.everyone.regions[self])
	if err != nil {
		return nil, err
	}
	return &protocol.Network{Tolerance: t.spec.Tolerances.LinkDelay.OrZero(), Mesh: mesh, Self: self}, nil
}

// mesh returns all pods, and their links with a region.
func (t *Trial) mesh(region string) (*protocol.Mesh, error) {
	e := t.everyone
	if e.meshes[region] != nil {
		return e.meshes[region], nil
	}
	pods := make([]protocol.NetworkPeer, len(e.names))
	for i, name := range e.names {
		pods[i] = protocol.NetworkPeer{
			Name: name, Address: e.addresses[i],
			Out: t.links[network.Direction{From: region, To: e.regions[i]}], In: t.links[network.Direction{From: e.regions[i], To: region}],
		}
	}
	mesh, err := protocol.NewMesh(pods)
	if err != nil {
		return nil, fmt.Errorf("encode the links of region %q: %w", region, err)
	}
	e.meshes[region] = mesh
	return mesh, nil
}

// capabilities returns the capabilities of the agents of some pods, which share a template. They
// have none, unless the network of their pods is changed.
//
//	silence of a kill, cut of a partition    NET_ADMIN            (nftables, and closing the sockets of the dead)
//	shaping by EDT                           NET_ADMIN, BPF       (queueing disciplines; the program that stamps packets)
//	shaping by Netem                         NET_ADMIN            (queueing disciplines)
//	shaping by NFQueue                       NET_ADMIN, SYS_NICE  (nftables; the thread that holds packets runs ahead of others, if the cluster's owner lets it)
//	network.shaping: None                    none, whatever is done: such a plan is refused if it needs any
//
// All of them are about the pod's own network namespace, except SYS_NICE, which is about the
// agent's own threads.
func capabilities(pods []string, actions []timeline.Action, shapes bool, network v1alpha1.Network, env Environment) []corev1.Capability {
	backend := network.Backend
	if network.Shaping == v1alpha1.ShapingNone {
		return nil
	}
	if shapes {
		needed := []corev1.Capability{"NET_ADMIN"}
		if automatic := backend != v1alpha1.ShapingNetem && backend != v1alpha1.ShapingNFQueue; backend == v1alpha1.ShapingEDT || automatic && !env.WithoutBPF {
			needed = append(needed, "BPF")
		}
		if backend != v1alpha1.ShapingEDT && backend != v1alpha1.ShapingNetem && !env.WithoutSysNice {
			needed = append(needed, "SYS_NICE")
		}
		return needed
	}
	for _, a := range actions {
		if a.Kind.Filters() && slices.Contains(pods, a.Pod) {
			return []corev1.Capability{"NET_ADMIN"}
		}
	}
	return nil
}

// actions returns the actions of a trial's faults. If Assay may not change the network, a kill does
// not drop packets first, and its record says so.
func actions(spec *v1alpha1.TrialSpec, l *placement.Layout) ([]timeline.Action, error) {
	all, err := fault.Build(spec.Faults, timeline.FromSchedule(spec.Schedule), l)
	if err != nil || spec.Network.Shaping != v1alpha1.ShapingNone {
		return all, err
	}
	for i := range all {
		all[i].WithoutSilence = all[i].Kind == timeline.Kill || all[i].Kind == timeline.Revive
	}
	return all, nil
}

// roles returns how the replica finds out whether it has the roles that its actions are for.
func (t *Trial) roles(ctx *Context, r placement.Replica) ([]protocol.RoleProbe, error) {
	needed := map[string]bool{}
	for _, a := range t.Actions {
		if a.Pod == r.Name && a.Role != "" {
			needed[a.Role] = true
		}
	}
	first := t.system.Group(r.Component).Containers[0].Name
	var out []protocol.RoleProbe
	for i, role := range t.system.Roles {
		if !needed[role.Name] || role.Component != r.Component {
			continue
		}
		delete(needed, role.Name)
		probe := protocol.RoleProbe{Role: role.Name}
		if log := role.Log; log != nil {
			probe.Gained, probe.Lost, probe.Stream, probe.Container = log.Gained, log.Lost, string(log.Stream), log.Container
			if probe.Container == "" {
				probe.Container = first
			}
		} else {
			gate, err := ctx.gate(fmt.Sprintf("spec.roles[%d]", i), v1alpha1.Gate{HTTP: role.HTTP, Command: role.Command}, first, r)
			if err != nil {
				return nil, err
			}
			probe.Gate = &gate
		}
		out = append(out, probe)
	}
	for name := range needed {
		return nil, fmt.Errorf("spec.roles: a fault targets the role %q, which the System does not have", name)
	}
	return out, nil
}

// volumes returns the volumes of a replica, or of a pod of a component.
func (t *Trial) volumes(r placement.Replica) (out []protocol.Volume) {
	for _, v := range t.system.Group(r.Component).Volumes {
		out = append(out, protocol.Volume{Name: v.Name, Path: v.MountPath, Memory: v.Medium == v1alpha1.VolumeMemory || v.Medium == v1alpha1.VolumeHugePages})
	}
	return out
}

// ProbeKey is the key by which the agents of a trial recognize each other's probes. It follows from
// the trial's UID, so that every manager computes the same key. A user who can read the UID could
// forge probes, but would gain nothing. A forged probe can only make the network look wrong, and
// such a user can delete the trial anyway. The key protects trials from mistakes: an address that
// is used again, or an agent of an earlier trial.
func ProbeKey(trial types.UID) []byte {
	sum := sha256.Sum256([]byte("assay.dev/probe-key/" + string(trial)))
	return sum[:16]
}
