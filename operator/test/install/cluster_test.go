// Package install does to an installation what its owner does, on the kind cluster of "make deploy": checks it, upgrades it in the middle of an
// experiment, takes that back, renews its certificates, removes it, installs it for some namespaces only, next to another. Nothing is faked.
//
// The tests change the one installation of the cluster and run one after the other; the last one leaves it as "make deploy" does.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
)

const (
	// root of the repository, from here.
	root      = "../../.."
	chart     = root + "/charts/assay"
	release   = "assay"
	namespace = "assay-system"
	// kubeconfigVariable names another cluster than that of make cluster.
	kubeconfigVariable = "ASSAY_E2E_KUBECONFIG"
)

// owner is somebody with all rights in the cluster, and with helm.
type owner struct {
	client.Client
	clientset *kubernetes.Clientset
	config    *rest.Config
	env       []string // for programs
	values    string   // file with the values of the installation as it was found
}

// newOwner finds the cluster and its installation. Without a cluster the test is skipped.
func newOwner(t *testing.T) *owner {
	t.Helper()
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		kubeconfig = filepath.Join(root, ".work", "kubeconfig")
		if _, err := os.Stat(kubeconfig); errors.Is(err, os.ErrNotExist) {
			t.Skipf("no cluster: run make deploy, or set %s", kubeconfigVariable)
		}
	}
	kubeconfig, err := filepath.Abs(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := filepath.Abs(filepath.Join(root, ".work", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{env: append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"))}
	if o.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	o.config.QPS, o.config.WarningHandler = -1, rest.NoWarnings{} // of deprecated kinds, which are listed, too
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if o.Client, err = client.New(o.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if o.clientset, err = kubernetes.NewForConfig(o.config); err != nil {
		t.Fatal(err)
	}
	o.values = filepath.Join(t.TempDir(), "values.yaml")
	text := o.run(t, "helm", "get", "values", release, "-n", namespace, "-o", "yaml")
	if err := os.WriteFile(o.values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// programTimeout bounds a program that a test runs.
const programTimeout = 4 * time.Minute

// run runs a program, fails the test with all that it printed, and returns its stdout.
func (o *owner) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := o.try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
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

// lookPath finds a program on the PATH that the program itself will have.
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

// upgrade installs or upgrades the release, with the values that were found and more, and waits until managers are ready.
func (o *owner) upgrade(t *testing.T, chart string, more ...string) {
	t.Helper()
	args := []string{"upgrade", "--install", release, chart, "-n", namespace, "--create-namespace", "--values", o.values, "--wait", "--timeout", "3m"}
	o.run(t, "helm", append(args, more...)...)
}

// takenOver waits until a manager of the release as it is now leads. Until then one of the release before it may accept experiments, as it was told to.
func (o *owner) takenOver(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "a manager of this release leads", func(ctx context.Context) (bool, error) {
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

// restore leaves the installation as make deploy does.
func (o *owner) restore(t *testing.T) {
	t.Helper()
	o.run(t, filepath.Join(root, "hack", "deploy.sh"), "install")
}

// eventually waits until the condition holds. Errors are tried again; the last one is told in the end.
func eventually(t *testing.T, within time.Duration, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), within)
	defer stop()
	for {
		ok, err := holds(ctx)
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

// makeNamespace makes a namespace in which agents may do their work, for as long as the test lasts. What was in it is deleted while there is a manager.
func (o *owner) makeNamespace(t *testing.T, name string) {
	t.Helper()
	o.removeNamespace(t, name)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}
	if err := o.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.removeNamespace(t, name) })
}

func (o *owner) removeNamespace(t *testing.T, name string) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	err := o.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(name))
	if err != nil && !meta.IsNoMatchError(err) {
		t.Error(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := o.Delete(ctx, ns); apierrors.IsNotFound(err) {
		return
	} else if err != nil {
		t.Error(err)
		return
	}
	eventually(t, 2*time.Minute, "namespace "+name+" is gone", func(ctx context.Context) (bool, error) {
		err := o.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// apply creates the System and the Experiment in a namespace.
func (o *owner) apply(t *testing.T, ns string, change func(*v1alpha1.Experiment)) *v1alpha1.Experiment {
	t.Helper()
	system, experiment := &v1alpha1.System{}, &v1alpha1.Experiment{}
	read(t, filepath.Join(root, "experiments", "systems", "etcd.yaml"), system)
	read(t, filepath.Join("testdata", "experiment.yaml"), experiment)
	system.Namespace, experiment.Namespace = ns, ns
	if change != nil {
		change(experiment)
	}
	for _, obj := range []client.Object{system, experiment} {
		if err := o.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T: %v", obj, err)
		}
	}
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

// complete waits for the end of an experiment and checks that each trial ran once, and succeeded.
func (o *owner) complete(t *testing.T, exp *v1alpha1.Experiment, trials int32, within time.Duration) {
	t.Helper()
	key := client.ObjectKeyFromObject(exp)
	eventually(t, within, "experiment "+key.String()+" is complete", func(ctx context.Context) (bool, error) {
		if err := o.Get(ctx, key, exp); err != nil {
			return false, err
		}
		c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentComplete)
		if c == nil || c.Status != metav1.ConditionTrue {
			return false, fmt.Errorf("%+v, trials %+v", c, exp.Status.Trials)
		}
		return true, nil
	})
	if got := exp.Status.Trials; got.Succeeded != trials || got.Invalid != 0 || got.Failed != 0 {
		t.Errorf("trials %+v, want %d that succeeded and no other", got, trials)
	}
	list := &v1alpha1.TrialList{}
	if err := o.List(t.Context(), list, client.InNamespace(key.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != int(trials) {
		t.Errorf("%d trials exist, want %d", len(list.Items), trials)
	}
	for i := range list.Items {
		trial := &list.Items[i]
		if c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid); c == nil || c.Status != metav1.ConditionTrue {
			t.Errorf("trial %s: %+v", trial.Name, c)
		}
	}
	if c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentResultsStored); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("results: %+v", c)
	}
}
