package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// auctionMark is AuctionMark (Angkanawaraphan and Pavlo, hstore.cs.brown.edu/projects/auctionmark):
// users sell items by auction. The nine transactions of users have the shares and numbers of
// BenchBase's configuration. Its tenth transaction closes auctions, and runs every 20 s. The
// transactions are ours. The README has the differences.
type auctionMark struct {
	Options
	closed atomic.Int64 // when auctions were closed last, in Unix milliseconds
}

const (
	regions         = 75
	categories      = 100
	attributes      = 1000    // values of global attributes, in groups of ten
	itemsOfUser     = 10      // on average, at first
	userBalance     = 1000_00 // at first, in cents
	sellingFee      = 1_00    // that an item costs its seller
	closeEvery      = 20 * time.Second
	closedAtOnce    = 100 // items at most
	virtualSpeed    = 600 // seconds of an auction in one second of the clock
	longestAuction  = 10  // days
	stepOfPrice     = 40  // a bid raises the price by a 40th of the first one: 2.5%
	mostImages      = 10
	mostItemsListed = 25
)

// The states of an item.
const (
	auctionOpen   = 0
	auctionWon    = 2 // it waits to be purchased
	auctionClosed = 3 // purchased, or over without a bid
)

func newAuctionMark(o Options) (*auctionMark, error) {
	if o.Records < 100 {
		return nil, fmt.Errorf("--records is %d; auctionmark wants 100 users or more", o.Records)
	}
	return &auctionMark{Options: o}, nil
}

func (w *auctionMark) items() int { return w.Records * itemsOfUser }

// loadedItem has the facts that follow from an item's number. One item in ten has been won and
// waits. Two are closed, of which one was purchased. Seven are open.
type loadedItem struct {
	seller       int64
	status, bids int
	price        int64 // the first one, in cents
	purchased    bool
	comment      bool // a comment without an answer
}

func (w *auctionMark) itemOf(id int64) loadedItem {
	rng := rand.New(rand.NewPCG(0xa0c7, uint64(id)))
	i := loadedItem{seller: rng.Int64N(int64(w.Records)), price: int64(between(rng, 1, 1000)) * 100, bids: rng.IntN(6), comment: rng.IntN(5) == 0}
	switch id % 10 {
	case 0:
		i.status, i.bids = auctionWon, max(1, i.bids)
	case 1:
		i.status, i.bids, i.purchased = auctionClosed, max(1, i.bids), true
	case 2:
		i.status, i.bids = auctionClosed, 0
	}
	return i
}

// bidsOf are an item's first bids, each a step above the one before. The last is the highest.
func (w *auctionMark) bidsOf(id int64) []bid {
	item := w.itemOf(id)
	rng := rand.New(rand.NewPCG(0xb1d, uint64(id)))
	var all []bid
	for n := range item.bids {
		buyer := (item.seller + 1 + rng.Int64N(int64(w.Records)-1)) % int64(w.Records)
		price := item.price + int64(n)*step(item.price)
		all = append(all, bid{buyer, price, price})
	}
	return all
}

// step is how much a bid raises the price.
func step(first int64) int64 { return max(1, first/stepOfPrice) }

// bid is a buyer's offer: now, and at most.
type bid struct{ buyer, cents, most int64 }

// deal is the request of a user, drawn before the transaction begins.
type deal struct {
	kind              string
	user, item, item0 int64 // item0: where to search for a won one
	seller            int64
	id                int64 // of a new row
	times             float64
	show              userPart
	rating, images    int
	days              int
	category          int
	attributes        []int
	text              string
	remove            bool // an attribute of the item
}

// userPart is the requested data about a user, beside the account.
type userPart int

const (
	userOnly userPart = iota
	userFeedback
	userComments
	userSells
	userBought
	userWatches
)

// draw chooses a transaction.
func (w *auctionMark) draw(rng *rand.Rand) deal {
	d := deal{user: rng.Int64N(int64(w.Records)), item: rng.Int64N(int64(w.items())), id: rng.Int64(), text: words(rng, between(rng, 10, 128))}
	d.item0 = d.item
	switch n := rng.IntN(100); {
	case n < 45:
		d.kind = "getItem"
	case n < 55:
		d.kind = "getUserInfo"
		d.show = drawPart(rng)
	case n < 75:
		d.kind = "newBid"
		d.times = 1 + rng.Float64()
		if rng.IntN(100) >= 5 { // one in twenty is for an auction that is over
			for d.item%10 < 3 {
				d.item = rng.Int64N(int64(w.items()))
			}
		}
	case n < 77:
		d.kind = "newComment"
	case n < 78:
		d.kind = "newCommentResponse"
	case n < 82:
		d.kind, d.rating = "newFeedback", between(rng, -1, 1)
	case n < 92:
		d.kind = "newItem"
		d.images, d.days, d.category = between(rng, 1, mostImages), between(rng, 1, longestAuction), rng.IntN(categories)
		for range between(rng, 1, 10) {
			d.attributes = append(d.attributes, rng.IntN(attributes))
		}
	case n < 97:
		d.kind = "newPurchase"
	default:
		d.kind, d.remove = "updateItem", rng.IntN(100) < 25
	}
	d.seller = w.itemOf(d.item).seller
	if d.user == d.seller { // no user deals with himself
		d.user = (d.user + 1) % int64(w.Records)
	}
	return d
}

// drawPart has BenchBase's shares: a quarter for feedback, and a tenth for each of the others.
func drawPart(rng *rand.Rand) userPart {
	switch n := rng.IntN(100); {
	case n < 25:
		return userFeedback
	case n < 35:
		return userComments
	case n < 45:
		return userSells
	case n < 55:
		return userBought
	case n < 65:
		return userWatches
	}
	return userOnly
}

// Run carries out a user's transaction, or closes auctions when it is time. The first client closes
// them, at first and every 20 s, in place of a user's transaction.
func (w *auctionMark) Run(ctx context.Context, conn *pgx.Conn, client int64, rng *rand.Rand) (Done, error) {
	if client == 0 {
		now, last := time.Now().UnixMilli(), w.closed.Load()
		if time.Duration(now-last)*time.Millisecond >= closeEvery {
			done, err := operation{"closeAuctions", true, closeAuctions}.run(ctx, conn, client)
			if err == nil {
				w.closed.Store(now)
			}
			return done, err
		}
	}
	return w.draw(rng).operation().run(ctx, conn, client)
}

func (d deal) operation() operation {
	switch d.kind {
	case "getItem":
		return operation{d.kind, false, d.getItem}
	case "getUserInfo":
		return operation{d.kind, false, d.getUserInfo}
	case "newBid":
		return operation{d.kind, true, d.newBid}
	case "newComment":
		return operation{d.kind, true, d.newComment}
	case "newCommentResponse":
		return operation{d.kind, true, d.newCommentResponse}
	case "newFeedback":
		return operation{d.kind, true, d.newFeedback}
	case "newItem":
		return operation{d.kind, true, d.newItem}
	case "newPurchase":
		return operation{d.kind, true, d.newPurchase}
	}
	return operation{d.kind, true, d.updateItem}
}
