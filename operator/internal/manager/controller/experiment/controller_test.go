package experiment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

const (
	accepted = v1alpha1.ExperimentAccepted
	complete = v1alpha1.ExperimentComplete
	stored   = v1alpha1.ExperimentResultsStored
)

func TestLifeOfAnExperiment(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) {
		e.Claims = []v1alpha1.Claim{{Name: "slower", Statement: "More clients wait longer.", Expr: "mean_latency(clients=1) < mean_latency(clients=2)"}}
	}).Obj())

	exp := s.settle()
	s.expect(exp, accepted, "True Valid", "2 points with 1 valid trials")
	s.expect(exp, complete, "False TrialsRunning", "Trial 0 runs: point 0", "0 of 2")
	s.expect(exp, stored, "Unknown TrialsRunning")
	if exp.Status.Seed != 42 || exp.Status.Points != 2 || exp.Status.StartTime == nil {
		t.Errorf("status %+v", exp.Status)
	}
	first := s.trials()[0]
	if !strings.HasPrefix(first.Name, "exp-") || !strings.HasSuffix(first.Name, "-0") || !metav1.IsControlledBy(&first, exp) ||
		first.Labels[v1alpha1.LabelExperiment] != "exp" || first.Labels[v1alpha1.LabelPoint] != "0" {
		t.Errorf("trial %s, labels %v, owners %v", first.Name, first.Labels, first.OwnerReferences)
	}
	s.checkSnapshot(exp, first.Spec.System.Revision)

	s.finish(v1alpha1.ReasonSucceeded)
	exp = s.settle()
	s.expect(exp, stored, "True Stored", exp.Status.ResultsConfigMap)
	if got := s.results(exp.Status.ResultsConfigMap); len(got.Trials) != 1 || got.Completed != nil {
		t.Errorf("results after the first trial: %+v", got)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	exp = s.settle()
	s.expect(exp, complete, "True AllTrialsValid", "All 2 trials of 2 points are valid.")
	if diff := cmp.Diff(v1alpha1.TrialCounts{Planned: 2, Succeeded: 2}, exp.Status.Trials); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	s.checkResults(exp)
	if n := len(s.trials()); n != 2 {
		t.Errorf("%d trials", n)
	}
	want := []string{"Normal Valid", "Normal AllTrialsValid"}
	if diff := cmp.Diff(want, firstWords(s.told())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func (s *stage) checkSnapshot(exp *v1alpha1.Experiment, name string) {
	s.t.Helper()
	snapshots := s.snapshots()
	if len(snapshots) != 1 || snapshots[0].Name != name || !metav1.IsControlledBy(&snapshots[0], exp) {
		s.t.Fatalf("snapshots %v, the trial names %q", snapshots, name)
	}
	var spec v1alpha1.SystemSpec
	if err := json.Unmarshal(snapshots[0].Data.Raw, &spec); err != nil || spec.Replicas.Count != "5*f+1" {
		s.t.Errorf("snapshot %s: %v", snapshots[0].Data.Raw, err)
	}
}

func (s *stage) checkResults(exp *v1alpha1.Experiment) {
	s.t.Helper()
	m := &corev1.ConfigMap{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: exp.Status.ResultsConfigMap}, m); err != nil {
		s.t.Fatal(err)
	}
	if len(m.OwnerReferences) != 0 || m.Labels[v1alpha1.LabelResults] != "experiment" || m.Labels[v1alpha1.LabelExperiment] != "exp" {
		s.t.Errorf("owners %v, labels %v", m.OwnerReferences, m.Labels)
	}
	var spec v1alpha1.ExperimentSpec
	if err := json.Unmarshal([]byte(m.Data["spec.json"]), &spec); err != nil || len(spec.Sweep) != 1 {
		s.t.Errorf("spec.json: %v", err)
	}
	if lines := strings.Count(m.Data["results.csv"], "\n"); lines != 3 {
		s.t.Errorf("results.csv has %d lines, want a header and two points:\n%s", lines, m.Data["results.csv"])
	}
	r := s.results(m.Name)
	if len(r.Trials) != 2 || r.Completed == nil || r.Seed != 42 || r.Trials[0].Throughput != 100.5 || r.Trials[1].MeanMillis != 2.5 || r.Trials[0].ConfigMap == "" {
		s.t.Errorf("results.json: %+v", r)
	}
	if len(exp.Status.Claims) != 1 || exp.Status.Claims[0].Name != "slower" || exp.Status.Claims[0].Message == "" {
		s.t.Errorf("claims %+v", exp.Status.Claims)
	}
}

func firstWords(events []string) []string {
	var out []string
	for _, e := range events {
		words := strings.SplitN(e, " ", 3)
		out = append(out, words[0]+" "+words[1])
	}
	return out
}

func TestReasons(t *testing.T) {
	tests := map[string]struct {
		experiment *builders.ExperimentBuilder
		systems    []*builders.SystemBuilder
		outcomes   []string
		condition  string
		want       string
		words      []string
		events     []string
	}{
		"no system": {
			experiment: two(), condition: accepted, want: "False SystemNotFound",
			words: []string{"System basil does not exist in the namespace; apply it."}, events: []string{"Warning SystemNotFound"},
		},
		"does not fit": {
			experiment: two().Parameter("fastPth", true), systems: []*builders.SystemBuilder{builders.System("basil")}, condition: accepted, want: "False InvalidSpec",
			words: []string{"spec.parameters[fastPth]", `did you mean "fastPath"?`}, events: []string{"Warning InvalidSpec"},
		},
		"does not fit, so it is not complete": {
			experiment: two().Parameter("fastPth", true), systems: []*builders.SystemBuilder{builders.System("basil")}, condition: complete, want: "False InvalidSpec",
			words: []string{"before the experiment is accepted"}, events: []string{"Warning InvalidSpec"},
		},
		"template fails": {
			experiment: two(), systems: []*builders.SystemBuilder{builders.System("basil").Set(func(s *v1alpha1.SystemSpec) {
				s.Replicas.Containers[0].Command = []string{"{{(index .Replicas 99).IP}}"}
			})}, condition: accepted, want: "False InvalidSpec",
			words: []string{"spec.replicas.containers[0].command[0]"}, events: []string{"Warning InvalidSpec"},
		},
		"suspended": {
			experiment: two().Set(func(e *v1alpha1.ExperimentSpec) { e.Suspend = true }), systems: []*builders.SystemBuilder{builders.System("basil")},
			condition: complete, want: "False Suspended", words: []string{"spec.suspend"}, events: []string{"Normal Valid", "Normal Suspended"},
		},
		"retries run out": {
			experiment: two().Retries(1), systems: []*builders.SystemBuilder{builders.System("basil")},
			outcomes:  []string{v1alpha1.ReasonInvalid, v1alpha1.ReasonFailed, v1alpha1.ReasonSucceeded},
			condition: complete, want: "True RetriesExhausted", words: []string{"1 of 2 trials are valid", "Of 1 repetition all 2 attempts that count failed"},
			events: []string{"Normal Valid", "Warning RetriesExhausted"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			for _, b := range tc.systems {
				s.create(b.Obj())
			}
			s.create(tc.experiment.Obj())
			exp := s.settle()
			for _, outcome := range tc.outcomes {
				s.finish(outcome)
				exp = s.settle()
			}
			s.expect(exp, tc.condition, tc.want, tc.words...)
			if diff := cmp.Diff(tc.events, firstWords(s.told())); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if len(tc.outcomes) == 0 && len(s.trials()) != 0 {
				t.Errorf("%d trials were created", len(s.trials()))
			}
		})
	}
}

// The results have an invalid trial with its reason, but not in any average.
func TestInvalidTrialsAreReported(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	s.finish(v1alpha1.ReasonInvalid)
	exp := s.settle()
	r := s.results(exp.Status.ResultsConfigMap)
	if len(r.Trials) != 1 || r.Trials[0].Outcome != v1alpha1.ReasonInvalid || r.Trials[0].Reason != v1alpha1.ReasonClientFailed || r.Trials[0].Message != "Client 1 ended with exit code 3." {
		t.Errorf("lines %+v", r.Trials)
	}
	if r.Points[0].Invalid != 1 || r.Points[0].Valid != 0 {
		t.Errorf("point %+v", r.Points[0])
	}
}

// The experiment starts when its missing System arrives, and uses the seed of the spec.
func TestSystemComesLate(t *testing.T) {
	s := newStage(t)
	s.create(two().Set(func(e *v1alpha1.ExperimentSpec) { seed := int64(7); e.Seed = &seed }).Obj())
	s.settle()
	s.create(builders.System("basil").Obj())
	exp := s.settle()
	s.expect(exp, accepted, "True Valid")
	if exp.Status.Seed != 7 || len(s.trials()) != 1 {
		t.Errorf("seed %d, %d trials", exp.Status.Seed, len(s.trials()))
	}
}

// An experiment runs the System in the state in which the experiment was accepted.
func TestSystemChangesAfterwards(t *testing.T) {
	s := newStage(t)
	system := builders.System("basil").Obj()
	s.create(system, two().Obj())
	s.settle()
	before := s.trials()[0].Spec.System.Revision
	system.Spec.Replicas.Count = "3*f+1"
	if err := s.c.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	s.settle()
	second := s.trials()[1].Spec
	if second.System.Revision != before || second.Topology.Regions[0].Replicas != 6 {
		t.Errorf("the second trial has revision %s with %d replicas, the first %s with 6", second.System.Revision, second.Topology.Regions[0].Replicas, before)
	}
	if err := s.c.Delete(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	s.expect(s.settle(), accepted, "True Valid")
}

// A deleted snapshot cannot be made again, since its content is unknown.
func TestSnapshotIsGone(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	s.finish(v1alpha1.ReasonSucceeded)
	s.settle()
	snapshot := s.snapshots()[0]
	if err := s.c.Delete(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}
	exp := s.settle()
	s.expect(exp, accepted, "False SystemNotFound", "snapshot of System basil is gone", "apply it again")
	s.expect(exp, stored, "True Stored")
	if exp.Status.Trials.Succeeded != 1 {
		t.Errorf("counts %+v, want them kept", exp.Status.Trials)
	}
}

func TestSuspendAndResume(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	exp := s.settle()
	exp.Spec.Suspend = true
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 0 runs")
	s.finish(v1alpha1.ReasonSucceeded)
	exp = s.settle()
	s.expect(exp, complete, "False Suspended")
	exp.Spec.Suspend = false
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 1 runs")
}

// A deleted experiment goes when its trials have cleaned up. Its results stay, even if a new
// experiment with its name is created, which begins from the start.
func TestDeletionAndRebirth(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	s.finish(v1alpha1.ReasonSucceeded)
	exp := s.settle()
	held := s.trials()[1]
	held.Finalizers = []string{v1alpha1.FinalizerTrial}
	if err := s.c.Update(t.Context(), &held); err != nil {
		t.Fatal(err)
	}
	if err := s.c.Delete(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if s.experiment() == nil || len(s.trials()) != 1 || s.trials()[0].DeletionTimestamp.IsZero() {
		t.Fatalf("the experiment did not wait for its trial: %v", s.trials())
	}
	held = s.trials()[0]
	held.Finalizers = nil
	if err := s.c.Update(t.Context(), &held); err != nil {
		t.Fatal(err)
	}
	if err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	if s.experiment() != nil {
		t.Fatal("the experiment is still there")
	}
	s.create(two().Obj())
	s.settle()
	s.finish(v1alpha1.ReasonFailed)
	again := s.settle()
	if again.Status.ResultsConfigMap == exp.Status.ResultsConfigMap {
		t.Error("both experiments store their results in one ConfigMap")
	}
	if old := s.results(exp.Status.ResultsConfigMap); len(old.Trials) != 1 || old.UID != string(exp.UID) {
		t.Errorf("the first experiment's results: %+v", old)
	}
	if again.Status.Trials.Succeeded != 0 || again.Status.Trials.Failed != 1 {
		t.Errorf("counts %+v, want those of its own trials", again.Status.Trials)
	}
}

// The controller does not overwrite a ConfigMap of another owner. When that is gone, it stores the
// results.
func TestResultsOfAnotherExperiment(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	s.finish(v1alpha1.ReasonSucceeded)
	exp := s.settle()
	name := exp.Status.ResultsConfigMap
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	if err := s.c.Delete(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	taken.Data = map[string]string{"mine": "yes"}
	s.create(taken)
	s.told()
	for range 2 {
		if err := s.reconcile(); err == nil {
			t.Error("no error, so that it would not be tried again")
		}
	}
	s.expect(s.experiment(), stored, "False StoreFailed", name, "is not overwritten")
	if diff := cmp.Diff([]string{"Warning StoreFailed"}, firstWords(s.told())); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err := s.c.Delete(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	s.expect(s.settle(), stored, "True Stored")
}

// After any failed write, the next reconcile goes on, creates nothing twice, and sends each event
// once.
func TestWritesThatFail(t *testing.T) {
	failure := errors.New("the API server is away")
	tests := map[string]func(n *int) interceptor.Funcs{
		"create": func(n *int) interceptor.Funcs {
			return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if *n--; *n == 0 {
					return failure
				}
				return c.Create(ctx, o, opts...)
			}}
		},
		"answer to create": func(n *int) interceptor.Funcs {
			return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if *n--; *n == 0 {
					return errors.Join(c.Create(ctx, o, opts...), failure)
				}
				return c.Create(ctx, o, opts...)
			}}
		},
		"status": func(n *int) interceptor.Funcs {
			return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				if *n--; *n == 0 {
					return failure
				}
				return c.SubResource(sub).Update(ctx, o, opts...)
			}}
		},
	}
	for name, funcs := range tests {
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				s := newStage(t)
				left := n
				s.use(interceptor.NewClient(s.env.Client, funcs(&left)))
				s.create(builders.System("basil").Obj(), two().Obj())
				failures := 0
				for range 12 {
					if err := s.reconcile(); err != nil {
						failures++
						continue
					}
					if trials := s.trials(); len(trials) > 0 && trials[len(trials)-1].Status.Conditions == nil {
						s.finish(v1alpha1.ReasonSucceeded)
					}
				}
				exp := s.experiment()
				s.expect(exp, complete, "True AllTrialsValid")
				if failures != 1 || len(s.trials()) != 2 || len(s.snapshots()) != 1 || exp.Status.Trials.Succeeded != 2 {
					t.Errorf("%d failures, %d trials, %d snapshots, counts %+v", failures, len(s.trials()), len(s.snapshots()), exp.Status.Trials)
				}
				if diff := cmp.Diff([]string{"Normal Valid", "Normal AllTrialsValid"}, firstWords(s.told())); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// The controller does not write a stale status. That is no error: it reads the experiment again.
func TestConflictIsTriedAgain(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	s.finish(v1alpha1.ReasonSucceeded)
	s.use(interceptor.NewClient(s.env.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if exp, ok := o.(*v1alpha1.Experiment); ok && err == nil {
				exp.ResourceVersion = "1"
			}
			return err
		}}))
	result, err := s.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: s.ns, Name: "exp"}})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("result %+v, error %v", result, err)
	}
	if exp := s.experiment(); exp.Status.Trials.Succeeded != 0 {
		t.Errorf("counts %+v were written over a newer version", exp.Status.Trials)
	}
}

