package engine

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/startup"
	"assay.dev/assay/operator/internal/experiment/monitoring"
)

// ScrapedTimeout is how long Prometheus may take to begin to scrape the pods. It hears of the first
// PodMonitor of an experiment after up to four and a half minutes: see monitoring.PodMonitor.
const ScrapedTimeout = 5 * time.Minute

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

// scraped waits until Prometheus scrapes the pods, if it is to be asked about them. When it does
// not come to that, the trial goes on: the measurements will say that there is no number.
func (p *load) scraped(s *scope) Result {
	prometheus := p.prometheus()
	if len(queries(&s.trial.Spec)) == 0 || prometheus == nil {
		return Skip()
	}
	count := monitoring.ScrapedPods(s.system, s.layout)
	switch has, err := prometheus.HasPodMonitors(); {
	case err != nil:
		return Retry(err)
	case !has || count == 0:
		return Skip()
	}
	all, known := prometheus.Scraped(s.trial.UID, func() monitoring.Pods {
		return monitoring.Pods{Namespace: s.key.Namespace, Trial: s.key.Name, Count: count, Until: p.clock.Now().Add(ScrapedTimeout)}
	})
	if !known {
		return Wait(v1alpha1.ReasonAskingPrometheus, "Waiting until Prometheus scrapes the %d pods; of a new PodMonitor it may hear after some minutes.", count).
			On(v1alpha1.TrialMeasured).Within(measurePoll)
	}
	if !all {
		return Skip().With(v1alpha1.TrialMeasured, metav1.ConditionFalse, v1alpha1.ReasonAskingPrometheus,
			"Prometheus did not scrape the %d pods within %v; the trial goes on without.", count, ScrapedTimeout)
	}
	return Skip()
}
