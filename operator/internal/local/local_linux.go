package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/local/folder"
	"assay.dev/assay/operator/internal/local/node"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/manager/cacheopts"
	"assay.dev/assay/operator/internal/manager/certs"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/manager/controller/archive"
	"assay.dev/assay/operator/internal/manager/controller/dataset"
	"assay.dev/assay/operator/internal/manager/controller/experiment"
	"assay.dev/assay/operator/internal/manager/controller/trial"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/manager/steady"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

const (
	// managerNamespace has the objects of the manager itself.
	managerNamespace = "assay-system"
	// certificateTimeout is how long it may take to make a certificate.
	certificateTimeout = 10 * time.Second
	// noCluster replaces the version of Kubernetes in results and bundles.
	noCluster = "none: one machine, no cluster"
	// noRoot follows noCluster if the user is not root.
	noRoot = ", without root: limits of memory and weights of processors are not enforced; processor time and memory are added up over processes"
	// pendingReports is how many changes of agents' reports may wait for the trial controller.
	pendingReports = 4096
)

// Describe adds this machine to objects that are only read, so that a plan shows if pods fit.
func Describe(objects *folder.Store) error { return node.Register(objects) }

// MakesPods says why this process cannot make pods. Nil: it can.
func MakesPods() error { return node.Refusal(StateDir) }

// OwnCapabilities are the capabilities that this process can give to containers, without the prefix
// CAP_.
func OwnCapabilities() ([]string, error) { return node.OwnCapabilities() }

// Start carries out the experiment of a name from its folder, until the caller stops it.
func (o Options) Start(ctx context.Context, name string) (*Running, error) {
	objects, err := folder.Open(o.Dir, name, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	images := &node.Images{Cache: filepath.Join(o.Cache, "images"), Sources: o.Images, Clock: clock.RealClock{}}
	interruptible := ctx
	ctx = context.WithoutCancel(ctx)
	o.State = cmp.Or(o.State, StateDir)
	machine, err := node.New(ctx, node.Options{
		Store: objects, Clock: clock.RealClock{}, Log: o.Log.WithName("node"), Dir: o.State, Runtime: o.Runtime, Rootless: o.Rootless,
		Images: images, Domain: placement.DefaultClusterDomain,
		Claims: map[string]string{render.DatasetClaim: o.datasetBytes(), v1alpha1.SharedClaim: filepath.Join(o.State, "shared")},
	})
	if err != nil {
		return nil, err
	}
	deciding, stop := context.WithCancel(ctx)
	// removed returns the error of a start that failed. It removes all that the start has made.
	removed := func(err error) error {
		stop()
		return errors.Join(err, machine.Run(deciding))
	}
	// Every pod needs the image of the agent. Without it, each trial would wait for its deadline.
	if err := images.Have(interruptible, o.AgentImage); err != nil {
		return nil, removed(err)
	}
	// This process holds the machine now, so no other process carries out any of these trials.
	if err := errors.Join(giveUpInterrupted(objects, clock.RealClock{}.Now()), o.shareDatasets(objects)); err != nil {
		return nil, removed(err)
	}
	server := &folder.Server{Store: objects, Logs: func(pod, container string) (io.ReadCloser, error) { return os.Open(machine.LogFile(pod, container)) }}
	r := &Running{Config: folder.Config(server), stop: stop, ended: make(chan error, 1)}
	mgr, err := o.manager(deciding, r.Config, machine)
	if err != nil {
		return nil, removed(err)
	}
	go func() {
		running, end := context.WithCancel(ctx)
		ran := make(chan error, 1)
		go func() { ran <- machine.Run(running) }()
		// The controllers end before the machine, so that they do not take the end of the pods for
		// an event of a trial.
		err := mgr.Start(deciding)
		end()
		r.ended <- errors.Join(err, <-ran)
	}()
	return r, nil
}

// datasetBytes is the folder of this machine in which pods find data sets.
func (o Options) datasetBytes() string { return filepath.Join(o.Cache, "datasets", "bytes") }

// shareDatasets makes the store keep data sets in a folder that outlives the experiment. It also
// makes the PersistentVolumeClaim that the owner of a cluster would make. It forgets a data set
// whose bytes were deleted, so that the set is prepared again.
func (o Options) shareDatasets(objects *folder.Store) error {
	bytes := o.datasetBytes()
	if err := os.MkdirAll(bytes, 0o750); err != nil {
		return fmt.Errorf("make the folder of data sets: %w", err)
	}
	if err := errors.Join(os.Chown(bytes, -1, render.DatasetGroup), os.Chmod(bytes, 0o770|os.ModeSetgid)); err != nil {
		return fmt.Errorf("give the folder of data sets to their group: %w", err)
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(bytes, name))
		return err == nil
	}
	if err := objects.Share(filepath.Join(o.Cache, "datasets", "objects"), there); err != nil {
		return err
	}
	claim := &unstructured.Unstructured{}
	claim.SetNamespace(folder.Namespace)
	claim.SetName(render.DatasetClaim)
	if _, err := objects.Create(folder.Claims, claim); err != nil {
		return fmt.Errorf("make the claim of data sets: %w", err)
	}
	return nil
}

