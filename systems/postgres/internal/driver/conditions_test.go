package driver

import (
	"fmt"
	"testing"
	"time"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

// spoiling breaks one condition of a workload, which it names by its place in the list, and repairs
// it.
type spoiling struct {
	spoil, mend string
	condition   int
}

// Every kind of transaction of AuctionMark and SEATS runs, with four clients at a time, and breaks
// no condition. Then the test breaks each condition, one after the other: the check must detect it.
func TestConditions(t *testing.T) {
	replicas, _, _ := deploy(t, 1) // without a standby: on a busy machine, its promotion would end the test
	for name, tc := range map[string]struct {
		before string // before the clients run
		kinds  []string
		spoil  []spoiling
	}{
		"auctionmark": {
			"UPDATE item SET i_end_date = now() WHERE i_id % 50 = 3",
			[]string{"getItem", "getUserInfo", "newBid", "newBidRefused", "newComment", "newCommentResponse", "newFeedback", "newItem", "newPurchase", "updateItem", "closeAuctions"},
			[]spoiling{
				{"UPDATE item SET i_num_bids = i_num_bids + 1 WHERE i_id = 5", "UPDATE item SET i_num_bids = i_num_bids - 1 WHERE i_id = 5", 1},
				{"UPDATE item SET i_current_price = i_current_price + 1 WHERE i_id = 5", "UPDATE item SET i_current_price = i_current_price - 1 WHERE i_id = 5", 2},
				{"UPDATE item SET i_num_comments = i_num_comments + 1 WHERE i_id = 5", "UPDATE item SET i_num_comments = i_num_comments - 1 WHERE i_id = 5", 3},
				{"UPDATE useracct SET u_comments = u_comments + 1 WHERE u_id = 5", "UPDATE useracct SET u_comments = u_comments - 1 WHERE u_id = 5", 4},
				{"UPDATE useracct SET u_rating = u_rating + 1 WHERE u_id = 5", "UPDATE useracct SET u_rating = u_rating - 1 WHERE u_id = 5", 5},
				{"UPDATE useracct SET u_balance = u_balance + 1 WHERE u_id = 5", "UPDATE useracct SET u_balance = u_balance - 1 WHERE u_id = 5", 6},
				{"UPDATE item_purchase SET ip_ib_id = ip_ib_id + 9 WHERE ip_i_id = 1", "UPDATE item_purchase SET ip_ib_id = ip_ib_id - 9 WHERE ip_i_id = 1", 7},
				{"UPDATE item SET i_num_global_attrs = i_num_global_attrs + 1 WHERE i_id = 5", "UPDATE item SET i_num_global_attrs = i_num_global_attrs - 1 WHERE i_id = 5", 8},
			},
		},
		"seats": {
			"SELECT 1",
			[]string{"findFlights", "findOpenSeats", "newReservation", "newReservationRefused", "deleteReservation", "updateReservation", "updateCustomer"},
			[]spoiling{
				{"UPDATE flight SET f_seats_left = f_seats_left - 1 WHERE f_id = 5", "UPDATE flight SET f_seats_left = f_seats_left + 1 WHERE f_id = 5", 1},
				{"UPDATE customer SET c_reservations = c_reservations + 1 WHERE c_id = 5", "UPDATE customer SET c_reservations = c_reservations - 1 WHERE c_id = 5", 2},
				{"UPDATE frequent_flyer SET ff_reservations = ff_reservations + 1 WHERE ff_c_id = 5", "UPDATE frequent_flyer SET ff_reservations = ff_reservations - 1 WHERE ff_c_id = 5", 3},
				{"UPDATE customer SET c_balance = c_balance + 1 WHERE c_id = 5", "UPDATE customer SET c_balance = c_balance - 1 WHERE c_id = 5", 4},
				{"UPDATE reservation SET r_seat = r_seat + 1000 WHERE r_id = -1", "UPDATE reservation SET r_seat = r_seat - 1000 WHERE r_id = -1", 5},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := node.Connect(t.Context(), replicas)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			if _, err := conn.Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
				t.Fatal(err)
			}
			w, err := workload.New(name, workload.Options{Records: 200, ValueSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			fill(t, replicas, w)
			if _, err := conn.Exec(t.Context(), tc.before); err != nil {
				t.Fatal(err)
			}
			counters := together(t, replicas, w, 400)
			if counters["conditionsViolated"] != 0 || counters["lost"] != 0 || counters["duplicated"] != 0 || counters["failed"] != 0 || counters["conditionsChecked"] != int64(len(tc.spoil)) {
				t.Errorf("got %v, want nothing wrong in %d conditions", counters, len(tc.spoil))
			}
			for _, kind := range tc.kinds {
				if counters[kind+"Committed"] == 0 {
					t.Errorf("no %s: %v", kind, counters)
				}
			}
			check := func() map[string]int64 {
				found, err := w.(workload.Auditor).Check(t.Context(), conn, 0)
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			for _, s := range tc.spoil {
				if tag, err := conn.Exec(t.Context(), s.spoil); err != nil || tag.RowsAffected() == 0 {
					t.Fatalf("%s: %d rows, %v", s.spoil, tag.RowsAffected(), err)
				}
				if found := check(); found[fmt.Sprintf("condition%dViolated", s.condition)] == 0 || found["conditionsViolated"] == 0 {
					t.Errorf("%s: found %v, want condition %d", s.spoil, found, s.condition)
				}
				if _, err := conn.Exec(t.Context(), s.mend); err != nil {
					t.Fatal(err)
				}
			}
			if found := check(); found["conditionsViolated"] != 0 {
				t.Errorf("after all was mended: %v", found)
			}
		})
	}
}

// together lets four clients carry out n transactions each, at the same time, and returns the
// counters. It does not retry an aborted transaction.
func together(t *testing.T, replicas []string, w workload.Workload, n uint64) map[string]int64 {
	t.Helper()
	const clients = 4
	d := &Driver{Replicas: replicas, Workload: w, Attempt: 10 * time.Second}
	s := drivertest.Start(t, protocol.Clients(d))
	s.Hello(protocol.Hello{Clients: clients, Seed: 9, RequestTimeout: 20 * time.Second})
	begun := map[int64]uint64{}
	for c := range int64(clients) {
		s.Begin(uint64(c), c, 0)
		begun[c]++
	}
	for range clients * n {
		l := s.Next()
		if l.Outcome != "commit" && l.Outcome != "abort" {
			t.Errorf("%+v, want a commit or an abort", l)
		}
		if c := int64(l.ID % clients); begun[c] < n {
			s.Begin(uint64(c)+clients*begun[c], c, begun[c])
			begun[c]++
		}
	}
	return s.Bye()
}
