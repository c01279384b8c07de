// Package succession knows who has which pod's name in a run. A fault of Chaos Mesh may replace a
// replica's pod: the pod is deleted, and its StatefulSet makes another of the same name, with
// another UID and another address. Such a pod takes its predecessor's place; any other pod that
// comes or goes ends the trial.
//
//	pod of line[n] runs ─(a replacement is due, pod deleted)─▶ leaving ─(another pod of the name, of the trial's StatefulSet)─▶ line[n+1] runs
//
// Who has had each name since t = 0 was agreed is kept in the trial's addresses ConfigMap, written
// before the coordinator is told of a new pod, so that no manager accepts one pod more than is
// planned. With it is what each predecessor's agent said last: the coordinator forgets that with
// the pod.
package succession

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/fault"
	"assay.dev/assay/operator/internal/placement"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/validity"
)

// linesKey of a trial's addresses ConfigMap holds, as JSON, the line of each pod.
const linesKey = "pods.json"

// linesLimit is what they may take there; beyond it the tails of the predecessors' output are left
// out.
const linesLimit = 700 << 10

// Keeper writes down who takes whose place.
type Keeper struct {
	Client client.Client
	// Reader reads past the cache: ConfigMaps are not cached.
	Reader client.Reader
}

// Run is a trial, as observed, and who has its pods' names. Lines, Terminating and Refused are nil
// unless it has been released and its faults replace pods.
type Run struct {
	Trial       *v1alpha1.Trial
	System      *v1alpha1.SystemSpec
	Layout      *placement.Layout
	Names       []string                      // of the pods that take part
	Pods        map[string]*corev1.Pod        // by name; those that have no place in the trial are taken out
	Reports     func(string) *protocol.Report // what the agent of a pod said last, or nil
	Occurrences []*fault.Occurrence           // of faults that Chaos Mesh carries out
	Now         time.Time
	Memory      *Memory

	Lines       map[string][]validity.Incarnation // who has had a pod's name
	Terminating map[string]bool                   // replicas whose pod goes or is gone, as planned, and whose successor is not there
	Refused     map[string]string                 // why a pod has no place in the trial
}

// Memory is what is kept of one trial from one reconcile to the next. All of it can be made again.
type Memory struct {
	lines map[string][]validity.Incarnation
}

func (r *Run) zero() time.Time { return time.Unix(0, r.Trial.Status.ZeroUnixNanos) }

// upheavals are the times of faults, of those that is holds for, that replace the pod or restart
// its containers.
func (r *Run) upheavals(pod string, is func(*fault.Occurrence) bool) []*fault.Occurrence {
	var found []*fault.Occurrence
	for _, t := range r.Occurrences {
		if (t.Replaces() || t.Restarts()) && is(t) && slices.Contains(t.Pods, pod) {
			found = append(found, t)
		}
	}
	return found
}

// sinceZero is now, relative to t = 0, and never 0.
func (r *Run) sinceZero() time.Duration {
	if d := time.Duration(r.Now.UnixNano() - r.Trial.Status.ZeroUnixNanos); d != 0 {
		return d
	}
	return 1
}

// replacementsDue counts how often the pod may have been replaced by now.
func (r *Run) replacementsDue(pod string) int {
	n := 0
	for _, t := range r.upheavals(pod, (*fault.Occurrence).Replaces) {
		if t.From <= r.sinceZero() {
			n++
		}
	}
	return n
}

// Replaced reports whether the pod of this name is another one than at t = 0.
func (r *Run) Replaced(pod string) bool { return len(r.Lines[pod]) > 1 }

// AgentRestarts reports whether the agent of the pod does not live through the run, as planned by a
// fault of Chaos Mesh: what it alone knew is lost.
func (r *Run) AgentRestarts(pod string) bool {
	return len(r.upheavals(pod, func(t *fault.Occurrence) bool { return t.Replaces() || t.RestartsAgent() })) > 0
}

// Restarts reports the same of the agent or any container of the pod.
func (r *Run) Restarts(pod string) bool {
	return len(r.upheavals(pod, func(*fault.Occurrence) bool { return true })) > 0
}

