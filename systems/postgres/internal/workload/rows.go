package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// rows reads many neighbouring rows: one by one (point), at once (scan), or at once with a
// condition (scan-cond). One row in a hundred meets the condition. It is for "Point/Scan" of the
// Pesto paper.
type rows struct{ Options }

// selectivity: one row in so many meets the condition of scan-cond.
const selectivity = 100

func newRows(o Options) (*rows, error) {
	switch {
	case o.Access != "point" && o.Access != "scan" && o.Access != "scan-cond":
		return nil, fmt.Errorf("--access is %q; want point, scan or scan-cond", o.Access)
	case o.Rows < 1 || o.Rows > o.Records:
		return nil, fmt.Errorf("--rows is %d; want 1 to the %d of --records", o.Rows, o.Records)
	}
	return &rows{o}, nil
}

func (r *rows) Load(ctx context.Context, conn *pgx.Conn) error {
	rng := rand.New(rand.NewPCG(1, 1))
	return load(ctx, conn, []string{"CREATE TABLE facts (id bigint PRIMARY KEY, mark bigint NOT NULL, field bytea NOT NULL)"},
		"facts", []string{"id", "mark", "field"}, r.Records,
		func(i int) []any { return []any{int64(i), int64(i % selectivity), value(rng, r.ValueSize)} })
}

func (r *rows) Run(ctx context.Context, conn *pgx.Conn, _ int64, rng *rand.Rand) (Done, error) {
	first := rng.Int64N(int64(r.Records-r.Rows) + 1)
	last := first + int64(r.Rows) - 1
	return Done{Kind: r.Access}, pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		switch r.Access {
		case "scan":
			return expect(ctx, tx, r.Rows, r.Rows, "SELECT id, field FROM facts WHERE id BETWEEN $1 AND $2", first, last)
		case "scan-cond":
			least := r.Rows / selectivity
			return expect(ctx, tx, least, least+1, "SELECT id, field FROM facts WHERE id BETWEEN $1 AND $2 AND mark = 0", first, last)
		}
		for id := first; id <= last; id++ {
			if err := expect(ctx, tx, 1, 1, "SELECT id, field FROM facts WHERE id = $1", id); err != nil {
				return err
			}
		}
		return nil
	})
}

// expect reads all rows of a query, and checks their number.
func expect(ctx context.Context, tx pgx.Tx, least, most int, query string, args ...any) error {
	result, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	n := 0
	var id int64
	var field []byte
	if _, err := pgx.ForEachRow(result, []any{&id, &field}, func() error { n++; return nil }); err != nil {
		return err
	}
	if n < least || n > most {
		return fmt.Errorf("%d rows; want %d to %d", n, least, most)
	}
	return nil
}
