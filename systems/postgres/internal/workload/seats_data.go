package workload

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// seatsTables have the columns that a transaction reads or writes. Texts fill the rows to about the
// size that they have with all attributes.
var seatsTables = []string{
	ledgerTable,
	"CREATE TABLE balances (initial bigint NOT NULL)",
	"CREATE TABLE country (co_id int PRIMARY KEY, co_name text NOT NULL)",
	"CREATE TABLE airline (al_id int PRIMARY KEY, al_name text NOT NULL)",
	"CREATE TABLE airport (ap_id int PRIMARY KEY, ap_code text NOT NULL, ap_name text NOT NULL, ap_co_id int NOT NULL REFERENCES country, ap_longitude float8, ap_latitude float8)",
	"CREATE TABLE airport_distance (d_ap_id0 int REFERENCES airport, d_ap_id1 int REFERENCES airport, d_distance float8 NOT NULL, PRIMARY KEY (d_ap_id0, d_ap_id1))",
	`CREATE TABLE customer (c_id bigint PRIMARY KEY, c_id_str text NOT NULL UNIQUE, c_base_ap_id int NOT NULL REFERENCES airport, c_balance bigint NOT NULL,
		c_reservations bigint NOT NULL, c_iattr00 bigint NOT NULL, c_iattr01 bigint NOT NULL, c_sattrs text NOT NULL)`,
	`CREATE TABLE frequent_flyer (ff_c_id bigint REFERENCES customer, ff_al_id int REFERENCES airline, ff_c_id_str text NOT NULL, ff_reservations bigint NOT NULL,
		ff_iattr00 bigint NOT NULL, ff_iattr01 bigint NOT NULL, PRIMARY KEY (ff_c_id, ff_al_id))`,
	`CREATE TABLE flight (f_id bigint PRIMARY KEY, f_al_id int NOT NULL REFERENCES airline, f_depart_ap_id int NOT NULL REFERENCES airport, f_depart_time timestamptz NOT NULL,
		f_arrive_ap_id int NOT NULL REFERENCES airport, f_arrive_time timestamptz NOT NULL, f_base_price bigint NOT NULL, f_seats_total int NOT NULL, f_seats_left int NOT NULL CHECK (f_seats_left >= 0), f_iattrs text NOT NULL)`,
	`CREATE TABLE reservation (r_id bigint, r_c_id bigint REFERENCES customer, r_f_id bigint REFERENCES flight, r_seat int NOT NULL, r_price bigint NOT NULL, r_iattr00 bigint NOT NULL,
		PRIMARY KEY (r_id, r_c_id, r_f_id), UNIQUE (r_f_id, r_seat), UNIQUE (r_f_id, r_c_id))`,
}

var seatsIndexes = []string{
	"CREATE INDEX ON flight (f_depart_ap_id, f_depart_time)",
	"CREATE INDEX ON frequent_flyer (ff_c_id_str)",
}

// seatsConditions are ours: SEATS has none. They count flights, customers, frequent flyers and
// cents that do not match the reservations or the ledger.
var seatsConditions = []string{
	`SELECT count(*) FROM flight LEFT JOIN (SELECT r_f_id, count(*) AS n FROM reservation GROUP BY r_f_id) r ON r_f_id = f_id
		WHERE f_seats_total - f_seats_left <> coalesce(n, 0)`,
	`SELECT count(*) FROM customer LEFT JOIN (SELECT r_c_id, count(*) AS n FROM reservation GROUP BY r_c_id) r ON r_c_id = c_id
		WHERE c_reservations <> coalesce(n, 0)`,
	`SELECT count(*) FROM frequent_flyer LEFT JOIN (SELECT r_c_id, f_al_id, count(*) AS n FROM reservation JOIN flight ON f_id = r_f_id GROUP BY r_c_id, f_al_id) r
		ON r_c_id = ff_c_id AND f_al_id = ff_al_id WHERE ff_reservations <> coalesce(n, 0)`,
	`SELECT abs((SELECT initial FROM balances) + (SELECT coalesce(sum(added), 0) FROM ledger) - (SELECT sum(c_balance) FROM customer))::bigint`,
	`SELECT count(*) FROM reservation JOIN flight ON f_id = r_f_id WHERE r_seat < 1 OR r_seat > f_seats_total`,
}

// Check counts violations of the conditions.
func (w *seats) Check(ctx context.Context, conn *pgx.Conn, _ int64) (map[string]int64, error) {
	return checkConditions(ctx, conn, seatsConditions)
}

// reserved are the seats of a flight that are taken at first.
func (w *seats) reserved(flight int64) []booking {
	rng := rand.New(rand.NewPCG(0xb00ced, uint64(flight)))
	var all []booking
	aboard := map[int64]bool{}
	for seat := 1; seat <= seatsOfFlight; seat++ {
		if rng.IntN(occupied) > 0 {
			continue
		}
		if c := rng.Int64N(int64(w.Records)); !aboard[c] {
			aboard[c] = true
			all = append(all, booking{flight, c, seat})
		}
	}
	return all
}

