package agent

import (
	"crypto/sha256"
	"errors"
	"strings"

	"assay.dev/assay/operator/internal/node/netem/probe"
	"assay.dev/assay/operator/internal/node/protocol"
)

// linkShaper sets the pod's links as the directive asks, verifies them, and restores the former
// state.
type linkShaper struct {
	*state
	clock     *runClock
	drops     *drops
	isolation *isolation
	links     *links
}

// changeReport changes the report on the network, in the journal.
func (p *linkShaper) changeReport(change func(*protocol.NetworkReport)) {
	p.record(func(j *journal) {
		var next protocol.NetworkReport
		if j.Network != nil {
			next = *j.Network
		}
		change(&next)
		j.Network = &next // the old report is not changed: it may be on its way
	})
}

// reportLost reports that the links no longer are as verified. Only the first reason is kept.
func (p *linkShaper) reportLost(why string) {
	p.changeReport(func(r *protocol.NetworkReport) {
		if r.Lost == "" {
			r.Lost = why
			p.config.Log.Error("The links are not as asked", "what", why)
		}
	})
}

// networkReport is the report for the coordinator. The caller holds the lock.
func (p *linkShaper) networkReport() *protocol.NetworkReport {
	if p.journal.Network == nil {
		return nil
	}
	report := *p.journal.Network
	report.Dropped, report.DroppedWhy = max(report.Dropped, p.volatile.health.Dropped), strings.TrimSpace(p.volatile.health.DroppedWhy)
	report.LateP99, report.Late = p.volatile.health.LateP99, p.volatile.health.Late
	return &report
}

// probing is the common configuration of all probes of this pod.
func (p *linkShaper) probing(n protocol.Network) (probe.Config, error) {
	config := probe.Config{Clock: func() probe.Clock {
		s, known := p.clock.best()
		return probe.Clock{Offset: s.Offset, Error: s.Error, Known: known}
	}}
	if len(n.ProbeKey) == 0 {
		return config, errors.New("the directive has no key for the probes of the network; agent and manager must be of the same release")
	}
	config.Key = KeyOfProbes(n.ProbeKey)
	return config, nil
}

// KeyOfProbes shortens a directive's key, which has any length, to the key in the packets of
// probes.
func KeyOfProbes(key []byte) probe.Key {
	sum := sha256.Sum256(key)
	return probe.Key(sum[:len(probe.Key{})])
}
