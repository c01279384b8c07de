package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The shares are those of BenchBase's configuration, config/postgres/sample_seats_config.xml, once
// a client has reservations to change.
func TestSeatsDraws(t *testing.T) {
	w, err := newSeats(options())
	if err != nil {
		t.Fatal(err)
	}
	rng, kinds, finds := rand.New(rand.NewPCG(1, 2)), map[string]float64{}, map[string]float64{}
	w.made[7] = []booking{{1, 2, 3}, {4, 5, 6}}
	const draws = 50_000
	for range draws {
		d := w.draw(7, rng)
		kinds[d.kind]++
		switch d.kind {
		case "deleteReservation":
			finds[d.find]++
			fallthrough
		case "updateReservation":
			if !slices.Contains(w.made[7], d.booking) {
				t.Fatalf("%s of %+v, which the client has not made", d.kind, d.booking)
			}
		}
		if d.flight < 0 || d.flight >= int64(w.flights()) || d.seat < 1 || d.seat > seatsOfFlight || d.newSeat < 1 || d.newSeat > seatsOfFlight {
			t.Fatalf("%+v", d)
		}
	}
	for kind, want := range map[string]float64{"deleteReservation": 10, "findFlights": 10, "findOpenSeats": 35, "newReservation": 20, "updateCustomer": 10, "updateReservation": 15} {
		if got := 100 * kinds[kind] / draws; math.Abs(got-want) > 0.1*want {
			t.Errorf("%s: %.2f%%, want %g%%", kind, got, want)
		}
	}
	if share := finds["name"] / kinds["deleteReservation"]; math.Abs(share-0.2) > 0.03 {
		t.Errorf("%.3f of the customers are found by name, want 0.2", share)
	}
}

// A client without reservations makes one. It knows which ones it has made, moved and deleted.
func TestSeatsLearns(t *testing.T) {
	w, err := newSeats(options())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		if d := w.draw(7, rng); d.kind == "deleteReservation" || d.kind == "updateReservation" {
			t.Fatalf("%s without a reservation", d.kind)
		}
	}
	a, b := trip{booking: booking{1, 2, 3}, newSeat: 9}, trip{booking: booking{4, 5, 6}}
	for _, step := range []struct {
		t    trip
		done string
		want []booking
	}{
		{a, "newReservationRefused", nil},
		{a, "newReservation", []booking{{1, 2, 3}}},
		{b, "newReservation", []booking{{1, 2, 3}, {4, 5, 6}}},
		{a, "updateReservationRefused", []booking{{1, 2, 3}, {4, 5, 6}}},
		{a, "updateReservation", []booking{{1, 2, 9}, {4, 5, 6}}},
		{b, "findOpenSeats", []booking{{1, 2, 9}, {4, 5, 6}}},
		{trip{booking: booking{1, 2, 9}}, "deleteReservation", []booking{{4, 5, 6}}},
		{b, "deleteReservationRefused", []booking{}},
	} {
		w.learn(7, step.t, step.done)
		if got := w.of(7); !slices.Equal(got, step.want) {
			t.Fatalf("after %s of %+v: %v, want %v", step.done, step.t.booking, got, step.want)
		}
	}
}

func TestOpenSeats(t *testing.T) {
	for name, tc := range map[string]struct {
		taken  []int
		n      int
		first  offer
		second int // its seat
	}{
		"an empty flight":      {nil, mostShown, offer{1, 200}, 2},
		"the first two taken":  {[]int{1, 2}, mostShown, offer{3, 202}, 4},
		"no first class":       {[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, mostShown, offer{11, 106}, 12},
		"all but two are gone": {seatsBut(40, 70), 2, offer{40, 198}, 70},
	} {
		open := openSeats(tc.taken, 100, seatsOfFlight-len(tc.taken))
		if len(open) != tc.n || open[0] != tc.first || open[1].seat != tc.second {
			t.Errorf("%s: %d seats, %+v; want %d, from %+v on", name, len(open), open[:2], tc.n, tc.first)
		}
	}
}

func seatsBut(open ...int) (taken []int) {
	for seat := 1; seat <= seatsOfFlight; seat++ {
		if !slices.Contains(open, seat) {
			taken = append(taken, seat)
		}
	}
	return taken
}

// Flights and their first reservations follow from their numbers. No customer has two seats on one
// flight.
func TestSeatsLoaded(t *testing.T) {
	w, err := newSeats(options())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for id := range int64(w.flights()) {
		f := flightOf(id)
		if f != flightOf(id) || f.from == f.to || f.to >= airports || f.airline >= airlines {
			t.Fatalf("flight %d: %+v", id, f)
		}
		aboard := map[int64]bool{}
		for _, b := range w.reserved(id) {
			if aboard[b.customer] {
				t.Fatalf("customer %d is twice on flight %d", b.customer, id)
			}
			aboard[b.customer] = true
			n++
		}
	}
	if want := float64(w.flights()*seatsOfFlight) / occupied; math.Abs(float64(n)-want) > 0.15*want {
		t.Errorf("%d reservations, want about %.0f", n, want)
	}
}
