//go:build unsigned

// build.sh puts these functions into the package crypto/ecdsa of hotstuffserver-unsigned:
// signatures without cost and without proof. The dissertation's ablation study disables
// cryptography in the same way. The server's own code is unchanged. It signs and verifies only with
// these two functions.

package ecdsa

import (
	"io"
	"math/big"
)

// Sign returns the same signature for every key and message.
func Sign(io.Reader, *PrivateKey, []byte) (r, s *big.Int, err error) {
	return big.NewInt(1), big.NewInt(1), nil
}

// Verify accepts every signature.
func Verify(*PublicKey, []byte, *big.Int, *big.Int) bool { return true }
