package engine

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// phase does one part of a trial's life. It reads what was observed, and writes no condition: that
// is left to the engine.
type phase interface {
	// condition is the one that reports the phase.
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

// Result is what a phase came to.
type Result struct {
	state           state
	reason, message string
	// on is a condition other than the phase's own. said: there is nothing to write.
	on   string
	said bool
	// since and limit give what waits its deadline, poll the longest until it is looked at again.
	since *metav1.MicroTime
	limit time.Duration
	poll  time.Duration
	// dated: there is a deadline. It has not begun while since is nil.
	dated bool
	// instant of a phase that is done.
	instant **metav1.MicroTime
	// stop: what was done is written before the next phase begins.
	stop bool
	also []change
	err  error
}

// change of a condition.
type change struct {
	condition       string
	status          metav1.ConditionStatus
	reason, message string
}

// Skip is the result of a phase that has nothing to do, or nothing more.
func Skip() Result { return Result{state: done, said: true} }

// Done is the result of a phase that has just done its part. instant is written once.
func Done(reason, message string, instant **metav1.MicroTime) Result {
	return Result{state: done, reason: reason, message: message, instant: instant}
}

// Wait says what a phase waits for, in a sentence or the part of one that follows "still".
func Wait(reason, format string, args ...any) Result {
	return Result{state: waiting, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Again looks again after so long, and has nothing to say.
func Again(after time.Duration) Result { return Result{state: waiting, said: true, poll: after} }

// Fail ends the trial: as Failed before the run was released, as Invalid after.
func Fail(reason, format string, args ...any) Result {
	return Result{state: failed, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Retry is the result of a phase that failed for a reason that may pass. It has the deadline of the
// whole trial.
func Retry(err error) Result { return Result{state: waiting, said: true, err: err} }

// Until gives what waits a deadline: so long after an instant, which nil is not known yet.
func (r Result) Until(since *metav1.MicroTime, limit time.Duration) Result {
	r.since, r.limit, r.dated = since, limit, true
	return r
}

// Within has the phase looked at again after so long at most.
func (r Result) Within(poll time.Duration) Result {
	if poll > 0 && (r.poll == 0 || poll < r.poll) {
		r.poll = poll
	}
	return r
}

// On says it in another condition than the phase's own.
func (r Result) On(condition string) Result {
	r.on = condition
	return r
}

// With also writes another condition.
func (r Result) With(condition string, status metav1.ConditionStatus, reason, format string, args ...any) Result {
	r.also = append(r.also, change{condition, status, reason, fmt.Sprintf(format, args...)})
	return r
}

// apply writes the conditions of a phase's result, and says whether the next phase may run, or else
// how soon to look again.
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

// await says how soon to look again at what waits. It gives the trial up at the deadline.
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
