// Package e2e runs Assay as its users do: on the kind cluster of "make cluster", installed by "make deploy", with nothing faked.
//
// Each test has a namespace of its own. Trials of all tests share the cluster one after the other, so the tests run one after the other, too.
// When a test fails, what the cluster knows of it is left under .work/e2e-logs/.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testapi"
)

const (
	// root of the repository, from here.
	root = "../../.."
	// systemNamespace is where the manager runs.
	systemNamespace = "assay-system"
	// kubeconfigVariable names another cluster than that of make cluster.
	kubeconfigVariable = "ASSAY_E2E_KUBECONFIG"
)

// env is one test's access to the cluster.
type env struct {
	client.Client
	clientset *kubernetes.Clientset
	namespace string
}

// newEnv connects to the cluster and makes a namespace for the test. Without a cluster the test is skipped.
func newEnv(t *testing.T) *env {
	t.Helper()
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		kubeconfig = filepath.Join(root, ".work", "kubeconfig")
		if _, err := os.Stat(kubeconfig); errors.Is(err, os.ErrNotExist) {
			t.Skipf("no cluster: run make deploy, or set %s", kubeconfigVariable)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	testapi.Insist(config)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	e := &env{namespace: "e2e-" + strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(t.Name(), "/", "-"), "Test"))}
	if e.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if e.clientset, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	e.requireManager(t)
	e.makeNamespace(t)
	return e
}

func (e *env) requireManager(t *testing.T) {
	t.Helper()
	e.eventually(t, time.Minute, "a manager is ready in "+systemNamespace+" (is Assay installed? run make deploy)", func(ctx context.Context) (bool, error) {
		d, err := e.clientset.AppsV1().Deployments(systemNamespace).Get(ctx, "assay-manager", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas > 0, client.IgnoreNotFound(err)
	})
}

// makeNamespace makes the test's namespace and has it removed at the end, experiments first. The agents need NET_ADMIN, which is beyond the
// baseline of pod security.
func (e *env) makeNamespace(t *testing.T) {
	t.Helper()
	e.removeNamespace(t) // a leftover of a run that was interrupted
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged",
	}}}
	if err := e.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			e.collect(t)
		}
		e.removeNamespace(t)
	})
}

func (e *env) removeNamespace(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	if err := e.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(e.namespace)); err != nil {
		t.Error(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}
	if err := e.Delete(ctx, ns); apierrors.IsNotFound(err) {
		return
	} else if err != nil {
		t.Error(err)
		return
	}
	e.eventually(t, 2*time.Minute, "the namespace is gone", func(ctx context.Context) (bool, error) {
		err := e.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// eventually waits until the condition holds. Errors are tried again, since a test that deletes managers and pods must live with them; the
// last one is told in the end.
func (e *env) eventually(t *testing.T, within time.Duration, what string, holds func(context.Context) (bool, error)) {
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

func onSharedMachine(spec *v1alpha1.ExperimentSpec) {
	if retries := int32(4); spec.Retries == nil {
		spec.Retries = &retries
	}
	spec.Tolerances.Steal = "100%"
	for i := range spec.Profiles {
		if p := &spec.Profiles[i]; p.Tolerances != nil {
			p.Tolerances.Steal = spec.Tolerances.Steal
		}
	}
}

// unhurried has an experiment bear clients that a busy machine starts late, and clocks that it reads late, for tests that want one trial, at the first attempt, or another
// reason than these.
func unhurried(o client.Object) {
	if x, ok := o.(*v1alpha1.Experiment); ok {
		x.Spec.Tolerances.StartSpread, x.Spec.Tolerances.ClockError = "1s", "100ms"
	}
}

// apply creates the objects of a YAML file in the test's namespace, each after change, and returns its Experiment. No trial is Invalid for what the hypervisor of the
// machine gives to others, which here may be anything for minutes: what tests expect of numbers, they expect of medians. One that is, for being late, has more retries than usual.
func (e *env) apply(t *testing.T, file string, change func(client.Object)) *v1alpha1.Experiment {
	t.Helper()
	var experiment *v1alpha1.Experiment
	for _, obj := range load(t, file) {
		obj.SetNamespace(e.namespace)
		if x, ok := obj.(*v1alpha1.Experiment); ok {
			onSharedMachine(&x.Spec)
		}
		if change != nil {
			change(obj)
		}
		if err := e.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
		if x, ok := obj.(*v1alpha1.Experiment); ok {
			experiment = x
		}
	}
	return experiment
}

// load reads the Systems and Experiments of a YAML file.
func load(t *testing.T, file string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &meta); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var obj client.Object
		switch meta.Kind {
		case "System":
			obj = &v1alpha1.System{}
		case "Experiment":
			obj = &v1alpha1.Experiment{}
		default:
			t.Fatalf("%s: kind %q", file, meta.Kind)
		}
		if err := yaml.UnmarshalStrict(doc, obj); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, obj)
	}
	return objects
}

// collect leaves what the cluster knows of a failed test.
func (e *env) collect(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	dir := filepath.Join(root, ".work", "e2e-logs", t.Name())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Log(err)
		return
	}
	lists := map[string]client.ObjectList{
		"experiments": &v1alpha1.ExperimentList{}, "trials": &v1alpha1.TrialList{}, "pods": &corev1.PodList{},
		"events": &corev1.EventList{}, "configmaps": &corev1.ConfigMapList{},
	}
	for name, list := range lists {
		if err := e.List(ctx, list, client.InNamespace(e.namespace)); err != nil {
			t.Logf("list %s: %v", name, err)
			continue
		}
		text, err := yaml.Marshal(list)
		write(t, filepath.Join(dir, name+".yaml"), text, err)
	}
	e.collectLogs(ctx, t, systemNamespace, dir)
	e.collectLogs(ctx, t, e.namespace, dir)
	t.Logf("what the cluster knows of this is in %s", filepath.Join(".work", "e2e-logs", t.Name()))
}

func (e *env) collectLogs(ctx context.Context, t *testing.T, namespace, dir string) {
	pods := &corev1.PodList{}
	if err := e.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		t.Log(err)
		return
	}
	for _, pod := range pods.Items {
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			tail := int64(5000)
			text, err := e.clientset.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name, TailLines: &tail}).DoRaw(ctx)
			write(t, filepath.Join(dir, fmt.Sprintf("%s.%s.log", pod.Name, c.Name)), text, err)
		}
	}
}

func write(t *testing.T, file string, text []byte, err error) {
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		t.Logf("%s: %v", filepath.Base(file), err)
	}
}
