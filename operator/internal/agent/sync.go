package agent

import (
	"context"
	"time"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
)

const (
	// reportSpacing is the least time between two reports, so that changes that come together go
	// together, and in order.
	reportSpacing = 20 * time.Millisecond
	// progressSpacing is how often mere progress, or load, is reported.
	progressSpacing = time.Second
)

// doTalk reports and gets the directive. While the coordinator holds back its answer, a change here
// ends the wait: the report is sent anew.
func (a *Agent) doTalk(ctx context.Context) {
	for sequence := uint64(1); ctx.Err() == nil; sequence++ {
		sent := launcher.Monotonic()
		a.mu.Lock()
		report, urgent := a.report(), a.urgent
		a.mu.Unlock()
		report.Sequence = sequence
		held, interrupt := context.WithCancel(ctx)
		go func() {
			defer interrupt()
			a.awaitNews(held, urgent, report)
		}()
		directive, err := a.coordinator.sync(held, report)
		interrupted := held.Err() != nil
		interrupt()
		switch {
		case err == nil:
			a.obey(directive)
			a.meet(a.coordinator.lastManager())
		case !interrupted:
			// A manager that has just taken over cannot answer yet, and has a clock all the same.
			if manager := a.coordinator.lastManager(); manager != "" {
				a.meet(manager)
			}
			pause(ctx, a.coordinator.backoff())
		}
		if left := reportSpacing - time.Duration(launcher.Monotonic()-sent); left > 0 {
			pause(ctx, left)
		}
	}
}

// awaitNews returns when a report other than the one that was sent is due.
func (a *Agent) awaitNews(ctx context.Context, urgent uint64, sent protocol.Report) {
	timely, cancel := context.WithTimeout(ctx, progressSpacing)
	defer cancel()
	if a.await(timely, func() bool { return a.urgent != urgent }) != nil {
		if a.await(ctx, func() bool { return a.urgent != urgent || a.seen.progress != sent.Progress || a.seen.load != sent.Load }) != nil {
			return
		}
	}
	// Give the report that is on its way time to arrive: it may be the only one for a while that
	// the coordinator sees. Should it be slower all the same, its sequence number tells that it is
	// the older one.
	pause(ctx, reportSpacing)
}

// meet notes which manager is talked to. The clock of another one is measured at once.
func (a *Agent) meet(manager string) {
	a.mu.Lock()
	known := a.seen.manager == manager
	a.mu.Unlock()
	if !known {
		a.noteQuietly(func() { a.seen.manager = manager })
	}
}

// obey takes over a directive.
func (a *Agent) obey(directive protocol.Directive) {
	a.mu.Lock()
	same := a.journal.Directive != nil && a.journal.Directive.Version == directive.Version
	a.mu.Unlock()
	if same {
		return
	}
	a.record(func(j *journal) {
		j.Directive = &directive
		a.seen.directiveSeen = true
	})
}

// report builds the report. The caller holds a.mu.
func (a *Agent) report() protocol.Report {
	d := a.directiveLocked()
	r := protocol.Report{
		Incarnation: a.seen.incarnation, DirectiveVersion: d.Version, FilesDigest: a.journal.FilesDigest,
		Unresolved: a.unresolved(), Commands: a.journal.Commands, Actions: a.journal.Actions,
		AtBarrier: a.seen.atBarrier, Progress: a.seen.progress, Load: a.seen.load, Over: a.journal.Over, Sent: a.journal.Sent,
		Finished: a.seen.finished, HandedOver: a.seen.handedOver, Failure: a.seen.failure, Host: a.host, TCPResets: a.tcpResets(),
		ResetsCounted: a.journal.ResetsAfter != nil, Resources: a.journal.Resources,
	}
	r.Network, r.Client = a.networkReport(), a.journal.Client
	r.NamesResolved = len(r.Unresolved) == 0
	r.ClockOffset, r.ClockError = a.clock.wallOffset()
	r.ClockManager, r.ClockStepped = a.clock.base()
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, a.containerState(c.Name, d))
	}
	r.Ready, r.WaitingFor = a.readiness(d)
	return r
}
