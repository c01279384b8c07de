package workload

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// refusedIfNone turns the error of a missing row into a rejection of the user's request.
func refusedIfNone(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return errRefused
	}
	return err
}

// getItem reads an item and its seller.
func (d deal) getItem(s steps) (int64, error) {
	var id, user, price, bids int64
	var name, region string
	if err := s.row([]any{&id, &user, &name, &price, &bids}, "SELECT i_id, i_u_id, i_name, i_current_price, i_num_bids FROM item WHERE i_id = $1", d.item); err != nil {
		return 0, err
	}
	var rating int64
	return 0, s.row([]any{&id, &rating, &region}, "SELECT u_id, u_rating, r_name FROM useracct JOIN region ON r_id = u_r_id WHERE u_id = $1", user)
}

// getUserInfo reads a user, and the requested data about the user.
func (d deal) getUserInfo(s steps) (int64, error) {
	var id, rating, comments int64
	var region string
	if err := s.row([]any{&id, &rating, &comments, &region}, "SELECT u_id, u_rating, u_comments, r_name FROM useracct JOIN region ON r_id = u_r_id WHERE u_id = $1", d.user); err != nil {
		return 0, err
	}
	query := map[userPart]string{
		userFeedback: "SELECT uf_rating, uf_from_id, uf_created, uf_comment FROM useracct_feedback WHERE uf_u_id = $1 ORDER BY uf_created DESC LIMIT $2",
		userComments: "SELECT i_id, i_name, ic_id, ic_buyer_id, ic_question FROM item JOIN item_comment ON ic_i_id = i_id WHERE i_u_id = $1 AND ic_response IS NULL ORDER BY ic_created DESC LIMIT $2",
		userSells:    "SELECT i_id, i_name, i_current_price, i_num_bids, i_end_date, i_status FROM item WHERE i_u_id = $1 ORDER BY i_end_date DESC LIMIT $2",
		userBought:   "SELECT i_id, i_name, i_current_price, i_status FROM useracct_item JOIN item ON i_id = ui_i_id WHERE ui_u_id = $1 ORDER BY i_end_date DESC LIMIT $2",
		userWatches:  "SELECT i_id, i_name, i_current_price, i_status, uw_created FROM useracct_watch JOIN item ON i_id = uw_i_id WHERE uw_u_id = $1 ORDER BY i_end_date DESC LIMIT $2",
	}[d.show]
	if query == "" {
		return 0, nil
	}
	_, err := s.count(query, d.user, mostItemsListed)
	return 0, err
}

// auction is the state of an item's auction.
type auction struct {
	first, price, bids int64
	open               bool
	highest            *bid
}

// place returns how the auction continues after a bid of at most that much: the new price, and the
// leader. A leader who bids again raises only the maximum. A bidder who offers more than the
// leader's maximum leads, a step above that maximum. A bidder who offers less drives the price up.
func (a auction) place(buyer, most int64) (price int64, leads bool) {
	switch {
	case a.highest == nil:
		return a.first, true
	case a.highest.buyer == buyer:
		return a.price, true
	case most > a.highest.most:
		return min(most, a.highest.most+step(a.first)), true
	}
	return min(a.highest.most, most+step(a.first)), false
}

