package trial

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

// fewestLost is how many canary probes of a pair must be lost before their share counts: one or two may meet a busy moment.
const fewestLost = 3

// judgeNetwork says why the network of a run cannot be trusted, or nothing: what the agents' shapers did that nobody asked for, and what canary probes saw.
// Where nothing was shaped, nothing was asked, and canaries are only recorded.
func (r *Reconciler) judgeNetwork(s *scope, tolerances v1alpha1.Tolerances) (reason, message string) {
	tolerated := tolerances.LinkLateness.OrZero()
	shaped := s.trial.Status.Network != nil && s.trial.Status.Network.Backend != "" && s.rendered != nil
	for _, name := range s.everyName() {
		n := r.networkOf(s, name)
		switch {
		case s.agentInterrupted(name):
			continue // what its agent knew is gone; such a trial asks for nothing, so that nothing is left to confirm
		case n == nil || !n.Baseline || !n.Proven && n.Lost == "":
			return v1alpha1.ReasonNetworkNotConfirmed, fmt.Sprintf("The agent of %s did not confirm at the end that its links had been as asked.", name)
		case n.Lost != "":
			return v1alpha1.ReasonNetworkLost, lostMessage(name, n)
		case n.Dropped > 0:
			return v1alpha1.ReasonPacketsLost, fmt.Sprintf("%d packets of %s were dropped that nothing asked for: %s.", n.Dropped, name, n.DroppedWhy)
		case n.LateP99 > tolerated:
			return v1alpha1.ReasonNetworkLate, fmt.Sprintf("The agent of %s released packets %v late at the 99th percentile; %v are tolerated.", name, n.LateP99, tolerated)
		case shaped && !n.Watched:
			return v1alpha1.ReasonNetworkNotConfirmed, fmt.Sprintf("The agent of %s did not say at the end what its probes had seen in the window.", name)
		}
	}
	if !shaped {
		return "", ""
	}
	faulted := r.faultedPairs(s)
	for _, p := range r.pairs(s) {
		for _, v := range p.views() {
			if reason, message := v.judge(tolerances, faulted.pair(p.a, p.b)); reason != "" {
				return reason, message
			}
			if reason, message := s.judgeProbed(v, faulted.pair(p.a, p.b)); reason != "" {
				return reason, message
			}
		}
	}
	return "", ""
}

// probedAfter is how long after the beginning of the window each pod has probed each other one, and knows what became of that, the probe's own time left out: a second until all
// had their turn, one until an unanswered probe is lost, one until that is noticed.
const probedAfter = 3 * canaryEvery

// judgeProbed says that nothing is known of a pair, if no probe of a window in which one must have been sent was counted. What a pod sees while its own agent carries out
// faults is counted apart.
func (s *scope) judgeProbed(v view, faulted bool) (reason, message string) {
	long := s.trial.Spec.Schedule.Measure.OrZero() >= probedAfter+s.longestRoundTrip()+2*netem.MaxBacklog
	if !long || faulted || v.cut() || v.said.CanarySent > 0 || s.agentActs(v.from) {
		return "", ""
	}
	return v1alpha1.ReasonNetworkNotConfirmed, fmt.Sprintf("%s <-> %s: while the trial ran no probe of %s was counted, so that it is not known whether the link was as asked.", v.from, v.to, v.from)
}

func lostMessage(pod string, n *protocol.NetworkReport) string {
	return fmt.Sprintf("The links of %s were not as asked any more: %s.", pod, n.Lost)
}

// judge looks at what one end's canaries saw. A fault can make packets late or lose them, but never early.
func (v view) judge(tolerances v1alpha1.Tolerances, faulted bool) (reason, message string) {
	tolerance := tolerances.LinkDelay.OrZero()
	if v.said == nil || v.said.BaselineRTT <= 0 {
		return v1alpha1.ReasonNetworkNotConfirmed, fmt.Sprintf("The agent of %s did not say at the end what it had measured of its links with %s.", v.from, v.to)
	}
	c := v.said
	answered := c.CanarySent - c.CanaryLost
	if v.cut() || c.CanarySent == 0 {
		return "", ""
	}
	w := way{v.from + " <-> " + v.to, "for the round trip", v.out.Delay + v.in.Delay, v.out.Jitter + v.in.Jitter, c.BaselineRTT, 0}
	if answered > 0 && c.CanaryMin < w.asked-w.jitter-early {
		w.measured = c.CanaryMin
		return v1alpha1.ReasonNetworkLost, "While the trial ran a probe was too quick. " + w.describe(tolerance) + "."
	}
	if faulted {
		return "", ""
	}
	if answered > 0 && c.CanaryMedian > w.asked+w.jitter+w.path+tolerance+backlog(v.out)+backlog(v.in) {
		w.measured = c.CanaryMedian
		return v1alpha1.ReasonNetworkLate, "While the trial ran the median of the probes was too slow. " + w.describe(tolerance) + "."
	}
	if v.out.Rate != 0 || v.in.Rate != 0 {
		return "", "" // a link that is full loses packets, as asked
	}
	allowed := 1 - (1-v.out.Loss)*(1-v.in.Loss) + tolerances.LinkLoss.OrZero()
	if c.CanaryLost >= fewestLost && float64(c.CanaryLost) > allowed*float64(c.CanarySent) {
		return v1alpha1.ReasonPacketsLost, fmt.Sprintf("%s <-> %s: %d of %d probes were lost while the trial ran; at most %.0f%% may be.",
			v.from, v.to, c.CanaryLost, c.CanarySent, 100*min(allowed, 1))
	}
	return "", ""
}

// backlog is how long a packet may wait for the rate that was asked of a link.
func backlog(l netem.Link) time.Duration {
	if l.Rate == 0 {
		return 0
	}
	return netem.MaxBacklog
}

// faulted are the pods that a fault stopped or killed, and the pairs whose links one changed.
type faulted struct {
	pods  map[string]bool
	pairs map[[2]string]bool
}

func (f faulted) pair(a, b string) bool {
	return f.pods[a] || f.pods[b] || f.pairs[[2]string{a, b}] || f.pairs[[2]string{b, a}]
}

// faultedPairs looks at what was done, not at when: each agent leaves out of its canaries what its own faults touch, but does not know those of others.
func (r *Reconciler) faultedPairs(s *scope) faulted {
	f := faulted{map[string]bool{}, map[[2]string]bool{}}
	for _, a := range s.actions() {
		if rec := r.recordOf(s, a); rec != nil && rec.Skipped {
			continue
		}
		switch a.Kind {
		case timeline.Kill, timeline.Reset, timeline.Inject:
			f.pods[a.Pod] = true
		case timeline.Cut:
			for _, peers := range [][]string{a.Out, a.In} {
				for _, peer := range peers {
					f.pairs[[2]string{a.Pod, peer}] = true
				}
			}
		case timeline.Degrade:
			for _, l := range a.Links {
				f.pairs[[2]string{a.Pod, l.Peer}] = true
			}
		}
	}
	return f
}
