package trial

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/queue"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/verdict"
)

const (
	// barrierTimeout is how long clients may take to be ready for the start.
	barrierTimeout = 2 * time.Minute
	// releaseLead is how long before the load begins the run is sent to the agents: long enough for a slow answer and a retry.
	releaseLead = time.Second
	// resultsGrace is how long after the drain the results may take to arrive.
	resultsGrace = time.Minute
	// storeGrace is how long after that it may take to read them, and to write what they come to.
	storeGrace = 2 * time.Minute
	// accountPoll is how often to look for reports that came after the window: one that says nothing new wakes nobody up.
	accountPoll = 200 * time.Millisecond
	// progressInterval is how often a running trial's progress is published.
	progressInterval = 5 * time.Second
)

// release waits until every client is at the start barrier, then agrees t = 0 and writes it to status. The agents get it in the next reconcile, when it is
// certain that no other manager can choose another.
func (r *Reconciler) release(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if s.trial.Status.ZeroUnixNanos != 0 {
		return true, 0, nil
	}
	if r.lost(s) {
		return false, 0, nil
	}
	r.direct(s, stage{started: all(s.everyName()), steps: len(s.system.Steps)})
	if reason, why := r.trouble(s); why != "" {
		s.giveUp(reason, "%s", why)
		return false, 0, nil
	}
	if missing := r.unproven(s); len(missing) > 0 {
		// A manager that has just taken over must hear from every agent first.
		return s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonProvingNetwork,
			fmt.Sprintf("waiting for %s to confirm that its links are still as asked", few.Names(missing)), s.trial.Status.Times.Loaded, s.barrierLimit())
	}
	for _, name := range s.replicaNames() {
		if rep := s.report(name); rep == nil || !rep.Ready {
			return s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonReplicasStarting,
				fmt.Sprintf("waiting for %s to be ready still", name), s.trial.Status.Times.Loaded, s.barrierLimit())
		}
	}
	for _, name := range s.clientNames() {
		rep := s.report(name)
		if rep != nil && rep.Over {
			s.giveUp(v1alpha1.ReasonClientFailed, "Client %s ended before the start. %s", name, verdict.LastOutput(rep))
			return false, 0, nil
		}
		if rep == nil || !rep.AtBarrier {
			return s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonClientsNotAtBarrier,
				fmt.Sprintf("waiting for %s at the start barrier", name), s.trial.Status.Times.Loaded, s.barrierLimit())
		}
	}
	if ready, after, err := r.machinesReady(ctx, s); err != nil || !ready {
		return false, after, err
	}
	if ready, after, err := r.chaosMeshServed(ctx, s); err != nil || !ready {
		return false, after, err
	}
	if err := r.keepAddresses(ctx, s); err != nil {
		done, after, err := s.wait(v1alpha1.TrialRunning, v1alpha1.ReasonConfiguring, "trying again what failed: "+err.Error(), s.trial.Status.Times.Loaded, s.barrierLimit())
		return done, min(after, deployPoll), err
	}
	if !r.quiet(s) {
		return false, quietPoll, nil
	}
	// Other servers were asked since the reconcile began, for seconds perhaps, and nobody refuses clients that all start late: the lead is counted from here.
	s.now = r.Clock.Now()
	w := timeline.FromSchedule(s.trial.Spec.Schedule)
	gap, err := r.gap(ctx, s)
	if err != nil {
		return false, 0, err
	}
	s.trial.Status.GapMilliseconds = gap.Milliseconds()
	s.trial.Status.PodsDigest = s.podsDigest() // written when the trial was deployed, but by managers of before
	s.trial.Status.ZeroUnixNanos = s.now.Add(releaseLead + w.WarmUp).UnixNano()
	s.done(v1alpha1.TrialRunning, v1alpha1.ReasonReleased, "t = 0 is agreed and every client is released."+inVain(s.trial.Status.Quiet), &s.trial.Status.Times.Released)
	return false, time.Millisecond, nil
}