// newBid bids up to twice the present price. It is refused when the auction is over, or when the
// leader does not offer more than before.
func (d deal) newBid(s steps) (int64, error) {
	var a auction
	var last int64
	if err := s.row([]any{&a.first, &a.price, &a.bids, &a.open}, "SELECT i_initial_price, i_current_price, i_num_bids, i_status = $2 AND i_end_date > now() FROM item WHERE i_id = $1", d.item, auctionOpen); err != nil {
		return 0, err
	}
	if !a.open {
		return 0, errRefused
	}
	if a.bids > 0 {
		a.highest = &bid{}
		if err := s.row([]any{&last, &a.highest.buyer, &a.highest.cents, &a.highest.most}, `SELECT imb_ib_id, ib_buyer_id, ib_bid, ib_max_bid FROM item_max_bid
			JOIN item_bid ON ib_i_id = imb_i_id AND ib_id = imb_ib_id WHERE imb_i_id = $1`, d.item); err != nil {
			return 0, err
		}
	}
	most := int64(float64(a.price) * d.times)
	price, leads := a.place(d.user, most)
	if a.highest != nil && a.highest.buyer == d.user {
		if most <= a.highest.most {
			return 0, errRefused
		}
		return 0, s.change("UPDATE item_bid SET ib_max_bid = $3, ib_updated = now() WHERE ib_i_id = $1 AND ib_id = $2", d.item, last, most)
	}
	if !leads { // the leader's bid follows the price
		if err := s.change("UPDATE item_bid SET ib_bid = $3, ib_updated = now() WHERE ib_i_id = $1 AND ib_id = $2", d.item, last, price); err != nil {
			return 0, err
		}
	}
	if err := s.change("INSERT INTO item_bid VALUES ($1, $2, $3, $4, $5, now(), now())", d.item, a.bids+1, d.user, min(price, max(most, a.first)), max(most, a.first)); err != nil {
		return 0, err
	}
	if leads {
		if err := s.change("INSERT INTO item_max_bid VALUES ($1, $2) ON CONFLICT (imb_i_id) DO UPDATE SET imb_ib_id = $2", d.item, a.bids+1); err != nil {
			return 0, err
		}
	}
	return 0, s.change("UPDATE item SET i_num_bids = i_num_bids + 1, i_current_price = $2, i_updated = now() WHERE i_id = $1", d.item, price)
}

// newComment asks the seller a question.
func (d deal) newComment(s steps) (int64, error) {
	if err := s.change("INSERT INTO item_comment VALUES ($1, $2, $3, $4, $5, NULL, now())", d.item, d.id, d.seller, d.user, d.text); err != nil {
		return 0, err
	}
	if err := s.change("UPDATE item SET i_num_comments = i_num_comments + 1 WHERE i_id = $1", d.item); err != nil {
		return 0, err
	}
	return 0, s.change("UPDATE useracct SET u_comments = u_comments + 1 WHERE u_id = $1", d.seller)
}

// newCommentResponse answers a comment on one of the seller's items, if one has no answer yet.
func (d deal) newCommentResponse(s steps) (int64, error) {
	var item, comment int64
	if err := s.row([]any{&item, &comment}, "SELECT ic_i_id, ic_id FROM item_comment WHERE ic_u_id = $1 AND ic_response IS NULL ORDER BY ic_created LIMIT 1", d.seller); err != nil {
		return 0, refusedIfNone(err)
	}
	if err := s.change("UPDATE item_comment SET ic_response = $3 WHERE ic_i_id = $1 AND ic_id = $2", item, comment, d.text); err != nil {
		return 0, err
	}
	return 0, s.change("UPDATE useracct SET u_comments = u_comments - 1 WHERE u_id = $1", d.seller)
}

// newFeedback rates the seller of an item, once for each buyer.
func (d deal) newFeedback(s steps) (int64, error) {
	if n, err := s.count("SELECT uf_rating FROM useracct_feedback WHERE uf_u_id = $1 AND uf_i_id = $2 AND uf_from_id = $3", d.seller, d.item, d.user); err != nil || n > 0 {
		return 0, errors.Join(err, errRefusedIf(err == nil))
	}
	if err := s.change("INSERT INTO useracct_feedback VALUES ($1, $2, $3, $4, now(), $5)", d.seller, d.item, d.user, d.rating, d.text); err != nil {
		return 0, err
	}
	return 0, s.change("UPDATE useracct SET u_rating = u_rating + $2 WHERE u_id = $1", d.seller, d.rating)
}

