package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sale is a running transaction of TPC-C. Amounts of money are numerics in the database, and whole
// cents here.
type sale struct {
	steps
	in input
}

func (s sale) run() error {
	switch s.in.kind {
	case "newOrder":
		return s.newOrder()
	case "payment":
		return s.payment()
	case "orderStatus":
		return s.orderStatus()
	case "delivery":
		return s.delivery()
	}
	return s.stockLevel()
}

// newOrder follows 2.4.2.2.
func (s sale) newOrder() error {
	var tax, districtTax, discount float64
	var name, credit string
	if err := s.row([]any{&tax, &discount, &name, &credit}, `SELECT w_tax, c_discount, c_last, c_credit FROM warehouse JOIN customer ON c_w_id = w_id
		WHERE w_id = $1 AND c_d_id = $2 AND c_id = $3`, s.in.warehouse, s.in.district, s.in.customer); err != nil {
		return err
	}
	var order int
	if err := s.row([]any{&order, &districtTax}, "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax",
		s.in.warehouse, s.in.district); err != nil {
		return err
	}
	local := 1
	for _, l := range s.in.lines {
		if l.supplier != s.in.warehouse {
			local = 0
		}
	}
	if err := s.change("INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES ($1, $2, $3, $4, now(), $5, $6)",
		order, s.in.district, s.in.warehouse, s.in.customer, len(s.in.lines), local); err != nil {
		return err
	}
	if err := s.change("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)", order, s.in.district, s.in.warehouse); err != nil {
		return err
	}
	prices, err := s.prices()
	if err != nil {
		return err
	}
	return s.orderLines(order, prices)
}

// prices reads the items, and returns errUnusedItem when one does not exist.
func (s sale) prices() (map[int]int64, error) {
	var numbers []int
	for _, l := range s.in.lines {
		numbers = append(numbers, l.item)
	}
	rows, err := s.tx.Query(s.ctx, "SELECT i_id, (i_price * 100)::bigint, i_name, i_data FROM item WHERE i_id = ANY($1)", numbers)
	if err != nil {
		return nil, err
	}
	prices := map[int]int64{}
	var item int
	var cents int64
	var name, data string
	if _, err := pgx.ForEachRow(rows, []any{&item, &cents, &name, &data}, func() error { prices[item] = cents; return nil }); err != nil {
		return nil, err
	}
	for _, n := range numbers {
		if _, exists := prices[n]; !exists {
			return nil, errUnusedItem
		}
	}
	return prices, nil
}

// orderLines takes each line's items from its supplier's stock, which is refilled by 91 when fewer
// than ten would be left. All transactions lock stock in the same order, so that orders do not wait
// for each other in circles.
func (s sale) orderLines(order int, prices map[int]int64) error {
	type numbered struct {
		line
		number int
	}
	lines := make([]numbered, len(s.in.lines))
	for i, l := range s.in.lines {
		lines[i] = numbered{l, i + 1}
	}
	slices.SortFunc(lines, func(a, b numbered) int {
		if a.supplier != b.supplier {
			return a.supplier - b.supplier
		}
		return a.item - b.item
	})
	batch := &pgx.Batch{}
	for _, l := range lines {
		remote := 0
		if l.supplier != s.in.warehouse {
			remote = 1
		}
		batch.Queue(fmt.Sprintf(`WITH s AS (UPDATE stock SET s_quantity = s_quantity - $3 + CASE WHEN s_quantity - $3 >= 10 THEN 0 ELSE 91 END,
			s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $4 WHERE s_w_id = $1 AND s_i_id = $2 RETURNING s_dist_%02d AS dist)
			INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
			SELECT $5, $6, $7, $8, $2, $1, $3, $9::bigint * 0.01, dist FROM s`, s.in.district),
			l.supplier, l.item, l.quantity, remote, order, s.in.district, s.in.warehouse, l.number, int64(l.quantity)*prices[l.item])
	}
	results := s.tx.SendBatch(s.ctx, batch)
	for range lines {
		tag, err := results.Exec()
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("an item is not in the stock")
		}
		if err != nil {
			_ = results.Close() // the first error has the reason
			return err
		}
	}
	return results.Close()
}

// customerByName is the middle one of the customers with a last name, in the order of first names
// (2.5.2.2, 2.6.2.2).
func (s sale) customerByName(warehouse, district int) (int, error) {
	if s.in.customer != 0 {
		return s.in.customer, nil
	}
	rows, err := s.tx.Query(s.ctx, "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first", warehouse, district, s.in.last)
	if err != nil {
		return 0, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int])
	switch {
	case err != nil:
		return 0, err
	case len(found) == 0:
		return 0, fmt.Errorf("no customer is called %s", s.in.last)
	}
	return found[(len(found)-1)/2], nil
}

