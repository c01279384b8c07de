// Package session is what all verbs of kubectl-assay share: where they write, their clock, how they reach the cluster, and how they end.
package session

import (
	"context"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spf13/pflag"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Session is one call of the command.
type Session struct {
	Out, Err io.Writer
	// Terminal: Out is one, so that lines may be redrawn. Width of it in characters, 0 when it is not known. Color: verdicts may have one.
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
	Client    client.Client
	Namespace string
	// NamespaceGiven is true when the user named it for this call.
	NamespaceGiven bool
}

// Flags choose the cluster, as kubectl's do.
type Flags struct {
	kubeconfig, context, namespace string
}

// Bind adds the flags to a set.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig file; default: $KUBECONFIG, else ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "context of the kubeconfig; default: its current one")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace; default: that of the context")
}

// Connect makes a client from the flags.
func (f *Flags) Connect() (Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	namespace, _, err := config.Namespace()
	if err != nil {
		return Cluster{}, fmt.Errorf("read the kubeconfig; check --kubeconfig and --context: %w", err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return Cluster{}, fmt.Errorf("read the kubeconfig; check --kubeconfig and --context: %w", err)
	}
	rest.UserAgent = "kubectl-assay"
	scheme, err := NewScheme()
	if err != nil {
		return Cluster{}, err
	}
	c, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return Cluster{}, fmt.Errorf("connect to the cluster at %s: %w", rest.Host, err)
	}
	return Cluster{Client: c, Namespace: namespace, NamespaceGiven: f.namespace != ""}, nil
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
