package validity

import (
	"math"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// clocks judges whether every pod's clock was known well enough. It comes before all checks of
// instants on these clocks. An agent whose machine was reset has measured its clock anew, in less
// time.
func clocks(o *Observation) Failure {
	if v := judgeBase(o); !v.OK() {
		return v
	}
	return judgeClocks(o.Spec(), o.Result.Pods, func(pod string) bool { return o.Pod(pod).AgentInterrupted })
}

func judgeClocks(spec *v1alpha1.TrialSpec, pods []results.Pod, excused func(pod string) bool) Failure {
	tolerated, apart := spec.Tolerances.ClockError.OrZero(), spec.Tolerances.ClockOffset.OrZero()
	pods = slices.DeleteFunc(slices.Clone(pods), func(p results.Pod) bool { return excused(p.Name) })
	for i, p := range pods {
		if p.ClockErrorMillis > results.Millis(tolerated) {
			return fail(v1alpha1.ReasonClockUncertain, "The clock of %s is known to within %.3f ms only; tolerances.clockError is %v.", p.Name, p.ClockErrorMillis, tolerated)
		}
		for _, q := range pods[:i] {
			by := math.Abs(p.ClockOffsetMillis-q.ClockOffsetMillis) + p.ClockErrorMillis + q.ClockErrorMillis
			if apart > 0 && by > results.Millis(apart) {
				return fail(v1alpha1.ReasonClocksApart, "The wall clocks of %s and %s may be %.3f ms apart; tolerances.clockOffset is %v.", q.Name, p.Name, by, apart)
			}
		}
	}
	return Failure{}
}

// judgeBase judges whether all agents used the same clock, which must not have been set meanwhile.
func judgeBase(o *Observation) Failure {
	tolerated := o.Spec().Tolerances.ClockError.OrZero()
	var first *Pod
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Report == nil || p.AgentInterrupted {
			continue
		}
		if p.Report.ClockStepped > tolerated {
			return fail(v1alpha1.ReasonClockStepped, "The agent of %s saw that the manager's clock, which all instants are given in, changed by %v in the run: "+
				"it was set, or another manager with another clock took over; tolerances.clockError is %v.", p.Name, p.Report.ClockStepped, tolerated)
		}
		if first == nil {
			first = p
		}
		if p.Report.ClockManager != first.Report.ClockManager {
			return fail(v1alpha1.ReasonClockStepped, "The agents of %s and %s began the run by the clocks of different managers.", first.Name, p.Name)
		}
	}
	return Failure{}
}
