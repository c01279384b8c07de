package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/startup"
)

const (
	// FinishGrace is how much longer than the System's own grace the processes may take to end.
	// Then their pods are deleted in any case.
	FinishGrace = 5 * time.Second
	// UploadGrace is how long after that pods may take to upload their files to the store of the
	// trial. Agents give up a little earlier.
	UploadGrace = 80 * time.Second
	// CollectGrace is how long pods may take instead if the trial has no store. They then send
	// little, to the manager.
	CollectGrace = 20 * time.Second
	// deletionPoll is how soon to look again for objects whose end no watch reports.
	deletionPoll = 200 * time.Millisecond
	// terminatingPoll is how often the engine asks which objects are left while the observed pods
	// still end.
	terminatingPoll = 2 * time.Second
)

// cleanUp ends the processes as the System asks, and deletes all objects of the trial but its
// results. It confirms that they are gone, and completes the trial.
type cleanUp struct {
	pods        Pods
	attachments Attachments
	experiment  Experiment
	faults      *faults
	renderer    *renderer
}

func (*cleanUp) condition() string { return v1alpha1.TrialCleanedUp }

func (p *cleanUp) run(ctx context.Context, s *scope) Result {
	if err := p.faults.clear(ctx, s); err != nil {
		return Retry(err)
	}
	if r := p.keep(ctx, s); r.err != nil || r.state != done {
		return r
	}
	last := p.lastStage(ctx, s)
	r := p.end(ctx, s, last != nil)
	if last == nil {
		return r
	}
	return r.Directing(*last)
}

// end stores what must outlive the pods, and deletes all objects. told: agents can be told to end
// the processes, so it first waits for these.
func (p *cleanUp) end(ctx context.Context, s *scope, told bool) Result {
	var left time.Duration
	if told {
		left = p.finishing(s)
	}
	s.noteFaults(ctx, p.experiment, true)
	if left > 0 {
		return Wait(v1alpha1.ReasonDeleting, "The processes are being ended.").Within(left)
	}
	late := Result{}
	if err := s.recordFailure(ctx, p.attachments); err != nil {
		if r := p.tryUntil(s, beforeDeleting, err); r.state != done {
			return r
		}
		// Then only the trial's conditions report the failure.
		late = late.With(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonResultsNotStored,
			"After %v, what is known of the trial could not be stored: %s.", StoreGrace, err)
	}
	if wait := p.terminating(s); wait > 0 {
		r := Again(wait)
		r.also = late.also
		return r
	}
	if err := p.attachments.KeepFiles(ctx, s.subject()); err != nil {
		if r := p.tryUntil(s, beforeDeleting, err); r.state != done {
			return r
		}
		late = late.With(v1alpha1.TrialCollected, metav1.ConditionFalse, v1alpha1.ReasonResultsNotStored,
			"After %v, the files of the trial's pods could not be kept: %s.", StoreGrace, err)
	}
	r := p.remove(ctx, s)
	r.also = append(late.also, r.also...)
	return r
}

// beforeDeleting begins messages about data that must be stored before anything is deleted.
const beforeDeleting = "Before anything is deleted"

// tryUntil waits for something to be stored or deleted. For instance, a quota of ConfigMaps may
// stop a write. The trial holds its pools while it waits, but not for ever.
func (p *cleanUp) tryUntil(s *scope, what string, err error) Result {
	since := s.judged()
	if kept := s.trial.Status.Times.Kept; kept != nil && s.date(kept.Time).After(since) {
		since = s.date(kept.Time)
	}
	waited := s.now.Sub(since)
	if waited >= StoreGrace {
		return Skip()
	}
	return Wait(v1alpha1.ReasonDeleting, "%s: %s.", what, err).Within(min(StoreGrace-waited+time.Millisecond, RetryPoll))
}

// judged returns when the outcome became known, by the clock of this manager.
func (s *status) judged() time.Time {
	return s.date(meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialValid).LastTransitionTime.Time)
}

