package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/idle"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/text/few"
)

// release waits until every client is at the start barrier. Then it agrees t = 0 and writes it to
// status. The agents get t = 0 in the next call, when no other manager can choose another one.
type release struct {
	near       bool
	record     Record
	experiment Experiment
	clock      Clock
	faults     *faults
	nodes      *nodes
}

func (*release) condition() string { return v1alpha1.TrialRunning }

func (p *release) run(ctx context.Context, s *scope) Result {
	if s.trial.Status.ZeroUnixNanos != 0 {
		return Skip()
	}
	if f := validity.First(validity.BeforeStart, s.observation()); !f.OK() {
		return Fail(f.Reason, "%s", f.Message)
	}
	st := stage{started: all(s.everyName()), steps: len(s.system.Steps), sampleLoad: true, awaitsIdle: s.trial.Status.Times.Barrier != nil}
	return p.agreeIfReady(ctx, s).Directing(st)
}

// agreeIfReady agrees t = 0 if all that a start needs is there.
func (p *release) agreeIfReady(ctx context.Context, s *scope) Result {
	for _, ready := range []func(context.Context, *scope) Result{atBarrier, p.nodes.ready, p.faults.possible, p.keepAddresses} {
		if r := ready(ctx, s); r.err != nil || r.state != done {
			return r.On(v1alpha1.TrialRunning)
		}
	}
	if r := p.awaitIdle(s); r.state != done {
		return r
	}
	return p.agree(ctx, s)
}

// atBarrier waits until agents report all that a start needs. A manager that has just taken over
// must hear from every agent first.
func atBarrier(_ context.Context, s *scope) Result {
	wait := func(reason, format string, args ...any) Result {
		return Wait(reason, format, args...).Until(s.trial.Status.Times.Loaded, s.barrierLimit())
	}
	if missing := s.links().Unverified(); len(missing) > 0 {
		return wait(v1alpha1.ReasonVerifyingNetwork, "waiting for %s to confirm that its links are still as asked", few.Names(missing))
	}
	for _, name := range s.serverNames() {
		if rep := s.report(name); rep == nil || !rep.Ready {
			return wait(v1alpha1.ReasonReplicasStarting, "waiting for %s to be ready still", name)
		}
	}
	for _, name := range s.clientNames() {
		rep := s.report(name)
		if rep != nil && rep.Over {
			return Fail(v1alpha1.ReasonClientFailed, "Client %s ended before the start. %s", name, validity.LastOutput(rep))
		}
		if rep == nil || !rep.AtBarrier {
			return wait(v1alpha1.ReasonClientsNotAtBarrier, "waiting for %s at the start barrier", name)
		}
	}
	return Skip()
}

// keepAddresses saves the addresses with which the trial was rendered. A pod gets a new address if
// its node is reset, or if it replaces another pod. Files of living pods must keep the old one. So
// a manager that takes over must know the old addresses, and which pods had them.
func (p *release) keepAddresses(ctx context.Context, s *scope) Result {
	if !fault.MovesPods(s.trial.Spec.Faults) {
		return Skip()
	}
	err := p.record.CreateRelease(ctx, s.subject(), Release{Addresses: s.addresses(), Incarnations: s.history.First()})
	if err != nil {
		return Wait(v1alpha1.ReasonConfiguring, "trying again what failed: %s", err).Until(s.trial.Status.Times.Loaded, s.barrierLimit()).Within(RetryPoll)
	}
	return Skip()
}

// firstAction returns the instant of the first action, relative to t = 0. Without actions it
// returns an hour, so that nothing waits for an action.
func firstAction(actions []timeline.Action) time.Duration {
	first := time.Hour
	for i := range actions {
		first = min(first, actions[i].At)
	}
	return first
}

// slowLead is by how many times its slowest write of the status a trial lengthens the lead. After
// the agreement the manager writes t = 0, hears of its own write, and sends the run to the agents.
// If that takes longer than the lead, the load begins late, at every attempt.
const slowLead = 3

// slowestSave is the longest time that a write of the status may take.
const slowestSave = 30 * time.Second

// agree agrees t = 0, with the lead counted from now. Since the call began, the engine has asked
// other servers, perhaps for seconds, and no later check would notice that all clients start late.
func (p *release) agree(ctx context.Context, s *scope) Result {
	s.now = p.clock.Now()
	w, lead := timeline.FromSchedule(s.trial.Spec.Schedule), idle.Lead(s.trial.Status.IdleGate)
	if p.near {
		lead = idle.NearLead(s.trial.Status.IdleGate, w.WarmUp+firstAction(s.actions()))
	}
	lead += slowLead * s.cache.slowest
	gap, err := p.experiment.Gap(ctx, s.trial, s.now.Add(lead))
	if err != nil {
		return Retry(err)
	}
	s.trial.Status.GapMilliseconds = gap.Milliseconds()
	s.trial.Status.PodsDigest = s.podsDigest() // earlier managers did not always write it at deployment
	s.trial.Status.ZeroUnixNanos = s.now.Add(lead + w.WarmUp).UnixNano()
	r := Done(v1alpha1.ReasonReleased, "t = 0 is agreed and every client is released."+idle.InVain(s.trial.Status.IdleGate), &s.trial.Status.Times.Released)
	r.stop = true
	return r
}

// awaitIdle decides whether the trial, which is ready at the barrier, may start. It may start when
// the machines are idle, or when it has waited for long enough. awaitIdle writes to the status how
// the wait ended.
func (p *release) awaitIdle(s *scope) Result {
	spec, status := &s.trial.Spec, &s.trial.Status
	if status.Times.Barrier == nil {
		t := metav1.NewMicroTime(s.now)
		status.Times.Barrier = &t
	}
	limit, waited := spec.IdleWait.OrZero(), s.now.Sub(s.date(status.Times.Barrier.Time))
	if limit == 0 {
		return Skip()
	}
	disturbed := idle.Disturbance(idle.LoadsOf(s.everyName(), s.pods, s.report), spec.Tolerances.Steal.OrZero(), spec.IdleThreshold.OrZero())
	if disturbed != "" && waited < limit {
		return Wait(v1alpha1.ReasonWaitingForIdle,
			"Everything is ready. Waiting for idle machines, for %s at most (disturbances.idleWait).", spec.IdleWait).Within(IdlePoll)
	}
	status.IdleGate = &v1alpha1.IdleGate{Idle: disturbed == "", WaitedMilliseconds: waited.Milliseconds(), Message: disturbed}
	return Skip()
}
