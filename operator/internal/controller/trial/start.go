package trial

import (
	"context"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/startup"
	"assay.dev/assay/operator/internal/validity"
)

// start starts the components and the replicas, in their order, and waits until all are ready.
func (r *Reconciler) start(_ context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialStarted) {
		return true, 0, nil
	}
	if s.refuted(validity.BeforeStart) {
		return false, 0, nil
	}
	order := startup.OrderOf(s.system, s.layout.GroupPods)
	started, waiting := order.Started(s.report)
	r.direct(s, stage{started: started, load: s.loadsEarly()})
	if waiting != "" {
		return s.wait(v1alpha1.TrialStarted, v1alpha1.ReasonReplicasStarting, waiting, s.trial.Status.Times.Proven, order.Limit())
	}
	s.done(v1alpha1.TrialStarted, v1alpha1.ReasonReady, "Every replica and component is ready.", &s.trial.Status.Times.Started)
	return true, 0, nil
}

// load runs the System's steps in order; each begins when the one before is done in every pod.
// Loaded is the trial when also Prometheus scrapes its pods, if it is to be asked about them: what
// comes next has its deadline from then on.
func (r *Reconciler) load(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialLoaded) {
		return true, 0, nil
	}
	if s.refuted(validity.Deployed) {
		return false, 0, nil
	}
	for i, step := range s.system.Steps {
		r.direct(s, stage{started: all(s.serverNames()), steps: i + 1})
		waiting, failed := startup.Step(step, s.running(step), s.report)
		if failed != "" {
			s.giveUp(v1alpha1.ReasonStepFailed, "%s", failed)
			return false, 0, nil
		}
		if waiting != "" {
			return s.wait(v1alpha1.TrialLoaded, v1alpha1.ReasonStepsRunning, waiting, s.trial.Status.Times.Started, startup.StepsLimit(s.system.Steps[:i+1]))
		}
	}
	if scraped, after, err := r.scraped(ctx, s); err != nil || !scraped {
		return false, after, err
	}
	s.done(v1alpha1.TrialLoaded, v1alpha1.ReasonReady, "Every step is done.", &s.trial.Status.Times.Loaded)
	return true, 0, nil
}

// running are the pods that run a step.
func (s *scope) running(step v1alpha1.Step) []string {
	return slices.DeleteFunc(s.everyName(), func(name string) bool {
		_, here := s.rendered.pods[name].Steps[step.Name]
		return !here
	})
}
