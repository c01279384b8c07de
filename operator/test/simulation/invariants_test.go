package simulation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/queue"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// observe checks every change when it is written.
func (w *world) observe(kind string, old, now client.Object) {
	switch kind {
	case "Trial":
		before, _ := old.(*v1alpha1.Trial)
		after, _ := now.(*v1alpha1.Trial)
		if after != nil && isTrue(after, v1alpha1.TrialAdmitted) && !isTrue(after, v1alpha1.TrialComplete) {
			w.held.put(after)
		} else if before != nil {
			w.held.remove(client.ObjectKeyFromObject(before))
		}
		if after == nil {
			w.ranOn(before, "is gone")
			return
		}
		if before != nil {
			w.unchanged(before, after)
		}
		w.holdsAlone(after)
		if after.Status.ZeroUnixNanos != 0 && (before == nil || before.Status.ZeroUnixNanos == 0) {
			w.releases++
			for _, f := range w.onRelease {
				f(after)
			}
		}
		if isTrue(after, v1alpha1.TrialComplete) && (before == nil || !isTrue(before, v1alpha1.TrialComplete)) {
			w.complete(after)
		}
		if isTrue(after, v1alpha1.TrialResultsStored) && (before == nil || !isTrue(before, v1alpha1.TrialResultsStored)) {
			w.storedNow(after)
		}
	case "ConfigMap":
		if before, _ := old.(*corev1.ConfigMap); now == nil && before.Labels[v1alpha1.LabelResults] == v1alpha1.ResultsKept {
			w.keptIsGone(before)
		}
	case "Experiment":
		before, _ := old.(*v1alpha1.Experiment)
		after, _ := now.(*v1alpha1.Experiment)
		if is, was := after == nil || over(after), over(before); is && !was {
			w.ends++
		} else if was && !is {
			w.ends--
		}
	}
}

func over(e *v1alpha1.Experiment) bool {
	return e != nil && meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ExperimentComplete)
}

// unchanged checks that the fields which are written once stay as they are.
func (w *world) unchanged(before, after *v1alpha1.Trial) {
	if zero := before.Status.ZeroUnixNanos; zero != 0 && zero != after.Status.ZeroUnixNanos {
		w.violated("trial %s: t = 0 was %d and is %d", after.Name, zero, after.Status.ZeroUnixNanos)
	}
	for _, c := range []string{v1alpha1.TrialValid, v1alpha1.TrialComplete} {
		was, is := meta.FindStatusCondition(before.Status.Conditions, c), meta.FindStatusCondition(after.Status.Conditions, c)
		if final(c, was) && (is == nil || is.Status != was.Status || is.Reason != was.Reason) {
			w.violated("trial %s: %s was %s %s and is %+v", after.Name, c, was.Status, was.Reason, is)
		}
	}
	if isTrue(before, v1alpha1.TrialAdmitted) && !isTrue(after, v1alpha1.TrialAdmitted) {
		w.violated("trial %s is not admitted any more", after.Name)
	}
}

// final reports whether a condition does not change any more.
func final(name string, c *metav1.Condition) bool {
	return c != nil && (c.Status == metav1.ConditionTrue || name == v1alpha1.TrialValid && c.Status == metav1.ConditionFalse)
}

// holdsAlone checks that no other trial holds a pool of a trial that has just changed. The others
// were checked at their own changes.
func (w *world) holdsAlone(t *v1alpha1.Trial) {
	if w.held.get(client.ObjectKeyFromObject(t)) == nil {
		return
	}
	pools := t.Spec.Placement.Pools()
	for _, o := range w.held.order {
		if other := o.(*v1alpha1.Trial); other != t && queue.Overlap(pools, other.Spec.Placement.Pools()) {
			w.violated("trials %s and %s hold one pool", t.Name, other.Name)
		}
	}
}

