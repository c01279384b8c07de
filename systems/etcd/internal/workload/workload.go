// Package workload decides the content of each operation: a put or a get, its key and its value. It
// is pure: seed, client and sequence determine the operation. So another attempt is the same
// operation, and another run with the same seed has the same operations.
package workload

import (
	"fmt"
	"math/rand/v2"

	"assay.dev/assay/systems/etcd/internal/member"
)

// The bounds of a workload. A put must fit into etcd's default bound of 1.5 MiB for a request.
const (
	MaxKeys      = 100_000_000
	MaxValueSize = 1 << 20
)

// Workload is uniform over a number of keys.
type Workload struct {
	Keys      int     // from 1 to MaxKeys
	ValueSize int     // bytes, from 1 to MaxValueSize
	ReadShare float64 // share of gets, from 0 to 1
	Seed      uint64
}

// Validate returns an error for a field that is out of bounds.
func (w Workload) Validate() error {
	switch {
	case w.Keys < 1 || w.Keys > MaxKeys:
		return fmt.Errorf("keys is %d; want 1 to %d", w.Keys, MaxKeys)
	case w.ValueSize < 1 || w.ValueSize > MaxValueSize:
		return fmt.Errorf("value size is %d bytes; want 1 to %d", w.ValueSize, MaxValueSize)
	case !(w.ReadShare >= 0 && w.ReadShare <= 1):
		return fmt.Errorf("read share is %v; want 0 to 1", w.ReadShare)
	}
	return nil
}

// Operation is a get of the pair's key, or a put of the pair.
type Operation struct {
	Get  bool
	Pair member.Pair // a get has no value
}

// Operation returns the operation with this number of a client.
func (w Workload) Operation(client, sequence uint64) Operation {
	r := rand.New(rand.NewPCG(w.Seed, client<<40^sequence))
	o := Operation{Get: r.Float64() < w.ReadShare}
	o.Pair.Key = Key(r.IntN(w.Keys))
	if !o.Get {
		o.Pair.Value = w.value(r)
	}
	return o
}

// Initial returns the pair that a key has before the run.
func (w Workload) Initial(key int) member.Pair {
	return member.Pair{Key: Key(key), Value: w.value(rand.New(rand.NewPCG(w.Seed, uint64(key))))}
}

// Key is the key of an index: "key/" and eight digits, in the order of the index.
func Key(index int) []byte { return fmt.Appendf(nil, "key/%08d", index) }

// value draws letters and digits, with 6 random bits in each byte.
func (w Workload) value(r *rand.Rand) []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	v := make([]byte, w.ValueSize)
	var bits uint64
	for i := range v {
		if i%10 == 0 {
			bits = r.Uint64()
		}
		v[i] = letters[bits&63]
		bits >>= 6
	}
	return v
}
