// Package machines resets nodes when a trial's faults ask for it. The manager makes a pod of its
// own on each such node, and that pod resets the node at the planned instant; see
// render.MachinePod. Before making the pod, and again before agreeing on t = 0, it checks whether
// the node may be reset.
package machines

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/coordinator"
)

// Resetter makes the pods that reset machines.
type Resetter struct {
	Client client.Client
	// Reader bypasses the cache, which holds no nodes and only the pods of trials.
	Reader client.Reader
	// Environment describes the pods' surroundings. Without a Namespace in it the manager resets
	// nothing.
	Environment render.Environment
}

// LabelControlPlane marks the nodes that run the cluster itself.
const LabelControlPlane = "node-role.kubernetes.io/control-plane"

// Create makes a pod on each node that will be reset. The result refusal names the pod that the
// cluster refuses, and the reason.
func (x *Resetter) Create(ctx context.Context, trial *v1alpha1.Trial, nodes []string) (refusal string, err error) {
	for _, node := range nodes {
		pod := render.MachinePod(client.ObjectKeyFromObject(trial), trial.UID, node, x.Environment)
		switch err := x.Client.Create(ctx, pod); {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			return fmt.Sprintf("The cluster refuses the pod that would reset node %s: %s", node, err), nil
		case err != nil && !apierrors.IsAlreadyExists(err):
			return "", fmt.Errorf("create Pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return "", nil
}

// Refusal returns why one of the nodes may not be reset. Empty: all of them may.
func (x *Resetter) Refusal(ctx context.Context, trial *v1alpha1.Trial, resets engine.Resets) (string, error) {
	if x.Environment.Namespace == "" {
		return "A fault resets machines, and this manager may not: it is installed for some namespaces only, or was started without --namespace.", nil
	}
	for _, node := range resets.Nodes() {
		why, err := x.refusal(ctx, trial, node)
		if err != nil {
			return "", err
		}
		if why != "" {
			return fmt.Sprintf("Fault %s would reset node %s, %s.", resets[node][0].Fault, node, why), nil
		}
	}
	return "", nil
}

// refusal returns why a node may not be reset. Empty: it may.
func (x *Resetter) refusal(ctx context.Context, trial *v1alpha1.Trial, name string) (string, error) {
	node := &corev1.Node{}
	if err := x.Reader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return "", fmt.Errorf("read Node %s: %w", name, err)
	}
	if node.Annotations[v1alpha1.AnnotationAllowMachineFaults] != "true" {
		return fmt.Sprintf("which does not allow it; its owner may: kubectl annotate node %s %s=true", name, v1alpha1.AnnotationAllowMachineFaults), nil
	}
	if _, here := node.Labels[LabelControlPlane]; here {
		return "which runs the cluster's control plane", nil
	}
	list := &corev1.PodList{}
	if err := x.Reader.List(ctx, list, client.MatchingFields{"spec.nodeName": name}); err != nil {
		return "", fmt.Errorf("list the pods on node %s: %w", name, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	for i := range list.Items {
		if why := inTheWay(trial, &list.Items[i], x.Environment.Namespace); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// inTheWay returns why a pod must not go down with its node. Empty: it may. The argument manager is
// the manager's namespace.
func inTheWay(trial *v1alpha1.Trial, p *corev1.Pod, manager string) string {
	owner := metav1.GetControllerOf(p)
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return ""
	case p.Labels[v1alpha1.LabelTrial] == trial.Name && p.Namespace == trial.Namespace:
		if p.Labels[v1alpha1.LabelPodType] == v1alpha1.PodTypeClient {
			return fmt.Sprintf("where the trial's client %s runs: what it measures would be lost; give clients a node of their own", p.Name)
		}
		return ""
	case p.Namespace == manager && p.Labels[v1alpha1.LabelTrial] == trial.Name && p.Labels[v1alpha1.LabelTrialNamespace] == trial.Namespace:
		return "" // this pod resets the node
	case owner != nil && owner.Kind == "DaemonSet":
		return "" // every node has such a pod, which comes back with the node
	default:
		return fmt.Sprintf("where pod %s/%s runs, which is no part of the trial", p.Namespace, p.Name)
	}
}

// Pods lists the pods that reset machines for a trial. The argument reader either reads the cache
// or bypasses it.
func (x *Resetter) Pods(ctx context.Context, reader client.Reader, trial types.NamespacedName) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	if x.Environment.Namespace == "" {
		return list, nil
	}
	if err := reader.List(ctx, list, client.InNamespace(x.Environment.Namespace), client.MatchingLabels(render.MachineLabels(trial))); err != nil {
		return nil, fmt.Errorf("list the pods that reset machines: %w", err)
	}
	return list, nil
}

// Known returns the pods that reset machines, in the form that the coordinator registers.
func (x *Resetter) Known(ctx context.Context, trial *v1alpha1.Trial) ([]coordinator.Pod, error) {
	if !fault.ResetsMachines(trial.Spec.Faults) {
		return nil, nil
	}
	key := client.ObjectKeyFromObject(trial)
	list, err := x.Pods(ctx, x.Client, key)
	if err != nil {
		return nil, err
	}
	var known []coordinator.Pod
	for i := range list.Items {
		p := &list.Items[i]
		known = append(known, coordinator.Pod{UID: p.UID, Trial: key, Name: render.MachineAgent(p.Spec.NodeName)})
	}
	return known, nil
}
