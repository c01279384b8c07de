package trial

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
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
		return false, 0, err
	}
	t := r.describe(s)
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
	t.Recovery = recoveries(t)
	t.Measurements = s.measured
	s.showMeasured()
	reason, message := judgeClients(&s.trial.Spec, s.layout, clients, merged)
	if reason == "" {
		if err := setGeneratorLags(t.Pods, s.layout, clients); err != nil {
			return false, 0, err
		}
		reason, message = r.judge(s, t, merged.StartSpread)
	}
	if reason == "" {
		reason, message = judgeMeasurements(&s.trial.Spec, s.measured)
	}
	t.Outcome, t.Reason, t.Message = v1alpha1.ReasonSucceeded, "", ""
	if reason != "" {
		t.Outcome, t.Reason, t.Message = v1alpha1.ReasonInvalid, reason, message
	}
	if err := r.storeTrial(ctx, s, t); err != nil {
		return false, 0, err
	}
	s.trial.Status.Headline = headline(t)
	s.trial.Status.ResultsConfigMap = s.layout.ResultsConfigMap()
	s.done(v1alpha1.TrialCollected, v1alpha1.ReasonStored, "The results of every client are stored.", &s.trial.Status.Times.Collected)
	if reason != "" {
		s.giveUp(reason, "%s", message)
		return true, 0, nil
	}
	s.set(v1alpha1.TrialValid, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
		"%d transactions committed in the window, mean latency %.3f ms.", t.Summary.Committed, t.Summary.MeanMillis)
	return true, 0, nil
}

func headline(t *results.Trial) *v1alpha1.Headline {
	s := t.Summary
	h := &v1alpha1.Headline{
		Committed: s.Committed, Aborted: s.Aborted, Errors: s.Errors, Timeouts: s.Timeouts,
		Offered: s.Offered, GivenUp: s.GivenUp, Unsent: s.Unsent, Unreported: s.Unreported,
		ThroughputMilli:         thousandths(s.Throughput),
		MeanLatencyMicroseconds: thousandths(s.MeanMillis), P50LatencyMicroseconds: thousandths(s.P50Millis), P90LatencyMicroseconds: thousandths(s.P90Millis),
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
		gz, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("unpack the results of %s: %w", c.Name, err)
		}
		raw, err := io.ReadAll(io.LimitReader(gz, clientLimit))
		if err != nil {
			return nil, fmt.Errorf("unpack the results of %s: %w", c.Name, err)
		}
		one, err := results.DecodeClient(raw)
		if err != nil {
			// Told by Merge as a client that failed, since another attempt may do better.
			one = results.Client{Format: results.ClientFormat, Index: int32(c.Index), Failure: err.Error()}
		}
		out = append(out, one)
	}
	return out, nil
}

// describe tells all of a trial but its measurements.
func (r *Reconciler) describe(s *scope) *results.Trial {
	spec, status := s.trial.Spec, s.trial.Status
	t := &results.Trial{
		Format: results.TrialFormat, Name: s.key.Name, Experiment: spec.Experiment, Number: spec.Number, Repetition: spec.Repetition,
		Attempt: spec.Attempt, PointIndex: spec.Point.Index, Coordinates: spec.Point.Coordinates, Seed: spec.Seed,
		ZeroUnixNanos: status.ZeroUnixNanos, MeasureNanos: spec.Schedule.Measure.OrZero().Nanoseconds(), Clients: spec.Clients.Count,
		PhaseSeconds: phaseSeconds(status.Times), GapSeconds: float64(status.GapMilliseconds) / 1000, Parameters: map[string]string{}, Logs: map[string]string{},
	}
	t.CorrectClients = spec.Clients.Count
	if misbehaving, err := render.Misbehaving(&spec, 0, int(spec.Clients.Count)); err == nil { // it was rendered by the same rule, without an error
		t.CorrectClients -= int32(len(misbehaving))
	}
	for name, v := range spec.Parameters {
		t.Parameters[name] = v.String()
	}
	if s.layout == nil {
		return t
	}
	for _, name := range s.everyName() {
		rep := r.report(s, name)
		t.Pods = append(t.Pods, describePod(name, s.pods[name], rep))
		s.describePredecessors(&t.Pods[len(t.Pods)-1], t.Logs)
		if rep == nil {
			continue
		}
		for _, c := range rep.Containers {
			if c.State == protocol.StateExited && !c.Expected || c.ExitCode != 0 && !c.Expected {
				t.Logs[name+"/"+c.Name] = c.Tail
			}
		}
	}
	if s.rendered != nil {
		for _, a := range s.actions() {
			t.Faults = append(t.Faults, faultRecord(a, r.recordOf(s, a)))
		}
	}
	t.Network = r.describeNetwork(s)
	return t
}

