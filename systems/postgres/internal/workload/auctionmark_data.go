package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// auctionTables are AuctionMark's, with the columns that a transaction reads or writes.
var auctionTables = []string{
	ledgerTable,
	"CREATE TABLE balances (initial bigint NOT NULL)",
	"CREATE TABLE region (r_id int PRIMARY KEY, r_name text NOT NULL)",
	"CREATE TABLE category (c_id int PRIMARY KEY, c_name text NOT NULL)",
	"CREATE TABLE global_attribute_group (gag_id int PRIMARY KEY, gag_name text NOT NULL)",
	"CREATE TABLE global_attribute_value (gav_id int PRIMARY KEY, gav_gag_id int NOT NULL REFERENCES global_attribute_group, gav_name text NOT NULL)",
	"CREATE TABLE useracct (u_id bigint PRIMARY KEY, u_rating bigint NOT NULL, u_balance bigint NOT NULL, u_comments bigint NOT NULL, u_r_id int NOT NULL REFERENCES region, u_sattrs text NOT NULL)",
	`CREATE TABLE item (i_id bigint PRIMARY KEY, i_u_id bigint NOT NULL REFERENCES useracct, i_c_id int NOT NULL REFERENCES category, i_name text NOT NULL, i_description text NOT NULL,
		i_initial_price bigint NOT NULL, i_current_price bigint NOT NULL, i_num_bids bigint NOT NULL, i_num_images bigint NOT NULL, i_num_global_attrs bigint NOT NULL, i_num_comments bigint NOT NULL,
		i_start_date timestamptz NOT NULL, i_end_date timestamptz NOT NULL, i_status int NOT NULL, i_updated timestamptz NOT NULL)`,
	"CREATE TABLE item_attribute (ia_i_id bigint REFERENCES item, ia_id int, ia_gav_id int NOT NULL REFERENCES global_attribute_value, PRIMARY KEY (ia_i_id, ia_id))",
	"CREATE TABLE item_image (ii_i_id bigint REFERENCES item, ii_id int, ii_path text NOT NULL, PRIMARY KEY (ii_i_id, ii_id))",
	"CREATE TABLE item_comment (ic_i_id bigint REFERENCES item, ic_id bigint, ic_u_id bigint NOT NULL REFERENCES useracct, ic_buyer_id bigint NOT NULL, ic_question text NOT NULL, ic_response text, ic_created timestamptz NOT NULL, PRIMARY KEY (ic_i_id, ic_id))",
	"CREATE TABLE item_bid (ib_i_id bigint REFERENCES item, ib_id bigint, ib_buyer_id bigint NOT NULL REFERENCES useracct, ib_bid bigint NOT NULL, ib_max_bid bigint NOT NULL, ib_created timestamptz NOT NULL, ib_updated timestamptz NOT NULL, PRIMARY KEY (ib_i_id, ib_id))",
	"CREATE TABLE item_max_bid (imb_i_id bigint PRIMARY KEY REFERENCES item, imb_ib_id bigint NOT NULL)",
	"CREATE TABLE item_purchase (ip_i_id bigint PRIMARY KEY REFERENCES item, ip_ib_id bigint NOT NULL, ip_date timestamptz NOT NULL)",
	"CREATE TABLE useracct_item (ui_u_id bigint REFERENCES useracct, ui_i_id bigint REFERENCES item, ui_purchased boolean NOT NULL, PRIMARY KEY (ui_u_id, ui_i_id))",
	"CREATE TABLE useracct_watch (uw_u_id bigint REFERENCES useracct, uw_i_id bigint REFERENCES item, uw_created timestamptz NOT NULL, PRIMARY KEY (uw_u_id, uw_i_id))",
	"CREATE TABLE useracct_feedback (uf_u_id bigint REFERENCES useracct, uf_i_id bigint REFERENCES item, uf_from_id bigint NOT NULL, uf_rating int NOT NULL, uf_created timestamptz NOT NULL, uf_comment text NOT NULL, PRIMARY KEY (uf_u_id, uf_i_id, uf_from_id))",
}

