// Package workload has the transactions of PostgreSQL's clients: TPC-C, AuctionMark, SEATS,
// Smallbank, Retwis, YCSB, and reads of many rows.
//
// Seed, client and sequence determine a transaction, so that another attempt is the same
// transaction.
package workload

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// Workload is the work of clients.
type Workload interface {
	// Load makes the tables and fills them.
	Load(ctx context.Context, conn *pgx.Conn) error
	// Run carries out one transaction for a client.
	Run(ctx context.Context, conn *pgx.Conn, client int64, rng *rand.Rand) (Done, error)
}

// Auditor is a workload whose transactions count themselves in the table ledger, with a row for
// each client. So a driver can detect transactions that were lost or done twice.
type Auditor interface {
	Workload
	// Check compares the database with the workload's own conditions, and counts violations. The
	// conditions hold at every instant, even while other clients go on. first is the driver's first
	// client.
	Check(ctx context.Context, conn *pgx.Conn, first int64) (map[string]int64, error)
}

// Done describes a transaction that succeeded.
type Done struct {
	Kind     string // one of the workload's kinds of transactions; a driver counts by kind
	Recorded bool   // the ledger includes it
}

// Options are the parameters of all workloads. Each workload uses only some of them.
type Options struct {
	Records   int     // rows, accounts, or users
	ValueSize int     // bytes of a value
	Mix       string  // of YCSB: a to f
	Zipfian   bool    // otherwise uniform
	Theta     float64 // of the zipfian distribution
	Hotspot   float64 // of Smallbank: share of transactions on the first 100 accounts
	Access    string  // of rows: point, scan or scan-cond
	Rows      int     // of rows: how many a transaction reads
	// These are parameters of TPC-C.
	Warehouses int
	Isolation  string // serializable or repeatable-read
}

// New checks the options that a workload uses. The errors name the flag.
func New(name string, o Options) (Workload, error) {
	switch {
	case o.Records < 2 || o.Records > 100_000_000:
		return nil, fmt.Errorf("--records is %d; want 2 to 100000000", o.Records)
	case o.ValueSize < 1 || o.ValueSize > 1<<20:
		return nil, fmt.Errorf("--value-size is %d; want 1 to 1048576", o.ValueSize)
	case o.Zipfian && (o.Theta <= 0 || o.Theta >= 1):
		return nil, fmt.Errorf("--zipf-theta is %g; want more than 0 and less than 1", o.Theta)
	}
	switch name {
	case "ycsb":
		return newYCSB(o)
	case "smallbank":
		if o.Hotspot < 0 || o.Hotspot > 1 {
			return nil, fmt.Errorf("--hotspot is %g; want 0 to 1", o.Hotspot)
		}
		return &smallbank{o}, nil
	case "rows":
		return newRows(o)
	case "retwis":
		return newRetwis(o)
	case "tpcc":
		return newTPCC(o)
	case "auctionmark":
		return newAuctionMark(o)
	case "seats":
		return newSeats(o)
	}
	return nil, fmt.Errorf("--workload is %q; want tpcc, auctionmark, seats, smallbank, retwis, ycsb or rows", name)
}

// load runs statements outside of a transaction, and fills a table by COPY.
func load(ctx context.Context, conn *pgx.Conn, statements []string, table string, columns []string, n int, row func(i int) []any) error {
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil }))
	if err != nil {
		return fmt.Errorf("fill %s: %w", table, err)
	}
	_, err = conn.Exec(ctx, "VACUUM ANALYZE "+table)
	return err
}

// zipf draws from 0 to n-1 with P(i) proportional to 1/(i+1)^theta, by the algorithm of Gray et
// al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994), which YCSB uses too.
type zipf struct {
	n, zetaN, alpha, eta, theta float64
}

func newZipf(n int, theta float64) *zipf {
	zeta := func(n int) (sum float64) {
		for i := range n {
			sum += math.Pow(float64(i+1), -theta)
		}
		return sum
	}
	z := &zipf{n: float64(n), zetaN: zeta(n), alpha: 1 / (1 - theta), theta: theta}
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - zeta(2)/z.zetaN)
	return z
}

func (z *zipf) draw(rng *rand.Rand) int {
	u := rng.Float64()
	switch uz := u * z.zetaN; {
	case uz < 1:
		return 0
	case uz < 1+math.Pow(0.5, z.theta):
		return 1
	}
	return min(int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), int(z.n)-1)
}
