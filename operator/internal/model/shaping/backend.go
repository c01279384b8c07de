package shaping

// Backend is a way of delaying packets.
type Backend string

// The backends, best first.
const (
	// EDT stamps departure times by an eBPF program at the pod's egress; the fq qdisc keeps them.
	// Its cost does not depend on the number of peers.
	EDT Backend = "EDT"
	// Netem classifies by u32 into HTB classes with a netem qdisc each. Peers of which nothing but
	// the same delay is asked share one.
	Netem Backend = "Netem"
	// NFQueue holds packets in the agent, at the receiver. For kernels with neither fq nor netem.
	NFQueue Backend = "NFQueue"
)

// Backends in order of preference.
var Backends = []Backend{EDT, Netem, NFQueue}

// Side is where a backend acts: it says which half of a Peer it uses.
type Side string

// The sides.
const (
	Egress  Side = "Egress"
	Ingress Side = "Ingress"
)

// Side returns where the backend acts.
func (b Backend) Side() Side {
	if b == NFQueue {
		return Ingress
	}
	return Egress
}