// startedProcess is called at every start. No process of another trial may run there.
func (w *world) startedProcess(a *agent) {
	f := w.factsOf(a.of)
	if a.part == v1alpha1.PodTypeClient {
		if f.launches[a.key.Name]++; f.launches[a.key.Name] > 1 {
			w.violated("the client of %s was started twice", a.key.Name)
		}
	}
	for _, other := range a.node.inOrder() {
		if other.of != a.of && other.process.state == protocol.StateRunning && !other.over {
			w.violated("%s starts on node %s, where %s still runs", a.key.Name, a.node.name, other.key.Name)
		}
	}
}

// processDied is called at every end of a running process.
func (w *world) processDied(a *agent) {
	f := w.factsOf(a.of)
	f.unplanned = append(f.unplanned, unplanned{a.key.Name, w.now})
}

// complete checks a trial that has just ended.
func (w *world) complete(t *v1alpha1.Trial) {
	w.ranOn(t, "is complete")
	w.factsOf(t.UID).completed = w.now
	valid := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid)
	w.trace("trial %s: %s %s: %s", t.Name, valid.Status, valid.Reason, valid.Message)
	if valid.Status == metav1.ConditionTrue {
		w.counts(t)
	} else {
		w.blamed(t, valid)
	}
	for _, a := range w.factsOf(t.UID).agents {
		if a.over { // what it knew is judged; the store is still asked for what it has handed over
			a.disk, a.mem, a.manager = journalled{}, remembered{}, nil
		}
	}
}

// ranOn checks that no process of a trial runs any more.
func (w *world) ranOn(t *v1alpha1.Trial, is string) {
	for _, a := range w.factsOf(t.UID).agents {
		if a.process.state == protocol.StateRunning && !a.over && a.node.reachable() {
			w.violated("trial %s %s, and %s still runs", t.Name, is, a.key.Name)
		}
	}
}

// counts checks a trial that counts: it was undisturbed, and judged over its whole plan.
func (w *world) counts(t *v1alpha1.Trial) {
	f := w.factsOf(t.UID)
	r, err := w.resultsOf(t)
	if err != nil {
		w.violated("trial %s counts, and its results cannot be read: %v", t.Name, err)
		return
	}
	if r.Outcome != v1alpha1.ReasonSucceeded {
		w.violated("trial %s counts, and its results say %s", t.Name, r.Outcome)
	}
	nodes := map[string]bool{}
	for _, a := range f.agents {
		nodes[a.node.name] = true
	}
	if n := int(t.Status.Nodes); n < 1 || n > len(nodes) {
		w.violated("trial %s counts, and has held %d nodes of %d that its pods were on", t.Name, n, len(nodes))
	}
	windows := timeline.FromSchedule(t.Spec.Schedule)
	planned := plannedActions(t)
	if len(r.Faults) != planned {
		w.violated("trial %s counts, and was judged by %d of its %d actions", t.Name, len(r.Faults), planned)
	}
	carried := 0
	for _, a := range f.agents {
		carried += len(a.truth.killedAt)
		if a.truth.ranWithout != "" {
			w.violated("trial %s counts, and %s ran with %s", t.Name, a.key.Name, a.truth.ranWithout)
		}
	}
	if carried < planned {
		w.violated("trial %s counts, and of %d actions %d were carried out", t.Name, planned, carried)
	}
	for _, u := range f.unplanned {
		if a := f.named(u.pod); a != nil && a.disk.settled {
			if at := u.at.Sub(a.zero()); at < windows.LastRequest() && at > -windows.WarmUp {
				w.violated("trial %s counts, and a process of %s ended %v after t = 0, unplanned", t.Name, u.pod, at)
			}
		}
	}
	w.sameBase(t, f)
}

// sameBase checks that all agents used the same clock.
func (w *world) sameBase(t *v1alpha1.Trial, f *facts) {
	var zero time.Time
	for _, a := range f.agents {
		if !a.disk.settled || a.disk.directive.Run == nil {
			continue
		}
		if z := a.zero(); zero.IsZero() {
			zero = z
		} else if z.Sub(zero).Abs() > 10*time.Millisecond {
			w.violated("trial %s counts, and its agents are %v apart", t.Name, z.Sub(zero))
		}
	}
}

