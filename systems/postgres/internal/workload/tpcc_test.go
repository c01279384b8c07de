package workload

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The test checks the shares of 5.2.3, the remote lines and payments of 2.4.1.5 and 2.5.1.2, and
// the rolled-back orders of 2.4.1.4.
func TestTPCCDraws(t *testing.T) {
	o := options()
	o.Warehouses = 5
	w, rng := &tpcc{o}, rand.New(rand.NewPCG(1, 2))
	const draws = 100_000
	kinds := map[string]float64{}
	var lines, remoteLines, remotePayments, unused, byName, named float64
	for range draws {
		in := w.draw(7, rng)
		kinds[in.kind]++
		if in.warehouse != 3 || in.district < 1 || in.district > districts {
			t.Fatalf("client 7 of 5 warehouses is at %d, district %d; want its home, 3", in.warehouse, in.district)
		}
		for _, l := range in.lines {
			lines++
			if l.supplier != in.warehouse {
				remoteLines++
			}
			if l.item > items {
				unused++
			}
			if l.item < 1 || l.supplier < 1 || l.supplier > 5 || l.quantity < 1 || l.quantity > 10 {
				t.Fatalf("line %+v", l)
			}
		}
		switch in.kind {
		case "payment":
			if in.customerWarehouse != in.warehouse {
				remotePayments++
			}
			fallthrough
		case "orderStatus":
			named++
			if in.last != "" {
				byName++
			}
			if (in.customer == 0) == (in.last == "") || in.customer > customers {
				t.Fatalf("customer %d or %q", in.customer, in.last)
			}
		}
	}
	for what, tc := range map[string]struct{ got, want float64 }{
		"New-Order":        {kinds["newOrder"] / draws, 0.45},
		"Payment":          {kinds["payment"] / draws, 0.43},
		"Order-Status":     {kinds["orderStatus"] / draws, 0.04},
		"Delivery":         {kinds["delivery"] / draws, 0.04},
		"Stock-Level":      {kinds["stockLevel"] / draws, 0.04},
		"lines":            {lines / kinds["newOrder"], 10},
		"remote lines":     {remoteLines / lines, 0.01},
		"rolled back":      {unused / kinds["newOrder"], 0.01},
		"remote customers": {remotePayments / kinds["payment"], 0.15},
		"by last name":     {byName / named, 0.6},
	} {
		if math.Abs(tc.got-tc.want) > 0.1*tc.want {
			t.Errorf("%s: %.4f, want %.4f", what, tc.got, tc.want)
		}
	}
}

func TestLastName(t *testing.T) {
	for n, want := range map[int]string{0: "BARBARBAR", 371: "PRICALLYOUGHT", 999: "EINGEINGEING"} { // 371 is the example of 4.3.2.3
		if got := lastName(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestRetwisShapes(t *testing.T) {
	w, err := newRetwis(options())
	if err != nil {
		t.Fatal(err)
	}
	rng, kinds := rand.New(rand.NewPCG(1, 2)), map[string]float64{}
	for range 10_000 {
		kind, gets, puts := w.shape(rng)
		kinds[kind]++
		if kind == "loadTimeline" && (gets < 1 || gets > 10 || puts != 0) {
			t.Fatalf("%s has %d gets and %d puts", kind, gets, puts)
		}
	}
	for kind, want := range map[string]float64{"addUser": 500, "follow": 1500, "postTweet": 3000, "loadTimeline": 5000} {
		if math.Abs(kinds[kind]-want) > 0.15*want {
			t.Errorf("%s: %g of 10000, want %g", kind, kinds[kind], want)
		}
	}
}
