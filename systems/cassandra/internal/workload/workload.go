// Package workload has the operations of Cassandra's clients: the core workload of YCSB, with the
// distributions of go-ycsb.
//
// An operation is determined by seed, client and sequence.
package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	randv2 "math/rand/v2"
	"strings"
	"sync"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/pingcap/go-ycsb/pkg/generator"
)

// Options of the workload.
type Options struct {
	Records, KeySize, ValueSize int
	Mix                         string // a to f, insert, update or scan
	Distribution                string // uniform, zipfian or latest
	Theta                       float64
	Replication                 int
	Compaction                  string // such as LeveledCompactionStrategy, without the last words
	Read, Write                 gocql.Consistency
}

// YCSB is the core workload of Cooper et al., "Benchmarking cloud serving systems with YCSB" (SoCC
// 2010), Table 2:
//
//	A  half updates    C  reads only                          E  95% scans of 1 to 100 records, 5% inserts
//	B  5% updates      D  5% inserts, reads of the last ones  F  half read-modify-writes
//
// and insert, update and scan, which do nothing else. A record has one field. Scans read in the
// order of tokens, which is the only order of Cassandra.
type YCSB struct {
	Options
	mix mix

	mu    sync.Mutex // generators keep their last value
	next  func(*rand.Rand) int64
	began map[int64]int64 // inserts of each client
	last  []int64         // records that clients of this process inserted
}

type mix struct {
	share float64 // of operations other than the rest
	kind  string
	rest  string
}

var mixes = map[string]mix{
	"a": {0.5, "update", "read"}, "b": {0.05, "update", "read"}, "c": {0, "", "read"}, "d": {0.05, "insert", "read"},
	"e": {0.05, "insert", "scan"}, "f": {0.5, "readModifyWrite", "read"},
	"insert": {1, "insert", ""}, "update": {1, "update", ""}, "scan": {0, "", "scan"},
}

const (
	keyspace = "ycsb"
	table    = keyspace + ".usertable"
	// longest scan, in records.
	longest = 100
)

// compactions that Cassandra 5 has, by the first word of their names.
var compactions = map[string]string{
	"unified": "UnifiedCompactionStrategy", "leveled": "LeveledCompactionStrategy", "sizeTiered": "SizeTieredCompactionStrategy",
}

// New checks the options. The errors name the flag.
func New(o Options) (*YCSB, error) {
	m, exists := mixes[o.Mix]
	y := &YCSB{Options: o, mix: m, began: map[int64]int64{}}
	switch {
	case !exists:
		return nil, fmt.Errorf("--mix is %q; want a, b, c, d, e, f, insert, update or scan", o.Mix)
	case o.Records < 2 || o.Records > 1_000_000_000:
		return nil, fmt.Errorf("--records is %d; want 2 to 1000000000", o.Records)
	case o.KeySize < 20 || o.KeySize > 1024:
		return nil, fmt.Errorf("--key-size is %d; want 20 to 1024", o.KeySize)
	case o.ValueSize < 8 || o.ValueSize > 1<<20:
		return nil, fmt.Errorf("--value-size is %d; want 8 to 1048576", o.ValueSize)
	case o.Replication < 1 || o.Replication > 100:
		return nil, fmt.Errorf("--replication is %d; want 1 to 100", o.Replication)
	case compactions[o.Compaction] == "":
		return nil, fmt.Errorf("--compaction is %q; want unified, leveled or sizeTiered", o.Compaction)
	case o.Theta <= 0 || o.Theta >= 1:
		return nil, fmt.Errorf("--zipf-theta is %g; want more than 0 and less than 1", o.Theta)
	}
	most := int64(o.Records) - 1
	switch o.Distribution {
	case "uniform":
		y.next = generator.NewUniform(0, most).Next
	case "zipfian":
		y.next = generator.NewScrambledZipfian(0, most, o.Theta).Next
	case "latest":
		y.next = generator.NewZipfianWithRange(0, most, o.Theta).Next
	default:
		return nil, fmt.Errorf("--distribution is %q; want uniform, zipfian or latest", o.Distribution)
	}
	return y, nil
}

// key is the name of a record: "user" and its number with leading zeros, for the requested size.
func (y *YCSB) key(n int64) string { return fmt.Sprintf("user%0*d", y.KeySize-4, n) }

// loaded is the value that a record is loaded with. It follows from the record's number.
func (y *YCSB) loaded(n int64) []byte { return y.value(randv2.NewPCG(uint64(n), 0)) }

// value has random bytes, because Cassandra compresses what it stores.
func (y *YCSB) value(rng interface{ Uint64() uint64 }) []byte {
	v := make([]byte, (y.ValueSize+7)/8*8)
	for i := 0; i < len(v); i += 8 {
		binary.LittleEndian.PutUint64(v[i:], rng.Uint64())
	}
	return v[:y.ValueSize]
}

// draw chooses the record of an operation.
func (y *YCSB) draw(rng *rand.Rand) int64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := y.next(rng)
	if y.Distribution != "latest" {
		return n
	}
	mine := int64(len(y.last))
	if n < mine {
		return y.last[mine-1-n]
	}
	return int64(y.Records) - 1 - (n - mine)
}

// fresh is a record that is not inserted yet. Its number is made of client and count, and is above
// all loaded ones.
func (y *YCSB) fresh(client int64) int64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.began[client]++
	return int64(y.Records) + (client+1)<<32 + y.began[client]
}

