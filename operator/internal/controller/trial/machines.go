package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/coordinator"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/timeline"
)

// machinesTimeout is how long the pods that reset machines may take to run: their image is on the node already, as the agents'.
const machinesTimeout = 2 * time.Minute

// labelControlPlane is on the nodes that run the cluster itself.
const labelControlPlane = "node-role.kubernetes.io/control-plane"

// resetsMachines reports whether a trial's faults reset nodes.
func resetsMachines(spec *v1alpha1.TrialSpec) bool {
	return slices.ContainsFunc(spec.Faults, func(f v1alpha1.Fault) bool { return f.NodeKill != nil && f.NodeKill.Mode == v1alpha1.KillMachine })
}

// resets are the actions that reset a node, by node. Which nodes these are is known when the pods run: pods stay where they are.
func (s *scope) resets() map[string][]timeline.Action {
	byNode := map[string][]timeline.Action{}
	if !resetsMachines(&s.trial.Spec) {
		return byNode
	}
	for _, a := range s.actions() {
		if p := s.pods[a.Pod]; a.Kind == timeline.Reset && p != nil {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], a)
		}
	}
	return byNode
}

// resetNodes are the nodes of resets, in order.
func (s *scope) resetNodes() []string { return slices.Sorted(maps.Keys(s.resets())) }

// onResetMachine reports whether a pod shares the fate of a machine that is reset, target or not.
func (s *scope) onResetMachine(pod string) bool {
	p := s.pods[pod]
	return p != nil && p.Spec.NodeName != "" && len(s.resets()[p.Spec.NodeName]) > 0
}

// expectedRestarts of a pod's containers until now: each once for each time that its machine was reset, and what other faults restart.
func (s *scope) expectedRestarts(pod string) int32 {
	p := s.pods[pod]
	if p == nil || s.trial.Status.ZeroUnixNanos == 0 {
		return 0
	}
	past := map[time.Duration]bool{} // two faults, or two targets, may mean one reset
	for _, a := range s.resets()[p.Spec.NodeName] {
		if !s.zero().Add(a.At).After(s.now) {
			past[a.At] = true
		}
	}
	return int32(len(past)*(len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses))) + s.plannedRestarts(p, pod)
}

