package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	gotpc "github.com/pingcap/go-tpc/tpcc"
)

// loaders is how many warehouses are filled at the same time.
const loaders = 4

// Load lets go-tpc make and fill the tables, and then counts the rows: go-tpc does not stop when
// the database rejects rows.
func (t *tpcc) Load(ctx context.Context, conn *pgx.Conn) error {
	if err := t.fill(ctx, conn); err != nil {
		return err
	}
	for _, statement := range []string{"CREATE TABLE ledger (client bigint PRIMARY KEY, transactions bigint NOT NULL)", "VACUUM ANALYZE"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	for _, table := range t.cardinalities() {
		var has int
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+table.name).Scan(&has); err != nil {
			return err
		}
		if has != table.rows {
			return fmt.Errorf("%s has %d rows; want %d", table.name, has, table.rows)
		}
	}
	for w := 1; w <= t.Warehouses; w++ {
		violated, err := conditions(ctx, conn, w)
		if err != nil {
			return err
		}
		var delivered int
		if err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM orders WHERE o_w_id = $1) - (SELECT count(*) FROM new_order WHERE no_w_id = $1)", w).Scan(&delivered); err != nil {
			return err
		}
		if violated.sum() > 0 || delivered != districts*initiallyDelivered { // 3.3.2.11
			return fmt.Errorf("warehouse %d does not meet the conditions of 3.3.2: %v; %d orders delivered", w, violated, delivered)
		}
	}
	return nil
}

// fill runs go-tpc's preparation, which panics when a connection fails.
func (t *tpcc) fill(ctx context.Context, conn *pgx.Conn) (err error) {
	db := stdlib.OpenDB(*conn.Config())
	defer db.Close()
	threads := min(loaders, t.Warehouses)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("go-tpc: %v", p)
		}
	}()
	w, err := gotpc.NewWorkloader(db, &gotpc.Config{Driver: "postgres", Threads: threads, Parts: 1, PartitionType: gotpc.PartitionTypeHash, Warehouses: t.Warehouses})
	if err != nil {
		return fmt.Errorf("go-tpc: %w", err)
	}
	failed := make([]error, threads)
	var running sync.WaitGroup
	for thread := range threads {
		of := w.InitThread(ctx, thread)
		running.Go(func() {
			defer w.CleanupThread(of, thread)
			defer func() {
				if p := recover(); p != nil {
					failed[thread] = fmt.Errorf("go-tpc: %v", p)
				}
			}()
			failed[thread] = w.Prepare(of, thread)
		})
	}
	running.Wait()
	return errors.Join(failed...)
}

type cardinality struct {
	name string
	rows int
}

// cardinalities of 4.3.3.1. The number of order lines is random; condition 4 counts them.
func (t *tpcc) cardinalities() []cardinality {
	w := t.Warehouses
	return []cardinality{
		{"warehouse", w}, {"district", w * districts}, {"customer", w * districts * customers}, {"history", w * districts * customers},
		{"orders", w * districts * initialOrders}, {"new_order", w * districts * (initialOrders - initiallyDelivered)}, {"item", items}, {"stock", w * items},
	}
}

// violations counts the violations of each consistency condition of 3.3.2, by the condition's
// number.
type violations map[int]int64

func (v violations) sum() (n int64) {
	for _, each := range v {
		n += each
	}
	return n
}

