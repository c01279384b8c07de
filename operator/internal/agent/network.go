package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/netem/probe"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
)

const (
	// baselinePatience is how long peers may leave probes unanswered before they are named: their
	// agents may just not run yet.
	baselinePatience = 5 * time.Second
	// pathPatience is how long paths are measured again that take longer than pods of one site are
	// apart, before that is believed. On a busy machine all seven probes of a round may have waited
	// for a processor.
	pathPatience = time.Second
	// provePatience is how long links may be other than asked before they are called wrong: peers
	// shape theirs at about the same time.
	provePatience = 10 * time.Second
	// maxWrong is how many things that are wrong are put into words.
	maxWrong = 10
)

// doNetwork makes the pod's links what the directive asks, and proves it: backends tried, undelayed
// paths measured, shaped, measured again.
//
// Every pod measures from its side; the coordinator lets them shape when all know their undelayed
// paths, and starts the run when all have proven theirs.
func (a *Agent) doNetwork(ctx context.Context) {
	if a.tryBackends(ctx); ctx.Err() != nil {
		return
	}
	var n protocol.Network
	if a.await(ctx, func() bool {
		d := a.directiveLocked()
		if d.Network != nil {
			n = *d.Network
		}
		return d.Network != nil
	}) != nil {
		return
	}
	config, err := a.probing(n)
	if err != nil {
		a.fail(err)
		return
	}
	responder, err := probe.Respond(config)
	if err != nil {
		a.fail(fmt.Errorf("answer probes of the network: %w", err))
		return
	}
	defer responder.Stop()
	if err := a.prove(ctx, config, n); err != nil {
		a.failUnlessDone(ctx, err)
	}
	<-ctx.Done()
}

// prove goes the way from untouched to proven links, from where an agent before this one has come
// to.
func (a *Agent) prove(ctx context.Context, config probe.Config, n protocol.Network) error {
	if err := a.measureBaseline(ctx, config, n.Peers); err != nil {
		return fmt.Errorf("measure the undelayed network: %w", err)
	}
	if err := a.await(ctx, func() bool {
		d := a.directiveLocked()
		if d.Network == nil || !d.Network.Shape {
			return false
		}
		n = *d.Network // the backend is chosen when every pod has said which ones work there
		return true
	}); err != nil {
		return err
	}
	a.mu.Lock()
	proven, shaped := a.journal.Network.Proven, a.links.shaped()
	a.mu.Unlock()
	if proven {
		return nil
	}
	if n.Backend != "" && !shaped {
		began := launcher.Monotonic()
		if err := a.shape(n, map[string][]timeline.LinkChange{}); err != nil {
			return fmt.Errorf("shape the network: %w", err)
		}
		took := time.Duration(launcher.Monotonic() - began)
		a.changeReport(func(r *protocol.NetworkReport) { r.ApplyTook = took })
	}
	return a.proveLinks(ctx, config, n)
}

// probing is what all probes of this pod have in common.
func (a *Agent) probing(n protocol.Network) (probe.Config, error) {
	config := probe.Config{Clock: func() probe.Clock {
		s, known := a.clock.best()
		return probe.Clock{Offset: s.Offset, Error: s.Error, Known: known}
	}}
	if len(n.ProbeKey) == 0 {
		return config, errors.New("the directive has no key for the probes of the network; agent and manager must be of the same release")
	}
	config.Key = KeyOfProbes(n.ProbeKey)
	return config, nil
}

// KeyOfProbes is what the packets of probes carry of a directive's key, which has any length.
func KeyOfProbes(key []byte) probe.Key {
	sum := sha256.Sum256(key)
	return probe.Key(sum[:len(probe.Key{})])
}

// changeReport changes what is told of the network, in the journal.
func (a *Agent) changeReport(change func(*protocol.NetworkReport)) {
	a.record(func(j *journal) {
		var next protocol.NetworkReport
		if j.Network != nil {
			next = *j.Network
		}
		change(&next)
		j.Network = &next // never changed in place: a report may be on its way
	})
}

// anyPath is the tolerance where nothing is asked: the pods of a trial may really be far from each
// other, if they only answer.
var anyPath = probe.Tolerance{Late: netem.MaxDelay, Path: netem.MaxDelay}

// gateTolerance is for the links before t = 0. Links of which nothing is asked, and which a fault
// makes worse, are shaped; the pods may be far from each other all the same.
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
	return !slices.ContainsFunc(peers, func(p protocol.NetworkPeer) bool { return p.Out != netem.Link{} || p.In != netem.Link{} })
}

func pairsOf(peers []protocol.NetworkPeer) []probe.Pair {
	pairs := make([]probe.Pair, len(peers))
	for i, peer := range peers {
		pairs[i] = probe.Pair{From: "this pod", To: peer.Name, Peer: peer.Address.Unmap(), Out: peer.Out, In: peer.In}
	}
	return pairs
}

