// Package gauges shows a monitoring system whether experiments make progress: trials that wait or
// run late, and results that are not in their store. It reads the manager's cache when it is asked,
// and changes nothing. The controllers themselves count events as they happen, such as trials that
// are done.
package gauges

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
)

var (
	trialsDesc = prometheus.NewDesc("assay_trials", "Trials that are not over: queued, or running.", []string{"state"}, nil)
	// The schedule is known in advance, and the rest of a trial's time is overhead. This number
	// therefore does not depend on the trial's length.
	overdueDesc = prometheus.NewDesc("assay_trial_overdue_seconds",
		"Time since admission less the schedule (warm-up to drain), of the running trial that has most of it; 0 without one. Some 15 s are usual.", nil, nil)
	unstoredDesc = prometheus.NewDesc("assay_experiments_results_unstored",
		"Experiments with results that are not where they belong yet; their condition ResultsStored says why.", nil, nil)
)

// scrapeTimeout bounds the reading of the cache. Once filled, the cache does not wait for anything.
const scrapeTimeout = 5 * time.Second

// Collector collects the gauges. A manager that does not lead has none: its cache is empty, and
// reading would fill it.
type Collector struct {
	Reader  client.Reader
	Clock   clock.PassiveClock
	Leading func() bool
	// Context ends with the manager.
	Context context.Context
}

// Describe names the gauges.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect computes the gauges.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if !c.Leading() {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context, scrapeTimeout)
	defer cancel()
	trials := &v1alpha1.TrialList{}
	// Nothing changes the trials, so the cache's own objects can be used.
	if err := c.Reader.List(ctx, trials, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(trialsDesc, err)
		return
	}
	queued, running, overdue := progress(trials.Items, c.Clock.Now())
	experiments := &v1alpha1.ExperimentList{}
	if err := c.Reader.List(ctx, experiments, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(unstoredDesc, err)
		return
	}
	ch <- prometheus.MustNewConstMetric(trialsDesc, prometheus.GaugeValue, float64(queued), "queued")
	ch <- prometheus.MustNewConstMetric(trialsDesc, prometheus.GaugeValue, float64(running), "running")
	ch <- prometheus.MustNewConstMetric(overdueDesc, prometheus.GaugeValue, overdue.Seconds())
	ch <- prometheus.MustNewConstMetric(unstoredDesc, prometheus.GaugeValue, float64(unstored(experiments.Items)))
}

func progress(trials []v1alpha1.Trial, now time.Time) (queued, running int, overdue time.Duration) {
	for i := range trials {
		t := &trials[i]
		switch {
		case meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete):
		case !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialAdmitted) || t.Status.Times.Admitted == nil:
			queued++
		default:
			running++
			w := timeline.FromSchedule(t.Spec.Schedule)
			overdue = max(overdue, now.Sub(t.Status.Times.Admitted.Time)-w.WarmUp-w.End())
		}
	}
	return queued, running, overdue
}

func unstored(experiments []v1alpha1.Experiment) int {
	n := 0
	for i := range experiments {
		if meta.IsStatusConditionFalse(experiments[i].Status.Conditions, v1alpha1.ExperimentResultsStored) {
			n++
		}
	}
	return n
}
