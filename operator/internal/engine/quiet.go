package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/quiet"
)

// QuietPoll is how often the agents' loads are looked at though no report wakes the trial up.
const QuietPoll = 250 * time.Millisecond

// loadsEarly: without steps the clients are ready soon, and the agents read the load beforehand.
func (s *scope) loadsEarly() bool { return len(s.system.Steps) == 0 }

// quiet decides whether the trial, which is ready at the barrier, may start: when the machines are
// quiet, or when it has waited for long enough. It writes how the wait ended into the status.
func (p *release) quiet(s *scope) Result {
	spec, status := &s.trial.Spec, &s.trial.Status
	if status.Times.Barrier == nil {
		t := metav1.NewMicroTime(s.now)
		status.Times.Barrier = &t
	}
	limit, waited := spec.QuietWait.OrZero(), s.now.Sub(status.Times.Barrier.Time)
	if limit == 0 {
		return Skip()
	}
	disturbed := quiet.Disturbance(quiet.LoadsOf(s.everyName(), s.pods, s.report), spec.Tolerances.Steal.OrZero(), spec.QuietLoad.OrZero())
	if disturbed != "" && waited < limit {
		return Wait(v1alpha1.ReasonWaitingForQuiet,
			"Everything is ready. Waiting for a quiet moment on the machines, for %s at most (disturbances.quietWait).", spec.QuietWait).Within(QuietPoll)
	}
	status.Quiet = &v1alpha1.QuietMoment{Found: disturbed == "", WaitedMilliseconds: waited.Milliseconds(), Message: disturbed}
	return Skip()
}

// barrierLimit is how long after its steps a trial may lack what it needs at the barrier. A manager
// that takes over hears from the agents anew, which may be late in a wait for a quiet moment.
func (s *scope) barrierLimit() time.Duration {
	if s.trial.Status.Times.Barrier == nil {
		return BarrierTimeout
	}
	return BarrierTimeout + s.trial.Spec.QuietWait.OrZero()
}
