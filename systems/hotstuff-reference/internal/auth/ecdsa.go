package auth

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// ECDSA signs with ECDSA on P-256 over SHA-256.
type ECDSA struct {
	Private *ecdsa.PrivateKey
	Public  []*ecdsa.PublicKey // of all replicas, by their index
}

// Sign returns a signature in ASN.1.
func (e *ECDSA) Sign(text []byte) []byte {
	hash := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, e.Private, hash[:])
	if err != nil {
		panic(err) // the key is on another curve, or the kernel has no random numbers
	}
	return signature
}

// Combine checks the shares and joins them, each after its length.
func (e *ECDSA) Combine(text []byte, signers []uint16, shares [][]byte) (signature []byte, wrong []uint16) {
	hash := sha256.Sum256(text)
	for i, s := range signers {
		if !ecdsa.VerifyASN1(e.Public[s], hash[:], shares[i]) {
			wrong = append(wrong, s)
			continue
		}
		signature = binary.BigEndian.AppendUint16(signature, uint16(len(shares[i])))
		signature = append(signature, shares[i]...)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return signature, nil
}

// Verify checks all signatures.
func (e *ECDSA) Verify(text []byte, signers []uint16, signature []byte) bool {
	hash := sha256.Sum256(text)
	for _, s := range signers {
		if len(signature) < 2 {
			return false
		}
		n := int(binary.BigEndian.Uint16(signature))
		if len(signature) < 2+n || !ecdsa.VerifyASN1(e.Public[s], hash[:], signature[2:2+n]) {
			return false
		}
		signature = signature[2+n:]
	}
	return len(signature) == 0
}
