// Package incarnation tracks which pods have had a name in a run. A fault of Chaos Mesh may replace
// a replica's pod: the pod is deleted, and its StatefulSet makes another pod of the same name, with
// another UID and another address. Such a pod takes its predecessor's place. Any other pod that
// comes or goes ends the trial. The package is pure.
//
//	incarnation n runs ─(a replacement is due, pod deleted)─▶ terminating ─(another pod of the name, made for the trial)─▶ incarnation n+1 runs
//
// The data of the release has the incarnations of each name since t = 0. It is written before the
// agent of a new pod may report, so that no manager accepts one pod more than planned. It also has
// the last report of each predecessor's agent, which is forgotten with the pod.
package incarnation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/node/protocol"
)

// History has an observed trial, and the pods that have had each name. Of, Terminating and Refused
// are set only after the release of a trial whose faults replace pods.
type History struct {
	Trial       *v1alpha1.Trial
	System      *v1alpha1.SystemSpec
	Names       []string                      // of the pods that take part
	Pods        map[string]*corev1.Pod        // by name; Update removes those that have no place in the trial
	Reports     func(string) *protocol.Report // last report of the agent of a pod, or nil
	Occurrences []*fault.Occurrence           // of faults that Chaos Mesh carries out
	Now         time.Time
	Of          map[string][]validity.Incarnation // the pods that have had a name
	Terminating map[string]bool                   // replicas whose pod goes or is gone, as planned, and has no successor yet
	Refused     map[string]string                 // why a pod has no place in the trial
}

func (r *History) zero() time.Time { return time.Unix(0, r.Trial.Status.ZeroUnixNanos) }

// disruptions returns the times of faults that replace the pod or restart its containers, and for
// which is returns true.
func (r *History) disruptions(pod string, is func(*fault.Occurrence) bool) []*fault.Occurrence {
	var found []*fault.Occurrence
	for _, t := range r.Occurrences {
		if (t.Replaces() || t.Restarts()) && is(t) && slices.Contains(t.Pods, pod) {
			found = append(found, t)
		}
	}
	return found
}

// sinceZero returns the time since t = 0, which is never 0.
func (r *History) sinceZero() time.Duration {
	if d := time.Duration(r.Now.UnixNano() - r.Trial.Status.ZeroUnixNanos); d != 0 {
		return d
	}
	return 1
}

// replacementsDue counts the planned replacements of the pod until now.
func (r *History) replacementsDue(pod string) int {
	n := 0
	for _, t := range r.disruptions(pod, (*fault.Occurrence).Replaces) {
		if t.From <= r.sinceZero() {
			n++
		}
	}
	return n
}

// Replaced reports whether the pod of this name is another pod than at t = 0.
func (r *History) Replaced(pod string) bool { return len(r.Of[pod]) > 1 }

// AgentRestarts reports whether a fault of Chaos Mesh ends the agent of the pod during the run. The
// agent's own data is then lost.
func (r *History) AgentRestarts(pod string) bool {
	return len(r.disruptions(pod, func(t *fault.Occurrence) bool { return t.Replaces() || t.RestartsAgent() })) > 0
}

// Restarts reports whether a fault of Chaos Mesh ends the agent or any container of the pod during
// the run.
func (r *History) Restarts(pod string) bool {
	return len(r.disruptions(pod, func(*fault.Occurrence) bool { return true })) > 0
}

