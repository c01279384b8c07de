package run_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

const file = "../plan/testdata/pingpong.yaml"

// newSession has a cluster in which the controller finishes the experiment while the command
// sleeps.
func newSession(t *testing.T, controller func(client.Client), objects ...client.Object) (*session.Session, client.Client) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Experiment{}).Build()
	now := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	return &session.Session{
		Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Now: func() time.Time { return now },
		Sleep:   func(_ context.Context, d time.Duration) error { now = now.Add(d); controller(c); return nil },
		Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "lab"}, nil },
	}, c
}

// finish ends the experiment with verdicts for its two claims.
func finish(t *testing.T, reason string, verdicts ...v1alpha1.Verdict) func(client.Client) {
	return func(c client.Client) {
		t.Helper()
		var e v1alpha1.Experiment
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &e); err != nil {
			t.Fatal(err)
		}
		b, err := results.EncodeExperiment(results.Experiment{Name: "pingpong", Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "pingpong-results", Namespace: "lab"}, Data: map[string]string{"results.json": string(b)}}
		if err := c.Create(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		e.Status.ResultsConfigMap = stored.Name
		for i, name := range []string{"scales", "peak"}[:len(verdicts)] {
			e.Status.Claims = append(e.Status.Claims, v1alpha1.ClaimStatus{Name: name, Verdict: verdicts[i]})
		}
		for kind, why := range map[string]string{v1alpha1.ExperimentComplete: reason, v1alpha1.ExperimentResultsStored: "Stored"} {
			meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: why, Message: "2 of 8 trials are valid.", ObservedGeneration: e.Generation})
		}
		if err := c.Status().Update(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	const yes, no, open, none = v1alpha1.VerdictReproduced, v1alpha1.VerdictNotReproduced, v1alpha1.VerdictInconclusive, v1alpha1.VerdictNotEvaluated
	for name, tc := range map[string]struct {
		profile  string
		reason   string
		verdicts []v1alpha1.Verdict
		code     int
		message  string
	}{
		"all reproduced":             {reason: "AllTrialsValid", verdicts: []v1alpha1.Verdict{yes, yes}},
		"one contradicted":           {reason: "AllTrialsValid", verdicts: []v1alpha1.Verdict{open, no}, code: 3, message: "refuted: peak"},
		"one undecided":              {reason: "AllTrialsValid", verdicts: []v1alpha1.Verdict{yes, open}, code: 4, message: "inconclusive or not evaluated: peak"},
		"one without data":           {reason: "AllTrialsValid", verdicts: []v1alpha1.Verdict{none, yes}, code: 4, message: "inconclusive or not evaluated: scales"},
		"skipped by the profile":     {profile: "smoke", reason: "AllTrialsValid", verdicts: []v1alpha1.Verdict{yes, none}},
		"trials lost":                {reason: "RetriesExhausted", verdicts: []v1alpha1.Verdict{no, yes}, code: 5, message: "2 of 8 trials are valid."},
		"out of budget":              {reason: "BudgetExhausted", verdicts: []v1alpha1.Verdict{yes, yes}},
		"out of budget, and open":    {reason: "BudgetExhausted", verdicts: []v1alpha1.Verdict{yes, none}, code: 4, message: "inconclusive or not evaluated: peak"},
		"out of budget, and skipped": {profile: "smoke", reason: "BudgetExhausted", verdicts: []v1alpha1.Verdict{yes, none}},
		"data that failed":           {reason: "DataFailed", code: 5, message: "2 of 8 trials are valid."},
		"a claim without verdict":    {reason: "AllTrialsValid", verdicts: []v1alpha1.Verdict{yes}, code: 1, message: "does not have a verdict for each claim"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t, finish(t, tc.reason, tc.verdicts...))
			err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}, Profile: tc.profile}, Wait: true, Timeout: time.Hour, Output: "text"})
			if code := session.ExitCode(err); code != tc.code {
				t.Errorf("exit code %d, want %d: %v", code, tc.code, err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("error %q, want: %s", err, tc.message)
			}
			if out := s.Out.(*bytes.Buffer).String(); !strings.HasPrefix(out, "pingpong\n") || !strings.Contains(out, "seed        5") {
				t.Errorf("stdout must hold the report and nothing else:\n%s", out)
			}
			if progress := s.Err.(*bytes.Buffer).String(); !strings.Contains(progress, "pingpong: complete") {
				t.Errorf("stderr must hold the progress:\n%s", progress)
			}
		})
	}
}

