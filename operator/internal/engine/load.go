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

// ScrapedTimeout is how long Prometheus may take to begin to scrape the pods. It may take four and
// a half minutes to notice the first PodMonitor of an experiment: see monitoring.PodMonitor.
const ScrapedTimeout = 5 * time.Minute

// load runs the System's steps in order. Each begins when the step before it is done in every pod.
// If Prometheus is to answer measurements, the trial is Loaded only when Prometheus scrapes its
// pods: the deadlines of the next phases count from then.
type load struct {
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
	begun, r := p.runSteps(s)
	if r.state == done {
		r = p.loaded(s)
	}
	if begun == 0 {
		return r
	}
	return r.Directing(stage{started: all(s.serverNames()), steps: begun})
}

// runSteps waits until every step is done, and counts the steps that may run.
func (p *load) runSteps(s *scope) (begun int, r Result) {
	for i, step := range s.system.Steps {
		waiting, failed := startup.Step(step, p.running(s, step), s.report)
		if failed != "" {
			return i + 1, Fail(v1alpha1.ReasonStepFailed, "%s", failed)
		}
		if waiting != "" {
			return i + 1, Wait(v1alpha1.ReasonStepsRunning, "%s", waiting).Until(s.trial.Status.Times.Started, startup.StepsLimit(s.system.Steps[:i+1]))
		}
	}
	return len(s.system.Steps), Skip()
}

// loaded is the result once every step is done.
func (p *load) loaded(s *scope) Result {
	scraped := p.scraped(s)
	if scraped.state != done || scraped.err != nil {
		return scraped
	}
	r := Done(v1alpha1.ReasonReady, "Every step is done.", &s.trial.Status.Times.Loaded)
	r.also = scraped.also
	return r
}

// running returns the pods that run a step.
func (p *load) running(s *scope, step v1alpha1.Step) []string {
	return slices.DeleteFunc(s.everyName(), func(name string) bool {
		_, here := s.rendered.pods[name].Steps[step.Name]
		return !here
	})
}

// scraped waits until Prometheus scrapes the pods, if it is to answer measurements. If it does not
// scrape them in time, the trial goes on, and the measurements will have no numbers.
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
