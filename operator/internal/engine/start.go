package engine

import (
	"context"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/startup"
)

// start starts the components and the replicas, in their order, and waits until all are ready.
type start struct{ director *director }

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
	p.director.direct(s, stage{started: started, load: loadsEarly(s.system)})
	if waiting != "" {
		return Wait(v1alpha1.ReasonReplicasStarting, "%s", waiting).Until(s.trial.Status.Times.NetworkVerified, order.Limit())
	}
	return Done(v1alpha1.ReasonReady, "Every replica and component is ready.", &s.trial.Status.Times.Started)
}

// load runs the System's steps in order; each begins when the one before is done in every pod.
// Loaded is the trial when also Prometheus scrapes its pods, if it is to be asked about them: what
// comes next has its deadline from then on.
type load struct {
	director   *director
	prometheus func() Prometheus
	clock      Clock
}

func (*load) condition() string { return v1alpha1.TrialLoaded }

func (p *load) run(_ context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialLoaded) {
		return Skip()
	}
	if f := validity.First(validity.DuringSteps, s.observation()); !f.OK() {
		return Fail(f.Reason, "%s", f.Message)
	}
	for i, step := range s.system.Steps {
		p.director.direct(s, stage{started: all(s.serverNames()), steps: i + 1})
		waiting, failed := startup.Step(step, p.running(s, step), s.report)
		if failed != "" {
			return Fail(v1alpha1.ReasonStepFailed, "%s", failed)
		}
		if waiting != "" {
			return Wait(v1alpha1.ReasonStepsRunning, "%s", waiting).Until(s.trial.Status.Times.Started, startup.StepsLimit(s.system.Steps[:i+1]))
		}
	}
	scraped := p.scraped(s)
	if scraped.state != done || scraped.err != nil {
		return scraped
	}
	r := Done(v1alpha1.ReasonReady, "Every step is done.", &s.trial.Status.Times.Loaded)
	r.also = scraped.also
	return r
}

// running are the pods that run a step.
func (p *load) running(s *scope, step v1alpha1.Step) []string {
	return slices.DeleteFunc(s.everyName(), func(name string) bool {
		_, here := s.rendered.pods[name].Steps[step.Name]
		return !here
	})
}
