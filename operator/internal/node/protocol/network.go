package protocol

import (
	"net/netip"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// Network is what the pod's links must be. The coordinator sets it when every pod of the trial has
// an address; it does not change after that: what faults do to links is in their actions.
type Network struct {
	// Backend to shape with, the same in every pod of the trial. Empty: nothing is shaped, but the
	// links are measured all the same.
	Backend shaping.Backend `json:"backend,omitempty"`
	// Peers are all other pods of the trial. The manager leaves them out where Mesh has them.
	Peers []NetworkPeer `json:"peers,omitempty"`
	// Mesh has all pods of the trial, in the layout's order, this one as number Self.
	Mesh *Mesh `json:"-"`
	Self int   `json:"-"`
	// ProbeKey is known to the trial's agents alone; they answer no other probes.
	ProbeKey []byte `json:"probeKey"`
	// Shape says that the links must be shaped now and then measured. Before, the agent measures
	// the undelayed paths once every peer's agent runs.
	Shape bool `json:"shape,omitempty"`
	// Tolerance of the proof: Tolerances.linkDelay.
	Tolerance time.Duration `json:"tolerance"`
}

// NetworkPeer is another pod of the trial.
type NetworkPeer struct {
	// Name of the pod in the trial's layout.
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	// Out is what is asked of packets to the peer, In of those from it. Measured is judged by both.
	Out shaping.Link `json:"out"`
	In  shaping.Link `json:"in"`
}

// NetworkReport is what the agent says of the pod's links.
type NetworkReport struct {
	// Backends that work in this pod, best first. Refused says of the others why not. Nil before
	// the agent has tried.
	Backends []shaping.Backend          `json:"backends,omitempty"`
	Refused  map[shaping.Backend]string `json:"refused,omitempty"`
	// Tried: Backends and Refused are known.
	Tried bool `json:"tried"`
	// Baseline: the undelayed paths have been measured.
	Baseline bool `json:"baseline"`
	// Proven: the links are as asked, every one of them, as read back from the kernel and as
	// measured.
	Proven bool `json:"proven"`
	// Wrong lists what is not as asked, some of it, in words.
	Wrong []string `json:"wrong,omitempty"`
	// ApplyTook and ProveTook are how long shaping and measuring took. Rounds of measuring: more
	// than 1 means that some pair was measured again.
	ApplyTook time.Duration `json:"applyTook,omitempty"`
	ProveTook time.Duration `json:"proveTook,omitempty"`
	Rounds    int           `json:"rounds,omitempty"`
	// Links to the peers, as measured. From Proven on.
	Links []LinkReport `json:"links,omitempty"`
	// Dropped packets that nothing asked for, since the links were shaped, and where; LateP99 and
	// Late: how late packets were released.
	Dropped    uint64        `json:"dropped,omitempty"`
	DroppedWhy string        `json:"droppedWhy,omitempty"`
	LateP99    time.Duration `json:"lateP99,omitempty"`
	Late       time.Duration `json:"late,omitempty"`
	// Watched: the window is over, and Links have what the canary probes saw.
	Watched bool `json:"watched,omitempty"`
	// Lost says that the links were found not to be as asked after they were proven, and what was
	// wrong. It stays.
	Lost string `json:"lost,omitempty"`
}

// LinkReport is one link to a peer, as measured.
type LinkReport struct {
	Peer string `json:"peer"`
	// BaselineRTT of the undelayed path; RTT as measured before t = 0: the least of several probes.
	BaselineRTT time.Duration `json:"baselineRTT"`
	RTT         time.Duration `json:"rtt"`
	// OutDelay and InDelay are one-way, where both ends share a clock; else 0.
	OutDelay time.Duration `json:"outDelay,omitempty"`
	InDelay  time.Duration `json:"inDelay,omitempty"`
	// Undirected: different delays were asked for the two directions, and the clocks of the two
	// pods could not tell them apart. Had they been swapped, it would not be seen.
	Undirected bool `json:"undirected,omitempty"`
	// Canary probes while the trial ran and no fault changed the link: how many were sent, how many
	// were lost, and the least, median and greatest round trip.
	CanarySent   int           `json:"canarySent,omitempty"`
	CanaryLost   int           `json:"canaryLost,omitempty"`
	CanaryMin    time.Duration `json:"canaryMin,omitempty"`
	CanaryMedian time.Duration `json:"canaryMedian,omitempty"`
	CanaryMax    time.Duration `json:"canaryMax,omitempty"`
}
