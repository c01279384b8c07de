package bundle

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// Write writes the bundle of the run whose results a ConfigMap has, as the command does. It is what
// the manager puts into a result store.
func Write(ctx context.Context, cluster session.Cluster, stored corev1.ConfigMap, w io.Writer) error {
	e, err := results.DecodeExperiment([]byte(stored.Data[from.ResultsFile]))
	if err != nil {
		return fmt.Errorf("results in ConfigMap %s: %w", stored.Name, err)
	}
	return (&run{cluster: cluster, results: e, stored: stored}).write(ctx, w)
}
