package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/render"
)

// ResettersTimeout is how long the agents that reset nodes may take to start. Their image is on the
// node already, since the other agents use it.
const ResettersTimeout = 2 * time.Minute

// nodes checks that the nodes of the trial's faults may be reset. Then it makes an agent on each of
// them, and waits until the agent is ready.
type nodes struct {
	resetter NodeResetter
}

func (*nodes) condition() string { return v1alpha1.TrialStarted }

func (p *nodes) run(ctx context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialStarted) || !fault.ResetsMachines(s.trial.Spec.Faults) {
		return Skip()
	}
	if f := validity.First(validity.Deployed, s.observation()); !f.OK() {
		return Fail(f.Reason, "%s", f.Message)
	}
	if r := p.refuse(ctx, s); r.state != done || r.err != nil {
		return r
	}
	switch refusal, err := p.resetter.Create(ctx, s.trial, s.resets().Nodes()); {
	case err != nil:
		return Retry(err)
	case refusal != "":
		return Fail(v1alpha1.ReasonMachineRefused, "%s", refusal)
	}
	return p.awaitAgents(s, s.trial.Status.Times.NetworkVerified, ResettersTimeout).Directing(stage{sampleLoad: loadsEarly(s.system)})
}

// ready checks again right before t = 0 is agreed, since other people's pods may have arrived on
// the nodes.
func (p *nodes) ready(ctx context.Context, s *scope) Result {
	if !fault.ResetsMachines(s.trial.Spec.Faults) {
		return Skip()
	}
	if r := p.refuse(ctx, s); r.state != done || r.err != nil {
		return r
	}
	return p.awaitAgents(s, s.trial.Status.Times.Loaded, s.barrierLimit())
}

// refuse gives the trial up if one of the nodes may not be reset.
func (p *nodes) refuse(ctx context.Context, s *scope) Result {
	if p.resetter == nil {
		return Fail(v1alpha1.ReasonMachineRefused, "A fault resets machines, and nothing here can.")
	}
	why, err := p.resetter.Refusal(ctx, s.trial, s.resets())
	switch {
	case err != nil:
		return Retry(err)
	case why != "":
		return Fail(v1alpha1.ReasonMachineRefused, "%s", why)
	}
	return Skip()
}

// awaitAgents waits for the agents that reset nodes.
func (p *nodes) awaitAgents(s *scope, since *metav1.MicroTime, limit time.Duration) Result {
	for _, node := range s.resets().Nodes() {
		rep := s.report(render.MachineAgent(node))
		if rep != nil && rep.Failure != "" {
			return Fail(v1alpha1.ReasonFailed, "The agent that would reset node %s cannot go on: %s", node, rep.Failure)
		}
		if rep == nil || !rep.Ready {
			return Wait(v1alpha1.ReasonMachinesPending, "waiting for %s", p.resetter.Describe(node)).Until(since, limit)
		}
	}
	return Skip()
}
