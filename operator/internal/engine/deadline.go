package engine

import (
	"time"

	"assay.dev/assay/operator/internal/engine/safety"
	"assay.dev/assay/operator/internal/engine/startup"
	"assay.dev/assay/operator/internal/model/timeline"
)

// deadlineSlack is added to the sum of the deadlines of a trial's phases. deadlineUnknown is added
// if the System cannot be read, which has some of these deadlines.
const (
	deadlineSlack   = 10 * time.Minute
	deadlineUnknown = time.Hour
)

// deadline is when a trial must have an outcome, whatever its phases say. Each phase has a deadline
// of its own, which ends most trials that fail. This one is for errors that come before a phase
// looks at its own.
func (s *scope) deadline() time.Time {
	status, schedule := &s.trial.Status, timeline.FromSchedule(s.trial.Spec.Schedule)
	limit := deadlineSlack + s.trial.Spec.IdleWait.OrZero()
	known := s.system != nil && s.layout != nil
	if !known {
		limit += deadlineUnknown
	}
	if status.ZeroUnixNanos != 0 {
		limit += ResultsGrace + StoreGrace
		if !known {
			return s.zero().Add(schedule.End() + limit)
		}
		return s.drained().Add(safety.Limit(s.system.Checks) + limit)
	}
	if status.Times.Admitted == nil {
		return s.now.Add(time.Hour) // earlier managers did not write this instant
	}
	limit += verifyTimeout + ResettersTimeout + ScrapedTimeout + BarrierTimeout
	if known {
		limit += s.deployLimit() + startup.OrderOf(s.system, s.layout.GroupPods).Limit() + startup.StepsLimit(s.system.Steps)
	}
	if s.rendered != nil {
		limit += verifyRounds * s.longestRoundTrip()
	}
	return s.date(status.Times.Admitted.Time).Add(limit)
}

// overdue reports whether the deadline has passed. A manager that has just taken over gets some
// time to carry on the trials that it finds.
func (s *scope) overdue() bool {
	return s.now.After(s.deadline()) && s.now.Sub(s.cache.since) > takeOver
}

// takeOver is how long an engine tries to carry on a trial that it sees for the first time, even
// after the trial's deadline.
const takeOver = 2 * time.Minute
