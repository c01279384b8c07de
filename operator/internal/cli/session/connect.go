package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spf13/pflag"
)

// Flags choose the cluster, as in kubectl. They are those of client-go, which kubectl has, too.
// genericclioptions would add Kustomize to the program.
type Flags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// shown are the flags that every verb's help lists. The others are listed by "kubectl assay
// options".
var shown = []string{"kubeconfig", "context", "namespace"}

// Bind adds the flags to a set. All but the commonest are hidden in the verbs' help.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig file; default: $KUBECONFIG, else ~/.kube/config")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.AuthOverrideFlags.Username.LongName, names.AuthOverrideFlags.Password.LongName = "", "" // no API server accepts them any more
	names.CurrentContext.Description = "context of the kubeconfig; default: its current one"
	names.ContextOverrideFlags.Namespace.Description = "namespace; default: that of the context"
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&f.overrides, flags, names)
	flags.VisitAll(func(flag *pflag.Flag) { flag.Hidden = !slices.Contains(shown, flag.Name) })
}

// Connect makes a client from the flags.
func (f *Flags) Connect() (Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides)
	namespace, _, err := config.Namespace()
	if err != nil {
		return Cluster{}, f.unreadable(err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return Cluster{}, f.unreadable(err)
	}
	c, err := ClusterOf(rest)
	c.Namespace, c.NamespaceGiven = namespace, f.overrides.Context.Namespace != ""
	return c, err
}

// unreadable explains the mistake in the kubeconfig, or in the flags that choose from it.
func (f *Flags) unreadable(err error) error {
	switch {
	case clientcmd.IsEmptyConfig(err):
		return errNoKubeconfig
	case errors.Is(err, fs.ErrNotExist):
		return Usage(fmt.Errorf("--kubeconfig %s: there is no such file", f.kubeconfig))
	case clientcmd.IsContextNotFound(err) && f.overrides.CurrentContext != "":
		return Usage(fmt.Errorf("--context %s: the kubeconfig has no such context; kubectl config get-contexts lists those that it has", f.overrides.CurrentContext))
	}
	if strings.Contains(err.Error(), "error loading config file") {
		return fmt.Errorf("%s cannot be read as a kubeconfig; check --kubeconfig and $KUBECONFIG", cmp.Or(f.kubeconfig, "a file of $KUBECONFIG, or ~/.kube/config,"))
	}
	return fmt.Errorf("read the kubeconfig; check --kubeconfig and --context: %w", err)
}

// ClusterOf makes clients of a connection.
func ClusterOf(rest *rest.Config) (Cluster, error) {
	rest.UserAgent = "kubectl-assay"
	if rest.QPS == 0 {
		rest.QPS, rest.Burst = requestRate, requestBurst
	}
	scheme, err := NewScheme()
	if err != nil {
		return Cluster{}, err
	}
	c, err := client.New(rest, client.Options{Scheme: scheme, Mapper: mapper(scheme)})
	if err != nil {
		return Cluster{}, fmt.Errorf("connect to the cluster at %s: %w", rest.Host, err)
	}
	core, err := corev1client.NewForConfig(rest)
	if err != nil {
		return Cluster{}, fmt.Errorf("connect to the cluster at %s: %w", rest.Host, err)
	}
	logs := func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		return core.Pods(namespace).GetLogs(pod, o).Stream(ctx)
	}
	machines := func(ctx context.Context, namespace, trial string) ([]Machine, error) {
		return podMachines(ctx, c, rest, namespace, trial)
	}
	return Cluster{Client: c, Config: rest, Logs: logs, Machines: machines}, nil
}

// Requests per second and in a burst to an API server, as in kubectl. The defaults of client-go are
// five and ten: a bundle of some trials would wait, and the user would see messages about that.
const requestRate, requestBurst = 50, 300

// errNoKubeconfig replaces the error of client-go, which names an environment variable that users
// do not set.
var errNoKubeconfig = errors.New("there is no kubeconfig, so no cluster is known; name one with --kubeconfig or in $KUBECONFIG")

// mapper knows the resources of the command's kinds. A mapper that asks the API server has no
// context, so Ctrl-C and time limits would wait for the answer.
func mapper(scheme *runtime.Scheme) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if kind.Group == "" && slices.Contains([]string{"Node", "Namespace", "PersistentVolume"}, kind.Kind) {
			scope = meta.RESTScopeRoot
		}
		m.Add(kind, scope)
	}
	return m
}

// unreachable explains in kubectl's words why the API server does not answer. It returns nil if the
// server answers.
func unreachable(err error) error {
	var asked *url.Error
	if !errors.As(err, &asked) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	server := asked.URL
	if u, err := url.Parse(asked.URL); err == nil {
		server = u.Host
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("the connection to the server %s was refused - did you specify the right host or port? (--kubeconfig, --context, --server)", server)
	}
	return fmt.Errorf("unable to connect to the server %s: %w", server, asked.Err)
}

// Explain adds advice to errors of the API server that give none.
func Explain(err error) error {
	if silent := unreachable(err); silent != nil {
		return silent
	}
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource"):
		return fmt.Errorf("the cluster does not know Assay's kinds; its owner installs Assay with helm install assay CHART -n assay-system --create-namespace: %w", err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot"): // RBAC's own words: admission has the same reason with other words
		return fmt.Errorf("%w; ask the owner of the cluster for the role edit in the namespace, or view to look only", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know you; log in again, or choose another user with --user or --context: %w", err)
	}
	return err
}
