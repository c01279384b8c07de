package replica

import (
	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/wire"
)

// batcher collects statements and signs them together. Without it, a replica would sign every
// reply, and every client would verify every reply.
type batcher struct {
	r          *Replica
	leaves     [][32]byte
	then       []func(wire.Proof)
	generation int
}

// add queues a statement. It calls then with the proof when the batch is signed.
func (b *batcher) add(statement []byte, then func(wire.Proof)) {
	b.leaves = append(b.leaves, auth.Leaf(statement))
	b.then = append(b.then, then)
	if len(b.leaves) >= b.r.BatchSize {
		b.flush()
		return
	}
	if len(b.leaves) == 1 {
		g := b.generation
		b.r.env.After(b.r.BatchTimeout, func() {
			if g == b.generation {
				b.flush()
			}
		})
	}
}

func (b *batcher) flush() {
	leaves, then := b.leaves, b.then
	b.leaves, b.then = nil, nil
	b.generation++
	b.r.Counters.Batches++
	b.r.Counters.Signed += uint64(len(leaves))
	root, paths := auth.Tree(leaves)
	sig := b.r.Signer.Sign(root)
	b.r.Checker.Trust(b.r.Index, root)
	for i, fn := range then {
		fn(wire.Proof{Replica: uint16(b.r.Index), Index: uint16(i), Path: paths[i], Sig: sig})
	}
}
