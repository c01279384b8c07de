package engine

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// phase does one part of a trial's life. It reads the observation, and returns a Result. The engine
// writes the condition.
type phase interface {
	// condition names the condition that reports the phase.
	condition() string
	run(ctx context.Context, s *scope) Result
}

// state of a phase.
type state int

const (
	done state = iota
	waiting
	failed
)

// Result is the outcome of a call of a phase.
type Result struct {
	state           state
	reason, message string
	// on is a condition to write instead of the phase's own. said: there is nothing to write.
	on   string
	said bool
	// since and limit give a wait its deadline. poll is how long to wait at most before looking
	// again.
	since *metav1.MicroTime
	limit time.Duration
	poll  time.Duration
	// dated: there is a deadline. If since is nil, its time has not begun.
	dated bool
	// instant to set when a phase is done.
	instant **metav1.MicroTime
	// stop: the status must be written before the next phase begins.
	stop bool
	// stage, if not nil, is what the agents are told, whatever else the result says.
	stage *stage
	also  []change
	err   error
}

// change of a condition.
type change struct {
	condition       string
	status          metav1.ConditionStatus
	reason, message string
}

// Skip is the result of a phase that has no work left.
func Skip() Result { return Result{state: done, said: true} }

// Done is the result of a phase that has just done its part. instant is set once.
func Done(reason, message string, instant **metav1.MicroTime) Result {
	return Result{state: done, reason: reason, message: message, instant: instant}
}

// Wait is the result of a phase that waits. The text says for what, as a sentence or as the part of
// one that follows "still".
func Wait(reason, format string, args ...any) Result {
	return Result{state: waiting, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Again looks again after the given time, and writes no condition.
func Again(after time.Duration) Result { return Result{state: waiting, said: true, poll: after} }

// Fail ends the trial: as Failed before the run was released, as Invalid after.
func Fail(reason, format string, args ...any) Result {
	return Result{state: failed, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Retry is the result of a phase that failed for a reason that may pass. Only the deadline of the
// whole trial ends the retries.
func Retry(err error) Result { return Result{state: waiting, said: true, err: err} }

// Until gives a wait a deadline: limit after since. If since is nil, the time has not begun.
func (r Result) Until(since *metav1.MicroTime, limit time.Duration) Result {
	r.since, r.limit, r.dated = since, limit, true
	return r
}

// Within makes the engine look at the phase again after poll at the latest.
func (r Result) Within(poll time.Duration) Result {
	if poll > 0 && (r.poll == 0 || poll < r.poll) {
		r.poll = poll
	}
	return r
}

// On writes the result to another condition than the phase's own.
func (r Result) On(condition string) Result {
	r.on = condition
	return r
}

// Directing has the engine give every agent its directive at this stage.
func (r Result) Directing(st stage) Result {
	r.stage = &st
	return r
}

// With also writes another condition.
func (r Result) With(condition string, status metav1.ConditionStatus, reason, format string, args ...any) Result {
	r.also = append(r.also, change{condition, status, reason, fmt.Sprintf(format, args...)})
	return r
}

// apply writes the conditions of a phase's result. It returns whether the next phase may run, or
// else how soon to look again.
func (s *status) apply(p phase, r Result) (next bool, after time.Duration, err error) {
	if r.err != nil {
		return false, 0, r.err
	}
	on := p.condition()
	if r.on != "" {
		on = r.on
	}
	defer func() {
		for _, c := range r.also {
			s.set(c.condition, c.status, c.reason, c.message)
		}
	}()
	switch r.state {
	case failed:
		s.fail(r.reason, r.message)
		return false, 0, nil
	case done:
		if !r.said {
			s.set(on, metav1.ConditionTrue, r.reason, r.message)
		}
		if r.instant != nil && *r.instant == nil {
			t := metav1.NewMicroTime(s.now)
			*r.instant = &t
		}
		if r.stop {
			return false, time.Millisecond, nil
		}
		return true, 0, nil
	}
	if !r.said {
		s.set(on, metav1.ConditionFalse, r.reason, r.message)
	}
	return false, s.await(on, r), nil
}

// await returns how soon to look again at a phase that waits. It gives the trial up at the
// deadline.
func (s *status) await(on string, r Result) time.Duration {
	if !r.dated {
		return r.poll
	}
	left := time.Second - time.Millisecond
	if r.since != nil {
		left = s.date(r.since.Time).Add(r.limit).Sub(s.now)
	}
	if left <= 0 {
		s.fail(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("%s: after %v, still %s", on, r.limit, r.message))
		return 0
	}
	left += time.Millisecond
	if r.poll > 0 {
		left = min(left, r.poll)
	}
	return left
}
