package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/run"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/verdict"
)

// Keys of a trial's results ConfigMap.
const (
	// trialKey holds a results.Trial.
	trialKey = "trial.json"
	// timelineKey holds its timeline as CSV.
	timelineKey = "timeline.csv"
)

// collect merges the clients' results, judges the trial and stores the results.
func (r *Reconciler) collect(ctx context.Context, s *scope) (bool, time.Duration, error) {
	clients, err := r.clientResults(ctx, s)
	if err != nil {
		return s.tryAgain(v1alpha1.ReasonResultsUnreadable, err)
	}
	o := s.observed()
	t := o.Describe()
	merged, err := results.Merge(clients)
	if err != nil {
		s.giveUp(v1alpha1.ReasonResultsUnreadable, "%s", err)
		return false, 0, nil
	}
	t.Summary, t.Timeline, t.Driver, t.MeasureNanos = merged.Summary, &merged.Timeline, merged.Driver, merged.MeasureNanos
	t.MisbehavingDriver = merged.MisbehavingDriver
	if t.Latency, err = merged.Latency.Encode(); err != nil {
		return false, 0, fmt.Errorf("encode the latencies: %w", err)
	}
	t.Recovery = run.Recoveries(t)
	t.Measurements = s.measured
	s.showMeasured()
	if err := run.SetGeneratorLags(t.Pods, s.layout, clients); err != nil {
		return false, 0, err
	}
	o.Clients, o.Merged, o.Measured, o.Result = clients, merged, s.measured, t
	v := verdict.Judge(o)
	t.Outcome, t.Reason, t.Message = v1alpha1.ReasonSucceeded, "", ""
	if !v.Counts() {
		t.Outcome, t.Reason, t.Message = v1alpha1.ReasonInvalid, v.Reason, v.Message
	}
	if err := r.storeTrial(ctx, s, t); err != nil {
		return s.tryAgain(v1alpha1.ReasonResultsNotStored, err)
	}
	s.trial.Status.Headline = headline(t)
	s.trial.Status.ResultsConfigMap = s.layout.ResultsConfigMap()
	s.done(v1alpha1.TrialCollected, v1alpha1.ReasonStored, "The results of every client are stored.", &s.trial.Status.Times.Collected)
	if !v.Counts() {
		s.giveUp(v.Reason, "%s", v.Message)
		return true, 0, nil
	}
	s.set(v1alpha1.TrialValid, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
		"%d transactions committed in the window, mean latency %.3f ms.", t.Summary.Committed, t.Summary.MeanMillis)
	return true, 0, nil
}

// tryAgain gives the trial up when something about its results still fails at the deadline: it holds its pools meanwhile. The error is not returned,
// since the controller would wait longer and longer until it tries again, beyond the deadline.
func (s *scope) tryAgain(reason string, err error) (bool, time.Duration, error) {
	left := s.zero().Add(timeline.FromSchedule(s.trial.Spec.Schedule).End() + s.endGrace() + resultsGrace + storeGrace).Sub(s.now)
	if left <= 0 {
		s.giveUp(reason, "%v after the drain it still fails to %s", resultsGrace+storeGrace, err)
		return false, 0, nil
	}
	s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonRunInProgress, "Trying again what failed: %s", err)
	return false, min(left+time.Millisecond, deployPoll), nil
}

func headline(t *results.Trial) *v1alpha1.Headline {
	s := t.Summary
	h := &v1alpha1.Headline{
		Committed: s.Committed, Aborted: s.Aborted, Errors: s.Errors, Timeouts: s.Timeouts,
		Offered: s.Offered, GivenUp: s.GivenUp, Unsent: s.Unsent, Unreported: s.Unreported,
		ThroughputMilli:         thousandths(s.Throughput),
		MeanLatencyMicroseconds: thousandths(s.MeanMillis), P10LatencyMicroseconds: thousandths(s.P10Millis),
		P50LatencyMicroseconds: thousandths(s.P50Millis), P90LatencyMicroseconds: thousandths(s.P90Millis),
		P99LatencyMicroseconds: thousandths(s.P99Millis), P999LatencyMicroseconds: thousandths(s.P999Millis),
		CorrectClients: t.CorrectClients, Recoveries: headlineRecoveries(t.Recovery), Measurements: headlineMeasurements(t.Measurements),
	}
	h.ThrottledPerMillion, h.StealPerMillion = worstShares(t.Pods)
	return h
}

func thousandths(x float64) int64 { return int64(math.Round(x * 1000)) }