var auctionIndexes = []string{
	"CREATE INDEX ON item (i_u_id)",
	"CREATE INDEX ON item (i_status, i_end_date)",
	"CREATE INDEX ON item (i_status, i_id)",
	"CREATE INDEX ON item_comment (ic_u_id) WHERE ic_response IS NULL",
	"VACUUM ANALYZE",
}

// auctionConditions are ours: AuctionMark has none. They count items, users and cents that do not
// match the bids, comments, feedback, purchases or the ledger.
var auctionConditions = []string{
	"SELECT count(*) FROM item LEFT JOIN (SELECT ib_i_id, count(*) AS n FROM item_bid GROUP BY ib_i_id) b ON ib_i_id = i_id WHERE i_num_bids <> coalesce(n, 0)",
	`SELECT count(*) FROM item LEFT JOIN item_max_bid ON imb_i_id = i_id LEFT JOIN item_bid ON ib_i_id = i_id AND ib_id = imb_ib_id
		LEFT JOIN (SELECT ib_i_id AS of, max(ib_max_bid) AS most FROM item_bid GROUP BY ib_i_id) m ON of = i_id
		WHERE (i_num_bids > 0) <> (ib_id IS NOT NULL) OR i_current_price <> coalesce(ib_bid, i_initial_price) OR ib_bid > ib_max_bid OR ib_max_bid < most`,
	"SELECT count(*) FROM item LEFT JOIN (SELECT ic_i_id, count(*) AS n FROM item_comment GROUP BY ic_i_id) c ON ic_i_id = i_id WHERE i_num_comments <> coalesce(n, 0)",
	"SELECT count(*) FROM useracct LEFT JOIN (SELECT ic_u_id, count(*) AS n FROM item_comment WHERE ic_response IS NULL GROUP BY ic_u_id) c ON ic_u_id = u_id WHERE u_comments <> coalesce(n, 0)",
	"SELECT count(*) FROM useracct LEFT JOIN (SELECT uf_u_id, sum(uf_rating) AS n FROM useracct_feedback GROUP BY uf_u_id) f ON uf_u_id = u_id WHERE u_rating <> coalesce(n, 0)",
	"SELECT abs((SELECT initial FROM balances) + (SELECT coalesce(sum(added), 0) FROM ledger) - (SELECT sum(u_balance) FROM useracct))::bigint",
	fmt.Sprintf(`SELECT count(*) FROM item LEFT JOIN item_purchase ON ip_i_id = i_id LEFT JOIN item_max_bid ON imb_i_id = i_id LEFT JOIN useracct_item ON ui_i_id = i_id
		WHERE (ip_i_id IS NOT NULL) <> (i_status = %[2]d AND i_num_bids > 0) OR (ip_i_id IS NOT NULL AND ip_ib_id <> imb_ib_id)
			OR i_status = %[1]d AND i_num_bids = 0 OR (ui_i_id IS NOT NULL) <> (i_status <> %[3]d AND i_num_bids > 0) OR ui_purchased <> (ip_i_id IS NOT NULL)`, auctionWon, auctionClosed, auctionOpen),
	"SELECT count(*) FROM item LEFT JOIN (SELECT ia_i_id, count(*) AS n FROM item_attribute GROUP BY ia_i_id) a ON ia_i_id = i_id WHERE i_num_global_attrs <> coalesce(n, 0)",
}

// Check counts violations of the conditions.
func (w *auctionMark) Check(ctx context.Context, conn *pgx.Conn, _ int64) (map[string]int64, error) {
	return checkConditions(ctx, conn, auctionConditions)
}

