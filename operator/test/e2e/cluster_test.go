// Package e2e runs Assay as its users do: on the kind cluster of "make cluster", installed by "make
// deploy". No part of it is fake.
//
// Each test has a namespace of its own and can be run alone: lanes.txt of hack/test names them all.
// Trials of all tests share the cluster one after the other, so the tests run one after the other,
// too. When a test fails, the cluster's data about it is saved under .work/e2e-logs/.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testapi"
)

const (
	// root of the repository, from here.
	root = "../../.."
	// systemNamespace is the manager's namespace.
	systemNamespace = "assay-system"
	// kubeconfigVariable names a cluster to use instead of the one of make cluster.
	kubeconfigVariable = "ASSAY_E2E_KUBECONFIG"
)

// env is one test's access to the cluster.
type env struct {
	client.Client
	watching  client.WithWatch
	clientset *kubernetes.Clientset
	namespace string
}

// label marks the namespaces of these tests. Its value is the process that made them.
const label = "assay.dev/e2e"

// run distinguishes this process's namespaces from those of earlier ones, which may not be deleted
// yet.
var run = strconv.FormatInt(time.Now().UnixNano(), 36)

// newEnv connects to the cluster and makes a namespace for the test. Without a cluster the test is
// skipped.
func newEnv(t *testing.T) *env {
	t.Helper()
	e, err := connect()
	if errors.Is(err, errNoCluster) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.namespace = "e2e-" + strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(t.Name(), "/", "-"), "Test")) + "-" + run
	e.requireManager(t)
	e.makeNamespace(t)
	return e
}

var errNoCluster = errors.New("no cluster: run make deploy, or set " + kubeconfigVariable)

func connect() (*env, error) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		kubeconfig = filepath.Join(root, ".work", "kubeconfig")
		if _, err := os.Stat(kubeconfig); errors.Is(err, os.ErrNotExist) {
			return nil, errNoCluster
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	testapi.Insist(config)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	e := &env{}
	if e.watching, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	e.Client = e.watching
	e.clientset, err = kubernetes.NewForConfig(config)
	return e, err
}

func (e *env) requireManager(t *testing.T) {
	t.Helper()
	e.eventually(t, time.Minute, "a manager is ready in "+systemNamespace+" (is Assay installed? run make deploy)", func(ctx context.Context) (bool, error) {
		d, err := e.clientset.AppsV1().Deployments(systemNamespace).Get(ctx, "assay-manager", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas > 0, client.IgnoreNotFound(err)
	})
}

// makeNamespace makes the test's namespace. At the end it deletes the experiments, and then the
// namespace. Only sweep waits for that. The agents need NET_ADMIN, which the baseline of pod
// security does not allow.
func (e *env) makeNamespace(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged", label: run,
	}}}
	if err := e.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			e.collect(t)
		}
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := errors.Join(e.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(e.namespace)), e.Delete(ctx, ns)); err != nil {
			t.Error(err)
		}
	})
}

func TestMain(m *testing.M) {
	status := m.Run()
	if err := sweep(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: namespaces of the tests are left:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// sweep waits until the cluster has removed all namespaces of these tests. It deletes the
// namespaces of an interrupted process.
func sweep() error {
	e, err := connect()
	if errors.Is(err, errNoCluster) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	for {
		list := &corev1.NamespaceList{}
		err := e.List(ctx, list, client.HasLabels{label})
		if err == nil && len(list.Items) == 0 {
			return nil
		}
		var left []string
		for i := range list.Items {
			ns := &list.Items[i]
			if left = append(left, ns.Name); ns.DeletionTimestamp == nil {
				err = errors.Join(err, e.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(ns.Name)), e.Delete(ctx, ns))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after 3 minutes: %v (%w)", left, err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// eventually waits until the condition holds. It retries after errors, since a test that deletes
// managers and pods causes them. At the end it reports the last error.
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

// onSharedMachine makes an experiment tolerate the effects of a machine that others share. A trial
// records how late all actions were, and the tests judge that themselves, by bounds that only a
// defect exceeds. Its trials are repeated for one reason, see environment.
func onSharedMachine(spec *v1alpha1.ExperimentSpec) {
	if retries := int32(2); spec.Retries == nil {
		spec.Retries = &retries
	}
	bear(&spec.Tolerances)
	// Other tests and programs run at the same time. So a quiet moment may never come, and the
	// tests' own deadlines are minutes.
	impatient := v1alpha1.Disturbances{RetryFor: "2m", IdleWait: "0s"}
	spec.Disturbances = impatient
	for i := range spec.Profiles {
		p := &spec.Profiles[i]
		if p.Tolerances != nil {
			bear(p.Tolerances)
		}
		if p.Disturbances != nil {
			p.Disturbances = &impatient
		}
	}
}

// onceOnly makes trials run only once, whatever happens.
func onceOnly(spec *v1alpha1.ExperimentSpec) {
	spec.Retries, spec.Disturbances.RetryFor = new(int32), "0s"
}

func bear(t *v1alpha1.Tolerances) {
	t.Contention = "100%"
	t.Steal, t.FaultLateness, t.StartSpread, t.ClockError, t.LinkDelay, t.LinkLateness = "100%", "1s", "1s", "500ms", "20ms", "500ms"
}

// profile finds an experiment's profile by its name.
func profile(spec *v1alpha1.ExperimentSpec, name string) *v1alpha1.Profile {
	i := slices.IndexFunc(spec.Profiles, func(p v1alpha1.Profile) bool { return p.Name == name })
	return &spec.Profiles[i]
}

// onlyItsProfile drops the profiles that a test does not run. A test changes claims and axes for
// its own profile, and admission would reject the others for not stating the changed claims.
func onlyItsProfile(spec *v1alpha1.ExperimentSpec) {
	spec.Profiles = slices.DeleteFunc(spec.Profiles, func(p v1alpha1.Profile) bool { return p.Name != spec.Profile })
}

// apply creates the objects of a YAML file in the test's namespace, each after a call of change,
// and returns its Experiment. See onSharedMachine and onlyItsProfile.
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
		if x, ok := obj.(*v1alpha1.Experiment); ok {
			onlyItsProfile(&x.Spec)
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

// collect saves the cluster's data about a failed test.
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
