// Package workload generates the transactions of the evaluation.
//
// YCSB-T, as the Pesto artifact's failure experiment runs it: a transaction scans RangeSize
// consecutive rows of one table and updates all of them. With Apart it is the benchmark "rw" of the
// Basil artifact, which draws the rows one by one.
package workload

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"assay.dev/assay/systems/basil/internal/wire"
)

// YCSBT is the workload's configuration.
type YCSBT struct {
	Tables       uint64
	KeysPerTable uint64
	RangeSize    uint64
	Zipfian      bool // chooses the first row of the range; otherwise the choice is uniform
	Theta        float64
	ValueSize    int
	// Apart draws each row separately, and draws again if the transaction has the row already.
	// Otherwise a transaction's rows are neighbours.
	Apart bool
	// ReadOnly transactions only scan.
	ReadOnly bool
	Seed     uint64

	zipf *zipf
}

// Init validates the configuration and prepares the generator.
func (y *YCSBT) Init() error {
	switch {
	case y.Tables < 1 || y.Tables > 1<<20:
		return fmt.Errorf("tables is %d, must be 1 to %d", y.Tables, 1<<20)
	case y.KeysPerTable < 1 || y.KeysPerTable > 1<<40:
		return fmt.Errorf("keys-per-table is %d, must be 1 to 2^40", y.KeysPerTable)
	case y.RangeSize < 1 || y.RangeSize > min(1000, y.KeysPerTable):
		return fmt.Errorf("range-size is %d, must be 1 to 1000 and at most keys-per-table", y.RangeSize)
	case y.ValueSize < 8 || y.ValueSize > 4096:
		return fmt.Errorf("value-size is %d bytes, must be 8 to 4096", y.ValueSize)
	case y.Zipfian && !(y.Theta > 0 && y.Theta <= 5):
		return fmt.Errorf("zipf-theta is %g, must be above 0 and at most 5", y.Theta)
	}
	if y.Zipfian {
		y.zipf = newZipf(y.starts(), y.Theta)
	}
	return nil
}

// Keys returns the rows of a client's sequence-th transaction. They depend only on these arguments,
// so that another attempt runs the same transaction.
func (y *YCSBT) Keys(client uint32, sequence uint64) []wire.Key {
	rng := rand.New(rand.NewPCG(y.Seed, uint64(client)<<40^sequence))
	table := rng.Uint64N(y.Tables)
	if y.Apart {
		return y.apart(table, rng)
	}
	start := y.draw(rng)
	keys := make([]wire.Key, y.RangeSize)
	for i := range keys {
		keys[i] = wire.TableKey(table, start+uint64(i))
	}
	return keys
}

// starts is how many rows may be a transaction's first.
func (y *YCSBT) starts() uint64 {
	if y.Apart {
		return y.KeysPerTable
	}
	return y.KeysPerTable - y.RangeSize + 1
}

func (y *YCSBT) draw(rng *rand.Rand) uint64 {
	if y.Zipfian {
		return y.zipf.draw(rng)
	}
	return rng.Uint64N(y.starts())
}

// apart draws RangeSize different rows. If the most popular rows are all taken, further draws could
// take long. After as many useless draws, it takes the next free row.
func (y *YCSBT) apart(table uint64, rng *rand.Rand) []wire.Key {
	const draws = 100
	keys := make([]wire.Key, 0, y.RangeSize)
	for uint64(len(keys)) < y.RangeSize {
		row := y.draw(rng)
		for i := 0; slices.Contains(keys, wire.TableKey(table, row)); i++ {
			if i < draws {
				row = y.draw(rng)
			} else {
				row = (row + 1) % y.KeysPerTable
			}
		}
		keys = append(keys, wire.TableKey(table, row))
	}
	return keys
}

// Genesis returns a row's initial value: no updates so far.
func (y *YCSBT) Genesis(wire.Key) []byte { return make([]byte, y.ValueSize) }

// counter reads how often a row was updated.
func counter(value []byte) uint64 {
	if len(value) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}

// Increment returns the row's next value: a count of its updates, then
// padding. Counting makes lost updates visible.
func Increment(value []byte, size int, client uint32) []byte {
	out := make([]byte, size)
	binary.LittleEndian.PutUint64(out, counter(value)+1)
	for i := 8; i < size; i++ {
		out[i] = byte(client)
	}
	return out
}