// payment follows 2.5.2.2.
func (s sale) payment() error {
	var warehouse, district string
	if err := s.row([]any{&warehouse}, "UPDATE warehouse SET w_ytd = w_ytd + $2::bigint * 0.01 WHERE w_id = $1 RETURNING w_name", s.in.warehouse, s.in.cents); err != nil {
		return err
	}
	if err := s.row([]any{&district}, "UPDATE district SET d_ytd = d_ytd + $3::bigint * 0.01 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_name",
		s.in.warehouse, s.in.district, s.in.cents); err != nil {
		return err
	}
	customer, err := s.customerByName(s.in.customerWarehouse, s.in.customerDistrict)
	if err != nil {
		return err
	}
	// A customer with bad credit keeps a record of the last payments (2.5.2.2, C_CREDIT = "BC").
	record := fmt.Sprintf("%d %d %d %d %d %d.%02d,", customer, s.in.customerDistrict, s.in.customerWarehouse, s.in.district, s.in.warehouse, s.in.cents/100, s.in.cents%100)
	if err := s.change(`UPDATE customer SET c_balance = c_balance - $4::bigint * 0.01, c_ytd_payment = c_ytd_payment + $4::bigint * 0.01, c_payment_cnt = c_payment_cnt + 1,
		c_data = CASE WHEN c_credit = 'BC' THEN left($5::text || c_data, 500) ELSE c_data END WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3`,
		s.in.customerWarehouse, s.in.customerDistrict, customer, s.in.cents, record); err != nil {
		return err
	}
	return s.change("INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES ($1, $2, $3, $4, $5, now(), $6::bigint * 0.01, $7)",
		customer, s.in.customerDistrict, s.in.customerWarehouse, s.in.district, s.in.warehouse, s.in.cents, strings.Join([]string{warehouse, district}, "    "))
}

// orderStatus follows 2.6.2.2.
func (s sale) orderStatus() error {
	customer, err := s.customerByName(s.in.warehouse, s.in.district)
	if err != nil {
		return err
	}
	var balance float64
	var order, lines, carrier int
	if err := s.row([]any{&balance, &order, &lines, &carrier}, `SELECT c_balance, o_id, o_ol_cnt, coalesce(o_carrier_id, 0) FROM customer
		JOIN orders ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 ORDER BY o_id DESC LIMIT 1`,
		s.in.warehouse, s.in.district, customer); err != nil {
		return err
	}
	rows, err := s.tx.Query(s.ctx, "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d::text FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
		s.in.warehouse, s.in.district, order)
	if err != nil {
		return err
	}
	var item, supplier, quantity, n int
	var amount float64
	var delivered *string
	if _, err := pgx.ForEachRow(rows, []any{&item, &supplier, &quantity, &amount, &delivered}, func() error { n++; return nil }); err != nil {
		return err
	}
	if n != lines {
		return fmt.Errorf("order %d has %d lines, want %d", order, n, lines)
	}
	return nil
}

// delivery follows 2.7.4.2: it delivers the oldest undelivered order of each district of the
// warehouse, if there is one. It does so at once, and not through a queue.
func (s sale) delivery() error {
	for district := 1; district <= districts; district++ {
		var order, customer int
		err := s.row([]any{&order}, `DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id =
			(SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1) RETURNING no_o_id`, s.in.warehouse, district)
		if errors.Is(err, pgx.ErrNoRows) {
			continue // 2.7.4.2: the district is skipped
		}
		if err != nil {
			return err
		}
		if err := s.row([]any{&customer}, "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id",
			s.in.warehouse, district, order, s.in.carrier); err != nil {
			return err
		}
		if err := s.change(`WITH l AS (UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount)
			UPDATE customer SET c_balance = c_balance + (SELECT sum(ol_amount) FROM l), c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $4`,
			s.in.warehouse, district, order, customer); err != nil {
			return err
		}
	}
	return nil
}

// stockLevel follows 2.8.2.2: it counts the items of the district's last 20 orders with low stock.
func (s sale) stockLevel() error {
	var next, low int
	if err := s.row([]any{&next}, "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2", s.in.warehouse, s.in.district); err != nil {
		return err
	}
	return s.row([]any{&low}, `SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id
		WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 - 20 AND ol_o_id < $3 AND s_quantity < $4`,
		s.in.warehouse, s.in.district, next, s.in.threshold)
}
