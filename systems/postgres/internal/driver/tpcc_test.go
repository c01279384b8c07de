package driver

import (
	"testing"

	"assay.dev/assay/systems/postgres/internal/node"
	"assay.dev/assay/systems/postgres/internal/workload"
)

// A crash of the primary under TPC-C loses no acknowledged transaction and breaks no condition of
// the specification. Then the test breaks each condition, one after the other: the check must
// detect it.
func TestPrimaryDiesUnderTPCC(t *testing.T) {
	replicas, status, nodes := pair(t)
	w, err := workload.New("tpcc", workload.Options{Records: 2, ValueSize: 1, Warehouses: 1, Isolation: "serializable"})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, replicas, w)
	s := start(t, replicas, w)
	m := s.crash(t, status, nodes)
	if m["warehousesChecked"] != 1 || m["conditionsViolated"] != 0 {
		t.Errorf("got %v, want one warehouse checked and no condition violated", m)
	}
	for _, kind := range []string{"newOrder", "payment", "orderStatus", "delivery", "stockLevel"} {
		if m[kind+"Committed"] == 0 {
			t.Errorf("no %s committed: %v", kind, m)
		}
	}
	ctx := t.Context()
	conn, err := node.Connect(ctx, replicas)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	const last = "(SELECT max(o_id) FROM orders WHERE o_w_id = 1 AND o_d_id = 1)"
	for _, tc := range []struct{ spoil, mend, want string }{
		{"UPDATE warehouse SET w_ytd = w_ytd + 1", "UPDATE warehouse SET w_ytd = w_ytd - 1", "condition1Violated"},
		{"UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 1", "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 1", "condition2Violated"},
		{"UPDATE new_order SET no_o_id = -no_o_id WHERE no_d_id = 1 AND no_o_id = " + last, "UPDATE new_order SET no_o_id = -no_o_id WHERE no_o_id < 0", "condition3Violated"},
		{"UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 1 AND o_id = " + last, "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 1 AND o_id = " + last, "condition4Violated"},
		{"UPDATE orders SET o_carrier_id = 3 WHERE o_d_id = 1 AND o_id = " + last, "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 1 AND o_id = " + last, "condition5Violated"},
		{"UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 1 THEN 1 ELSE -1 END WHERE o_d_id = 1 AND o_id < 3", "UPDATE orders SET o_ol_cnt = o_ol_cnt - CASE o_id WHEN 1 THEN 1 ELSE -1 END WHERE o_d_id = 1 AND o_id < 3", "condition6Violated"},
		{"UPDATE order_line SET ol_delivery_d = now() WHERE ol_d_id = 1 AND ol_number = 1 AND ol_o_id = " + last, "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_number = 1 AND ol_o_id = " + last, "condition7Violated"},
		{"UPDATE history SET h_w_id = 2 WHERE h_c_id = 1 AND h_d_id = 1", "UPDATE history SET h_w_id = 1 WHERE h_w_id = 2", "condition8Violated"},
		{"UPDATE district SET d_ytd = d_ytd + CASE d_id WHEN 1 THEN 1 ELSE -1 END WHERE d_id < 3", "UPDATE district SET d_ytd = d_ytd - CASE d_id WHEN 1 THEN 1 ELSE -1 END WHERE d_id < 3", "condition9Violated"},
		{"UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1 AND c_id = 1", "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 1", "condition10Violated"},
		{"UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 1", "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1 AND c_id = 1", "condition12Violated"},
	} {
		if _, err := conn.Exec(ctx, tc.spoil); err != nil {
			t.Fatal(err)
		}
		found, err := w.(workload.Auditor).Check(ctx, conn, 7)
		if err != nil || found[tc.want] == 0 || found["conditionsViolated"] == 0 {
			t.Errorf("%s: found %v, %v; want %s", tc.spoil, found, err, tc.want)
		}
		if _, err := conn.Exec(ctx, tc.mend); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := w.(workload.Auditor).Check(ctx, conn, 7); err != nil || found["conditionsViolated"] != 0 {
		t.Errorf("after all was mended: %v, %v", found, err)
	}
}

// Every workload loads, and all of its transactions run.
func TestWorkloadsRun(t *testing.T) {
	replicas, _, _ := pair(t)
	for name, tc := range map[string]struct {
		workload string
		change   func(*workload.Options)
		kinds    []string
	}{
		"ycsb a":    {"ycsb", func(o *workload.Options) { o.Mix = "a" }, []string{"read", "update"}},
		"ycsb b":    {"ycsb", func(o *workload.Options) { o.Mix, o.Zipfian = "b", true }, []string{"read", "update"}},
		"ycsb c":    {"ycsb", func(o *workload.Options) { o.Mix = "c" }, []string{"read"}},
		"ycsb d":    {"ycsb", func(o *workload.Options) { o.Mix, o.Zipfian = "d", true }, []string{"read", "insert"}},
		"ycsb e":    {"ycsb", func(o *workload.Options) { o.Mix, o.Zipfian = "e", true }, []string{"scan", "insert"}},
		"ycsb f":    {"ycsb", func(o *workload.Options) { o.Mix = "f" }, []string{"read", "readModifyWrite"}},
		"retwis":    {"retwis", func(o *workload.Options) { o.Zipfian = true }, []string{"addUser", "follow", "postTweet", "loadTimeline"}},
		"scan rows": {"rows", func(o *workload.Options) { o.Access, o.Rows = "scan", 5 }, []string{"scan"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := workload.Options{Records: 500, ValueSize: 10, Theta: 0.99}
			tc.change(&o)
			w, err := workload.New(tc.workload, o)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := node.Connect(t.Context(), replicas)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			if _, err := conn.Exec(t.Context(), "DROP TABLE IF EXISTS usertable, facts"); err != nil {
				t.Fatal(err)
			}
			fill(t, replicas, w)
			s := start(t, replicas, w)
			if n := s.transact(0, 200); n != 200 {
				t.Errorf("%d of 200 transactions committed", n)
			}
			counters := s.Bye()
			for _, kind := range tc.kinds {
				if counters[kind+"Committed"] == 0 {
					t.Errorf("no %s: %v", kind, counters)
				}
			}
		})
	}
}
