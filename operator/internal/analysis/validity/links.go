package validity

import (
	"fmt"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
)

// fewestLost is how many canary probes of a pair must be lost before their share counts: one or two
// may meet a busy moment.
const fewestLost = 3

// links judges the network of a run: effects of the agents' shapers that nothing asked for, and the
// results of canary probes. If nothing was shaped, canaries are only recorded.
func links(o *Observation) Failure {
	for i := range o.Pods {
		if v := judgeAgentNetwork(o, &o.Pods[i]); !v.OK() {
			return v
		}
	}
	if !o.Shaped() {
		return Failure{}
	}
	faulted, longest := o.Faulted(), o.LongestRoundTrip()
	for _, p := range o.Pairs {
		for _, view := range p.Views() {
			if v := judgeView(view, o.Spec().Tolerances, faulted.Pair(p.A, p.B)); !v.OK() {
				return v
			}
			if v := judgeProbed(o, view, faulted.Pair(p.A, p.B), longest); !v.OK() {
				return v
			}
		}
	}
	return Failure{}
}

func judgeAgentNetwork(o *Observation, p *Pod) Failure {
	tolerated := o.Spec().Tolerances.LinkLateness.OrZero()
	n := p.Network()
	switch {
	case p.AgentInterrupted:
		return Failure{} // its agent's knowledge is gone; such a trial asks for no shaping, so that nothing is left to confirm
	case n == nil || !n.Baseline || !n.Proven && n.Lost == "":
		return fail(v1alpha1.ReasonNetworkNotConfirmed, "The agent of %s did not confirm at the end that its links had been as asked.", p.Name)
	case n.Lost != "":
		return fail(v1alpha1.ReasonNetworkLost, "%s", LinksLost(p.Name, n))
	case n.Dropped > 0:
		return fail(v1alpha1.ReasonPacketsLost, "%d packets of %s were dropped that nothing asked for: %s.", n.Dropped, p.Name, n.DroppedWhy)
	case n.LateP99 > tolerated:
		return fail(v1alpha1.ReasonNetworkLate, "The agent of %s released packets %v late at the 99th percentile; tolerances.linkLateness is %v.", p.Name, n.LateP99, tolerated)
	case o.Shaped() && !n.Watched:
		return fail(v1alpha1.ReasonNetworkNotConfirmed, "The agent of %s did not say at the end what its probes had seen in the window.", p.Name)
	}
	return Failure{}
}

// probedAfter is the time from the beginning of the window until each pod has probed each other one
// and knows the outcome, without the probe's own time. All have had their turn after one second. An
// unanswered probe is lost after another second, and noticed after a third.
const probedAfter = 3 * canaryEvery

// judgeProbed fails if no probe of a pair was counted in a window in which one must have been sent.
// Probes of a pod while its own agent carries out faults are counted separately.
func judgeProbed(o *Observation, v View, faulted bool, longest time.Duration) Failure {
	long := o.Windows().Measure >= probedAfter+longest+2*shaping.MaxBacklog
	if !long || faulted || v.Cut() || v.Said.CanarySent > 0 || o.AgentActs(v.From) {
		return Failure{}
	}
	return fail(v1alpha1.ReasonNetworkNotConfirmed, "%s <-> %s: while the trial ran no probe of %s was counted, so that it is not known whether the link was as asked.", v.From, v.To, v.From)
}

// LinksLost says that the links of a pod are no longer as asked.
func LinksLost(pod string, n *protocol.NetworkReport) string {
	return fmt.Sprintf("The links of %s were not as asked any more: %s.", pod, n.Lost)
}

// judgeView judges the results of one end's canaries. A fault can make packets late or lose them,
// but never early.
func judgeView(v View, tolerances v1alpha1.Tolerances, faulted bool) Failure {
	tolerance := tolerances.LinkDelay.OrZero()
	if v.Said == nil || v.Said.BaselineRTT <= 0 {
		return fail(v1alpha1.ReasonNetworkNotConfirmed, "The agent of %s did not say at the end what it had measured of its links with %s.", v.From, v.To)
	}
	c := v.Said
	answered := c.CanarySent - c.CanaryLost
	if v.Cut() || c.CanarySent == 0 {
		return Failure{}
	}
	w := way{v.From, "<->", v.To, "for the round trip", v.Out.Delay + v.In.Delay, v.Out.Jitter + v.In.Jitter, c.BaselineRTT, 0}
	if answered > 0 && c.CanaryMin < w.asked-w.jitter-early {
		w.measured = c.CanaryMin
		return Failure{v1alpha1.ReasonNetworkLost, "While the trial ran a probe was too quick. " + w.describe(tolerance) + "."}
	}
	if faulted {
		return Failure{}
	}
	if answered > 0 && c.CanaryMedian > w.asked+w.jitter+w.path+tolerance+backlog(v.Out)+backlog(v.In) {
		w.measured = c.CanaryMedian
		return Failure{v1alpha1.ReasonNetworkLate, "While the trial ran the median of the probes was too slow. " + w.describe(tolerance) + "."}
	}
	if v.Out.Rate != 0 || v.In.Rate != 0 {
		return Failure{} // a link that is full loses packets, as asked
	}
	allowed := 1 - (1-v.Out.Loss)*(1-v.In.Loss) + tolerances.LinkLoss.OrZero()
	if c.CanaryLost >= fewestLost && float64(c.CanaryLost) > allowed*float64(c.CanarySent) {
		return fail(v1alpha1.ReasonPacketsLost, "%s <-> %s: %d of %d probes were lost while the trial ran; at most %.0f%% may be, by the asked loss and tolerances.linkLoss.",
			v.From, v.To, c.CanaryLost, c.CanarySent, 100*min(allowed, 1))
	}
	return Failure{}
}

// backlog is how long a packet may wait for the rate that was asked of a link.
func backlog(l shaping.Link) time.Duration {
	if l.Rate == 0 {
		return 0
	}
	return shaping.MaxBacklog
}
