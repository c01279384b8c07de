package engine

import (
	"context"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// faults gives a trial up before its objects are made, if the trial has a fault that neither an
// agent nor the injector can carry out.
type faults struct{ injector Injector }

func (*faults) condition() string { return v1alpha1.TrialDeployed }

func (p *faults) run(ctx context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialDeployed) {
		return Skip()
	}
	return p.ready(ctx, s)
}

// ready checks it. It is called again right before t = 0 is agreed.
func (p *faults) ready(ctx context.Context, s *scope) Result {
	if p.injector == nil {
		if kinds := chaosmesh.Kinds(s.trial.Spec.Faults); len(kinds) > 0 {
			return Fail(v1alpha1.ReasonChaosMeshMissing, "A fault needs Chaos Mesh, which is not here.")
		}
		return Skip()
	}
	why, err := p.injector.Refusal(ctx, s.trial)
	switch {
	case err != nil:
		return Retry(err)
	case why != "":
		return Fail(v1alpha1.ReasonChaosMeshMissing, "%s", why)
	}
	return Skip()
}

// clear begins to undo the faults of the injector.
func (p *faults) clear(ctx context.Context, s *scope) error {
	if p.injector == nil {
		return nil
	}
	return p.injector.Clear(ctx, s.trial)
}

// plannedRestarts returns how often containers of a pod may have restarted until now. Each reset of
// the node restarts each container once. Other faults add their own restarts.
func (s *scope) plannedRestarts(pod string) int32 {
	p := s.pods[pod]
	if p == nil || s.trial.Status.ZeroUnixNanos == 0 {
		return 0
	}
	past := s.resets().Past(p.Spec.NodeName, s.now.Sub(s.zero()))
	return int32(past*(len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses))) + s.history.PlannedRestarts(p, pod)
}

// agentInterrupted reports whether a planned fault ends the agent of the pod during the run. The
// agent's own data is then lost.
func (s *scope) agentInterrupted(pod string) bool {
	return s.onResetNode(pod) || s.history.AgentRestarts(pod)
}

// interrupted reports whether a planned fault ends the agent or a container of the pod during the
// run. The use of such a pod is not known for all of the window.
func (s *scope) interrupted(pod string) bool {
	return s.onResetNode(pod) || s.history.Restarts(pod)
}

// recordOf returns the record of an action. The agent of the node reports a reset, and the manager
// sees what Chaos Mesh does. The agent of the pod reports all other actions.
func (s *scope) recordOf(a timeline.Action) *protocol.ActionRecord {
	if a.Kind.ByChaosMesh() {
		return s.injection.Record(a)
	}
	if p := s.pods[a.Pod]; a.Kind.By() == timeline.MachineAgent && p != nil {
		return s.report(render.MachineAgent(p.Spec.NodeName)).Action(a.ID)
	}
	return s.report(a.Pod).Action(a.ID)
}
