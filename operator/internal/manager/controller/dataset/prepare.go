package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/nodes"
	datasets "assay.dev/assay/operator/internal/node/dataset"
	"assay.dev/assay/operator/internal/text/few"
)

// prepare brings the data to the nodes that need it. It returns how soon to look again; 0: there is
// nothing to wait for.
func (r *Reconciler) prepare(ctx context.Context, s *scope) (time.Duration, error) {
	missing := s.missing()
	if len(missing) == 0 {
		if len(s.d.Status.Nodes) > 0 {
			format := "%d bytes in %d files are on %s."
			if s.d.Spec.Recipe.PerNode() {
				format = "Up to %d bytes in up to %d files are on %s; each node has bytes of its own."
			}
			s.set(metav1.ConditionTrue, v1alpha1.ReasonPrepared, format, s.d.Status.Bytes, s.d.Status.Files, nodesText(s.d))
		}
		return 0, nil
	}
	c := meta.FindStatusCondition(s.d.Status.Conditions, v1alpha1.DatasetReady)
	broken := c != nil && failed(c) && c.Reason != v1alpha1.ReasonNoClaim
	if broken && c.ObservedGeneration == s.d.Generation {
		return 0, nil // until the spec changes
	}
	if problem, err := r.claimed(ctx, s.d.Namespace); err != nil || problem != "" {
		if err == nil {
			s.set(metav1.ConditionFalse, v1alpha1.ReasonNoClaim, "%s", problem)
		}
		return claimPoll, err
	}
	if broken {
		if cleared, err := r.clear(ctx, s.d); err != nil || !cleared {
			return jobPoll, err
		}
	}
	return r.onNodes(ctx, s, missing)
}

// missing returns the ready nodes that need the data and do not have it. While no node has the
// data, it returns only one.
func (s *scope) missing() (missing []string) {
	for _, n := range s.d.Spec.Nodes {
		if s.nodes[n] != nil && !has(s.d, n) {
			missing = append(missing, n)
		}
	}
	slices.Sort(missing)
	if len(s.d.Status.Nodes) == 0 && len(missing) > 1 {
		missing = missing[:1]
	}
	return missing
}

// clear deletes the Jobs of a failed attempt, and reports whether they are gone.
func (r *Reconciler) clear(ctx context.Context, d *v1alpha1.Dataset) (bool, error) {
	list := &batchv1.JobList{}
	if err := r.Reader.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{v1alpha1.LabelDataset: d.Name}); err != nil {
		return false, wrap("list the Jobs of the data set", err)
	}
	gone := true
	for i := range list.Items {
		job := &list.Items[i]
		if ended, well, _ := nodes.Over(job); ended && well || !metav1.IsControlledBy(job, d) {
			continue
		}
		gone = false
		if !job.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, job, client.PropagationPolicy("Foreground")); client.IgnoreNotFound(err) != nil {
			return false, wrap("delete a Job that failed", err)
		}
	}
	return gone, nil
}

// onNodes makes the Jobs, and records the finished ones.
func (r *Reconciler) onNodes(ctx context.Context, s *scope, missing []string) (time.Duration, error) {
	var waiting []string
	held := ""
	for _, node := range missing {
		job, leaving, err := r.jobOf(ctx, s.d, "prepare", node)
		switch {
		case err != nil:
			return 0, err
		case job == nil:
			if err := r.create(ctx, s.d, render.DatasetJob(s.d, node, r.Environment)); err != nil {
				return 0, err
			}
			waiting = append(waiting, node)
			continue
		case leaving:
			waiting = append(waiting, node)
			continue
		}
		pod, err := r.podOf(ctx, job)
		if err != nil {
			return 0, err
		}
		ended, well, message := nodes.Over(job)
		if !ended {
			waiting = append(waiting, node)
			if why := nodes.Held(pod); why != "" && held == "" {
				held = fmt.Sprintf(" Node %s waits%s.", node, strings.TrimSuffix(why, "."))
			}
			continue
		}
		if !s.note(node, pod, well, message) {
			return 0, nil
		}
	}
	if len(waiting) > 0 {
		s.set(metav1.ConditionFalse, v1alpha1.ReasonPreparing, "The recipe runs, or its data is being kept, on %s; it has %s.%s", few.Names(waiting), s.d.Spec.Timeout, held)
		return jobPoll, nil
	}
	if len(s.missing()) > 0 { // one node has the data now, so go on with the others
		s.set(metav1.ConditionFalse, v1alpha1.ReasonPreparing, "One node has the data; the others are next.")
		return time.Millisecond, nil
	}
	return r.prepare(ctx, s)
}

