package engine

import (
	"context"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine/safety"
)

// check runs the System's checks when the clients are over. Their verdicts are results: they judge
// the system. They never decide whether the trial counts.
type check struct{}

func (*check) condition() string { return v1alpha1.TrialCollected }

func (p *check) run(_ context.Context, s *scope) Result {
	if len(s.system.Checks) == 0 || s.rendered == nil || s.trial.Status.Checks != nil || s.trial.Status.Times.Drained == nil {
		return Skip()
	}
	var pods []safety.Pod
	for _, name := range s.everyName() {
		if p := s.renderedPod(name); p != nil {
			pods = append(pods, safety.Pod{Name: name, Checks: p.Checks, Report: s.report(name)})
		}
	}
	left := s.date(s.trial.Status.Times.Drained.Time).Add(safety.Limit(s.system.Checks)).Sub(s.now)
	r := Skip()
	verdicts, waiting := safety.Judge(s.system.Checks, pods)
	if waiting != "" && left > 0 {
		r = Wait(v1alpha1.ReasonRunInProgress, "Waiting for %s.", waiting).Within(left + time.Millisecond)
	} else {
		s.trial.Status.Checks = verdicts
	}
	return r.Directing(stage{started: all(s.everyName()), steps: len(s.system.Steps), zero: s.trial.Status.ZeroUnixNanos, checks: true})
}
