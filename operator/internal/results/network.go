package results

// Network has the links between a trial's pods: what the trial asked for, and what the pods
// measured. Pods measured before t = 0, and by canary probes while the trial ran. Expected is the
// asked delay both ways plus the undelayed path. Pods measured that path (baseline) before anything
// was shaped.
type Network struct {
	// Backend that shaped: EDT, Netem or NFQueue. Empty: nothing was shaped.
	Backend string `json:"backend,omitempty"`
	// ApplyMillis and ProveMillis are the longest that shaping and measuring took in any pod;
	// Rounds of measuring, the most of any pod.
	ApplyMillis float64 `json:"applyMillis"`
	ProveMillis float64 `json:"proveMillis"`
	Rounds      int     `json:"rounds"`
	// Pairs of pods; WorstPair is the one whose round trip was furthest from what was expected, and
	// WorstErrorMillis by how much: measured less expected. A deviation that jitter allows is no
	// error.
	Pairs            int     `json:"pairs"`
	WorstPair        string  `json:"worstPair,omitempty"`
	WorstErrorMillis float64 `json:"worstErrorMillis"`
	// Undirected pairs have a different asked delay in each direction, and clocks that could not
	// tell the directions apart. Only their round trip is proven.
	Undirected int `json:"undirected,omitempty"`
	// Dropped counts lost packets that the trial did not ask for. LateP99Millis and LateMillis are
	// how late agents released packets, at the 99th percentile and at most. They are those of the
	// worst pod.
	Dropped       uint64  `json:"dropped"`
	LateP99Millis float64 `json:"lateP99Millis,omitempty"`
	LateMillis    float64 `json:"lateMillis,omitempty"`
	// Links of each pair of pods. Left out for more than MaxLinks pairs: they are in Regions, put
	// together.
	Links []Link `json:"links,omitempty"`
	// Regions puts the pairs together by the regions of their ends.
	Regions []RegionLinks `json:"regions,omitempty"`
}

// MaxLinks is the most pairs of pods that a trial's results list one by one.
const MaxLinks = 600

// LinkAsked is what was asked of one direction.
type LinkAsked struct {
	DelayMillis  float64 `json:"delayMillis"`
	JitterMillis float64 `json:"jitterMillis,omitempty"`
	// Loss from 0 to 1.
	Loss float64 `json:"loss,omitempty"`
	// RateBits per second; 0: none was asked for.
	RateBits uint64 `json:"rateBits,omitempty"`
}

// Link is the two directions between two pods.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Out is what was asked from From to To, In of the way back.
	Out LinkAsked `json:"out"`
	In  LinkAsked `json:"in"`
	// Round trips, the least of several probes before t = 0. Both ends measured: the figures are of
	// the end with the greater error.
	BaselineMillis float64 `json:"baselineMillis"`
	ExpectedMillis float64 `json:"expectedMillis"`
	MeasuredMillis float64 `json:"measuredMillis"`
	// One way, as measured, where both ends share a clock; else 0.
	OutMillis float64 `json:"outMillis,omitempty"`
	InMillis  float64 `json:"inMillis,omitempty"`
	// Undirected: the asked delays of the two directions differ, and the clocks could not tell the
	// directions apart. Only the round trip is proven: the directions may be swapped.
	Undirected bool `json:"undirected,omitempty"`
	Canary
	// Faulted: a fault changed the link or stopped an end of it, so that its canaries are not
	// judged.
	Faulted bool `json:"faulted,omitempty"`
}

// Canary probes of both ends while the trial ran, round trips.
type Canary struct {
	CanarySent         int     `json:"canarySent,omitempty"`
	CanaryLost         int     `json:"canaryLost,omitempty"`
	CanaryMinMillis    float64 `json:"canaryMinMillis,omitempty"`
	CanaryMedianMillis float64 `json:"canaryMedianMillis,omitempty"` // the greatest of several medians
	CanaryMaxMillis    float64 `json:"canaryMaxMillis,omitempty"`
}

// Add adds other probes to these.
func (c *Canary) Add(o Canary) {
	if o.CanarySent == 0 {
		return
	}
	if c.CanarySent == c.CanaryLost || o.CanarySent > o.CanaryLost && o.CanaryMinMillis < c.CanaryMinMillis {
		c.CanaryMinMillis = o.CanaryMinMillis
	}
	c.CanarySent, c.CanaryLost = c.CanarySent+o.CanarySent, c.CanaryLost+o.CanaryLost
	c.CanaryMedianMillis, c.CanaryMaxMillis = max(c.CanaryMedianMillis, o.CanaryMedianMillis), max(c.CanaryMaxMillis, o.CanaryMaxMillis)
}