// Load fills the tables. The same number of users gives the same rows, except for the instants,
// which begin now: auctions end while clients run.
func (w *auctionMark) Load(ctx context.Context, conn *pgx.Conn) error {
	for _, statement := range append(auctionTables, fmt.Sprintf("INSERT INTO balances VALUES (%d)", int64(w.Records)*userBalance)) {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	for _, list := range []struct {
		table, prefix string
		n             int
	}{{"region", "r", regions}, {"category", "c", categories}, {"global_attribute_group", "gag", attributes / 10}} {
		if err := load(ctx, conn, nil, list.table, []string{list.prefix + "_id", list.prefix + "_name"}, list.n, func(i int) []any { return []any{i, fmt.Sprint(list.table, " ", i)} }); err != nil {
			return err
		}
	}
	if err := load(ctx, conn, nil, "global_attribute_value", []string{"gav_id", "gav_gag_id", "gav_name"}, attributes, func(i int) []any { return []any{i, i / 10, fmt.Sprint("value ", i)} }); err != nil {
		return err
	}
	for _, fill := range w.rows(time.Now()) {
		if err := load(ctx, conn, nil, fill.table, fill.columns, len(fill.rows), func(i int) []any { return fill.rows[i] }); err != nil {
			return err
		}
	}
	for _, statement := range auctionIndexes {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	violated, err := w.Check(ctx, conn, 0)
	if err == nil && violated["conditionsViolated"] > 0 {
		err = fmt.Errorf("what was loaded breaks conditions: %v", violated)
	}
	return err
}

// filling has the first rows of a table.
type filling struct {
	table   string
	columns []string
	rows    [][]any
}

// rows of users and items, and of all data about them.
func (w *auctionMark) rows(now time.Time) []*filling {
	of := func(table string, columns ...string) *filling { return &filling{table: table, columns: columns} }
	users := of("useracct", "u_id", "u_rating", "u_balance", "u_comments", "u_r_id", "u_sattrs")
	items := of("item", "i_id", "i_u_id", "i_c_id", "i_name", "i_description", "i_initial_price", "i_current_price", "i_num_bids", "i_num_images", "i_num_global_attrs", "i_num_comments", "i_start_date", "i_end_date", "i_status", "i_updated")
	attributed := of("item_attribute", "ia_i_id", "ia_id", "ia_gav_id")
	images := of("item_image", "ii_i_id", "ii_id", "ii_path")
	comments := of("item_comment", "ic_i_id", "ic_id", "ic_u_id", "ic_buyer_id", "ic_question", "ic_created")
	bids := of("item_bid", "ib_i_id", "ib_id", "ib_buyer_id", "ib_bid", "ib_max_bid", "ib_created", "ib_updated")
	highest := of("item_max_bid", "imb_i_id", "imb_ib_id")
	purchases := of("item_purchase", "ip_i_id", "ip_ib_id", "ip_date")
	won := of("useracct_item", "ui_u_id", "ui_i_id", "ui_purchased")
	watched := of("useracct_watch", "uw_u_id", "uw_i_id", "uw_created")
	rng, asked := rand.New(rand.NewPCG(2, 2)), map[int64]int64{}
	for id := range int64(w.items()) {
		i, all := w.itemOf(id), w.bidsOf(id)
		price, comment := i.price, int64(0)
		for n, b := range all {
			bids.add(id, int64(n+1), b.buyer, b.cents, b.most, now, now)
			price = b.cents
		}
		if len(all) > 0 {
			highest.add(id, int64(len(all)))
			watched.add(all[0].buyer, id, now)
			if i.status != auctionOpen {
				won.add(all[len(all)-1].buyer, id, i.purchased)
			}
		}
		if i.purchased {
			purchases.add(id, int64(len(all)), now)
		}
		if i.comment {
			comment = 1
			asked[i.seller]++
			comments.add(id, int64(-1), i.seller, (i.seller+1)%int64(w.Records), words(rng, 60), now)
		}
		attributed.add(id, 0, rng.IntN(attributes))
		images.add(id, 0, words(rng, 60))
		ends := now.Add(-time.Minute) // the end of finished auctions
		if i.status == auctionOpen {
			ends = now.Add(time.Duration(rng.Int64N(int64(longestAuction * 24 * time.Hour / virtualSpeed))))
		}
		items.add(id, i.seller, rng.IntN(categories), words(rng, 40), words(rng, 150), i.price, price, int64(len(all)), int64(1), int64(1), comment, now, ends, i.status, now)
	}
	for id := range int64(w.Records) {
		users.add(id, int64(0), int64(userBalance), asked[id], rng.IntN(regions), words(rng, 100))
	}
	return []*filling{users, items, attributed, images, comments, bids, highest, purchases, won, watched}
}

func (f *filling) add(row ...any) { f.rows = append(f.rows, row) }
