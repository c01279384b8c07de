package trial

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/results"
)

// leastMeasured is the share of the window that readings must cover for what a pod used to count as measured. They come once a second; a busy machine may delay
// the first and the last.
const leastMeasured = 0.8

// judgeClocks says which pod's clock is not known well enough, or which two are too far apart, or nothing. It comes before all that is read off these clocks.
// An agent whose machine was reset has measured its clock anew, for less long.
func judgeClocks(spec *v1alpha1.TrialSpec, pods []results.Pod, excused func(pod string) bool) (reason, message string) {
	tolerated, apart := spec.Tolerances.ClockError.OrZero(), spec.Tolerances.ClockOffset.OrZero()
	pods = slices.DeleteFunc(slices.Clone(pods), func(p results.Pod) bool { return excused(p.Name) })
	for i, p := range pods {
		if p.ClockErrorMillis > millis(tolerated) {
			return v1alpha1.ReasonClockUncertain, fmt.Sprintf("The clock of %s is known to within %.3f ms only; tolerances.clockError is %v.", p.Name, p.ClockErrorMillis, tolerated)
		}
		for _, q := range pods[:i] {
			by := math.Abs(p.ClockOffsetMillis-q.ClockOffsetMillis) + p.ClockErrorMillis + q.ClockErrorMillis
			if apart > 0 && by > millis(apart) {
				return v1alpha1.ReasonClocksApart, fmt.Sprintf("The wall clocks of %s and %s may be %.3f ms apart; tolerances.clockOffset is %v.", q.Name, p.Name, by, apart)
			}
		}
	}
	return "", ""
}

// judgeResources says which container was held back by its limit, or which node by its hypervisor, for longer than tolerated, or of which pod that is not known.
// Of several it names the worst.
func judgeResources(spec *v1alpha1.TrialSpec, pods []results.Pod, excused func(pod string) bool) (reason, message string) {
	throttling, steal := spec.Tolerances.Throttling.OrZero(), spec.Tolerances.Steal.OrZero()
	least := leastMeasured * spec.Schedule.Measure.OrZero().Seconds()
	judged := func(tolerated float64) bool { return tolerated < 1 }
	var held, robbed *results.Pod
	var by results.ContainerUse
	for i := range pods {
		p := &pods[i]
		r := p.Resources
		switch {
		case excused(p.Name) || !judged(throttling) && !judged(steal):
			continue
		case r == nil:
			return v1alpha1.ReasonResourcesNotMeasured, fmt.Sprintf("The agent of %s did not say what its pod used in the window.", p.Name)
		case judged(steal) && r.Node.Seconds < least:
			return notMeasured(spec, "the node of "+p.Name, r.Node.Seconds, r.Unmeasured, "steal")
		}
		for _, c := range r.Containers {
			if judged(throttling) && c.Seconds < least {
				return notMeasured(spec, "container "+c.Name+" of "+p.Name, c.Seconds, r.Unmeasured, "throttling")
			}
			if c.ThrottledShare > throttling && (held == nil || c.ThrottledShare > by.ThrottledShare) {
				held, by = p, c
			}
		}
		if r.Node.StealShare > steal && (robbed == nil || r.Node.StealShare > robbed.Resources.Node.StealShare) {
			robbed = p
		}
	}
	switch {
	case held != nil:
		return v1alpha1.ReasonCPUThrottled, fmt.Sprintf(
			"Container %s of %s was held back by its CPU limit of %s cores in %s of the window, for %.2f s in all; tolerances.throttling is %s.",
			by.Name, held.Name, strconv.FormatFloat(by.LimitCores, 'f', -1, 64), percent(by.ThrottledShare), by.ThrottledSeconds, spec.Tolerances.Throttling)
	case robbed != nil:
		return v1alpha1.ReasonCPUStolen, fmt.Sprintf("The hypervisor of node %s, on which %s ran, gave %s of its processors' time to others; tolerances.steal is %s.",
			robbed.Node, robbed.Name, percent(robbed.Resources.Node.StealShare), spec.Tolerances.Steal)
	}
	return "", ""
}

