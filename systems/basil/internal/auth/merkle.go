// Package auth signs and verifies the statements of replicas.
//
// Signing costs far more than hashing, so a replica signs batches (Section 4.4 of the paper). The
// statements of a batch become the leaves of a Merkle tree. The root is signed once, and each
// statement travels with its path.
//
//	      root  <- signed
//	     /    \
//	  h01      h23
//	 /  \      /  \
//	s0   s1  s2    0    <- statements, padded to a power of two
//
// A node that has verified a root needs only hashing for the other statements under it. So Verifier
// has a cache.
package auth

import "crypto/sha256"

// Leaf hashes a statement. Leaves and inner nodes have different prefixes, so no inner node can
// serve as a statement.
func Leaf(statement []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(statement)
	var out [32]byte
	h.Sum(out[:0])
	return out
}

func inner(l, r [32]byte) [32]byte {
	var b [65]byte
	b[0] = 1
	copy(b[1:], l[:])
	copy(b[33:], r[:])
	return sha256.Sum256(b[:])
}

// Tree returns the root over leaves and each leaf's path from bottom to top.
// leaves must not be empty.
func Tree(leaves [][32]byte) (root [32]byte, paths [][][32]byte) {
	width := 1
	for width < len(leaves) {
		width *= 2
	}
	level := make([][32]byte, width)
	copy(level, leaves)
	paths = make([][][32]byte, len(leaves))
	for shift := 0; len(level) > 1; shift++ {
		for i := range paths {
			paths[i] = append(paths[i], level[i>>shift^1])
		}
		next := make([][32]byte, len(level)/2)
		for i := range next {
			next[i] = inner(level[2*i], level[2*i+1])
		}
		level = next
	}
	return level[0], paths
}

// Root returns the root of a leaf at index with this path.
func Root(leaf [32]byte, index uint16, path [][32]byte) [32]byte {
	for _, sibling := range path {
		if index&1 == 0 {
			leaf = inner(leaf, sibling)
		} else {
			leaf = inner(sibling, leaf)
		}
		index >>= 1
	}
	return leaf
}
