// Package testenv gives tests a real API server: etcd and kube-apiserver as envtest starts them,
// with Assay's CRDs. It has Assay's webhooks if a test package serves them. Only _test files import
// it.
//
// There is no controller manager: no program collects garbage, makes the pods of StatefulSets or
// runs them. A test that needs one of these plays it.
//
// One server serves a whole test package. The first test that asks for it starts it:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Run(m, testenv.Options{})) }
//	func TestX(t *testing.T)    { env := testenv.Get(t); ns := env.Namespace(t); ... }
//
// Tests are skipped when KUBEBUILDER_ASSETS is unset; "make test-integration" sets it. A test that
// needs no server takes testcluster.InProcess.
package testenv

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

// patience is how long etcd, the API server, a kind or a webhook may take to appear. They take many
// times as long on a machine that is busy, or that writes its disk back.
const patience = 2 * time.Minute

// Options of a package's API server.
type Options struct {
	// Webhooks registers the validating webhooks of Experiments and Systems. Nil: none are
	// installed.
	Webhooks func(mgr ctrl.Manager) error
}

// Env is a running API server.
type Env struct {
	testcluster.Env

	server *envtest.Environment
	stop   context.CancelFunc
}

var (
	options Options
	once    sync.Once
	shared  *Env
	failed  error
)

// Run runs the tests of a package and stops the API server, if one was started, when they are over.
func Run(m *testing.M, o Options) int {
	options = o
	flag.Parse()
	log.SetLogger(logr.Discard())
	if testing.Verbose() {
		log.SetLogger(klog.Background())
	}
	code := m.Run()
	if shared != nil {
		if err := shared.close(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			return max(code, 1)
		}
	}
	return code
}

// Get returns the package's API server. The first caller starts it.
func Get(t testing.TB) *Env {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is unset: there is no kube-apiserver to test against; run make test-integration")
	}
	once.Do(func() { shared, failed = start() })
	if failed != nil {
		t.Fatalf("start the API server: %v", failed)
	}
	return shared
}

// Kubeconfig is the configuration with which a program that a test starts reaches the API server.
func (e *Env) Kubeconfig() []byte { return e.server.KubeConfig }

// Root is the root of the repository.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("find the repository: no go.mod above the test")
}

func start() (*Env, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	e := &Env{Env: testcluster.Env{Scheme: runtime.NewScheme()}, stop: func() {}}
	if err := errors.Join(clientgoscheme.AddToScheme(e.Scheme), v1alpha1.AddToScheme(e.Scheme)); err != nil {
		return nil, fmt.Errorf("fill the scheme: %w", err)
	}
	e.server = &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: patience},
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
	}
	if options.Webhooks != nil {
		e.server.WebhookInstallOptions.ValidatingWebhooks = webhooks()
	}
	if e.Config, err = e.server.Start(); err != nil {
		// If the API server rejects the CRDs, it still runs.
		return nil, errors.Join(err, e.server.Stop())
	}
	// The client's rate limit would only slow the tests down.
	e.Config.QPS = -1
	if e.Client, err = client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme}); err != nil {
		return nil, errors.Join(fmt.Errorf("make a client: %w", err), e.close())
	}
	if options.Webhooks != nil {
		if err := e.serveWebhooks(); err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	return e, nil
}

func (e *Env) serveWebhooks() error {
	o := e.server.WebhookInstallOptions
	mgr, err := ctrl.NewManager(e.Config, ctrl.Options{
		Scheme:        e.Scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir}),
	})
	if err != nil {
		return fmt.Errorf("make the webhooks' manager: %w", err)
	}
	if err := options.Webhooks(mgr); err != nil {
		return fmt.Errorf("register webhooks: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	go func() {
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the webhooks' manager ended with:", err)
		}
	}()
	return waitFor(ctx, mgr.GetWebhookServer().StartedChecker())
}

func (e *Env) close() error {
	e.stop()
	return e.server.Stop()
}
