package trial

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/node/protocol"
)

// A manager that takes over during a run, and finds the prepare step's Secret lost, does not know
// the plan of the faults. Such a trial once counted, although its fault had failed.
func TestARunWhosePlanIsLostDoesNotCount(t *testing.T) {
	p := newPlay(t, func(s *v1alpha1.SystemSpec) {
		s.Prepare = &v1alpha1.PrepareStep{Container: v1alpha1.Container{Name: "keys", Image: "i", Command: []string{"/keys"}}, OutputPath: "/keys", Timeout: "10s"}
	})
	p.deployed()
	p.settle(false)
	store := &storage.Store{Client: p.env.Client, Reader: p.env.Client}
	if err := store.StorePrepared(t.Context(), p.agents.registered[p.layout().PrepareJob()], tarball(t, map[string]string{"0.priv": "k"}), func() {}); err != nil {
		t.Fatal(err)
	}
	p.settle(true)
	if p.trial().Status.ZeroUnixNanos == 0 {
		t.Fatalf("not released: %s", p.conditions())
	}
	p.newReconciler()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: p.layout().PreparedSecret()}}
	if err := p.env.Client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.reconcile()
	p.measured(1000, 0)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialValid); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonRunLost {
		t.Errorf("Valid is %s %s: %s; want False %s", c.Status, c.Reason, c.Message, v1alpha1.ReasonRunLost)
	}
}

// While the cluster ends an evicted replica, its agent reports that the launcher holds it on
// request, as in a planned kill. Such a trial once counted with a dead replica.
func TestAnEvictedReplicaDoesNotCount(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	name := p.layout().Servers[0].Name
	pod := &corev1.Pod{}
	if err := p.env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	pod.Finalizers = []string{"assay.dev/test"} // keeps the pod, like the kubelet
	if err := p.env.Client.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pod.Finalizers = nil
		_ = p.env.Client.Update(t.Context(), pod) // if the test went well, the pod is gone already
	})
	if err := p.env.Client.Delete(t.Context(), pod); err != nil { // like the eviction API
		t.Fatal(err)
	}
	p.agents.reports[name].Containers = []protocol.ContainerState{{Name: "replica", State: protocol.StateHeld, ExitCode: 137, Expected: true, Starts: 1, Exited: 19 * time.Second}}
	p.measured(1000, 0)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialValid); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonRunLost {
		t.Errorf("Valid is %s %s: %s; want False %s", c.Status, c.Reason, c.Message, v1alpha1.ReasonRunLost)
	}
}
