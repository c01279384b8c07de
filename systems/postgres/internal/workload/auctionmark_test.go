package workload

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The shares are those of BenchBase's configuration, config/postgres/sample_auctionmark_config.xml.
func TestAuctionMarkDraws(t *testing.T) {
	w, err := newAuctionMark(options())
	if err != nil {
		t.Fatal(err)
	}
	rng, kinds := rand.New(rand.NewPCG(1, 2)), map[string]float64{}
	const draws = 50_000
	var over float64
	for range draws {
		d := w.draw(rng)
		kinds[d.kind]++
		if d.user == d.seller || d.user < 0 || d.user >= int64(w.Records) || w.itemOf(d.item).seller != d.seller {
			t.Fatalf("user %d deals in item %d of %d", d.user, d.item, d.seller)
		}
		if d.kind == "newBid" && w.itemOf(d.item).status != auctionOpen {
			over++
		}
		if d.kind == "newItem" && (d.images < 1 || d.days < 1 || len(d.attributes) < 1 || len(d.attributes) > 10) {
			t.Fatalf("an item with %d images and %d attributes for %d days", d.images, len(d.attributes), d.days)
		}
	}
	for kind, want := range map[string]float64{"getItem": 45, "getUserInfo": 10, "newBid": 20, "newComment": 2, "newCommentResponse": 1, "newFeedback": 4, "newItem": 10, "newPurchase": 5, "updateItem": 3} {
		if got := 100 * kinds[kind] / draws; math.Abs(got-want) > 0.1*want+0.1 {
			t.Errorf("%s: %.2f%%, want %g%%", kind, got, want)
		}
	}
	if share := over / kinds["newBid"]; share > 0.05 {
		t.Errorf("%.3f of the bids are for auctions that are over; want 0.05 times 0.3", share)
	}
}

func TestPlace(t *testing.T) {
	lead := &bid{buyer: 1, cents: 1000, most: 1500}
	for name, tc := range map[string]struct {
		highest     *bid
		buyer, most int64
		price       int64
		leads       bool
	}{
		"the first bid":             {nil, 2, 1200, 800, true},
		"the leader raises":         {lead, 1, 2000, 1000, true},
		"more than the leader":      {lead, 2, 2000, 1520, true},
		"hardly more":               {lead, 2, 1505, 1505, true},
		"less drives the price":     {lead, 2, 1200, 1220, false},
		"as much does not suffice":  {lead, 2, 1500, 1500, false},
		"almost as much, up to his": {lead, 2, 1490, 1500, false},
	} {
		a := auction{first: 800, price: 1000, highest: tc.highest}
		if price, leads := a.place(tc.buyer, tc.most); price != tc.price || leads != tc.leads {
			t.Errorf("%s: price %d, leads %v; want %d, %v", name, price, leads, tc.price, tc.leads)
		}
	}
}

// The loaded data are consistent: one in ten items waits to be purchased, and seven are open.
func TestLoadedItems(t *testing.T) {
	w, err := newAuctionMark(options())
	if err != nil {
		t.Fatal(err)
	}
	states := map[int]int{}
	for id := range int64(w.items()) {
		i := w.itemOf(id)
		states[i.status]++
		bids := w.bidsOf(id)
		if len(bids) != i.bids || i.status == auctionWon && i.bids == 0 || i.purchased && i.status != auctionClosed {
			t.Fatalf("item %d: %+v with %d bids", id, i, len(bids))
		}
		for n, b := range bids {
			if b.buyer == i.seller || n > 0 && b.cents <= bids[n-1].cents || n == 0 && b.cents != i.price {
				t.Fatalf("item %d of %d for %d: bids %+v", id, i.seller, i.price, bids)
			}
		}
	}
	n := w.items()
	if states[auctionOpen] != n*7/10 || states[auctionWon] != n/10 || states[auctionClosed] != n/5 {
		t.Errorf("states %v of %d items", states, n)
	}
}
