package trial

import (
	"context"
	"fmt"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/verdict"
)

// start starts the replicas, all at once or one by one, and waits until all are ready.
func (r *Reconciler) start(_ context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialStarted) {
		return true, 0, nil
	}
	if s.lost() {
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

// load runs the System's steps in order; each begins when the one before is done in every pod.
// Loaded is the trial when also Prometheus scrapes its pods, if it is to be asked about them: what
// comes next has its deadline from then on.
func (r *Reconciler) load(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialLoaded) {
		return true, 0, nil
	}
	if s.lost() {
		return false, 0, nil
	}
	started := all(s.replicaNames())
	limit := time.Minute // for the reports to come in
	for i, step := range s.system.Steps {
		limit += step.Timeout.OrZero() + 10*time.Second
		r.direct(s, stage{started: started, steps: i + 1})
		if waiting := s.stepState(step); waiting != "" || s.outcomeKnown() {
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
func (s *scope) stepState(step v1alpha1.Step) string {
	for _, name := range s.everyName() {
		if _, here := s.rendered.pods[name].Steps[step.Name]; !here {
			continue
		}
		result := s.report(name).Command(step.Name)
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

// lost gives the trial up when a pod of it is gone: pods are never replaced behind a trial's back.
func (s *scope) lost() bool {
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

// trouble looks for what ends a trial before its run: a replica that ended, and what ends it at any
// time.
func (r *Reconciler) trouble(s *scope) (reason, message string) {
	for _, name := range s.replicaNames() {
		if v := s.replicaEnded(name); !v.Counts() {
			return v.Reason, v.Message
		}
	}
	return r.disorder(s)
}

// replicaEnded judges whether a replica's process ended though no fault killed it. Whether an exit
// after the window matters depends on when the clients ended, which is not known yet.
func (s *scope) replicaEnded(name string) verdict.Verdict {
	if rep := s.report(name); rep != nil && !s.line.Leaving[name] {
		return verdict.ReplicaExit(name, rep, s.trial.Spec.Schedule.Measure.OrZero())
	}
	return verdict.Verdict{}
}

// endedEarly says which replica or client of some pods ended by itself in the run. That is an
// outcome: the run goes on and is judged with its numbers, unless these cannot be had.
func (s *scope) endedEarly(pods ...string) verdict.Verdict {
	spec, clients := s.judgedSpec(), map[string]bool{}
	for _, name := range s.clientNames() {
		clients[name] = true
	}
	for _, name := range pods {
		v := verdict.Verdict{}
		if clients[name] {
			v = verdict.ClientEnd(spec, name, s.report(name))
		} else {
			v = s.replicaEnded(name)
		}
		if !v.Counts() {
			return v
		}
	}
	return verdict.Verdict{}
}

// disorder looks for what ends a trial at any time: a container that the kubelet restarted, an
// agent that cannot go on, links that are not as asked any more.
func (r *Reconciler) disorder(s *scope) (reason, message string) {
	for _, name := range s.everyName() {
		p := s.pods[name]
		switch {
		case p == nil || objects.Restarts(p) <= s.expectedRestarts(name):
		case objects.OutOfMemory(p) != "":
			return v1alpha1.ReasonOutOfMemory, fmt.Sprintf("Container %s of %s exceeded its memory limit and was killed.", objects.OutOfMemory(p), name)
		default:
			return v1alpha1.ReasonPodRestarted, fmt.Sprintf("The kubelet restarted a container of %s.", name)
		}
	}
	if name, failed := s.agentFailure(); failed != "" {
		if v := s.endedEarly(name); !v.Counts() { // its process left nothing that it could read
			return v.Reason, v.Message
		}
		return v1alpha1.ReasonFailed, failed
	}
	for _, name := range s.everyName() {
		if n := s.networkOf(name); n != nil && n.Lost != "" {
			return v1alpha1.ReasonNetworkLost, verdict.LinksLost(name, n)
		}
	}
	return "", ""
}
