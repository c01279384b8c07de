package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/chaosmesh"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/cacheopts"
	"assay.dev/assay/operator/internal/manager/certs"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/manager/controller/dataset"
	"assay.dev/assay/operator/internal/manager/controller/experiment"
	"assay.dev/assay/operator/internal/manager/controller/retention"
	"assay.dev/assay/operator/internal/manager/controller/trial"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/manager/gauges"
	"assay.dev/assay/operator/internal/manager/steady"
	webhooks "assay.dev/assay/operator/internal/manager/webhook"
)

// pendingReports is how many changes of agents' reports may wait for the trial controller; one
// trial runs at a time, so this is enough for many pods.
const pendingReports = 4096

// run builds the manager and runs it until the context ends.
func run(ctx context.Context, o options, logger logr.Logger) error {
	scheme, err := newScheme(o)
	if err != nil {
		return err
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	cfg.QPS, cfg.Burst = o.queriesPerSecond, int(2*o.queriesPerSecond)
	// The leader is known only once there is a manager, which needs the certificates first.
	var leads func() bool
	keeper, err := newKeeper(ctx, cfg, scheme, o, logger, func() bool { return leads != nil && leads() })
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, managerOptions(o, scheme, logger, keeper))
	if err != nil {
		return fmt.Errorf("build the manager: %w", err)
	}
	leads = leading(mgr)
	if err := mgr.Add(keeper); err != nil {
		return fmt.Errorf("add the keeper of certificates: %w", err)
	}
	if err := o.stores.load(); err != nil {
		return err
	}
	prometheus, err := o.monitoring.build(ctx, mgr)
	if err != nil {
		return err
	}
	if err := cacheopts.IndexTrials(ctx, mgr.GetFieldIndexer(), admission.Indexes, trial.Indexes); err != nil {
		return err
	}
	if err := addTrials(mgr, o, logger, keeper, prometheus); err != nil {
		return err
	}
	if err := addArchive(mgr, o); err != nil {
		return err
	}
	if err := addExperiments(mgr, o, prometheus); err != nil {
		return err
	}
	if err := addRetention(mgr, o); err != nil {
		return err
	}
	if err := addChecks(mgr, o, keeper); err != nil {
		return err
	}
	if err := addGauges(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func managerOptions(o options, scheme *runtime.Scheme, logger logr.Logger, keeper *certs.Keeper) ctrl.Options {
	return ctrl.Options{
		Scheme:                        scheme,
		Logger:                        logger,
		Cache:                         cacheopts.Options(o.namespaces...),
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: uncached()}},
		Metrics:                       metricsOptions(o, keeper.GetCertificate),
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "manager.assay.dev",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{Port: o.webhookPort, TLSOpts: []func(*tls.Config){
			func(c *tls.Config) { c.GetCertificate, c.MinVersion = keeper.GetCertificate, tls.VersionTLS13 },
		}}),
	}
}

// metricsQueries is the most requests per second by which the manager checks readers of the
// metrics. The manager remembers the API server's answers, so Prometheus needs few requests. A
// flood of unknown tokens must cost the API server little.
const metricsQueries = 5

// metricsOptions let the API server decide who may read /metrics.
func metricsOptions(o options, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) metricsserver.Options {
	out := metricsserver.Options{BindAddress: o.metricsAddress}
	if o.metricsOpen {
		return out
	}
	out.SecureServing = true
	out.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate, c.MinVersion = certificate, tls.VersionTLS13 }}
	out.FilterProvider = func(cfg *rest.Config, c *http.Client) (metricsserver.Filter, error) {
		few := rest.CopyConfig(cfg)
		few.QPS, few.Burst = metricsQueries, 2*metricsQueries
		return filters.WithAuthenticationAndAuthorization(few, c)
	}
	return out
}

// newScheme knows all kinds that the manager reads or writes.
func newScheme(o options) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, o.monitoring.addKinds} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// addTrials wires the trial controller and the coordinator: a report wakes the controller, and the
// controller sets directives.
func addTrials(mgr ctrl.Manager, o options, logger logr.Logger, keeper *certs.Keeper, prometheus *monitoring.Installation) error {
	changed := make(chan event.GenericEvent, pendingReports)
	notify := func(t types.NamespacedName) {
		changed <- event.GenericEvent{Object: &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}}
	}
	clk := steady.New()
	coord := coordinator.New(coordinator.Options{
		Clock: clk, Log: logger.WithName("coordinator"), Identifier: coordinator.NewTokenReviewer(mgr.GetClient(), clk),
		Store: &storage.Store{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}, Archive: o.stores.desk(mgr, o.namespaces), Notify: notify, Leading: leading(mgr),
		Instance: string(uuid.NewUUID()),
	})
	server := &coordinator.Server{
		Handler: coord.Handler(), Address: fmt.Sprintf(":%d", o.coordinatorPort), Log: logger.WithName("coordinator"),
		GetCertificate: keeper.GetCertificate,
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("add the coordinator: %w", err)
	}
	reader, recorder, environment := cacheopts.Reader(mgr.GetAPIReader(), o.namespaces...), mgr.GetEventRecorder("assay"), o.environment()
	admitter := &admission.Reconciler{
		Client: mgr.GetClient(), Reader: reader, Clock: clk, Recorder: recorder, Environment: environment,
		Grants: types.NamespacedName{Namespace: o.namespace, Name: admission.GrantsName}, AtOnce: admission.CallsAtOnce, Indexed: true,
	}
	if err := admitter.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("add the admission controller: %w", err)
	}
	reconciler := &trial.Reconciler{
		Client: mgr.GetClient(), Reader: reader, Clock: clk, Recorder: recorder, Coordinator: coord, Environment: environment,
		Trusted: keeper.Trusted, Prometheus: prometheus, Software: newSoftware(mgr, o.namespace).describe,
		MessageSpacing: time.Second, AtOnce: trial.CallsAtOnce, Indexed: true,
	}
	if err := reconciler.SetupWithManager(mgr, changed); err != nil {
		return fmt.Errorf("add the trial controller: %w", err)
	}
	return nil
}

