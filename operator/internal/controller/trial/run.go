package trial

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/chaos"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/engine/quiet"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/queue"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/validity"
)

const (
	// barrierTimeout is how long clients may take to be ready for the start.
	barrierTimeout = 2 * time.Minute
	// resultsGrace is how long after the drain the results may take to arrive.
	resultsGrace = time.Minute
	// storeGrace is how long after that it may take to read them, and to write what they come to.
	storeGrace = 2 * time.Minute
	// accountPoll is how often to look for reports that came after the window: one that says
	// nothing new wakes nobody up.
	accountPoll = 200 * time.Millisecond
	// progressInterval is how often a running trial's progress is published.
	progressInterval = 2 * time.Second
)

// release waits until every client is at the start barrier, then agrees t = 0 and writes it to
// status. The agents get it in the next reconcile, when it is certain that no other manager can
// choose another.
func (r *Reconciler) release(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if s.trial.Status.ZeroUnixNanos != 0 {
		return true, 0, nil
	}
	if s.refuted(validity.BeforeStart) {
		return false, 0, nil
	}
	r.direct(s, stage{started: all(s.everyName()), steps: len(s.system.Steps), load: true, awaitsQuiet: s.trial.Status.Times.Barrier != nil})
	if missing := s.links().Unverified(); len(missing) > 0 {
		// A manager that has just taken over must hear from every agent first.
		return s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonProvingNetwork,
			fmt.Sprintf("waiting for %s to confirm that its links are still as asked", few.Names(missing)), s.trial.Status.Times.Loaded, s.barrierLimit())
	}
	for _, name := range s.serverNames() {
		if rep := s.report(name); rep == nil || !rep.Ready {
			return s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonReplicasStarting,
				fmt.Sprintf("waiting for %s to be ready still", name), s.trial.Status.Times.Loaded, s.barrierLimit())
		}
	}
	for _, name := range s.clientNames() {
		rep := s.report(name)
		if rep != nil && rep.Over {
			s.giveUp(v1alpha1.ReasonClientFailed, "Client %s ended before the start. %s", name, validity.LastOutput(rep))
			return false, 0, nil
		}
		if rep == nil || !rep.AtBarrier {
			return s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonClientsNotAtBarrier,
				fmt.Sprintf("waiting for %s at the start barrier", name), s.trial.Status.Times.Loaded, s.barrierLimit())
		}
	}
	if ready, after, err := r.machinesReady(ctx, s); err != nil || !ready {
		return false, after, err
	}
	if ready, after, err := r.chaosMeshServed(ctx, s); err != nil || !ready {
		return false, after, err
	}
	if err := r.succession().KeepAddresses(ctx, s.line); err != nil {
		done, after, err := s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonConfiguring, "trying again what failed: "+err.Error(), s.trial.Status.Times.Loaded, s.barrierLimit())
		return done, min(after, deployPoll), err
	}
	if !s.quiet() {
		return false, quietPoll, nil
	}
	// Other servers were asked since the reconcile began, for seconds perhaps, and nobody refuses
	// clients that all start late: the lead is counted from here.
	s.now = r.Clock.Now()
	w, lead := timeline.FromSchedule(s.trial.Spec.Schedule), quiet.Lead(s.trial.Status.Quiet)
	trials := &v1alpha1.TrialList{}
	if err := r.Client.List(ctx, trials, client.UnsafeDisableDeepCopy); err != nil {
		return false, 0, fmt.Errorf("list trials: %w", err)
	}
	s.trial.Status.GapMilliseconds = queue.Gap(trials.Items, s.trial, s.now.Add(lead)).Milliseconds()
	s.trial.Status.PodsDigest = s.podsDigest() // written when the trial was deployed, but by managers of before
	s.trial.Status.ZeroUnixNanos = s.now.Add(lead + w.WarmUp).UnixNano()
	s.done(v1alpha1.TrialRunning, v1alpha1.ReasonReleased, "t = 0 is agreed and every client is released."+quiet.InVain(s.trial.Status.Quiet), &s.trial.Status.Times.Released)
	return false, time.Millisecond, nil
}

// run waits until every client is over and its results are stored.
func (r *Reconciler) run(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialCollected) {
		return true, 0, nil
	}
	soon, err := r.chaos().Due(ctx, s.chaos)
	if err != nil {
		// It is tried again until the trial is judged, which is then for want of what the records
		// would say.
		log.FromContext(ctx).Info("What Chaos Mesh has done cannot be read or written down", "err", err.Error())
		soon = chaos.SlowPoll
	}
	r.audit(ctx, s, false)
	if s.refuted(validity.DuringRun) {
		return false, 0, nil
	}
	if s.rendered != nil {
		r.direct(s, stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos})
	}
	zero := s.zero()
	over, sent := 0, 0
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
	n := len(s.layout.Clients)
	if over == n && s.trial.Status.Times.Drained == nil {
		t := metav1.NewMicroTime(s.now)
		s.trial.Status.Times.Drained = &t
	}
	deadline := zero.Add(timeline.FromSchedule(s.trial.Spec.Schedule).End() + s.endGrace() + resultsGrace)
	left := deadline.Sub(s.now)
	if sent == n {
		silent := validity.MissingReport(s.observation())
		if silent == "" || left <= 0 {
			return true, 0, nil
		}
		s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonRunInProgress, "Waiting for the account of %s.", silent)
		return false, min(left+time.Millisecond, accountPoll, soon), nil
	}
	s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonRunInProgress, "The clients run, or their results are on the way.")
	if left <= 0 {
		if v := validity.EndedEarly(s.observation()); !v.OK() {
			s.giveUp(v.Reason, "%s", v.Message)
			return false, 0, nil
		}
		s.giveUp(v1alpha1.ReasonClientLost, "%d of %d clients are over and the results of %d have arrived by the deadline, %v after the drain.", over, n, sent, resultsGrace)
		return false, 0, nil
	}
	next, err := r.publishProgress(ctx, s)
	return false, min(left+time.Millisecond, next, soon), err
}

func (s *scope) endGrace() time.Duration {
	if e := s.system.Clients.End; e != nil && e.Stop != nil {
		return e.Stop.Grace.OrZero()
	}
	return 0
}

// podsDigest names the pods that take part, by their UIDs.
func (s *scope) podsDigest() string { return objects.Digest(s.everyName(), s.pods) }

// publishProgress writes the clients' progress to an annotation now and then, and says when it is
// due again.
func (r *Reconciler) publishProgress(ctx context.Context, s *scope) (time.Duration, error) {
	var last time.Time
	r.remember(s.trial, func(m *memo) { last = m.progress })
	if since := s.now.Sub(last); since < progressInterval {
		return progressInterval - since, nil
	}
	r.remember(s.trial, func(m *memo) { m.progress = s.now })
	sum := protocol.TrialProgress{AtMillis: (s.now.UnixNano() - s.trial.Status.ZeroUnixNanos) / 1e6, Faults: s.observation().LiveFaults()}
	for _, name := range s.clientNames() {
		if rep := s.report(name); rep != nil && rep.Progress != nil {
			sum.Committed += rep.Progress.Committed
			sum.PerSecond += rep.Progress.PerSecond
			sum.LatencySumMicros += rep.Progress.LatencySumMicros
		}
	}
	switch conflict, err := r.objects().PublishProgress(ctx, s.before, s.trial, sum); {
	case conflict:
		return conflictDelay, nil // the trial is read again, with what has changed
	case err != nil:
		return progressInterval, err
	}
	return progressInterval, nil
}
