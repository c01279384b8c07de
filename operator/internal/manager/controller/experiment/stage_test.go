package experiment_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/experiment"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

var checks = plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Measurement: monitoring.Check}

// stage is one experiment in a namespace of its own. The test plays the user and the trial
// controller, and calls Reconcile itself.
type stage struct {
	t        *testing.T
	env      *testcluster.Env
	c        client.Client
	ns       string
	name     string // of the experiment
	clock    *testclock.FakePassiveClock
	recorder *events.FakeRecorder
	r        *experiment.Reconciler
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageIn(t, testcluster.InProcess(t))
}

// newStageIn uses another API.
func newStageIn(t *testing.T, env *testcluster.Env) *stage {
	t.Helper()
	s := &stage{t: t, env: env, c: env.Client, ns: env.Namespace(t), name: "exp", recorder: events.NewFakeRecorder(100),
		clock: testclock.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))}
	s.use(env.Client)
	return s
}

// use makes the reconciler write through c.
func (s *stage) use(c client.Client) {
	s.r = &experiment.Reconciler{Client: c, Reader: s.env.Client, Clock: s.clock, Recorder: s.recorder,
		Seed: func() int64 { return 42 }, Checks: checks, Environment: render.Environment{AgentImage: "agent:1"}}
}

func (s *stage) create(objs ...client.Object) {
	s.t.Helper()
	for _, o := range objs {
		o.SetNamespace(s.ns)
		if err := s.c.Create(s.t.Context(), o); err != nil {
			s.t.Fatalf("create %s: %v", o.GetName(), err)
		}
	}
}

// of returns the same stage with another experiment.
func (s *stage) of(name string) *stage {
	other := *s
	other.name = name
	return &other
}

// reconcile runs one reconcile of the experiment, and checks the invariants.
func (s *stage) reconcile() error {
	s.t.Helper()
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	_, err := s.r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: s.ns, Name: s.name}})
	if exp := s.experiment(); exp != nil && len(exp.Status.Conditions) > 0 {
		s.checkInvariants(exp)
	}
	return err
}

// settle reconciles until nothing changes any more.
func (s *stage) settle() *v1alpha1.Experiment {
	s.t.Helper()
	version := ""
	for range 10 {
		if err := s.reconcile(); err != nil {
			s.t.Fatalf("reconcile: %v", err)
		}
		exp := s.experiment()
		if exp == nil || exp.ResourceVersion == version {
			return exp
		}
		version = exp.ResourceVersion
	}
	s.t.Fatal("ten reconciles and the experiment still changes")
	return nil
}

// experiment reads the experiment. It returns nil if it is gone.
func (s *stage) experiment() *v1alpha1.Experiment {
	s.t.Helper()
	exp := &v1alpha1.Experiment{}
	err := s.c.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: s.name}, exp)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return exp
}

// trials lists all trials in the namespace in order of their number.
func (s *stage) trials() []v1alpha1.Trial {
	s.t.Helper()
	list := &v1alpha1.TrialList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil {
		s.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Trial) int { return int(a.Spec.Number) - int(b.Spec.Number) })
	return list.Items
}

// finish ends the active trial as the trial controller does.
func (s *stage) finish(outcome string) v1alpha1.Trial {
	s.t.Helper()
	for _, trial := range s.trials() {
		if plan.Outcome(&trial) != v1alpha1.ReasonInProgress {
			continue
		}
		end(&trial, outcome, s.clock.Now())
		if err := s.c.Status().Update(s.t.Context(), &trial); err != nil {
			s.t.Fatal(err)
		}
		return trial
	}
	s.t.Fatal("no trial is active")
	return v1alpha1.Trial{}
}

