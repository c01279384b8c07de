package steer_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/steer"
)

func newSession(t *testing.T, objects ...client.Object) (*session.Session, client.Client) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{},
		Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "lab"}, nil }}, c
}

func experiment(suspended, complete bool, active int32) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "lab", UID: "now"}}
	e.Spec.Suspend = suspended
	e.Spec.Retries = new(int32)
	*e.Spec.Retries = 1
	e.Status.Trials = v1alpha1.TrialCounts{Planned: 4, Succeeded: 1, Active: active}
	if complete {
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRetriesExhausted})
	}
	return e
}

func TestSuspendAndResume(t *testing.T) {
	for name, tc := range map[string]struct {
		before  *v1alpha1.Experiment
		suspend bool
		after   bool
		want    string
	}{
		"suspend":                {experiment(false, false, 0), true, true, "Experiment e is suspended; 1 of 4 trials are valid."},
		"suspend while one runs": {experiment(false, false, 1), true, true, "Experiment e is suspended after the trial that runs; 1 of 4 trials are valid."},
		"suspend again":          {experiment(true, false, 0), true, true, "Experiment e is suspended already; 1 of 4 trials are valid."},
		"suspend what is over":   {experiment(false, true, 0), true, false, "experiment e in namespace lab is complete: there is nothing to suspend"},
		"resume":                 {experiment(true, false, 0), false, false, "Experiment e goes on; 1 of 4 trials are valid."},
		"resume what runs":       {experiment(false, false, 1), false, false, "Experiment e is not suspended; 1 of 4 trials are valid."},
		"resume what is over":    {experiment(true, true, 0), false, false, "Experiment e is complete; 1 of 4 trials are valid."},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newSession(t, tc.before)
			err := steer.SetSuspend(t.Context(), s, steer.SuspendOptions{Names: []string{"e"}, Suspend: tc.suspend})
			told := s.Out.(*bytes.Buffer).String()
			if err != nil {
				told += err.Error()
			}
			if strings.TrimSpace(told) != tc.want {
				t.Errorf("told %q, want %q", told, tc.want)
			}
			var e v1alpha1.Experiment
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "e"}, &e); err != nil || e.Spec.Suspend != tc.after {
				t.Errorf("suspend is %v, want %v (%v)", e.Spec.Suspend, tc.after, err)
			}
		})
	}
	s, _ := newSession(t)
	if err := steer.SetSuspend(t.Context(), s, steer.SuspendOptions{Names: []string{"e"}, Suspend: true}); err == nil || !strings.Contains(err.Error(), "experiment e is not in namespace lab") {
		t.Errorf("an experiment that is not there: %v", err)
	}
}

// trials returns the trials of experiment e. Each text is POINT.REPETITION.ATTEMPT:OUTCOME.
func trials(owner types.UID, texts ...string) []client.Object {
	var all []client.Object
	for i, text := range texts {
		var point, repetition, attempt int32
		slot, outcome, _ := strings.Cut(text, ":")
		if _, err := fmt.Sscanf(slot, "%d.%d.%d", &point, &repetition, &attempt); err != nil {
			panic(err)
		}
		t := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "e-" + strings.ReplaceAll(slot, ".", "-"), Namespace: "lab", Labels: map[string]string{v1alpha1.LabelExperiment: "e"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Experiment", Name: "e", UID: owner, Controller: new(bool)}}}}
		*t.OwnerReferences[0].Controller = true
		t.Spec = v1alpha1.TrialSpec{Experiment: "e", Point: v1alpha1.Point{Index: point}, Repetition: repetition, Attempt: attempt, Number: int32(i)}
		if outcome != "" {
			t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: outcome}}
		}
		all = append(all, t)
	}
	return all
}

