package integration

import (
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// apply creates an object as kubectl does: unknown fields are errors.
func apply(t testing.TB, env *testenv.Env, obj client.Object) error {
	t.Helper()
	return client.WithFieldValidation(env.Client, metav1.FieldValidationStrict).Create(t.Context(), obj)
}

// An Experiment may come before its System. The user gets a warning, and an error for every mistake
// that is visible without the System.
func TestExperimentBeforeItsSystem(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	warnings := &warningRecorder{}
	cfg := rest.CopyConfig(env.Config)
	cfg.WarningHandler = warnings
	c, err := client.New(cfg, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	exp := builders.Experiment("early").Namespace(ns).System("late").Obj()
	if err := c.Create(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	if got := warnings.text(); !strings.Contains(got, `spec.systems[0].name: there is no System "late" in the namespace`) {
		t.Errorf("warnings %q", got)
	}
	wrong := builders.Experiment("wrong").Namespace(ns).System("late").Set(func(s *v1alpha1.ExperimentSpec) { s.Schedule.Measure = "1ms" }).Obj()
	if err := c.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "spec.schedule.measure") {
		t.Errorf("a wrong schedule gives %v", err)
	}
}

// A number that the clients of a System never report cannot decide a claim. The user who applies
// the Experiment gets a warning for each such claim.
func TestClaimsThatReportsNeverDecide(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	warnings := &warningRecorder{}
	cfg := rest.CopyConfig(env.Config)
	cfg.WarningHandler = warnings
	c, err := client.New(cfg, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	system := builders.System("summary").Namespace(ns).Obj()
	system.Spec.Clients.Driver = nil
	system.Spec.Clients.Results = &v1alpha1.ClientResults{Format: v1alpha1.FormatSummary, Source: "Stdout", Summary: &v1alpha1.ClientSummary{
		Numbers: []v1alpha1.SummaryNumber{{Name: "Throughput", Pattern: "rate (?P<value>[0-9.]+)"}}}}
	if err := c.Create(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	exp := builders.Experiment("never").Namespace(ns).System("summary").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Claims = []v1alpha1.Claim{{Name: "median", Statement: "The median is short.", Expr: "p50_latency() < 5ms"},
			{Name: "rate", Statement: "It is fast.", Expr: "throughput() > 5"}}
	}).Obj()
	if err := c.Create(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	if got := warnings.text(); !strings.Contains(got, "median") || !strings.Contains(got, "P50Latency") || strings.Contains(got, "rate") {
		t.Errorf("warnings %q, want one about the median alone", got)
	}
}

// An experiment that recurs has no trials of its own, so its spec may change for later runs. It
// cannot stop or start to recur: its runs would then belong to another experiment.
func TestSpecThatRecursMayChange(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	exp := builders.Experiment("nightly").Namespace(ns).System("basil").Set(func(e *v1alpha1.ExperimentSpec) { e.Recurrence = &v1alpha1.Recurrence{Cron: "0 3 * * *"} }).Obj()
	for _, obj := range []client.Object{builders.System("basil").Namespace(ns).Obj(), exp} {
		if err := apply(t, env, obj); err != nil {
			t.Fatal(err)
		}
	}
	exp.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid, LastTransitionTime: metav1.Now(), Message: "It is."}}
	if err := env.Client.Status().Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	exp.Spec.Repetitions.Min, exp.Spec.Recurrence.Cron = 5, "30 4 * * *"
	if err := env.Client.Update(t.Context(), exp); err != nil {
		t.Errorf("another size and another time: %v", err)
	}
	exp.Spec.Recurrence.Cron = "* * * * *"
	if err := env.Client.Update(t.Context(), exp); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.recurrence.cron") {
		t.Errorf("each minute: %v", err)
	}
	exp.Spec.Recurrence = nil
	if err := env.Client.Update(t.Context(), exp); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "recurs all its life or never") {
		t.Errorf("once: %v", err)
	}
}

