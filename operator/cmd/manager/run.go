package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cacheopts"
	"assay.dev/assay/operator/internal/claims"
	"assay.dev/assay/operator/internal/controller/experiment"
	"assay.dev/assay/operator/internal/controller/trial"
	"assay.dev/assay/operator/internal/coordinator"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/render"
	admission "assay.dev/assay/operator/internal/webhook"
)

// pendingReports is how many changes of agents' reports may wait for the trial controller; one trial runs at a time, so that a few pods' worth is plenty.
const pendingReports = 4096

// run builds the manager and runs it until the context ends.
func run(ctx context.Context, o options, logger logr.Logger, ca string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("build the scheme: %w", err)
		}
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	cfg.QPS, cfg.Burst = o.queriesPerSecond, int(2*o.queriesPerSecond)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        logger,
		Cache:                         cacheopts.Options(),
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: uncached()}},
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "manager.assay.dev",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: o.webhookPort, CertDir: o.tlsDir}),
	})
	if err != nil {
		return fmt.Errorf("build the manager: %w", err)
	}
	if err := addTrials(mgr, o, logger, ca); err != nil {
		return err
	}
	if err := addExperiments(mgr, o); err != nil {
		return err
	}
	if err := addChecks(mgr, o); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addTrials wires the trial controller and the coordinator: reports wake the controller up, which sets directives.
func addTrials(mgr ctrl.Manager, o options, logger logr.Logger, ca string) error {
	changed := make(chan event.GenericEvent, pendingReports)
	notify := func(t types.NamespacedName) {
		changed <- event.GenericEvent{Object: &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}}
	}
	clk := clock.RealClock{}
	coord := coordinator.New(coordinator.Options{
		Clock: clk, Log: logger.WithName("coordinator"), Identifier: coordinator.NewTokenReviewer(mgr.GetClient(), clk),
		Store: &trial.Store{Client: mgr.GetClient()}, Notify: notify, Leading: leading(mgr),
	})
	server := &coordinator.Server{
		Handler: coord.Handler(), Address: fmt.Sprintf(":%d", o.coordinatorPort), Log: logger.WithName("coordinator"),
		CertFile: filepath.Join(o.tlsDir, "tls.crt"), KeyFile: filepath.Join(o.tlsDir, "tls.key"),
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("add the coordinator: %w", err)
	}
	reconciler := &trial.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clk, Recorder: mgr.GetEventRecorder("assay"), Coordinator: coord,
		Environment: render.Environment{AgentImage: o.agentImage, CoordinatorAddress: o.coordinatorAddress, CoordinatorCA: ca},
	}
	if err := reconciler.SetupWithManager(mgr, changed); err != nil {
		return fmt.Errorf("add the trial controller: %w", err)
	}
	return nil
}

// leading reports whether this manager has been elected; it never loses the lead without ending.
func leading(mgr ctrl.Manager) func() bool {
	return func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	}
}

// addChecks answers the kubelet's probes.
func addChecks(mgr ctrl.Manager, o options) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}
	ready := healthz.Ping
	if o.webhookPort != 0 {
		ready = mgr.GetWebhookServer().StartedChecker()
	}
	if err := mgr.AddReadyzCheck("webhooks", ready); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	return nil
}

// uncached kinds are read from the API server: the manager may not watch other people's.
func uncached() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}}
}

// checks are made when an object is applied and again by the controller, which may see a System that came later.
var checks = plan.Checks{Templates: render.Check, Claim: claims.Check}

// addExperiments wires the admission webhooks and the experiment controller.
func addExperiments(mgr ctrl.Manager, o options) error {
	if o.webhookPort != 0 {
		if err := admission.Setup(mgr, mgr.GetAPIReader(), checks, render.ParseTemplate); err != nil {
			return err
		}
	}
	reconciler := &experiment.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("assay"), Checks: checks,
		Seed: func() int64 { return 1 + rand.Int64N(1<<53-1) },
	}
	return reconciler.SetupWithManager(mgr)
}
