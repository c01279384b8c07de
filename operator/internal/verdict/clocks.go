package verdict

import (
	"math"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/run"
)

// clocks judges whether every pod's clock was known well enough. It comes before all that is read off these clocks. An agent whose machine was
// reset has measured its clock anew, for less long.
func clocks(o *run.Observed) Verdict {
	return judgeClocks(o.Spec(), o.Result.Pods, func(pod string) bool { return o.Pod(pod).AgentInterrupted })
}

func judgeClocks(spec *v1alpha1.TrialSpec, pods []results.Pod, excused func(pod string) bool) Verdict {
	tolerated, apart := spec.Tolerances.ClockError.OrZero(), spec.Tolerances.ClockOffset.OrZero()
	pods = slices.DeleteFunc(slices.Clone(pods), func(p results.Pod) bool { return excused(p.Name) })
	for i, p := range pods {
		if p.ClockErrorMillis > results.Millis(tolerated) {
			return refuse(v1alpha1.ReasonClockUncertain, "The clock of %s is known to within %.3f ms only; tolerances.clockError is %v.", p.Name, p.ClockErrorMillis, tolerated)
		}
		for _, q := range pods[:i] {
			by := math.Abs(p.ClockOffsetMillis-q.ClockOffsetMillis) + p.ClockErrorMillis + q.ClockErrorMillis
			if apart > 0 && by > results.Millis(apart) {
				return refuse(v1alpha1.ReasonClocksApart, "The wall clocks of %s and %s may be %.3f ms apart; tolerances.clockOffset is %v.", q.Name, p.Name, by, apart)
			}
		}
	}
	return Verdict{}
}
