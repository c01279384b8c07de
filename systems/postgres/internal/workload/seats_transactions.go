package workload

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// findFlights lists the flights of a day to an airport, or to airports near it, with details of
// airline and airports.
func (t trip) findFlights(s steps) (int64, error) {
	to := []int{t.to}
	if t.nearby > 0 {
		rows, err := s.tx.Query(s.ctx, "SELECT d_ap_id1 FROM airport_distance WHERE d_ap_id0 = $1 AND d_distance <= $2 ORDER BY d_distance", t.to, t.nearby)
		if err != nil {
			return 0, err
		}
		near, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return 0, err
		}
		to = append(to, near...)
	}
	_, err := s.count(`SELECT f_id, al_name, f_seats_left, f_depart_time, f_arrive_time, a.ap_code, a.ap_name, ac.co_name, b.ap_code, b.ap_name, bc.co_name
		FROM flight JOIN airline ON al_id = f_al_id
		JOIN airport a ON a.ap_id = f_depart_ap_id JOIN country ac ON ac.co_id = a.ap_co_id
		JOIN airport b ON b.ap_id = f_arrive_ap_id JOIN country bc ON bc.co_id = b.ap_co_id
		WHERE f_depart_ap_id = $1 AND f_depart_time >= $2 AND f_depart_time < $3 AND f_arrive_ap_id = ANY($4)`, t.from, t.day, t.day.Add(24*time.Hour), to)
	return 0, err
}

// findOpenSeats lists free seats of a flight. It fails if the flight's count of free seats does not
// match its reservations: an isolated transaction can never see that.
func (t trip) findOpenSeats(s steps) (int64, error) {
	var left int
	var cents int64
	if err := s.row([]any{&left, &cents}, "SELECT f_seats_left, f_base_price FROM flight WHERE f_id = $1", t.flight); err != nil {
		return 0, err
	}
	rows, err := s.tx.Query(s.ctx, "SELECT r_seat FROM reservation WHERE r_f_id = $1", t.flight)
	if err != nil {
		return 0, err
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	if len(taken)+left != seatsOfFlight {
		return 0, fmt.Errorf("flight %d has %d reservations and %d seats left of %d", t.flight, len(taken), left, seatsOfFlight)
	}
	openSeats(taken, cents, left)
	return 0, nil
}

// offer is an open seat.
type offer struct {
	seat  int
	cents int64
}

// openSeats are the first free seats. The price grows with the share of taken seats, and is twice
// as high in the first class.
func openSeats(taken []int, cents int64, left int) []offer {
	var is [seatsOfFlight + 1]bool
	for _, seat := range taken {
		is[seat] = true
	}
	price := cents + cents*int64(seatsOfFlight-left)/seatsOfFlight
	var open []offer
	for seat := 1; seat <= seatsOfFlight && len(open) < mostShown; seat++ {
		switch {
		case is[seat]:
		case seat <= firstClass:
			open = append(open, offer{seat, 2 * price})
		default:
			open = append(open, offer{seat, price})
		}
	}
	return open
}

// newReservation is refused if the flight is full, the seat is taken, or the customer is on the
// flight already.
func (t trip) newReservation(s steps) (int64, error) {
	var airline, left int
	var name string
	if err := s.row([]any{&airline, &left, &name}, "SELECT f_al_id, f_seats_left, al_name FROM flight JOIN airline ON al_id = f_al_id WHERE f_id = $1", t.flight); err != nil {
		return 0, err
	}
	if left <= 0 {
		return 0, errRefused
	}
	for _, query := range []struct {
		text string
		of   any
	}{{"SELECT r_id FROM reservation WHERE r_f_id = $1 AND r_seat = $2", t.seat}, {"SELECT r_id FROM reservation WHERE r_f_id = $1 AND r_c_id = $2", t.customer}} {
		if n, err := s.count(query.text, t.flight, query.of); err != nil || n > 0 {
			return 0, errors.Join(err, errRefusedIf(err == nil))
		}
	}
	var base int
	var balance int64
	if err := s.row([]any{&base, &balance}, "SELECT c_base_ap_id, c_balance FROM customer WHERE c_id = $1", t.customer); err != nil {
		return 0, err
	}
	if err := s.change("INSERT INTO reservation (r_id, r_c_id, r_f_id, r_seat, r_price, r_iattr00) VALUES ($1, $2, $3, $4, $5, $6)", t.id, t.customer, t.flight, t.seat, t.price, t.value); err != nil {
		return 0, err
	}
	return 0, t.countReservation(s, airline, 1)
}

func errRefusedIf(refused bool) error {
	if refused {
		return errRefused
	}
	return nil
}

// countReservation changes all counts of reservations by one, up or down.
func (t trip) countReservation(s steps, airline, by int) error {
	if err := s.change("UPDATE flight SET f_seats_left = f_seats_left - $2 WHERE f_id = $1", t.flight, by); err != nil {
		return err
	}
	if err := s.change("UPDATE customer SET c_reservations = c_reservations + $2, c_iattr00 = $3 WHERE c_id = $1", t.customer, by, t.value); err != nil {
		return err
	}
	_, err := s.tx.Exec(s.ctx, "UPDATE frequent_flyer SET ff_reservations = ff_reservations + $3 WHERE ff_c_id = $1 AND ff_al_id = $2", t.customer, airline, by)
	return err // most customers are not frequent flyers of this airline
}

// findCustomer finds the customer's number from the data that the customer gave.
func (t trip) findCustomer(s steps) (id int64, err error) {
	switch t.find {
	case "name":
		err = s.row([]any{&id}, "SELECT c_id FROM customer WHERE c_id_str = $1", customerName(t.customer))
	case "number":
		err = s.row([]any{&id}, "SELECT c_id FROM customer JOIN frequent_flyer ON ff_c_id = c_id WHERE ff_c_id_str = $1 LIMIT 1", customerName(t.customer))
	default:
		id = t.customer
	}
	return id, err
}

// deleteReservation subtracts the price from the customer's balance, as BenchBase does.
func (t trip) deleteReservation(s steps) (int64, error) {
	customer, err := t.findCustomer(s)
	if err != nil {
		return 0, err
	}
	var id, price, balance int64
	var airline, left, seat int
	err = s.row([]any{&id, &price, &seat, &left, &airline, &balance}, `SELECT r_id, r_price, r_seat, f_seats_left, f_al_id, c_balance
		FROM reservation JOIN flight ON f_id = r_f_id JOIN customer ON c_id = r_c_id WHERE r_c_id = $1 AND r_f_id = $2`, customer, t.flight)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, errRefused
	}
	if err != nil {
		return 0, err
	}
	if err := s.change("DELETE FROM reservation WHERE r_id = $1 AND r_c_id = $2 AND r_f_id = $3", id, customer, t.flight); err != nil {
		return 0, err
	}
	if err := s.change("UPDATE customer SET c_balance = c_balance - $2 WHERE c_id = $1", customer, price); err != nil {
		return 0, err
	}
	return -price, t.countReservation(s, airline, -1)
}