// An experiment without claims has no verdict. If its budget ended it, the command fails, whether
// there are some trials or none.
func TestOutOfBudgetWithoutClaims(t *testing.T) {
	stored := finish(t, v1alpha1.ReasonBudgetExhausted)
	noTrial := func(c client.Client) {
		var e v1alpha1.Experiment
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &e); err != nil {
			t.Fatal(err)
		}
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentComplete, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonBudgetExhausted, Message: "0 of 8 trials are valid.", ObservedGeneration: e.Generation})
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentResultsStored, Status: metav1.ConditionUnknown,
			Reason: v1alpha1.ReasonTrialsRunning, Message: "No trial is done yet, so there are no results.", ObservedGeneration: e.Generation})
		if err := c.Status().Update(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		controller      func(client.Client)
		message, report string
	}{
		"some trials": {stored, "2 of 8 trials are valid.", "pingpong\n"},
		"no trial":    {noTrial, "0 of 8 trials are valid.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t, tc.controller)
			err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}, Set: []string{"claims=[]"}}, Wait: true, Timeout: time.Hour, Output: "text"})
			if code := session.ExitCode(err); code != session.ExitUntrusted || err.Error() != tc.message {
				t.Errorf("exit code %d, want %d: %v", code, session.ExitUntrusted, err)
			}
			if out := s.Out.(*bytes.Buffer).String(); !strings.HasPrefix(out, tc.report) || (tc.report == "") != (out == "") {
				t.Errorf("stdout:\n%s", out)
			}
			if progress := s.Err.(*bytes.Buffer).String(); !strings.Contains(progress, "BudgetExhausted: "+tc.message) {
				t.Errorf("stderr must say what ended it:\n%s", progress)
			}
		})
	}
}

// A store that is down does not delay the verdicts. They decide the exit code as usual.
func TestReportsThoughTheStoreIsDown(t *testing.T) {
	finished := false
	end := finish(t, "AllTrialsValid", v1alpha1.VerdictReproduced, v1alpha1.VerdictNotReproduced)
	s, _ := newSession(t, func(c client.Client) {
		if finished {
			return
		}
		end(c)
		finished = true
		var e v1alpha1.Experiment
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &e); err != nil {
			t.Fatal(err)
		}
		e.Status.Archive = &v1alpha1.ResultsArchive{Store: "archive"}
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentResultsStored, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonStoreUnreachable, Message: "Store archive does not answer.", ObservedGeneration: e.Generation})
		if err := c.Status().Update(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	})
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Wait: true, Timeout: time.Hour, Output: "text"})
	if code := session.ExitCode(err); code != session.ExitRefuted {
		t.Errorf("exit code %d (%v), want that of the verdicts, %d", code, err, session.ExitRefuted)
	}
	if out := s.Out.(*bytes.Buffer).String(); !strings.HasPrefix(out, "pingpong\n") {
		t.Errorf("stdout must hold the report and nothing else:\n%s", out)
	}
	if progress := s.Err.(*bytes.Buffer).String(); !strings.Contains(progress, "store archive does not have all of them yet: Store archive does not answer.") {
		t.Errorf("stderr does not say what the store lacks:\n%s", progress)
	}
}

func TestApplies(t *testing.T) {
	s, c := newSession(t, nil)
	for range 2 { // a second call is no error
		if err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}, Profile: "smoke"}}); err != nil {
			t.Fatal(err)
		}
	}
	var e v1alpha1.Experiment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &e); err != nil {
		t.Fatal(err)
	}
	if e.Spec.Profile != "smoke" || e.Spec.Repetitions.Min != 2 {
		t.Errorf("profile %q, repetitions %d; the profile is to be applied by the controller", e.Spec.Profile, e.Spec.Repetitions.Min)
	}
	var system v1alpha1.System
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "pingpong"}, &system); err != nil {
		t.Fatal(err)
	}
	if got := s.Err.(*bytes.Buffer).String(); !strings.Contains(got, "System pingpong applied in namespace lab\nExperiment pingpong applied in namespace lab\nFollow it with: kubectl assay watch pingpong -n lab\n") {
		t.Errorf("said:\n%s", got)
	}
}

