package protocol

import (
	"net/netip"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// Network is how the pod's links must be. The coordinator sets it when every pod of the trial has
// an address. It does not change after that: the actions of faults have their changes of links.
type Network struct {
	// Backend that shapes, the same in every pod of the trial. Empty: no link is shaped, but the
	// links are measured.
	Backend shaping.Backend `json:"backend,omitempty"`
	// Peers are all other pods of the trial. The manager leaves them out if Mesh has them.
	Peers []NetworkPeer `json:"peers,omitempty"`
	// Mesh has all pods of the trial, in the layout's order, this one as number Self.
	Mesh *Mesh `json:"-"`
	Self int   `json:"-"`
	// ProbeKey is known only to the trial's agents, which answer no other probes.
	ProbeKey []byte `json:"probeKey"`
	// Shape says that the agent must now shape the links and then measure them. Before that, the
	// agent measures the undelayed paths once every peer's agent runs.
	Shape bool `json:"shape,omitempty"`
	// Tolerance of the proof: Tolerances.linkDelay.
	Tolerance time.Duration `json:"tolerance"`
}

// NetworkPeer is another pod of the trial.
type NetworkPeer struct {
	// Name of the pod in the trial's layout.
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	// Out is the requested link to the peer, and In the link from the peer. The measurements are
	// compared with both.
	Out shaping.Link `json:"out"`
	In  shaping.Link `json:"in"`
}

// NetworkReport is the agent's report on the pod's links.
type NetworkReport struct {
	// Backends that work in this pod, best first. Refused has the reasons for the others. Nil until
	// the agent has tried them.
	Backends []shaping.Backend          `json:"backends,omitempty"`
	Refused  map[shaping.Backend]string `json:"refused,omitempty"`
	// Tried: Backends and Refused are known.
	Tried bool `json:"tried"`
	// Baseline: the undelayed paths have been measured.
	Baseline bool `json:"baseline"`
	// Proven: all links are as requested, as read back from the kernel and as measured.
	Proven bool `json:"proven"`
	// Wrong describes differences from the request in words. It may leave some out.
	Wrong []string `json:"wrong,omitempty"`
	// ApplyTook and ProveTook are how long shaping and measuring took. Rounds counts rounds of
	// measuring: more than 1 means that some pair was measured again.
	ApplyTook time.Duration `json:"applyTook,omitempty"`
	ProveTook time.Duration `json:"proveTook,omitempty"`
	Rounds    int           `json:"rounds,omitempty"`
	// Links to the peers, as measured. Set once Proven is true.
	Links []LinkReport `json:"links,omitempty"`
	// Dropped packets without a request, since the links were shaped, and where they were dropped.
	// LateP99 and Late are how late packets were released.
	Dropped    uint64        `json:"dropped,omitempty"`
	DroppedWhy string        `json:"droppedWhy,omitempty"`
	LateP99    time.Duration `json:"lateP99,omitempty"`
	Late       time.Duration `json:"late,omitempty"`
	// Watched: the window is over, and Links have the results of the canary probes.
	Watched bool `json:"watched,omitempty"`
	// Lost says what was wrong with links that had been proven before. Once set, it stays.
	Lost string `json:"lost,omitempty"`
}

// LinkReport is one link to a peer, as measured.
type LinkReport struct {
	Peer string `json:"peer"`
	// BaselineRTT is that of the undelayed path. RTT was measured before t = 0. Both are the least
	// of several probes.
	BaselineRTT time.Duration `json:"baselineRTT"`
	RTT         time.Duration `json:"rtt"`
	// OutDelay and InDelay are one-way delays, if both ends share a clock; else 0.
	OutDelay time.Duration `json:"outDelay,omitempty"`
	InDelay  time.Duration `json:"inDelay,omitempty"`
	// Undirected: the two directions have different requested delays, and the clocks of the two
	// pods could not tell them apart. The measurement would not show it if they were swapped.
	Undirected bool `json:"undirected,omitempty"`
	// Canary probes during the run, while no fault changed the link: how many were sent and lost,
	// and the least, median and greatest round trip.
	CanarySent   int           `json:"canarySent,omitempty"`
	CanaryLost   int           `json:"canaryLost,omitempty"`
	CanaryMin    time.Duration `json:"canaryMin,omitempty"`
	CanaryMedian time.Duration `json:"canaryMedian,omitempty"`
	CanaryMax    time.Duration `json:"canaryMax,omitempty"`
}