func notMeasured(spec *v1alpha1.TrialSpec, what string, seconds float64, why []string, tolerance string) (reason, message string) {
	message = fmt.Sprintf("Of the window of %v, readings of %s cover %.1f s only; at least %s must be covered, or tolerances.%s be 100%%.",
		spec.Schedule.Measure, what, seconds, percent(leastMeasured), tolerance)
	if len(why) > 0 {
		message += " " + some(why) + "."
	}
	return v1alpha1.ReasonResourcesNotMeasured, message
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" }

// judgeClients checks that the reports are those of exactly the clients that the trial has, less those that misbehave on purpose: one too many or too few, and
// every figure is about something else. It also says which generator was late, or nothing.
func judgeClients(spec *v1alpha1.TrialSpec, l *render.Layout, clients []results.Client, merged results.Merged) (reason, message string) {
	reported := map[int32]results.Client{}
	for _, c := range clients {
		reported[c.Index] = c
	}
	correct := int32(0)
	for _, want := range l.Clients {
		misbehaving, err := render.Misbehaving(spec, want.First, want.Count)
		if err != nil {
			return v1alpha1.ReasonClientsMiscounted, err.Error()
		}
		correct += int32(want.Count - len(misbehaving))
		got, ok := reported[int32(want.Index)]
		if !ok || int(got.FirstClient) != want.First || int(got.Clients) != want.Count || int(got.MisbehavingClients) != len(misbehaving) {
			return v1alpha1.ReasonClientsMiscounted, fmt.Sprintf("%s reported of %d clients from %d on, of which %d misbehaved; it has %d from %d on, of which %d shall.",
				want.Name, got.Clients, got.FirstClient, got.MisbehavingClients, want.Count, want.First, len(misbehaving))
		}
	}
	if len(reported) != len(l.Clients) || merged.CorrectClients != correct {
		return v1alpha1.ReasonClientsMiscounted, fmt.Sprintf("The merged results are those of %d correct clients from %d pods; the trial has %d from %d.",
			merged.CorrectClients, len(reported), correct, len(l.Clients))
	}
	return "", ""
}

// judgeGenerators says which load generator did not keep the schedule of an open loop though clients were free, or nothing.
func judgeGenerators(spec *v1alpha1.TrialSpec, pods []results.Pod) (reason, message string) {
	tolerated := spec.Tolerances.GeneratorLag.OrZero()
	for _, p := range pods {
		if p.GeneratorLagP99Millis > millis(tolerated) {
			return v1alpha1.ReasonGeneratorLate, fmt.Sprintf("The load generator of %s sent requests %.3f ms late at the 99th percentile though clients were free; tolerances.generatorLag is %v.",
				p.Name, p.GeneratorLagP99Millis, tolerated)
		}
	}
	return "", ""
}

// setGeneratorLags puts into each client pod how late its load generator was by its own fault.
func setGeneratorLags(pods []results.Pod, l *render.Layout, clients []results.Client) error {
	lags := map[string]string{}
	for _, c := range clients {
		if int(c.Index) < len(l.Clients) && c.GeneratorLag != "" {
			lags[l.Clients[c.Index].Name] = c.GeneratorLag
		}
	}
	for i := range pods {
		if lags[pods[i].Name] == "" {
			continue
		}
		h, err := results.DecodeHistogram(lags[pods[i].Name])
		if err != nil {
			return fmt.Errorf("read the generator's lag of %s: %w", pods[i].Name, err)
		}
		pods[i].GeneratorLagP99Millis = float64(h.Percentile(99)) / float64(time.Millisecond)
	}
	return nil
}

// worstShares are the greatest shares of throttling and steal of any pod, by the million; nil if no pod was measured.
func worstShares(pods []results.Pod) (throttled, stolen *int32) {
	worst := func(old *int32, share float64) *int32 {
		perMillion := int32(math.Round(share * 1e6))
		if old != nil && *old >= perMillion {
			return old
		}
		return &perMillion
	}
	for _, p := range pods {
		if p.Resources != nil {
			throttled, stolen = worst(throttled, p.Resources.ThrottledShare), worst(stolen, p.Resources.Node.StealShare)
		}
	}
	return throttled, stolen
}