// remove deletes all objects of the trial, and completes it.
func (p *cleanUp) remove(ctx context.Context, s *scope) Result {
	remains, err := p.pods.Delete(ctx, s.trial)
	var left *LeftError
	switch {
	case errors.As(err, &left):
		// Pools are for pods that run. The trial does not hold them for an object, such as a
		// Secret, that the manager may not delete.
		if r := p.tryUntil(s, "Nothing of the trial runs any more", err); r.state != done {
			return r
		}
		remains = Remains{Gone: fmt.Sprintf("Nothing of the trial runs any more. What could not be deleted goes with the trial: %s.", err)}
	case err != nil:
		return Retry(err)
	}
	if remains.Left != "" {
		return Wait(v1alpha1.ReasonDeleting, "Still there: %s.", remains.Left).Within(deletionPoll)
	}
	if s.trial.Status.ResultsConfigMap == "" {
		s.trial.Status.ResultsDigest = "" // the digest was of results that could not be stored
	}
	reason, message := outcome(s.trial)
	return Done(v1alpha1.ReasonGone, remains.Gone, &s.trial.Status.Times.Done).
		With(v1alpha1.TrialComplete, metav1.ConditionTrue, reason, "%s", message)
}

// keep leaves the pods of a trial that does not count alone while people look at them. It first
// stores the state of the trial.
func (p *cleanUp) keep(ctx context.Context, s *scope) Result {
	until, message, err := p.experiment.KeepUntil(ctx, s.trial, s.judged())
	if err != nil {
		return Retry(err)
	}
	if until.IsZero() {
		return Skip()
	}
	if left := until.Sub(s.now); left > 0 && len(s.pods) > 0 {
		if err := s.recordFailure(ctx, p.attachments); err != nil {
			return Retry(err)
		}
		return Wait(v1alpha1.ReasonKept, "%s", message).Within(left + time.Millisecond)
	}
	if c := meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialCleanedUp); c != nil && c.Reason == v1alpha1.ReasonKept {
		now := metav1.NewMicroTime(s.now)
		s.trial.Status.Times.Kept = &now
	}
	return Skip()
}

// terminating says how long to wait before asking again which objects are left; 0: ask now. Pods go
// last, and each of their changes wakes the trial up. Asking takes eight lists, and while the pods
// still end, the answer stays the same.
func (p *cleanUp) terminating(s *scope) time.Duration {
	if next := s.cache.checked.Add(terminatingPoll); validity.PodsEnding(s.pods) && s.now.Before(next) {
		return next.Sub(s.now)
	}
	s.cache.checked = s.now
	return 0
}

// lastStage is the stage in which every pod ends its processes. It is nil if no agent can be told,
// since there are no pods or they cannot be rendered.
func (p *cleanUp) lastStage(ctx context.Context, s *scope) *stage {
	if len(s.pods) == 0 {
		return nil
	}
	if s.rendered == nil {
		if err := p.renderer.render(ctx, s); err != nil || s.rendered == nil {
			return nil
		}
	}
	if err := p.renderer.renderReplacements(ctx, s); err != nil {
		return nil
	}
	st := stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos, finish: true}
	if !s.isTrue(v1alpha1.TrialStarted) {
		st.started = nil // processes that never ran need no start before their end
	}
	return &st
}

// finishing returns how long to wait for the processes. 0: there is nothing to wait for.
func (p *cleanUp) finishing(s *scope) time.Duration {
	grace := FinishGrace
	grace += startup.StopGrace(s.system)
	if n := s.trial.Status.Network; n != nil && n.Backend != "" {
		grace += s.longestRoundTrip() // agents let packets in flight through before they restore the network
	}
	by := s.judged().Add(grace)
	for _, name := range s.everyName() {
		if s.pods[name] == nil || !s.now.Before(by) {
			continue
		}
		if rep := s.report(name); rep != nil && !rep.Finished && rep.Failure == "" {
			return by.Sub(s.now)
		}
	}
	if s.trial.Spec.ResultsStore == "" {
		return p.handingOver(s, by.Add(CollectGrace))
	}
	return p.handingOver(s, by.Add(UploadGrace))
}

// handingOver says how long to wait for pods to hand over their files. It also waits for a running
// pod that has not reported: a manager that has just taken over must hear from its agent first.
func (p *cleanUp) handingOver(s *scope, by time.Time) time.Duration {
	for _, name := range s.everyName() {
		p := s.pods[name]
		if p == nil || p.Status.Phase != corev1.PodRunning || !s.now.Before(by) {
			continue
		}
		if s.trial.Spec.ResultsStore == "" && s.wantedFiles(s.renderedPod(name)) == nil {
			continue
		}
		if rep := s.report(name); rep == nil || !rep.HandedOver {
			return by.Sub(s.now)
		}
	}
	return 0
}
