package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
)

// An experiment keeps its place on each of its sets of nodes between two trials there,
// independently of the other sets. It loses the place on a set for which no trial comes.
func TestAnExperimentKeepsEachOfItsSets(t *testing.T) {
	accepted := metav1.Condition{Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start)}
	exp := v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e", CreationTimestamp: metav1.NewTime(start)}}
	exp.Status.Conditions = []metav1.Condition{accepted}
	exp.Spec.Profile = "big"
	exp.Spec.Profiles = []v1alpha1.Profile{{Name: "big", Placement: &v1alpha1.Placement{Sets: []v1alpha1.NodeSet{{Name: "a", Replicas: "ra", Clients: "ca"}, {Name: "b", Replicas: "rb", Clients: "cb"}}}}}
	trial := func(set string, number int32, ended time.Duration) v1alpha1.Trial {
		one := v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("e-", number)}}
		one.Spec.Experiment, one.Spec.Number, one.Spec.NodeSet = "e", number, set
		one.Spec.Placement = v1alpha1.Placement{Replicas: "r" + set, Clients: "c" + set}
		if ended > 0 {
			one.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(ended))}}
		}
		return one
	}
	for name, tc := range map[string]struct {
		trials []v1alpha1.Trial
		at     time.Duration
		want   []string
	}{
		"accepted":             {nil, time.Second, []string{" [ca ra]", " [cb rb]"}},
		"one trial is there":   {[]v1alpha1.Trial{trial("a", 0, 0)}, time.Second, []string{" [cb rb]", "n/e-0 [ca ra]"}},
		"both sets have one":   {[]v1alpha1.Trial{trial("a", 0, 0), trial("b", 1, time.Minute), trial("b", 2, 0)}, time.Minute + time.Second, []string{"n/e-0 [ca ra]", "n/e-2 [cb rb]"}},
		"between two on b":     {[]v1alpha1.Trial{trial("a", 0, 0), trial("b", 1, time.Hour)}, time.Hour + time.Second, []string{" [cb rb]", "n/e-0 [ca ra]"}},
		"no trial comes for b": {[]v1alpha1.Trial{trial("a", 0, 0), trial("b", 1, time.Hour)}, time.Hour + time.Minute, []string{"n/e-0 [ca ra]"}},
		"the instant was dated by a clock hours ahead": {[]v1alpha1.Trial{trial("a", 0, 0), trial("b", 1, 3*time.Hour)}, time.Second, []string{"n/e-0 [ca ra]"}},
		"the other set is alone":                       {[]v1alpha1.Trial{trial("a", 0, time.Hour), trial("b", 1, 0)}, time.Hour + time.Second, []string{" [ca ra]", "n/e-1 [cb rb]"}},
	} {
		t.Run(name, func(t *testing.T) {
			exps := []v1alpha1.Experiment{exp}
			var open []v1alpha1.Trial
			for _, one := range tc.trials {
				if !meta.IsStatusConditionTrue(one.Status.Conditions, v1alpha1.TrialComplete) {
					open = append(open, one)
				}
			}
			needed := open
			if len(Between(open, exps)) > 0 {
				needed = tc.trials
			}
			for what, trials := range map[string][]v1alpha1.Trial{"all trials": tc.trials, "only the trials that it needs": needed} {
				var got []string
				for _, e := range Entries(trials, exps, start.Add(tc.at)) {
					got = append(got, fmt.Sprintf("%s %v", e.Trial, e.Pools))
				}
				slices.Sort(got)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("of %s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// The finished trials of an experiment are of use only while its next trial may be about to be
// made.
func TestBetween(t *testing.T) {
	accepted := metav1.Condition{Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionTrue}
	waits := v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e-0"}, Spec: v1alpha1.TrialSpec{Experiment: "e"}}
	done := *waits.DeepCopy()
	done.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue}}
	deleted := *waits.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: start}
	for name, tc := range map[string]struct {
		trials []v1alpha1.Trial
		change func(e *v1alpha1.Experiment)
		want   int
	}{
		"no trial yet":                        {nil, nil, 1},
		"a trial waits":                       {[]v1alpha1.Trial{waits}, nil, 0},
		"the last trial is done":              {[]v1alpha1.Trial{done}, nil, 1},
		"the trial was deleted as it waited":  {[]v1alpha1.Trial{deleted}, nil, 1},
		"a trial of another experiment waits": {[]v1alpha1.Trial{{Spec: v1alpha1.TrialSpec{Experiment: "e"}}}, nil, 1},
		"not accepted":                        {nil, func(e *v1alpha1.Experiment) { e.Status.Conditions = nil }, 0},
		"suspended":                           {nil, func(e *v1alpha1.Experiment) { e.Spec.Suspend = true }, 0},
		"complete": {nil, func(e *v1alpha1.Experiment) {
			e.Status.Conditions = append(e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentComplete, Status: metav1.ConditionTrue})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			exp := v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "e"}}
			exp.Status.Conditions = []metav1.Condition{accepted}
			if tc.change != nil {
				tc.change(&exp)
			}
			if got := Between(tc.trials, []v1alpha1.Experiment{exp}); len(got) != tc.want {
				t.Errorf("%v, want %d experiments", got, tc.want)
			}
		})
	}
}

// A trial of another namespace is of another experiment. A trial that nothing controls is of none.
func TestGap(t *testing.T) {
	trial := func(namespace, name, experiment string, ended time.Duration) v1alpha1.Trial {
		one := v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
		if experiment != "" {
			one.OwnerReferences = []metav1.OwnerReference{{Kind: "Experiment", Name: experiment, UID: types.UID(experiment), Controller: new(true)}}
		}
		if ended > 0 {
			one.Status.Times.Drained = new(metav1.NewMicroTime(start.Add(ended)))
		}
		return one
	}
	for name, tc := range map[string]struct {
		next   v1alpha1.Trial
		trials []v1alpha1.Trial
		want   time.Duration
	}{
		"the first of all":               {trial("n", "next", "e", 0), nil, 0},
		"its experiment was last":        {trial("n", "next", "e", 0), []v1alpha1.Trial{trial("n", "one", "e", 2*time.Second), trial("n", "two", "e", 7*time.Second)}, 3 * time.Second},
		"another was last":               {trial("n", "next", "e", 0), []v1alpha1.Trial{trial("n", "one", "e", 2*time.Second), trial("m", "two", "f", 9*time.Second)}, time.Second},
		"only another namespace's trial": {trial("n", "next", "e", 0), []v1alpha1.Trial{trial("m", "one", "e", 2*time.Second)}, 0},
		"of no experiment":               {trial("n", "next", "", 0), []v1alpha1.Trial{trial("n", "one", "e", 2*time.Second)}, 0},
		"a trial of none":                {trial("n", "next", "e", 0), []v1alpha1.Trial{trial("n", "one", "", 2*time.Second)}, 0},
		"a clock that went back":         {trial("n", "next", "e", 0), []v1alpha1.Trial{trial("n", "one", "e", 12*time.Second)}, 0},
	} {
		if got := Gap(tc.trials, &tc.next, start.Add(10*time.Second)); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