// machines makes a pod on each node that will be reset, and waits until it is ready to. Whether the node may be reset is asked first.
func (r *Reconciler) machines(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialStarted) || !resetsMachines(&s.trial.Spec) {
		return true, 0, nil
	}
	if r.lost(s) {
		return false, 0, nil
	}
	if err := r.refuseMachines(ctx, s); err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	for _, node := range s.resetNodes() {
		pod := render.MachinePod(s.key, s.trial.UID, node, r.environment())
		switch err := r.Client.Create(ctx, pod); {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			s.giveUp(v1alpha1.ReasonMachineRefused, "The cluster refuses the pod that would reset node %s: %s", node, err)
			return false, 0, nil
		case err != nil && !apierrors.IsAlreadyExists(err):
			return false, 0, fmt.Errorf("create Pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return r.awaitMachines(s, v1alpha1.TrialStarted, s.trial.Status.Times.Proven, machinesTimeout)
}

// machinesReady is asked last before t = 0 is agreed: other people's pods may have come in the meantime.
func (r *Reconciler) machinesReady(ctx context.Context, s *scope) (bool, time.Duration, error) {
	if !resetsMachines(&s.trial.Spec) {
		return true, 0, nil
	}
	if err := r.refuseMachines(ctx, s); err != nil || s.outcomeKnown() {
		return false, 0, err
	}
	return r.awaitMachines(s, v1alpha1.TrialRunning, s.trial.Status.Times.Loaded, s.barrierLimit())
}

// awaitMachines waits for the agents that reset machines.
func (r *Reconciler) awaitMachines(s *scope, condition string, since *metav1.MicroTime, limit time.Duration) (bool, time.Duration, error) {
	r.directMachines(s, stage{})
	for _, node := range s.resetNodes() {
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

// refuseMachines gives the trial up when one of the nodes may not be reset.
func (r *Reconciler) refuseMachines(ctx context.Context, s *scope) error {
	if r.Environment.Namespace == "" {
		s.giveUp(v1alpha1.ReasonMachineRefused, "A fault resets machines, and this manager may not: it is installed for some namespaces only, or was started without --namespace.")
		return nil
	}
	for _, node := range s.resetNodes() {
		why, err := r.refusal(ctx, s, node)
		if err != nil {
			return err
		}
		if why != "" {
			s.giveUp(v1alpha1.ReasonMachineRefused, "Fault %s would reset node %s, %s.", s.resets()[node][0].Fault, node, why)
			return nil
		}
	}
	return nil
}

// refusal says why a node may not be reset, or nothing. It is read past the cache, which holds no nodes and only the pods of trials.
func (r *Reconciler) refusal(ctx context.Context, s *scope, name string) (string, error) {
	node := &corev1.Node{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return "", fmt.Errorf("read Node %s: %w", name, err)
	}
	if node.Annotations[v1alpha1.AnnotationAllowMachineFaults] != "true" {
		return fmt.Sprintf("which does not allow it; its owner may: kubectl annotate node %s %s=true", name, v1alpha1.AnnotationAllowMachineFaults), nil
	}
	if _, here := node.Labels[labelControlPlane]; here {
		return "which runs the cluster's control plane", nil
	}
	list := &corev1.PodList{}
	if err := r.Reader.List(ctx, list, client.MatchingFields{"spec.nodeName": name}); err != nil {
		return "", fmt.Errorf("list the pods on node %s: %w", name, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	for i := range list.Items {
		if why := s.inTheWay(&list.Items[i], r.Environment.Namespace); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// inTheWay says why a pod must not go down with its node, or nothing. manager is the manager's namespace.
func (s *scope) inTheWay(p *corev1.Pod, manager string) string {
	owner := metav1.GetControllerOf(p)
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return ""
	case p.Labels[v1alpha1.LabelTrial] == s.key.Name && p.Namespace == s.key.Namespace:
		if p.Labels[v1alpha1.LabelPart] == v1alpha1.PartClient {
			return fmt.Sprintf("where the trial's client %s runs: what it measures would be lost; give clients a node of their own", p.Name)
		}
		return ""
	case p.Namespace == manager && p.Labels[v1alpha1.LabelTrial] == s.key.Name && p.Labels[v1alpha1.LabelTrialNamespace] == s.key.Namespace:
		return "" // the pod that resets it
	case owner != nil && owner.Kind == "DaemonSet":
		return "" // every node has it, and comes back with it
	default:
		return fmt.Sprintf("where pod %s/%s runs, which is no part of the trial", p.Namespace, p.Name)
	}
}

// machinePods lists the pods that reset machines for a trial.
func (r *Reconciler) machinePods(ctx context.Context, reader client.Reader, trial types.NamespacedName) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	if r.Environment.Namespace == "" {
		return list, nil
	}
	err := reader.List(ctx, list, client.InNamespace(r.Environment.Namespace), client.MatchingLabels(render.MachineLabels(trial)))
	return list, wrap("list the pods that reset machines", err)
}

// knownMachines are the pods that reset machines, as the coordinator knows pods.
func (r *Reconciler) knownMachines(ctx context.Context, s *scope) ([]coordinator.Pod, error) {
	if !resetsMachines(&s.trial.Spec) {
		return nil, nil
	}
	list, err := r.machinePods(ctx, r.Client, s.key)
	if err != nil {
		return nil, err
	}
	var known []coordinator.Pod
	for i := range list.Items {
		p := &list.Items[i]
		known = append(known, coordinator.Pod{UID: p.UID, Trial: s.key, Name: render.MachineAgent(p.Spec.NodeName)})
	}
	return known, nil
}

// recordOf is what became of an action: a reset is told by the agent of the machine, what Chaos Mesh does is seen by the manager, everything else is told by the
// agent of the pod.
func (s *scope) recordOf(a timeline.Action) *protocol.ActionRecord {
	if chaosMeshes(a) {
		return s.chaosActionRecord(a)
	}
	if p := s.pods[a.Pod]; a.Kind == timeline.Reset && p != nil {
		return actionRecord(s.report(render.MachineAgent(p.Spec.NodeName)), a.ID)
	}
	return actionRecord(s.report(a.Pod), a.ID)
}

// addressesKey of a trial's addresses ConfigMap holds the pods' addresses as JSON.
const addressesKey = "addresses.json"

// keepAddresses writes down what the trial was rendered with: a pod whose machine was reset, or that replaces another, has another address, and no file of a pod that
// lives on may change for that. A manager that takes over then must know the old ones, and who had them.
func (r *Reconciler) keepAddresses(ctx context.Context, s *scope) error {
	if !movesPods(&s.trial.Spec) {
		return nil
	}
	addresses := map[string]string{}
	for name, p := range s.pods {
		addresses[name] = p.Status.PodIP
	}
	content, err := json.Marshal(addresses)
	if err != nil {
		return fmt.Errorf("encode the pods' addresses: %w", err)
	}
	lines, err := encodeLines(s.firstLines())
	if err != nil {
		return err
	}
	return r.createOne(ctx, s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: s.layout.AddressesConfigMap(), Namespace: s.key.Namespace,
		Labels: map[string]string{v1alpha1.LabelTrial: s.key.Name, v1alpha1.LabelExperiment: s.trial.Spec.Experiment},
	}, Data: map[string]string{addressesKey: string(content), linesKey: lines}})
}

// addresses that the trial is rendered with, by pod: those of now, or, once a run that resets machines or replaces pods is released, those of then.
func (r *Reconciler) addresses(ctx context.Context, s *scope) (map[string]string, error) {
	addresses := map[string]string{}
	if s.trial.Status.ZeroUnixNanos == 0 || !movesPods(&s.trial.Spec) {
		for name, p := range s.pods {
			addresses[name] = p.Status.PodIP
		}
		return addresses, nil
	}
	kept, err := r.keptAddresses(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(kept.Data[addressesKey]), &addresses); err != nil {
		return nil, fmt.Errorf("read the addresses that the trial was released with: %w", err)
	}
	return addresses, nil
}
