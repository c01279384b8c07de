package agent

import (
	"context"
	"errors"
	"fmt"
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
	// baselinePatience is how long peers may leave probes unanswered before the agent names them:
	// their agents may not run yet.
	baselinePatience = 5 * time.Second
	// pathPatience is how long the agent measures paths again that take longer than paths within
	// one site. Only then does it believe the measurement: on a busy machine all seven probes of a
	// round may have waited for a processor.
	pathPatience = time.Second
	// verifyPatience is how long links may differ from the requested ones before they count as
	// wrong: peers shape theirs at about the same time.
	verifyPatience = 10 * time.Second
	// maxWrong is how many wrong links a report puts into words.
	maxWrong = 10
)

// doNetwork makes the pod's links as the directive asks, and verifies them. It tries backends,
// measures the undelayed paths, shapes the links, and measures again.
//
// Every pod measures from its side. The coordinator lets the pods shape when all know their
// undelayed paths. It starts the run when all have verified their links.
func (p *linkShaper) doNetwork(ctx context.Context) {
	if p.tryBackends(ctx); ctx.Err() != nil {
		return
	}
	var n protocol.Network
	if p.await(ctx, func() bool {
		d := p.directiveLocked()
		if d.Network != nil {
			n = *d.Network
		}
		return d.Network != nil
	}) != nil {
		return
	}
	config, err := p.probing(n)
	if err != nil {
		p.fail(err)
		return
	}
	responder, err := probe.Respond(config)
	if err != nil {
		p.fail(fmt.Errorf("answer probes of the network: %w", err))
		return
	}
	defer responder.Stop()
	if err := p.verify(ctx, config, n); err != nil {
		p.failUnlessDone(ctx, err)
	}
	<-ctx.Done()
}

// verify takes the links from untouched to verified. It continues where an agent before this one
// stopped.
func (p *linkShaper) verify(ctx context.Context, config probe.Config, n protocol.Network) error {
	if err := p.measureBaseline(ctx, config, n.Peers); err != nil {
		return fmt.Errorf("measure the undelayed network: %w", err)
	}
	if err := p.await(ctx, func() bool {
		d := p.directiveLocked()
		if d.Network == nil || !d.Network.Shape {
			return false
		}
		n = *d.Network // the coordinator chooses the backend when every pod has reported which ones work there
		return true
	}); err != nil {
		return err
	}
	p.mu.Lock()
	verified, shaped := p.journal.Network.Proven, p.links.shaped()
	p.mu.Unlock()
	if verified {
		return nil
	}
	if n.Backend != "" && !shaped {
		began := launcher.Monotonic()
		if err := p.shape(n, map[string][]timeline.LinkChange{}); err != nil {
			return fmt.Errorf("shape the network: %w", err)
		}
		took := time.Duration(launcher.Monotonic() - began)
		p.changeReport(func(r *protocol.NetworkReport) { r.ApplyTook = took })
	}
	return p.verifyLinks(ctx, config, n)
}

// anyPath is the tolerance of a link without requested shaping: the pods of a trial may be far from
// each other, as long as they answer.
var anyPath = probe.Tolerance{Late: shaping.MaxDelay, Path: shaping.MaxDelay}

// gateTolerance is the tolerance of the links before t = 0. The agent also shapes links without a
// request that a fault makes worse. The pods of such a link may be far from each other, too.
func gateTolerance(n protocol.Network) probe.Tolerance {
	if n.Backend == "" {
		return anyPath
	}
	tolerance := probe.DefaultTolerance
	if n.Tolerance > 0 {
		tolerance.Late, tolerance.Path = n.Tolerance, max(n.Tolerance, tolerance.Path)
	}
	if asksNothing(n.Peers) {
		tolerance.Path = anyPath.Path
	}
	return tolerance
}

func asksNothing(peers []protocol.NetworkPeer) bool {
	return !slices.ContainsFunc(peers, func(p protocol.NetworkPeer) bool { return p.Out != shaping.Link{} || p.In != shaping.Link{} })
}

func pairsOf(peers []protocol.NetworkPeer) []probe.Pair {
	pairs := make([]probe.Pair, len(peers))
	for i, peer := range peers {
		pairs[i] = probe.Pair{From: "this pod", To: peer.Name, Peer: peer.Address.Unmap(), Out: peer.Out, In: peer.In}
	}
	return pairs
}

// measureBaseline measures the round trip of the undelayed path to each peer, once in the pod's
// life.
func (p *linkShaper) measureBaseline(ctx context.Context, config probe.Config, peers []protocol.NetworkPeer) error {
	p.mu.Lock()
	done := p.journal.Network.Baseline
	p.mu.Unlock()
	if done {
		return nil
	}
	pairs := pairsOf(peers)
	options := probe.ProveOptions{Rounds: 1, Tolerance: probe.DefaultTolerance}
	measured := map[netip.Addr]probe.Measurement{}
	began := launcher.Monotonic()
	for left := pairs; len(left) > 0; {
		if asksNothing(peers) && time.Duration(launcher.Monotonic()-began) > pathPatience {
			options.Tolerance = anyPath
		}
		proof, err := probe.Baseline(ctx, config, left, options)
		if err != nil {
			return err
		}
		for _, m := range proof.Measurements {
			measured[m.Peer] = m
		}
		left = slices.DeleteFunc(slices.Clone(left), func(pair probe.Pair) bool {
			return !slices.ContainsFunc(proof.Wrong, func(w probe.Wrong) bool { return w.Peer == pair.Peer })
		})
		if late := time.Duration(launcher.Monotonic() - began); len(left) > 0 && late > baselinePatience {
			p.reportWrong(proof.Wrong)
		}
	}
	baseline := make([]probe.Measurement, len(pairs))
	for i, pair := range pairs {
		baseline[i] = measured[pair.Peer]
	}
	p.record(func(j *journal) { j.Baseline = baseline })
	p.changeReport(func(r *protocol.NetworkReport) { r.Baseline, r.Wrong = true, nil })
	return nil
}

