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

// measurePoll is how often to look for an answer of Prometheus.
const measurePoll = 250 * time.Millisecond

// measure waits for the measurements of the window by Prometheus. A manager that takes over asks
// Prometheus again.
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

// queries returns the measurements of a trial that Prometheus answers.
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

// tellMeasured writes a condition about the measurements.
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