func TestRefuses(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, alone, _ := strings.Cut(string(text), "---\n")
	written := strings.Replace(string(text), "kind: Experiment\nmetadata: {name: pingpong}", "kind: Experiment\nmetadata: {name: pingpong, namespace: other}", 1)
	system := &v1alpha1.System{ObjectMeta: metav1.ObjectMeta{Name: "pingpong", Namespace: "lab"}}
	for name, tc := range map[string]struct {
		text    string
		objects []client.Object
		given   bool // -n
		want    string
	}{
		"a system that is nowhere":        {text: alone, want: `there is no System "pingpong"; there are none; looked in the files, in `},
		"a system that does not fit":      {text: alone, objects: []client.Object{system}, want: "experiment pingpong is not applied:"},
		"a claim that cannot be judged":   {text: strings.Replace(string(text), "clients=2", "client=2", 1), want: "spec.claims[0].expr"},
		"a profile that does not exist":   {text: strings.ReplaceAll(string(text), "name: smoke", "name: other"), want: `no profile "smoke"; it has: other`},
		"a namespace that does not agree": {text: written, given: true, want: "written for namespace other and -n says lab"},
		"another's object":                {text: strings.Replace(string(text), "kind: System", "kind: Protocol", 1), want: `there is no kind "Protocol"; there are: Dataset, Experiment, System, Trial`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "e.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, c := newSession(t, nil, tc.objects...)
			s.Connect = func() (session.Cluster, error) {
				return session.Cluster{Client: c, Namespace: "lab", NamespaceGiven: tc.given}, nil
			}
			err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{path}, Profile: "smoke"}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want: %s", err, tc.want)
			}
			var list v1alpha1.ExperimentList
			if err := c.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
				t.Errorf("%d experiments were applied all the same (%v)", len(list.Items), err)
			}
		})
	}
}

func TestNamespaceOfTheFile(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, c := newSession(t, nil)
	stdin := strings.NewReader(strings.Replace(string(text), "kind: Experiment\nmetadata: {name: pingpong}", "kind: Experiment\nmetadata: {name: pingpong, namespace: other}", 1))
	if err := run.Run(t.Context(), s, stdin, run.Options{Input: run.Input{Files: []string{"-"}}}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{&v1alpha1.Experiment{}, &v1alpha1.System{}} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "other", Name: "pingpong"}, o); err != nil {
			t.Error(err)
		}
	}
}

func TestTimeout(t *testing.T) {
	s, _ := newSession(t, func(client.Client) {})
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Wait: true, Timeout: time.Minute, Output: "text"})
	if session.ExitCode(err) != session.ExitTimeout || !strings.Contains(err.Error(), "not complete after 1m0s") {
		t.Errorf("got %v, want a timeout with exit code 6", err)
	}
}

// The command refuses an unknown form before it applies anything, not after a run of two hours.
func TestRefusesOutputAtOnce(t *testing.T) {
	s, c := newSession(t, nil)
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Wait: true, Output: "docx"})
	if session.ExitCode(err) != session.ExitUsage || !strings.Contains(err.Error(), "-o docx: choose") {
		t.Errorf("got %v", err)
	}
	var list v1alpha1.ExperimentList
	if err := c.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
		t.Errorf("%d experiments were applied all the same (%v)", len(list.Items), err)
	}
}

func TestInterrupted(t *testing.T) {
	s, _ := newSession(t, nil)
	s.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}, Wait: true, Output: "text"})
	if session.ExitCode(err) != session.ExitInterrupted || err.Error() != "interrupted: experiment pingpong goes on; follow it with kubectl assay watch pingpong -n lab" {
		t.Errorf("got %v, want it to say that the experiment goes on", err)
	}
}
