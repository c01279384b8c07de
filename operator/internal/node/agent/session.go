package agent

import (
	"context"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// reportSpacing is the least time between two reports. So changes at about the same time go
	// into one report, and reports arrive in order.
	reportSpacing = 20 * time.Millisecond
	// progressSpacing is how often the agent sends a report with only new progress or load.
	progressSpacing = time.Second
)

// session is the exchange with the coordinator: it sends reports, and gets directives and files.
type session struct {
	*state
	clock       *runClock
	coordinator *coordinator
	launchers   *launchers
	gates       *gates
	resolver    *resolver
	shaping     *linkShaper
	sampler     *sampler
	host        protocol.Host
}

// doTalk sends reports and gets the directive. While the coordinator delays its answer, a change in
// the pod ends the wait: the agent sends a new report.
func (s *session) doTalk(ctx context.Context) {
	for sequence := uint64(1); ctx.Err() == nil; sequence++ {
		sent := launcher.Monotonic()
		s.mu.Lock()
		report, urgent := s.report(), s.urgent
		s.mu.Unlock()
		report.Sequence = sequence
		held, interrupt := context.WithCancel(ctx)
		go func() {
			defer interrupt()
			s.awaitNews(held, urgent, report)
		}()
		directive, err := s.coordinator.sync(held, report)
		interrupted := held.Err() != nil
		interrupt()
		switch {
		case err == nil:
			s.applyDirective(directive)
			s.onManagerChange(s.coordinator.lastManager())
		case !interrupted:
			// A manager that has just taken over cannot answer yet, but its clock can be measured.
			if manager := s.coordinator.lastManager(); manager != "" {
				s.onManagerChange(manager)
			}
			pause(ctx, s.coordinator.backoff())
		}
		if left := reportSpacing - time.Duration(launcher.Monotonic()-sent); left > 0 {
			pause(ctx, left)
		}
	}
}

// awaitNews returns when the agent has to send a report that differs from the last one.
func (s *session) awaitNews(ctx context.Context, urgent uint64, sent protocol.Report) {
	timely, cancel := context.WithTimeout(ctx, progressSpacing)
	defer cancel()
	if s.await(timely, func() bool { return s.urgent != urgent }) != nil {
		if s.await(ctx, func() bool {
			return s.urgent != urgent || s.volatile.progress != sent.Progress || s.volatile.load != sent.Load ||
				s.launchers.firstWords(sent.Containers)
		}) != nil {
			return
		}
	}
	s.mu.Lock()
	hurry := len(s.journal.Marks) > len(sent.Marks)
	s.mu.Unlock()
	if hurry {
		return // faults on other machines count from a mark, too
	}
	// Give the report on its way time to arrive: it may be the only one for a while that the
	// coordinator gets. If the next report overtakes it, the sequence numbers show which one is
	// older.
	pause(ctx, reportSpacing)
}

// onManagerChange notes the manager that answers. The agent measures the clock of a new manager at
// once.
func (s *session) onManagerChange(manager string) {
	s.mu.Lock()
	known := s.volatile.manager == manager
	s.mu.Unlock()
	if !known {
		s.noteQuietly(func() { s.volatile.manager = manager })
	}
}

// applyDirective makes a directive the current one.
func (s *session) applyDirective(directive protocol.Directive) {
	s.mu.Lock()
	same := s.journal.Directive != nil && s.journal.Directive.Version == directive.Version
	s.mu.Unlock()
	if same {
		return
	}
	heard := launcher.Monotonic()
	s.record(func(j *journal) {
		j.Directive = &directive
		s.hear(directive.Run, heard)
		s.volatile.directiveSeen = true
	})
}

// hear notes when actions that count from marks arrived. The caller holds the lock.
func (s *session) hear(run *protocol.Run, at int64) {
	if run == nil {
		return
	}
	for _, a := range run.Actions {
		if a.After != nil && s.volatile.heard[a.ID] == 0 {
			s.volatile.heard[a.ID] = at
		}
	}
}

// report builds the report. The caller holds the lock.
func (s *session) report() protocol.Report {
	d := s.directiveLocked()
	r := protocol.Report{
		Incarnation: s.volatile.incarnation, DirectiveVersion: d.Version, FilesDigest: s.journal.FilesDigest,
		Unresolved: s.resolver.unresolved(), Commands: s.journal.Commands, Actions: s.journal.Actions, Marks: s.journal.Marks, Measured: s.journal.Measured,
		AtBarrier: s.volatile.atBarrier, Progress: s.volatile.progress, Load: s.volatile.load, Over: s.journal.Over, Sent: s.journal.Sent,
		Finished: s.volatile.finished, HandedOver: s.volatile.handedOver, Failure: s.volatile.failure, Unreadable: s.volatile.unreadable, Host: s.host, TCPResets: s.sampler.tcpResets(),
		ResetsCounted: s.journal.ResetsAfter != nil, Resources: s.journal.Resources,
	}
	r.Network, r.Client = s.shaping.networkReport(), s.journal.Client
	r.NamesResolved = len(r.Unresolved) == 0
	r.ClockOffset, r.ClockError = s.clock.wallOffset()
	r.ClockManager, r.ClockStepped = s.clock.base()
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, s.launchers.containerState(c.Name, d))
	}
	r.Ready, r.WaitingFor = s.gates.readiness(d)
	return r
}