// If the cache has not seen a new trial, no second trial is made.
func TestStaleCache(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	s.settle()
	s.use(interceptor.NewClient(s.env.Client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.TrialList); ok {
				return nil
			}
			return c.List(ctx, list, opts...)
		}}))
	if err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	if n := len(s.trials()); n != 1 {
		t.Errorf("%d trials", n)
	}
	s.keepResults(s.trials()[0].Name)
	if err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	if n := len(s.trials()); n != 1 {
		t.Errorf("%d trials after the first has results", n)
	}
}

// keepResults makes the ConfigMap with a trial's results, as the trial controller does.
func (s *stage) keepResults(trial string) {
	s.t.Helper()
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trial + "-results"}})
}

// After the last trial was deleted, the next one once got its number, and overwrote its results.
func TestTheLastTrialIsDeleted(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), builders.Experiment("exp").System("basil").Repetitions(3).Order(v1alpha1.OrderSequential).Obj())
	for range 3 {
		s.settle()
		s.keepResults(s.finish(v1alpha1.ReasonSucceeded).Name)
	}
	s.settle()
	for _, trial := range s.trials()[1:] {
		if err := s.c.Delete(t.Context(), &trial); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 3 runs")
	trials := s.trials()
	if len(trials) != 2 || trials[1].Spec.Number != 3 || trials[1].Spec.Repetition != 1 || !strings.HasSuffix(trials[1].Name, "-3") {
		t.Fatalf("trials %v", trials)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	s.expect(s.settle(), complete, "False TrialsRunning", "Trial 4 runs")
}
