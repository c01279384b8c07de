package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/text/few"
)

// DeadNodeGrace is how long a trial waits for a node that does not answer, after a pod's time to
// end is over. Kubernetes itself evicts pods from such nodes after five minutes.
const DeadNodeGrace = 5 * time.Minute

// Gone describes what is left of a trial that was cleaned up.
func (m Children) Gone(ctx context.Context, key types.NamespacedName) (string, error) {
	pods := &corev1.PodList{}
	if err := m.Reader.List(ctx, pods, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelTrial: key.Name}); err != nil {
		return "", fmt.Errorf("list the pods of the trial: %w", err)
	}
	stranded, err := m.Stranded(ctx, pods.Items)
	if err != nil || len(stranded) == 0 {
		return "Nothing of the trial runs any more, and only its results are left.", err
	}
	return fmt.Sprintf("Nothing of the trial is left but its results, and pods on nodes that do not answer: %s. They go when their node is back, or is deleted.",
		few.Names(stranded)), nil
}

// Stranded returns the trial's pods that have been in deletion for longer than DeadNodeGrace on
// nodes that do not answer. The kubelet there deletes them when it is back. No other program may,
// since their processes may still run. A trial does not hold its pools for them. Nothing is
// scheduled on such a node, so it runs no pod of another trial.
func (m Children) Stranded(ctx context.Context, pods []corev1.Pod) ([]string, error) {
	var names []string
	answers := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp == nil || p.Spec.NodeName == "" || validity.PodEnded(p) || m.overdue(p) < DeadNodeGrace {
			continue
		}
		ready, known := answers[p.Spec.NodeName]
		if !known {
			var err error
			if ready, err = m.answers(ctx, p.Spec.NodeName); err != nil {
				return nil, err
			}
			answers[p.Spec.NodeName] = ready
		}
		if !ready {
			names = append(names, fmt.Sprintf("%s on %s", p.Name, p.Spec.NodeName))
		}
	}
	slices.Sort(names)
	return names, nil
}

// overdue returns how long a pod in deletion has exceeded its time to end. The API server dates the
// end of that time, and its clock differs.
func (m Children) overdue(p *corev1.Pod) time.Duration {
	now, grace := m.Clock.Now(), time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0))*time.Second
	return now.Sub(m.Deletions.Date(p.UID, p.DeletionTimestamp.Add(-grace), now)) - grace
}

// answers reports whether a node's kubelet has reported lately.
func (m Children) answers(ctx context.Context, name string) (bool, error) {
	node := &corev1.Node{}
	err := m.Reader.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return false, nil // Kubernetes deletes the pods of removed nodes after a while
	}
	if err != nil {
		return false, fmt.Errorf("read node %s: %w", name, err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}
