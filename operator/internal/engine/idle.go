package engine

import (
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
)

// IdlePoll is how often the engine looks at the agents' loads, even if no report wakes the trial
// up.
const IdlePoll = 250 * time.Millisecond

// loadsEarly reports whether agents read the load before the barrier: without steps the clients are
// ready soon.
func loadsEarly(system *v1alpha1.SystemSpec) bool { return len(system.Steps) == 0 }

// barrierLimit is how long after its steps a trial may wait at the barrier. A manager that takes
// over must hear from the agents again, which may happen late in a wait for idle machines.
func (s *scope) barrierLimit() time.Duration {
	if s.trial.Status.Times.Barrier == nil {
		return BarrierTimeout
	}
	return BarrierTimeout + s.trial.Spec.IdleWait.OrZero()
}

// BarrierTimeout is how long clients may take to be ready for the start.
const BarrierTimeout = 2 * time.Minute