// named is the pod's last agent.
func (f *facts) named(pod string) *agent {
	i := slices.IndexFunc(f.agents, func(a *agent) bool { return a.key.Name == pod })
	if i < 0 {
		return nil
	}
	return f.agents[i]
}

// plannedActions counts the actions of a trial from its spec alone.
func plannedActions(t *v1alpha1.Trial) int {
	n := 0
	for _, f := range t.Spec.Faults {
		if f.NodeKill == nil {
			continue
		}
		n += len(f.NodeKill.Target.Replicas)
		if f.For != nil {
			n += len(f.NodeKill.Target.Replicas)
		}
	}
	return n
}

func (w *world) resultsOf(t *v1alpha1.Trial) (results.Trial, error) {
	cm, _ := w.find("ConfigMap", types.NamespacedName{Namespace: t.Namespace, Name: (&placement.Layout{Trial: t.Name}).ResultsConfigMap()}).(*corev1.ConfigMap)
	if cm == nil {
		return results.Trial{}, errNoResults
	}
	return results.DecodeStored(cm.Data, cm.BinaryData)
}

// blamed checks that the right party is blamed for a trial that does not count.
func (w *world) blamed(t *v1alpha1.Trial, valid *metav1.Condition) {
	cause := v1alpha1.CausedBy(valid.Reason)
	system, environment := false, false
	for _, d := range w.disturbed {
		if d.trials != nil && !d.trials[t.UID] {
			continue
		}
		system = system || d.party == v1alpha1.CausedBySystem
		environment = environment || d.party == v1alpha1.CausedByEnvironment
	}
	switch {
	case !system && !environment:
		w.violated("trial %s does not count, and nothing disturbed it: %s: %s", t.Name, valid.Reason, valid.Message)
	case cause == v1alpha1.CausedBySystem && !system:
		w.violated("trial %s blames the system, which did nothing: %s: %s", t.Name, valid.Reason, valid.Message)
	case cause == v1alpha1.CausedByEnvironment && !environment:
		w.violated("trial %s blames the environment, which did nothing: %s: %s", t.Name, valid.Reason, valid.Message)
	}
}

// settled checks the conditions that must hold hours after the last disturbance.
func (w *world) settled() {
	for _, key := range w.experiments {
		e, _ := w.find("Experiment", key).(*v1alpha1.Experiment)
		if e == nil && w.deleted[key.Name] {
			continue
		}
		if !over(e) {
			c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ExperimentComplete)
			if a := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ExperimentAccepted); w.forbids != nil && a != nil && strings.Contains(a.Message, "cannot be fixed, and is tried again") {
				continue
			}
			if w.forbids != nil && c != nil && (strings.Contains(c.Message, "cannot be made, and is tried again") || lacksRight(c)) {
				continue // an administrator must give the right back, and the trial says so
			}
			w.violated("experiment %s is not over, hours after the last disturbance: %+v", key.Name, c)
			continue
		}
		w.slots(e)
	}
	for _, t := range w.eachTrial() {
		admitted := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialAdmitted)
		if !isTrue(t, v1alpha1.TrialComplete) && !(w.forbids != nil && lacksRight(admitted)) {
			text, _ := json.Marshal(t.Status.Conditions)
			w.violated("trial %s is not over, hours after the last disturbance: %s", t.Name, text)
		}
	}
	for _, kind := range []string{"StatefulSet", "Job", "Pod", "Service", "ConfigMap", "Secret"} {
		for _, o := range w.each(kind) {
			if o.GetLabels()[v1alpha1.LabelTrial] != "" && o.GetLabels()[v1alpha1.LabelResults] == "" && !w.toldOf(o) {
				w.violated("%s %s is left over", kind, o.GetName())
			}
		}
	}
	w.grants()
	w.storesSettled()
}

// lacksRight reports whether a trial without a pool waits because its manager lacks a right, and
// names the right.
func lacksRight(c *metav1.Condition) bool {
	return c != nil && c.Reason == v1alpha1.ReasonInsufficientResources && strings.Contains(c.Message, "is forbidden")
}

