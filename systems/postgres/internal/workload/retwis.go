package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"
)

// retwis is the load that Zhang et al. derive from a clone of Twitter, "Building consistent
// transactions with inconsistent replication" (SOSP 2015), Table 2: gets and puts of keys, which
// stand for users' data.
//
//	Add User         1 get,  3 puts    5%
//	Follow/Unfollow  2 gets, 2 puts   15%
//	Post Tweet       3 gets, 5 puts   30%
//	Load Timeline    1 to 10 gets     50%
//
// A transaction's puts are for the keys that it has read, and for further ones.
type retwis struct {
	Options
	keys keys
}

func newRetwis(o Options) (*retwis, error) {
	if o.Records < 10 {
		return nil, fmt.Errorf("--records is %d; retwis wants 10 or more", o.Records)
	}
	return &retwis{o, newKeys(o)}, nil
}

func (r *retwis) Load(ctx context.Context, conn *pgx.Conn) error {
	return loadUsertable(ctx, conn, r.Options)
}

// shape is the kind of a transaction, and how many different keys it gets and puts.
func (r *retwis) shape(rng *rand.Rand) (kind string, gets, puts int) {
	switch n := rng.IntN(100); {
	case n < 5:
		return "addUser", 1, 3
	case n < 20:
		return "follow", 2, 2
	case n < 50:
		return "postTweet", 3, 5
	}
	return "loadTimeline", 1 + rng.IntN(10), 0
}

func (r *retwis) Run(ctx context.Context, conn *pgx.Conn, _ int64, rng *rand.Rand) (Done, error) {
	kind, gets, puts := r.shape(rng)
	var chosen []int64
	for len(chosen) < max(gets, puts) {
		if key := r.keys.draw(rng, r.Records); !slices.Contains(chosen, key) {
			chosen = append(chosen, key)
		}
	}
	field := value(rng, r.ValueSize)
	return Done{Kind: kind}, pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		for _, key := range chosen[:gets] {
			if err := readField(ctx, tx, key); err != nil {
				return err
			}
		}
		for _, key := range chosen[:puts] {
			if err := updateField(ctx, tx, key, field); err != nil {
				return err
			}
		}
		return nil
	})
}
