package trial

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/chaosmesh"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/run"
)

// A fault of Chaos Mesh may replace a replica's pod in the middle of a run: the pod is deleted, and its StatefulSet makes another of the same name, with another UID and
// another address. Such a pod takes its predecessor's place; any other pod that comes or goes ends the trial.
//
//	pod of line[n] runs ─(a replacement is due, pod deleted)─▶ leaving ─(another pod of the name, of the trial's StatefulSet)─▶ line[n+1] runs
//
// Who has had each name since t = 0 was agreed is kept in the trial's addresses ConfigMap, written before the coordinator is told of a new pod, so that no manager
// accepts one pod more than is planned. With it is what each predecessor's agent said last: the coordinator forgets that with the pod.

// linesKey of a trial's addresses ConfigMap holds, as JSON, the line of each pod.
const linesKey = "pods.json"

// linesLimit is what they may take there; beyond it the tails of the predecessors' output are left out.
const linesLimit = 700 << 10

// exchangesPods reports whether a trial's faults replace pods.
func exchangesPods(spec *v1alpha1.TrialSpec) bool {
	return slices.ContainsFunc(spec.Faults, func(f v1alpha1.Fault) bool { return chaosmesh.Replaces(&f) })
}

// movesPods reports whether pods may have other addresses in the run than those that the trial was rendered with.
func movesPods(spec *v1alpha1.TrialSpec) bool { return resetsMachines(spec) || exchangesPods(spec) }

// upheavals are the times of faults, of those that is holds for, that replace the pod or restart its containers.
func (s *scope) upheavals(pod string, is func(*v1alpha1.Fault) bool) []*chaosTime {
	var found []*chaosTime
	for _, t := range s.times {
		if (chaosmesh.Replaces(t.fault) || chaosmesh.Restarts(t.fault)) && is(t.fault) && slices.Contains(t.pods, pod) {
			found = append(found, t)
		}
	}
	return found
}

// sinceZero is now, relative to t = 0, and never 0.
func (s *scope) sinceZero() time.Duration {
	if d := time.Duration(s.now.UnixNano() - s.trial.Status.ZeroUnixNanos); d != 0 {
		return d
	}
	return 1
}

// replacementsDue counts how often the pod may have been replaced by now.
func (s *scope) replacementsDue(pod string) int {
	n := 0
	for _, t := range s.upheavals(pod, chaosmesh.Replaces) {
		if t.from <= s.sinceZero() {
			n++
		}
	}
	return n
}

// replaced reports whether the pod of this name is another one than at t = 0.
func (s *scope) replaced(pod string) bool { return len(s.lines[pod]) > 1 }

// agentInterrupted reports whether the agent of the pod does not live through the run, as planned: what it alone knew is lost.
func (s *scope) agentInterrupted(pod string) bool {
	return s.onResetMachine(pod) || len(s.upheavals(pod, func(f *v1alpha1.Fault) bool { return chaosmesh.Replaces(f) || chaosmesh.RestartsAgent(f) })) > 0
}

// interrupted reports whether the agent or a container of the pod does not live through the run, as planned: what the pod used is not known for all of the window.
func (s *scope) interrupted(pod string) bool {
	return s.onResetMachine(pod) || len(s.upheavals(pod, func(*v1alpha1.Fault) bool { return true })) > 0
}

// succeed finds out which pods of a run have been replaced, and takes those out of the scope that have no place in it. It is done before the coordinator is told of the pods.
func (r *Reconciler) succeed(ctx context.Context, s *scope) error {
	if s.trial.Status.ZeroUnixNanos == 0 || !exchangesPods(&s.trial.Spec) {
		return nil
	}
	kept, err := r.linesOf(ctx, s)
	if apierrors.IsNotFound(err) && s.outcomeKnown() {
		return nil // they are deleted with all that the trial made
	}
	if err != nil {
		return err
	}
	s.lines, s.leaving, s.refused = kept, map[string]bool{}, map[string]string{}
	if s.outcomeKnown() {
		s.endLines()
		return nil
	}
	changed := false
	for _, name := range s.everyName() {
		if len(s.lines[name]) == 0 {
			return fmt.Errorf("the pods that the trial was released with do not include %s", name)
		}
		here, err := r.succeedOne(ctx, s, name)
		if err != nil {
			return err
		}
		changed = changed || here
	}
	if !changed {
		return nil
	}
	return r.keepLines(ctx, s)
}

// endLines takes those pods out of the scope that came when the outcome was known already: nobody takes a place any more.
func (s *scope) endLines() {
	for name, p := range s.pods {
		if line := s.lines[name]; len(line) > 0 && line[len(line)-1].UID != p.UID {
			delete(s.pods, name)
		}
	}
}

