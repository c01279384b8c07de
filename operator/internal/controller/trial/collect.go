package trial

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/storage"
	"assay.dev/assay/operator/internal/engine/safety"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/validity"
)

// collect merges the clients' results, judges the trial and stores the results.
func (r *Reconciler) collect(ctx context.Context, s *scope) (bool, time.Duration, error) {
	r.memory.heavy.Lock()
	defer r.memory.heavy.Unlock()
	clients, reports, err := r.results().OfClients(ctx, s.trial, s.layout)
	if err != nil {
		return s.tryAgain(v1alpha1.ReasonResultsUnreadable, err)
	}
	o := s.measured()
	t := o.Describe()
	merged, err := results.Merge(clients)
	if err != nil {
		s.giveUp(v1alpha1.ReasonResultsUnreadable, "%s", err)
		return false, 0, nil
	}
	t.Summary, t.Timeline, t.Driver, t.MeasureNanos = merged.Summary, &merged.Timeline, merged.Driver, merged.MeasureNanos
	t.MisbehavingDriver = merged.MisbehavingDriver
	where := "in the window"
	if merged.Summary.WholeRun {
		t.Timeline, where = nil, "in the clients' whole run"
	} else if t.Latency, err = merged.Latency.Encode(); err != nil {
		return false, 0, fmt.Errorf("encode the latencies: %w", err)
	}
	t.Recovery = validity.Recoveries(t)
	t.Measurements = s.measurements(results.OwnNumbers(merged.Driver, merged.Summary.Numbers))
	s.showMeasured(t.Measurements)
	if err := validity.SetGeneratorLags(t.Pods, s.layout, clients); err != nil {
		return false, 0, err
	}
	o.Clients, o.Merged, o.Measured, o.Result = clients, merged, t.Measurements, t
	v := validity.Judge(o)
	t.Outcome, t.Reason, t.Message = v1alpha1.ReasonSucceeded, "", ""
	if !v.OK() {
		t.Outcome, t.Reason, t.Message = v1alpha1.ReasonInvalid, v.Reason, v.Message
		o.KeepLogs(t)
	}
	if err := r.storeTrial(ctx, s, t, reports); err != nil {
		return s.tryAgain(v1alpha1.ReasonResultsNotStored, err)
	}
	s.trial.Status.Headline = validity.Headline(t)
	s.trial.Status.ResultsConfigMap = s.layout.ResultsConfigMap()
	s.done(v1alpha1.TrialCollected, v1alpha1.ReasonStored, "The results of every client are stored.", &s.trial.Status.Times.Collected)
	if !v.OK() {
		s.giveUp(v.Reason, "%s", v.Message)
		return true, 0, nil
	}
	s.set(v1alpha1.TrialValid, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
		"%d transactions committed %s%s.", t.Summary.Committed, where, validity.MeanText(t.Summary))
	return true, 0, nil
}

// tryAgain gives the trial up when something about its results still fails at the deadline: it
// holds its pools meanwhile. The error is not returned, since the controller would wait longer and
// longer until it tries again, beyond the deadline.
func (s *scope) tryAgain(reason string, err error) (bool, time.Duration, error) {
	left := s.zero().Add(timeline.FromSchedule(s.trial.Spec.Schedule).End() + s.endGrace() + safety.Limit(s.system.Checks) + resultsGrace + storeGrace).Sub(s.now)
	if left <= 0 {
		s.giveUp(reason, "%v after the drain it still fails to %s", resultsGrace+storeGrace, err)
		return false, 0, nil
	}
	s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonRunInProgress, "Trying again what failed: %s", err)
	return false, min(left+time.Millisecond, deployPoll), nil
}

// recordFailure stores what is known of a trial that was given up, its logs above all, unless its
// results are stored already.
func (r *Reconciler) recordFailure(ctx context.Context, s *scope) error {
	if s.trial.Status.ResultsConfigMap != "" || s.layout == nil {
		return nil
	}
	c := meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialValid)
	o := s.measured()
	t := o.Describe()
	o.KeepLogs(t)
	t.Outcome, _ = outcome(s.trial)
	t.Reason, t.Message = c.Reason, c.Message
	if err := r.storeTrial(ctx, s, t, nil); err != nil {
		return err
	}
	s.trial.Status.ResultsConfigMap = s.layout.ResultsConfigMap()
	return nil
}

// results reads and writes what trials come to.
func (r *Reconciler) results() storage.Results {
	return storage.Results{Client: r.Client, Reader: r.Reader, Software: r.Software}
}

func (r *Reconciler) storeTrial(ctx context.Context, s *scope, t *results.Trial, reports map[string][]byte) error {
	beside := storage.Beside{Reports: reports}
	if s.rendered != nil { // every pod had an address
		var err error
		if beside.Given, err = s.rendered.trial.Given(s.rendered.pods); err != nil {
			return err
		}
	}
	return r.results().Put(ctx, s.trial, isKnown(s.before), s.layout, t, beside)
}
