package bundle

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
)

// ForManagers is the verb by which a manager makes a bundle for a store. The verb reads the
// ConfigMap with the experiment's results from the standard input, and writes the bundle to the
// standard output. So the code that lays out and draws reports runs in another program than the
// manager. The bundle is one that every tar reads.
func ForManagers(connect func() (client.Reader, error)) *cobra.Command {
	return &cobra.Command{
		Use: "bundle", Short: "Write the bundle of the results in a ConfigMap, which is read as JSON from the standard input, to the standard output",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var stored corev1.ConfigMap
			if err := json.NewDecoder(cmd.InOrStdin()).Decode(&stored); err != nil {
				return fmt.Errorf("read the ConfigMap with the results: %w", err)
			}
			cluster, err := connect()
			if err != nil {
				return err
			}
			_, err = bundle.Write(cmd.Context(), cluster, stored, bundle.License{}, archive.Gzip, cmd.OutOrStdout())
			return err
		},
	}
}
