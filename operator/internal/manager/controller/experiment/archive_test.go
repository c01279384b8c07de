package experiment_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// An experiment with a store reports which results are stored, from what the archive writes about
// it and its trials. Trials go on in any case.
func TestResultsInAStore(t *testing.T) {
	s := newStage(t)
	s.r.Store = func(asked *v1alpha1.Results) string {
		if asked == nil {
			return "lab"
		}
		return asked.Store
	}
	s.create(builders.System("basil").Obj(), two().Obj())
	exp := s.settle()
	if a := exp.Status.Archive; a == nil || a.Store != "lab" {
		t.Fatalf("archive %+v, want the default store", a)
	}
	s.expect(exp, stored, "Unknown TrialsRunning")
	if got := s.trials()[0].Spec.ResultsStore; got != "lab" {
		t.Errorf("the trial's store is %q", got)
	}

	s.archive(func(a *v1alpha1.ResultsArchive) {
		a.Reason, a.Message = v1alpha1.ReasonStoreDenied, "Store lab refuses the keys."
	})
	s.expect(s.settle(), stored, "False StoreDenied", "refuses the keys", "kept in the cluster")
	if !strings.Contains(strings.Join(s.told(), "\n"), "StoreDenied") {
		t.Error("there is no event")
	}
	s.archive(func(a *v1alpha1.ResultsArchive) { a.Location, a.Reason, a.Message = "s3://b/v1/", "", "" })
	s.expect(s.settle(), stored, "Unknown TrialsRunning")

	first := s.finish(v1alpha1.ReasonSucceeded)
	s.expect(s.settle(), stored, "False Storing", "on the way to store lab")
	s.trialStored(first.Name, metav1.ConditionFalse, v1alpha1.ReasonStoreUnreachable)
	s.expect(s.settle(), stored, "False StoreUnreachable", "Trials go on")
	// Trials that wait for a store delay no others. The installation's default may change
	// meanwhile.
	s.r.Store = func(*v1alpha1.Results) string { return "other" }
	second := s.finish(v1alpha1.ReasonSucceeded)
	if second.Spec.ResultsStore != "lab" {
		t.Errorf("the second trial's store is %q", second.Spec.ResultsStore)
	}
	s.expect(s.settle(), complete, "True AllTrialsValid")
	s.trialStored(second.Name, metav1.ConditionFalse, v1alpha1.ReasonStoreUnreachable)
	exp = s.settle()
	s.expect(exp, stored, "False StoreUnreachable")
	if c := meta.FindStatusCondition(exp.Status.Conditions, stored); strings.Contains(c.Message, "go on") {
		t.Errorf("no trial is left that could go on: %s", c.Message)
	}
	for _, name := range []string{first.Name, second.Name} {
		s.trialStored(name, metav1.ConditionTrue, v1alpha1.ReasonStored)
	}
	exp = s.settle()
	s.expect(exp, stored, "False Storing")
	m := &corev1.ConfigMap{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: exp.Status.ResultsConfigMap}, m); err != nil {
		t.Fatal(err)
	}
	s.archive(func(a *v1alpha1.ResultsArchive) { a.Digest = m.Annotations[v1alpha1.AnnotationResultsDigest] })
	s.expect(s.settle(), stored, "True Stored", "s3://b/v1/", exp.Status.ResultsConfigMap)
}

func TestNoStore(t *testing.T) {
	s := newStage(t)
	s.r.Store = func(*v1alpha1.Results) string { return "" }
	s.create(builders.System("basil").Obj(), two().Obj())
	exp := s.settle()
	s.finish(v1alpha1.ReasonSucceeded)
	s.expect(s.settle(), stored, "True Stored")
	if exp.Status.Archive != nil || s.trials()[0].Spec.ResultsStore != "" {
		t.Errorf("archive %+v, the trial's store %q", exp.Status.Archive, s.trials()[0].Spec.ResultsStore)
	}
}

// archive plays the archive of experiments.
func (s *stage) archive(change func(*v1alpha1.ResultsArchive)) {
	s.t.Helper()
	exp := s.experiment()
	change(exp.Status.Archive)
	if err := s.c.Status().Update(s.t.Context(), exp); err != nil {
		s.t.Fatal(err)
	}
}

// trialStored plays the archive of trials.
func (s *stage) trialStored(name string, status metav1.ConditionStatus, reason string) {
	s.t.Helper()
	trial := &v1alpha1.Trial{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, trial); err != nil {
		s.t.Fatal(err)
	}
	meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialResultsStored, Status: status, Reason: reason, Message: "It is so."})
	if err := s.c.Status().Update(s.t.Context(), trial); err != nil {
		s.t.Fatal(err)
	}
}