func TestRetry(t *testing.T) {
	state := []string{
		"0.0.0:Invalid", "0.0.1:Succeeded", // valid in the end
		"0.1.0:Invalid", "0.1.1:Failed", // exhausted
		"1.0.0:Invalid",          // the manager tries again
		"1.1.0:Invalid", "1.1.1", // runs
		"2.0.0:Invalid", "2.0.1:Invalid", // exhausted
	}
	for name, tc := range map[string]struct {
		arg    string
		dry    bool
		gone   []string
		told   string
		failed bool
	}{
		"experiment":         {arg: "e", gone: []string{"e-0-1-1", "e-2-0-1"}, told: "Retrying repetition 1 of point 0 (trial e-0-1-1, Failed).\nRetrying repetition 0 of point 2 (trial e-2-0-1, Invalid).\n"},
		"dry run":            {arg: "e", dry: true, told: "Would retry repetition 1 of point 0 (trial e-0-1-1, Failed).\nWould retry repetition 0 of point 2 (trial e-2-0-1, Invalid).\n"},
		"trial":              {arg: "e-2-0-1", gone: []string{"e-2-0-1"}, told: "Retrying repetition 0 of point 2 (trial e-2-0-1, Invalid).\n"},
		"not the last":       {arg: "e-2-0-0", failed: true, told: "trial e-2-0-0 is not the last of its repetition: e-2-0-1 is"},
		"valid":              {arg: "e-0-0-1", failed: true, told: "repetition 0 of point 0 has a valid trial, e-0-0-1: it needs no retry"},
		"valid since":        {arg: "e-0-0-0", failed: true, told: "has a valid trial, e-0-0-1"},
		"running":            {arg: "e-1-1-1", failed: true, told: "trial e-1-1-1 is not over"},
		"with attempts left": {arg: "e-1-0-0", failed: true, told: "repetition 0 of point 1 has a budget left: the manager tries it again by itself"},
		"nothing":            {arg: "f", failed: true, told: "no trial has that name, and experiment f is not in namespace lab"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newSession(t, append(trials("now", state...), experiment(false, false, 1))...)
			err := steer.RunRetry(t.Context(), s, steer.RetryOptions{Name: tc.arg, DryRun: tc.dry})
			told := s.Out.(*bytes.Buffer).String()
			if err != nil {
				told += err.Error()
			}
			if (err != nil) != tc.failed || !strings.Contains(told, tc.told) {
				t.Errorf("told %q, want %q", told, tc.told)
			}
			var list v1alpha1.TrialList
			if err := c.List(t.Context(), &list); err != nil || len(list.Items) != len(state)-len(tc.gone) {
				t.Errorf("%d trials are left, want %d (%v)", len(list.Items), len(state)-len(tc.gone), err)
			}
			for i := range list.Items {
				for _, gone := range tc.gone {
					if list.Items[i].Name == gone {
						t.Errorf("trial %s is still there", gone)
					}
				}
			}
		})
	}

	// These disturbed trials have used up the time for disturbances. retry deletes all at the end
	// of the repetition: with one of them left, the manager would give up again.
	disturbed := trials("now", "0.0.0:Failed", "0.0.1:Invalid", "0.0.2:Invalid", "1.0.0:Succeeded")
	for _, o := range disturbed[1:3] {
		t := o.(*v1alpha1.Trial)
		t.Status.Conditions = append(t.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCPUStolen})
	}
	e := experiment(false, true, 0)
	e.Spec.Disturbances.RetryFor = "5s"
	s, _ := newSession(t, append(disturbed, e)...)
	if err := steer.RunRetry(t.Context(), s, steer.RetryOptions{Name: "e"}); err != nil {
		t.Error(err)
	}
	if got := s.Out.(*bytes.Buffer).String(); got != "Retrying repetition 0 of point 0 (trial e-0-0-1, Invalid).\nRetrying repetition 0 of point 0 (trial e-0-0-2, Invalid).\n" {
		t.Errorf("told:\n%s", got)
	}

	// Trials of an earlier experiment with the same name do not count.
	s, _ = newSession(t, append(trials("before", "0.0.1:Failed"), experiment(false, true, 0))...)
	if err := steer.RunRetry(t.Context(), s, steer.RetryOptions{Name: "e"}); err == nil || !strings.Contains(err.Error(), "has nothing to retry") {
		t.Errorf("got %v", err)
	}
}