// updateReservation moves a customer to another seat, unless it is taken.
func (t trip) updateReservation(s steps) (int64, error) {
	if n, err := s.count("SELECT r_id FROM reservation WHERE r_f_id = $1 AND r_seat = $2", t.flight, t.newSeat); err != nil || n > 0 {
		return 0, errors.Join(err, errRefusedIf(err == nil))
	}
	var id int64
	err := s.row([]any{&id}, "SELECT r_id FROM reservation WHERE r_f_id = $1 AND r_c_id = $2", t.flight, t.customer)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, errRefused
	}
	if err != nil {
		return 0, err
	}
	return 0, s.change("UPDATE reservation SET r_seat = $4, r_iattr00 = $5 WHERE r_id = $1 AND r_c_id = $2 AND r_f_id = $3", id, t.customer, t.flight, t.newSeat, t.value)
}

// updateCustomer sets attributes of a customer, and one time in four also of the customer's
// frequent-flyer accounts.
func (t trip) updateCustomer(s steps) (int64, error) {
	customer, err := t.findCustomer(s)
	if err != nil {
		return 0, err
	}
	var base int
	var airport, country string
	if err := s.row([]any{&base, &airport, &country}, `SELECT c_base_ap_id, ap_name, co_name FROM customer
		JOIN airport ON ap_id = c_base_ap_id JOIN country ON co_id = ap_co_id WHERE c_id = $1`, customer); err != nil {
		return 0, err
	}
	if t.flyer {
		if _, err := s.count("SELECT ff_al_id, ff_reservations FROM frequent_flyer WHERE ff_c_id = $1", customer); err != nil {
			return 0, err
		}
		if _, err := s.tx.Exec(s.ctx, "UPDATE frequent_flyer SET ff_iattr00 = $2, ff_iattr01 = $3 WHERE ff_c_id = $1", customer, t.value, t.value+1); err != nil {
			return 0, err
		}
	}
	return 0, s.change("UPDATE customer SET c_iattr00 = $2, c_iattr01 = $3 WHERE c_id = $1", customer, t.value, t.value+1)
}