// manager has all controllers of a cluster's manager except the one for stores.
func (o Options) manager(ctx context.Context, cfg *rest.Config, machine *node.Machine) (ctrl.Manager, error) {
	log.SetLogger(o.Log)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	mapper := mapperOf()
	skip := true // a process may run several managers, as in tests, whose controllers have equal names
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: o.Log, Cache: cacheopts.Options(), Controller: config.Controller{SkipNameValidation: &skip},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}}}},
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	})
	if err != nil {
		return nil, fmt.Errorf("build the manager: %w", err)
	}
	keeper, err := o.certificates(ctx, cfg, scheme, mapper)
	if err != nil {
		return nil, err
	}
	listener, err := machine.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	if err := o.addTrials(mgr, keeper, machine, listener); err != nil {
		return nil, err
	}
	sets := &dataset.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("assay"), Environment: o.environment(),
	}
	if err := sets.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	experiments := &experiment.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("assay"), Checks: admit.Checks,
		Seed: func() int64 { return 1 + rand.Int64N(1<<53-1) }, Environment: o.environment(), //nolint:forbidigo // the seed of an experiment that names none need not be repeated
	}
	return mgr, experiments.SetupWithManager(mgr)
}

// certificates makes certificates of the coordinator, as a cluster's manager does.
func (o Options) certificates(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper) (*certs.Keeper, error) {
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("build a client for the certificates: %w", err)
	}
	secret := types.NamespacedName{Namespace: managerNamespace, Name: "certificates"}
	if err := c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}); err != nil {
		return nil, fmt.Errorf("make room for the certificates: %w", err)
	}
	keeper, err := certs.New(certs.Options{
		Client: c, Clock: clock.RealClock{}, Log: o.Log.WithName("certificates"), Secret: secret,
		Names: []string{node.CoordinatorName}, Lifetimes: certs.Lifetimes{Certificate: 90 * 24 * time.Hour, Authority: 3 * 365 * 24 * time.Hour},
		Leading: func() bool { return true },
	})
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	return keeper, keeper.Load(ctx)
}

// addTrials wires the trial controller and the coordinator, as a cluster's manager does.
func (o Options) addTrials(mgr ctrl.Manager, keeper *certs.Keeper, machine *node.Machine, listener net.Listener) error {
	changed := make(chan event.GenericEvent, pendingReports)
	notify := func(t types.NamespacedName) {
		changed <- event.GenericEvent{Object: &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}}
	}
	stores, err := store.Load("", "", nil)
	if err != nil {
		return err
	}
	clk, c, reader := steady.New(), mgr.GetClient(), mgr.GetAPIReader()
	coord := coordinator.New(coordinator.Options{
		Clock: clk, Log: o.Log.WithName("coordinator"), Identifier: machine.Identifier(), Store: &storage.Store{Client: c, Reader: reader},
		Archive: &archive.UploadHandler{Client: c, Reader: reader, Stores: stores}, Notify: notify, Leading: func() bool { return true }, Instance: string(uuid.NewUUID()),
	})
	server := &coordinator.Server{
		Handler: coord.Handler(), Listener: listener, Log: o.Log.WithName("coordinator"),
		GetCertificate: keeper.GetCertificate,
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("add the coordinator: %w", err)
	}
	recorder := mgr.GetEventRecorder("assay")
	admitter := &admission.Reconciler{
		Client: c, Reader: reader, Clock: clk, Recorder: recorder, Environment: o.environment(),
		Grants: types.NamespacedName{Namespace: managerNamespace, Name: admission.GrantsName},
	}
	if err := admitter.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("add the admission controller: %w", err)
	}
	trials := &trial.Reconciler{
		Client: c, Reader: reader, Clock: clk, Recorder: recorder, Coordinator: coord, Environment: o.environment(), Trusted: keeper.Trusted,
		Software: func(context.Context) *results.Software {
			return &results.Software{Manager: buildinfo.Version(), Kubernetes: o.place()}
		},
		MessageSpacing: time.Second, Near: true,
	}
	if err := trials.SetupWithManager(mgr, changed); err != nil {
		return fmt.Errorf("add the trial controller: %w", err)
	}
	return nil
}

// Machines returns the machines of a trial that answer SSH and run on this machine.
func Machines(_ context.Context, program, trial string) ([]Machine, error) {
	entries, err := node.Entries(StateDir, program, trial+"-", v1alpha1.MachineContainer)
	if err != nil {
		return nil, err
	}
	var all []Machine
	for _, e := range entries {
		names, err := e.MachineNames(v1alpha1.MachineConfigFile)
		if err != nil {
			continue // the container does not know its names yet, or has just gone
		}
		all = append(all, Machine{Names: names, Run: e.Run})
	}
	return all, nil
}

// place names the place of the trials for results and bundles.
func (o Options) place() string {
	if o.Rootless {
		return noCluster + noRoot
	}
	return noCluster
}

// environment returns the environment of the pods. Root of a user namespace has no useful CAP_BPF
// and CAP_SYS_NICE, since eBPF and real-time priority affect the whole machine.
func (o Options) environment() render.Environment {
	return render.Environment{
		Capabilities: o.Capabilities,
		WithoutBPF:   o.Rootless, WithoutSysNice: o.Rootless, WithoutControlGroups: o.Rootless,
		AgentImage: o.AgentImage, AgentPullPolicy: corev1.PullIfNotPresent, AgentResources: render.DefaultAgentResources(),
		CoordinatorAddress: fmt.Sprintf("%s:%d", node.CoordinatorName, node.CoordinatorPort), Namespace: managerNamespace,
	}
}

// mapperOf returns a mapper of the kinds that the folder serves.
func mapperOf() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range folder.Kinds {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if k.Cluster {
			scope = meta.RESTScopeRoot
		}
		m.AddSpecific(k.GroupVersionKind(), k.GroupVersionKind().GroupVersion().WithResource(k.Resource), k.GroupVersionKind().GroupVersion().WithResource(k.Kind), scope)
	}
	return m
}
