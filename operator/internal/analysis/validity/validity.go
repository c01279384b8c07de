// Package validity decides whether the numbers of a trial count. It is pure: it reads one
// Observation and nothing else, so that every rule is tested without a cluster. A trial counts only
// when nothing speaks against it. An unknown fact speaks against it.
//
// The checks are ordered lists. The first that fails gives the trial its reason. Checks that others
// rest on (the clocks) come first, and checks of the system's own behaviour come last.
package validity

import (
	"fmt"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Failure says why a trial does not count. The zero Failure means that there is none.
type Failure struct {
	// Reason is one of the reasons of the condition Valid. Message is a sentence for users.
	Reason, Message string
}

// OK reports whether there is no failure.
func (f Failure) OK() bool { return f.Reason == "" }

func fail(reason, format string, args ...any) Failure {
	return Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Check judges one concern.
type Check struct {
	Name  string
	Judge func(*Observation) Failure
}

// AfterRun are the checks of a run that is over, in their order.
var AfterRun = []Check{
	{"plan known", planKnown},
	{"marks", marksCame}, // a fault that counts from a missing mark did not happen
	{"everything accounted for", accounted},
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
	{"last words", lastWords},
	{"silence", silence},
	{"histogram", histogram},
	{"something measured", somethingMeasured},
	{"measurements", measurements},
	{"purpose", purpose},
}

// Judge runs every check of AfterRun in order and returns the first failure.
func Judge(o *Observation) Failure { return First(AfterRun, o) }

// planKnown judges whether the plan of the trial's agents is known. Without the plan, no fault and
// no link can be judged, so the trial fails.
func planKnown(o *Observation) Failure {
	if o.Rendered {
		return Failure{}
	}
	return fail(v1alpha1.ReasonRunLost, "What faults and links were to be is not known any more, so that nothing says whether they were: a manager that takes over needs the addresses of all pods, and the prepare step's Secret.")
}

// purpose judges whether the trial was made to be measured. It is the last check: if a flame graph
// failed, the trial has that failure as its reason.
func purpose(o *Observation) Failure {
	if o.Spec().Measures() {
		return Failure{}
	}
	return fail(v1alpha1.ReasonNotMeasuring, "Profilers sampled its pods, as flameGraph asks; such a trial never counts.")
}

// histogram judges whether every latency could be counted.
func histogram(o *Observation) Failure {
	tolerated := o.Spec().Tolerances.OutOfRange
	if out, of := o.Result.Summary.OutOfRange, o.Result.Summary.Committed; float64(out) > tolerated.OrZero()*float64(of) {
		return fail(v1alpha1.ReasonHistogramOverflow, "%d of %d latencies lay outside the histogram's range; tolerances.outOfRange is %s.", out, of, tolerated)
	}
	return Failure{}
}

func somethingMeasured(o *Observation) Failure {
	s := &o.Result.Summary
	switch {
	case len(o.Result.Rows) > 0:
		return rowsMeasured(o.Result)
	case s.Committed == 0 && s.RunSummary:
		return fail(v1alpha1.ReasonNothingMeasured, "No client committed a transaction in its whole run.")
	case s.Committed == 0:
		return fail(v1alpha1.ReasonNothingMeasured, "No transaction was committed in the window: %d errors, %d timeouts, %d aborts.", s.Errors, s.Timeouts, s.Aborted)
	}
	return Failure{}
}

// measurements judges whether every required number could be had.
func measurements(o *Observation) Failure {
	for i, asked := range o.Spec().Measurements {
		switch {
		case !asked.Required:
		case i >= len(o.Measured):
			return fail(v1alpha1.ReasonNotMeasured, "The measurement %s is required, and nothing is known of it.", asked.Name)
		case o.Measured[i].Value == nil:
			return fail(v1alpha1.ReasonNotMeasured, "The measurement %s is required and could not be had: %s.", asked.Name, o.Measured[i].Reason)
		}
	}
	return Failure{}
}