// succeedOne brings the line of one pod up to date, and says whether it changed.
func (r *Reconciler) succeedOne(ctx context.Context, s *scope, name string) (changed bool, err error) {
	line, p, due := s.lines[name], s.pods[name], s.replacementsDue(name)
	current := &line[len(line)-1]
	if p != nil && p.UID == current.UID {
		s.leaving[name] = !p.DeletionTimestamp.IsZero() && len(line)-1 < due
		if rep := s.report(name); len(line) > 1 && current.Ready == 0 && rep != nil && rep.Ready {
			current.Ready, current.Node, changed = s.sinceZero(), p.Spec.NodeName, true
		}
		return changed, nil
	}
	if len(line)-1 >= due {
		if p != nil {
			delete(s.pods, name)
			s.refused[name] = tooMany(name, len(line)-1, len(s.upheavals(name, chaosmesh.Replaces)))
		}
		return false, nil // a pod that is just gone ends the run
	}
	if current.Gone == 0 {
		current.Gone, current.Last, changed = s.sinceZero(), finalReport(s.report(name)), true
	}
	s.leaving[name] = true
	if p == nil {
		return changed, nil
	}
	why, err := r.stranger(ctx, s, p)
	if err != nil {
		return changed, err
	}
	if why != "" {
		delete(s.pods, name)
		s.refused[name] = fmt.Sprintf("Another pod has the name of %s, which a fault has deleted, but it does not take its place: %s.", name, why)
		return changed, nil
	}
	s.leaving[name] = !p.DeletionTimestamp.IsZero()
	s.lines[name] = append(line, run.Member{UID: p.UID, Came: s.sinceZero()})
	return true, nil
}

// tooMany says why a pod may not take the place of one that has been replaced so often, of so many times that are planned.
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
func (r *Reconciler) stranger(ctx context.Context, s *scope, p *corev1.Pod) (string, error) {
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "StatefulSet" {
		return "no StatefulSet has made it", nil
	}
	set := &appsv1.StatefulSet{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: owner.Name}, set); err != nil {
		if apierrors.IsNotFound(err) {
			return "its StatefulSet is not there", nil
		}
		return "", fmt.Errorf("read StatefulSet %s: %w", owner.Name, err)
	}
	if set.UID != owner.UID || !metav1.IsControlledBy(set, s.trial) {
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
func (s *scope) firstLines() map[string][]run.Member {
	lines := map[string][]run.Member{}
	for _, name := range s.everyName() {
		if p := s.pods[name]; p != nil {
			lines[name] = []run.Member{{UID: p.UID, Node: p.Spec.NodeName}}
		}
	}
	return lines
}

// encodeLines leaves out the tails of what predecessors printed where they would take too much.
func encodeLines(lines map[string][]run.Member) (string, error) {
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
func (r *Reconciler) linesOf(ctx context.Context, s *scope) (map[string][]run.Member, error) {
	var lines map[string][]run.Member
	r.remember(s.trial, func(m *memo) { lines = m.lines })
	if lines == nil {
		kept, err := r.keptAddresses(ctx, s)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(kept.Data[linesKey]), &lines); err != nil {
			return nil, fmt.Errorf("read who has replaced whom: %w", err)
		}
		r.remember(s.trial, func(m *memo) { m.lines = lines })
	}
	own := maps.Clone(lines)
	for name, line := range own {
		own[name] = slices.Clone(line)
	}
	return own, nil
}

// keepLines writes the lines down. Another manager's write in between is an error, and all is looked at again.
func (r *Reconciler) keepLines(ctx context.Context, s *scope) error {
	r.remember(s.trial, func(m *memo) { m.lines = nil })
	kept, err := r.keptAddresses(ctx, s)
	if err != nil {
		return err
	}
	if kept.Data[linesKey], err = encodeLines(s.lines); err != nil {
		return err
	}
	if err := r.Client.Update(ctx, kept); err != nil {
		return fmt.Errorf("write down who has replaced whom: %w", err)
	}
	r.remember(s.trial, func(m *memo) { m.lines = s.lines })
	return nil
}

// keptAddresses is the ConfigMap that holds what the trial was released with.
func (r *Reconciler) keptAddresses(ctx context.Context, s *scope) (*corev1.ConfigMap, error) {
	kept := &corev1.ConfigMap{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: s.layout.AddressesConfigMap()}, kept); err != nil {
		return nil, fmt.Errorf("read the addresses that the trial was released with: %w", err)
	}
	return kept, nil
}

// renderSuccessors renders the pods that have replaced others. Of each only its own address is new: in all others' files, and in its own, the other pods have those that
// they had at t = 0, so that no file of a pod that lives on changes.
func (r *Reconciler) renderSuccessors(ctx context.Context, s *scope) error {
	s.successors = map[string]*render.Pod{}
	for _, name := range s.everyName() {
		p := s.pods[name]
		if !s.replaced(name) || p == nil || p.Status.PodIP == "" {
			continue
		}
		uid := p.UID
		r.remember(s.trial, func(m *memo) { s.successors[name] = m.successors[uid] })
		if s.successors[name] != nil {
			continue
		}
		addresses, err := r.addresses(ctx, s)
		if err != nil {
			return err
		}
		addresses[name] = p.Status.PodIP
		resolved, _ := s.layout.Resolve(addresses)
		prepared, _, err := r.preparedFiles(ctx, s)
		if err != nil {
			return err
		}
		all, err := renderAll(s, resolved, prepared)
		if err != nil {
			s.giveUp(v1alpha1.ReasonRenderFailed, "%s", err)
			return nil
		}
		s.successors[name] = all.pods[name]
		r.remember(s.trial, func(m *memo) {
			if m.successors == nil {
				m.successors = map[types.UID]*render.Pod{}
			}
			m.successors[uid] = all.pods[name]
		})
	}
	return nil
}

// renderedPod is what the pod of this name gets; nil while it is not known, since a successor has no address yet.
func (s *scope) renderedPod(name string) *render.Pod {
	if s.replaced(name) {
		return s.successors[name]
	}
	return s.rendered.pods[name]
}
