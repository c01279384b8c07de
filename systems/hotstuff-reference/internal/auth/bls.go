package auth

import (
	"fmt"
	"sync"

	"github.com/cloudflare/circl/ecc/bls12381"
	"github.com/cloudflare/circl/sign/bls"
)

type (
	blsPrivate = bls.PrivateKey[bls.KeyG1SigG2]
	blsPublic  = bls.PublicKey[bls.KeyG1SigG2]
)

// BLS signs with BLS on BLS12-381: keys in G1, signatures in G2. It sums signatures of one text, as
// in FastAggregateVerify of draft-irtf-cfrg-bls-signature-05, section 3.3.4. That requires a proof
// that each replica has its private key. Here one program makes all keys.
type BLS struct {
	private *blsPrivate
	public  []*blsPublic

	mu   sync.Mutex
	sums map[string]*blsPublic // by signers
}

// sumsLength bounds how many sums of keys are kept.
const sumsLength = 1000

// NewBLS is the scheme of the replica with the private key.
func NewBLS(private *blsPrivate, public []*blsPublic) *BLS {
	return &BLS{private: private, public: public, sums: map[string]*blsPublic{}}
}

// Sign returns a signature.
func (b *BLS) Sign(text []byte) []byte { return bls.Sign(b.private, text) }

// Combine sums the shares and checks the sum. It checks the shares one by one only if the sum is
// wrong.
func (b *BLS) Combine(text []byte, signers []uint16, shares [][]byte) (signature []byte, wrong []uint16) {
	sum, err := bls.Aggregate(bls.KeyG1SigG2{}, shares)
	if err == nil && b.Verify(text, signers, sum) {
		return sum, nil
	}
	for i, s := range signers {
		if !bls.Verify(b.public[s], text, shares[i]) {
			wrong = append(wrong, s)
		}
	}
	return nil, wrong
}

// Verify checks the sum of signatures with the sum of the signers' keys.
func (b *BLS) Verify(text []byte, signers []uint16, signature []byte) bool {
	if len(signature) != bls12381.G2SizeCompressed {
		return false // circl accepts additional bytes, which any node could have added
	}
	key, err := b.sum(signers)
	return err == nil && bls.Verify(key, text, signature)
}

func (b *BLS) sum(signers []uint16) (*blsPublic, error) {
	name := make([]byte, 0, 2*len(signers))
	for _, s := range signers {
		name = append(name, byte(s>>8), byte(s))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := b.sums[string(name)]; key != nil {
		return key, nil
	}
	var sum bls12381.G1
	sum.SetIdentity()
	for _, s := range signers {
		text, err := b.public[s].MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("key of replica %d: %w", s, err)
		}
		var point bls12381.G1
		if err := point.SetBytes(text); err != nil {
			return nil, fmt.Errorf("key of replica %d: %w", s, err)
		}
		sum.Add(&sum, &point)
	}
	key := new(blsPublic)
	if err := key.UnmarshalBinary(sum.BytesCompressed()); err != nil {
		return nil, fmt.Errorf("sum of the keys: %w", err)
	}
	if len(b.sums) >= sumsLength {
		clear(b.sums)
	}
	b.sums[string(name)] = key
	return key, nil
}
