package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/measured"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/results"
)

const (
	// measurePoll is how often to look for Prometheus' answer.
	measurePoll = 250 * time.Millisecond
	// ScrapedTimeout is how long Prometheus may take to begin to scrape the pods. It hears of the
	// first PodMonitor of an experiment after up to four and a half minutes: see
	// monitoring.PodMonitor.
	ScrapedTimeout = 5 * time.Minute
)

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

// measure waits for what Prometheus has to say of the window. It is asked again by a manager that
// takes over.
type measure struct {
	prometheus func() Prometheus
	clock      Clock
}

func (*measure) condition() string { return v1alpha1.TrialMeasured }

func (p *measure) run(_ context.Context, s *scope) Result {
	asked := queries(&s.trial.Spec)
	if len(asked) == 0 || s.isTrue(v1alpha1.TrialCollected) {
		return Skip()
	}
	if s.answered = p.ask(s, asked); s.answered == nil {
		return Wait(v1alpha1.ReasonAskingPrometheus, "Prometheus is asked for %d measurements.", len(asked)).Within(measurePoll)
	}
	return Skip()
}

// queries are the measurements of a trial that Prometheus answers.
func queries(spec *v1alpha1.TrialSpec) []v1alpha1.Measurement {
	return slices.DeleteFunc(slices.Clone(spec.Measurements), func(m v1alpha1.Measurement) bool { return m.Query == "" })
}

// measurements puts answers of Prometheus, counters of clients and uses of pods into the order of
// the spec.
func (s *scope) measurements(t *results.Trial) []results.Measurement {
	answers := s.answered
	var all []results.Measurement
	for _, m := range s.trial.Spec.Measurements {
		if read, of := measured.Column(m).Read(t); of {
			all = append(all, read)
			continue
		}
		if len(answers) > 0 {
			all, answers = append(all, answers[0]), answers[1:]
		}
	}
	return all
}

func (p *measure) ask(s *scope, asked []v1alpha1.Measurement) []results.Measurement {
	spec := &s.trial.Spec
	prometheus := p.prometheus()
	if prometheus == nil {
		return monitoring.Unanswered(asked, "the manager knows no Prometheus to ask")
	}
	answer, done := prometheus.Ask(s.trial.UID, func() monitoring.Request {
		zero := s.agreedZero()
		return monitoring.Request{
			Measurements: asked, Values: monitoring.ValuesOf(s.key.Namespace, s.key.Name, spec),
			Window: monitoring.Window{From: zero, To: zero.Add(spec.Schedule.Measure.OrZero())},
			Asked:  p.clock.Now(), Interval: monitoring.ScrapeInterval(s.system),
		}
	})
	if !done {
		return nil
	}
	return answer
}

// measured tells in a condition what became of the measurements.
func tellMeasured(r Result, all []results.Measurement) Result {
	if len(all) == 0 {
		return r
	}
	var lacks []string
	for _, m := range all {
		if m.Value == nil {
			lacks = append(lacks, m.Name+": "+m.Reason)
		}
	}
	if len(lacks) > 0 {
		return r.With(v1alpha1.TrialMeasured, metav1.ConditionFalse, v1alpha1.ReasonNotMeasured, "Not measured: %s.", strings.Join(lacks, "; "))
	}
	return r.With(v1alpha1.TrialMeasured, metav1.ConditionTrue, v1alpha1.ReasonMeasured, "There are %d measurements.", len(all))
}
