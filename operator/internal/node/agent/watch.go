package agent

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/netem/probe"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// watchInterval is how often the links are read back while a run goes on.
	watchInterval = 2 * time.Second
	// maxUnreported is how often in a row the shaper may not report its drops: on a busy machine
	// one answer may be late. healthRetry is the wait between two questions at the end of the
	// window.
	maxUnreported = 3
	healthRetry   = 500 * time.Millisecond
	// watchClear is how long before a change of links the agent reads no links back: the change
	// would have to wait.
	watchClear = 500 * time.Millisecond
	// canaryMargin is how much longer than the longest requested round trip a canary's probe may
	// take before it counts as lost.
	canaryMargin = time.Second
	// disturbanceMargin is the time before and after a fault that does not count as steady. The
	// fault may hit packets on their way, and the peers may act a little earlier or later.
	disturbanceMargin = 500 * time.Millisecond
)

// watcher looks at the links while the run goes on.
type watcher struct {
	*state
	clock   *runClock
	links   *links
	shaping *linkShaper
	canary  *probe.Canary // nil except during the window; guarded by the state's mutex
}

// doWatch reads the links back from the agreement on a run, before its warm-up, to its end. It also
// keeps the shaper's report on its own health.
func (w *watcher) doWatch(ctx context.Context) {
	run, n, err := w.awaitWatched(ctx)
	if err != nil || n.Backend == "" {
		return
	}
	for lost := false; ; {
		run.Actions = w.directive().Run.Actions // meanwhile, marks may have dated some actions
		if !lost && !w.changesSoon(run) {
			if different := w.links.check(); different != "" {
				w.shaping.reportLost(different)
				lost = true
			}
		}
		w.noteHealth()
		if !pause(ctx, watchInterval) {
			return
		}
	}
}

// awaitWatched returns when links are proven and a run is agreed.
func (w *watcher) awaitWatched(ctx context.Context) (run protocol.Run, n protocol.Network, err error) {
	if err := w.await(ctx, func() bool {
		d := w.directiveLocked()
		if d.Network != nil {
			n = *d.Network
		}
		return d.Network != nil && w.journal.Network != nil && w.journal.Network.Proven
	}); err != nil {
		return run, n, err
	}
	run, err = w.clock.awaitRun(ctx)
	return run, n, err
}

// changesSoon reports whether a fault is about to change links.
func (w *watcher) changesSoon(run protocol.Run) bool {
	now := w.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
	return slices.ContainsFunc(run.Actions, func(action timeline.Action) bool {
		return (action.Kind == timeline.Degrade || action.Kind == timeline.Restore) && action.At > now && action.At-now < watchClear
	})
}

// noteHealth keeps the shaper's report of drops and delays that no link requests. It returns
// whether there was a report. Without a report the number of drops is unknown, and not 0. After
// several questions without an answer, the links no longer count as verified.
func (w *watcher) noteHealth() bool {
	health, shaped, err := w.links.health()
	mute := 0
	w.noteQuietly(func() {
		switch {
		case err != nil:
			w.volatile.healthUnreported++
		case shaped:
			w.volatile.health, w.volatile.healthUnreported = health, 0
		}
		mute = w.volatile.healthUnreported
	})
	if err == nil {
		return true
	}
	w.config.Log.Warn("The shaper does not tell how it is", "error", err)
	if mute >= maxUnreported {
		w.shaping.reportLost(fmt.Sprintf("what the shaper drops and delays is not known, since it did not say %d times in a row: %v", mute, err))
	}
	return false
}

// noteLastHealth asks until the shaper has reported, or until it has failed to report too often.
func (w *watcher) noteLastHealth(ctx context.Context) {
	for range maxUnreported {
		if w.noteHealth() || !pause(ctx, healthRetry) {
			return
		}
	}
}

