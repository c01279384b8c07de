package trial

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/monitoring"
	"assay.dev/assay/operator/internal/results"
)

// Prometheus is what the controller needs of package monitoring.
type Prometheus interface {
	// HasPodMonitors reports whether experiments are to have PodMonitors.
	HasPodMonitors() (bool, error)
	// PodMonitorLabels are those by which the installed Prometheus selects them.
	PodMonitorLabels() map[string]string
	// Scraped says whether Prometheus scrapes all pods of a trial, once that is known.
	Scraped(trial types.UID, pods func() monitoring.Pods) (all, known bool)
	// Ask begins to answer a trial's request, once, and returns the answer when it is there.
	Ask(trial types.UID, request func() monitoring.Request) (answer []results.Measurement, done bool)
	// Forget what was asked for a trial.
	Forget(trial types.UID)
}

// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=get;create;delete

const (
	// measurePoll is how often to look for Prometheus' answer.
	measurePoll = 250 * time.Millisecond
	// scrapedTimeout is how long Prometheus may take to begin to scrape the pods. Of the first
	// PodMonitor of an experiment it hears after up to four and a half minutes: see
	// monitoring.PodMonitor.
	scrapedTimeout = 5 * time.Minute
)

// monitor has the pods of the experiment's trials scraped, where that is possible.
func (r *Reconciler) monitor(ctx context.Context, s *scope) error {
	if r.Prometheus == nil {
		return nil
	}
	pm := monitoring.PodMonitor(s.key.Namespace, &s.trial.Spec, s.system, r.Prometheus.PodMonitorLabels())
	if pm == nil {
		return nil
	}
	if has, err := r.Prometheus.HasPodMonitors(); err != nil || !has {
		return err
	}
	return r.objects().Monitor(ctx, s.trial, pm)
}

// scraped waits until Prometheus scrapes the pods, if it is to be asked about them. When it does
// not come to that, the trial goes on: the measurements will say that there is no number.
func (r *Reconciler) scraped(_ context.Context, s *scope) (bool, time.Duration, error) {
	if len(queries(&s.trial.Spec)) == 0 || r.Prometheus == nil {
		return true, 0, nil
	}
	count := monitoring.ScrapedPods(s.system, s.layout)
	if has, err := r.Prometheus.HasPodMonitors(); err != nil || !has || count == 0 {
		return true, 0, err
	}
	all, known := r.Prometheus.Scraped(s.trial.UID, func() monitoring.Pods {
		return monitoring.Pods{Namespace: s.key.Namespace, Trial: s.key.Name, Count: count, Until: r.Clock.Now().Add(scrapedTimeout)}
	})
	if !known {
		s.set(v1alpha1.TrialMeasured, metav1.ConditionFalse, v1alpha1.ReasonAskingPrometheus,
			"Waiting until Prometheus scrapes the %d pods; of a new PodMonitor it may hear after some minutes.", count)
		return false, measurePoll, nil
	}
	if !all {
		s.set(v1alpha1.TrialMeasured, metav1.ConditionFalse, v1alpha1.ReasonAskingPrometheus,
			"Prometheus did not scrape the %d pods within %v; the trial goes on without.", count, scrapedTimeout)
	}
	return true, 0, nil
}

// measure waits for what Prometheus has to say of the window. It is asked again by a manager that
// takes over.
func (r *Reconciler) measure(_ context.Context, s *scope) (bool, time.Duration, error) {
	asked := queries(&s.trial.Spec)
	if len(asked) == 0 || isTrue(s.trial, v1alpha1.TrialCollected) {
		return true, 0, nil
	}
	if s.answered = r.askPrometheus(s, asked); s.answered == nil {
		s.set(v1alpha1.TrialMeasured, metav1.ConditionFalse, v1alpha1.ReasonAskingPrometheus, "Prometheus is asked for %d measurements.", len(asked))
		return false, measurePoll, nil
	}
	return true, 0, nil
}

// queries are the measurements of a trial that Prometheus answers.
func queries(spec *v1alpha1.TrialSpec) []v1alpha1.Measurement {
	return slices.DeleteFunc(slices.Clone(spec.Measurements), func(m v1alpha1.Measurement) bool { return m.Counter != "" })
}

// measurements puts what Prometheus answered and what the clients counted into the order of the
// spec.
func (s *scope) measurements(driver map[string]float64) []results.Measurement {
	answers := s.answered
	var all []results.Measurement
	for _, m := range s.trial.Spec.Measurements {
		if m.Counter != "" {
			all = append(all, results.Counted(m.Name, m.Counter, m.Per, driver))
			continue
		}
		if len(answers) > 0 {
			all, answers = append(all, answers[0]), answers[1:]
		}
	}
	return all
}

func (r *Reconciler) askPrometheus(s *scope, asked []v1alpha1.Measurement) []results.Measurement {
	spec := &s.trial.Spec
	if r.Prometheus == nil {
		return monitoring.Unanswered(asked, "the manager knows no Prometheus to ask")
	}
	answer, done := r.Prometheus.Ask(s.trial.UID, func() monitoring.Request {
		zero := s.zero()
		return monitoring.Request{
			Measurements: asked, Values: monitoring.ValuesOf(s.key.Namespace, s.key.Name, spec),
			Window: monitoring.Window{From: zero, To: zero.Add(spec.Schedule.Measure.OrZero())},
			Asked:  r.Clock.Now(), Interval: monitoring.ScrapeInterval(s.system),
		}
	})
	if !done {
		return nil
	}
	return answer
}

// showMeasured tells in a condition what became of the measurements.
func (s *scope) showMeasured(measured []results.Measurement) {
	if len(measured) == 0 {
		return
	}
	var lacks []string
	for _, m := range measured {
		if m.Value == nil {
			lacks = append(lacks, m.Name+": "+m.Reason)
		}
	}
	if len(lacks) > 0 {
		s.set(v1alpha1.TrialMeasured, metav1.ConditionFalse, v1alpha1.ReasonNotMeasured, "Not measured: %s.", strings.Join(lacks, "; "))
		return
	}
	s.set(v1alpha1.TrialMeasured, metav1.ConditionTrue, v1alpha1.ReasonMeasured, "There are %d measurements.", len(measured))
}
