package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/local"
	"assay.dev/assay/operator/internal/local/folder"
	"assay.dev/assay/operator/internal/local/rootless"
)

// localFlags are the flags with which this machine takes the place of a cluster.
type localFlags struct {
	dir, runtime, agentImage string
	images, capabilities     []string
	verbose                  bool
	running                  atomic.Bool
	// entered is true when another process of this command runs the verb, in a user namespace.
	// ended is the exit code of that process.
	entered atomic.Bool
	ended   atomic.Pointer[int]
}

// builtImages is where make images puts archives.
const builtImages = ".work/images"

func (f *localFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "local", "", "run on this machine, without a cluster, or read what ran there; results are in the folder that is named, default assay-results")
	flags.Lookup("local").NoOptDefVal = "assay-results"
	flags.StringSliceVar(&f.images, "local-images", nil, "with --local: folders with archives of images (docker save) or OCI layouts, or one of these; default: "+builtImages+", if it is there; then docker and registries are asked")
	flags.StringSliceVar(&f.capabilities, "local-capabilities", nil, "with --local, as root: capabilities of the kernel that containers of Systems may have, such as IPC_LOCK; default: none")
	flags.StringVar(&f.runtime, "local-runtime", "runc", "with --local: program that runs containers, with the command line of runc")
	flags.StringVar(&f.agentImage, "local-agent-image", "assay/agent:dev", "with --local: image with the agent")
	flags.BoolVar(&f.verbose, "local-verbose", false, "with --local: write what controllers and pods do to stderr")
	for _, hidden := range []string{"local-verbose", "local-capabilities", "local-images", "local-runtime", "local-agent-image"} {
		flags.Lookup(hidden).Hidden = true
	}
}

// rootless reports whether pods are made without root: in a user namespace, which this process has
// entered or is to enter.
func (f *localFlags) rootless() bool {
	return os.Getenv(rootless.Variable) == rootless.Entered || os.Geteuid() != 0 && local.MakesPods() != nil
}

// enters reports whether a verb makes pods on this machine, for which an ordinary user enters a
// user namespace.
func (f *localFlags) enters(verb string) bool {
	return f.dir != "" && (verb == "run" || verb == "try") && os.Getenv(rootless.Variable) == "" && f.rootless()
}

// enter the namespace, and have the verb run there.
func (f *localFlags) enter(ctx context.Context) error {
	f.running.Store(true)
	f.entered.Store(true)
	code, err := rootless.Run(ctx, os.Args, os.Environ())
	if err == nil {
		f.ended.Store(&code)
	}
	return err
}

// localGrace is how long a run on this machine may take to end its pods.
const localGrace = 30 * time.Second

// enteredGrace is how long the process in a user namespace may take to exit after its verb ended.
const enteredGrace = 5 * time.Second

// connect opens the folder of results. Only run and try change anything there: see session.Host.
func (f *localFlags) connect() (session.Cluster, error) {
	store, err := folder.Read(f.dir, clock.RealClock{})
	if err != nil {
		return session.Cluster{}, err
	}
	if err := local.Describe(store); err != nil {
		return session.Cluster{}, err
	}
	cluster, err := session.ClusterOf(folder.Config(&folder.Server{Store: store}))
	if err != nil {
		return session.Cluster{}, err
	}
	cluster.Namespace, cluster.Host = folder.Namespace, f
	cluster.Machines = f.machines
	return cluster, nil
}

// machines of a trial that a process on this machine runs.
func (f *localFlags) machines(ctx context.Context, _, trial string) ([]session.Machine, error) {
	if f.rootless() {
		return nil, errors.New("ssh to a machine here needs root: without root, machines are in a namespace that ends with the command which runs them")
	}
	found, err := local.Machines(ctx, f.runtime, trial)
	if err != nil {
		return nil, err
	}
	var all []session.Machine
	for _, m := range found {
		all = append(all, session.Machine{Names: m.Names, Run: func(ctx context.Context, command []string, on *session.Console, terminal bool) (int, error) {
			return m.Run(ctx, command, on.In, on.Out, on.Err, terminal)
		}})
	}
	return all, nil
}

// Refusals returns those of session.Host.
func (f *localFlags) Refusals(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) []string {
	refused := local.Refusals(spec, systems)
	if f.rootless() {
		return append(refused, local.WithoutRoot(spec, systems)...)
	}
	own, err := local.OwnCapabilities()
	if err != nil {
		return append(refused, err.Error())
	}
	return append(refused, local.BeyondAllowed(systems, f.capabilities, own)...)
}

// Notes returns those of session.Host.
func (f *localFlags) Notes() []string {
	if f.rootless() {
		return local.NotesWithoutRoot()
	}
	return nil
}

// Where returns the folder of the experiment's results.
func (f *localFlags) Where(experiment string) string { return filepath.Join(f.dir, experiment) }

// Start calls the method of session.Host.
func (f *localFlags) Start(ctx context.Context, name string) (session.Cluster, func() error, error) {
	if len(f.images) == 0 {
		if _, err := os.Stat(builtImages); err == nil {
			f.images = []string{builtImages}
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return session.Cluster{}, nil, fmt.Errorf("find the folder for unpacked images: %w", err)
	}
	o := local.Options{
		Dir: f.dir, Cache: filepath.Join(home, ".cache", "assay"), Images: f.images, AgentImage: f.agentImage, Runtime: f.runtime, Log: logger(f.verbose),
		Capabilities: f.capabilities,
	}
	if f.rootless() {
		o.Rootless = true
		o.Cache = filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "assay")
		o.State = filepath.Join(cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state")), "assay", "local")
	}
	f.running.Store(true)
	spareGarbageCollections()
	running, err := o.Start(ctx, name)
	if err != nil {
		if len(f.images) == 0 {
			err = fmt.Errorf("%w\nThere is no %s in this directory: run where make images has made it, or name that folder with --local-images", err, builtImages)
		}
		return session.Cluster{}, nil, err
	}
	cluster, err := session.ClusterOf(running.Config)
	if err != nil {
		return session.Cluster{}, nil, err
	}
	cluster.Namespace, cluster.Host = folder.Namespace, f
	return cluster, running.Stop, nil
}

// spareGarbageCollections lets the heap grow to five times the live data, unless the user sets
// GOGC. The process runs for some minutes, and its heap is small. A garbage collection during a
// trial takes processor time from the System.
func spareGarbageCollections() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// grace is how long a verb may take to end after Ctrl-C.
func (f *localFlags) grace() time.Duration {
	switch {
	case f.entered.Load():
		return localGrace + enteredGrace
	case f.running.Load():
		return localGrace
	}
	return interruptGrace
}

// logger of the parts that carry experiments out. It is for developers who look for a defect:
// conditions and reports inform users.
func logger(verbose bool) logr.Logger {
	if !verbose {
		return logr.Discard()
	}
	return klog.NewKlogr()
}