// Load fills the tables; the same number of customers gives the same rows.
func (w *seats) Load(ctx context.Context, conn *pgx.Conn) error {
	for _, statement := range append(seatsTables, fmt.Sprintf("INSERT INTO balances VALUES (%d)", int64(w.Records)*customerBalance)) {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	if err := loadAirports(ctx, conn); err != nil {
		return err
	}
	var all []booking
	left, byCustomer, byAirline := map[int64]int{}, map[int64]int{}, map[[2]int64]int{}
	for id := range int64(w.flights()) {
		taken := w.reserved(id)
		left[id] = seatsOfFlight - len(taken)
		for _, b := range taken {
			byCustomer[b.customer]++
			byAirline[[2]int64{b.customer, int64(flightOf(id).airline)}]++
		}
		all = append(all, taken...)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	if err := load(ctx, conn, nil, "customer", []string{"c_id", "c_id_str", "c_base_ap_id", "c_balance", "c_reservations", "c_iattr00", "c_iattr01", "c_sattrs"}, w.Records, func(i int) []any {
		return []any{int64(i), customerName(int64(i)), i % airports, int64(customerBalance), int64(byCustomer[int64(i)]), int64(0), int64(0), words(rng, 150)}
	}); err != nil {
		return err
	}
	if err := w.loadFlyers(ctx, conn, byAirline); err != nil {
		return err
	}
	if err := load(ctx, conn, nil, "flight", []string{"f_id", "f_al_id", "f_depart_ap_id", "f_depart_time", "f_arrive_ap_id", "f_arrive_time", "f_base_price", "f_seats_total", "f_seats_left", "f_iattrs"}, w.flights(), func(i int) []any {
		f := flightOf(int64(i))
		arrives := f.departs.Add(time.Duration(distance(f.from, f.to) / milesPerHour * float64(time.Hour)))
		return []any{int64(i), f.airline, f.from, f.departs, f.to, arrives, f.cents, seatsOfFlight, left[int64(i)], words(rng, 200)}
	}); err != nil {
		return err
	}
	return load(ctx, conn, seatsIndexes, "reservation", []string{"r_id", "r_c_id", "r_f_id", "r_seat", "r_price", "r_iattr00"}, len(all), func(i int) []any {
		b := all[i]
		return []any{int64(-1 - i), b.customer, b.flight, b.seat, flightOf(b.flight).cents, int64(0)} // reservations of clients have no negative id
	})
}

func (w *seats) loadFlyers(ctx context.Context, conn *pgx.Conn, reservations map[[2]int64]int) error {
	type flyer struct {
		customer int64
		airline  int
	}
	var all []flyer
	for c := range int64(w.Records) {
		for n := range flyersOf(c) {
			all = append(all, flyer{c, flyerOf(c, n)})
		}
	}
	return load(ctx, conn, nil, "frequent_flyer", []string{"ff_c_id", "ff_al_id", "ff_c_id_str", "ff_reservations", "ff_iattr00", "ff_iattr01"}, len(all), func(i int) []any {
		f := all[i]
		return []any{f.customer, f.airline, customerName(f.customer), int64(reservations[[2]int64{f.customer, int64(f.airline)}]), int64(0), int64(0)}
	})
}

// loadAirports makes up countries, airlines and airports; SEATS has the real ones.
func loadAirports(ctx context.Context, conn *pgx.Conn) error {
	if err := load(ctx, conn, nil, "country", []string{"co_id", "co_name"}, countries, func(i int) []any { return []any{i, fmt.Sprint("country-", i)} }); err != nil {
		return err
	}
	if err := load(ctx, conn, nil, "airline", []string{"al_id", "al_name"}, airlines, func(i int) []any { return []any{i, fmt.Sprint("airline-", i)} }); err != nil {
		return err
	}
	if err := load(ctx, conn, nil, "airport", []string{"ap_id", "ap_code", "ap_name", "ap_co_id", "ap_longitude", "ap_latitude"}, airports, func(i int) []any {
		x, y := position(i)
		return []any{i, fmt.Sprintf("A%02d", i), fmt.Sprint("airport-", i), i % countries, x, y}
	}); err != nil {
		return err
	}
	return load(ctx, conn, nil, "airport_distance", []string{"d_ap_id0", "d_ap_id1", "d_distance"}, airports*(airports-1), func(i int) []any {
		from := i / (airports - 1)
		to := (from + 1 + i%(airports-1)) % airports
		return []any{from, to, distance(from, to)}
	})
}

// milesPerHour is the speed of a flight, as in BenchBase.
const milesPerHour = 570

// position of an airport in miles, on an area of 500 by 500 miles.
func position(airport int) (x, y float64) {
	rng := rand.New(rand.NewPCG(0xa1, uint64(airport)))
	return 500 * rng.Float64(), 500 * rng.Float64()
}

func distance(a, b int) float64 {
	ax, ay := position(a)
	bx, by := position(b)
	return math.Hypot(ax-bx, ay-by)
}

// words are n letters and spaces.
func words(rng *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz      "[rng.IntN(32)]
	}
	return string(text)
}
