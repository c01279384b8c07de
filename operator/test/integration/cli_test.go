package integration

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/testenv"
)

// cli is a session of kubectl-assay in a namespace of its own.
func cli(t *testing.T) (*session.Session, session.Cluster, string) {
	t.Helper()
	env := testenv.Get(t)
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	cluster := session.Cluster{Client: c, Namespace: env.Namespace(t)}
	return &session.Session{
		Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Now: time.Now, Sleep: session.Sleep,
		Connect: func() (session.Cluster, error) { return cluster, nil },
	}, cluster, filepath.Join(root, "experiments", "failure-fp.yaml")
}

// kubectl assay run sends a file with its System and profile, may be repeated, and respects what others have set.
func TestCommandLineAppliesExperiment(t *testing.T) {
	s, cluster, file := cli(t)
	o := run.Options{Input: run.Input{Files: []string{file}, Profile: "smoke"}}
	for range 2 {
		if err := run.Run(t.Context(), s, nil, o); err != nil {
			t.Fatal(err)
		}
	}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: "failure-fp"}
	var exp v1alpha1.Experiment
	if err := cluster.Client.Get(t.Context(), key, &exp); err != nil {
		t.Fatal(err)
	}
	if exp.Spec.Profile != "smoke" || exp.Generation != 1 {
		t.Errorf("profile %q, generation %d; want smoke, and the second time to change nothing", exp.Spec.Profile, exp.Generation)
	}

	exp.Spec.Profile = ""
	if err := cluster.Client.Update(t.Context(), &exp, client.FieldOwner("somebody-else")); err != nil {
		t.Fatal(err)
	}
	err := run.Run(t.Context(), s, nil, o)
	if err == nil || !strings.Contains(err.Error(), "somebody-else") || !strings.Contains(err.Error(), "--force-conflicts") {
		t.Errorf("a field that somebody else has set: %v", err)
	}
	o.Force = true
	if err := run.Run(t.Context(), s, nil, o); err != nil {
		t.Errorf("with --force-conflicts: %v", err)
	}
}

// kubectl assay watch ends when the controller says that the experiment is complete and its results are stored.
func TestCommandLineWatches(t *testing.T) {
	s, cluster, file := cli(t)
	if err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}}}); err != nil {
		t.Fatal(err)
	}
	var exp v1alpha1.Experiment
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: "failure-fp"}, &exp); err != nil {
		t.Fatal(err)
	}
	exp.Status.ObservedGeneration = exp.Generation
	exp.Status.Trials = v1alpha1.TrialCounts{Planned: 72, Succeeded: 72}
	for _, kind := range []string{v1alpha1.ExperimentComplete, v1alpha1.ExperimentResultsStored} {
		meta.SetStatusCondition(&exp.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStored, ObservedGeneration: exp.Generation})
	}
	if err := cluster.Client.Status().Update(t.Context(), &exp); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Until(t.Context(), s, cluster, watch.Options{Name: "failure-fp", Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Out.(*bytes.Buffer).String(), "failure-fp: complete, 72 of 72 trials valid\n"; got != want {
		t.Errorf("showed %q, want %q", got, want)
	}
	_, err := watch.Until(t.Context(), s, cluster, watch.Options{Name: "nobody"})
	if err == nil || !strings.Contains(err.Error(), "get Experiment nobody in namespace "+cluster.Namespace) {
		t.Errorf("an experiment that is not there: %v", err)
	}
}
