package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// execer is a connection, or a transaction on it.
type execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// ycsb is the core workload of Cooper et al., "Benchmarking cloud serving systems with YCSB" (SoCC
// 2010), Table 2: A has 50% updates, B 5%, C none, and F 50% read-modify-writes; the rest are reads.
// D and E, which insert, are left out. A record has one field. The zipfian distribution is scrambled, as
// in YCSB, so that popular records are not neighbours.
type ycsb struct {
	Options
	zipf    *zipf
	updates float64 // share of operations
	modify  bool    // updates read first
}

func newYCSB(o Options) (*ycsb, error) {
	y := &ycsb{Options: o}
	switch o.Mix {
	case "a":
		y.updates = 0.5
	case "b":
		y.updates = 0.05
	case "c":
	case "f":
		y.updates, y.modify = 0.5, true
	default:
		return nil, fmt.Errorf("--mix is %q; want a, b, c or f", o.Mix)
	}
	if o.Zipfian {
		y.zipf = newZipf(o.Records, o.Theta)
	}
	return y, nil
}

func (y *ycsb) Ledger() bool { return false }

func (y *ycsb) Load(ctx context.Context, conn *pgx.Conn) error {
	rng := rand.New(rand.NewPCG(1, 1))
	return load(ctx, conn, []string{"CREATE TABLE usertable (id bigint PRIMARY KEY, field bytea NOT NULL)"},
		"usertable", []string{"id", "field"}, y.Records, func(i int) []any { return []any{int64(i), value(rng, y.ValueSize)} })
}

func (y *ycsb) key(rng *rand.Rand) int64 {
	if y.zipf == nil {
		return rng.Int64N(int64(y.Records))
	}
	// A fixed random order of the ranks: the low bits of a multiple by a large odd number.
	return int64(uint64(y.zipf.draw(rng)) * 0x9E3779B97F4A7C15 % uint64(y.Records))
}

func (y *ycsb) Run(ctx context.Context, conn *pgx.Conn, _ int64, rng *rand.Rand) error {
	key, write := y.key(rng), rng.Float64() < y.updates
	if !write {
		return readField(ctx, conn, key)
	}
	field := value(rng, y.ValueSize)
	update := func(q execer) error {
		t, err := q.Exec(ctx, "UPDATE usertable SET field = $2 WHERE id = $1", key, field)
		if err == nil && t.RowsAffected() != 1 {
			err = fmt.Errorf("record %d does not exist", key)
		}
		return err
	}
	if !y.modify {
		return update(conn)
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var old []byte
		if err := tx.QueryRow(ctx, "SELECT field FROM usertable WHERE id = $1 FOR UPDATE", key).Scan(&old); err != nil {
			return err
		}
		return update(tx)
	})
}

func readField(ctx context.Context, conn *pgx.Conn, key int64) error {
	var field []byte
	return conn.QueryRow(ctx, "SELECT field FROM usertable WHERE id = $1", key).Scan(&field)
}

func value(rng *rand.Rand, size int) []byte {
	v := make([]byte, size)
	for i := range v {
		v[i] = byte(rng.Uint32())
	}
	return v
}
