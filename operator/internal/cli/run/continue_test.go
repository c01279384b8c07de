package run_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
)

// A second --continue adds to the repetitions of the first one, and changes nothing else in the
// experiment.
func TestContinues(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, had, want int32
	}{
		"as many as are asked for":     {asked: 4, want: 4},
		"as many as at first":          {want: 3},
		"once more":                    {asked: 4, had: 4, want: 8},
		"as many as at first, besides": {had: 1, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newSession(t, nil, before(func(e *v1alpha1.Experiment) { e.Spec.Repetitions.Min, e.Spec.AdditionalRepetitions = 3, tc.had }))
			if err := run.Run(t.Context(), s, nil, run.Options{Continue: "pingpong", Repetitions: tc.asked}); err != nil {
				t.Fatal(err)
			}
			var e v1alpha1.Experiment
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &e); err != nil || e.UID != "old" || e.Spec.AdditionalRepetitions != tc.want || e.Spec.Repetitions.Min != 3 {
				t.Errorf("%+v (%v), want %d additional repetitions", e.Spec, err, tc.want)
			}
			if got := s.Err.(*bytes.Buffer).String(); !strings.Contains(got, "more repetitions. If you continue because of what the results showed") || !strings.Contains(got, "Follow it with: kubectl assay watch pingpong -n lab") {
				t.Errorf("said %q", got)
			}
		})
	}
}

func TestRefusesToContinue(t *testing.T) {
	running := before(func(e *v1alpha1.Experiment) {
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentComplete, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTrialsRunning})
	})
	for name, tc := range map[string]struct {
		exp  *v1alpha1.Experiment
		o    run.Options
		code int
		want string
	}{
		"one that runs":         {exp: running, o: run.Options{Continue: "pingpong"}, code: session.ExitError, want: "is not complete"},
		"one that is not there": {exp: running, o: run.Options{Continue: "other"}, code: session.ExitError, want: "get Experiment other"},
		"with a changed spec":   {exp: before(nil), o: run.Options{Continue: "pingpong", Input: run.Input{Set: []string{"repetitions.min=9"}}}, code: session.ExitUsage, want: "takes an experiment as it is"},
		"a negative number":     {exp: before(nil), o: run.Options{Continue: "pingpong", Repetitions: -1}, code: session.ExitUsage, want: "must be from 1 to 99"},
		"repetitions of a file": {exp: before(nil), o: run.Options{Input: run.Input{Files: []string{file}}, Repetitions: 2}, code: session.ExitUsage, want: "goes with --continue"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t, nil, tc.exp)
			tc.o.Timeout = time.Hour
			err := run.Run(t.Context(), s, nil, tc.o)
			if session.ExitCode(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v (%d), want %q", err, session.ExitCode(err), tc.want)
			}
		})
	}
}
