package trial

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/run"
	"assay.dev/assay/operator/internal/timeline"
)

// Reasons of the events that tell of faults.
const (
	faultCarriedOut = "FaultCarriedOut"
	faultFailed     = "FaultFailed"
)

// auditLimit is how many events one trial may make of its faults: a partition that flaps comes and goes thousands of times. All are in its results.
const auditLimit = 200

// audit makes an event, on the Experiment, of every action of a fault as soon as its agent has told what became of it: which pod, what, when, and whether it was
// seen to hold. over: nothing more will be told, so that an action whose time has come and of which nothing is known is told of as failed.
//
// What was told is kept in memory only: a manager that takes over tells it again rather than never.
func (r *Reconciler) audit(ctx context.Context, s *scope, over bool) {
	if s.rendered == nil || s.trial.Status.ZeroUnixNanos == 0 {
		return
	}
	var told map[string]bool
	r.remember(s.trial, func(m *memo) {
		if told = m.told; told == nil {
			told = map[string]bool{}
			m.told = told
		}
	})
	var exp *v1alpha1.Experiment
	for _, a := range s.actions() {
		done := s.recordOf(a)
		missed := over && s.now.UnixNano() > s.trial.Status.ZeroUnixNanos+int64(a.At)
		if told[a.ID] || len(told) > auditLimit || done == nil && !missed {
			continue
		}
		if done != nil && done.Skipped { // it was for whoever has a role, and this was another one
			told[a.ID] = true
			continue
		}
		if exp == nil {
			exp = &v1alpha1.Experiment{}
			if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: s.trial.Spec.Experiment}, exp); err != nil {
				logFor(ctx).Info("The Experiment that faults are told of cannot be read", "err", err.Error())
				return
			}
		}
		if told[a.ID] = true; len(told) > auditLimit {
			r.Recorder.Eventf(exp, s.trial, corev1.EventTypeNormal, faultCarriedOut, "Audit", "%s", auditFull(s))
			return
		}
		kind, reason, note := auditNote(s, a, done)
		r.Recorder.Eventf(exp, s.trial, kind, reason, string(a.Kind), "%s", note)
	}
}

func auditFull(s *scope) string {
	return fmt.Sprintf("Trial %s has had more than %d actions of faults. The others are in its results only.", s.key.Name, auditLimit)
}

// auditNote says in a sentence what became of one action.
func auditNote(s *scope, a timeline.Action, done *protocol.ActionRecord) (kind, reason, note string) {
	who := a.Pod
	if a.Kind == timeline.Reset {
		who = "the machine of " + a.Pod
	}
	if a.Role != "" {
		who += ", which had the role " + a.Role
	}
	b := &strings.Builder{}
	what := string(a.Kind)
	if a.Object != "" {
		what += " (" + a.Object + ")"
	}
	fmt.Fprintf(b, "Trial %s, fault %s: %s of %s, planned for %.3f s", s.key.Name, a.Fault, what, who, a.At.Seconds())
	switch {
	case done == nil:
		fmt.Fprintf(b, ", is not known to have happened: %s.", run.Unreported(a))
		return corev1.EventTypeWarning, faultFailed, b.String()
	case done.Error != "":
		fmt.Fprintf(b, ", failed: %s.", done.Error)
		return corev1.EventTypeWarning, faultFailed, b.String()
	}
	fmt.Fprintf(b, ", begun at %.3f s, confirmed at %.3f s", done.Started.Seconds(), done.Confirmed.Seconds())
	if a.Kind == timeline.Kill && a.WithoutSilence {
		b.WriteString(", without silence")
	}
	b.WriteString(". Times are relative to t = 0.")
	return corev1.EventTypeNormal, faultCarriedOut, b.String()
}
