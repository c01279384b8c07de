package experiment

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// judged returns the claims that the profile judges, and how many of them the trials support.
func judged(s *scope) (all []v1alpha1.ClaimStatus, supported int) {
	skipped := plan.SkippedClaims(s.exp.Spec)
	for _, c := range s.exp.Status.Claims {
		if _, skip := skipped[c.Name]; skip {
			continue
		}
		all = append(all, c)
		if c.Verdict.Supports() {
			supported++
		}
	}
	return all, supported
}

// setSupported summarizes the verdicts as exit codes do, for users who wait with kubectl alone.
func setSupported(s *scope) {
	claims, supported := judged(s)
	status, reason, message := metav1.ConditionUnknown, v1alpha1.ReasonTrialsRunning, "Trials are to run."
	var against, open []string
	for _, c := range claims {
		switch {
		case c.Verdict.Supports():
		case c.Verdict.Refutes():
			against = append(against, c.Name)
		default:
			open = append(open, c.Name)
		}
	}
	skipped := skippedNote(len(s.exp.Status.Claims) - len(claims))
	switch {
	case s.exp.Spec.Recurrence != nil:
		reason, message = v1alpha1.ReasonRecurs, "Each run has verdicts of its own."
	case !meta.IsStatusConditionTrue(s.exp.Status.Conditions, v1alpha1.ExperimentComplete):
	case len(claims) == 0:
		reason, message = v1alpha1.ReasonNoClaims, "No claim is judged."+skipped
	case len(against) > 0:
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonRefuted, "Refuted: "+strings.Join(against, ", ")+"."+skipped
	case len(open) > 0:
		reason, message = v1alpha1.ReasonUndecided, "Undecided: "+strings.Join(open, ", ")+"."+skipped
	default:
		status, reason, message = metav1.ConditionTrue, v1alpha1.ReasonSupported, fmt.Sprintf("The trials support all %d claims that are judged.%s", supported, skipped)
	}
	s.set(v1alpha1.ExperimentSupported, status, reason, message)
}

// skippedNote says how many claims the profile does not judge, so that readers know that there are
// more claims.
func skippedNote(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " The profile skips 1 claim."
	}
	return fmt.Sprintf(" The profile skips %d claims.", n)
}

// setKstatus translates Accepted and Complete into the conditions of kstatus.
func setKstatus(s *scope) {
	complete := meta.FindStatusCondition(s.exp.Status.Conditions, v1alpha1.ExperimentComplete)
	done := complete.Status == metav1.ConditionTrue
	stalled := s.plan == nil && len(s.errs) > 0 || done && complete.Reason != v1alpha1.ReasonAllTrialsValid
	set := func(condition string, holds bool) {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		s.set(condition, status, complete.Reason, complete.Message)
	}
	// An experiment that recurs is ready once it is accepted: a tool that waited for its end would
	// wait for ever.
	ready := done || s.exp.Spec.Recurrence != nil && s.plan != nil
	set(v1alpha1.ExperimentReady, ready && !stalled)
	set(v1alpha1.ExperimentReconciling, !ready && !stalled)
	set(v1alpha1.ExperimentStalled, stalled)
}

func setProgress(s *scope) {
	counts, before := s.exp.Status.Trials, s.before.Status
	p := &s.exp.Status.Progress
	p.Trials, p.Percent = fmt.Sprintf("%d/%d", counts.Succeeded, counts.Planned), 0
	if counts.Planned > 0 {
		p.Percent = min(100, counts.Succeeded*100/counts.Planned)
	}
	p.Claims = ""
	complete := meta.FindStatusCondition(s.exp.Status.Conditions, v1alpha1.ExperimentComplete)
	if all, supported := judged(s); len(all) > 0 {
		p.Claims = fmt.Sprintf("%d/%d", supported, len(all))
		if complete.Status != metav1.ConditionTrue {
			p.Claims += " so far"
		}
	}
	switch {
	case complete.Status == metav1.ConditionTrue, complete.Reason != v1alpha1.ReasonTrialsRunning:
		p.EstimatedCompletion = nil
	case p.EstimatedCompletion == nil || before.Trials != counts: // not in every loop: a status that always changes wakes all its watchers
		p.EstimatedCompletion = estimated(s.trials, counts, s.plan.AtOnce(), s.now.Time)
	}
}

// estimated returns when the remaining trials will end, if each takes the average of the finished
// ones, and atOnce of them run together. It returns nil if none is finished, or none remains.
func estimated(trials []v1alpha1.Trial, counts v1alpha1.TrialCounts, atOnce int, now time.Time) *metav1.Time {
	var took time.Duration
	done := 0
	for i := range trials {
		times := trials[i].Status.Times
		if times.Admitted != nil && times.Done != nil {
			took += times.Done.Sub(times.Admitted.Time)
			done++
		}
	}
	left := (counts.Planned - counts.Succeeded + int32(atOnce) - 1) / int32(atOnce)
	if done == 0 || left <= 0 {
		return nil
	}
	at := metav1.NewTime(now.Add(took / time.Duration(done) * time.Duration(left)).Truncate(time.Second))
	return &at
}
