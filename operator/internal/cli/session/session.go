// Package session is what all verbs of kubectl-assay share: where they write, their clock, how they
// reach the cluster, and how they end.
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
	// Terminal: Out is one, so that lines may be redrawn. Width of it in characters, 0 when it is
	// not known. Color: verdicts may have one.
	Terminal bool
	Width    int
	Color    bool
	// Pictures: Out is a terminal that shows characters beyond ASCII, so that numbers may be drawn.
	Pictures bool
	// ErrTerminal: Err is a terminal.
	ErrTerminal bool
	// Console is where the person sits who called the command.
	Console *Console

	// Now is the time.
	Now func() time.Time
	// Sleep waits, or returns the context's error.
	Sleep func(context.Context, time.Duration) error
	// Connect reaches the cluster. It makes no call yet.
	Connect func() (Cluster, error)
	// Here is this machine, when it takes the place of a cluster. Nil, or if it returns nil: it
	// does not.
	Here func() Host
}

// CheckHere refuses an experiment, with its profile, that this one machine cannot run, when the
// machine takes the place of a cluster.
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

// NoteHere says on stderr what this one machine leaves undone, whatever the experiment is, when the
// machine takes the place of a cluster.
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

// Host carries experiments out where no manager does: on one machine, without a cluster.
type Host interface {
	// Refusals name what an experiment, with its profile, asks for that it cannot do.
	Refusals(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) []string
	// Notes say what it leaves undone, whatever the experiment is.
	Notes() []string
	// Where the results of an experiment are, for people; of none: those of all.
	Where(experiment string) string
	// Start carries out the experiment of a name, until stop is called, which returns when nothing
	// of it is left. The Cluster is where the experiment is applied.
	Start(ctx context.Context, name string) (c Cluster, stop func() error, err error)
}

// Cluster is a connection and the namespace in use.
type Cluster struct {
	Client client.Client
	// Config of the connection, for informers. Nil: there are none.
	Config *rest.Config
	// Logs reads the log of a container, as kubectl logs does. Nil: it cannot be read.
	Logs      func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error)
	Namespace string
	// NamespaceGiven is true when the user named it for this call.
	NamespaceGiven bool
	// Machines are those of a trial that answer SSH and are up. Nil: they cannot be reached.
	Machines func(ctx context.Context, namespace, trial string) ([]Machine, error)
	// Host carries out what is applied as long as the verb runs. Nil: a manager does, in the
	// cluster.
	Host Host
}

// Flag leads another verb to the same objects: the namespace, or the folder of one machine.
func (c Cluster) Flag() string {
	if c.Host != nil {
		return "--local=" + c.Host.Where("")
	}
	return "-n " + c.Namespace
}

// Place is where the objects are, for people.
func (c Cluster) Place() string {
	if c.Host != nil {
		return "folder " + c.Host.Where("")
	}
	return "namespace " + c.Namespace
}

// Check refuses what an experiment, with its profile, asks for that its host cannot do.
func (c Cluster) Check(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) error {
	if c.Host == nil {
		return nil
	}
	return checkHost(c.Host, spec, systems)
}

// Begin has an experiment carried out as long as the verb runs, where no manager does it. end must
// be called.
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
