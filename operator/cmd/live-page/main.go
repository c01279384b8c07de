// Command live-page serves the page of "kubectl assay ui" from a pod of its own, whose account may
// only read experiments and trials and ask who a visitor is. The chart runs it if livePage.enabled
// is set.
//
// It is in the manager's image. A manager runs "live-page bundle" to write bundles. So it does not
// link the packages that lay reports out and draw them.
package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"assay.dev/assay/operator/internal/cli/bundle"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/ui/incluster"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "live-page:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var address string
	var o incluster.Options
	cmd := &cobra.Command{
		Use: "live-page", Short: "Serve the page of kubectl assay ui to visitors who sign in with a token of the cluster",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log, o.Now = klog.NewKlogr(), time.Now
			log.SetLogger(o.Log)
			var err error
			if o.Config, err = apiServer(); err != nil {
				return err
			}
			o.Config.UserAgent = "assay-live-page"
			if o.Listener, err = (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", address); err != nil {
				return fmt.Errorf("--bind-address: %w", err)
			}
			return incluster.Serve(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&address, "bind-address", ":8443", "address of the page, by TLS")
	cmd.Flags().StringSliceVar(&o.Namespaces, "namespaces", nil, "namespaces that the page shows. Default: all")
	cmd.Flags().StringVar(&o.Certificates, "certificates", "", "directory with tls.crt and tls.key, which are read again when they change. Default: a certificate that signs itself")
	cmd.AddCommand(bundle.ForManagers(func() (client.Reader, error) {
		config, err := apiServer()
		if err != nil {
			return nil, err
		}
		cluster, err := session.ClusterOf(config)
		return cluster.Client, err
	}))
	return cmd
}

func apiServer() (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	return config, nil
}
