// Package ui is "kubectl assay ui": a page of the experiments in the cluster that follows them
// while they run, served to one user on this machine with the user's own rights.
//
// The browser gets whole pages and then, by server-sent events, the parts of them that changed:
// server and page need no model of each other. Plots are drawn by package report, as in the report
// itself. What is shown comes from informers, so that open pages cost the API server nothing but
// what changes.
package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
)

// Options of the verb.
type Options struct {
	// Port on 127.0.0.1; 0: any that is free.
	Port          int
	AllNamespaces bool
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows experiments while they run",
		Long: "Serve a page that shows experiments while they run. It shows:\n\n" +
			"    - the progress of each experiment, and when it may end\n" +
			"    - the running trial's throughput and latency over time, with its faults\n" +
			"    - the points so far beside the paper's\n" +
			"    - every trial with its reason and log\n" +
			"    - the queue of pools\n\n" +
			"The page of a complete experiment leads to its report.\n\n" +
			"The page is served on 127.0.0.1. The address that ui prints holds a key: only a browser with the key gets in. " +
			"The page has the rights of your kubeconfig and changes nothing. Throughput and latency over time are recorded while ui runs.",
		Example: "  kubectl assay ui\n  kubectl assay ui -A --port 8642",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Port < 0 || o.Port > 65535 {
				return session.Usage(fmt.Errorf("--port %d: choose a port from 1 to 65535, or 0 for any that is free", o.Port))
			}
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().IntVar(&o.Port, "port", 0, "port on 127.0.0.1; 0: any that is free")
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "show the experiments of all namespaces")
	return cmd
}

// Bounds of waits.
const (
	// firstAnswer is how long the cluster may take to answer at the start, and to list what there
	// is.
	firstAnswer = 30 * time.Second
	// headerPatience is how long a browser may take to send a request's header.
	headerPatience = 10 * time.Second
	// farewell is how long open requests may go on after an interrupt.
	farewell = 2 * time.Second
)

// Run serves until the context ends.
func Run(ctx context.Context, s *session.Session, o Options) error {
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	if cluster.Config == nil {
		return errors.New("the page needs a connection to a cluster")
	}
	where := cluster.Namespace
	if o.AllNamespaces {
		where = ""
	}
	if err := mayList(ctx, cluster, where); err != nil {
		return err
	}
	told := &history{}
	reader, err := informers(ctx, cluster.Config, where, func(t *v1alpha1.Trial) { told.note(t, s.Now()) })
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", o.Port))
	if err != nil {
		return fmt.Errorf("--port %d: %w", o.Port, err)
	}
	server := newServer(s, cluster, reader, told, where, rand.Text())
	go server.pulse(ctx)
	web := &http.Server{Handler: server.handler(), ReadHeaderTimeout: headerPatience, BaseContext: func(net.Listener) context.Context { return ctx }}
	fmt.Fprintf(s.Out, "http://%s/?key=%s\n", listener.Addr(), server.key)
	fmt.Fprintln(s.Err, "Open this address in a browser. Ctrl-C ends the page; experiments go on.")
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := web.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the page: %w", err)
	}
	return nil
}

// mayList asks once for what the informers will ask for again and again, so that a lack of rights
// is an error and not a page that stays empty.
func mayList(ctx context.Context, cluster session.Cluster, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	for name, list := range map[string]client.ObjectList{"experiments": &v1alpha1.ExperimentList{}, "trials": &v1alpha1.TrialList{}} {
		if err := cluster.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("list %s: %w", name, session.Explain(err))
		}
	}
	return nil
}

// informers keep a copy of the experiments and trials of a namespace, or of all. They call seen
// with each trial as it changes, so that no progress is missed between two looks at the copy.
func informers(ctx context.Context, config *rest.Config, namespace string, seen func(*v1alpha1.Trial)) (client.Reader, error) {
	ctrllog.SetLogger(logr.Discard()) // the page itself says that the cluster does not answer
	scheme, err := session.NewScheme()
	if err != nil {
		return nil, err
	}
	options := ctrlcache.Options{Scheme: scheme}
	if namespace != "" {
		options.DefaultNamespaces = map[string]ctrlcache.Config{namespace: {}}
	}
	c, err := ctrlcache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	for _, object := range []client.Object{&v1alpha1.Experiment{}, &v1alpha1.Trial{}} {
		informer, err := c.GetInformer(ctx, object, ctrlcache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
		changed := func(o any) {
			if t, ok := o.(*v1alpha1.Trial); ok {
				seen(t)
			}
		}
		handler := toolscache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
	}
	go func() { _ = c.Start(ctx) }() // it ends with the context only
	synced, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	if !c.WaitForCacheSync(synced) {
		return nil, fmt.Errorf("the cluster did not list its experiments and trials within %s", firstAnswer)
	}
	return c, nil
}
