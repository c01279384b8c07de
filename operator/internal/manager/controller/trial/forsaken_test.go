package trial

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/trial/objects"
)

// A node that died with a trial's pods once held the trial's pools forever: no kubelet confirms
// that such a pod is gone.
func TestADeadNodeHoldsNoTrial(t *testing.T) {
	for name, tc := range map[string]struct {
		ready corev1.ConditionStatus // condition of the node; empty: the node does not exist
		after time.Duration          // since the pods were deleted
		left  string
	}{
		"a node that does not answer":       {ready: corev1.ConditionUnknown, after: objects.DeadNodeGrace + time.Minute},
		"a node that is gone":               {after: objects.DeadNodeGrace + time.Minute},
		"not for long":                      {ready: corev1.ConditionUnknown, after: time.Minute, left: "1 of kind Pod"},
		"a node that answers, if only late": {ready: corev1.ConditionTrue, after: time.Hour, left: "1 of kind Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "dead-" + p.ns}}
			if tc.ready != "" {
				if err := p.env.Client.Create(t.Context(), node); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.env.Client.Delete(t.Context(), node) })
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tc.ready}}
				if err := p.env.Client.Status().Update(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
			grace := int64(1)
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "stuck", Labels: map[string]string{v1alpha1.LabelTrial: p.key.Name}},
				Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: &grace},
			}
			if err := p.env.Client.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if left, err := p.r.deleteAll(t.Context(), p.key); err != nil || left != "1 of kind Pod" {
				t.Fatalf("left over at first: %q, %v", left, err)
			}
			p.clock.SetTime(time.Now().Add(tc.after))
			left, err := p.r.deleteAll(t.Context(), p.key)
			if err != nil || left != tc.left {
				t.Errorf("left over: %q, %v; want %q", left, err, tc.left)
			}
			pods := &corev1.PodList{}
			if err := p.env.Client.List(t.Context(), pods, client.InNamespace(p.ns)); err != nil {
				t.Fatal(err)
			}
			stranded, err := p.r.objects().Stranded(t.Context(), pods.Items)
			if told := strings.Join(stranded, ", "); err != nil || (told == "stuck on "+node.Name) != (tc.left == "") {
				t.Errorf("stranded: %q, %v", told, err)
			}
		})
	}
}

// Kubernetes takes a moment to remove a pod whose containers have stopped. A trial that waited for
// that once held its pools for nothing.
func TestAnEndedPodHoldsNoTrial(t *testing.T) {
	for name, tc := range map[string]struct {
		phase   corev1.PodPhase
		deleted bool // deletion began before deleteAll
		left    string
	}{
		"runs, and is being deleted": {corev1.PodRunning, true, "1 of kind Pod"},
		"has ended well":             {corev1.PodSucceeded, true, ""},
		"has failed":                 {corev1.PodFailed, true, ""},
		"ended, and no controller deletes it: deleteAll does": {corev1.PodSucceeded, false, "1 of kind Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil)
			grace := int64(30)
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "ends", Labels: map[string]string{v1alpha1.LabelTrial: p.key.Name}},
				Spec:       corev1.PodSpec{NodeName: "n-" + p.ns, Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: &grace},
			}
			if err := p.env.Client.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if tc.deleted {
				if err := p.env.Client.Delete(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				if err := p.env.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
					t.Fatal(err)
				}
			}
			pod.Status.Phase = tc.phase
			if err := p.env.Client.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if left, err := p.r.deleteAll(t.Context(), p.key); err != nil || left != tc.left {
				t.Errorf("left over: %q, %v; want %q", left, err, tc.left)
			}
		})
	}
}
