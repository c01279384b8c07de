package engine

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// ResultsGrace is how long after the drain the results may arrive.
	ResultsGrace = timeline.ResultsGrace
	// StoreGrace is how much longer it may take to read the results, and to write the merged ones.
	StoreGrace = 2 * time.Minute
	// reportPoll is how often to look for reports after the window. A report without news does not
	// wake the trial up.
	reportPoll = 200 * time.Millisecond
	// injectionPoll is how soon to ask an injector again after it failed.
	injectionPoll = 250 * time.Millisecond
	// ProgressInterval is how often a running trial's progress is published.
	ProgressInterval = 2 * time.Second
	// conflictDelay is how long to wait for the record to show the last write.
	conflictDelay = 5 * time.Millisecond
)

// run waits until every client is over and its results are stored.
type run struct {
	experiment Experiment
}

func (*run) condition() string { return v1alpha1.TrialCollected }

func (p *run) run(ctx context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialCollected) {
		return Skip()
	}
	soon, err := s.injection.Due(ctx)
	if err != nil {
		// The engine tries again until the trial is judged. If it never succeeds, the trial is
		// judged without the records.
		logr.FromContextOrDiscard(ctx).Info("What Chaos Mesh has done cannot be read or written down", "err", err.Error())
		soon = injectionPoll
	}
	s.noteFaults(ctx, p.experiment, false)
	if f := validity.First(validity.DuringRun, s.observation()); !f.OK() {
		return Fail(f.Reason, "%s", f.Message)
	}
	return p.awaitClients(ctx, s, soon).Directing(stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos})
}

// awaitClients waits for the clients. soon is when the injector has work again.
func (p *run) awaitClients(ctx context.Context, s *scope, soon time.Duration) Result {
	over, sent, n := p.clientsOver(s)
	if over == n && s.trial.Status.Times.Drained == nil {
		t := metav1.NewMicroTime(s.now)
		s.trial.Status.Times.Drained = &t
	}
	left := s.drained().Add(ResultsGrace).Sub(s.now)
	if sent == n {
		silent := validity.MissingReport(s.observation())
		if silent == "" || left <= 0 {
			return Skip()
		}
		return Wait(v1alpha1.ReasonRunInProgress, "Waiting for the account of %s.", silent).Within(min(left+time.Millisecond, reportPoll, soon))
	}
	if left <= 0 {
		if f := validity.EndedEarly(s.observation()); !f.OK() {
			return Fail(f.Reason, "%s", f.Message)
		}
		return Fail(v1alpha1.ReasonClientLost, "%d of %d clients are over and the results of %d have arrived by the deadline, %v after the drain.", over, n, sent, ResultsGrace)
	}
	next, err := p.publishProgress(ctx, s)
	if err != nil {
		return Retry(err)
	}
	return Wait(v1alpha1.ReasonRunInProgress, "The clients run, or their results are on the way.").Within(min(left+time.Millisecond, next, soon))
}

// clientsOver counts the client pods: over have ended their clients, sent have sent their results,
// and all is their number.
func (p *run) clientsOver(s *scope) (over, sent, all int) {
	for _, name := range s.clientNames() {
		rep := s.report(name)
		if rep == nil {
			continue
		}
		if rep.Over {
			over++
		}
		if rep.Sent {
			sent++
		}
	}
	return over, sent, len(s.layout.Clients)
}

// drained returns when every client must have ended.
func (s *scope) drained() time.Time {
	var grace time.Duration
	if e := s.system.Clients.End; e != nil && e.Stop != nil {
		grace = e.Stop.Grace.OrZero()
	}
	return s.zero().Add(timeline.FromSchedule(scheduleOf(s)).End() + grace)
}

// publishProgress publishes the clients' progress from time to time, and returns when it is due
// again.
func (p *run) publishProgress(ctx context.Context, s *scope) (time.Duration, error) {
	if since := s.now.Sub(s.cache.progress); since < ProgressInterval {
		return ProgressInterval - since, nil
	}
	s.cache.progress = s.now
	sum := protocol.TrialProgress{AtMillis: (s.now.UnixNano() - s.trial.Status.ZeroUnixNanos) / 1e6, Faults: s.observation().LiveFaults()}
	for _, name := range s.clientNames() {
		if rep := s.report(name); rep != nil && rep.Progress != nil {
			sum.Clients++
			sum.Committed += rep.Progress.Committed
			sum.PerSecond += rep.Progress.PerSecond
			sum.LatencySumMicros += rep.Progress.LatencySumMicros
		}
	}
	switch conflict, err := p.experiment.Progress(ctx, s.before, s.trial, sum); {
	case conflict:
		return conflictDelay, nil // the trial is read again, with its changes
	case err != nil:
		return ProgressInterval, err
	}
	return ProgressInterval, nil
}
