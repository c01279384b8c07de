package trial

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/controller/trial/audit"
	"assay.dev/assay/operator/internal/controller/trial/chaos"
	"assay.dev/assay/operator/internal/controller/trial/machines"
	"assay.dev/assay/operator/internal/fault"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/validity"
)

// chaosMesh gives a trial up before anything is made for it when the cluster cannot carry out a
// fault of Chaos Mesh's.
func (r *Reconciler) chaosMesh(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialDeployed) {
		return true, 0, nil
	}
	return r.chaosMeshServed(ctx, s)
}

// chaosMeshServed is asked again right before t = 0 is agreed.
func (r *Reconciler) chaosMeshServed(ctx context.Context, s *scope) (bool, time.Duration, error) {
	why, err := r.chaos().Refusal(ctx, s.trial)
	if why != "" {
		s.giveUp(v1alpha1.ReasonChaosMeshMissing, "%s", why)
	}
	return err == nil && why == "", 0, err
}

// chaos carries out the faults that Chaos Mesh does.
func (r *Reconciler) chaos() *chaos.Executor {
	return &chaos.Executor{Client: r.Client, Reader: r.Reader, Clock: r.Clock, Recorder: r.Recorder}
}

// chaosMemory is what the executor keeps of a trial. No two reconciles of a trial run at once.
func (r *Reconciler) chaosMemory(trial *v1alpha1.Trial) (kept *chaos.Memory) {
	r.remember(trial, func(m *memo) { kept = &m.chaos })
	return kept
}

// chaosRun is the trial as the executor sees it. When a fault happens, and to whom, follows from
// the trial's spec and layout, so that it is known while a pod has no address. A plan of faults
// that cannot be made has none: such a trial is given up when it is rendered, before anything
// happens.
func (r *Reconciler) chaosRun(s *scope) *chaos.Run {
	c := &chaos.Run{Trial: s.trial, System: s.system, Layout: s.layout, Pods: s.pods, Memory: r.chaosMemory(s.trial)}
	if r.remember(s.trial, func(m *memo) { c.Occurrences = m.occurrences }); c.Occurrences != nil {
		return c
	}
	all, err := fault.Occurrences(s.trial.Spec.Faults, timeline.FromSchedule(s.trial.Spec.Schedule), s.layout)
	if err != nil {
		return c
	}
	c.Occurrences = all
	r.remember(s.trial, func(m *memo) { m.occurrences = all })
	return c
}

// machinesTimeout is how long the pods that reset machines may take to run: their image is on the
// node already, as the agents'.
const machinesTimeout = 2 * time.Minute

func (r *Reconciler) resetter() *machines.Resetter {
	return &machines.Resetter{Client: r.Client, Reader: r.Reader, Environment: r.environment()}
}

// resets of machines that the trial's faults want. Which nodes these are is known when the pods
// run.
func (s *scope) resets() machines.Resets { return machines.ResetsOf(s.actions(), s.pods) }

// onResetMachine reports whether a pod shares the fate of a machine that is reset, target or not.
func (s *scope) onResetMachine(pod string) bool { return s.resets().Hits(s.pods[pod]) }

// expectedRestarts of a pod's containers until now: each once for each time that its machine was
// reset, and what other faults restart.
func (s *scope) expectedRestarts(pod string) int32 {
	p := s.pods[pod]
	if p == nil || s.trial.Status.ZeroUnixNanos == 0 {
		return 0
	}
	past := s.resets().Past(p.Spec.NodeName, s.now.Sub(s.zero()))
	return int32(past*(len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses))) + s.line.PlannedRestarts(p, pod)
}

// machines makes a pod on each node that will be reset, and waits until it is ready to. Whether the
// node may be reset is asked first.
func (r *Reconciler) machines(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialStarted) || !fault.ResetsMachines(s.trial.Spec.Faults) {
		return true, 0, nil
	}
	if s.refuted(validity.Deployed) {
		return false, 0, nil
	}
	if err := r.refuseMachines(ctx, s); err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	switch refusal, err := r.resetter().Create(ctx, s.trial, s.resets().Nodes()); {
	case err != nil:
		return false, 0, err
	case refusal != "":
		s.giveUp(v1alpha1.ReasonMachineRefused, "%s", refusal)
		return false, 0, nil
	}
	return r.awaitMachines(s, v1alpha1.TrialStarted, s.trial.Status.Times.Proven, machinesTimeout)
}

// machinesReady is asked last before t = 0 is agreed: other people's pods may have come in the
// meantime.
func (r *Reconciler) machinesReady(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if !fault.ResetsMachines(s.trial.Spec.Faults) {
		return true, 0, nil
	}
	if err := r.refuseMachines(ctx, s); err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	return r.awaitMachines(s, v1alpha1.TrialRunning, s.trial.Status.Times.Loaded, s.barrierLimit())
}

// refuseMachines gives the trial up when one of the nodes may not be reset.
func (r *Reconciler) refuseMachines(ctx context.Context, s *scope) error {
	why, err := r.resetter().Refusal(ctx, s.trial, s.resets())
	if why != "" {
		s.giveUp(v1alpha1.ReasonMachineRefused, "%s", why)
	}
	return err
}

// awaitMachines waits for the agents that reset machines.
func (r *Reconciler) awaitMachines(s *scope, condition string, since *metav1.MicroTime, limit time.Duration) (bool, time.Duration, error) {
	r.directMachines(s, stage{})
	for _, node := range s.resets().Nodes() {
		rep := s.report(render.MachineAgent(node))
		if rep != nil && rep.Failure != "" {
			s.giveUp(v1alpha1.ReasonFailed, "The agent that would reset node %s cannot go on: %s", node, rep.Failure)
			return false, 0, nil
		}
		if rep == nil || !rep.Ready {
			return s.wait(condition, v1alpha1.ReasonMachinesPending,
				fmt.Sprintf("waiting for the pod in namespace %s that will reset node %s", r.Environment.Namespace, node), since, limit)
		}
	}
	return true, 0, nil
}

// directMachines tells the agents that reset machines what to do.
func (r *Reconciler) directMachines(s *scope, st stage) {
	for node, actions := range s.resets() {
		d := protocol.Directive{Machine: &protocol.Machine{Node: node}, Finish: st.finish}
		if st.zero != 0 {
			d.Run = &protocol.Run{ZeroUnixNanos: st.zero, Windows: timeline.FromSchedule(s.trial.Spec.Schedule), Actions: actions}
		}
		r.Coordinator.Direct(s.key, render.MachineAgent(node), d, nil)
	}
}

// recordOf is what became of an action: a reset is told by the agent of the machine, what Chaos
// Mesh does is seen by the manager, everything else is told by the agent of the pod.
func (s *scope) recordOf(a timeline.Action) *protocol.ActionRecord {
	if a.Kind.ByChaosMesh() {
		return s.chaos.Record(a)
	}
	if p := s.pods[a.Pod]; a.Kind == timeline.Reset && p != nil {
		return s.report(render.MachineAgent(p.Spec.NodeName)).Action(a.ID)
	}
	return s.report(a.Pod).Action(a.ID)
}

// audit tells of what became of faults. over: nothing more will be told of them.
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
	audit.Teller{Client: r.Client, Recorder: r.Recorder}.Tell(ctx, audit.Run{Trial: s.trial, Actions: s.actions(), Record: s.recordOf, Now: s.now, Over: over, Told: told})
}
