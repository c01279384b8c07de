package trial

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/succession"
	"assay.dev/assay/operator/internal/render"
)

// succession keeps who has which pod's name in a run.
func (r *Reconciler) succession() succession.Keeper {
	return succession.Keeper{Client: r.Client, Reader: r.Reader}
}

// lineOf is the trial as package succession sees it, before it has looked who has been replaced.
func (r *Reconciler) lineOf(s *scope) *succession.Run {
	l := &succession.Run{
		Trial: s.trial, System: s.system, Layout: s.layout, Names: s.everyName(), Pods: s.pods, Reports: s.report, Occurrences: s.chaos.Occurrences, Now: s.now,
	}
	r.remember(s.trial, func(m *memo) { l.Memory = &m.line })
	return l
}

// agentInterrupted reports whether the agent of the pod does not live through the run, as planned:
// what it alone knew is lost.
func (s *scope) agentInterrupted(pod string) bool {
	return s.onResetMachine(pod) || s.line.AgentRestarts(pod)
}

// interrupted reports whether the agent or a container of the pod does not live through the run, as
// planned: what the pod used is not known for all of the window.
func (s *scope) interrupted(pod string) bool {
	return s.onResetMachine(pod) || s.line.Restarts(pod)
}

// renderSuccessors renders the pods that have replaced others. Of each only its own address is new:
// in all others' files, and in its own, the other pods have those that they had at t = 0, so that
// no file of a pod that lives on changes.
func (r *Reconciler) renderSuccessors(ctx context.Context, s *scope) error {
	s.successors = map[string]*render.Pod{}
	for _, name := range s.everyName() {
		p := s.pods[name]
		if !s.line.Replaced(name) || p == nil || p.Status.PodIP == "" {
			continue
		}
		uid := p.UID
		r.remember(s.trial, func(m *memo) { s.successors[name] = m.successors[uid] })
		if s.successors[name] != nil {
			continue
		}
		addresses, err := r.succession().Addresses(ctx, s.line)
		if err != nil {
			return err
		}
		addresses[name] = p.Status.PodIP
		resolved, _ := s.layout.Resolve(addresses)
		prepared, _, err := r.preparedFiles(ctx, s)
		if err != nil {
			return err
		}
		all, err := r.renderAll(s, resolved, prepared)
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

// renderedPod is what the pod of this name gets; nil while it is not known, since a successor has
// no address yet.
func (s *scope) renderedPod(name string) *render.Pod {
	if s.line.Replaced(name) {
		return s.successors[name]
	}
	return s.rendered.pods[name]
}
