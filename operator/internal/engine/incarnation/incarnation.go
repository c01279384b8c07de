// Package incarnation knows which pods have had a name in a run. A fault of Chaos Mesh may replace
// a replica's pod: the pod is deleted, and its StatefulSet makes another of the same name, with
// another UID and another address. Such a pod takes its predecessor's place; any other pod that
// comes or goes ends the trial. It is pure.
//
//	incarnation n runs ─(a replacement is due, pod deleted)─▶ terminating ─(another pod of the name, made for the trial)─▶ incarnation n+1 runs
//
// The incarnations of each name since t = 0 are kept with the data of the release. They are written
// before the agent of a new pod may report, so that no manager accepts one pod more than is
// planned. With them is what each predecessor's agent reported last, which is forgotten with the
// pod.
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

// History is a trial, as observed, and which pods have had its pods' names. Of, Terminating and
// Refused are nil unless it has been released and its faults replace pods.
type History struct {
	Trial       *v1alpha1.Trial
	System      *v1alpha1.SystemSpec
	Names       []string                      // of the pods that take part
	Pods        map[string]*corev1.Pod        // by name; those that have no place in the trial are taken out
	Reports     func(string) *protocol.Report // what the agent of a pod said last, or nil
	Occurrences []*fault.Occurrence           // of faults that Chaos Mesh carries out
	Now         time.Time
	Of          map[string][]validity.Incarnation // the pods that have had a name
	Terminating map[string]bool                   // replicas whose pod goes or is gone, as planned, and whose successor is not there
	Refused     map[string]string                 // why a pod has no place in the trial
}

func (r *History) zero() time.Time { return time.Unix(0, r.Trial.Status.ZeroUnixNanos) }

// disruptions are the times of faults that replace the pod or restart its containers, if is holds
// for them.
func (r *History) disruptions(pod string, is func(*fault.Occurrence) bool) []*fault.Occurrence {
	var found []*fault.Occurrence
	for _, t := range r.Occurrences {
		if (t.Replaces() || t.Restarts()) && is(t) && slices.Contains(t.Pods, pod) {
			found = append(found, t)
		}
	}
	return found
}

// sinceZero is now, relative to t = 0, and never 0.
func (r *History) sinceZero() time.Duration {
	if d := time.Duration(r.Now.UnixNano() - r.Trial.Status.ZeroUnixNanos); d != 0 {
		return d
	}
	return 1
}

// replacementsDue counts how often the pod may have been replaced by now.
func (r *History) replacementsDue(pod string) int {
	n := 0
	for _, t := range r.disruptions(pod, (*fault.Occurrence).Replaces) {
		if t.From <= r.sinceZero() {
			n++
		}
	}
	return n
}

// Replaced reports whether the pod of this name is another one than at t = 0.
func (r *History) Replaced(pod string) bool { return len(r.Of[pod]) > 1 }

// AgentRestarts reports whether the agent of the pod does not live through the run, as planned by a
// fault of Chaos Mesh: what it alone knew is lost.
func (r *History) AgentRestarts(pod string) bool {
	return len(r.disruptions(pod, func(t *fault.Occurrence) bool { return t.Replaces() || t.RestartsAgent() })) > 0
}

// Restarts reports the same of the agent or any container of the pod.
func (r *History) Restarts(pod string) bool {
	return len(r.disruptions(pod, func(*fault.Occurrence) bool { return true })) > 0
}

// judged reports whether the outcome of the trial is known.
func (r *History) judged() bool {
	c := meta.FindStatusCondition(r.Trial.Status.Conditions, v1alpha1.TrialValid)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// Applies reports whether pods of the run may be replaced.
func (r *History) Applies() bool {
	return r.Trial.Status.ZeroUnixNanos != 0 && fault.ReplacesPods(r.Trial.Spec.Faults)
}

// Update finds the pods of a run that were replaced. It takes pods without a place in the run out
// of the observed pods. The incarnations in known are those that were written last. The function
// impostor says why a pod was not made for the trial, or nothing. If it returns true, Of must be
// written down.
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

// close takes those pods out that came when the outcome was known already: no pod takes another's
// place any more.
func (r *History) close() {
	for name, p := range r.Pods {
		if line := r.Of[name]; len(line) > 0 && line[len(line)-1].UID != p.UID {
			delete(r.Pods, name)
		}
	}
}

// update brings the incarnations of one name up to date, and says whether they changed.
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
		return false, nil // a pod that is just gone ends the run
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

// tooMany says why a pod may not take the place of one that has been replaced so often, of so many
// times that are planned.
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

// finalReport is what is kept of an agent's last report.
func finalReport(rep *protocol.Report) *protocol.Report {
	if rep == nil {
		return nil
	}
	last := *rep
	last.Network, last.Unresolved, last.Commands = nil, nil, nil // nothing was shaped, and all of it was so before t = 0
	return &last
}

// First are the incarnations that a run is released with.
func (r *History) First() map[string][]validity.Incarnation {
	all := map[string][]validity.Incarnation{}
	for _, name := range r.Names {
		if p := r.Pods[name]; p != nil {
			all[name] = []validity.Incarnation{{UID: p.UID, Node: p.Spec.NodeName}}
		}
	}
	return all
}