// Run carries out one operation and returns its kind.
func (y *YCSB) Run(ctx context.Context, s *gocql.Session, client int64, rng *rand.Rand) (string, error) {
	kind, n := y.mix.rest, y.draw(rng)
	if rng.Float64() < y.mix.share {
		kind = y.mix.kind
	}
	switch kind {
	case "insert":
		n = y.fresh(client)
		err := y.write(ctx, s, n, y.value(rng))
		if err == nil {
			y.mu.Lock()
			y.last = append(y.last, n)
			y.mu.Unlock()
		}
		return kind, err
	case "update":
		return kind, y.write(ctx, s, n, y.value(rng))
	case "scan":
		return kind, y.scan(ctx, s, n, 1+rng.Intn(longest))
	case "readModifyWrite":
		if err := y.read(ctx, s, n); err != nil {
			return kind, err
		}
		return kind, y.write(ctx, s, n, y.value(rng))
	}
	return kind, y.read(ctx, s, n)
}

// read of a missing record counts as an answer: with consistency ONE, a node that was away may not
// have the record yet. Then the error is ErrMissing.
func (y *YCSB) read(ctx context.Context, s *gocql.Session, n int64) error {
	var field []byte
	err := s.Query("SELECT field0 FROM "+table+" WHERE y_id = ?", y.key(n)).Consistency(y.Read).Idempotent(true).ScanContext(ctx, &field)
	if errors.Is(err, gocql.ErrNotFound) {
		return ErrMissing
	}
	return err
}

// ErrMissing is the error of a read that found no record.
var ErrMissing = errors.New("the record is missing")

func (y *YCSB) write(ctx context.Context, s *gocql.Session, n int64, value []byte) error {
	return s.Query("INSERT INTO "+table+" (y_id, field0) VALUES (?, ?)", y.key(n), value).Consistency(y.Write).Idempotent(true).ExecContext(ctx)
}

func (y *YCSB) scan(ctx context.Context, s *gocql.Session, n int64, rows int) error {
	iter := s.Query("SELECT y_id, field0 FROM "+table+" WHERE token(y_id) >= token(?) LIMIT ?", y.key(n), rows).Consistency(y.Read).Idempotent(true).IterContext(ctx)
	var id string
	var field []byte
	for iter.Scan(&id, &field) {
	}
	return iter.Close()
}

// loaders is how many records are written at the same time.
const loaders = 64

// tableID is the same in every ring. A node keeps a table in a directory that is named by it, so
// the files of one ring are found by another.
const tableID = "a55a1000-0000-1000-8000-000000000001"

// Directory of the table's files below the data directory of a node.
var Directory = keyspace + "/usertable-" + strings.ReplaceAll(tableID, "-", "")

// loadedAt is the time of all loaded records, in Unix microseconds. If rings that were loaded apart
// gave records different times, a read from two of their nodes would repair them.
const loadedAt = 1

// Create makes the table. Nodes that have files in its directory serve them from then on.
func (y *YCSB) Create(ctx context.Context, s *gocql.Session) error {
	for _, statement := range []string{
		fmt.Sprintf("CREATE KEYSPACE %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %d}", keyspace, y.Replication),
		fmt.Sprintf("CREATE TABLE %s (y_id text PRIMARY KEY, field0 blob) WITH id = %s AND compaction = {'class': '%s'}", table, tableID, compactions[y.Compaction]),
	} {
		if err := s.Query(statement).ExecContext(ctx); err != nil {
			return fmt.Errorf("%s: %w", strings.Fields(statement)[1], err)
		}
	}
	if err := s.AwaitSchemaAgreement(ctx); err != nil {
		return fmt.Errorf("nodes do not agree on the schema: %w", err)
	}
	return nil
}

// attempts is how often a record is written that not all replicas acknowledge in time. Each attempt
// writes the same value at the same time, and no load is measured. The last failure ends the load.
const attempts = 5

// fill writes one record.
func (y *YCSB) fill(ctx context.Context, s *gocql.Session, n int64) (err error) {
	for range attempts {
		err = s.Query("INSERT INTO "+table+" (y_id, field0) VALUES (?, ?) USING TIMESTAMP ?", y.key(n), y.loaded(n), int64(loadedAt)).
			Consistency(gocql.All).Idempotent(true).ExecContext(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// Fill writes all records to all of their replicas.
func (y *YCSB) Fill(ctx context.Context, s *gocql.Session) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int64)
	var running sync.WaitGroup
	for range loaders {
		running.Go(func() {
			for n := range numbers {
				if err := y.fill(ctx, s, n); err != nil {
					cancel(fmt.Errorf("write record %d: %w", n, err))
				}
			}
		})
	}
	for n := range int64(y.Records) {
		if ctx.Err() != nil {
			break
		}
		numbers <- n
	}
	close(numbers)
	running.Wait()
	return context.Cause(ctx)
}

// Sample reads records from all over the table. It fails if one has not the value that it was
// loaded with.
func (y *YCSB) Sample(ctx context.Context, s *gocql.Session, size int) error {
	for i := range min(size, y.Records) {
		n := int64(i) * int64(y.Records) / int64(min(size, y.Records))
		var field []byte
		err := s.Query("SELECT field0 FROM "+table+" WHERE y_id = ?", y.key(n)).Consistency(gocql.One).Idempotent(true).ScanContext(ctx, &field)
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if !bytes.Equal(field, y.loaded(n)) {
			return fmt.Errorf("record %d has a value that it was not loaded with", n)
		}
	}
	return nil
}
