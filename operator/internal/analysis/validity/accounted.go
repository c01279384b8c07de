package validity

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/text/few"
)

// accounted judges whether there is an observation of each planned pod, process, link, action and
// fault of Chaos Mesh. Every other check looks at existing observations only, and does not notice a
// missing one.
func accounted(o *Observation) Failure {
	for _, missing := range []func(*Observation) string{missingPods, missingProcesses, missingLinks, missingActions, missingInjections} {
		if what := missing(o); what != "" {
			return fail(v1alpha1.ReasonRunLost, "What became of %s is not known, and what is not known speaks against a trial.", what)
		}
	}
	if what := missingUse(o); what != "" {
		return fail(v1alpha1.ReasonResourcesNotMeasured, "It is not known what %s used in the window.", what)
	}
	return Failure{}
}

// missingPods are the layout's pods that were not observed exactly once, or not written down
// exactly once.
func missingPods(o *Observation) string {
	var observed, written []string
	for i := range o.Pods {
		observed = append(observed, o.Pods[i].Name)
	}
	for i := range o.Result.Pods {
		written = append(written, o.Result.Pods[i].Name)
	}
	return few.Names(slices.DeleteFunc(slices.Concat(o.Layout.ServerPods(), o.Layout.ClientPods()), func(name string) bool {
		return times(observed, name) == 1 && times(written, name) == 1
	}))
}

func times(all []string, name string) (n int) {
	for _, one := range all {
		if one == name {
			n++
		}
	}
	return n
}

// missingProcesses are a pod's planned processes that are not in its agent's report. Other checks
// judge pods that, as planned, did not live through the run.
func missingProcesses(o *Observation) string {
	var missing []string
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Report == nil || p.AgentInterrupted || p.Terminating {
			continue
		}
		var said []string
		for _, c := range p.Report.Containers {
			said = append(said, c.Name)
		}
		for _, c := range p.Containers {
			if times(said, c) != 1 {
				missing = append(missing, "the process of "+p.Name+"/"+c)
			}
		}
	}
	return few.Names(missing)
}

// lastWords judges whether each agent reported after the last request. An earlier report says that
// the processes run, even if the node is lost later. The final count of resets shows that the agent
// reported after that time. Other failures are better reasons, so this check comes after them.
func lastWords(o *Observation) Failure {
	var missing []string
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Report != nil && !p.Interrupted && !p.Terminating && !p.Report.ResetsCounted {
			missing = append(missing, p.Name)
		}
	}
	if len(missing) == 0 {
		return Failure{}
	}
	return fail(v1alpha1.ReasonRunLost, "What became of %s before the last request is not known: the agent has not reported since, and what is not known speaks against a trial.", few.Names(missing))
}

// missingUse are the containers without a report of their use, if their use matters.
func missingUse(o *Observation) string {
	t := o.Spec().Tolerances
	if t.Throttling.OrZero() >= 1 && t.Contention.OrZero() >= 1 {
		return ""
	}
	var missing []string
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Interrupted || p.Report == nil || p.Report.Resources == nil {
			continue // see resources
		}
		var said []string
		for _, c := range p.Report.Resources.Containers {
			said = append(said, c.Name)
		}
		for _, c := range p.Containers {
			if times(said, c) != 1 {
				missing = append(missing, "container "+p.Name+"/"+c)
			}
		}
	}
	return few.Names(missing)
}

// missingLinks are the pairs of pods without a known link, if links are shaped.
func missingLinks(o *Observation) string {
	if n := o.Trial.Status.Network; n == nil || n.Backend == "" {
		return ""
	}
	pods, at := len(o.Pods), map[string]int{}
	for i := range o.Pods {
		at[o.Pods[i].Name] = i
	}
	known := make([]bool, pods*pods)
	for k := range o.Pairs {
		i, one := at[o.Pairs[k].A]
		j, other := at[o.Pairs[k].B]
		if one && other {
			known[i*pods+j], known[j*pods+i] = true, true
		}
	}
	var missing []string
	for i := range o.Pods {
		for j := range i {
			if !known[i*pods+j] {
				missing = append(missing, fmt.Sprintf("the links between %s and %s", o.Pods[j].Name, o.Pods[i].Name))
			}
		}
	}
	return few.Names(missing)
}

// missingActions are the planned actions of the trial's faults that are not judged exactly once.
func missingActions(o *Observation) string {
	var side shaping.Side
	if n := o.Trial.Status.Network; n != nil && n.Backend != "" {
		side = shaping.Backend(n.Backend).Side()
	}
	planned, err := fault.Build(o.Spec().Faults, o.Windows(), o.Layout)
	if err != nil {
		return "the faults, which cannot be planned (" + err.Error() + ")"
	}
	var observed, judged, missing []string
	for _, a := range o.Actions {
		observed = append(observed, a.ID)
	}
	for i := range o.Result.Faults {
		judged = append(judged, o.Result.Faults[i].ID)
	}
	for _, a := range timeline.InForce(planned, side) {
		if times(observed, a.ID) != 1 || times(judged, a.ID) != 1 {
			missing = append(missing, fmt.Sprintf("%s of %s by fault %s", a.Kind, a.Pod, a.Fault))
		}
	}
	return few.Names(missing)
}

// missingInjections are the occurrences of faults of Chaos Mesh that have no record.
func missingInjections(o *Observation) string {
	planned, err := fault.Occurrences(o.Spec().Faults, o.Windows(), o.Layout)
	if err != nil {
		return "the faults of Chaos Mesh, which cannot be planned (" + err.Error() + ")"
	}
	var missing []string
	for _, t := range planned {
		if !slices.ContainsFunc(o.Injections, func(i Injection) bool { return i.Fault.Name == t.Fault.Name && i.Time == t.Time }) {
			missing = append(missing, fmt.Sprintf("time %d of fault %s", t.Time, t.Fault.Name))
		}
	}
	return few.Names(missing)
}