// measureBaseline measures what the undelayed path to each peer takes, once in the pod's life.
func (a *Agent) measureBaseline(ctx context.Context, config probe.Config, peers []protocol.NetworkPeer) error {
	a.mu.Lock()
	done := a.journal.Network.Baseline
	a.mu.Unlock()
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
			a.tellWrong(proof.Wrong)
		}
	}
	baseline := make([]probe.Measurement, len(pairs))
	for i, pair := range pairs {
		baseline[i] = measured[pair.Peer]
	}
	a.record(func(j *journal) { j.Baseline = baseline })
	a.changeReport(func(r *protocol.NetworkReport) { r.Baseline, r.Wrong = true, nil })
	return nil
}

// tellWrong reports what is wrong, unless that is known.
func (a *Agent) tellWrong(wrong []probe.Wrong) {
	words := wordsOf(wrong)
	a.mu.Lock()
	known := slices.Equal(a.journal.Network.Wrong, words)
	a.mu.Unlock()
	if !known {
		a.changeReport(func(r *protocol.NetworkReport) { r.Wrong = words })
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

// shape makes the links what the directive asks, with what faults add to them.
func (a *Agent) shape(n protocol.Network, worse map[string][]timeline.LinkChange) error {
	i := slices.IndexFunc(a.config.Backends, func(b Backend) bool { return b.Name == n.Backend })
	if i < 0 {
		return fmt.Errorf("this agent does not know the backend %q; agent and manager must be of the same release", n.Backend)
	}
	device, err := deviceTo(n.Peers)
	if err != nil {
		return err
	}
	shaper, err := a.config.Backends[i].Open(device)
	if err != nil {
		return err
	}
	// Before anything is changed: whoever comes after a crash must know what to put back.
	a.record(func(j *journal) { j.Shaped, j.Filtered = n.Backend, true })
	if n.Backend.Side() == netem.Ingress {
		// What faults may need of the packet filter is there before this backend holds packets
		// back: to try a chain makes the kernel drop those.
		if err := errors.Join(a.silence.prepare(), a.cuts.prepare()); err != nil {
			return errors.Join(err, shaper.Close())
		}
	}
	return a.links.shape(shaper, n, worse)
}

// proveLinks measures until the links are as asked, or until they have been wrong for long enough.
func (a *Agent) proveLinks(ctx context.Context, config probe.Config, n protocol.Network) error {
	a.mu.Lock()
	baseline := a.journal.Baseline
	a.mu.Unlock()
	pairs, tolerance := pairsOf(n.Peers), gateTolerance(n)
	if n.Backend == "" {
		for i := range pairs { // nothing is asked of links that nobody shapes
			pairs[i].Out, pairs[i].In = netem.Link{}, netem.Link{}
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
		if len(proof.Wrong) == 0 || time.Duration(launcher.Monotonic()-began) > provePatience {
			break
		}
	}
	wrong := wordsOf(proof.Wrong)
	if different := a.links.check(); different != "" {
		wrong = append(wrong, different)
	}
	took := time.Duration(launcher.Monotonic() - began)
	a.changeReport(func(r *protocol.NetworkReport) {
		r.Wrong, r.Proven, r.ProveTook, r.Rounds = wrong, len(wrong) == 0, took, rounds
		r.Links = linkReports(n.Peers, baseline, proof)
	})
	return nil
}

// linkReports joins what was measured of each peer, in the peers' order.
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

// adopt continues what an earlier agent did to the pod's network, before anything else. A backend
// that holds packets in the agent drops them while no agent runs.
func (a *Agent) adopt() {
	a.mu.Lock()
	d, shaped, proven := a.directiveLocked(), a.journal.Shaped, a.journal.Network != nil && a.journal.Network.Proven
	a.mu.Unlock()
	if d.Finish {
		return
	}
	if d.Run != nil {
		if err := a.adoptCuts(*d.Run); err != nil {
			a.fail(err)
		}
	}
	if shaped == "" || d.Network == nil {
		return
	}
	worse := map[string][]timeline.LinkChange{}
	if d.Run != nil {
		a.mu.Lock()
		worse = worseNow(d.Run.Actions, a.recordedLocked, func(action timeline.Action) bool { return a.due(*d.Run, action) })
		a.mu.Unlock()
	}
	err := a.shape(*d.Network, worse)
	switch {
	case err != nil:
		a.lose(fmt.Sprintf("the agent was restarted and cannot shape the links again: %v", err))
	case proven && shaped == netem.NFQueue:
		a.lose("the agent was restarted; while there was none, packets from peers were dropped")
	}
}

// lose notes that the links are not as they were proven. The first reason stays.
func (a *Agent) lose(why string) {
	a.changeReport(func(r *protocol.NetworkReport) {
		if r.Lost == "" {
			r.Lost = why
			a.config.Log.Error("The links are not as asked", "what", why)
		}
	})
}

// networkReport is what the coordinator is told. The caller holds a.mu.
func (a *Agent) networkReport() *protocol.NetworkReport {
	if a.journal.Network == nil {
		return nil
	}
	report := *a.journal.Network
	report.Dropped, report.DroppedWhy = max(report.Dropped, a.seen.health.Dropped), strings.TrimSpace(a.seen.health.DroppedWhy)
	report.LateP99, report.Late = a.seen.health.LateP99, a.seen.health.Late
	return &report
}
