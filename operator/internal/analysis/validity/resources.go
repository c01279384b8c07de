package validity

import (
	"fmt"
	"strconv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/few"
)

// leastMeasured is the share of the window that readings must cover. Otherwise the pod's use counts
// as not measured. They come once a second; a busy machine may delay the first and the last.
const leastMeasured = 0.8

// restarts judges whether the kubelet restarted a container without a fault that explains it.
func restarts(o *Observation) Failure {
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case p.Restarts <= p.PlannedRestarts:
		case p.OutOfMemory != "" && p.nodeRanOut(p.OutOfMemory) != "":
			return fail(v1alpha1.ReasonPodRestarted, "Container %s of %s was killed since its node was out of memory: %s.", p.OutOfMemory, p.Name, p.nodeRanOut(p.OutOfMemory))
		case p.OutOfMemory != "":
			return fail(v1alpha1.ReasonOutOfMemory, "Container %s of %s exceeded its memory limit and was killed.", p.OutOfMemory, p.Name)
		default:
			return fail(v1alpha1.ReasonPodRestarted, "The kubelet restarted containers of %s %d times%s.", p.Name, p.Restarts, p.which())
		}
		if c := lostProcess(p); c != "" {
			return fail(v1alpha1.ReasonPodRestarted, "Container %s of %s was restarted, and its process is gone: its node was, or the container runtime.", c, p.Name)
		}
	}
	return Failure{}
}

// lostProcess is a container whose process ended with its launcher, without a planned fault: the
// kubelet is about to report a restart. Empty: there is none.
func lostProcess(p *Pod) string {
	if p.Report == nil || p.Terminating || p.Interrupted {
		return ""
	}
	for _, c := range p.Report.Containers {
		if c.State == protocol.StateLost {
			return c.Name
		}
	}
	return ""
}

// resources judges whether every pod had the processors that it was given. A pod for which this is
// unknown fails, too.
func resources(o *Observation) Failure {
	return o.eachWindow(func(spec *v1alpha1.TrialSpec, pods []results.Pod, _ []results.MachineUse) Failure {
		return judgeResources(spec, pods, o.excused)
	})
}

// judgeResources names a container or a node that was held back for longer than tolerated: a
// container by its limit, a node by its hypervisor. It also names a pod without such measurements.
// If there are several, it names the worst.
func judgeResources(spec *v1alpha1.TrialSpec, pods []results.Pod, excused func(pod string) bool) Failure {
	throttling, steal := spec.Tolerances.Throttling.OrZero(), spec.Tolerances.Steal.OrZero()
	least := leastMeasured * ScriptWindow(spec, pods).Seconds()
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
			return fail(v1alpha1.ReasonResourcesNotMeasured, "The agent of %s did not say what its pod used in the window.", p.Name)
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
	case robbed != nil:
		return fail(v1alpha1.ReasonCPUStolen, "The hypervisor of node %s, on which %s ran, gave others %s of the processor time that the node wanted; tolerances.steal is %s.",
			robbed.Node, robbed.Name, percent(robbed.Resources.Node.StealShare), spec.Tolerances.Steal)
	case held != nil:
		return fail(v1alpha1.ReasonCPUThrottled,
			"Container %s of %s was held back by its CPU limit of %s cores in %s of the window, for %.2f s in all; tolerances.throttling is %s.",
			by.Name, held.Name, strconv.FormatFloat(by.LimitCores, 'f', -1, 64), percent(by.ThrottledShare), by.ThrottledSeconds, spec.Tolerances.Throttling)
	}
	return Failure{}
}

func notMeasured(spec *v1alpha1.TrialSpec, what string, seconds float64, why []string, tolerance string) Failure {
	message := fmt.Sprintf("Of the window of %v, readings of %s cover %.1f s only; at least %s must be covered, or tolerances.%s be 100%%.",
		spec.Schedule.Measure, what, seconds, percent(leastMeasured), tolerance)
	if len(why) > 0 {
		message += " " + few.Names(why) + "."
	}
	return Failure{v1alpha1.ReasonResourcesNotMeasured, message}
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + "%" }
