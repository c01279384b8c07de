package agent

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/netem/probe"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

const (
	// watchInterval is how often the links are read back while a run goes on.
	watchInterval = 2 * time.Second
	// maxMute is how often in a row the shaper may not tell what it dropped: one answer may be late
	// on a busy machine. muteRetry is when it is asked again at the end of the window.
	maxMute   = 3
	muteRetry = 500 * time.Millisecond
	// watchClear is how long before a change of links none is read back: it would have to wait.
	watchClear = 500 * time.Millisecond
	// canaryMargin is how much longer than the longest round trip that is asked a canary's probe
	// may take before it is lost.
	canaryMargin = time.Second
	// disturbanceMargin around a fault is no steady time: what is on its way then may be hit, and
	// the peers may act a little earlier or later.
	disturbanceMargin = 500 * time.Millisecond
)

// doWatch reads the links back from the time a run is agreed, before its warm-up, to its end. It
// also keeps what the shaper says of its own health.
func (a *Agent) doWatch(ctx context.Context) {
	run, n, err := a.awaitWatched(ctx)
	if err != nil || n.Backend == "" {
		return
	}
	for lost := false; ; {
		if !lost && !a.changesSoon(run) {
			if different := a.links.check(); different != "" {
				a.lose(different)
				lost = true
			}
		}
		a.noteHealth()
		if !pause(ctx, watchInterval) {
			return
		}
	}
}

// awaitWatched returns when links are proven and a run is agreed.
func (a *Agent) awaitWatched(ctx context.Context) (run protocol.Run, n protocol.Network, err error) {
	if err := a.await(ctx, func() bool {
		d := a.directiveLocked()
		if d.Network != nil {
			n = *d.Network
		}
		return d.Network != nil && a.journal.Network != nil && a.journal.Network.Proven
	}); err != nil {
		return run, n, err
	}
	run, err = a.awaitRun(ctx)
	return run, n, err
}

// changesSoon reports whether links are about to be changed by a fault.
func (a *Agent) changesSoon(run protocol.Run) bool {
	now := a.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
	return slices.ContainsFunc(run.Actions, func(action timeline.Action) bool {
		return (action.Kind == timeline.Degrade || action.Kind == timeline.Restore) && action.At > now && action.At-now < watchClear
	})
}

// noteHealth keeps what the shaper says it did that nobody asked for, and reports whether it could
// be asked. What it dropped is unknown when it cannot, and not 0: when it cannot be asked again and
// again, the links are not known to be as asked any more.
func (a *Agent) noteHealth() bool {
	health, shaped, err := a.links.health()
	mute := 0
	a.noteQuietly(func() {
		switch {
		case err != nil:
			a.seen.mute++
		case shaped:
			a.seen.health, a.seen.mute = health, 0
		}
		mute = a.seen.mute
	})
	if err == nil {
		return true
	}
	a.config.Log.Warn("The shaper does not tell how it is", "error", err)
	if mute >= maxMute {
		a.lose(fmt.Sprintf("what the shaper drops and delays is not known, since it did not say %d times in a row: %v", mute, err))
	}
	return false
}

// noteLastHealth asks until the shaper has told, or until it has been mute for too long.
func (a *Agent) noteLastHealth(ctx context.Context) {
	for range maxMute {
		if a.noteHealth() || !pause(ctx, muteRetry) {
			return
		}
	}
}

// doCanary probes every peer once a second while the window is measured, and keeps apart what
// faults of this pod may have disturbed. With 20 peers that takes about 1.5% of one processor,
// their own probes answered, and some kilobytes.
func (a *Agent) doCanary(ctx context.Context) {
	run, n, err := a.awaitWatched(ctx)
	if err != nil || a.until(ctx, run.ZeroUnixNanos) != nil {
		return
	}
	end := run.ZeroUnixNanos + int64(run.Measure)
	config, err := a.probing(n)
	if err == nil && a.clock.monotonic(end) <= launcher.Monotonic() { // an agent before this one was to watch
		a.changeReport(func(r *protocol.NetworkReport) { r.Watched = true })
	}
	if err != nil || a.clock.monotonic(end) <= launcher.Monotonic() {
		return
	}
	longest := longestRoundTrip(n.Peers)
	var addresses []netip.Addr
	for _, peer := range n.Peers {
		addresses = append(addresses, peer.Address.Unmap())
	}
	canary, err := probe.Watch(ctx, config, addresses, probe.CanaryOptions{Deadline: longest + canaryMargin})
	if err != nil {
		a.failUnlessDone(ctx, err)
		return
	}
	canary.Disturb(disturbances(run.Actions, n.Peers, a.clock.monotonic(run.ZeroUnixNanos))...)
	a.noteQuietly(func() { a.canary = canary })
	err = a.until(ctx, end)
	// The last probes are given their time; those that are still under way then are not counted.
	if err == nil && longest < canaryMargin {
		pause(ctx, longest)
	}
	watched := canary.Stop()
	a.noteLastHealth(ctx)
	a.changeReport(func(r *protocol.NetworkReport) { r.Links, r.Watched = withCanary(r.Links, watched), err == nil })
}

