package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"assay.dev/assay/systems/basil/internal/wire"
)

// Signer signs the root of a batch for one replica.
type Signer interface {
	Sign(root [32]byte) []byte
}

// Scheme checks root signatures. Replicas and clients use Ed25519. The simulation uses a hash
// instead, which is a thousand times cheaper.
type Scheme interface {
	VerifyRoot(replica int, root [32]byte, sig []byte) bool
}

// domain separates root signatures from all other messages that the key may sign.
const domain = "assay.dev/basil/batch-root/v1"

// PrivateKey is an Ed25519 key that signs batches.
type PrivateKey ed25519.PrivateKey

// Sign implements Signer.
func (k PrivateKey) Sign(root [32]byte) []byte {
	return ed25519.Sign(ed25519.PrivateKey(k), append([]byte(domain), root[:]...))
}

// PublicKeys are the replicas' keys by global index.
type PublicKeys []ed25519.PublicKey

// VerifyRoot implements Scheme.
func (p PublicKeys) VerifyRoot(replica int, root [32]byte, sig []byte) bool {
	return len(sig) == ed25519.SignatureSize &&
		ed25519.Verify(p[replica], append([]byte(domain), root[:]...), sig)
}

// Unsigned is the Signer for runs with cryptography switched off.
type Unsigned struct{}

// Sign implements Signer; the signature is empty.
func (Unsigned) Sign([32]byte) []byte { return nil }

// cacheGeneration bounds each of the two generations of the cache of
// verified roots: at 40 bytes an entry, a few megabytes together.
const cacheGeneration = 1 << 15

type rootKey struct {
	replica uint16
	root    [32]byte
}

// Verifier checks proofs and remembers roots with a correct signature. It is safe for concurrent
// use: the TCP runtime verifies in its reading goroutines, so that the state machine finds the
// result in the cache.
type Verifier struct {
	scheme   Scheme // nil: cryptography is off
	replicas int

	mu       sync.Mutex
	old, new map[rootKey]struct{}
	checked  uint64 // verified signatures, without cache hits
}

// NewVerifier returns a verifier for replicas 0..replicas-1. A nil scheme
// accepts every statement of an existing replica.
func NewVerifier(scheme Scheme, replicas int) *Verifier {
	return &Verifier{scheme: scheme, replicas: replicas, new: map[rootKey]struct{}{}}
}

// Verify reports whether p shows that p.Replica signed statement.
func (v *Verifier) Verify(p *wire.Proof, statement []byte) bool {
	if int(p.Replica) >= v.replicas {
		return false
	}
	if v.scheme == nil {
		return true
	}
	key := rootKey{p.Replica, Root(Leaf(statement), p.Index, p.Path)}
	v.mu.Lock()
	_, hit := v.new[key]
	if !hit {
		_, hit = v.old[key]
	}
	v.mu.Unlock()
	if hit {
		// The replica is known to have signed this root, so this signature need not be checked.
		return true
	}
	if !v.scheme.VerifyRoot(int(p.Replica), key.root, p.Sig) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.checked++
	v.remember(key)
	return true
}

// Trust remembers that replica signed root, without a check. It is for a replica's own batches,
// which come back to it in certificates.
func (v *Verifier) Trust(replica int, root [32]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.remember(rootKey{uint16(replica), root})
}

func (v *Verifier) remember(key rootKey) {
	if len(v.new) >= cacheGeneration {
		v.old, v.new = v.new, make(map[rootKey]struct{}, cacheGeneration)
	}
	v.new[key] = struct{}{}
}

// WriteKeys creates <i>.priv (the 32-byte seed) and <i>.pub for each replica
// in dir. It never overwrites a key.
func WriteKeys(dir string, replicas int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create key directory: %w", err)
	}
	for i := range replicas {
		pub, priv, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return fmt.Errorf("generate key %d: %w", i, err)
		}
		if err := writeNew(keyFile(dir, i, "priv"), priv.Seed(), 0o600); err != nil {
			return err
		}
		if err := writeNew(keyFile(dir, i, "pub"), pub, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func keyFile(dir string, i int, ext string) string {
	return filepath.Join(dir, fmt.Sprintf("%d.%s", i, ext))
}

func writeNew(name string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("create key file: %w", err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	return nil
}

// LoadPrivate reads replica i's key.
func LoadPrivate(dir string, i int) (PrivateKey, error) {
	seed, err := readKey(keyFile(dir, i, "priv"), ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return PrivateKey(ed25519.NewKeyFromSeed(seed)), nil
}

// LoadPublic reads the public keys of replicas 0..replicas-1.
func LoadPublic(dir string, replicas int) (PublicKeys, error) {
	keys := make(PublicKeys, replicas)
	for i := range keys {
		k, err := readKey(keyFile(dir, i, "pub"), ed25519.PublicKeySize)
		if err != nil {
			return nil, err
		}
		keys[i] = k
	}
	return keys, nil
}

func readKey(name string, size int) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(data) != size {
		return nil, fmt.Errorf("read key: %s has %d bytes, want %d", name, len(data), size)
	}
	return data, nil
}

// Ephemeral returns fresh keys that exist only in this process, for running a
// whole cluster in one process.
func Ephemeral(replicas int) ([]PrivateKey, PublicKeys, error) {
	var privs []PrivateKey
	var pubs PublicKeys
	for range replicas {
		pub, priv, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, nil, fmt.Errorf("generate key: %w", err)
		}
		privs, pubs = append(privs, PrivateKey(priv)), append(pubs, pub)
	}
	return privs, pubs, nil
}

// MAC is a keyed hash in place of Ed25519. It is for simulations in which no node can compute a
// signature that it did not get. It is not a signature scheme: a node that can verify can also
// sign.
type MAC struct{ Replica int }

// Sign implements Signer.
func (m MAC) Sign(root [32]byte) []byte {
	h := sha256.Sum256(append([]byte{byte(m.Replica), byte(m.Replica >> 8), 'm'}, root[:]...))
	return h[:16]
}

// VerifyRoot implements Scheme.
func (MAC) VerifyRoot(replica int, root [32]byte, sig []byte) bool {
	return bytes.Equal(MAC{replica}.Sign(root), sig)
}
