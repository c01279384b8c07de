// Command bench-trial measures the cost of a trial on the cluster of "make deploy":
// processor-seconds by their users, and wall time beyond its schedule. In the same run, it measures
// what Kubernetes itself needs to bring as many pods up and down, and the use of an idle cluster.
// The nodes must be containers of the local docker, as in kind. Their cgroups count the use of each
// part of a node, also of processes that have ended. Threads of the kernel belong to no node, and
// are shown for the whole machine.
//
//	bench-trial [-kubeconfig PATH] [-trials 3] [-idle 10s] [-keep]
//	bench-trial -local PROGRAM [-trials 3]                           on this machine, without a cluster
//
// Run it from the repository's root. It makes the namespace assay-bench-trial and removes it again.
// Other work on the cluster is included.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	namespace = "assay-bench-trial"
	// othersLimit bounds all parts but the trials and the idle time.
	othersLimit = 10 * time.Minute
	// settled is how long the cluster is left alone before a measurement.
	settled = 3 * time.Second
)

type bench struct {
	trials    int
	idle      time.Duration
	keep      bool
	cluster   client.Client
	clientset *kubernetes.Clientset
	pause     string // an image that every node has and that does nothing
}

func main() {
	b := bench{}
	kubeconfig := flag.String("kubeconfig", ".work/kubeconfig", "the cluster's kubeconfig")
	flag.IntVar(&b.trials, "trials", 3, "trials to run, 1 to 100; the floor is measured as often")
	flag.DurationVar(&b.idle, "idle", 10*time.Second, "how long the idle cluster is measured, 1s to 10m")
	flag.BoolVar(&b.keep, "keep", false, "leave the namespace "+namespace+" as it is in the end")
	local := flag.String("local", "", "measure trials on this machine without a cluster, by this kubectl-assay, as root")
	flag.Parse()
	if err := b.check(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-trial:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, othersLimit+b.idle+time.Duration(b.trials)*(trialLimit+2*floorLimit))
	defer cancel()
	run := func() error { return b.run(ctx, *kubeconfig) }
	if *local != "" {
		run = func() error { return measureLocal(ctx, *local, b.trials) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-trial:", err)
		os.Exit(1)
	}
}

func (b *bench) check() error {
	switch {
	case b.trials < 1 || b.trials > 100:
		return fmt.Errorf("-trials is %d; it must be from 1 to 100", b.trials)
	case b.idle < time.Second || b.idle > 10*time.Minute:
		return fmt.Errorf("-idle is %v; it must be from 1s to 10m", b.idle)
	case flag.NArg() > 0:
		return fmt.Errorf("%q is no flag", flag.Arg(0))
	}
	return nil
}

func (b *bench) run(ctx context.Context, kubeconfig string) error {
	nodes, err := b.connect(ctx, kubeconfig)
	if err != nil {
		return err
	}
	m, err := findMachine(ctx, nodes)
	if err != nil {
		return err
	}
	if b.pause, err = pauseImage(ctx, nodes[0]); err != nil {
		return err
	}
	if err := b.makeNamespace(ctx); err != nil {
		return err
	}
	defer b.removeNamespace(ctx)
	o, err := watchOwners(ctx, b.clientset)
	if err != nil {
		return err
	}
	return b.measure(ctx, m, o)
}

// measure the idle cluster, the floor and the trials, and show them.
func (b *bench) measure(ctx context.Context, m *machine, o *owners) error {
	fmt.Printf("load average %s; the idle cluster for %v\n", loadAverage(), b.idle)
	rest(ctx, settled)
	idle, err := m.measure(ctx, o, func(ctx context.Context) error { rest(ctx, b.idle); return ctx.Err() })
	if err != nil {
		return err
	}
	fmt.Printf("load average %s; the floor, %d times\n", loadAverage(), b.trials)
	var floors []floorTimes
	floor, err := m.measure(ctx, o, func(ctx context.Context) error {
		for range b.trials {
			one, err := b.runFloor(ctx, o)
			if err != nil {
				return err
			}
			floors = append(floors, one)
		}
		return nil
	})
	if err != nil {
		return err
	}
	rest(ctx, settled)
	fmt.Printf("load average %s; %d trials\n", loadAverage(), b.trials)
	var t timings
	trials, err := m.measure(ctx, o, func(ctx context.Context) (err error) {
		t, err = b.runTrials(ctx)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("load average %s\n", loadAverage())
	b.show(os.Stdout, idle, floor, trials, floors, t)
	return nil
}

// connect to the cluster, check that Assay is installed and ready, and return the names of the
// nodes.
func (b *bench) connect(ctx context.Context, kubeconfig string) ([]string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("no cluster (run make deploy): %w", err)
	}
	config.Timeout = 30 * time.Second
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	if b.cluster, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("reach the cluster of %s (run make deploy): %w", kubeconfig, err)
	}
	watching := *config
	watching.Timeout = 0 // a timeout would end the watch
	if b.clientset, err = kubernetes.NewForConfig(&watching); err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := b.cluster.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("reach the cluster of %s (run make deploy): %w", kubeconfig, err)
	}
	manager := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: "assay-system", Name: "assay-manager"}
	if err := b.cluster.Get(ctx, key, manager); err != nil {
		return nil, fmt.Errorf("find Assay on the cluster (run make deploy): %w", err)
	}
	if manager.Status.AvailableReplicas == 0 {
		return nil, fmt.Errorf("no manager of Assay is available: kubectl -n %s get pods", key.Namespace)
	}
	running := &v1alpha1.TrialList{}
	if err := b.cluster.List(ctx, running); err != nil {
		return nil, fmt.Errorf("list trials: %w", err)
	}
	for _, t := range running.Items {
		if t.Namespace != namespace && !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialComplete) {
			return nil, fmt.Errorf("trial %s/%s runs or waits: what it uses would be counted; wait until it is over", t.Namespace, t.Name)
		}
	}
	var names []string
	for _, n := range nodes.Items {
		names = append(names, n.Name)
	}
	if len(names) == 0 {
		return nil, errors.New("the cluster has no nodes")
	}
	return names, nil
}