// toldOf reports whether the trial names the object that could not be deleted, and the reason. The
// object is deleted with the trial.
func (w *world) toldOf(o client.Object) bool {
	t := w.trialNamed(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1alpha1.LabelTrial]})
	if t == nil && w.forbids != nil && w.deleted[o.GetLabels()[v1alpha1.LabelExperiment]] {
		return true
	}
	if t == nil || w.forbids == nil || !metav1.IsControlledBy(o, t) {
		return false
	}
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialCleanedUp)
	return c != nil && strings.Contains(c.Message, "could not be deleted")
}

// slots checks that one trial counts for each repetition of each point, or that the experiment has
// the reason.
func (w *world) slots(e *v1alpha1.Experiment) {
	counted := map[plan.Slot]int{}
	numbers := map[int32]bool{}
	n := int32(0)
	for _, t := range w.eachTrial() {
		if t.Namespace != e.Namespace || t.Spec.Experiment != e.Name {
			continue
		}
		n++
		if numbers[t.Spec.Number] {
			w.violated("experiment %s has two trials %d", e.Name, t.Spec.Number)
		}
		numbers[t.Spec.Number] = true
		if plan.Outcome(t) == v1alpha1.ReasonSucceeded {
			counted[plan.Slot{Point: t.Spec.Point.Index, Repetition: t.Spec.Repetition}]++
		}
	}
	for number := range n {
		if !numbers[number] && !w.deleted[e.Name] {
			w.violated("experiment %s has no trial %d of %d", e.Name, number, n)
		}
	}
	w.blocks(e)
	for slot, times := range counted {
		if times > 1 {
			w.violated("experiment %s: point %d, repetition %d counts %d times", e.Name, slot.Point, slot.Repetition, times)
		}
	}
	complete := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ExperimentComplete)
	if all := int(e.Status.Trials.Planned); complete.Reason == v1alpha1.ReasonAllTrialsValid && len(counted) != all {
		w.violated("experiment %s says that all %d trials are valid, and %d are", e.Name, all, len(counted))
	}
	blamable := func(d disturbance) bool { return d.party != "" }
	if !slices.ContainsFunc(w.disturbed, blamable) && complete.Reason != v1alpha1.ReasonAllTrialsValid {
		w.violated("experiment %s ends with %s, and nothing disturbed it", e.Name, complete.Reason)
	}
}

// blocks checks that all trials of one repetition ran on one set of nodes.
func (w *world) blocks(e *v1alpha1.Experiment) {
	set := map[int32]string{}
	for _, t := range w.eachTrial() {
		if t.Namespace != e.Namespace || t.Spec.Experiment != e.Name {
			continue
		}
		if first, seen := set[t.Spec.Repetition]; seen && first != t.Spec.NodeSet {
			w.violated("experiment %s: repetition %d ran on the sets of nodes %q and %q", e.Name, t.Spec.Repetition, first, t.Spec.NodeSet)
		}
		set[t.Spec.Repetition] = t.Spec.NodeSet
		if (t.Spec.NodeSet == "") != (len(e.Spec.Placement.Sets) == 0) {
			w.violated("trial %s ran on the set of nodes %q, and its experiment has %d", t.Name, t.Spec.NodeSet, len(e.Spec.Placement.Sets))
		}
	}
}

// grants checks that no finished trial has a grant, except for grants that the next pass drops.
func (w *world) grants() {
	m, _ := w.find("ConfigMap", types.NamespacedName{Namespace: home, Name: admission.GrantsName}).(*corev1.ConfigMap)
	if m == nil {
		return
	}
	var all []struct {
		Namespace, Name string
		UID             types.UID
	}
	if err := json.Unmarshal([]byte(m.Data["trials.json"]), &all); err != nil {
		w.violated("the grants cannot be read: %v", err)
	}
	for _, g := range all {
		if t := w.trialNamed(types.NamespacedName{Namespace: g.Namespace, Name: g.Name}); t != nil && t.UID == g.UID && !isTrue(t, v1alpha1.TrialComplete) {
			w.violated("trial %s has a grant, and is not over", g.Name)
		}
	}
}
