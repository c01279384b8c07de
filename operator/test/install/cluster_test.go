// Package install acts on an installation like its owner, on the kind cluster of "make deploy". It
// checks the installation, upgrades it in the middle of an experiment, rolls that back, renews its
// certificates, and removes it. It installs it for some namespaces only, next to another
// installation, and with services of other programs. No part of it is fake.
//
// The tests change the one installation of the cluster. They run one after the other, and each can
// also run alone. At the end the installation is as "make deploy" leaves it. The machine of the
// tests may be busy, and may stand still for seconds. So waits may be long (patience), a call
// without an answer is retried, and trials tolerate lateness. Assertions are then not about time,
// or another measurement of the same run bounds them.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testapi"
)

const (
	// root of the repository, from here.
	root      = "../../.."
	chart     = root + "/charts/assay"
	release   = "assay"
	namespace = "assay-system"
	// kubeconfigVariable names a cluster to use instead of the one of make cluster.
	kubeconfigVariable = "ASSAY_E2E_KUBECONFIG"
	// patience is how long an action may take that takes seconds on an idle machine: pods may need
	// a minute each. No assertion depends on it.
	patience = 5 * time.Minute
	// helmPatience is the same for Helm.
	helmPatience = "--timeout=5m"
)

// owner is a user with all rights in the cluster, and with helm.
type owner struct {
	client.Client
	clientset *kubernetes.Clientset
	config    *rest.Config
	env       []string // for programs
	dir       string   // for files of the whole process
	values    string   // file with the values of the installation as it was found
	others    others
}

// found is the installation as it was found, with the cluster. Every test of a process begins with
// it.
var found = sync.OnceValues(findOwner)

var errNoCluster = errors.New("no cluster: run make deploy, or set " + kubeconfigVariable)

// newOwner returns the owner of the cluster's installation. Without a cluster the test is skipped.
func newOwner(t *testing.T) *owner {
	t.Helper()
	o, err := found()
	if errors.Is(err, errNoCluster) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func findOwner() (*owner, error) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		kubeconfig = filepath.Join(root, ".work", "kubeconfig")
		if _, err := os.Stat(kubeconfig); errors.Is(err, os.ErrNotExist) {
			return nil, errNoCluster
		}
	}
	kubeconfig, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(filepath.Join(root, ".work", "bin"))
	if err != nil {
		return nil, err
	}
	o := &owner{env: append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"))}
	if o.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, err
	}
	o.config.QPS, o.config.WarningHandler = -1, rest.NoWarnings{} // about deprecated kinds, which are listed, too
	testapi.Insist(o.config)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	if o.Client, err = client.New(o.config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if o.clientset, err = kubernetes.NewForConfig(o.config); err != nil {
		return nil, err
	}
	if o.dir, err = os.MkdirTemp("", "install"); err != nil {
		return nil, err
	}
	text, err := o.persist("helm", "get", "values", release, "-n", namespace, "-o", "yaml")
	if err != nil {
		return nil, err
	}
	o.values = filepath.Join(o.dir, "values.yaml")
	return o, os.WriteFile(o.values, []byte(text), 0o600)
}

// programTimeout bounds a program that a test runs. Programs that wait have bounds of their own.
const programTimeout = 12 * time.Minute

// run runs a program and returns its stdout. If the program fails, the test fails with all its
// output.
func (o *owner) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := o.try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

// insist is like run, for programs that may be repeated: they only read, or they make a change that
// may exist already.
func (o *owner) insist(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := o.persist(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// persist runs a program, up to three times.
func (o *owner) persist(name string, args ...string) (string, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		out, err := o.try(name, args...)
		if err == nil {
			return out, nil
		}
		if attempt == attempts {
			return out, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
		}
		time.Sleep(2 * time.Second)
	}
}

func (o *owner) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	path, err := lookPath(name, o.env)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = o.env, &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w\n%s%s", err, out.String(), errs.String())
	}
	return out.String(), nil
}

