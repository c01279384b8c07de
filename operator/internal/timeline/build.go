package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
)

// FromSchedule returns the windows of a schedule.
func FromSchedule(s v1alpha1.Schedule) Windows {
	return Windows{WarmUp: s.WarmUp.OrZero(), Measure: s.Measure.OrZero(), CoolDown: s.CoolDown.OrZero(), Drain: s.Drain.OrZero()}
}

// Build returns the dated actions of all pods, in order of time, then pod. target names the pods that a fault's target means.
func Build(faults []v1alpha1.Fault, target func(v1alpha1.Target) []string) ([]Action, error) {
	var actions []Action
	for _, f := range faults {
		if f.NodeKill == nil {
			return nil, fmt.Errorf("fault %q says nothing to do: set nodeKill", f.Name)
		}
		pods := target(f.NodeKill.Target)
		if len(pods) == 0 {
			return nil, fmt.Errorf("fault %q hits no replica", f.Name)
		}
		for _, pod := range pods {
			actions = append(actions, action(f, Kill, pod))
			if f.For != nil {
				actions = append(actions, action(f, Revive, pod))
			}
		}
	}
	slices.SortFunc(actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.ID, b.ID))
	})
	return actions, nil
}

func action(f v1alpha1.Fault, kind Kind, pod string) Action {
	at := f.At.OrZero()
	word := "kill"
	if kind == Revive {
		at += f.For.OrZero()
		word = "revive"
	}
	return Action{ID: fmt.Sprintf("%s/%s/%s", f.Name, word, pod), Fault: f.Name, Pod: pod, Kind: kind, At: at}
}

// OfPod returns the actions of one pod.
func OfPod(actions []Action, pod string) []Action {
	var out []Action
	for _, a := range actions {
		if a.Pod == pod {
			out = append(out, a)
		}
	}
	return out
}
