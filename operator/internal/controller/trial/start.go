package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/objects"
	"assay.dev/assay/operator/internal/controller/trial/startup"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/validity"
)

// start starts the components and the replicas, in their order, and waits until all are ready.
func (r *Reconciler) start(_ context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialStarted) {
		return true, 0, nil
	}
	if s.lost() {
		return false, 0, nil
	}
	order := startup.OrderOf(s.system, s.layout.GroupPods)
	started, waiting := order.Started(s.report)
	r.direct(s, stage{started: started, load: s.loadsEarly()})
	if reason, why := r.trouble(s); why != "" {
		s.giveUp(reason, "%s", why)
		return false, 0, nil
	}
	if waiting != "" {
		return s.wait(v1alpha1.TrialStarted, v1alpha1.ReasonReplicasStarting, waiting, s.trial.Status.Times.Proven, order.Limit())
	}
	s.done(v1alpha1.TrialStarted, v1alpha1.ReasonReady, "Every replica and component is ready.", &s.trial.Status.Times.Started)
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
	for i, step := range s.system.Steps {
		r.direct(s, stage{started: all(s.serverNames()), steps: i + 1})
		waiting, failed := startup.Step(step, s.running(step), s.report)
		if failed != "" {
			s.giveUp(v1alpha1.ReasonStepFailed, "%s", failed)
			return false, 0, nil
		}
		if waiting != "" {
			return s.wait(v1alpha1.TrialLoaded, v1alpha1.ReasonStepsRunning, waiting, s.trial.Status.Times.Started, startup.StepsLimit(s.system.Steps[:i+1]))
		}
	}
	if scraped, after, err := r.scraped(ctx, s); err != nil || !scraped {
		return false, after, err
	}
	s.done(v1alpha1.TrialLoaded, v1alpha1.ReasonReady, "Every step is done.", &s.trial.Status.Times.Loaded)
	return true, 0, nil
}

// running are the pods that run a step.
func (s *scope) running(step v1alpha1.Step) []string {
	return slices.DeleteFunc(s.everyName(), func(name string) bool {
		_, here := s.rendered.pods[name].Steps[step.Name]
		return !here
	})
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

// trouble looks for what ends a trial before its run: a replica or component that ended, and what
// ends it at any time.
func (r *Reconciler) trouble(s *scope) (reason, message string) {
	for _, name := range s.serverNames() {
		if v := s.replicaEnded(name); !v.OK() {
			return v.Reason, v.Message
		}
	}
	return r.disorder(s)
}

// replicaEnded judges whether a process of a replica or component ended though no fault killed it.
// Whether an exit after the window matters depends on when the clients ended, which is not known
// yet.
func (s *scope) replicaEnded(name string) validity.Failure {
	if rep := s.report(name); rep != nil && !s.line.Leaving[name] {
		return validity.ReplicaExit(name, rep, s.trial.Spec.Schedule.Measure.OrZero())
	}
	return validity.Failure{}
}

// endedEarly says which replica or client of some pods ended by itself in the run. That is an
// outcome: the run goes on and is judged with its numbers, unless these cannot be had.
func (s *scope) endedEarly(pods ...string) validity.Failure {
	spec, clients := s.judgedSpec(), map[string]bool{}
	for _, name := range s.clientNames() {
		clients[name] = true
	}
	for _, name := range pods {
		v := validity.Failure{}
		if clients[name] {
			v = validity.ClientEnd(spec, name, s.report(name))
		} else {
			v = s.replicaEnded(name)
		}
		if !v.OK() {
			return v
		}
	}
	return validity.Failure{}
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
		if v := s.endedEarly(name); !v.OK() { // its process left nothing that it could read
			return v.Reason, v.Message
		}
		return v1alpha1.ReasonFailed, failed
	}
	for _, name := range s.everyName() {
		if n := s.networkOf(name); n != nil && n.Lost != "" {
			return v1alpha1.ReasonNetworkLost, validity.LinksLost(name, n)
		}
	}
	return "", ""
}
