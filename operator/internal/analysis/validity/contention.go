package validity

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/few"
)

// contention judges whether other programs had the processors of the trial's machines when the
// trial wanted them. It also judges whether that is known.
func contention(o *Observation) Failure {
	return o.eachWindow(func(spec *v1alpha1.TrialSpec, pods []results.Pod, machines []results.MachineUse) Failure {
		return judgeContention(spec, pods, machines, o.excused)
	})
}

// judgeContention names the machine on which the trial waited most for others.
func judgeContention(spec *v1alpha1.TrialSpec, pods []results.Pod, machines []results.MachineUse, excused func(pod string) bool) Failure {
	tolerated := spec.Tolerances.Contention.OrZero()
	if tolerated >= 1 {
		return Failure{}
	}
	least := leastMeasured * ScriptWindow(spec, pods).Seconds()
	for i := range pods {
		p := &pods[i]
		if excused(p.Name) {
			continue
		}
		if v := contentionKnown(spec, p, least); !v.OK() {
			return v
		}
	}
	var worst *results.MachineUse
	for i := range machines {
		if m := &machines[i]; m.ContendedShare != nil && *m.ContendedShare > tolerated && (worst == nil || *m.ContendedShare > *worst.ContendedShare) {
			worst = m
		}
	}
	if worst == nil {
		return Failure{}
	}
	return fail(v1alpha1.ReasonProcessorContended,
		"Others had the processors of node %s in %s of the moments at which a thread of the trial wanted one, for more than a millisecond; tolerances.contention is %s. "+
			"In the mean, the trial used %.2f of the %d processors, and others used %.2f.",
		few.Names(worst.Nodes), percent(*worst.ContendedShare), spec.Tolerances.Contention, worst.TrialCores, worst.CPUs, worst.OthersCores)
}

// contentionKnown fails if the contention of a pod is unknown.
func contentionKnown(spec *v1alpha1.TrialSpec, p *results.Pod, least float64) Failure {
	r := p.Resources
	if r == nil {
		return fail(v1alpha1.ReasonResourcesNotMeasured, "The agent of %s did not say what its pod used in the window.", p.Name)
	}
	if r.Node.Seconds < least {
		return notMeasured(spec, "the node of "+p.Name, r.Node.Seconds, r.Unmeasured, "contention")
	}
	for _, c := range r.Containers {
		switch {
		case c.Seconds < least:
			return notMeasured(spec, "container "+c.Name+" of "+p.Name, c.Seconds, r.Unmeasured, "contention")
		case c.LateShare == nil:
			return fail(v1alpha1.ReasonResourcesNotMeasured, "The launcher of container %s of %s did not say whether threads there waited for a processor.", c.Name, p.Name)
		}
	}
	return Failure{}
}
