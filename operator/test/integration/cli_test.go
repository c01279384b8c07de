package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/list"
	"assay.dev/assay/operator/internal/cli/logs"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/scaffold"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/steer"
	"assay.dev/assay/operator/internal/cli/try"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/testenv"
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

// kubectl assay run sends a file with its System and profile, may be repeated, and keeps other
// programs' settings.
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

// kubectl assay watch ends when the controller reports that the experiment is complete and its
// results are stored.
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

// complete sets the experiment's status as its controller does at the end.
func complete(t *testing.T, c client.Client, exp *v1alpha1.Experiment) {
	t.Helper()
	exp.Status.ObservedGeneration, exp.Status.Seed = exp.Generation, 1
	for _, kind := range []string{v1alpha1.ExperimentComplete, v1alpha1.ExperimentResultsStored} {
		meta.SetStatusCondition(&exp.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStored, ObservedGeneration: exp.Generation})
	}
	if err := c.Status().Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
}

// kubectl assay run reports that a complete experiment did not run again. On request it runs the
// experiment again, and changes the images of Systems.
func TestCommandLineRunsAgain(t *testing.T) {
	s, cluster, file := cli(t)
	in := run.Input{Files: []string{file}, Profile: "smoke", Set: []string{"repetitions={min: 4}"}}
	if err := run.Run(t.Context(), s, nil, run.Options{Input: in}); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: "failure-fp"}
	var first, second v1alpha1.Experiment
	if err := cluster.Client.Get(t.Context(), key, &first); err != nil {
		t.Fatal(err)
	}
	if got := plan.ApplyProfile(first.Spec).Repetitions.Min; got != 4 {
		t.Errorf("--set repetitions={min: 4} with a profile makes %d repetitions", got)
	}
	complete(t, cluster.Client, &first)
	err := run.Run(t.Context(), s, nil, run.Options{Input: in})
	if session.ExitCode(err) != session.ExitError || !strings.Contains(err.Error(), "nothing was applied and nothing ran") {
		t.Errorf("an experiment that is complete: %v", err)
	}
	in.Images = manifest.Images{Registry: "registry.example.org/mirror"}
	if err := run.Run(t.Context(), s, nil, run.Options{Input: in, Rerun: true}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Get(t.Context(), key, &second); err != nil || second.UID == first.UID {
		t.Errorf("the experiment is the old one (%v)", err)
	}
	var system v1alpha1.System
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: "basil"}, &system); err != nil {
		t.Fatal(err)
	}
	if got := system.Spec.Replicas.Containers[0].Image; got != "registry.example.org/mirror/assay/basil:dev" {
		t.Errorf("image %s", got)
	}
}

// The verbs suspend, resume and list an experiment that has started.
func TestCommandLineSteers(t *testing.T) {
	s, cluster, file := cli(t)
	if err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}, Name: "another"}}); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: "another"}
	var exp v1alpha1.Experiment
	if err := cluster.Client.Get(t.Context(), key, &exp); err != nil {
		t.Fatal(err)
	}
	exp.Status.Seed, exp.Status.Trials.Planned = 1, 72
	meta.SetStatusCondition(&exp.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentComplete, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTrialsRunning})
	if err := cluster.Client.Status().Update(t.Context(), &exp); err != nil {
		t.Fatal(err)
	}
	for _, suspend := range []bool{true, false} {
		if err := steer.SetSuspend(t.Context(), s, steer.SuspendOptions{Names: []string{"another"}, Suspend: suspend}); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Client.Get(t.Context(), key, &exp); err != nil || exp.Spec.Suspend != suspend {
			t.Errorf("suspend is %v, want %v (%v)", exp.Spec.Suspend, suspend, err)
		}
	}
	s.Out.(*bytes.Buffer).Reset()
	if err := list.Run(t.Context(), s, list.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Out.(*bytes.Buffer).String(); !strings.Contains(got, "another   0/72     Running") {
		t.Errorf("listed:\n%s", got)
	}
}