// reportWrong reports the wrong links, unless they are reported already.
func (p *linkShaper) reportWrong(wrong []probe.Wrong) {
	words := wordsOf(wrong)
	p.mu.Lock()
	known := slices.Equal(p.journal.Network.Wrong, words)
	p.mu.Unlock()
	if !known {
		p.changeReport(func(r *protocol.NetworkReport) { r.Wrong = words })
	}
}

func wordsOf(wrong []probe.Wrong) []string {
	var words []string
	for i, w := range wrong {
		if i == maxWrong {
			return append(words, fmt.Sprintf("and %d more", len(wrong)-maxWrong))
		}
		words = append(words, w.Message)
	}
	return words
}

// shape makes the links as the directive asks, with the changes of faults.
func (p *linkShaper) shape(n protocol.Network, worse map[string][]timeline.LinkChange) error {
	i := slices.IndexFunc(p.config.Backends, func(b Backend) bool { return b.Name == n.Backend })
	if i < 0 {
		return fmt.Errorf("this agent does not know the backend %q; agent and manager must be of the same release", n.Backend)
	}
	device, err := deviceTo(n.Peers)
	if err != nil {
		return err
	}
	shaper, err := p.config.Backends[i].Open(device)
	if err != nil {
		return err
	}
	// The journal comes before the change: the agent that follows a crash must know what to put
	// back.
	p.record(func(j *journal) { j.Shaped, j.Filtered = n.Backend, true })
	if n.Backend.Side() == shaping.Ingress {
		// The chains that faults may need must exist before this backend holds packets back: an
		// attempt to make a chain makes the kernel drop held packets.
		if err := errors.Join(p.isolation.prepare(), p.drops.prepare()); err != nil {
			return errors.Join(err, shaper.Close())
		}
	}
	return p.links.shape(shaper, n, worse)
}

// verifyLinks measures until the links are as requested, or until they have been wrong for too
// long.
func (p *linkShaper) verifyLinks(ctx context.Context, config probe.Config, n protocol.Network) error {
	p.mu.Lock()
	baseline := p.journal.Baseline
	p.mu.Unlock()
	pairs, tolerance := pairsOf(n.Peers), gateTolerance(n)
	if n.Backend == "" {
		for i := range pairs { // links without shaping have no requested delay
			pairs[i].Out, pairs[i].In = shaping.Link{}, shaping.Link{}
		}
	}
	began, rounds := launcher.Monotonic(), 0
	var proof probe.Proof
	for {
		var err error
		if proof, err = probe.Prove(ctx, config, pairs, baseline, probe.ProveOptions{Tolerance: tolerance}); err != nil {
			return fmt.Errorf("measure the network: %w", err)
		}
		rounds += len(proof.Probed)
		if len(proof.Wrong) == 0 || time.Duration(launcher.Monotonic()-began) > verifyPatience {
			break
		}
	}
	wrong := wordsOf(proof.Wrong)
	if different := p.links.check(); different != "" {
		wrong = append(wrong, different)
	}
	took := time.Duration(launcher.Monotonic() - began)
	p.changeReport(func(r *protocol.NetworkReport) {
		r.Wrong, r.Proven, r.ProveTook, r.Rounds = wrong, len(wrong) == 0, took, rounds
		r.Links = linkReports(n.Peers, baseline, proof)
	})
	return nil
}

// linkReports joins the measurements of each peer, in the peers' order.
func linkReports(peers []protocol.NetworkPeer, baseline []probe.Measurement, proof probe.Proof) []protocol.LinkReport {
	out := make([]protocol.LinkReport, len(peers))
	for i, peer := range peers {
		out[i] = protocol.LinkReport{Peer: peer.Name, BaselineRTT: baseline[i].Least(), RTT: proof.Measurements[i].Least(), Undirected: proof.Undirected[i]}
		if m := proof.Measurements[i]; m.OneWay && m.Error == 0 {
			out[i].OutDelay, out[i].InDelay = m.Out.Min, m.In.Min
		}
	}
	return out
}

// adopt takes over the shaping of an agent before this one. A backend that holds packets in the
// agent drops them while no agent runs.
func (p *linkShaper) adopt(d protocol.Directive) {
	p.mu.Lock()
	shaped, verified := p.journal.Shaped, p.journal.Network != nil && p.journal.Network.Proven
	p.mu.Unlock()
	if shaped == "" || d.Network == nil {
		return
	}
	worse := map[string][]timeline.LinkChange{}
	if d.Run != nil {
		p.mu.Lock()
		worse = worseNow(d.Run.Actions, p.recordedLocked, func(action timeline.Action) bool { return p.clock.due(*d.Run, action) })
		p.mu.Unlock()
	}
	err := p.shape(*d.Network, worse)
	switch {
	case err != nil:
		p.reportLost(fmt.Sprintf("the agent was restarted and cannot shape the links again: %v", err))
	case verified && shaped == shaping.NFQueue:
		p.reportLost("the agent was restarted; while there was none, packets from peers were dropped")
	}
}
