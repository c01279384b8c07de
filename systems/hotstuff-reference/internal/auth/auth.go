// Package auth has the signatures of replicas: none, ECDSA on P-256, and BLS on BLS12-381.
//
//	none   a share is empty, and every certificate is accepted: for ablation studies, and safe
//	       against crashes only
//	ecdsa  a certificate has the signatures of its signers, one after the other
//	bls    a certificate has one signature, the sum of theirs, which is checked with the sum of
//	       their keys
//
// The paper uses threshold signatures, and says that a set of signatures also works (Section 3).
// Certificates of ecdsa and bls name their signers.
package auth

// None signs nothing.
type None struct{}

// Sign returns nothing.
func (None) Sign([]byte) []byte { return nil }

// Combine returns nothing.
func (None) Combine([]byte, []uint16, [][]byte) (signature []byte, wrong []uint16) { return nil, nil }

// Verify accepts every signature.
func (None) Verify([]byte, []uint16, []byte) bool { return true }