// judged reports whether the outcome of the trial is known.
func (r *Run) judged() bool {
	c := meta.FindStatusCondition(r.Trial.Status.Conditions, v1alpha1.TrialValid)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// Succeed finds out which pods of a run have been replaced, and takes those out of the scope that
// have no place in it. It is done before the coordinator is told of the pods.
func (k Keeper) Succeed(ctx context.Context, r *Run) error {
	if r.Trial.Status.ZeroUnixNanos == 0 || !fault.ReplacesPods(r.Trial.Spec.Faults) {
		return nil
	}
	kept, err := k.linesOf(ctx, r)
	if apierrors.IsNotFound(err) && r.judged() {
		return nil // they are deleted with all that the trial made
	}
	if err != nil {
		return err
	}
	r.Lines, r.Terminating, r.Refused = kept, map[string]bool{}, map[string]string{}
	if r.judged() {
		r.endLines()
		return nil
	}
	changed := false
	for _, name := range r.Names {
		if len(r.Lines[name]) == 0 {
			return fmt.Errorf("the pods that the trial was released with do not include %s", name)
		}
		here, err := k.succeedOne(ctx, r, name)
		if err != nil {
			return err
		}
		changed = changed || here
	}
	if !changed {
		return nil
	}
	return k.keepLines(ctx, r)
}

// endLines takes those pods out of the scope that came when the outcome was known already: nobody
// takes a place any more.
func (r *Run) endLines() {
	for name, p := range r.Pods {
		if line := r.Lines[name]; len(line) > 0 && line[len(line)-1].UID != p.UID {
			delete(r.Pods, name)
		}
	}
}

// succeedOne brings the line of one pod up to date, and says whether it changed.
func (k Keeper) succeedOne(ctx context.Context, r *Run, name string) (changed bool, err error) {
	line, p, due := r.Lines[name], r.Pods[name], r.replacementsDue(name)
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
			r.Refused[name] = tooMany(name, len(line)-1, len(r.upheavals(name, (*fault.Occurrence).Replaces)))
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
	why, err := k.stranger(ctx, r, p)
	if err != nil {
		return changed, err
	}
	if why != "" {
		delete(r.Pods, name)
		r.Refused[name] = fmt.Sprintf("Another pod has the name of %s, which a fault has deleted, but it does not take its place: %s.", name, why)
		return changed, nil
	}
	r.Terminating[name] = !p.DeletionTimestamp.IsZero()
	r.Lines[name] = append(line, validity.Incarnation{UID: p.UID, CreatedAt: r.sinceZero()})
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

// stranger says why a pod is none that the trial's StatefulSets make, or nothing.
func (k Keeper) stranger(ctx context.Context, r *Run, p *corev1.Pod) (string, error) {
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "StatefulSet" {
		return "no StatefulSet has made it", nil
	}
	set := &appsv1.StatefulSet{}
	if err := k.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: owner.Name}, set); err != nil {
		if apierrors.IsNotFound(err) {
			return "its StatefulSet is not there", nil
		}
		return "", fmt.Errorf("read StatefulSet %s: %w", owner.Name, err)
	}
	if set.UID != owner.UID || !metav1.IsControlledBy(set, r.Trial) {
		return "its StatefulSet is none of the trial", nil
	}
	return "", nil
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

// firstLines are the lines of the pods that a run is released with.
func (r *Run) firstLines() map[string][]validity.Incarnation {
	lines := map[string][]validity.Incarnation{}
	for _, name := range r.Names {
		if p := r.Pods[name]; p != nil {
			lines[name] = []validity.Incarnation{{UID: p.UID, Node: p.Spec.NodeName}}
		}
	}
	return lines
}

// encodeLines leaves out the tails of what predecessors printed where they would take too much.
func encodeLines(lines map[string][]validity.Incarnation) (string, error) {
	content, err := json.Marshal(lines)
	if err == nil && len(content) > linesLimit {
		for _, line := range lines {
			for _, m := range line {
				if m.Last == nil {
					continue
				}
				for i := range m.Last.Containers {
					m.Last.Containers[i].Tail = ""
				}
			}
		}
		content, err = json.Marshal(lines)
	}
	if err != nil {
		return "", fmt.Errorf("encode who has replaced whom: %w", err)
	}
	return string(content), nil
}

// linesOf returns the lines as they were written last, to be changed.
func (k Keeper) linesOf(ctx context.Context, r *Run) (map[string][]validity.Incarnation, error) {
	lines := r.Memory.lines
	if lines == nil {
		kept, err := k.keptAddresses(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(kept.Data[linesKey]), &lines); err != nil {
			return nil, fmt.Errorf("read who has replaced whom: %w", err)
		}
		r.Memory.lines = lines
	}
	own := maps.Clone(lines)
	for name, line := range own {
		own[name] = slices.Clone(line)
	}
	return own, nil
}

// keepLines writes the lines down. Another manager's write in between is an error, and all is
// looked at again.
func (k Keeper) keepLines(ctx context.Context, r *Run) error {
	r.Memory.lines = nil
	kept, err := k.keptAddresses(ctx, r)
	if err != nil {
		return err
	}
	if kept.Data[linesKey], err = encodeLines(r.Lines); err != nil {
		return err
	}
	if err := k.Client.Update(ctx, kept); err != nil {
		return fmt.Errorf("write down who has replaced whom: %w", err)
	}
	r.Memory.lines = r.Lines
	return nil
}

// keptAddresses is the ConfigMap that holds what the trial was released with.
func (k Keeper) keptAddresses(ctx context.Context, r *Run) (*corev1.ConfigMap, error) {
	kept := &corev1.ConfigMap{}
	if err := k.Reader.Get(ctx, client.ObjectKey{Namespace: r.Trial.Namespace, Name: r.Layout.AddressesConfigMap()}, kept); err != nil {
		return nil, fmt.Errorf("read the addresses that the trial was released with: %w", err)
	}
	return kept, nil
}