// lookPath finds a program on the PATH of the program itself.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for i := len(env) - 1; i >= 0; i-- {
		path, ok := strings.CutPrefix(env[i], "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(path, ":") {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				return filepath.Join(dir, name), nil
			}
		}
		break
	}
	return "", fmt.Errorf("%s is not on PATH: run make tools", name)
}

// upgrade installs or upgrades the release, with the values that were found and additional ones,
// and waits until managers are ready.
func (o *owner) upgrade(t *testing.T, chart string, more ...string) {
	t.Helper()
	args := []string{"upgrade", "--install", release, chart, "-n", namespace, "--create-namespace", "--values", o.values, "--wait", helmPatience}
	o.run(t, "helm", append(args, more...)...)
}

// takenOver waits until a manager of the present release leads. Until then a manager of the earlier
// release may accept experiments by its own settings.
func (o *owner) takenOver(t *testing.T) {
	t.Helper()
	eventually(t, patience, "a manager of this release leads", func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := o.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "manager.assay.dev"}, lease); err != nil || lease.Spec.HolderIdentity == nil {
			return false, err
		}
		pods, err := o.clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=manager"})
		if err != nil {
			return false, err
		}
		leads := false
		for i := range pods.Items {
			p := &pods.Items[i]
			if p.DeletionTimestamp != nil {
				return false, fmt.Errorf("%s is still about to go", p.Name)
			}
			leads = leads || strings.HasPrefix(*lease.Spec.HolderIdentity, p.Name+"_")
		}
		return leads, fmt.Errorf("%s leads", *lease.Spec.HolderIdentity)
	})
}

// restore brings the installation into the state of make deploy, for the next test.
func (o *owner) restore(t *testing.T) {
	t.Helper()
	o.others.configured = false
	o.run(t, filepath.Join(root, "hack", "deploy.sh"), "install")
}

// eventually waits until the condition holds. It retries after errors, and reports the last one at
// the end.
func eventually(t *testing.T, within time.Duration, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), within)
	defer stop()
	for {
		once, done := context.WithTimeout(ctx, patience/5) // a call without an answer must not use up all the time
		ok, err := holds(once)
		done()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s (last error: %v)", within, what, err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// create makes an object. It retries when it gets no answer from the API server, or when the API
// server gets none from a webhook.
func (o *owner) create(t *testing.T, obj client.Object) {
	t.Helper()
	offered := false
	eventually(t, patience, fmt.Sprintf("%T %s is made", obj, obj.GetName()), func(ctx context.Context) (bool, error) {
		err := o.Create(ctx, obj)
		switch {
		case err == nil:
			return true, nil
		case offered && apierrors.IsAlreadyExists(err): // the answer was lost
			return o.Get(ctx, client.ObjectKeyFromObject(obj), obj) == nil, err
		case isAnswer(err):
			t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
		offered = true
		return false, err
	})
}

// isAnswer reports whether the API server would give this error again.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// deleted deletes an object and waits until it is gone.
func (o *owner) deleted(t *testing.T, obj client.Object, how ...client.DeleteOption) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%T %s is gone", obj, obj.GetName()), func(ctx context.Context) (bool, error) {
		there := obj.DeepCopyObject().(client.Object)
		if err := o.Get(ctx, client.ObjectKeyFromObject(obj), there); err != nil {
			return apierrors.IsNotFound(err), err
		}
		if there.GetDeletionTimestamp() != nil {
			return false, errors.New("it is about to go")
		}
		err := client.IgnoreNotFound(o.Delete(ctx, there, how...))
		return false, err
	})
}

// makeNamespace makes a namespace in which agents have the rights for their work. At the end of the
// test it deletes the experiments, and then the namespace. Only a test that makes the namespace
// again waits for that.
func (o *owner) makeNamespace(t *testing.T, name string) {
	t.Helper()
	o.openNamespace(t, name)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), patience/5)
		defer stop()
		if err := o.abandon(ctx, name); err != nil {
			t.Error(err)
		}
	})
}

// openNamespace is like makeNamespace, but the namespace outlives the test. Objects in the
// namespace are deleted while there is a manager.
func (o *owner) openNamespace(t *testing.T, name string) {
	t.Helper()
	o.removeNamespace(t, name)
	o.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}})
}

