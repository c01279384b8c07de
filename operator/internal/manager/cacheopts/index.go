package cacheopts

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// IndexTrials gives a cache that has not started indexes of its trials, by their names.
func IndexTrials(ctx context.Context, cache client.FieldIndexer, indexes ...map[string]client.IndexerFunc) error {
	for _, some := range indexes {
		for name, of := range some {
			if err := cache.IndexField(ctx, &v1alpha1.Trial{}, name, of); err != nil {
				return fmt.Errorf("index the cached trials by %s: %w", name, err)
			}
		}
	}
	return nil
}