// conditionQueries count the violations of conditions in one warehouse. Condition 11 is only about
// the initial database: see Load.
var conditionQueries = []struct {
	of    []int
	query string
}{
	{[]int{1}, "SELECT count(*) FROM warehouse WHERE w_id = $1 AND w_ytd IS DISTINCT FROM (SELECT sum(d_ytd) FROM district WHERE d_w_id = $1)"},
	{[]int{2}, `SELECT count(*) FROM district LEFT JOIN (SELECT o_d_id, max(o_id) AS last FROM orders WHERE o_w_id = $1 GROUP BY o_d_id) o ON o_d_id = d_id
		LEFT JOIN (SELECT no_d_id, max(no_o_id) AS last FROM new_order WHERE no_w_id = $1 GROUP BY no_d_id) n ON no_d_id = d_id
		WHERE d_w_id = $1 AND (d_next_o_id - 1 IS DISTINCT FROM o.last OR d_next_o_id - 1 <> n.last)`},
	{[]int{3}, "SELECT count(*) FROM (SELECT FROM new_order WHERE no_w_id = $1 GROUP BY no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) d"},
	{[]int{8}, "SELECT count(*) FROM warehouse WHERE w_id = $1 AND w_ytd IS DISTINCT FROM (SELECT sum(h_amount) FROM history WHERE h_w_id = $1)"},
	{[]int{9}, `SELECT count(*) FROM district LEFT JOIN (SELECT h_d_id, sum(h_amount) AS paid FROM history WHERE h_w_id = $1 GROUP BY h_d_id) h ON h_d_id = d_id
		WHERE d_w_id = $1 AND d_ytd IS DISTINCT FROM paid`},
	// These read all order lines of the warehouse once.
	{[]int{4, 5, 6, 7, 10, 12}, `WITH l AS MATERIALIZED (SELECT ol_d_id, ol_o_id, count(*) AS lines, count(ol_delivery_d) AS delivered,
			coalesce(sum(ol_amount) FILTER (WHERE ol_delivery_d IS NOT NULL), 0) AS amount FROM order_line WHERE ol_w_id = $1 GROUP BY ol_d_id, ol_o_id),
		o AS MATERIALIZED (SELECT * FROM (SELECT * FROM orders WHERE o_w_id = $1) o FULL JOIN l ON ol_d_id = o_d_id AND ol_o_id = o_id),
		c AS MATERIALIZED (SELECT c_balance, c_ytd_payment, coalesce(delivered, 0) AS delivered, coalesce(paid, 0) AS paid
			FROM (SELECT * FROM customer WHERE c_w_id = $1) c
			LEFT JOIN (SELECT o_d_id, o_c_id, sum(amount) AS delivered FROM o GROUP BY o_d_id, o_c_id) d ON o_d_id = c_d_id AND o_c_id = c_id
			LEFT JOIN (SELECT h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history WHERE h_c_w_id = $1 GROUP BY h_c_d_id, h_c_id) h ON h_c_d_id = c_d_id AND h_c_id = c_id)
		SELECT (SELECT count(*) FROM (SELECT FROM o GROUP BY coalesce(o_d_id, ol_d_id) HAVING sum(o_ol_cnt) IS DISTINCT FROM sum(lines)) d),
			(SELECT count(*) FROM o LEFT JOIN new_order ON no_w_id = $1 AND no_d_id = o_d_id AND no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)),
			(SELECT count(*) FROM o WHERE o_ol_cnt IS DISTINCT FROM lines),
			(SELECT count(*) FROM o WHERE delivered <> CASE WHEN o_carrier_id IS NULL THEN 0 ELSE lines END),
			(SELECT count(*) FROM c WHERE c_balance <> delivered - paid),
			(SELECT count(*) FROM c WHERE c_balance + c_ytd_payment <> delivered)`},
}

// querier is a connection, or a transaction on it.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// conditions of one warehouse.
func conditions(ctx context.Context, q querier, warehouse int) (violations, error) {
	v := violations{}
	for _, c := range conditionQueries {
		counts := make([]int64, len(c.of))
		to := make([]any, len(c.of))
		for i := range counts {
			to[i] = &counts[i]
		}
		if err := q.QueryRow(ctx, c.query, warehouse).Scan(to...); err != nil {
			return nil, fmt.Errorf("conditions %v: %w", c.of, err)
		}
		for i, n := range c.of {
			v[n] = counts[i]
		}
	}
	return v, nil
}

// Check counts violations in one warehouse after the other while there is time. It starts with the
// home of the first client, so that several drivers start with different warehouses. All queries of
// a warehouse see the same state of the database; other clients may go on.
func (t *tpcc) Check(ctx context.Context, conn *pgx.Conn, first int64) (map[string]int64, error) {
	counters := map[string]int64{"conditionsViolated": 0, "warehousesChecked": 0}
	for i := range t.Warehouses {
		warehouse := int((first+int64(i))%int64(t.Warehouses)) + 1
		var v violations
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
			v, err = conditions(ctx, tx, warehouse)
			return err
		})
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		counters["warehousesChecked"]++
		counters["conditionsViolated"] += v.sum()
		for n, violated := range v {
			if violated > 0 {
				counters[fmt.Sprintf("condition%dViolated", n)] += violated
			}
		}
	}
	return counters, nil //nolint:nilerr // no time is left; what was checked counts
}
