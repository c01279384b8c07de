// Package session has the parts that all verbs of kubectl-assay share: output, clock, connection to
// the cluster, and exit codes.
package session

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Session is one call of the command.
type Session struct {
	Out, Err io.Writer
	// Terminal: Out is a terminal, so that lines may be redrawn. Width is its width in characters,
	// 0 if unknown. Color: verdicts may have a color.
	Terminal bool
	Width    int
	Color    bool
	// Pictures: Out is a terminal that shows characters beyond ASCII, so that plots may be drawn.
	Pictures bool
	// ErrTerminal: Err is a terminal.
	ErrTerminal bool
	// Console is the terminal of the person who called the command.
	Console *Console

	// Now returns the time.
	Now func() time.Time
	// Sleep waits. If the context ends first, it returns the context's error.
	Sleep func(context.Context, time.Duration) error
	// Connect makes a client of the cluster. It sends no request.
	Connect func() (Cluster, error)
	// Here returns this machine if it takes the place of a cluster. Nil, or a nil result: it does
	// not.
	Here func() Host
}

// CheckHere refuses an experiment, with its profile, that this machine cannot run. It does nothing
// if the session uses a cluster.
func (s *Session) CheckHere(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) error {
	if s.Here == nil {
		return nil
	}
	host := s.Here()
	if host == nil {
		return nil
	}
	return checkHost(host, spec, systems)
}

// NoteHere prints on stderr what this machine never does for an experiment. It does nothing if the
// session uses a cluster.
func (s *Session) NoteHere() {
	if s.Here == nil {
		return
	}
	host := s.Here()
	if host == nil {
		return
	}
	for _, note := range host.Notes() {
		fmt.Fprintf(s.Err, "Note: %s\n", note)
	}
}

func checkHost(host Host, spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) error {
	if refused := host.Refusals(spec, systems); len(refused) > 0 {
		return fmt.Errorf("one machine cannot do this:\n  %s", strings.Join(refused, "\n  "))
	}
	return nil
}

// Host carries out experiments on one machine, without a cluster and a manager.
type Host interface {
	// Refusals name the features that an experiment, with its profile, needs and the host does not
	// have.
	Refusals(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) []string
	// Notes name the tasks that the host never does, for any experiment.
	Notes() []string
	// Where returns the place of an experiment's results, for people. Without a name, it returns
	// the place of all results.
	Where(experiment string) string
	// Start carries out an experiment until stop is called. stop returns when nothing of the
	// experiment runs any more. The experiment is to be applied to the returned Cluster.
	Start(ctx context.Context, name string) (c Cluster, stop func() error, err error)
}

// Cluster is a connection and the namespace in use.
type Cluster struct {
	Client client.Client
	// Config of the connection, for informers. Nil: there is no connection.
	Config *rest.Config
	// Logs reads the log of a container, as kubectl logs does. Nil: logs cannot be read.
	Logs      func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error)
	Namespace string
	// NamespaceGiven is true if the user named the namespace for this call.
	NamespaceGiven bool
	// Machines returns the machines of a trial that answer SSH and are up. Nil: they cannot be
	// reached.
	Machines func(ctx context.Context, namespace, trial string) ([]Machine, error)
	// Host carries out experiments while the verb runs. Nil: the manager in the cluster does.
	Host Host
}

// Flag is the flag by which another verb finds the same objects: the namespace, or the folder of
// one machine.
func (c Cluster) Flag() string {
	if c.Host != nil {
		return "--local=" + c.Host.Where("")
	}
	return "-n " + c.Namespace
}

// Place names the place of the objects, for people.
func (c Cluster) Place() string {
	if c.Host != nil {
		return "folder " + c.Host.Where("")
	}
	return "namespace " + c.Namespace
}

// Check refuses an experiment, with its profile, that needs a feature its host does not have.
func (c Cluster) Check(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) error {
	if c.Host == nil {
		return nil
	}
	return checkHost(c.Host, spec, systems)
}

// Begin starts the host, which carries out the experiment while the verb runs. With a manager it
// does nothing. The caller must call end.
func (c Cluster) Begin(ctx context.Context, experiment string) (host Cluster, end func() error, err error) {
	if c.Host == nil {
		return c, func() error { return nil }, nil
	}
	return c.Host.Start(ctx, experiment)
}

// NewScheme knows the kinds that the command reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the kinds: %w", err)
		}
	}
	return scheme, nil
}

// Sleep waits in real time.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