// gap is how long the trial's machines will have measured nothing when the warm-up begins; 0 when others measure there at the same time. Only between trials of
// one experiment is that ours to answer for.
func (r *Reconciler) gap(ctx context.Context, s *scope) (time.Duration, error) {
	list := &v1alpha1.TrialList{}
	if err := r.Client.List(ctx, list); err != nil {
		return 0, fmt.Errorf("list trials: %w", err)
	}
	var last time.Time
	first := true
	for i := range list.Items {
		o := &list.Items[i]
		if o.UID == s.trial.UID || o.Status.Times.Drained == nil || !queue.Overlap(o.Spec.Placement.Pools(), s.trial.Spec.Placement.Pools()) {
			continue
		}
		if o.Namespace == s.key.Namespace && metav1.GetControllerOf(o) != nil && metav1.GetControllerOf(s.trial) != nil &&
			metav1.GetControllerOf(o).UID == metav1.GetControllerOf(s.trial).UID {
			first = false
		}
		if o.Status.Times.Drained.After(last) {
			last = o.Status.Times.Drained.Time
		}
	}
	if first {
		return 0, nil
	}
	return max(0, s.now.Add(releaseLead).Sub(last)), nil
}

// run waits until every client is over and its results are stored.
func (r *Reconciler) run(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialCollected) {
		return true, 0, nil
	}
	soon, err := r.chaos(ctx, s)
	if err != nil {
		// It is tried again until the trial is judged, which is then for want of what the records would say.
		logFor(ctx).Info("What Chaos Mesh has done cannot be read or written down", "err", err.Error())
		soon = chaosSlowPoll
	}
	if r.runLost(s) {
		return false, 0, nil
	}
	if s.rendered != nil {
		r.direct(s, stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos})
	}
	r.audit(ctx, s, false)
	if reason, why := r.trouble(s); why != "" {
		s.giveUp(reason, "%s", why)
		return false, 0, nil
	}
	zero, spec := s.zero(), s.judgedSpec()
	over, sent := 0, 0
	for _, name := range s.clientNames() {
		rep := s.report(name)
		if rep == nil {
			continue
		}
		if rep.Over {
			over++
		}
		if rep.Sent {
			sent++
		}
		if v := verdict.ClientEnd(spec, name, rep); !v.Counts() {
			s.giveUp(v.Reason, "%s", v.Message)
			return false, 0, nil
		}
	}
	n := len(s.layout.Clients)
	if over == n && s.trial.Status.Times.Drained == nil {
		t := metav1.NewMicroTime(s.now)
		s.trial.Status.Times.Drained = &t
	}
	deadline := zero.Add(timeline.FromSchedule(s.trial.Spec.Schedule).End() + s.endGrace() + resultsGrace)
	left := deadline.Sub(s.now)
	if sent == n {
		silent := r.unaccounted(s)
		if silent == "" || left <= 0 {
			return true, 0, nil
		}
		s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonRunInProgress, "Waiting for the account of %s.", silent)
		return false, min(left+time.Millisecond, accountPoll, soon), nil
	}
	s.set(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonRunInProgress, "The clients run, or their results are on the way.")
	if left <= 0 {
		s.giveUp(v1alpha1.ReasonClientLost, "%d of %d clients are over and the results of %d have arrived by the deadline, %v after the drain.", over, n, sent, resultsGrace)
		return false, 0, nil
	}
	next, err := r.publishProgress(ctx, s)
	return false, min(left+time.Millisecond, next, soon), err
}