// newItem offers an item. Its description has the names of its category and attributes.
func (d deal) newItem(s steps) (int64, error) {
	var category string
	if err := s.row([]any{&category}, "SELECT c_name FROM category WHERE c_id = $1", d.category); err != nil {
		return 0, err
	}
	rows, err := s.tx.Query(s.ctx, "SELECT gag_name || ' ' || gav_name FROM global_attribute_group JOIN global_attribute_value ON gav_gag_id = gag_id WHERE gav_id = ANY($1)", d.attributes)
	if err != nil {
		return 0, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	first := int64(len(d.text)) * 100
	if err := s.change(fmt.Sprintf(`INSERT INTO item VALUES ($1, $2, $3, $4, $5, $6, $6, 0, $7, $8, 0, now(), now() + $9 * interval '1 day' / %d, %d, now())`, virtualSpeed, auctionOpen),
		d.id, d.user, d.category, "item of "+category, fmt.Sprint(d.text, names), first, d.images, len(d.attributes), d.days); err != nil {
		return 0, err
	}
	for n, attribute := range d.attributes {
		if err := s.change("INSERT INTO item_attribute VALUES ($1, $2, $3)", d.id, n, attribute); err != nil {
			return 0, err
		}
	}
	for n := range d.images {
		if err := s.change("INSERT INTO item_image VALUES ($1, $2, $3)", d.id, n, d.text); err != nil {
			return 0, err
		}
	}
	return -sellingFee, s.change("UPDATE useracct SET u_balance = u_balance - $2 WHERE u_id = $1", d.user, sellingFee)
}

// newPurchase pays for a won item, if there is one after some item. The buyer's money goes to the
// seller.
func (d deal) newPurchase(s steps) (int64, error) {
	var item, seller, buyer, price, bid int64
	if err := s.row([]any{&item, &seller, &price}, "SELECT i_id, i_u_id, i_current_price FROM item WHERE i_status = $2 AND i_id >= $1 ORDER BY i_id LIMIT 1", d.item0, auctionWon); err != nil {
		return 0, refusedIfNone(err)
	}
	if err := s.row([]any{&bid, &buyer}, "SELECT ib_id, ib_buyer_id FROM item_max_bid JOIN item_bid ON ib_i_id = imb_i_id AND ib_id = imb_ib_id WHERE imb_i_id = $1", item); err != nil {
		return 0, err
	}
	for _, c := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO item_purchase VALUES ($1, $2, now())", []any{item, bid}},
		{"UPDATE item SET i_status = $2, i_updated = now() WHERE i_id = $1", []any{item, auctionClosed}},
		{"UPDATE useracct_item SET ui_purchased = true WHERE ui_u_id = $2 AND ui_i_id = $1", []any{item, buyer}},
		{"UPDATE useracct SET u_balance = u_balance - $2 WHERE u_id = $1", []any{buyer, price}},
		{"UPDATE useracct SET u_balance = u_balance + $2 WHERE u_id = $1", []any{seller, price}},
	} {
		if err := s.change(c.query, c.args...); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// updateItem changes an item's description while its auction is open. One time in four it removes
// an attribute, if there is one.
func (d deal) updateItem(s steps) (int64, error) {
	var attributes int64
	if err := s.row([]any{&attributes}, "UPDATE item SET i_description = $2, i_updated = now() WHERE i_id = $1 AND i_status = $3 RETURNING i_num_global_attrs", d.item, d.text, auctionOpen); err != nil {
		return 0, refusedIfNone(err)
	}
	if !d.remove || attributes == 0 {
		return 0, nil
	}
	if err := s.change("DELETE FROM item_attribute WHERE ia_i_id = $1 AND ia_id = (SELECT max(ia_id) FROM item_attribute WHERE ia_i_id = $1)", d.item); err != nil {
		return 0, err
	}
	return 0, s.change("UPDATE item SET i_num_global_attrs = i_num_global_attrs - 1 WHERE i_id = $1", d.item)
}

// closeAuctions ends the auctions that are over: the leader has won the item, and must pay. It is
// one statement: bids would abort a long transaction again and again.
func closeAuctions(s steps) (int64, error) {
	_, err := s.tx.Exec(s.ctx, `WITH due AS (SELECT i_id FROM item WHERE i_status = $1 AND i_end_date <= now() ORDER BY i_end_date LIMIT $2),
		over AS (UPDATE item SET i_status = CASE WHEN i_num_bids > 0 THEN $3::int ELSE $4::int END, i_updated = now() FROM due WHERE item.i_id = due.i_id RETURNING item.i_id)
		INSERT INTO useracct_item SELECT ib_buyer_id, ib_i_id, false FROM over JOIN item_max_bid ON imb_i_id = over.i_id JOIN item_bid ON ib_i_id = imb_i_id AND ib_id = imb_ib_id`,
		auctionOpen, closedAtOnce, auctionWon, auctionClosed)
	return 0, err
}
