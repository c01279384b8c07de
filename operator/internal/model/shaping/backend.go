package shaping

// Backend is a way of delaying packets.
type Backend string

// The backends, best first.
const (
	// EDT stamps departure times with an eBPF program at the pod's egress. The fq qdisc holds
	// packets until then. Its cost does not depend on the number of peers.
	EDT Backend = "EDT"
	// Netem classifies packets with u32 into HTB classes with a netem qdisc each. Peers share a
	// class if their links ask for the same delay and for nothing else.
	Netem Backend = "Netem"
	// NFQueue holds packets in the agent of the receiver. It is for kernels with neither fq nor
	// netem.
	NFQueue Backend = "NFQueue"
)

// Backends in order of preference.
var Backends = []Backend{EDT, Netem, NFQueue}

// Side is the end of a link at which a backend acts. It decides which half of a Peer the backend
// uses.
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