// end writes an outcome into the status of a trial.
func end(trial *v1alpha1.Trial, outcome string, now time.Time) {
	released, drained := metav1.NewMicroTime(now), metav1.NewMicroTime(now.Add(30*time.Second))
	trial.Status.Times.Released, trial.Status.Times.Drained = &released, &drained
	valid := metav1.Condition{Type: v1alpha1.TrialValid, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, Message: "It can be trusted."}
	if outcome == v1alpha1.ReasonSucceeded {
		trial.Status.Headline = &v1alpha1.Headline{Committed: 2000, Aborted: 10, ThroughputMilli: 100500, MeanLatencyMicroseconds: 1250 * (1 + int64(trial.Spec.Point.Index)),
			P50LatencyMicroseconds: 1000, P99LatencyMicroseconds: 9000}
		trial.Status.ResultsConfigMap = trial.Name + "-results"
	} else {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, v1alpha1.ReasonClientFailed, "Client 1 ended with exit code 3."
	}
	complete := metav1.Condition{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: outcome, Message: valid.Message}
	for _, c := range []metav1.Condition{valid, complete} {
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&trial.Status.Conditions, c)
	}
}

// condition writes status, reason and message of a condition in one line.
func condition(exp *v1alpha1.Experiment, name string) string {
	c := meta.FindStatusCondition(exp.Status.Conditions, name)
	if c == nil {
		return "absent"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// expect checks that a condition begins with "Status Reason" and contains the words.
func (s *stage) expect(exp *v1alpha1.Experiment, name, prefix string, words ...string) {
	s.t.Helper()
	got := condition(exp, name)
	if !strings.HasPrefix(got, prefix+":") {
		s.t.Errorf("condition %s: %s, want %s", name, got, prefix)
	}
	for _, w := range words {
		if !strings.Contains(got, w) {
			s.t.Errorf("condition %s: %s, want it to say %q", name, got, w)
		}
	}
}

// results reads the stored results. It returns nil if there are none.
func (s *stage) results(name string) *results.Experiment {
	s.t.Helper()
	m := &corev1.ConfigMap{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, m); err != nil {
		s.t.Fatalf("read the results: %v", err)
	}
	files, err := results.StoredExperiment(m.Data, m.BinaryData)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := results.DecodeExperiment([]byte(files[results.ExperimentKey]))
	if err != nil {
		s.t.Fatal(err)
	}
	return &r
}

// snapshots lists the ControllerRevisions of the namespace.
func (s *stage) snapshots() []appsv1.ControllerRevision {
	s.t.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(c appsv1.ControllerRevision) bool { return c.Labels[v1alpha1.LabelSystem] == "" })
}

// told returns the events since its last call.
func (s *stage) told() []string {
	var out []string
	for {
		select {
		case e := <-s.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// checkInvariants checks what must hold after every reconcile.
func (s *stage) checkInvariants(exp *v1alpha1.Experiment) {
	s.t.Helper()
	for _, name := range []string{v1alpha1.ExperimentAccepted, v1alpha1.ExperimentComplete, v1alpha1.ExperimentResultsStored} {
		c := meta.FindStatusCondition(exp.Status.Conditions, name)
		switch {
		case c == nil:
			s.t.Errorf("condition %s is absent", name)
		case c.Message == "" || !strings.HasSuffix(c.Message, ".") && c.Reason != v1alpha1.ReasonInvalidSpec:
			s.t.Errorf("condition %s has no sentence: %q", name, c.Message)
		case c.ObservedGeneration > exp.Generation:
			s.t.Errorf("condition %s is about generation %d of %d", name, c.ObservedGeneration, exp.Generation)
		}
	}
	accepted := meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentAccepted)
	complete := meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete)
	if accepted && exp.Status.Seed == 0 && exp.Spec.Recurrence == nil || complete && !accepted {
		s.t.Errorf("accepted %v with seed %d, complete %v", accepted, exp.Status.Seed, complete)
	}
	if complete != (exp.Status.CompletionTime != nil) {
		s.t.Errorf("complete %v with completionTime %v", complete, exp.Status.CompletionTime)
	}
	if int(exp.Status.Trials.Active) > exp.Spec.Placement.AtOnce() {
		s.t.Errorf("%d trials are active", exp.Status.Trials.Active)
	}
}

// two is an experiment of two points, each with one repetition.
func two() *builders.ExperimentBuilder {
	return builders.Experiment("exp").System("basil").Values("clients", 1, 2).Repetitions(1).Order(v1alpha1.OrderSequential)
}
