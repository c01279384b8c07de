// Package ui is "kubectl assay ui". It serves a page of the cluster's experiments, which follows
// them while they run. It serves one user on this machine, with the user's own rights.
//
// The browser first gets the whole page. Then it gets the parts that changed, as server-sent
// events, so that server and page need no model of each other. Package report draws the plots, as
// in the report itself. The page shows the caches of informers, so an open page costs the API
// server only the changes.
package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
)

// Options of the verb.
type Options struct {
	// Port on 127.0.0.1. 0: any free port.
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
	// firstAnswer is how long the cluster may take at the start to answer, and to list its objects.
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
	var namespaces []string
	if where != "" {
		namespaces = []string{where}
	}
	seen, err := Follow(ctx, s, cluster, namespaces)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", o.Port))
	if err != nil {
		return fmt.Errorf("--port %d: %w", o.Port, err)
	}
	key := rand.Text()
	page := &Page{Session: s, Cluster: cluster, Copy: seen}
	web := &http.Server{Handler: guard(key, page.Handler()), ReadHeaderTimeout: headerPatience, BaseContext: func(net.Listener) context.Context { return ctx }}
	fmt.Fprintf(s.Out, "http://%s/?key=%s\n", listener.Addr(), key)
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

// mayList sends the requests of the informers once. So a missing right gives an error, and not a
// page that stays empty.
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
