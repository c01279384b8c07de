// Package session is what all verbs of kubectl-assay share: where they write, their clock, how they
// reach the cluster, and how they end.
package session

import (
	"context"
	"fmt"
	"io"
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
	// ErrTerminal: Err is a terminal.
	ErrTerminal bool

	// Now is the time.
	Now func() time.Time
	// Sleep waits, or returns the context's error.
	Sleep func(context.Context, time.Duration) error
	// Connect reaches the cluster. It makes no call yet.
	Connect func() (Cluster, error)
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
