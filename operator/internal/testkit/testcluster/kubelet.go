package testcluster

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Node makes a node of a pool that takes pods, until the test ends.
func Node(t testing.TB, c client.Client, name, pool string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelPool: pool}}}
	if err := c.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), node) })
	node.Spec.Taints = nil // the API server taints a node as not-ready until a kubelet removes the taint
	if err := c.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// PodOf makes the pod of a Job, in a state that a kubelet reports.
func PodOf(t testing.TB, c client.Client, job *batchv1.Job, status corev1.PodStatus) *corev1.Pod {
	t.Helper()
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: job.Name + "-x", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes}},
	}, Spec: *job.Spec.Template.Spec.DeepCopy()}
	for name, value := range job.Spec.Template.Labels {
		pod.Labels[name] = value
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = status
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// EndJob ends a Job as Kubernetes' controller does: how is JobComplete or JobFailed.
func EndJob(t testing.TB, c client.Client, job *batchv1.Job, how batchv1.JobConditionType, message string, at time.Time) {
	t.Helper()
	now := metav1.NewTime(at)
	first := batchv1.JobSuccessCriteriaMet
	if how == batchv1.JobFailed {
		first = batchv1.JobFailureTarget
	} else {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	job.Status.StartTime = &now
	for _, condition := range []batchv1.JobConditionType{first, how} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: condition, Status: corev1.ConditionTrue, Reason: "Test", Message: message, LastTransitionTime: now, LastProbeTime: now,
		})
	}
	if err := c.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
}