// When trials are planned, only spec.suspend, spec.priority, spec.budget and spec.debug may change,
// and additional repetitions may rise.
func TestSpecIsFixedOnceAccepted(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	if err := apply(t, env, builders.System("basil").Namespace(ns).Obj()); err != nil {
		t.Fatal(err)
	}
	for name, status := range map[string]v1alpha1.ExperimentStatus{
		"accepted": {Conditions: []metav1.Condition{{Type: v1alpha1.ExperimentAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid,
			LastTransitionTime: metav1.Now(), Message: "It is."}}},
		"seeded": {Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment(name).Namespace(ns).System("basil").Values("clients", 1, 2).Obj()
			if err := apply(t, env, exp); err != nil {
				t.Fatal(err)
			}
			exp.Spec.Repetitions.Min = 4
			if err := env.Client.Update(t.Context(), exp); err != nil {
				t.Fatalf("before it is accepted: %v", err)
			}
			exp.Status = status
			if err := env.Client.Status().Update(t.Context(), exp); err != nil {
				t.Fatal(err)
			}
			exp.Spec.Repetitions.Min = 5
			err := env.Client.Update(t.Context(), exp)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "only spec.suspend, spec.priority, spec.budget and spec.debug may change") || !strings.Contains(err.Error(), "under another name") {
				t.Errorf("a change afterwards gives %v", err)
			}
			exp.Spec.Repetitions.Min = 4
			exp.Spec.Suspend = true
			if err := env.Client.Update(t.Context(), exp); err != nil {
				t.Errorf("suspend: %v", err)
			}
			exp.Spec.Priority = 5
			if err := env.Client.Update(t.Context(), exp); err != nil {
				t.Errorf("another priority: %v", err)
			}
			exp.Spec.Debug = &v1alpha1.Debug{KeepFailed: "30m"}
			if err := env.Client.Update(t.Context(), exp); err != nil {
				t.Errorf("pods of failed trials are to be kept: %v", err)
			}
			exp.Spec.AdditionalRepetitions = 3
			if err := env.Client.Update(t.Context(), exp); err != nil {
				t.Errorf("additional repetitions: %v", err)
			}
			for _, wrong := range []int32{2, 97, 100} {
				exp.Spec.AdditionalRepetitions = wrong
				if err := env.Client.Update(t.Context(), exp); !apierrors.IsInvalid(err) {
					t.Errorf("from 3 to %d additional repetitions: %v", wrong, err)
				}
			}
		})
	}
}

// A System of an accepted experiment may change, and the experiment's finalizer can still be
// removed.
func TestMetadataChangesAreNotValidatedAgain(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system := builders.System("basil").Namespace(ns).Obj()
	exp := builders.Experiment("exp").Namespace(ns).System("basil").Parameter("batch", 3).Obj()
	exp.Finalizers = []string{v1alpha1.FinalizerExperiment}
	for _, o := range []client.Object{system, exp} {
		if err := apply(t, env, o); err != nil {
			t.Fatal(err)
		}
	}
	system.Spec.Parameters[2].Name = "batchSize"
	system.Spec.Replicas.Containers[0].Command = []string{"/echo"}
	if err := env.Client.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	exp.Finalizers = nil
	if err := env.Client.Update(t.Context(), exp); err != nil {
		t.Errorf("remove the finalizer: %v", err)
	}
}

// The plan without an API server equals the plan with one: Expand sets the same defaults.
func TestDefaultsAreTheSameOffline(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	for _, file := range []string{"experiment-minimal.yaml", "experiment-open-loop.yaml", "experiment-faults.yaml"} {
		obj := sample(t, file)
		text, err := obj.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		offline, err := plan.DecodeExperiment(text)
		if err != nil {
			t.Fatal(err)
		}
		obj.SetNamespace(ns)
		if err := apply(t, env, obj); err != nil {
			t.Fatal(err)
		}
		stored := &v1alpha1.Experiment{}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), stored); err != nil {
			t.Fatal(err)
		}
		systems := map[string]v1alpha1.SystemSpec{"kv": kv(t)}
		a, errsA := plan.Expand(offline, systems)
		b, errsB := plan.Expand(stored, systems)
		if len(errsA)+len(errsB) > 0 {
			t.Fatalf("%s: %v %v", file, errsA, errsB)
		}
		for i := range a.Points {
			if x, y := asJSON(t, a.Points[i].Template), asJSON(t, b.Points[i].Template); x != y {
				t.Errorf("%s, point %d: offline %s\nstored %s", file, i, x, y)
			}
		}
	}
}

// A Trial's spec never changes.
func TestTrialSpecIsImmutable(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	p, errs := plan.Expand(builders.Experiment("e").System("basil").Obj(), map[string]v1alpha1.SystemSpec{"basil": builders.System("basil").Obj().Spec})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	spec := *plan.Next(p, 1, nil).Create
	spec.System.Revision = "e-basil-0"
	trial := builders.Trial("e-0000-0").Spec(spec).Obj()
	trial.Namespace, trial.UID = ns, ""
	if err := apply(t, env, trial); err != nil {
		t.Fatal(err)
	}
	trial.Spec.Seed++
	if err := env.Client.Update(t.Context(), trial); err == nil || !strings.Contains(err.Error(), "spec is immutable") {
		t.Errorf("a change gives %v", err)
	}
}

func kv(t testing.TB) v1alpha1.SystemSpec {
	t.Helper()
	return decodeSystem(t, sample(t, "systems/driver.yaml"))
}

func decodeSystem(t testing.TB, obj *unstructured.Unstructured) v1alpha1.SystemSpec {
	t.Helper()
	s := &v1alpha1.System{}
	text, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	fromJSON(t, text, s)
	return s.Spec
}

type warningRecorder struct {
	mu   sync.Mutex
	seen []string
}

func (w *warningRecorder) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, text)
}

func (w *warningRecorder) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.seen, "\n")
}
