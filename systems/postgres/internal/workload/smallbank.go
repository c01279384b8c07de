package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// smallbank is the benchmark of Alomari et al., "The cost of serializability on platforms that use
// snapshot isolation" (ICDE 2008), with SendPayment, which H-Store added, and H-Store's shares.
//
// Every transaction adds one to its client's count in the table ledger, even if the bank refuses
// it. It also adds the sum that it added to all balances. So a check can prove two things after a
// crash: no acknowledged transaction is lost or done twice, and all balances add up to the sum of
// the ledger.
type smallbank struct{ Options }

const (
	// initialBalance of every account, in cents: of the savings, and of the checking account.
	initialBalance = 10_000_00
	// hotAccounts is the number of accounts in the hotspot.
	hotAccounts = 100
)

func (s *smallbank) Load(ctx context.Context, conn *pgx.Conn) error {
	statements := []string{
		"CREATE TABLE ledger (client bigint PRIMARY KEY, transactions bigint NOT NULL, added bigint NOT NULL)",
		"CREATE TABLE bank (initial bigint NOT NULL)",
		fmt.Sprintf("INSERT INTO bank VALUES (%d)", int64(s.Records)*2*initialBalance),
		"CREATE TABLE account (name text PRIMARY KEY, id bigint NOT NULL)",
		"CREATE TABLE savings (id bigint PRIMARY KEY, balance bigint NOT NULL)",
		"CREATE TABLE checking (id bigint PRIMARY KEY, balance bigint NOT NULL)",
	}
	balance := func(i int) []any { return []any{int64(i), int64(initialBalance)} }
	if err := load(ctx, conn, statements, "savings", []string{"id", "balance"}, s.Records, balance); err != nil {
		return err
	}
	if err := load(ctx, conn, nil, "checking", []string{"id", "balance"}, s.Records, balance); err != nil {
		return err
	}
	return load(ctx, conn, nil, "account", []string{"name", "id"}, s.Records, func(i int) []any { return []any{name(i), int64(i)} })
}

func name(i int) string { return fmt.Sprintf("customer-%d", i) }

// two different accounts.
func (s *smallbank) two(rng *rand.Rand) (int, int) {
	n := s.Records
	if rng.Float64() < s.Hotspot {
		n = min(n, hotAccounts)
	}
	a, b := rng.IntN(n), rng.IntN(n-1)
	if b >= a {
		b++
	}
	return a, b
}

func (s *smallbank) Run(ctx context.Context, conn *pgx.Conn, client int64, rng *rand.Rand) (Done, error) {
	a, b := s.two(rng)
	kind, cents := rng.IntN(100), rng.Int64N(100_00)+1
	return Done{Kind: smallbankKind(kind), Recorded: true}, pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		t := transfer{ctx: ctx, tx: tx, client: client}
		switch smallbankKind(kind) {
		case "balance":
			return t.balance(a)
		case "amalgamate":
			return t.amalgamate(a, b)
		case "depositChecking":
			return t.depositChecking(a, cents)
		case "transactSavings":
			return t.transactSavings(a, cents)
		case "writeCheck":
			return t.writeCheck(a, cents)
		}
		return t.sendPayment(a, b, cents)
	})
}

// smallbankKind has H-Store's shares, out of 100.
func smallbankKind(n int) string {
	return [...]string{"balance", "amalgamate", "depositChecking", "transactSavings", "writeCheck", "sendPayment", "sendPayment"}[n/15]
}

// Check returns how much the sum of all balances differs from the sum at the start plus the ledger.
func (s *smallbank) Check(ctx context.Context, conn *pgx.Conn, _ int64) (map[string]int64, error) {
	var cents int64
	err := conn.QueryRow(ctx, `SELECT abs((SELECT initial FROM bank) + (SELECT coalesce(sum(added), 0) FROM ledger)
		- (SELECT sum(balance) FROM savings) - (SELECT sum(balance) FROM checking))::bigint`).Scan(&cents)
	return map[string]int64{"centsMissing": cents}, err
}

// transfer is one transaction.
type transfer struct {
	ctx    context.Context
	tx     pgx.Tx
	client int64
}

func (t transfer) read(customer int) (id, savings, checking int64, err error) {
	err = t.tx.QueryRow(t.ctx, "SELECT a.id, s.balance, c.balance FROM account a JOIN savings s USING (id) JOIN checking c USING (id) WHERE a.name = $1",
		name(customer)).Scan(&id, &savings, &checking)
	return id, savings, checking, err
}

// write adds to balances, and the sum to the ledger.
func (t transfer) write(changes ...change) error {
	var sum int64
	for _, c := range changes {
		sum += c.cents
		if _, err := t.tx.Exec(t.ctx, "UPDATE "+c.table+" SET balance = balance + $2 WHERE id = $1", c.id, c.cents); err != nil {
			return err
		}
	}
	_, err := t.tx.Exec(t.ctx, "INSERT INTO ledger VALUES ($1, 1, $2) ON CONFLICT (client) DO UPDATE SET transactions = ledger.transactions + 1, added = ledger.added + $2",
		t.client, sum)
	return err
}

type change struct {
	table string
	id    int64
	cents int64
}

func (t transfer) balance(a int) error {
	if _, _, _, err := t.read(a); err != nil {
		return err
	}
	return t.write() // counted, like all transactions
}

// amalgamate moves all of one customer's money to another's checking account.
func (t transfer) amalgamate(a, b int) error {
	from, savings, checking, err := t.read(a)
	if err != nil {
		return err
	}
	to, _, _, err := t.read(b)
	if err != nil {
		return err
	}
	return t.write(change{"savings", from, -savings}, change{"checking", from, -checking}, change{"checking", to, savings + checking})
}

func (t transfer) depositChecking(a int, cents int64) error {
	id, _, _, err := t.read(a)
	if err != nil {
		return err
	}
	return t.write(change{"checking", id, cents})
}

// transactSavings takes money from the savings account, unless the balance is too low.
func (t transfer) transactSavings(a int, cents int64) error {
	id, savings, _, err := t.read(a)
	if err != nil {
		return err
	}
	if savings < cents {
		return t.write() // refused, and counted
	}
	return t.write(change{"savings", id, -cents})
}

// writeCheck takes money from the checking account, and one dollar more when both accounts together
// have too little.
func (t transfer) writeCheck(a int, cents int64) error {
	id, savings, checking, err := t.read(a)
	if err != nil {
		return err
	}
	if savings+checking < cents {
		cents += 100
	}
	return t.write(change{"checking", id, -cents})
}

func (t transfer) sendPayment(a, b int, cents int64) error {
	from, _, checking, err := t.read(a)
	if err != nil {
		return err
	}
	to, _, _, err := t.read(b)
	if err != nil {
		return err
	}
	if checking < cents {
		return t.write()
	}
	return t.write(change{"checking", from, -cents}, change{"checking", to, cents})
}
