package experiment_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// The lines of thousands of trials do not fit into a ConfigMap as plain text. They are packed, and
// nothing is left out.
func TestResultsOfThousandsOfTrialsArePacked(t *testing.T) {
	s := newStage(t)
	system := builders.System("basil").Obj()
	s.create(system, builders.Experiment("exp").System("basil").Values("clients", manyClients(40)...).Repetitions(100).Obj())
	exp := s.settle()
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"basil": system.Spec})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	var all []v1alpha1.Trial
	for _, round := range plan.Rounds(p, exp.Status.Seed) {
		for _, slot := range round {
			spec := *p.Points[slot.Point].Template.DeepCopy()
			spec.Number, spec.Repetition = int32(len(all)), slot.Repetition
			trial := builders.Trial(fmt.Sprintf("exp-0000-%d", len(all))).Spec(spec).Obj()
			trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1alpha1.GroupVersion.WithKind("Experiment"))}
			end(trial, v1alpha1.ReasonSucceeded, s.clock.Now())
			all = append(all, *trial)
		}
	}
	// The test lists 4000 trials without creating them.
	s.use(interceptor.NewClient(s.env.Client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if trials, ok := list.(*v1alpha1.TrialList); ok {
				trials.Items = slices.Clone(all)
				return nil
			}
			return c.List(ctx, list, opts...)
		}}))
	exp = s.settle()
	s.expect(exp, stored, "True Stored", exp.Status.ResultsConfigMap)
	s.expect(exp, complete, "True AllTrialsValid")
	m := &corev1.ConfigMap{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: exp.Status.ResultsConfigMap}, m); err != nil {
		t.Fatal(err)
	}
	r := s.results(m.Name)
	if m.Data[results.ExperimentKey] != "" || len(m.BinaryData[results.PackedExperimentKey]) == 0 {
		t.Errorf("the ConfigMap has the keys %v and %v, want packed results", slices.Collect(maps.Keys(m.Data)), slices.Collect(maps.Keys(m.BinaryData)))
	}
	if len(r.Trials) != 4000 || len(r.LeftOut) != 0 || len(r.Points) != 40 || r.Points[39].Valid != 100 {
		t.Errorf("%d lines, %d points, left out %q", len(r.Trials), len(r.Points), r.LeftOut)
	}
	if lines := strings.Count(m.Data["results.csv"], "\n"); lines != 41 {
		t.Errorf("results.csv has %d lines, want a header and 40 points", lines)
	}
}

func manyClients(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// If a snapshot cannot be written, the experiment waits, reports it and tries again.
func TestSnapshotFails(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	fails := true
	s.use(interceptor.NewClient(s.env.Client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, ok := o.(*appsv1.ControllerRevision); ok && fails {
				return fmt.Errorf("no room")
			}
			return c.Create(ctx, o, opts...)
		}}))
	_ = s.reconcile() // adds the finalizer
	if err := s.reconcile(); err == nil || !strings.Contains(err.Error(), "create the snapshot of System basil: no room") {
		t.Errorf("error %v", err)
	}
	s.expect(s.experiment(), accepted, "Unknown SnapshotFailed", "it is tried again")
	s.expect(s.experiment(), complete, "False SnapshotFailed")
	fails = false
	s.expect(s.settle(), accepted, "True Valid")
}

// If a System changes before the seed is written, its snapshot is replaced.
func TestOutdatedSnapshotIsReplaced(t *testing.T) {
	s := newStage(t)
	system := builders.System("basil").Obj()
	s.create(system, two().Obj())
	s.use(interceptor.NewClient(s.env.Client, interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return fmt.Errorf("away")
		}}))
	_ = s.reconcile() // adds the finalizer
	if err := s.reconcile(); err == nil || len(s.snapshots()) != 1 {
		t.Fatalf("error %v, %d snapshots", err, len(s.snapshots()))
	}
	old := s.snapshots()[0].Name
	system.Spec.Replicas.Count = "3*f+1"
	if err := s.c.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	s.use(s.env.Client)
	s.settle()
	if snapshots := s.snapshots(); len(snapshots) != 1 || snapshots[0].Name == old || s.trials()[0].Spec.Topology.Regions[0].Replicas != 4 {
		t.Errorf("snapshots %v, trial's topology %+v", snapshots, s.trials()[0].Spec.Topology)
	}
}

// A trial is counted once, when the status has its outcome.
func TestMetrics(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Obj())
	before := trialsDone(t)
	s.settle()
	s.finish(v1alpha1.ReasonInvalid)
	s.settle()
	s.finish(v1alpha1.ReasonSucceeded)
	s.settle()
	after := trialsDone(t)
	if valid, invalid := after[v1alpha1.ReasonSucceeded]-before[v1alpha1.ReasonSucceeded], after[v1alpha1.ReasonInvalid]-before[v1alpha1.ReasonInvalid]; valid != 1 || invalid != 1 {
		t.Errorf("counted %v succeeded and %v invalid", valid, invalid)
	}
	if c := meta.FindStatusCondition(s.experiment().Status.Conditions, complete); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("condition Complete: %+v", c)
	}
}

func trialsDone(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "assay_trials_done_total" {
			continue
		}
		for _, m := range f.Metric {
			counts[label(m)] = m.GetCounter().GetValue()
		}
	}
	return counts
}

func label(m *dto.Metric) string { return m.Label[0].GetValue() }
