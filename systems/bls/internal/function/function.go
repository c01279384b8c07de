// Package function has the functions that the table "Tezos cryptography" times, with circl's BLS
// signatures over BLS12-381: keys in G1, signatures in G2. Each run compares its result with the
// right one, so that a failing library does not look fast.
package function

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cloudflare/circl/ecc/bls12381"
	"github.com/cloudflare/circl/sign/bls"
)

// MaxSignatures of an aggregate.
const MaxSignatures = 1000

// Names of the functions.
var Names = []string{"sign", "check", "aggregate", "aggregate-check", "nothing"}

// Function runs once. It fails when the library gives a wrong result.
type Function func() error

type (
	private = bls.PrivateKey[bls.KeyG1SigG2]
	public  = bls.PublicKey[bls.KeyG1SigG2]
)

var errWrong = errors.New("the library gives a wrong result")

// New makes the keys and signatures for a function from a seed. It has as many signers of one
// message as signatures. The function "nothing" measures the cost of a call.
func New(name string, signatures int, seed uint64) (Function, error) {
	if signatures < 1 || signatures > MaxSignatures {
		return nil, fmt.Errorf("--signatures is %d; want 1 to %d", signatures, MaxSignatures)
	}
	s, err := newSigners(signatures, seed)
	if err != nil {
		return nil, err
	}
	switch name {
	case "sign":
		return func() error { return expect(bytes.Equal(bls.Sign(s.keys[0], s.message), s.signatures[0])) }, nil
	case "check":
		return func() error { return expect(bls.Verify(s.keys[0].PublicKey(), s.message, s.signatures[0])) }, nil
	case "aggregate":
		return func() error {
			sum, err := bls.Aggregate(bls.KeyG1SigG2{}, s.signatures)
			if err != nil {
				return err
			}
			return expect(bytes.Equal(sum, s.sum))
		}, nil
	case "aggregate-check":
		return func() error { return expect(bls.Verify(s.together, s.message, s.sum)) }, nil
	case "nothing":
		return func() error { return nil }, nil
	}
	return nil, fmt.Errorf("--operation is %q; want one of %q", name, Names)
}

func expect(right bool) error {
	if !right {
		return errWrong
	}
	return nil
}

// signers have signed one message.
type signers struct {
	message    []byte
	keys       []*private
	signatures []bls.Signature
	sum        bls.Signature // of all signatures
	together   *public       // of all keys
}

func newSigners(n int, seed uint64) (*signers, error) {
	s := &signers{message: []byte("a block of HotStuff")}
	for i := range n {
		material := make([]byte, 32)
		binary.BigEndian.PutUint64(material, seed)
		binary.BigEndian.PutUint64(material[8:], uint64(i))
		key, err := bls.KeyGen[bls.KeyG1SigG2](material, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("make key %d: %w", i, err)
		}
		s.keys = append(s.keys, key)
		s.signatures = append(s.signatures, bls.Sign(key, s.message))
	}
	var err error
	if s.sum, err = bls.Aggregate(bls.KeyG1SigG2{}, s.signatures); err != nil {
		return nil, fmt.Errorf("aggregate: %w", err)
	}
	if s.together, err = together(s.keys); err != nil {
		return nil, err
	}
	return s, s.check()
}

// together is the key that checks an aggregate of signatures of the same message: the sum of the
// keys, as in FastAggregateVerify of draft-irtf-cfrg-bls-signature-05, section 3.3.4. A caller must
// know that each signer has its private key; here this program made them all.
func together(keys []*private) (*public, error) {
	var sum bls12381.G1
	sum.SetIdentity()
	for i, key := range keys {
		text, err := key.PublicKey().MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		var point bls12381.G1
		if err := point.SetBytes(text); err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		sum.Add(&sum, &point)
	}
	key := new(public)
	if err := key.UnmarshalBinary(sum.BytesCompressed()); err != nil {
		return nil, fmt.Errorf("sum of the keys: %w", err)
	}
	return key, nil
}

// check gives the library wrong input, which it must reject.
func (s *signers) check() error {
	other := append(bytes.Clone(s.message), '!')
	switch {
	case bls.Verify(s.keys[0].PublicKey(), other, s.signatures[0]):
		return errors.New("the library accepts the signature of another message")
	case len(s.keys) > 1 && bls.Verify(s.keys[0].PublicKey(), s.message, s.signatures[1]):
		return errors.New("the library accepts the signature of another key")
	case len(s.keys) > 1 && bls.Verify(s.together, s.message, s.signatures[0]):
		return errors.New("the library accepts one signature for all")
	}
	return nil
}