func withCanary(links []protocol.LinkReport, watched []probe.Watched) []protocol.LinkReport {
	out := slices.Clone(links)
	for i := range min(len(out), len(watched)) {
		m := watched[i].Steady
		out[i].CanarySent, out[i].CanaryLost = m.Sent, m.Sent-m.Answered
		out[i].CanaryMin, out[i].CanaryMedian, out[i].CanaryMax = m.RoundTrip.Min, m.RoundTrip.Median, m.RoundTrip.Max
	}
	return out
}

func longestRoundTrip(peers []protocol.NetworkPeer) time.Duration {
	var longest time.Duration
	for _, peer := range peers {
		longest = max(longest, peer.Out.Delay+peer.Out.Jitter+peer.In.Delay+peer.In.Jitter)
	}
	return longest + 2*netem.MaxBacklog
}

// disturbances are the times in which faults of this pod may change what a canary sees; those of
// the peers only they know. zero is t = 0 on CLOCK_MONOTONIC.
func disturbances(actions []timeline.Action, peers []protocol.NetworkPeer, zero int64) []probe.Disturbance {
	ends := map[string]timeline.Action{}
	for _, action := range actions {
		if action.Ends != "" {
			ends[action.Ends] = action
		}
	}
	var found []probe.Disturbance
	for _, action := range actions {
		if action.Ends != "" {
			continue
		}
		until := int64(math.MaxInt64)
		if end, ok := ends[action.ID]; ok {
			until = zero + int64(end.At+settled(action, peers))
		}
		for _, peer := range touched(action, peers) {
			found = append(found, probe.Disturbance{Peer: peer, From: zero + int64(action.At-disturbanceMargin), Until: until})
		}
	}
	return found
}

// settled is how long after its end a fault may be felt: until what was sent before has arrived.
func settled(action timeline.Action, peers []protocol.NetworkPeer) time.Duration {
	var added time.Duration
	for _, change := range action.Links {
		added = max(added, change.Worse.Delay+change.Worse.Jitter)
	}
	return longestRoundTrip(peers) + 2*added + disturbanceMargin
}

// touched lists the peers whose links a fault changes; no address means all.
func touched(action timeline.Action, peers []protocol.NetworkPeer) []netip.Addr {
	var names []string
	switch action.Kind {
	case timeline.Cut:
		names = slices.Concat(action.Out, action.In)
	case timeline.Degrade:
		for _, change := range action.Links {
			names = append(names, change.Peer)
		}
	default:
		return []netip.Addr{{}}
	}
	var found []netip.Addr
	for _, peer := range peers {
		if slices.Contains(names, peer.Name) {
			found = append(found, peer.Address.Unmap())
		}
	}
	return found
}

// disturbed tells the canary of an action that came later than planned.
func (a *Agent) disturbed(run protocol.Run, action timeline.Action, record protocol.ActionRecord) {
	a.mu.Lock()
	canary, n := a.canary, a.directiveLocked().Network
	a.mu.Unlock()
	if canary == nil || n == nil || record.Error == "" && record.Confirmed-record.Planned < disturbanceMargin/2 {
		return
	}
	zero := a.clock.monotonic(run.ZeroUnixNanos)
	begun := action
	if i := slices.IndexFunc(run.Actions, func(b timeline.Action) bool { return b.ID == action.Ends }); i >= 0 {
		begun = run.Actions[i]
	}
	for _, peer := range touched(begun, n.Peers) {
		canary.Disturb(probe.Disturbance{
			Peer: peer, From: zero + int64(action.At-disturbanceMargin), Until: launcher.Monotonic() + int64(settled(begun, n.Peers)),
		})
	}
}
