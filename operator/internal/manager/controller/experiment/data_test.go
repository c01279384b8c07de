package experiment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

const dataReady = v1alpha1.ExperimentDataReady

// withData is an experiment of one point whose System has a data set. It has a node.
func withData(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	testcluster.Node(t, s.c, "node-of-"+s.ns, s.ns)
	s.create(builders.System("basil").Set(func(spec *v1alpha1.SystemSpec) {
		spec.Datasets = []v1alpha1.DatasetSource{{
			Name: "rows", OutputPath: "/made", MountPath: "/rows", Size: resource.MustParse("1Gi"),
			Container: v1alpha1.Container{Name: "load", Image: "load:1", Command: []string{"/load", "--batch={{.Parameters.batch}}"}},
		}}
	}).Obj(), two().Set(func(e *v1alpha1.ExperimentSpec) { e.Placement.Replicas = s.ns }).Obj())
	return s
}

// say plays the controller of data sets.
func (s *stage) say(status metav1.ConditionStatus, reason, message string) {
	s.t.Helper()
	d := s.theDataset()
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: v1alpha1.DatasetReady, Status: status, Reason: reason, Message: message, ObservedGeneration: d.Generation})
	if status == metav1.ConditionTrue {
		d.Status.Digest, d.Status.Bytes, d.Status.Files = "sha256:aa", 1<<30, 17
		d.Status.Nodes = []v1alpha1.DatasetNode{{Name: d.Spec.Nodes[0], PreparedAt: metav1.Now(), RecipeSeconds: 90, KeepMilliseconds: 4200}}
	}
	if err := s.c.Status().Update(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) theDataset() *v1alpha1.Dataset {
	s.t.Helper()
	list := &v1alpha1.DatasetList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil || len(list.Items) != 1 {
		s.t.Fatalf("%d Datasets (%v), want 1", len(list.Items), err)
	}
	return &list.Items[0]
}

// No trial is made, and none holds a pool, before its data is on the nodes. Then its spec describes
// the data.
func TestATrialWaitsForItsData(t *testing.T) {
	s := withData(t)
	exp := s.settle()
	s.expect(exp, accepted, "True Valid")
	s.expect(exp, complete, "False PreparingData", "Dataset rows-", "just asked for")
	s.expect(exp, dataReady, "False PreparingData")
	if n := len(s.trials()); n != 0 {
		t.Fatalf("%d trials were made", n)
	}
	s.say(metav1.ConditionFalse, v1alpha1.ReasonPreparing, "The recipe runs.")
	s.expect(s.settle(), complete, "False PreparingData", "The recipe runs.")
	s.say(metav1.ConditionTrue, v1alpha1.ReasonPrepared, "It is there.")
	exp = s.settle()
	s.expect(exp, dataReady, "True Prepared")
	s.expect(exp, complete, "False TrialsRunning")
	want := v1alpha1.TrialDataset{
		Name: "rows", Dataset: s.theDataset().Name, Digest: "sha256:aa", Bytes: 1 << 30, Files: 17, PreparedNodes: 1, PrepareMilliseconds: 94200,
	}
	if trials := s.trials(); len(trials) != 1 || cmp.Diff([]v1alpha1.TrialDataset{want}, trials[0].Spec.Datasets) != "" {
		t.Fatalf("the trials are %+v, want one with %+v", trials, want)
	}
	trial := s.trials()[0]
	trial.Status.Datasets = []v1alpha1.DatasetCopies{{Name: "rows", Copies: 6, Bytes: 1 << 30, Method: "Copy", Check: v1alpha1.DatasetCheckSizes, FastestMilliseconds: 900, SlowestMilliseconds: 1500}}
	if err := s.c.Status().Update(t.Context(), &trial); err != nil {
		t.Fatal(err)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	exp = s.settle()
	got := s.results(exp.Status.ResultsConfigMap).Trials[0].Datasets
	if len(got) != 1 || got[0].Copies != 6 || got[0].SlowestSeconds != 1.5 || got[0].PrepareSeconds != 94.2 || got[0].Digest != "sha256:aa" {
		t.Errorf("the results have the data sets %+v", got)
	}
}

// A failed recipe ends the experiment, with the recipe's last lines, before any trial is made. If
// the Dataset is deleted, it is requested again.
func TestDataThatCannotBePreparedEndsTheExperiment(t *testing.T) {
	s := withData(t)
	s.settle()
	s.say(metav1.ConditionFalse, v1alpha1.ReasonRecipeFailed, "Node a: the recipe failed with exit code 3 (Error). It printed last:\nno space left\n It is tried again when this Dataset is deleted.")
	exp := s.settle()
	s.expect(exp, complete, "True DataFailed", "cannot be prepared", "no space left")
	s.expect(exp, dataReady, "False DataFailed", "exit code 3")
	if c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentStalled); c.Status != metav1.ConditionTrue || exp.Status.CompletionTime == nil {
		t.Errorf("Stalled is %+v, the completion time %v", c, exp.Status.CompletionTime)
	}
	if told := strings.Join(s.told(), "\n"); !strings.Contains(told, "Warning DataFailed") {
		t.Errorf("the events are %s", told)
	}
	if err := s.c.Delete(t.Context(), s.theDataset()); err != nil {
		t.Fatal(err)
	}
	s.expect(s.settle(), complete, "False PreparingData", "just asked for")
	s.say(metav1.ConditionTrue, v1alpha1.ReasonPrepared, "It is there.")
	s.settle()
	if n := len(s.trials()); n != 1 {
		t.Errorf("%d trials, want 1", n)
	}
}
