package run_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
)

// before returns an experiment that an earlier call ran.
func before(change func(*v1alpha1.Experiment)) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "pingpong", Namespace: "lab", UID: "old", Generation: 1}}
	e.Status.Trials = v1alpha1.TrialCounts{Planned: 8, Succeeded: 8}
	e.Status.CompletionTime = &metav1.Time{Time: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	e.Status.Claims = []v1alpha1.ClaimStatus{{Name: "scales", Verdict: v1alpha1.VerdictReproduced}, {Name: "peak", Verdict: v1alpha1.VerdictReproduced}}
	for _, kind := range []string{v1alpha1.ExperimentComplete, v1alpha1.ExperimentResultsStored} {
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "AllTrialsValid", ObservedGeneration: 1})
	}
	if change != nil {
		change(e)
	}
	return e
}

// A second "run --wait" once ended at once, with the report and exit code of the first. A nightly
// job stayed green without running a trial.
func TestFinishedExperimentIsNotReportedAsIfItHadJustRun(t *testing.T) {
	for name, wait := range map[string]bool{"waiting": true, "not waiting": false} {
		t.Run(name, func(t *testing.T) {
			s, c := newSession(t, nil, before(nil))
			err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Wait: wait, Timeout: time.Hour, Output: "text"})
			if session.ExitCode(err) != session.ExitError || !strings.Contains(err.Error(), "was complete already (3d ago): nothing was applied and nothing ran; to run it again, add --rerun") {
				t.Errorf("got %v", err)
			}
			if out := s.Out.(*bytes.Buffer).String() + s.Err.(*bytes.Buffer).String(); out != "" {
				t.Errorf("printed %q", out)
			}
			var systems v1alpha1.SystemList
			if err := c.List(t.Context(), &systems); err != nil || len(systems.Items) > 0 {
				t.Errorf("%d Systems were applied all the same (%v)", len(systems.Items), err)
			}
		})
	}
}

func TestRunsAgain(t *testing.T) {
	s, c := newSession(t, finish(t, "AllTrialsValid", v1alpha1.VerdictNotReproduced, v1alpha1.VerdictReproduced), before(nil))
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Rerun: true, Wait: true, Timeout: time.Hour, Output: "text"})
	if session.ExitCode(err) != session.ExitRefuted {
		t.Errorf("got %v, want the verdicts of the new run", err)
	}
	var e v1alpha1.Experiment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &e); err != nil || e.UID == "old" {
		t.Errorf("the old experiment is still there (%v)", err)
	}
	if got := s.Err.(*bytes.Buffer).String(); !strings.HasPrefix(got, "Deleting the earlier experiment pingpong, with 8 of 8 trials valid; its results stay: kubectl assay report pingpong~1 -n lab\n") {
		t.Errorf("said:\n%s", got)
	}
}

func TestRunsAgainWaitsForTheOldOne(t *testing.T) {
	held := before(func(e *v1alpha1.Experiment) { e.Finalizers = []string{v1alpha1.FinalizerExperiment} })
	release := func(c client.Client) {
		var e v1alpha1.Experiment
		key := client.ObjectKeyFromObject(held)
		if err := c.Get(context.Background(), key, &e); apierrors.IsNotFound(err) || e.DeletionTimestamp.IsZero() {
			return
		}
		e.Finalizers = nil
		if err := c.Update(context.Background(), &e); err != nil {
			t.Error(err)
		}
	}
	s, c := newSession(t, release, held)
	if err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Rerun: true}); err != nil {
		t.Fatal(err)
	}
	var e v1alpha1.Experiment
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), &e); err != nil || len(e.Status.Claims) > 0 {
		t.Errorf("the new experiment is not there (%v)", err)
	}

	s, _ = newSession(t, func(client.Client) {}, before(func(e *v1alpha1.Experiment) { e.Finalizers = []string{v1alpha1.FinalizerExperiment} }))
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Rerun: true})
	if session.ExitCode(err) != session.ExitTimeout || !strings.Contains(err.Error(), "is not gone 5m0s after it was deleted") {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestRunsAgainOnlyWhatIsStored(t *testing.T) {
	s, _ := newSession(t, nil, before(func(e *v1alpha1.Experiment) {
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentResultsStored, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStoring, Message: "3 objects are on the way."})
	}))
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Rerun: true})
	if err == nil || !strings.Contains(err.Error(), "its results are not all stored: 3 objects are on the way. Wait with kubectl wait") {
		t.Errorf("got %v", err)
	}
}

func TestRunsBesideAnother(t *testing.T) {
	s, c := newSession(t, nil, before(nil))
	in := run.Input{Files: []string{file}, Name: "pingpong-2", Images: manifest.Images{Registry: "r.example.org", Replace: []string{"example.org/pingpong=pingpong:2"}}}
	if err := run.Run(t.Context(), s, nil, run.Options{Input: in}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong-2"}, &v1alpha1.Experiment{}); err != nil {
		t.Error(err)
	}
	var system v1alpha1.System
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &system); err != nil || system.Spec.Replicas.Containers[0].Image != "pingpong:2" {
		t.Errorf("image %q (%v)", system.Spec.Replicas.Containers[0].Image, err)
	}
}

func TestRunJoinsARunningExperiment(t *testing.T) {
	s, _ := newSession(t, finish(t, "AllTrialsValid", v1alpha1.VerdictReproduced, v1alpha1.VerdictReproduced),
		before(func(e *v1alpha1.Experiment) {
			e.Status = v1alpha1.ExperimentStatus{Trials: v1alpha1.TrialCounts{Planned: 8, Succeeded: 3}}
		}))
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Wait: true, Timeout: time.Hour, Output: "text"})
	if err != nil {
		t.Error(err)
	}
	if got := s.Err.(*bytes.Buffer).String(); !strings.HasPrefix(got, "Experiment pingpong runs already: 3 of 8 trials are valid\n") {
		t.Errorf("said:\n%s", got)
	}
}

func TestWrongUse(t *testing.T) {
	for name, in := range map[string]run.Input{
		"a profile that is not there": {Profile: "smoek"},
		"no path":                     {Set: []string{"x"}},
		"no such image":               {Images: manifest.Images{Replace: []string{"a=b"}}},
	} {
		s, _ := newSession(t, nil)
		in.Files = []string{file}
		if err := run.Run(t.Context(), s, nil, run.Options{Input: in}); session.ExitCode(err) != session.ExitUsage {
			t.Errorf("%s: exit code %d (%v), want 2", name, session.ExitCode(err), err)
		}
	}
}
