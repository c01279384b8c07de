package driver

import (
	"context"
	"fmt"

	"assay.dev/assay/systems/etcd/internal/client"
	"assay.dev/assay/systems/etcd/internal/member"
	"assay.dev/assay/systems/etcd/internal/workload"
)

// maxBatchBytes keeps a transaction below etcd's default bound of 1.5 MiB for a request.
const maxBatchBytes = 1 << 20

// Load gives every key of a workload its initial value, in transactions one after the other.
func Load(ctx context.Context, w workload.Workload, c *client.Client) error {
	size := max(1, min(member.MaxBatch, maxBatchBytes/(w.ValueSize+len(workload.Key(0)))))
	for first := 0; first < w.Keys; first += size {
		last := min(first+size, w.Keys)
		batch := make([]member.Pair, 0, size)
		for key := first; key < last; key++ {
			batch = append(batch, w.Initial(key))
		}
		if err := c.Do(ctx, func(ctx context.Context, m *member.Member) error { return m.PutAll(ctx, batch) }); err != nil {
			return fmt.Errorf("load keys %d to %d of %d: %w", first, last-1, w.Keys, err)
		}
	}
	return nil
}
