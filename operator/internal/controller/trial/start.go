package trial

import (
	"context"
	"fmt"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/verdict"
)

// start starts the replicas, all at once or one by one, and waits until all are ready.
func (r *Reconciler) start(_ context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialStarted) {
		return true, 0, nil
	}
	if r.lost(s) {
		return false, 0, nil
	}
	names := s.replicaNames()
	limit := s.system.Replicas.ReadyTimeout.OrZero()
	if s.system.Replicas.Start == v1alpha1.StartOneByOne {
		limit *= time.Duration(len(names))
	}
	started := map[string]bool{}
	waiting := ""
	for _, name := range names {
		rep := s.report(name)
		if s.system.Replicas.Start == v1alpha1.StartOneByOne && waiting != "" {
			break
		}
		started[name] = true
		if rep == nil || !rep.Ready {
			if waiting == "" {
				waiting = name + " is not ready"
				if rep != nil && rep.WaitingFor != "" {
					waiting += ": " + rep.WaitingFor
				}
			}
		}
	}
	r.direct(s, stage{started: started})
	if reason, why := r.trouble(s); why != "" {
		s.giveUp(reason, "%s", why)
		return false, 0, nil
	}
	if waiting != "" {
		return s.wait(v1alpha1.TrialStarted, v1alpha1.ReasonReplicasStarting, waiting, s.trial.Status.Times.Proven, limit)
	}
	s.done(v1alpha1.TrialStarted, v1alpha1.ReasonReady, "Every replica is ready.", &s.trial.Status.Times.Started)
	return true, 0, nil
}

// load runs the System's steps in order; each begins when the one before is done in every pod. Loaded is the trial when also Prometheus scrapes its pods, if it
// is to be asked about them: what comes next has its deadline from then on.
func (r *Reconciler) load(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialLoaded) {
		return true, 0, nil
	}
	if r.lost(s) {
		return false, 0, nil
	}
	started := all(s.replicaNames())
	limit := time.Minute // for the reports to come in
	for i, step := range s.system.Steps {
		limit += step.Timeout.OrZero() + 10*time.Second
		r.direct(s, stage{started: started, steps: i + 1})
		if waiting := r.stepState(s, step); waiting != "" || s.outcomeKnown() {
			if s.outcomeKnown() {
				return false, 0, nil
			}
			return s.wait(v1alpha1.TrialLoaded, v1alpha1.ReasonStepsRunning, waiting, s.trial.Status.Times.Started, limit)
		}
	}
	if scraped, after, err := r.scraped(ctx, s); err != nil || !scraped {
		return false, after, err
	}
	s.done(v1alpha1.TrialLoaded, v1alpha1.ReasonReady, "Every step is done.", &s.trial.Status.Times.Loaded)
	return true, 0, nil
}

// stepState says what a step waits for, or gives the trial up when it failed.
func (r *Reconciler) stepState(s *scope, step v1alpha1.Step) string {
	for _, name := range s.everyName() {
		if _, here := s.rendered.pods[name].Steps[step.Name]; !here {
			continue
		}
		result := resultOf(s.report(name), step.Name)
		if result == nil {
			return fmt.Sprintf("step %s runs in %s", step.Name, name)
		}
		if result.Error != "" || (result.ExitCode != 0 && step.Until != "AnyExit") {
			s.giveUp(v1alpha1.ReasonStepFailed, "Step %s failed in %s with exit code %d. %s It printed: %s",
				step.Name, name, result.ExitCode, result.Error, result.Output)
			return ""
		}
	}
	return ""
}

func resultOf(rep *protocol.Report, id string) *protocol.CommandResult {
	if rep == nil {
		return nil
	}
	for i := range rep.Commands {
		if rep.Commands[i].ID == id {
			return &rep.Commands[i]
		}
	}
	return nil
}

// lost gives the trial up when a pod of it is gone: pods are never replaced behind a trial's back.
func (r *Reconciler) lost(s *scope) bool {
	if s.rendered == nil && !s.outcomeKnown() {
		var missing []string
		for _, name := range s.everyName() {
			if p := s.pods[name]; p == nil || p.Status.PodIP == "" {
				missing = append(missing, name)
			}
		}
		s.giveUp(v1alpha1.ReasonRunLost, "These pods of the trial are gone: %s", few.Names(missing))
	}
	if pinned := s.trial.Status.PodsDigest; pinned != "" && pinned != s.podsDigest() {
		s.giveUp(v1alpha1.ReasonRunLost, "A pod was made again after the trial had been deployed: it lacks what the steps before did in it.")
	}
	return s.outcomeKnown()
}

// trouble looks for what ends a trial at any time: a process that ended though no fault killed it, a container that the kubelet restarted, an agent that
// cannot go on, links that are not as asked any more.
func (r *Reconciler) trouble(s *scope) (reason, message string) {
	for _, name := range s.replicaNames() {
		rep := s.report(name)
		if rep == nil || s.leaving[name] {
			continue
		}
		// Whether an exit after the window matters depends on when the clients ended, which is not known yet.
		if v := verdict.ReplicaExit(name, rep, s.trial.Spec.Schedule.Measure.OrZero()); !v.Counts() {
			return v.Reason, v.Message
		}
	}
	for _, name := range s.everyName() {
		p := s.pods[name]
		switch {
		case p == nil || restarts(p) <= s.expectedRestarts(name):
		case outOfMemory(p) != "":
			return v1alpha1.ReasonOutOfMemory, fmt.Sprintf("Container %s of %s exceeded its memory limit and was killed.", outOfMemory(p), name)
		default:
			return v1alpha1.ReasonPodRestarted, fmt.Sprintf("The kubelet restarted a container of %s.", name)
		}
	}
	if failed := r.agentFailure(s); failed != "" {
		return v1alpha1.ReasonFailed, failed
	}
	for _, name := range s.everyName() {
		if n := s.networkOf(name); n != nil && n.Lost != "" {
			return v1alpha1.ReasonNetworkLost, verdict.LinksLost(name, n)
		}
	}
	return "", ""
}