// addDatasets wires the controller that prepares and removes data sets.
func addDatasets(mgr ctrl.Manager, o options) error {
	r := &dataset.Reconciler{
		Client: mgr.GetClient(), Reader: cacheopts.Reader(mgr.GetAPIReader(), o.namespaces...), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("assay"),
		Environment: o.environment(), Keep: o.datasetsKeep,
	}
	return r.SetupWithManager(mgr)
}

// addRetention deletes results that the owner of the cluster keeps no longer.
func addRetention(mgr ctrl.Manager, o options) error {
	if o.retention.Keeps() {
		return nil
	}
	s := &retention.Sweeper{Client: mgr.GetClient(), Reader: cacheopts.Reader(mgr.GetAPIReader(), o.namespaces...), Clock: clock.RealClock{}, Policy: o.retention}
	if err := mgr.Add(s); err != nil {
		return fmt.Errorf("add the retention of results: %w", err)
	}
	return nil
}

// environment of the pods of trials.
func (o options) environment() render.Environment {
	return render.Environment{
		AgentImage: o.agentImage, AgentPullPolicy: corev1.PullPolicy(o.agentPullPolicy), ImageRegistry: o.systemRegistry, AgentResources: o.agentResources.ResourceRequirements, ClusterDomain: o.clusterDomain,
		PodLabels: o.podLabels, PodAnnotations: o.podAnnotations, Pods: o.pods.PodSettings, Capabilities: o.systemCapabilities,
		CoordinatorAddress: o.coordinatorAddress, Namespace: o.machineNamespace(), WithoutBPF: o.withoutBPF, WithoutSysNice: o.withoutSysNice,
	}
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
func addChecks(mgr ctrl.Manager, o options, keeper *certs.Keeper) error {
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
	if err := mgr.AddReadyzCheck("certificates", keeper.Ready); err != nil {
		return fmt.Errorf("add the readiness check of certificates: %w", err)
	}
	return nil
}

// addGauges adds the state of experiments to /metrics.
func addGauges(ctx context.Context, mgr ctrl.Manager) error {
	err := metrics.Registry.Register(&gauges.Collector{Reader: mgr.GetClient(), Clock: clock.RealClock{}, Leading: leading(mgr), Context: ctx})
	if err != nil {
		return fmt.Errorf("register the gauges: %w", err)
	}
	if err := metrics.Registry.Register(&gauges.Results{Reader: mgr.GetClient(), Leading: leading(mgr), Context: ctx}); err != nil {
		return fmt.Errorf("register the results: %w", err)
	}
	return nil
}

// uncached kinds are read from the API server: the manager may not watch those of other owners.
func uncached() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}}
}

// checks run when an object is applied, and again in the controller. The controller may see a
// System that was applied later.
var checks = plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Shapes: claims.Shapes, Functions: claims.FunctionsOf, UnusedParameters: true}

// addExperiments wires the admission webhooks and the experiment controller.
func addExperiments(mgr ctrl.Manager, o options, prometheus *monitoring.Installation) error {
	checks := withMonitoring(checks, prometheus)
	checks.Capabilities = func(system *v1alpha1.SystemSpec) error { return plan.CheckCapabilities(system, o.systemCapabilities) }
	checks.Store = o.stores.registry.Check
	checks.ChaosMesh = (&chaosmesh.Installation{Enabled: o.chaosMesh, Mapper: mgr.GetRESTMapper()}).Check
	if o.webhookPort != 0 {
		if err := webhooks.Setup(mgr, cacheopts.Reader(mgr.GetAPIReader(), o.namespaces...), checks, render.ParseTemplate); err != nil {
			return err
		}
	}
	reconciler := &experiment.Reconciler{
		Client: mgr.GetClient(), Reader: cacheopts.Reader(mgr.GetAPIReader(), o.namespaces...), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("assay"), Checks: checks,
		Seed: func() int64 { return 1 + rand.Int64N(1<<53-1) }, Store: o.stores.registry.Resolve, Monitors: prometheus, Environment: o.environment(),
	}
	if err := addDatasets(mgr, o); err != nil {
		return err
	}
	return reconciler.SetupWithManager(mgr)
}
