package experiment_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

const imagesReady = v1alpha1.ExperimentImagesReady

// withImages is an experiment of two points whose images are pulled first. It has two nodes.
func withImages(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	for _, name := range []string{"a", "b"} {
		testcluster.Node(t, s.c, name+"-of-"+s.ns, s.ns)
	}
	s.create(builders.System("basil").Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) {
		e.Placement.Replicas, e.Placement.Clients, e.PrePull = s.ns, s.ns, &v1alpha1.PrePull{Timeout: "90s"}
	}).Obj())
	return s
}

// pulls returns the Jobs that pull images, by the first letter of their node.
func (s *stage) pulls() map[string]*batchv1.Job {
	s.t.Helper()
	list := &batchv1.JobList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{v1alpha1.LabelImages: "exp"}); err != nil {
		s.t.Fatal(err)
	}
	found := map[string]*batchv1.Job{}
	for i := range list.Items {
		if j := &list.Items[i]; j.DeletionTimestamp.IsZero() {
			found[j.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0][:1]] = j
		}
	}
	return found
}

// No trial is made, and none holds a pool, before all nodes have its images. The next trial with
// the same images does not wait. In the end no Job is left.
func TestATrialWaitsForItsImages(t *testing.T) {
	s := withImages(t)
	exp := s.settle()
	s.expect(exp, accepted, "True Valid")
	s.expect(exp, complete, "False PullingImages", "0 of 2 nodes", "a-of-"+s.ns)
	s.expect(exp, imagesReady, "False PullingImages")
	jobs := s.pulls()
	if len(jobs) != 2 || len(s.trials()) != 0 {
		t.Fatalf("there are %d Jobs and %d trials, want 2 and none", len(jobs), len(s.trials()))
	}
	if seconds := jobs["a"].Spec.Template.Spec.ActiveDeadlineSeconds; seconds == nil || *seconds != 90 {
		t.Errorf("a pod has %v seconds, want 90", seconds)
	}
	testcluster.PodOf(t, s.c, jobs["b"], corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "image-0", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "basil:1"`}},
	}}})
	testcluster.EndJob(t, s.c, jobs["a"], batchv1.JobComplete, "", s.clock.Now())
	exp = s.settle()
	s.expect(exp, complete, "False PullingImages", "1 of 2 nodes", "Missing on b-of-"+s.ns, "image-0: Back-off pulling image")
	testcluster.EndJob(t, s.c, jobs["b"], batchv1.JobComplete, "", s.clock.Now())
	exp = s.settle()
	s.expect(exp, imagesReady, "True Pulled", "all 2 nodes")
	s.expect(exp, complete, "False TrialsRunning")
	if n := len(s.trials()); n != 1 {
		t.Fatalf("%d trials, want 1", n)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	s.settle()
	if n := len(s.trials()); n != 2 {
		t.Fatalf("%d trials, want the second at once", n)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	s.expect(s.settle(), complete, "True AllTrialsValid")
	if left := s.pulls(); len(left) != 0 {
		t.Errorf("Jobs are left: %v", left)
	}
}

// If a node cannot get an image, the experiment ends and says why. It goes on when the Job is
// deleted.
func TestImagesThatCannotBePulledEndTheExperiment(t *testing.T) {
	s := withImages(t)
	s.settle()
	jobs := s.pulls()
	testcluster.EndJob(t, s.c, jobs["a"], batchv1.JobComplete, "", s.clock.Now())
	pod := testcluster.PodOf(t, s.c, jobs["b"], corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "image-0", Image: "basil:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}},
	}}})
	s.settle()
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: "Pod was active on the node longer than the specified deadline",
		ContainerStatuses: []corev1.ContainerStatus{{Name: "image-0", Image: "basil:1", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "exec format error", FinishedAt: metav1.Now(), StartedAt: metav1.Now()}}}}}
	if err := s.c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	testcluster.EndJob(t, s.c, jobs["b"], batchv1.JobFailed, "Job has reached the specified backoff limit", s.clock.Now())
	exp := s.settle()
	s.expect(exp, complete, "True ImagesFailed", "Node b-of-"+s.ns, "longer than the specified deadline", "basil:1 cannot run: StartError exec format error", "a pod waited: image-0: no such host", "when Job "+jobs["b"].Name+" is deleted")
	s.expect(exp, imagesReady, "False ImagesFailed")
	s.expect(s.settle(), complete, "True ImagesFailed", "no such host")
	if told := strings.Join(s.told(), "\n"); !strings.Contains(told, "Warning ImagesFailed") {
		t.Errorf("the events are %s", told)
	}
	if err := s.c.Delete(t.Context(), jobs["b"], client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	s.expect(s.settle(), complete, "False PullingImages", "1 of 2 nodes")
	testcluster.EndJob(t, s.c, s.pulls()["b"], batchv1.JobComplete, "", s.clock.Now())
	s.settle()
	if n := len(s.trials()); n != 1 {
		t.Errorf("%d trials, want 1", n)
	}
}

// If no node would take the pods, no Job and no trial is made. A node that arrives later is used.
func TestImagesWaitForANode(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) {
		e.Placement.Replicas, e.Placement.Clients, e.PrePull = s.ns, s.ns, &v1alpha1.PrePull{}
	}).Obj())
	s.expect(s.settle(), complete, "False PullingImages", "No node with the label assay.dev/pool="+s.ns+" is ready")
	if n := len(s.pulls()); n != 0 {
		t.Errorf("%d Jobs, want none", n)
	}
}