// RegionLinks has the pairs with one pod in From and the other in To.
type RegionLinks struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Pairs int    `json:"pairs"`
	// Out is what was asked from From to To, In of the way back.
	Out LinkAsked `json:"out"`
	In  LinkAsked `json:"in"`
	// Round trips before t = 0: the minimum and the maximum of all pairs, as expected and as
	// measured.
	ExpectedMinMillis float64 `json:"expectedMinMillis"`
	ExpectedMaxMillis float64 `json:"expectedMaxMillis"`
	MeasuredMinMillis float64 `json:"measuredMinMillis"`
	MeasuredMaxMillis float64 `json:"measuredMaxMillis"`
	// WorstPair is the one furthest from what was expected, by WorstErrorMillis.
	WorstPair        string  `json:"worstPair,omitempty"`
	WorstErrorMillis float64 `json:"worstErrorMillis"`
	// Undirected pairs: see Link.
	Undirected int `json:"undirected,omitempty"`
	Canary
}

// NetworkLine summarizes the valid trials of an experiment. It is about the pairs of pods between
// two regions with the same asked links.
type NetworkLine struct {
	Backend string `json:"backend,omitempty"`
	// Trials is their number, and WorstTrial the trial with WorstPair.
	Trials     int    `json:"trials"`
	WorstTrial string `json:"worstTrial,omitempty"`
	// Points of these trials, by index.
	Points []int32 `json:"points,omitempty"`
	// RegionLinks is over all of these trials. Pairs is the greatest number of one trial.
	RegionLinks
}

// FaultLine summarizes one fault and one kind of action over the valid trials of an experiment.
type FaultLine struct {
	// Mark: the fault's times count from marks. HeardMaxMillis is how long after a mark's line the
	// last of the pods heard of it.
	Mark           bool    `json:"mark,omitempty"`
	HeardMaxMillis float64 `json:"heardMaxMillis,omitempty"`
	Fault          string  `json:"fault"`
	Kind           string  `json:"kind"`
	// Trials is the number of trials in which the fault acted. Acted is how often it acted, over
	// all pods and occurrences. Skipped is how often a pod did not have the role.
	Trials  int `json:"trials"`
	Acted   int `json:"acted"`
	Skipped int `json:"skipped,omitempty"`
	// How much later than planned the action was confirmed, the median and the most. For an action
	// that ends a fault, its beginning counts.
	LateMedianMillis float64 `json:"lateMedianMillis"`
	LateMaxMillis    float64 `json:"lateMaxMillis"`
	// Packets that partitions dropped.
	Packets uint64 `json:"packets,omitempty"`
	// WithoutSilence: pods were killed while their network stayed as it was, see FaultRecord.
	WithoutSilence bool `json:"withoutSilence,omitempty"`
	// Object of Chaos Mesh that made the fault, see FaultRecord.
	Object string `json:"object,omitempty"`
}

// Recovery is the effect of one occurrence of a fault on throughput, as package stats measures it:
// see docs/reference/results.md.
type Recovery struct {
	Fault string `json:"fault"`
	// Time is the number of the occurrence, from 1: faults may repeat.
	Time int `json:"time"`
	// Kind is the action that began. ConfirmedMillis is when the first pod confirmed it. Resets,
	// commands and Chaos Mesh confirm late: for them, it is when the action began.
	Kind            string  `json:"kind"`
	ConfirmedMillis float64 `json:"confirmedMillis"`
	// ThroughputBefore the fault, in transactions per second.
	ThroughputBefore float64 `json:"throughputBefore"`
	Dipped           bool    `json:"dipped"`
	DetectMillis     float64 `json:"detectMillis,omitempty"`
	Depth            float64 `json:"depth,omitempty"`
	Recovered        bool    `json:"recovered"`
	RecoverMillis    float64 `json:"recoverMillis,omitempty"`
	// LostTransactions from the start of the dip to the recovery, or to the end of the window.
	LostTransactions float64 `json:"lostTransactions,omitempty"`
	// LeastDip is the depth of the shallowest dip that 97.7% of trials tell from noise, from 0 to
	// 1. It is 0 in older results.
	LeastDip float64 `json:"leastDip,omitempty"`
	// ResolvedMillis is how long throughput must be below 90% to be noticed; 0: noise may hide a
	// dip of any length.
	ResolvedMillis float64  `json:"resolvedMillis,omitempty"`
	Cautions       []string `json:"cautions,omitempty"`
	// Data that pods received when they came back. Nil: no pod came back, or the data is unknown.
	Data *DataRecovery `json:"data,omitempty"`
	// Error says why there is nothing to measure: the fault lies at the edge of the window, or
	// nothing was committed before it.
	Error string `json:"error,omitempty"`
}

// DataRecovery is the data of pods that a fault took away. It counts from their return to the end
// of the window, without the pods' usual traffic before the fault.
type DataRecovery struct {
	Pods int `json:"pods"`
	// BackMillis is the time from the confirmed fault until the first of these pods was back.
	BackMillis float64 `json:"backMillis"`
	// ReceivedBytes by the network, and DiskWrittenBytes, of all these pods.
	ReceivedBytes    int64 `json:"receivedBytes"`
	DiskWrittenBytes int64 `json:"diskWrittenBytes"`
	// RestoreMillis is how long the slowest pod took after its return until it had 95% of its
	// received bytes, to a second.
	RestoreMillis float64 `json:"restoreMillis"`
}
