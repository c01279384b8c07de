package replica

import (
	"cmp"
	"maps"
	"slices"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// tree holds the blocks from the oldest kept committed one up to the leaves. It has the parent of
// every block but the oldest. Its blocks have been voted for or are certified, so there are at most
// two for each view without a commit.
type tree struct {
	blocks    map[message.Digest]*message.Block
	committed *message.Block
	log       []*message.Block // committed, oldest first; the last one is the latest committed block
	logBytes  int
	open      map[message.Digest]*message.Block // not committed
	openBytes int

	keepBlocks, keepBytes int
}

func newTree(keepBlocks, keepBytes int) *tree {
	g := message.Genesis
	return &tree{
		blocks: map[message.Digest]*message.Block{g.Digest(): g}, committed: g,
		log: []*message.Block{g}, logBytes: g.Size(), open: map[message.Digest]*message.Block{},
		keepBlocks: keepBlocks, keepBytes: keepBytes,
	}
}

func (t *tree) get(d message.Digest) *message.Block { return t.blocks[d] }

// parent of a block; nil for genesis, and if it is not kept any more.
func (t *tree) parent(b *message.Block) *message.Block {
	if b.Justify == nil {
		return nil
	}
	return t.blocks[b.Justify.Block]
}

// add a block whose parent is in the tree.
func (t *tree) add(b *message.Block) {
	if t.blocks[b.Digest()] == nil {
		t.blocks[b.Digest()] = b
		t.open[b.Digest()] = b
		t.openBytes += b.Size()
	}
}

// extends reports whether the block is the one that qc certifies, or its descendant.
func (t *tree) extends(b *message.Block, qc *message.QC) bool {
	for b != nil && b.View > qc.View {
		b = t.parent(b)
	}
	return b != nil && b.Digest() == qc.Block
}

// above lists the block and its ancestors with views above the given one, oldest first, if they are
// kept.
func (t *tree) above(b *message.Block, view message.View) []*message.Block {
	var branch []*message.Block
	for ; b != nil && b.View > view; b = t.parent(b) {
		branch = append(branch, b)
	}
	slices.Reverse(branch)
	return branch
}

// commit moves the root and returns the newly committed blocks, oldest first. If the block does not
// descend from the last committed one, agreement is broken, and ok is false.
func (t *tree) commit(b *message.Block) (path []*message.Block, ok bool) {
	path = t.above(b, t.committed.View)
	if len(path) == 0 || t.parent(path[0]) != t.committed {
		return nil, false
	}
	t.committed = b
	for _, p := range path {
		t.log = append(t.log, p)
		t.logBytes += p.Size()
	}
	t.prune(path)
	return path, true
}

// prune drops blocks that conflict with the committed one, and the oldest blocks of the log.
func (t *tree) prune(path []*message.Block) {
	for _, p := range path {
		t.drop(p)
	}
	for len(t.log) > 1 && (len(t.log) > t.keepBlocks || t.logBytes > t.keepBytes) {
		t.logBytes -= t.log[0].Size()
		delete(t.blocks, t.log[0].Digest())
		t.log[0] = nil
		t.log = t.log[1:]
	}
	// Parents have smaller views, so that they come first.
	leaves := slices.SortedFunc(maps.Values(t.open), func(a, b *message.Block) int {
		return cmp.Compare(a.View, b.View)
	})
	for _, b := range leaves {
		if p := t.parent(b); p == nil || p.View < t.committed.View || p.View == t.committed.View && p != t.committed {
			t.drop(b)
			delete(t.blocks, b.Digest())
		}
	}
}

// drop removes a block from those that are not committed.
func (t *tree) drop(b *message.Block) {
	if t.open[b.Digest()] != nil {
		delete(t.open, b.Digest())
		t.openBytes -= b.Size()
	}
}
