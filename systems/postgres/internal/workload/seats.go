package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// seats is SEATS, the Stonebraker Electronic Airline Ticketing System
// (hstore.cs.brown.edu/projects/seats; BenchBase's wiki): customers search flights and reserve
// seats. The shares of its six transactions and the numbers below are those of BenchBase. The
// transactions are ours.
//
// A client deletes and changes only its own reservations. While it has none, it makes one instead.
// The README has the other differences.
type seats struct {
	Options
	mu   sync.Mutex
	made map[int64][]booking // by client
}

const (
	seatsOfFlight   = 150
	firstClass      = 10 // seats, from the first on
	airlines        = 50
	airports        = 100
	countries       = 20
	flightDays      = 51   // the past day, and 50 future ones
	customerBalance = 1000 // at first, in cents
	occupied        = 100  // one seat in so many, at first
	// remembered is how many of its reservations a client remembers.
	remembered = 100
	// mostShown is how many open seats are listed at most.
	mostShown = 100
)

// distances in miles for a search for airports nearby.
var distances = [...]int{5, 10, 25, 50, 100}

// booking is a customer's seat on a flight.
type booking struct {
	flight, customer int64
	seat             int
}

func newSeats(o Options) (*seats, error) {
	if o.Records < 100 {
		return nil, fmt.Errorf("--records is %d; seats wants 100 customers or more", o.Records)
	}
	return &seats{Options: o, made: map[int64][]booking{}}, nil
}

// flights is their number: three for four customers, as at BenchBase's scale of 1.
func (w *seats) flights() int { return w.Records * 3 / 4 }

// flight has the facts that follow from a flight's number.
type flight struct {
	airline, from, to int
	departs           time.Time
	cents             int64
}

func flightOf(id int64) flight {
	rng := rand.New(rand.NewPCG(0x5ea75, uint64(id)))
	f := flight{airline: rng.IntN(airlines), from: rng.IntN(airports), cents: int64(between(rng, 100_00, 1000_00))}
	f.to = (f.from + between(rng, 1, airports-1)) % airports
	f.departs = firstDay.Add(time.Duration(rng.IntN(flightDays*24*60)) * time.Minute)
	return f
}

// firstDay of all flights. Any day would do.
var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// trip is the request of a customer, drawn before the transaction begins.
type trip struct {
	kind string
	booking
	find     string // how to find the customer: by id, by name (the id as a text) or by number (as a frequent flyer)
	newSeat  int
	from, to int
	day      time.Time
	nearby   int // miles; 0: the airport itself
	price    int64
	id       int64 // of a reservation
	value    int64 // the new value
	flyer    bool  // the customer's frequent flyers are updated, too
}

// draw chooses a transaction by BenchBase's shares.
func (w *seats) draw(client int64, rng *rand.Rand) trip {
	t := trip{booking: booking{rng.Int64N(int64(w.flights())), rng.Int64N(int64(w.Records)), between(rng, 1, seatsOfFlight)},
		find: "id", id: rng.Int64(), value: rng.Int64N(1000), newSeat: between(rng, 1, seatsOfFlight)}
	switch n := rng.IntN(100); {
	case n < 10:
		t.kind = "deleteReservation"
		switch how := rng.IntN(100); {
		case how < 20:
			t.find = "name"
		case how < 40:
			t.find = "number"
		}
	case n < 20:
		t.kind = "findFlights"
		t.drawRoute(rng)
	case n < 55:
		t.kind = "findOpenSeats"
	case n < 75:
		t.kind = "newReservation"
	case n < 85:
		t.kind, t.flyer = "updateCustomer", rng.IntN(100) < 25
		if rng.IntN(100) < 20 {
			t.find = "name"
		}
	default:
		t.kind = "updateReservation"
	}
	if t.kind == "deleteReservation" || t.kind == "updateReservation" {
		made := w.of(client)
		if len(made) == 0 {
			t.kind = "newReservation"
		} else {
			t.booking = made[rng.IntN(len(made))]
		}
	}
	if t.find == "number" && flyersOf(t.customer) == 0 {
		t.find = "id"
	}
	t.price = flightOf(t.flight).cents
	if t.seat <= firstClass {
		t.price *= 2
	}
	return t
}

// drawRoute draws the route of some flight, on its day. One search in ten is between any two
// airports. One in four also looks for airports near the destination.
func (t *trip) drawRoute(rng *rand.Rand) {
	f := flightOf(t.flight)
	t.from, t.to, t.day = f.from, f.to, f.departs.Truncate(24*time.Hour)
	if rng.IntN(100) < 10 {
		t.from, t.to = rng.IntN(airports), rng.IntN(airports)
	}
	if rng.IntN(100) < 25 {
		t.nearby = distances[rng.IntN(len(distances))]
	}
}

// of returns the reservations of a client.
func (w *seats) of(client int64) []booking {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made[client]
}

// learn notes the effect of a client's transaction. It forgets a reservation that was not found.
func (w *seats) learn(client int64, t trip, done string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	made := w.made[client]
	switch done {
	case "newReservation":
		if len(made) < remembered {
			w.made[client] = append(made, t.booking)
		}
		return
	case "deleteReservation", "deleteReservationRefused", "updateReservation":
	default:
		return
	}
	for i, b := range made {
		if b != t.booking {
			continue
		}
		if done == "updateReservation" {
			made[i].seat = t.newSeat
			return
		}
		made[i] = made[len(made)-1]
		w.made[client] = made[:len(made)-1]
		return
	}
}

func (w *seats) Run(ctx context.Context, conn *pgx.Conn, client int64, rng *rand.Rand) (Done, error) {
	t := w.draw(client, rng)
	done, err := t.operation().run(ctx, conn, client)
	if err == nil {
		w.learn(client, t, done.Kind)
	}
	return done, err
}

func (t trip) operation() operation {
	switch t.kind {
	case "findFlights":
		return operation{t.kind, false, t.findFlights}
	case "findOpenSeats":
		return operation{t.kind, false, t.findOpenSeats}
	case "newReservation":
		return operation{t.kind, true, t.newReservation}
	case "deleteReservation":
		return operation{t.kind, true, t.deleteReservation}
	case "updateReservation":
		return operation{t.kind, true, t.updateReservation}
	}
	return operation{t.kind, true, t.updateCustomer}
}

// customerName is a customer's id as a text. Some transactions find the customer by it.
func customerName(id int64) string { return fmt.Sprintf("customer-%012d", id) }

// flyersOf is how many airlines a customer is a frequent flyer of: 0 to 2.
func flyersOf(customer int64) int { return int(customer % 3) }

// flyerOf is the airline of a customer's nth frequent-flyer account.
func flyerOf(customer int64, n int) int { return int(customer/3+int64(n)*7) % airlines }
