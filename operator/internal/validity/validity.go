// Package validity decides whether the numbers of a run count. It is pure: it reads a run.Observed
// and nothing else, so that every rule is tested without a cluster. A run counts only when nothing
// speaks against it: what is not known, speaks against it.
//
// The checks are an ordered list. The first that refuses gives the trial its reason: what others
// rest on (the clocks) comes first, what the system itself did comes last.
package validity

import (
	"fmt"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/run"
)

// Verdict says why the results of a trial do not count; the zero Verdict says that they do.
type Verdict struct {
	// Reason is one of the reasons of the condition Valid. Message is a sentence for users.
	Reason, Message string
}

// Counts reports whether nothing speaks against the results.
func (v Verdict) Counts() bool { return v.Reason == "" }

func refuse(reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Check judges one concern.
type Check struct {
	Name  string
	Judge func(*run.Observed) Verdict
}

// Checks in the order in which they are asked.
var Checks = []Check{
	{"clients counted", clientsCounted},
	{"clocks", clocks},
	{"faults", faults},
	{"cuts", cuts},
	{"successors", successors},
	{"partitions", partitions},
	{"links", links},
	{"starts", starts},
	{"restarts", restarts},
	{"resources", resources},
	{"contention", contention},
	{"generators", generators},
	{"replicas", replicas},
	{"ends", ends},
	{"silence", silence},
	{"histogram", histogram},
	{"something measured", somethingMeasured},
	{"measurements", measurements},
}

// Judge asks every check in order and returns the first refusal.
func Judge(o *run.Observed) Verdict {
	for _, c := range Checks {
		if v := c.Judge(o); !v.Counts() {
			return v
		}
	}
	return Verdict{}
}

// histogram judges whether every latency could be counted.
func histogram(o *run.Observed) Verdict {
	tolerated := o.Spec().Tolerances.OutOfRange
	if out, of := o.Result.Summary.OutOfRange, o.Result.Summary.Committed; float64(out) > tolerated.OrZero()*float64(of) {
		return refuse(v1alpha1.ReasonHistogramOverflow, "%d of %d latencies lay outside the histogram's range; tolerances.outOfRange is %s.", out, of, tolerated)
	}
	return Verdict{}
}

func somethingMeasured(o *run.Observed) Verdict {
	s := &o.Result.Summary
	switch {
	case s.Committed == 0 && s.WholeRun:
		return refuse(v1alpha1.ReasonNothingMeasured, "No client committed a transaction in its whole run.")
	case s.Committed == 0:
		return refuse(v1alpha1.ReasonNothingMeasured, "No transaction was committed in the window: %d errors, %d timeouts, %d aborts.", s.Errors, s.Timeouts, s.Aborted)
	}
	return Verdict{}
}

// measurements judges whether every required number could be had.
func measurements(o *run.Observed) Verdict {
	for i, m := range o.Measured {
		if i < len(o.Spec().Measurements) && o.Spec().Measurements[i].Required && m.Value == nil {
			return refuse(v1alpha1.ReasonNotMeasured, "The measurement %s is required and could not be had: %s.", m.Name, m.Reason)
		}
	}
	return Verdict{}
}