// clientResults reads what the clients sent. All are there: each agent was told so after its results were stored.
func (r *Reconciler) clientResults(ctx context.Context, s *scope) ([]results.Client, error) {
	var out []results.Client
	for _, c := range s.layout.Clients {
		packed, err := r.packedResults(ctx, s, c)
		if err != nil {
			return nil, err
		}
		one, err := results.UnpackClient(packed, runLength(&s.trial.Spec))
		if err != nil {
			// Told by Merge as a client that failed, since another attempt may do better.
			one = results.Client{Format: results.ClientFormat, Index: int32(c.Index), Failure: err.Error()}
		}
		out = append(out, one)
	}
	return out, nil
}

func restarts(p *corev1.Pod) int32 {
	var n int32
	for _, c := range p.Status.InitContainerStatuses {
		n += c.RestartCount
	}
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// outOfMemory is a container of the system that was killed last since it exceeded its memory limit, or nothing.
func outOfMemory(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if state.Terminated != nil && state.Terminated.Reason == "OOMKilled" {
				return c.Name
			}
		}
	}
	return ""
}

func actionRecord(rep *protocol.Report, id string) *protocol.ActionRecord {
	if rep == nil {
		return nil
	}
	for i := range rep.Actions {
		if rep.Actions[i].ID == id {
			return &rep.Actions[i]
		}
	}
	return nil
}

// recordFailure stores what is known of a trial that was given up, its logs above all, unless its results are stored already.
func (r *Reconciler) recordFailure(ctx context.Context, s *scope) error {
	if s.trial.Status.ResultsConfigMap != "" || s.layout == nil {
		return nil
	}
	c := findCondition(s.trial, v1alpha1.TrialValid)
	t := s.observed().Describe()
	t.Outcome, _ = outcome(s.trial)
	t.Reason, t.Message = c.Reason, c.Message
	if err := r.storeTrial(ctx, s, t); err != nil {
		return err
	}
	s.trial.Status.ResultsConfigMap = s.layout.ResultsConfigMap()
	return nil
}

// storeTrial writes the results ConfigMap. It has no owner: results outlive the trial.
func (r *Reconciler) storeTrial(ctx context.Context, s *scope, t *results.Trial) error {
	r.nameMachines(ctx, t)
	var csv strings.Builder
	if t.Timeline != nil {
		if err := results.WriteTimelineCSV(&csv, *t.Timeline); err != nil {
			return fmt.Errorf("write the timeline: %w", err)
		}
	}
	data, whole := map[string]string{}, *t
	limit := configMapLimit
	if csv.Len() > 0 && csv.Len() < limit/3 {
		data[timelineKey] = csv.String()
		limit -= csv.Len()
	} else if csv.Len() > 0 {
		t.LeftOut = append(t.LeftOut, timelineKey)
	}
	encoded, err := results.FitTrial(*t, limit)
	if err != nil {
		return fmt.Errorf("fit the results into a ConfigMap: %w", err)
	}
	if err := r.keepWhole(ctx, s, whole, encoded); err != nil {
		return err
	}
	data[trialKey] = string(encoded)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: s.layout.ResultsConfigMap(), Namespace: s.key.Namespace,
		Labels: map[string]string{
			v1alpha1.LabelTrial: s.key.Name, v1alpha1.LabelExperiment: t.Experiment, v1alpha1.LabelResults: "trial",
			v1alpha1.LabelPoint: fmt.Sprint(t.PointIndex),
		},
	}, Data: data}
	err = r.Client.Create(ctx, cm)
	if apierrors.IsAlreadyExists(err) {
		err = r.storeAgain(ctx, s, cm)
	}
	return wrap("store the trial's results", err)
}

// storeAgain replaces results that were stored before their trial's status said so. It is left to the manager that leads: one that does not any more
// has read the trial before its successor judged it.
func (r *Reconciler) storeAgain(ctx context.Context, s *scope, cm *corev1.ConfigMap) error {
	stored := &corev1.ConfigMap{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(cm), stored); err != nil {
		return err
	}
	now := &v1alpha1.Trial{}
	if err := r.Reader.Get(ctx, s.key, now); err != nil {
		return err
	}
	if now.UID != s.trial.UID || isKnown(now) && !isKnown(s.before) {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("trials").GroupResource(), s.key.Name, errors.New("another manager has judged it"))
	}
	cm.ResourceVersion = stored.ResourceVersion
	return r.Client.Update(ctx, cm)
}