// abandon starts to delete a namespace and its experiments.
func (o *owner) abandon(ctx context.Context, name string) error {
	err := client.IgnoreNotFound(o.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(name)))
	if meta.IsNoMatchError(err) { // as above, if the kind is gone
		err = nil
	}
	return errors.Join(err, client.IgnoreNotFound(o.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
}

func (o *owner) removeNamespace(t *testing.T, name string) {
	t.Helper()
	eventually(t, patience, "the experiments of "+name+" are being deleted", func(ctx context.Context) (bool, error) {
		err := o.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(name))
		return err == nil || meta.IsNoMatchError(err), err
	})
	o.deleted(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// apply creates the System and the Experiment in a namespace.
func (o *owner) apply(t *testing.T, ns string, change func(*v1alpha1.Experiment)) *v1alpha1.Experiment {
	t.Helper()
	o.create(t, system(t, "etcd", ns))
	return o.applyExperiment(t, ns, change)
}

// system is one of the repository's, for a namespace.
func system(t *testing.T, name, ns string) *v1alpha1.System {
	t.Helper()
	s := &v1alpha1.System{}
	read(t, filepath.Join(root, "experiments", "systems", name+".yaml"), s)
	s.Namespace = ns
	return s
}

// applyExperiment creates only the Experiment.
func (o *owner) applyExperiment(t *testing.T, ns string, change func(*v1alpha1.Experiment)) *v1alpha1.Experiment {
	t.Helper()
	experiment := &v1alpha1.Experiment{}
	read(t, filepath.Join("testdata", "experiment.yaml"), experiment)
	experiment.Namespace = ns
	if change != nil {
		change(experiment)
	}
	o.create(t, experiment)
	return experiment
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// environment are the reasons for which a trial may be repeated: the kernel gave an agent no
// processor for so long that too few samples are left. The experiments here tolerate all other
// effects of a shared machine: only a defect exceeds them.
var environment = []string{v1alpha1.ReasonResourcesNotMeasured}

// complete waits for the end of an experiment. It checks the number of valid trials, and that
// trials were repeated only because of the machine.
func (o *owner) complete(t *testing.T, exp *v1alpha1.Experiment, trials int32) {
	t.Helper()
	key := client.ObjectKeyFromObject(exp)
	eventually(t, patience+time.Duration(trials)*time.Minute, "experiment "+key.String()+" is complete", func(ctx context.Context) (bool, error) {
		if err := o.Get(ctx, key, exp); err != nil {
			return false, err
		}
		return meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) && meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentResultsStored),
			fmt.Errorf("%+v, trials %+v", exp.Status.Conditions, exp.Status.Trials)
	})
	repeated := 0
	all := o.trials(t, exp)
	for i := range all {
		if !isValid(t, &all[i]) {
			repeated++
		}
	}
	if got := exp.Status.Trials; got.Succeeded != trials || got.Failed != 0 || len(all) != int(trials)+repeated {
		t.Errorf("%d trials, of which %d were repeated for the machine's sake: %+v; want %d that succeeded, and none that failed", len(all), repeated, got, trials)
	}
}

// isValid reports whether a finished trial is valid. It fails the test if the trial is not valid
// for another reason than the machine.
func isValid(t *testing.T, trial *v1alpha1.Trial) bool {
	t.Helper()
	c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid)
	switch {
	case c == nil:
		t.Errorf("trial %s is not judged", trial.Name)
	case c.Status == metav1.ConditionTrue:
		return true
	case slices.Contains(environment, c.Reason):
		t.Logf("trial %s was repeated for the machine's sake: %s: %s", trial.Name, c.Reason, c.Message)
	default:
		t.Errorf("trial %s had to be repeated: %s: %s", trial.Name, c.Reason, c.Message)
	}
	return false
}

// trials of an experiment.
func (o *owner) trials(t *testing.T, exp *v1alpha1.Experiment) []v1alpha1.Trial {
	t.Helper()
	list := &v1alpha1.TrialList{}
	if err := o.List(t.Context(), list, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: exp.Name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
