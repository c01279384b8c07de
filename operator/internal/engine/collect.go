package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/safety"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/imported"
)

// collect merges the clients' results, judges the trial and stores the results.
type collect struct {
	attachments Attachments
	heavy       *sync.Mutex
}

func (*collect) condition() string { return v1alpha1.TrialCollected }

func (p *collect) run(ctx context.Context, s *scope) Result {
	p.heavy.Lock()
	defer p.heavy.Unlock()
	clients, sent, err := p.attachments.Clients(ctx, s.subject())
	if err != nil {
		// The results were stored. If they are gone or cannot be read, the system is not to blame.
		return p.retryResults(s, v1alpha1.ReasonClientLost, err)
	}
	o := s.measured()
	merged, err := results.Merge(clients)
	if err != nil {
		return Fail(v1alpha1.ReasonResultsUnreadable, "%s", err)
	}
	t, where, err := describe(o, merged)
	if err != nil {
		return Retry(err)
	}
	if t.Summary.Regions, err = results.RegionsOf(clients, results.RegionsOfClients(t.Pods), time.Duration(t.MeasureNanos)); err != nil {
		return Fail(v1alpha1.ReasonResultsUnreadable, "%s", err)
	}
	readScript(s.system, o.Spec(), t, clients, o.RowWindows)
	t.Use = results.UseOf(t.Pods, t.MeasureNanos)
	t.Measurements = s.measurements(t)
	if err := validity.SetGeneratorLags(t.Pods, s.layout, clients); err != nil {
		return tellMeasured(Retry(err), t.Measurements)
	}
	o.Clients, o.Merged, o.Measured, o.Result = clients, merged, t.Measurements, t
	f := validity.Judge(o)
	t.Outcome, t.Reason, t.Message = v1alpha1.ReasonSucceeded, "", ""
	if !f.OK() {
		t.Outcome, t.Reason, t.Message = v1alpha1.ReasonInvalid, f.Reason, f.Message
		o.KeepLogs(t)
	}
	if err := s.store(ctx, p.attachments, t, sent); err != nil {
		return tellMeasured(p.retryResults(s, v1alpha1.ReasonResultsNotStored, err), t.Measurements)
	}
	s.trial.Status.Headline, s.trial.Status.Rows = validity.Headline(t), validity.RowsOf(t)
	s.trial.Status.ResultsConfigMap = s.layout.ResultsConfigMap()
	r := tellMeasured(Done(v1alpha1.ReasonStored, "The results of every client are stored.", &s.trial.Status.Times.Collected), t.Measurements)
	if !f.OK() {
		return r.With(v1alpha1.TrialValid, metav1.ConditionFalse, f.Reason, "%s", f.Message)
	}
	if len(t.Rows) > 0 {
		return r.With(v1alpha1.TrialValid, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "%s", validity.RowsText(t))
	}
	return r.With(v1alpha1.TrialValid, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
		"%d transactions committed %s%s.", t.Summary.Committed, where, validity.MeanText(t.Summary))
}

// describe makes the results of a trial from the observation and the merged results of the clients.
// where names the time that the numbers are from.
func describe(o *validity.Observation, merged results.Merged) (t *results.Trial, where string, err error) {
	t = o.Describe()
	t.Summary, t.Timeline, t.Driver, t.MeasureNanos = merged.Summary, &merged.Timeline, merged.Driver, merged.MeasureNanos
	t.ClientSummaries = merged.ClientSummaries
	t.MisbehavingDriver, t.MisbehavingCounters = merged.MisbehavingDriver, merged.MisbehavingCounters
	where = "in the window"
	if merged.Summary.RunSummary {
		t.Timeline, where = nil, "in the clients' whole run"
	} else if t.Latency, err = merged.Latency.Encode(); err != nil {
		return nil, "", fmt.Errorf("encode the latencies: %w", err)
	}
	t.Recovery = validity.Recoveries(t)
	return t, where, nil
}

// readScript reads the results of a script: rows of points, and the sessions on the machines. The
// window of a script is its run, and the window of a row lies where its marks say. If a file cannot
// be read, all its rows are missing.
func readScript(system *v1alpha1.SystemSpec, spec *v1alpha1.TrialSpec, t *results.Trial, clients []results.Client, windows []results.RowWindow) {
	if spec.Script == nil || len(clients) != 1 || clients[0].Table == nil {
		return
	}
	t.MeasureNanos, t.ClosedLoop = validity.ScriptWindow(spec, t.Pods).Nanoseconds(), nil
	t.Recovery = nil // a script reports no single requests
	table := clients[0].Table
	t.Sessions = table.Sessions
	results.EndSessions(t.Sessions, t.Faults)
	rows, err := imported.Rows(&system.Script.Results, table, spec.Script.Rows)
	if err != nil {
		rows, _ = imported.Rows(&system.Script.Results, &results.ScriptTable{Missing: err.Error()}, spec.Script.Rows)
	}
	for i, w := range windows {
		rows[i].Confine(w)
	}
	t.Rows = rows
}

// retryResults gives the trial up if an operation on its results still fails at the deadline, since
// the trial holds its pools meanwhile. It does not return the error: the controller would retry
// after longer and longer waits, beyond the deadline.
func (p *collect) retryResults(s *scope, reason string, err error) Result {
	left := s.drained().Add(safety.Limit(s.system.Checks) + ResultsGrace + StoreGrace).Sub(s.now)
	if left <= 0 {
		return Fail(reason, "%v after the drain it still fails to %s", ResultsGrace+StoreGrace, err)
	}
	return Wait(v1alpha1.ReasonRunInProgress, "Trying again what failed: %s", err).Within(min(left+time.Millisecond, RetryPoll))
}

// recordFailure stores the known facts of a trial that was given up, above all its logs. It does
// nothing if its results are stored.
func (s *scope) recordFailure(ctx context.Context, attachments Attachments) error {
	if s.trial.Status.ResultsConfigMap != "" || s.layout == nil {
		return nil
	}
	c := meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialValid)
	o := s.measured()
	t := o.Describe()
	o.KeepLogs(t)
	t.Outcome, _ = outcome(s.trial)
	t.Reason, t.Message = c.Reason, c.Message
	if err := s.store(ctx, attachments, t, nil); err != nil {
		return err
	}
	s.trial.Status.ResultsConfigMap = s.layout.ResultsConfigMap()
	return nil
}

// store stores the results. For RetryPoll after a failed attempt it returns the same error without
// another attempt. Each attempt writes to the status, which wakes the trial up and would cause the
// next attempt.
func (s *scope) store(ctx context.Context, attachments Attachments, t *results.Trial, sent map[string][]byte) error {
	if last := s.cache.unstored; last.err != nil && s.now.Sub(last.at).Abs() < RetryPoll {
		return last.err
	}
	s.cache.unstored = unstored{}
	files := Files{Reports: sent}
	if s.rendered != nil { // every pod had an address
		var err error
		if files.Given, err = s.rendered.trial.Given(s.rendered.pods); err != nil {
			return err
		}
	}
	err := attachments.Store(ctx, s.subject(), s.before, t, files)
	if err != nil && !errors.Is(err, ErrConflict) { // after a conflict the trial is read again
		s.cache.unstored = unstored{at: s.now, err: err}
	}
	return err
}
