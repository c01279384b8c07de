package experiment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// nightly makes an experiment that recurs at 03:00, on a stage whose clock shows the time of its
// creation.
func nightly(t *testing.T, change func(*v1alpha1.Recurrence)) (s *stage, due time.Time) {
	t.Helper()
	s = newStage(t)
	r := &v1alpha1.Recurrence{Cron: "0 3 * * *"}
	if change != nil {
		change(r)
	}
	s.create(builders.System("basil").Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) { e.Recurrence = r }).Obj())
	made := s.experiment().CreationTimestamp.UTC()
	s.clock.SetTime(made)
	due = made.Truncate(24 * time.Hour).Add(3 * time.Hour)
	if !due.After(made) {
		due = due.Add(24 * time.Hour)
	}
	return s, due
}

// runs returns the names of the runs, in the order of their due times.
func (s *stage) runs() (names []string) {
	s.t.Helper()
	list := &v1alpha1.ExperimentList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{v1alpha1.LabelRecurs: s.name}); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// at settles the experiment a moment after an instant.
func (s *stage) at(when time.Time) *v1alpha1.Experiment {
	s.t.Helper()
	s.clock.SetTime(when)
	return s.settle()
}

// over carries out a run, and returns the name of its results.
func (s *stage) over(run string) string {
	s.t.Helper()
	one := s.of(run)
	for range 2 {
		one.settle()
		s.finish(v1alpha1.ReasonSucceeded)
	}
	exp := one.settle()
	one.expect(exp, complete, "True AllTrialsValid")
	return exp.Status.ResultsConfigMap
}

// An experiment could once not be run again by itself: a second run of a name had to delete the
// first.
func TestRunsAreKeptApart(t *testing.T) {
	s, due := nightly(t, nil)
	exp := s.settle()
	s.expect(exp, accepted, "True Valid")
	s.expect(exp, complete, "False Recurs", "The next run is due at "+due.Format(time.RFC3339))
	s.expect(exp, stored, "Unknown Recurs")
	s.expect(exp, v1alpha1.ExperimentReady, "True Recurs")
	if n := len(s.trials()); n != 0 || len(s.runs()) != 0 || exp.Status.Seed != 0 {
		t.Fatalf("before the first due time there are %d trials and the runs %v", n, s.runs())
	}
	var stores []string
	for i := range 2 {
		at := due.AddDate(0, 0, i)
		exp = s.at(at)
		name := "exp-" + at.Format("0601021504")
		if r := exp.Status.Recurrence; r.LastRun != name || r.Runs != int32(i+1) || !r.LastDueTime.Equal(&metav1.Time{Time: at}) || r.Skipped != 0 || !slices.Contains(s.runs(), name) {
			t.Fatalf("at %v: status %+v, runs %v", at, r, s.runs())
		}
		run := s.of(name).experiment()
		if !metav1.IsControlledBy(run, exp) || run.Spec.Recurrence != nil || run.Annotations[v1alpha1.AnnotationDueTime] != at.Format(time.RFC3339) {
			t.Errorf("run %s: owners %v, annotations %v, recurrence %v", name, run.OwnerReferences, run.Annotations, run.Spec.Recurrence)
		}
		stores = append(stores, s.over(name))
		s.settle()
	}
	if stores[0] == stores[1] {
		t.Fatalf("both runs have their results in %s", stores[0])
	}
	for _, name := range stores {
		m := &corev1.ConfigMap{}
		if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, m); err != nil {
			t.Fatal(err)
		}
		if r := s.results(name); m.Labels[v1alpha1.LabelRecurs] != "exp" || r.Recurs != "exp" || len(r.Trials) != 2 || !strings.HasPrefix(name, r.Name+"-") {
			t.Errorf("%s: labels %v, results of %s, a run of %q, with %d trials", name, m.Labels, r.Name, r.Recurs, len(r.Trials))
		}
	}
}

func TestDueTimesAreSkipped(t *testing.T) {
	s, due := nightly(t, nil)
	day := func(n int) time.Time { return due.AddDate(0, 0, n) }
	s.at(due)
	first := s.runs()[0]
	s.of(first).settle()
	s.told()

	exp := s.at(day(1))
	s.expect(exp, complete, "False Recurs", "was skipped (StillGoing): Run "+first+" is not over.")
	if told := firstWords(s.told()); !slices.Contains(told, "Warning StillGoing") {
		t.Errorf("events %v", told)
	}
	s.over(first)

	if err := s.c.Delete(t.Context(), &v1alpha1.System{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "basil"}}); err != nil {
		t.Fatal(err)
	}
	exp = s.at(day(2))
	s.expect(exp, accepted, "False SystemNotFound")
	s.create(builders.System("basil").Obj())

	exp.Spec.Suspend = true
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	exp = s.at(day(3))
	s.expect(exp, complete, "False Suspended", "No run is made while the experiment is suspended.")
	exp.Spec.Suspend = false
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}

	s.at(day(6).Add(2 * time.Hour)) // no manager ran for three days
	taken := builders.Experiment("exp-" + day(7).Format("0601021504")).System("basil").Obj()
	s.create(taken)
	exp = s.at(day(7))
	s.expect(exp, complete, "False Recurs", "(NameTaken)")
	if got := exp.Status.Recurrence; got.Runs != 1 || got.Skipped != 7 || got.LastSkipped.Reason != v1alpha1.SkippedNameTaken {
		t.Errorf("status %+v, last skipped %+v", got, got.LastSkipped)
	}
	var reasons []string
	for _, e := range s.told() {
		if strings.Contains(e, "The run of") {
			reasons = append(reasons, strings.Fields(e)[1])
		}
	}
	if diff := cmp.Diff([]string{"NotAccepted", "Missed", "NameTaken"}, reasons); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	exp = s.at(day(8))
	if got := exp.Status.Recurrence; got.Runs != 2 || !slices.Contains(s.runs(), got.LastRun) {
		t.Errorf("after all that: status %+v, runs %v", got, s.runs())
	}
}

// At most keep finished runs stay in the API server. Their results outlive them.
func TestOldRunsAreDeleted(t *testing.T) {
	s, due := nightly(t, func(r *v1alpha1.Recurrence) { r.Keep = 1 })
	var stores []string
	for i := range 3 {
		s.at(due.AddDate(0, 0, i))
		runs := s.runs()
		stores = append(stores, s.over(runs[len(runs)-1]))
		s.settle()
		for _, name := range runs[:len(runs)-1] {
			s.of(name).settle() // adds its finalizer
		}
	}
	if runs := s.runs(); len(runs) != 1 || runs[0] != "exp-"+due.AddDate(0, 0, 2).Format("0601021504") {
		t.Errorf("the runs %v are left, want the last one", runs)
	}
	for _, name := range stores {
		if r := s.results(name); len(r.Trials) != 2 {
			t.Errorf("%s has %d trials", name, len(r.Trials))
		}
	}
}
