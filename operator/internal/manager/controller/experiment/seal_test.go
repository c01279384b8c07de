package experiment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

func claiming(expr string) *v1alpha1.Experiment {
	return two().Set(func(e *v1alpha1.ExperimentSpec) {
		e.Claims = []v1alpha1.Claim{{Name: "slower", Statement: "More clients wait longer.", Expr: expr}}
	}).Obj()
}

// The claims are sealed before the first trial begins, and trials and results have the seal. This
// test has no webhook, like a cluster whose administrator has switched it off. The status names a
// claim that changes during the run.
func TestClaimsAreSealed(t *testing.T) {
	const before, after = "mean_latency(clients=1) < mean_latency(clients=2)", "mean_latency(clients=1) > mean_latency(clients=2)"
	s := newStage(t)
	s.create(builders.System("basil").Obj(), claiming(before))
	for n := 0; s.experiment().Status.Seed == 0; n++ {
		if n > 10 {
			t.Fatal("the experiment is not accepted")
		}
		_ = s.reconcile()
	}
	if exp := s.experiment(); exp.Status.Seal == nil || exp.Status.Seal.SHA256 != seal.Of(exp.Spec) || exp.Status.Seal.EarlierRuns != 0 {
		t.Fatalf("the plan is fixed, and its seal is %+v", exp.Status.Seal)
	}
	exp := s.settle()
	digest := exp.Status.Seal.SHA256
	if got := s.trials()[0].Spec.Seal; got != digest {
		t.Errorf("the first trial has the seal %q, want %s", got, digest)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	exp = s.settle()
	got := s.results(exp.Status.ResultsConfigMap).Seal
	if got == nil || got.SHA256 != digest || len(got.Changes) != 0 || got.At.IsZero() {
		t.Errorf("the results have the seal %+v", got)
	} else if own, err := seal.Digest(got.Sealed); err != nil || own != digest {
		t.Errorf("the digest of the text in the results is %s (%v), want %s", own, err, digest)
	}

	exp.Spec.Claims[0].Expr = after
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	exp = s.settle()
	want := []results.SealChange{{Claim: "slower", Field: "expr", Was: `"` + before + `"`, Is: `"` + after + `"`}}
	if diff := cmp.Diff(want, s.results(exp.Status.ResultsConfigMap).Seal.Changes); diff != "" || exp.Status.Seal.SHA256 != digest {
		t.Errorf("since the seal (-want +got):\n%s", diff)
	}
}

// The status reports an author who runs an experiment again with other claims until one is decided.
func TestEarlierRunsAreCounted(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj())
	run := func(expr string) v1alpha1.Seal {
		s.create(claiming(expr))
		exp := s.settle()
		for n := 0; !meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete); n++ {
			if n > 20 {
				t.Fatal("the experiment does not end")
			}
			s.finish(v1alpha1.ReasonSucceeded)
			exp = s.settle()
		}
		kept := *exp.Status.Seal
		if err := s.c.Delete(t.Context(), exp); err != nil {
			t.Fatal(err)
		}
		for n := 0; s.experiment() != nil; n++ {
			if n > 20 {
				t.Fatal("the experiment does not go")
			}
			_ = s.reconcile()
			for _, trial := range s.trials() {
				trial.Finalizers = nil
				_ = client.IgnoreNotFound(s.c.Update(t.Context(), &trial))
			}
		}
		return kept
	}
	const claim = "mean_latency(clients=1) < mean_latency(clients=2)"
	for i, want := range [][2]int32{{0, 0}, {1, 0}, {2, 2}} {
		expr := claim
		if i == 2 {
			expr = strings.ReplaceAll(claim, "<", ">")
		}
		if got := run(expr); got.EarlierRuns != want[0] || got.EarlierOtherClaims != want[1] {
			t.Errorf("run %d: %d earlier runs, %d with other claims, want %v", i+1, got.EarlierRuns, got.EarlierOtherClaims, want)
		}
	}
}
