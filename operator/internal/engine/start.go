package engine

import (
	"context"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/startup"
)

// start starts the components and the replicas, in their order, and waits until all are ready.
type start struct{}

func (*start) condition() string { return v1alpha1.TrialStarted }

func (p *start) run(_ context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialStarted) {
		return Skip()
	}
	if f := validity.First(validity.BeforeStart, s.observation()); !f.OK() {
		return Fail(f.Reason, "%s", f.Message)
	}
	order := startup.OrderOf(s.system, s.layout.GroupPods)
	started, waiting := order.Started(s.report)
	r := Done(v1alpha1.ReasonReady, "Every replica and component is ready.", &s.trial.Status.Times.Started)
	if waiting != "" {
		r = Wait(v1alpha1.ReasonReplicasStarting, "%s", waiting).Until(s.trial.Status.Times.NetworkVerified, order.Limit())
	}
	return r.Directing(stage{started: started, sampleLoad: loadsEarly(s.system)})
}