// A repetition without attempts left can be retried: its last trial is deleted.
func TestCommandLineRetries(t *testing.T) {
	s, cluster, file := cli(t)
	if err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{file}, Set: []string{"retries=0"}}}); err != nil {
		t.Fatal(err)
	}
	var exp v1alpha1.Experiment
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: "failure-fp"}, &exp); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(t.Context(), []string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, errs := plan.Expand(&exp, set.Systems)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "failure-fp-0", Namespace: cluster.Namespace, Labels: map[string]string{v1alpha1.LabelExperiment: exp.Name}},
		Spec: *plan.Next(p, 1, nil).Create}
	trial.Spec.System.Revision = "none"
	if err := controllerutil.SetControllerReference(&exp, trial, cluster.Client.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Create(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFailed})
	if err := cluster.Client.Status().Update(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	if err := steer.RunRetry(t.Context(), s, steer.RetryOptions{Name: "failure-fp"}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(trial), trial); !apierrors.IsNotFound(err) {
		t.Errorf("the trial is still there: %v", err)
	}
}

// The API server accepts a try of each point, and the objects of the verb new.
func TestCommandLineTriesAndScaffolds(t *testing.T) {
	s, cluster, file := cli(t)
	for i, point := range []string{"clients=5,variant=ideal", "clients=50,variant=failure-fp"} {
		o := try.Options{Input: run.Input{Files: []string{file}, Name: fmt.Sprintf("try-%d", i)}, Point: []string{point}, NoWait: true}
		if err := try.Run(t.Context(), s, nil, o); err != nil {
			t.Fatal(err)
		}
	}
	var tries v1alpha1.ExperimentList
	if err := cluster.Client.List(t.Context(), &tries, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelTry: "failure-fp"}); err != nil || len(tries.Items) != 2 {
		t.Errorf("%d experiments are marked as tries (%v)", len(tries.Items), err)
	}

	path := filepath.Join(t.TempDir(), "new.yaml")
	if err := scaffold.Run(t.Context(), s, scaffold.Options{Name: "mine", OutputFile: path}); err != nil {
		t.Fatal(err)
	}
	if err := run.Run(t.Context(), s, nil, run.Options{Input: run.Input{Files: []string{path}, Profile: "smoke"}}); err != nil {
		t.Error(err)
	}
}

// The connection flags reach the API server. A user without rights gets an error that names whom to
// ask, and logs come from the API server.
func TestCommandLineConnects(t *testing.T) {
	env := testenv.Get(t)
	namespace := env.Namespace(t)
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, env.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	connect := func(args ...string) (session.Cluster, error) {
		var flags session.Flags
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.Bind(set)
		if err := set.Parse(append([]string{"--kubeconfig", config, "-n", namespace}, args...)); err != nil {
			t.Fatal(err)
		}
		return flags.Connect()
	}
	s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Now: time.Now, Connect: func() (session.Cluster, error) { return connect("--as", "bob", "--request-timeout", "20s") }}
	err := list.Run(t.Context(), s, list.Options{})
	if err == nil || !strings.Contains(err.Error(), `User "bob" cannot list resource`) || !strings.Contains(err.Error(), "ask the owner of the cluster for the role edit") {
		t.Errorf("as bob: %v", err)
	}

	cluster, err := connect()
	if err != nil || cluster.Namespace != namespace || !cluster.NamespaceGiven {
		t.Fatalf("%v, namespace %s", err, cluster.Namespace)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "e-0-local-0", Namespace: namespace, Labels: map[string]string{v1alpha1.LabelTrial: "e-0"}},
		Spec: corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "server", Image: "i"}}}}
	if err := cluster.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	s.Connect = func() (session.Cluster, error) { return cluster, nil }
	err = logs.Run(t.Context(), s, logs.Options{Trial: "e-0", Tail: -1})
	if err == nil || !strings.Contains(err.Error(), `read the log of e-0-local-0/server: pods "nowhere" not found`) {
		t.Errorf("the log of a pod whose node is not there: %v", err)
	}
}