// pauseImage is Kubernetes' own pause image, which every node has for the sandboxes of its pods.
func pauseImage(ctx context.Context, node string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "exec", node, "sh", "-c", "ctr -n k8s.io images ls -q | grep -m1 /pause:").Output()
	if image := strings.TrimSpace(string(out)); err == nil && image != "" {
		return image, nil
	}
	return "", fmt.Errorf("no pause image on node %s (ctr images ls): %w", node, errors.Join(err, ctx.Err()))
}

func (b *bench) makeNamespace(ctx context.Context) error {
	if err := b.clear(ctx); err != nil { // the remains of an interrupted run
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "privileged", // agents need NET_ADMIN
	}}}
	if err := b.cluster.Create(ctx, ns); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	return nil
}

func (b *bench) removeNamespace(ctx context.Context) {
	if b.keep {
		return
	}
	if err := b.clear(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "bench-trial:", err)
	}
}

// clear removes the experiment first, since its finalizers need their manager.
func (b *bench) clear(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := b.cluster.Get(ctx, client.ObjectKeyFromObject(ns), ns); apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(
		client.IgnoreNotFound(b.cluster.DeleteAllOf(ctx, &v1alpha1.Experiment{}, client.InNamespace(namespace))),
		client.IgnoreNotFound(b.cluster.Delete(ctx, ns)),
		eventually(ctx, 2*time.Minute, time.Second, "namespace "+namespace+" is gone", func(ctx context.Context) (bool, error) {
			err := b.cluster.Get(ctx, client.ObjectKeyFromObject(ns), ns)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}))
}

// eventually polls the condition until it holds. The measurement includes the cost of its requests
// to the API server. It retries after errors, and reports the last one at the end.
func eventually(ctx context.Context, within, every time.Duration, what string, holds func(context.Context) (bool, error)) error {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	for {
		ok, err := holds(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s (last error: %w)", within, what, errors.Join(err, ctx.Err()))
		case <-time.After(every):
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}
