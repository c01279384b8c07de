package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/jackc/pgx/v5"
)

// tpcc is TPC-C, revision 5.11 (tpc.org/tpcc): the five transactions, against the tables that
// go-tpc makes and fills. Numbers in comments are the specification's clauses.
//
// The transactions are ours. Those of go-tpc 1.0.12 draw new input when an aborted one is retried.
// They take the stock of remote order lines from the home warehouse (against 2.4.2.2), and wrap
// errors so that their codes are lost.
//
// A transaction that writes counts itself in its client's row of the table ledger, which the
// specification does not have. From that table the driver finds transactions that are lost or done
// twice.
type tpcc struct{ Options }

// Scale of the database (1.2 and 4.3.3.1).
const (
	districts = 10     // of a warehouse
	customers = 3000   // of a district
	items     = 100000 // of the company, and of each warehouse's stock
	// initialOrders of a district, and how many of them are delivered.
	initialOrders, initiallyDelivered = 3000, 2100
)

// The constants of NURand (2.1.6.1). go-tpc does not publish the constant of the loaded names. So
// no check covers the rule that it must differ from the one here by 65 to 119.
const (
	constLast     = 123
	constCustomer = 259
	constItem     = 7911
)

func newTPCC(o Options) (*tpcc, error) {
	switch {
	case o.Warehouses < 1 || o.Warehouses > 10000:
		return nil, fmt.Errorf("--warehouses is %d; want 1 to 10000", o.Warehouses)
	case isolation[o.Isolation] == "":
		return nil, fmt.Errorf("--isolation is %q; want serializable or repeatable-read", o.Isolation)
	}
	return &tpcc{o}, nil
}

var isolation = map[string]pgx.TxIsoLevel{"serializable": pgx.Serializable, "repeatable-read": pgx.RepeatableRead}

// input is what a terminal's user types, drawn before the transaction begins.
type input struct {
	kind                string
	warehouse, district int
	customer            int    // by number, or 0
	last                string // by last name
	// of Payment
	customerWarehouse, customerDistrict int
	cents                               int64
	// of New-Order
	lines []line
	// of Delivery
	carrier int
	// of Stock-Level
	threshold int
}

// line is one line of an order.
type line struct {
	item, supplier, quantity int
}

// draw chooses a transaction. The shares are those of 5.2.3, where New-Order has the rest beside
// the minima of the others. A client is one of the ten terminals of its home warehouse (2.4.1.1,
// 2.8.1.1).
func (t *tpcc) draw(client int64, rng *rand.Rand) input {
	in := input{warehouse: int(client%int64(t.Warehouses)) + 1, district: between(rng, 1, districts)}
	switch kind := rng.IntN(100); {
	case kind < 45:
		t.drawNewOrder(&in, rng)
	case kind < 88:
		t.drawPayment(&in, rng)
	case kind < 92: // 2.6.1
		in.kind = "orderStatus"
		in.drawCustomer(rng)
	case kind < 96: // 2.7.1
		in.kind, in.carrier = "delivery", between(rng, 1, 10)
	default: // 2.8.1
		in.kind, in.threshold = "stockLevel", between(rng, 10, 20)
		in.district = int(client/int64(t.Warehouses)%districts) + 1
	}
	return in
}

// drawNewOrder follows 2.4.1. One order in a hundred names an item that does not exist.
func (t *tpcc) drawNewOrder(in *input, rng *rand.Rand) {
	in.kind = "newOrder"
	in.customer = nuRand(rng, 1023, constCustomer, 1, customers)
	in.lines = make([]line, between(rng, 5, 15))
	for i := range in.lines {
		in.lines[i] = line{item: nuRand(rng, 8191, constItem, 1, items), supplier: in.warehouse, quantity: between(rng, 1, 10)}
		if rng.IntN(100) == 0 {
			in.lines[i].supplier = t.other(in.warehouse, rng)
		}
	}
	if rng.IntN(100) == 0 {
		in.lines[len(in.lines)-1].item = items + 1
	}
}

// drawPayment follows 2.5.1: 15 in 100 customers pay at another warehouse than their own.
func (t *tpcc) drawPayment(in *input, rng *rand.Rand) {
	in.kind, in.cents = "payment", int64(between(rng, 1_00, 5000_00))
	in.customerWarehouse, in.customerDistrict = in.warehouse, in.district
	if rng.IntN(100) < 15 && t.Warehouses > 1 {
		in.customerWarehouse, in.customerDistrict = t.other(in.warehouse, rng), between(rng, 1, districts)
	}
	in.drawCustomer(rng)
}

// drawCustomer chooses 60 in 100 customers by last name (2.5.1.2, 2.6.1.2).
func (in *input) drawCustomer(rng *rand.Rand) {
	if rng.IntN(100) < 60 {
		in.last = lastName(nuRand(rng, 255, constLast, 0, 999))
		return
	}
	in.customer = nuRand(rng, 1023, constCustomer, 1, customers)
}

// other is another warehouse, if there is more than one.
func (t *tpcc) other(home int, rng *rand.Rand) int {
	if t.Warehouses == 1 {
		return home
	}
	w := between(rng, 1, t.Warehouses-1)
	if w >= home {
		w++
	}
	return w
}

func between(rng *rand.Rand, low, high int) int { return low + rng.IntN(high-low+1) }

// nuRand is the non-uniform distribution of 2.1.6.
func nuRand(rng *rand.Rand, a, c, low, high int) int {
	return ((between(rng, 0, a)|between(rng, low, high))+c)%(high-low+1) + low
}

// lastName is a name of three syllables, one for each digit (4.3.2.3).
func lastName(n int) string {
	syllables := [...]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
	return strings.Join([]string{syllables[n/100], syllables[n/10%10], syllables[n%10]}, "")
}

// errUnusedItem rolls back a New-Order whose last item does not exist (2.4.2.3). The user gets a
// message, and the transaction counts as done.
var errUnusedItem = errors.New("the item does not exist")

func (t *tpcc) Run(ctx context.Context, conn *pgx.Conn, client int64, rng *rand.Rand) (Done, error) {
	in := t.draw(client, rng)
	done := Done{Kind: in.kind, Recorded: in.kind == "newOrder" || in.kind == "payment" || in.kind == "delivery"}
	mode := pgx.ReadWrite
	if !done.Recorded {
		mode = pgx.ReadOnly
	}
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: isolation[t.Isolation], AccessMode: mode}, func(tx pgx.Tx) error {
		s := sale{steps{ctx, tx}, in}
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", in.kind, err)
		}
		if !done.Recorded {
			return nil
		}
		_, err := tx.Exec(ctx, "INSERT INTO ledger VALUES ($1, 1) ON CONFLICT (client) DO UPDATE SET transactions = ledger.transactions + 1", client)
		return err
	})
	if errors.Is(err, errUnusedItem) {
		return Done{Kind: "newOrderRolledBack"}, nil
	}
	return done, err
}
