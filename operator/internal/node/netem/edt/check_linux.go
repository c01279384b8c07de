package edt

import (
	"context"

	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/scratch"
)

// Check proves that this kernel and this process can shape, by shaping. It makes a pair of devices
// in the network namespace of the calling thread, and removes it again. It takes some 100 ms, at
// most 5 s. The error says what is missing. On a kernel without fq it returns ErrNoFQ at once.
func Check(ctx context.Context) error {
	return scratch.Try(ctx, func(device string) (netem.Shaper, error) { return Open(device) })
}
