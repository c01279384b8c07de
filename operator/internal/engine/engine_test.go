package engine

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The engine can carry trials out without an API server, given pods, a record, attachments and a
// clock. Such a program must not link the client of an API server.
func TestTheEngineKnowsNoAPIServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 50 {
		t.Fatalf("the engine has %d dependencies: %q", len(deps), deps)
	}
	for _, d := range deps {
		for _, foreign := range []string{
			"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/apimachinery/pkg/api/errors",
			"assay.dev/assay/operator/internal/manager/coordinator", "assay.dev/assay/operator/internal/manager/controller/trial", "assay.dev/assay/operator/internal/store",
		} {
			if d == foreign || strings.HasPrefix(d, foreign+"/") {
				t.Errorf("the engine depends on %s", d)
			}
		}
	}
}

type step string

func (p step) condition() string { return string(p) }

func (step) run(context.Context, *scope) Result { return Skip() }

func TestResultsOfPhases(t *testing.T) {
	const own, other = v1alpha1.TrialStarted, v1alpha1.TrialMeasured
	now := time.Unix(1000, 0)
	began := metav1.NewMicroTime(now.Add(-time.Minute))
	tests := map[string]struct {
		result Result
		next   bool
		after  time.Duration
		err    bool
		// conditions are "<type>=<status> <reason>: <message>".
		conditions []string
	}{
		"nothing to do":      {result: Skip(), next: true},
		"done":               {result: Done("Ready", "It is done.", nil), next: true, conditions: []string{own + "=True Ready: It is done."}},
		"done, to be saved":  {result: Result{state: done, reason: "Ready", stop: true}, after: time.Millisecond, conditions: []string{own + "=True Ready: "}},
		"waits":              {result: Wait("Busy", "waiting for %s", "a"), conditions: []string{own + "=False Busy: waiting for a"}},
		"waits a moment":     {result: Wait("Busy", "waiting").Within(time.Second).Within(time.Minute), after: time.Second, conditions: []string{own + "=False Busy: waiting"}},
		"waits, nothing new": {result: Again(time.Minute), after: time.Minute},
		"looks at no time":   {result: Again(time.Minute).Within(0), after: time.Minute},
		"waits elsewhere":    {result: Wait("Busy", "waiting").On(other), conditions: []string{other + "=False Busy: waiting"}},
		"has a deadline": {
			result: Wait("Busy", "waiting").Until(&began, 90*time.Second), after: 30*time.Second + time.Millisecond, conditions: []string{own + "=False Busy: waiting"},
		},
		"has a deadline, and looks before": {
			result: Wait("Busy", "waiting").Until(&began, 90*time.Second).Within(time.Second), after: time.Second, conditions: []string{own + "=False Busy: waiting"},
		},
		"has a deadline that has not begun": {result: Wait("Busy", "waiting").Until(nil, time.Hour), after: time.Second, conditions: []string{own + "=False Busy: waiting"}},
		"is at its deadline": {
			result:     Wait("Busy", "waiting").Until(&began, time.Minute),
			conditions: []string{own + "=False Busy: waiting", v1alpha1.TrialValid + "=False DeadlineExceeded: Started: after 1m0s, still waiting"},
		},
		"failed":            {result: Fail("StepFailed", "It failed with %d.", 3), conditions: []string{v1alpha1.TrialValid + "=False StepFailed: It failed with 3."}},
		"failed for a time": {result: Retry(errors.New("no answer")), err: true},
		"reports another": {
			result: Skip().With(other, metav1.ConditionTrue, "Measured", "%d numbers", 2), next: true, conditions: []string{other + "=True Measured: 2 numbers"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScope(&v1alpha1.Trial{}, &entry{}, now)
			next, after, err := s.apply(step(own), tc.result)
			if next != tc.next || after != tc.after || (err != nil) != tc.err {
				t.Errorf("next %t after %v, %v; want %t after %v", next, after, err, tc.next, tc.after)
			}
			var said []string
			for _, c := range s.trial.Status.Conditions {
				said = append(said, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
			}
			if strings.Join(said, "\n") != strings.Join(tc.conditions, "\n") {
				t.Errorf("the conditions are %q, want %q", said, tc.conditions)
			}
		})
	}
}

// broken is a record that cannot be read, and a clock.
type broken struct {
	Record

	now   time.Time
	saved *v1alpha1.Trial
}

func (b *broken) Now() time.Time { return b.now }

func (b *broken) System(context.Context, *v1alpha1.Trial) (*v1alpha1.SystemSpec, error) {
	return nil, errors.New("etcd does not answer")
}

func (b *broken) Save(_ context.Context, _, trial *v1alpha1.Trial, _ []Event) (time.Duration, error) {
	b.saved = trial
	return 0, nil
}

// If a part of a trial could not be read, at each attempt, the trial once held its pools for ever:
// the error came before every phase with a deadline.
func TestATrialHasADeadlineAboveItsPhases(t *testing.T) {
	admitted := time.Unix(100_000, 0)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrialStatus)
		over   time.Duration // since the trial was admitted
		behind time.Duration // the manager's clock
	}{
		"before the start": {change: func(*v1alpha1.TrialStatus) {}, over: 2 * time.Hour},
		"in the run":       {change: func(s *v1alpha1.TrialStatus) { s.ZeroUnixNanos = admitted.Add(time.Hour).UnixNano() }, over: 3 * time.Hour},
		"before the start, by a clock that is behind": {change: func(*v1alpha1.TrialStatus) {}, over: 2 * time.Hour, behind: 9 * time.Hour},
		"in the run, by a clock that is behind": {change: func(s *v1alpha1.TrialStatus) {
			released := metav1.NewMicroTime(admitted.Add(time.Hour - 10*time.Second))
			s.Times.Released, s.ZeroUnixNanos = &released, admitted.Add(time.Hour).UnixNano()
		}, over: 2 * time.Hour, behind: 9 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			at := metav1.NewMicroTime(admitted)
			trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: v1alpha1.TrialStatus{Times: v1alpha1.TrialTimes{Admitted: &at}}}
			trial.Spec.Schedule = v1alpha1.Schedule{WarmUp: "5s", Measure: "20s", CoolDown: "2s", Drain: "5s"}
			tc.change(&trial.Status)
			world := &broken{now: admitted.Add(time.Minute - tc.behind)}
			e := New(World{Record: world, Clock: world})
			if _, err := e.Advance(t.Context(), trial.DeepCopy()); err == nil || world.saved != nil {
				t.Fatalf("at first: %v, saved %v; want the error, and nothing saved", err, world.saved)
			}
			world.now = admitted.Add(tc.over - tc.behind)
			if _, err := e.Advance(t.Context(), trial.DeepCopy()); err != nil || world.saved == nil {
				t.Fatalf("after %v: %v, saved %v; want an outcome", tc.over, err, world.saved)
			}
			c := meta.FindStatusCondition(world.saved.Status.Conditions, v1alpha1.TrialValid)
			if c.Reason != v1alpha1.ReasonDeadlineExceeded || !strings.Contains(c.Message, "etcd does not answer") {
				t.Errorf("it ends with %s: %s", c.Reason, c.Message)
			}
		})
	}
}

// A manager that was away for a long time finds trials past their deadline, with their results.
func TestAManagerThatTakesOverTriesFirst(t *testing.T) {
	world := &broken{now: time.Unix(1_000_000, 0)}
	e := New(World{Record: world, Clock: world})
	at := metav1.NewMicroTime(time.Unix(1000, 0))
	trial := &v1alpha1.Trial{Status: v1alpha1.TrialStatus{Times: v1alpha1.TrialTimes{Admitted: &at}}}
	if _, err := e.Advance(t.Context(), trial); err == nil || world.saved != nil {
		t.Errorf("the first attempt ends with %v, saved %v; want the error, and nothing saved", err, world.saved)
	}
}
