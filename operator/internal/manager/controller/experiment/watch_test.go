package experiment_test

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/manager/cacheopts"
	"assay.dev/assay/operator/internal/manager/controller/experiment"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// With watches alone, a manager moves an experiment from the arrival of its System to the end and
// to its deletion.
func TestWatches(t *testing.T) {
	s := newStage(t)
	options := cacheopts.Options()
	options.DefaultNamespaces = map[string]cache.Config{s.ns: {}}
	s.env.Start(t, options, func(mgr ctrl.Manager) error {
		return (&experiment.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Recorder: s.recorder,
			Seed: func() int64 { return 42 }, Checks: checks}).SetupWithManager(mgr)
	})
	g := gomega.NewWithT(t)
	reaches := func(name string, want string) {
		t.Helper()
		g.Eventually(func() string {
			exp := s.experiment()
			if exp == nil {
				return "gone"
			}
			if c := meta.FindStatusCondition(exp.Status.Conditions, name); c != nil {
				return string(c.Status) + " " + c.Reason
			}
			return "absent"
		}, 2*time.Minute, 50*time.Millisecond).Should(gomega.Equal(want))
	}
	s.create(two().Obj())
	reaches(accepted, "False SystemNotFound")
	s.create(builders.System("basil").Obj())
	for n := range 2 {
		g.Eventually(func() int {
			active := 0
			for _, trial := range s.trials() {
				if plan.Outcome(&trial) == v1alpha1.ReasonInProgress && int(trial.Spec.Number) == n {
					active++
				}
			}
			return active
		}, 2*time.Minute, 50*time.Millisecond).Should(gomega.Equal(1))
		s.finish(v1alpha1.ReasonSucceeded)
	}
	reaches(complete, "True AllTrialsValid")
	reaches(stored, "True Stored")
	if err := s.c.Delete(context.Background(), s.experiment()); err != nil {
		t.Fatal(err)
	}
	reaches(complete, "gone")
	if n := len(s.trials()); n != 0 {
		t.Errorf("%d trials are left", n)
	}
}
