package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// steps of one transaction.
type steps struct {
	ctx context.Context
	tx  pgx.Tx
}

// row reads one row.
func (s steps) row(to []any, query string, args ...any) error {
	return s.tx.QueryRow(s.ctx, query, args...).Scan(to...)
}

// change expects to change one row.
func (s steps) change(query string, args ...any) error {
	tag, err := s.tx.Exec(s.ctx, query, args...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%d rows changed, want 1: %s", tag.RowsAffected(), query)
	}
	return err
}

// count reads all rows, with any columns, and returns their number.
func (s steps) count(query string, args ...any) (n int, err error) {
	rows, err := s.tx.Query(s.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

// errRefused is the rejection of a user's request: a seat is taken, or an auction is over. The
// transaction has changed nothing and counts as done.
var errRefused = errors.New("refused")

// ledgerTable has, for each client, the number of its writing transactions, and the sum that they
// added to all balances.
const ledgerTable = "CREATE TABLE ledger (client bigint PRIMARY KEY, transactions bigint NOT NULL, added bigint NOT NULL)"

// operation is a transaction of one kind. A writing operation adds itself to the ledger, with the
// sum in cents that it added to all balances.
type operation struct {
	kind   string
	writes bool
	do     func(s steps) (added int64, err error)
}

func (o operation) run(ctx context.Context, conn *pgx.Conn, client int64) (Done, error) {
	mode := pgx.ReadOnly
	if o.writes {
		mode = pgx.ReadWrite
	}
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: mode}, func(tx pgx.Tx) error {
		s := steps{ctx, tx}
		added, err := o.do(s)
		if err != nil {
			return fmt.Errorf("%s: %w", o.kind, err)
		}
		if !o.writes {
			return nil
		}
		return s.change("INSERT INTO ledger VALUES ($1, 1, $2) ON CONFLICT (client) DO UPDATE SET transactions = ledger.transactions + 1, added = ledger.added + $2", client, added)
	})
	if errors.Is(err, errRefused) {
		return Done{Kind: o.kind + "Refused"}, nil
	}
	return Done{Kind: o.kind, Recorded: o.writes}, err
}

// checkConditions counts the violations of each condition, whose number is its place in the list,
// from 1. All counts see the same state of the database.
func checkConditions(ctx context.Context, conn *pgx.Conn, queries []string) (map[string]int64, error) {
	counters := map[string]int64{"conditionsViolated": 0, "conditionsChecked": 0}
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for i, query := range queries {
			var violated int64
			if err := tx.QueryRow(ctx, query).Scan(&violated); err != nil {
				return fmt.Errorf("condition %d: %w", i+1, err)
			}
			counters["conditionsChecked"]++
			counters["conditionsViolated"] += violated
			if violated > 0 {
				counters[fmt.Sprintf("condition%dViolated", i+1)] = violated
			}
		}
		return nil
	})
	return counters, err
}