func describePod(name string, p *corev1.Pod, rep *protocol.Report) results.Pod {
	out := results.Pod{Name: name}
	if p != nil {
		out.Part, out.Node, out.Restarts = p.Labels[v1alpha1.LabelPart], p.Spec.NodeName, restarts(p)
		var images []string
		for _, c := range p.Status.ContainerStatuses {
			images = append(images, c.ImageID)
		}
		out.Images = strings.Join(images, ",")
		for _, c := range p.Status.InitContainerStatuses { // the agent is the only one
			out.AgentImage = c.ImageID
		}
	}
	if rep != nil {
		out.Kernel, out.CPUModel, out.CPUs = rep.Host.Kernel, rep.Host.CPUModel, rep.Host.CPUs
		out.ClockOffsetMillis, out.ClockErrorMillis = millis(rep.ClockOffset), millis(rep.ClockError)
		out.TCPResets, out.Resources = rep.TCPResets, rep.Resources
	}
	return out
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

func faultRecord(a timeline.Action, done *protocol.ActionRecord) results.FaultRecord {
	f := results.FaultRecord{ID: a.ID, Fault: a.Fault, Time: a.Time, Pod: a.Pod, Kind: string(a.Kind), PlannedMillis: millis(a.At), Ends: a.Ends, Role: a.Role, Peers: peersOf(a), Object: a.Object}
	f.WithoutSilence = a.WithoutSilence && a.Kind == timeline.Kill
	if done == nil {
		f.Error = unreported(a)
		return f
	}
	f.StartedMillis, f.ConfirmedMillis, f.Error = millis(done.Started), millis(done.Confirmed), done.Error
	f.ReapedMillis, f.Skipped, f.Packets = millis(done.Reaped), done.Skipped, done.Packets
	return f
}

// peersOf counts the pods whose packets or links an action is about.
func peersOf(a timeline.Action) int {
	peers := map[string]bool{}
	for _, names := range [][]string{a.Out, a.In, a.Peers} {
		for _, name := range names {
			peers[name] = true
		}
	}
	for _, l := range a.Links {
		peers[l.Peer] = true
	}
	return len(peers)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func phaseSeconds(t v1alpha1.TrialTimes) map[string]float64 {
	out := map[string]float64{}
	between := func(name string, from, to *metav1.MicroTime) {
		if from != nil && to != nil {
			out[name] = to.Sub(from.Time).Seconds()
		}
	}
	between("deployed", t.Admitted, t.Deployed)
	between("proven", t.Deployed, t.Proven)
	between("started", t.Proven, t.Started)
	between("loaded", t.Started, t.Loaded)
	between("released", t.Loaded, t.Released)
	between("run", t.Released, t.Drained)
	return out
}

// recordFailure stores what is known of a trial that was given up, its logs above all, unless its results are stored already.
func (r *Reconciler) recordFailure(ctx context.Context, s *scope) error {
	if s.trial.Status.ResultsConfigMap != "" || s.layout == nil {
		return nil
	}
	c := findCondition(s.trial, v1alpha1.TrialValid)
	t := r.describe(s)
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
		err = r.Client.Update(ctx, cm)
	}
	return wrap("store the trial's results", err)
}
