package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// execer is a connection, or a transaction on it.
type execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ycsb is the core workload of Cooper et al., "Benchmarking cloud serving systems with YCSB" (SoCC
// 2010), Table 2. The rest of the operations are reads of one record:
//
//	A  half updates      D  5% inserts, reads of what was inserted last
//	B  5% updates        E  5% inserts, the rest scans of 1 to 100 records
//	C  nothing else      F  half read-modify-writes
//
// A record has one field. The zipfian distribution is scrambled, as in YCSB, so that popular
// records are not neighbours. That of D is not scrambled, since its last record must be the most
// popular.
type ycsb struct {
	Options
	keys   keys
	recent *zipf // of D: 0 is the last record

	mu       sync.Mutex
	inserted []int64 // by clients of this process
	began    int64   // inserts
}

// mixes are the operations other than reads, and their shares.
var mixes = map[string]struct {
	share float64
	kind  string
}{"a": {0.5, "update"}, "b": {0.05, "update"}, "c": {0, ""}, "d": {0.05, "insert"}, "e": {0.05, "insert"}, "f": {0.5, "readModifyWrite"}}

// longest scan of E, in records.
const longest = 100

func newYCSB(o Options) (*ycsb, error) {
	if _, exists := mixes[o.Mix]; !exists {
		return nil, fmt.Errorf("--mix is %q; want a, b, c, d, e or f", o.Mix)
	}
	y := &ycsb{Options: o, keys: newKeys(o)}
	if o.Mix == "d" {
		y.recent = newZipf(o.Records, o.Theta)
	}
	return y, nil
}

func (y *ycsb) Load(ctx context.Context, conn *pgx.Conn) error {
	return loadUsertable(ctx, conn, y.Options)
}

func loadUsertable(ctx context.Context, conn *pgx.Conn, o Options) error {
	rng := rand.New(rand.NewPCG(1, 1))
	return load(ctx, conn, []string{"CREATE TABLE usertable (id bigint PRIMARY KEY, field bytea NOT NULL)"},
		"usertable", []string{"id", "field"}, o.Records, func(i int) []any { return []any{int64(i), value(rng, o.ValueSize)} })
}

// keys are drawn uniformly or by popularity.
type keys struct{ zipf *zipf }

func newKeys(o Options) keys {
	if !o.Zipfian {
		return keys{}
	}
	return keys{newZipf(o.Records, o.Theta)}
}

func (k keys) draw(rng *rand.Rand, records int) int64 {
	if k.zipf == nil {
		return rng.Int64N(int64(records))
	}
	// A fixed random order of the ranks: the low bits of a multiple by a large odd number.
	return int64(uint64(k.zipf.draw(rng)) * 0x9E3779B97F4A7C15 % uint64(records))
}

func (y *ycsb) Run(ctx context.Context, conn *pgx.Conn, client int64, rng *rand.Rand) (Done, error) {
	key, mix := y.keys.draw(rng, y.Records), mixes[y.Mix]
	if rng.Float64() >= mix.share {
		return y.read(ctx, conn, key, rng)
	}
	field := value(rng, y.ValueSize)
	switch mix.kind {
	case "insert":
		return Done{Kind: "insert"}, y.insert(ctx, conn, client, field)
	case "update":
		return Done{Kind: "update"}, updateField(ctx, conn, key, field)
	}
	return Done{Kind: "readModifyWrite"}, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var old []byte
		if err := tx.QueryRow(ctx, "SELECT field FROM usertable WHERE id = $1 FOR UPDATE", key).Scan(&old); err != nil {
			return err
		}
		return updateField(ctx, tx, key, field)
	})
}

// read is a read of one record. For E it is a scan instead.
func (y *ycsb) read(ctx context.Context, conn *pgx.Conn, key int64, rng *rand.Rand) (Done, error) {
	switch y.Mix {
	case "d":
		return Done{Kind: "read"}, readField(ctx, conn, y.latest(rng))
	case "e":
		rows, err := conn.Query(ctx, "SELECT id, field FROM usertable WHERE id >= $1 ORDER BY id LIMIT $2", key, 1+rng.IntN(longest))
		if err != nil {
			return Done{}, err
		}
		var id int64
		var field []byte
		_, err = pgx.ForEachRow(rows, []any{&id, &field}, func() error { return nil })
		return Done{Kind: "scan"}, err
	}
	return Done{Kind: "read"}, readField(ctx, conn, key)
}

// insert adds a record with a key that no other client uses. The keys of one client are
// consecutive.
func (y *ycsb) insert(ctx context.Context, conn *pgx.Conn, client int64, field []byte) error {
	y.mu.Lock()
	y.began++
	key := int64(y.Records) + client<<32 + y.began
	y.mu.Unlock()
	if _, err := conn.Exec(ctx, "INSERT INTO usertable VALUES ($1, $2)", key, field); err != nil {
		return err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.inserted = append(y.inserted, key)
	return nil
}

// latest draws a record. The last records that were inserted here, or loaded, are the most popular.
func (y *ycsb) latest(rng *rand.Rand) int64 {
	back := y.recent.draw(rng)
	y.mu.Lock()
	defer y.mu.Unlock()
	if n := len(y.inserted); back < n {
		return y.inserted[n-1-back]
	}
	return int64(y.Records - 1 - (back - len(y.inserted)))
}

func updateField(ctx context.Context, q execer, key int64, field []byte) error {
	t, err := q.Exec(ctx, "UPDATE usertable SET field = $2 WHERE id = $1", key, field)
	if err == nil && t.RowsAffected() != 1 {
		err = fmt.Errorf("record %d does not exist", key)
	}
	return err
}

func readField(ctx context.Context, q execer, key int64) error {
	var field []byte
	return q.QueryRow(ctx, "SELECT field FROM usertable WHERE id = $1", key).Scan(&field)
}

func value(rng *rand.Rand, size int) []byte {
	v := make([]byte, size)
	for i := range v {
		v[i] = byte(rng.Uint32())
	}
	return v
}