// judged reports whether the outcome of the trial is known.
func (r *History) judged() bool {
	c := meta.FindStatusCondition(r.Trial.Status.Conditions, v1alpha1.TrialValid)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// Applies reports whether faults may replace pods of the run.
func (r *History) Applies() bool {
	return r.Trial.Status.ZeroUnixNanos != 0 && fault.ReplacesPods(r.Trial.Spec.Faults)
}

// Update finds the replaced pods of a run. It removes pods without a place in the run from the
// observed pods. The argument known has the incarnations that were saved last. The function
// impostor says why a pod was not made for the trial, or returns the empty string. If changed is
// true, the caller must save Of.
func (r *History) Update(known map[string][]validity.Incarnation, impostor func(*corev1.Pod) (string, error)) (changed bool, err error) {
	r.Of, r.Terminating, r.Refused = maps.Clone(known), map[string]bool{}, map[string]string{}
	for name, all := range r.Of {
		r.Of[name] = slices.Clone(all)
	}
	if r.judged() {
		r.close()
		return false, nil
	}
	for _, name := range r.Names {
		if len(r.Of[name]) == 0 {
			return false, fmt.Errorf("the pods that the trial was released with do not include %s", name)
		}
		here, err := r.update(name, impostor)
		if err != nil {
			return false, err
		}
		changed = changed || here
	}
	return changed, nil
}

// close removes pods that came after the outcome was known: then no pod takes another pod's place.
func (r *History) close() {
	for name, p := range r.Pods {
		if line := r.Of[name]; len(line) > 0 && line[len(line)-1].UID != p.UID {
			delete(r.Pods, name)
		}
	}
}

// update brings the incarnations of one name up to date, and reports whether they changed.
func (r *History) update(name string, impostor func(*corev1.Pod) (string, error)) (changed bool, err error) {
	line, p, due := r.Of[name], r.Pods[name], r.replacementsDue(name)
	current := &line[len(line)-1]
	if p != nil && p.UID == current.UID {
		r.Terminating[name] = !p.DeletionTimestamp.IsZero() && len(line)-1 < due
		if rep := r.Reports(name); len(line) > 1 && current.ReadyAt == 0 && rep != nil && rep.Ready {
			current.ReadyAt, current.Node, changed = r.sinceZero(), p.Spec.NodeName, true
		}
		return changed, nil
	}
	if len(line)-1 >= due {
		if p != nil {
			delete(r.Pods, name)
			r.Refused[name] = tooMany(name, len(line)-1, len(r.disruptions(name, (*fault.Occurrence).Replaces)))
		}
		return false, nil // a missing pod without a planned replacement ends the run
	}
	if current.DeletedAt == 0 {
		current.DeletedAt, current.Last, changed = r.sinceZero(), finalReport(r.Reports(name)), true
	}
	r.Terminating[name] = true
	if p == nil {
		return changed, nil
	}
	why, err := impostor(p)
	if err != nil {
		return changed, err
	}
	if why != "" {
		delete(r.Pods, name)
		r.Refused[name] = fmt.Sprintf("Another pod has the name of %s, which a fault has deleted, but it does not take its place: %s.", name, why)
		return changed, nil
	}
	r.Terminating[name] = !p.DeletionTimestamp.IsZero()
	r.Of[name] = append(line, validity.Incarnation{UID: p.UID, CreatedAt: r.sinceZero()})
	return true, nil
}

// tooMany says that a pod may not take its predecessor's place, since the name has had all its
// planned replacements.
func tooMany(pod string, times, planned int) string {
	switch {
	case planned == 0:
		return fmt.Sprintf("Pod %s was made again in the middle of the run, and no fault is to replace it.", pod)
	case times < planned:
		return fmt.Sprintf("Pod %s was made again in the middle of the run, before a fault was to replace it.", pod)
	default:
		return fmt.Sprintf("Pod %s was made again in the middle of the run, once more than faults were to replace it (%d).", pod, planned)
	}
}

// finalReport returns the part of an agent's last report that is kept.
func finalReport(rep *protocol.Report) *protocol.Report {
	if rep == nil {
		return nil
	}
	last := *rep
	last.Network, last.Unresolved, last.Commands = nil, nil, nil // these were done before t = 0, and nothing was shaped
	return &last
}

// First returns the incarnations at the release of a run.
func (r *History) First() map[string][]validity.Incarnation {
	all := map[string][]validity.Incarnation{}
	for _, name := range r.Names {
		if p := r.Pods[name]; p != nil {
			all[name] = []validity.Incarnation{{UID: p.UID, Node: p.Spec.NodeName}}
		}
	}
	return all
}
