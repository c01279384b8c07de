package trial

import (
	"context"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Each look at a trial once read the StatefulSet or Job of each of its pods, twice.
func TestALookReadsTheOwnerOfManyPodsOnce(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	reads := map[string]int{}
	p.r.Client = interceptor.NewClient(p.env.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			switch o.(type) {
			case *appsv1.StatefulSet, *batchv1.Job:
				reads[key.Name]++
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	if _, err := p.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: p.key}); err != nil {
		t.Fatal(err)
	}
	l := p.layout()
	if l.Sets[0].Replicas < 3 || len(reads) != len(l.Sets)+len(l.ClientSets) {
		t.Fatalf("of %d sets and %d Jobs, %v were read", len(l.Sets), len(l.ClientSets), reads)
	}
	for name, n := range reads {
		if n > 2 { // once to find the pods, once to find out whose agents may report
			t.Errorf("%s is read %d times", name, n)
		}
	}
}

// Pods were once deleted one after the other, by a call each. To delete the trial's ConfigMaps, the
// manager read all their contents.
func TestPodsAreDeletedAtOnce(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	all := len(p.layout().Servers) + len(p.layout().Clients)
	var mu sync.Mutex
	there, full := 0, make(chan struct{})
	p.r.AtOnce = all
	p.r.Client = interceptor.NewClient(p.env.Client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			switch o.(type) {
			case *appsv1.StatefulSet, *batchv1.Job:
				return nil // their pods would be deleted with them
			case *corev1.Pod:
				mu.Lock()
				if there++; there == all {
					close(full)
				}
				mu.Unlock()
				select {
				case <-full:
				case <-time.After(10 * time.Second):
					t.Errorf("a pod is deleted while fewer than %d are", all)
				}
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	p.r.Reader = interceptor.NewClient(p.env.Client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, whole := l.(*corev1.ConfigMapList); whole {
				t.Error("ConfigMaps are listed with their contents")
			}
			return c.List(ctx, l, opts...)
		},
	})
	if _, err := p.r.deleteAll(t.Context(), p.key); err != nil {
		t.Fatal(err)
	}
	if there != all {
		t.Errorf("%d pods of %d were deleted", there, all)
	}
}
