package queue

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
)

// betweenTrials is how long an experiment keeps its place until its next trial exists, after a
// trial is over or after it was accepted. The next trial usually comes within a second. An
// experiment whose next trial does not come only loses its turn.
const betweenTrials = 10 * time.Second

// Entries returns the trials that wait or hold pools, and the experiments whose next trial is about
// to be made. The manager decides by them, and kubectl assay queue shows them.
func Entries(trials []v1alpha1.Trial, experiments []v1alpha1.Experiment, now time.Time) []Entry {
	byName := map[types.NamespacedName]*v1alpha1.Experiment{}
	for i := range experiments {
		byName[types.NamespacedName{Namespace: experiments[i].Namespace, Name: experiments[i].Name}] = &experiments[i]
	}
	var out []Entry
	active := map[onSet]bool{}
	last := map[onSet]*v1alpha1.Trial{} // the last finished trial of each experiment and set of nodes
	for i := range trials {
		t := &trials[i]
		key := setOf(t)
		if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete) {
			if l := last[key]; l == nil || endOf(t).After(endOf(l)) {
				last[key] = t
			}
			continue
		}
		if forsaken(t) {
			continue
		}
		active[key] = true
		out = append(out, entryOf(t, byName[key.experiment], meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialAdmitted)))
	}
	for name, exp := range byName {
		placement := placementOf(exp)
		for i := range placement.AtOnce() {
			on, set := placement.On(i)
			key := onSet{name, set}
			if e, coming := between(exp, on, last[key], now); coming && !active[key] {
				out = append(out, e)
			}
		}
	}
	return Order(out)
}

// Between returns the experiments whose next trial may be about to be made. Entries needs the
// finished trials of these experiments only.
func Between(trials []v1alpha1.Trial, experiments []v1alpha1.Experiment) []types.NamespacedName {
	active := map[onSet]bool{}
	for i := range trials {
		if t := &trials[i]; !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete) && !forsaken(t) {
			active[setOf(t)] = true
		}
	}
	var out []types.NamespacedName
	for i := range experiments {
		exp := &experiments[i]
		if goesOn(exp) == nil {
			continue
		}
		name, placement := types.NamespacedName{Namespace: exp.Namespace, Name: exp.Name}, placementOf(exp)
		for n := range placement.AtOnce() {
			if _, set := placement.On(n); !active[onSet{name, set}] {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// forsaken reports whether a trial was deleted before it was admitted: it makes no more pods.
func forsaken(t *v1alpha1.Trial) bool {
	return !t.DeletionTimestamp.IsZero() && !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialAdmitted)
}

func setOf(t *v1alpha1.Trial) onSet {
	return onSet{types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.Experiment}, t.Spec.NodeSet}
}

// onSet is an experiment on one of its sets of nodes.
type onSet struct {
	experiment types.NamespacedName
	set        string
}

// placementOf returns the placement of an experiment, with its profile applied.
func placementOf(exp *v1alpha1.Experiment) v1alpha1.Placement {
	for i := range exp.Spec.Profiles {
		if p := exp.Spec.Profiles[i]; p.Name == exp.Spec.Profile && p.Placement != nil {
			return *p.Placement
		}
	}
	return exp.Spec.Placement
}

func entryOf(t *v1alpha1.Trial, exp *v1alpha1.Experiment, admitted bool) Entry {
	e := Entry{
		Trial: t.Namespace + "/" + t.Name, Experiment: t.Namespace + "/" + t.Spec.Experiment, Arrival: t.CreationTimestamp.Time, Number: t.Spec.Number,
		Pools: t.Spec.Placement.Pools(), Exclusive: t.Spec.Placement.IsExclusive(), Admitted: admitted,
		Settled: meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialDeployed),
	}
	if exp != nil {
		e.Arrival, e.Priority, e.Suspended = exp.CreationTimestamp.Time, exp.Spec.Priority, exp.Spec.Suspend && !admitted
	}
	return e
}

func endOf(t *v1alpha1.Trial) time.Time {
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialComplete); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// goesOn returns the condition by which an experiment was accepted, if it may make more trials.
func goesOn(exp *v1alpha1.Experiment) *metav1.Condition {
	accepted := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionTrue || exp.Spec.Suspend || exp.Spec.Recurrence != nil || !exp.DeletionTimestamp.IsZero() ||
		meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) {
		return nil
	}
	return accepted
}

// between reports whether the next trial of an experiment is about to be made on a set of nodes.
func between(exp *v1alpha1.Experiment, on v1alpha1.Placement, last *v1alpha1.Trial, now time.Time) (Entry, bool) {
	accepted := goesOn(exp)
	if accepted == nil {
		return Entry{}, false
	}
	since := accepted.LastTransitionTime.Time
	if last != nil {
		since = endOf(last)
	}
	if now.Sub(since).Abs() > betweenTrials { // the clock of an earlier manager may have been hours ahead
		return Entry{}, false
	}
	return Entry{
		Experiment: exp.Namespace + "/" + exp.Name, Priority: exp.Spec.Priority, Arrival: exp.CreationTimestamp.Time,
		Pools: on.Pools(), Exclusive: on.IsExclusive(),
	}, true
}

// Gap is how long the machines of a trial will have measured nothing when the trial begins at an
// instant. It is 0 if others measure there at the same time. It only counts the time between trials
// of one experiment.
func Gap(trials []v1alpha1.Trial, t *v1alpha1.Trial, at time.Time) time.Duration {
	var last time.Time
	first, pools := true, t.Spec.Placement.Pools()
	for i := range trials {
		o := &trials[i]
		if o.UID == t.UID || o.Status.Times.Drained == nil || !Overlap(o.Spec.Placement.Pools(), pools) {
			continue
		}
		if o.Namespace == t.Namespace && metav1.GetControllerOf(o) != nil && metav1.GetControllerOf(t) != nil &&
			metav1.GetControllerOf(o).UID == metav1.GetControllerOf(t).UID {
			first = false
		}
		if o.Status.Times.Drained.After(last) {
			last = o.Status.Times.Drained.Time
		}
	}
	if first {
		return 0
	}
	return max(0, at.Sub(last))
}