// note records the outcome of a Job. It returns false if the data set has failed.
func (s *scope) note(node string, pod *corev1.Pod, well bool, message string) bool {
	var kept datasets.Kept
	keep := ended(pod, render.DatasetKeepContainer)
	if !well || keep == nil || json.Unmarshal([]byte(keep.Message), &kept) != nil || kept.Digest == "" {
		reason, why := why(node, pod, message)
		s.set(metav1.ConditionFalse, reason, "%s", why)
		return false
	}
	st := &s.d.Status
	perNode := s.d.Spec.Recipe.PerNode()
	if !perNode && st.Digest != "" && (st.Digest != kept.Digest || st.Bytes != kept.Bytes) {
		s.set(metav1.ConditionFalse, v1alpha1.ReasonNotIdentical,
			"The recipe made other bytes on node %s (%s) than on node %s (%s). Have it make the same each time: no clock, no random number without a seed, no order of a hash. Or say bytes: PerNode in the System, if the data means the same on each node.",
			node, kept.Digest, st.Nodes[0].Name, st.Digest)
		return false
	}
	st.Bytes, st.Files = max(st.Bytes, kept.Bytes), max(st.Files, kept.Files)
	done := v1alpha1.DatasetNode{Name: node, PreparedAt: keep.FinishedAt, KeepMilliseconds: kept.Milliseconds}
	if perNode {
		done.Digest = kept.Digest
	} else {
		st.Digest = kept.Digest
	}
	if recipe := ended(pod, render.DatasetRecipeContainer); recipe != nil {
		done.RecipeSeconds = int64(recipe.FinishedAt.Sub(recipe.StartedAt.Time).Seconds())
	}
	st.Nodes = append(st.Nodes, done)
	return true
}

// podOf returns the pod of a Job. It returns nil if the pod is gone, or was never made.
func (r *Reconciler) podOf(ctx context.Context, job *batchv1.Job) (*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.Reader.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return nil, wrap("list the pods of a Job", err)
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], job) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// ended returns how a container of a pod ended, or nil if it has not.
func ended(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	if pod == nil {
		return nil
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.Name == container {
			return c.State.Terminated
		}
	}
	return nil
}

// why says why a Job failed, in a sentence with the last lines of its output.
func why(node string, pod *corev1.Pod, message string) (reason, text string) {
	reason = v1alpha1.ReasonRecipeFailed
	recipe, keep := ended(pod, render.DatasetRecipeContainer), ended(pod, render.DatasetKeepContainer)
	again := " It is tried again when this Dataset is deleted."
	switch {
	case pod == nil:
		return reason, fmt.Sprintf("Node %s: there is no pod of the Job: %s.%s", node, strings.TrimSuffix(message, "."), again)
	case pod.Status.Reason != "": // DeadlineExceeded, Evicted
		text = fmt.Sprintf("Node %s: the pod ended as %s: %s.", node, pod.Status.Reason, strings.TrimSuffix(pod.Status.Message, "."))
	case recipe != nil && recipe.ExitCode != 0:
		text = fmt.Sprintf("Node %s: the recipe failed with exit code %d (%s).", node, recipe.ExitCode, recipe.Reason)
	case keep != nil && keep.ExitCode != 0:
		if strings.Contains(keep.Message, datasets.ErrNotIdentical.Error()) {
			reason = v1alpha1.ReasonNotIdentical
		}
		return reason, fmt.Sprintf("Node %s: what the recipe made cannot be kept: %s.%s", node, strings.TrimSpace(keep.Message), again)
	default:
		text = fmt.Sprintf("Node %s: the pod has not run: %s%s.", node, strings.TrimSuffix(message, "."), nodes.Held(pod))
	}
	if recipe != nil && recipe.Message != "" {
		text += " It printed last:\n" + strings.TrimSpace(recipe.Message) + "\n"
	}
	return reason, text + again
}

func nodesText(d *v1alpha1.Dataset) string {
	var names []string
	for _, n := range d.Status.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return few.Names(names)
}