// doCanary probes every peer once a second during the window. It counts probes separately that
// faults of this pod may have disturbed. With 20 peers, probing and answering the peers' probes
// take about 1.5% of one processor and some kilobytes.
func (w *watcher) doCanary(ctx context.Context) {
	run, n, err := w.awaitWatched(ctx)
	if err != nil || w.clock.until(ctx, run.ZeroUnixNanos) != nil {
		return
	}
	end := run.ZeroUnixNanos + int64(run.Measure)
	config, err := w.shaping.probing(n)
	if err == nil && w.clock.monotonic(end) <= launcher.Monotonic() { // the window was that of an agent before this one
		w.shaping.changeReport(func(r *protocol.NetworkReport) { r.Watched = true })
	}
	if err != nil || w.clock.monotonic(end) <= launcher.Monotonic() {
		return
	}
	longest := longestRoundTrip(n.Peers)
	var addresses []netip.Addr
	for _, peer := range n.Peers {
		addresses = append(addresses, peer.Address.Unmap())
	}
	canary, err := probe.Watch(ctx, config, addresses, probe.CanaryOptions{Deadline: longest + canaryMargin})
	if err != nil {
		w.failUnlessDone(ctx, err)
		return
	}
	canary.Disturb(disturbances(run.Actions, n.Peers, w.clock.monotonic(run.ZeroUnixNanos))...)
	w.noteQuietly(func() { w.canary = canary })
	running, stop := w.clock.whileRunning(ctx)
	defer stop()
	if w.clock.until(running, end) != nil {
		err = ctx.Err() // nil if only the run has ended before its window
	}
	// Wait for the last probes. Later answers do not count.
	if err == nil && longest < canaryMargin {
		pause(ctx, longest)
	}
	watched := canary.Stop()
	w.noteLastHealth(ctx)
	w.shaping.changeReport(func(r *protocol.NetworkReport) { r.Links, r.Watched = withCanary(r.Links, watched), err == nil })
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
	return longest + 2*shaping.MaxBacklog
}

// disturbances are the times in which faults of this pod may change what a canary sees. Only the
// peers know the times of their own faults. zero is t = 0 on CLOCK_MONOTONIC.
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

// settled is how long a fault has an effect after its end: until earlier packets have arrived.
func settled(action timeline.Action, peers []protocol.NetworkPeer) time.Duration {
	var added time.Duration
	for _, change := range action.Links {
		added = max(added, change.Worse.Delay+change.Worse.Jitter)
	}
	return longestRoundTrip(peers) + 2*added + disturbanceMargin
}

// touched lists the peers whose links a fault changes; no address means all.
func touched(action timeline.Action, peers []protocol.NetworkPeer) []netip.Addr {
	if !action.Kind.OnLinks() {
		return []netip.Addr{{}}
	}
	names := action.LinkedTo()
	var found []netip.Addr
	for _, peer := range peers {
		if slices.Contains(names, peer.Name) {
			found = append(found, peer.Address.Unmap())
		}
	}
	return found
}

// foresee tells the canary of an action that counts from a mark, and of its end.
func (w *watcher) foresee(run protocol.Run, action timeline.Action) {
	w.mu.Lock()
	canary, n := w.canary, w.directiveLocked().Network
	w.mu.Unlock()
	if canary == nil || n == nil || action.After == nil || action.Ends != "" {
		return
	}
	both := slices.DeleteFunc(slices.Clone(run.Actions), func(a timeline.Action) bool { return a.ID != action.ID && a.Ends != action.ID })
	canary.Disturb(disturbances(both, n.Peers, w.clock.monotonic(run.ZeroUnixNanos))...)
}

// disturbed tells the canary of an action that came later than planned.
func (w *watcher) disturbed(run protocol.Run, action timeline.Action, record protocol.ActionRecord) {
	w.mu.Lock()
	canary, n := w.canary, w.directiveLocked().Network
	w.mu.Unlock()
	if canary == nil || n == nil || record.Error == "" && record.Confirmed-record.Planned < disturbanceMargin/2 {
		return
	}
	zero := w.clock.monotonic(run.ZeroUnixNanos)
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
