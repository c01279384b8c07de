// Package testcluster gives tests the API of a cluster. It plays the other parts of a cluster:
// nodes, kubelets, controllers of Jobs. InProcess makes an API within the test. Package testenv
// starts a real server, and has the same methods. Only _test files import it.
package testcluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Env is the API of a cluster.
type Env struct {
	Config *rest.Config
	Scheme *runtime.Scheme
	// Client reads and writes without a cache.
	Client client.WithWatch
}

// Namespace makes a namespace for one test.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	return ns.Name
}

// Start runs a manager until the test is over. setup registers controllers with it.
func (e *Env) Start(t testing.TB, cacheOptions cache.Options, setup func(ctrl.Manager) error) {
	t.Helper()
	mgr, err := ctrl.NewManager(e.Config, ctrl.Options{
		Scheme:  e.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cacheOptions,
		// Several tests of a process may register controllers with the same name.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatalf("make a manager: %v", err)
	}
	if err := setup(mgr); err != nil {
		t.Fatalf("set the manager up: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the manager's cache does not fill")
	}
}