// unaccounted names a pod whose agent has not reported yet, or not what became of a fault, what its pod used in the window and how many of its connections were
// reset until the last request, or, where links are shaped, not since the window what became of them and what its probes saw. A manager that has just taken over must hear from every
// agent before it may judge: the results of the clients may well come first.
func (r *Reconciler) unaccounted(s *scope) string {
	last := timeline.FromSchedule(s.trial.Spec.Schedule).LastRequest()
	shaped := s.trial.Status.Network != nil && s.trial.Status.Network.Backend != ""
	for _, name := range s.everyName() {
		rep, came := s.report(name), s.heard[name].at
		if rep == nil || shaped && (came.Before(s.canariesOver()) || rep.Network == nil || !rep.Network.Watched) {
			return name
		}
		// What a machine that was reset used before, or a pod before it was replaced, is not known, and nothing of it is judged.
		if !s.interrupted(name) && (rep.Resources == nil || !rep.ResetsCounted) {
			return name
		}
	}
	if s.rendered == nil {
		return ""
	}
	for _, a := range s.actions() {
		if a.At <= last && s.recordOf(a) == nil {
			return a.Pod
		}
	}
	return ""
}

func (s *scope) endGrace() time.Duration {
	if e := s.system.Clients.End; e != nil && e.Stop != nil {
		return e.Stop.Grace.OrZero()
	}
	return 0
}

// runLost gives up a run whose pods are gone or were made again: its measurements cannot be had any more.
func (r *Reconciler) runLost(s *scope) bool {
	for _, name := range s.everyName() {
		p := s.pods[name]
		switch {
		case s.refused[name] != "":
			s.giveUp(v1alpha1.ReasonRunLost, "%s", s.refused[name])
			return true
		case s.leaving[name]: // as planned
		case p == nil:
			s.giveUp(v1alpha1.ReasonRunLost, "Pod %s is gone in the middle of the run.", name)
			return true
		case p.Status.Phase == corev1.PodFailed:
			s.giveUp(v1alpha1.ReasonRunLost, "Pod %s failed in the middle of the run: %s %s", name, p.Status.Reason, p.Status.Message)
			return true
		}
	}
	if s.lines == nil && s.podsDigest() != s.trial.Status.PodsDigest {
		s.giveUp(v1alpha1.ReasonRunLost, "A pod was made again in the middle of the run.")
		return true
	}
	return false
}

// podsDigest names the pods that take part, by their UIDs.
func (s *scope) podsDigest() string {
	h := sha256.New()
	for _, name := range s.everyName() {
		if p := s.pods[name]; p != nil {
			fmt.Fprintf(h, "%s=%s\n", name, p.UID)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// publishProgress writes the clients' progress to an annotation now and then, and says when it is due again.
func (r *Reconciler) publishProgress(ctx context.Context, s *scope) (time.Duration, error) {
	var last time.Time
	r.remember(s.trial, func(m *memo) { last = m.progress })
	if since := s.now.Sub(last); since < progressInterval {
		return progressInterval - since, nil
	}
	r.remember(s.trial, func(m *memo) { m.progress = s.now })
	var sum protocol.Progress
	for _, name := range s.clientNames() {
		if rep := s.report(name); rep != nil && rep.Progress != nil {
			sum.Committed += rep.Progress.Committed
			sum.PerSecond += rep.Progress.PerSecond
		}
	}
	value, err := json.Marshal(sum)
	if err != nil {
		return 0, fmt.Errorf("encode the progress: %w", err)
	}
	// Without the resource version, a manager that has lost the lead would get the trial's newest one here and overwrite, with what it read long ago, what
	// its successor has decided.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.before.ResourceVersion, "annotations": map[string]string{v1alpha1.AnnotationProgress: string(value)},
	}})
	if err != nil {
		return 0, fmt.Errorf("encode the progress: %w", err)
	}
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Trial"))
	target.SetNamespace(s.key.Namespace)
	target.SetName(s.key.Name)
	if err := r.Client.Patch(ctx, target, client.RawPatch(typesMergePatch, patch)); err != nil {
		if apierrors.IsConflict(err) {
			return conflictDelay, nil // the trial is read again, with what has changed
		}
		return progressInterval, client.IgnoreNotFound(err)
	}
	// The patch has changed the trial's resource version: the status patch of this reconcile must not fail for that.
	s.before.SetResourceVersion(target.GetResourceVersion())
	s.trial.SetResourceVersion(target.GetResourceVersion())
	return progressInterval, nil
}
