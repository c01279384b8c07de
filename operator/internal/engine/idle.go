package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/idle"
)

// IdlePoll is how often the agents' loads are looked at though no report wakes the trial up.
const IdlePoll = 250 * time.Millisecond

// loadsEarly: without steps the clients are ready soon, and the agents read the load beforehand.
func loadsEarly(system *v1alpha1.SystemSpec) bool { return len(system.Steps) == 0 }

// awaitIdle decides whether the trial, which is ready at the barrier, may start: when the machines
// are idle, or when it has waited for long enough. It writes how the wait ended into the status.
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

// barrierLimit is how long after its steps a trial may lack what it needs at the barrier. A manager
// that takes over hears from the agents anew, which may be late in a wait for idle machines.
func (s *scope) barrierLimit() time.Duration {
	if s.trial.Status.Times.Barrier == nil {
		return BarrierTimeout
	}
	return BarrierTimeout + s.trial.Spec.IdleWait.OrZero()
}
