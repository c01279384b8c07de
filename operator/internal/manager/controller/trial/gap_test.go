package trial

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Machines were last busy with a trial of any experiment that used a pool of theirs, or any node.
// To find it, the manager once copied all trials that there were.
func TestTheGapIsSinceTheLastTrialOnItsPools(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	trial := func(name, pool, experiment string, ended time.Duration) *v1alpha1.Trial {
		yes := true
		one := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
		one.OwnerReferences = []metav1.OwnerReference{{APIVersion: "assay.dev/v1alpha1", Kind: "Experiment", Name: experiment, UID: types.UID(experiment), Controller: &yes}}
		one.Spec.Placement.Replicas, one.Spec.Placement.Clients = pool, pool
		if ended > 0 {
			at := metav1.NewMicroTime(now.Add(-ended))
			one.Status.Times.Drained = &at
		}
		return one
	}
	for name, tc := range map[string]struct {
		next   *v1alpha1.Trial
		others []client.Object
		want   time.Duration
		reads  int // trials, if there is an index
	}{
		"its experiment was last":            {trial("next", "a", "e", 0), []client.Object{trial("t1", "a", "e", 9*time.Second), trial("t2", "a", "e", 5*time.Second)}, 5 * time.Second, 2},
		"another experiment was last":        {trial("next", "a", "e", 0), []client.Object{trial("t1", "a", "e", 9*time.Second), trial("t2", "a", "f", 4*time.Second)}, 4 * time.Second, 2},
		"another measured on another pool":   {trial("next", "a", "e", 0), []client.Object{trial("t1", "a", "e", 9*time.Second), trial("t2", "b", "f", time.Second)}, 9 * time.Second, 1},
		"another measured on any node":       {trial("next", "a", "e", 0), []client.Object{trial("t1", "a", "e", 9*time.Second), trial("t2", "", "f", 3*time.Second)}, 3 * time.Second, 2},
		"it may run on any node":             {trial("next", "", "e", 0), []client.Object{trial("t1", "", "e", 9*time.Second), trial("t2", "b", "f", time.Second)}, time.Second, 3},
		"it is the first of its experiment":  {trial("next", "a", "e", 0), []client.Object{trial("t2", "a", "f", 4*time.Second)}, 0, 1},
		"another has not measured up to now": {trial("next", "a", "e", 0), []client.Object{trial("t1", "a", "e", 9*time.Second), trial("t2", "a", "f", 0)}, 9 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.Trial{}, drainedOn, Indexes[drainedOn]).WithObjects(append(tc.others, tc.next)...).Build()
			for _, indexed := range []bool{false, true} {
				e := experiment{&Reconciler{Client: c, Indexed: indexed}}
				got, err := e.Gap(t.Context(), tc.next, now)
				if err != nil || got != tc.want {
					t.Errorf("with an index %t: %v, %v, want %v", indexed, got, err, tc.want)
				}
				read, err := e.measuredOn(t.Context(), tc.next.Spec.Placement.Pools())
				if err != nil || indexed && len(read) != tc.reads {
					t.Errorf("%d trials were read, %v; want %d", len(read), err, tc.reads)
				}
			}
		})
	}
}
