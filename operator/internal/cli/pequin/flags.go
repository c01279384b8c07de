package pequin

import (
	"fmt"
	"slices"
	"strings"
)

// The artifact's scripts make the programs' commands in experiment-scripts/lib/indicus_codebase.py,
// at commit 3f47079c. The tables below have the same content: the setting of each flag, and the
// programs, protocols and benchmarks that have the flag. A setting that is in no table reaches no
// program, neither there nor here. The tables leave out flags that the scripts write and the
// programs do not have (those of morty): with them the programs would end at once.

// flag is a flag of a program, and the setting whose value it gets.
type flag struct{ name, setting string }

// pairs reads a table with a flag and a setting in each line. A flag alone takes the setting of its
// own name.
func pairs(table string) []flag {
	var out []flag
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 0 {
			out = append(out, flag{f[0], f[len(f)-1]})
		}
	}
	return out
}

// prefixed returns flags whose names are a prefix and the name of the setting.
func prefixed(prefix, settings string) []flag {
	var out []flag
	for setting := range strings.FieldsSeq(settings) {
		out = append(out, flag{prefix + setting, setting})
	}
	return out
}

// flags of the two programs.
type flags struct{ server, client []flag }

// rule has the flags of some protocols, or of some benchmarks.
type rule struct {
	of []string // names; nil: all
	flags
}

var (
	smr = []string{"pbft", "hotstuff", "bftsmart", "augustus"}
	bft = slices.Concat([]string{"indicus", "pequin", "pg-smr", "peloton-smr"}, smr)
	// ofBoth are flags that Pesto's server and its client both have.
	ofBoth = "query_eager_exec query_point_eager_exec eager_plus_snapshot query_read_prepared query_cache_read_set query_optimistic_txid " +
		"query_compress_optimistic_txid query_merge_active_at_client use_semantic_cc use_active_read_set sign_client_queries"
	bftBoth = "read_dep sign_messages sign_client_proposals validate_proofs hash_digest verify_deps max_dep_depth sig_batch merkle_branch_factor " +
		"parallel_CCC hyper_threading no_fallback relayP1_timeout all_to_all_fb"
)

// protocolRules has the flags for members of replication_protocol_settings, by protocol. If two
// settings go to one flag, the later one counts, as in the programs.
var protocolRules = []rule{
	{nil, flags{server: pairs("trans_protocol message_transport_type"), client: pairs("trans_protocol message_transport_type")}},
	{bft, flags{
		server: slices.Concat(prefixed("indicus_", bftBoth+" watermark_time_delta rts_mode sig_batch_timeout occ_type read_reply_batch adjust_batch_size shared_mem_batch"),
			prefixed("indicus_", "multi_threading batch_verification mainThreadDispatching dispatchMessageReceive parallel_reads dispatchCallbacks replica_gossip"),
			pairs(`
			indicus_shared_mem_verify shared_mem_batch
			indicus_sig_batch_timeout batch_tout
			indicus_sig_batch         batch_size
			pbft_esig_batch_timeout   ebatch_tout
			pbft_esig_batch           ebatch_size
			hs_dummy_to               dummy_tout
			indicus_use_coordinator   use_coord`)),
		client: slices.Concat(prefixed("indicus_", bftBoth+" read_quorum optimistic_read_quorum read_messages max_consecutive_abstains"),
			prefixed("indicus_", "inject_failure_type inject_failure_proportion inject_failure_ms inject_failure_freq"),
			pairs(`
			indicus_phase1_decision_timeout p1_decision_timeout
			indicus_phase1_decision_timeout p1DecisionTimeout
			indicus_multi_threading         client_multi_threading`)),
	}},
	{[]string{"pequin"}, flags{
		server: prefixed("pequin_", ofBoth+" snapshot_prepared_k force_read_from_snapshot monotonicity_grace non_monotonicity_grace sign_replica_to_replica_sync "+
			"parallel_queries simulate_replica_failure simulate_inconsistency disable_prepare_visibility"),
		client: prefixed("pequin_", ofBoth+" query_sync_quorum query_messages query_merge_threshold query_result_honest sync_messages retry_limit "+
			"simulate_fail_eager_plus_snapshot"),
	}},
	{smr, flags{server: prefixed("pbft_", "order_commit validate_abort"), client: prefixed("pbft_", "order_commit validate_abort")}},
	{[]string{"pg-smr", "peloton-smr"}, flags{server: append(pairs("local_config"), prefixed("pg_", "fake_SMR SMR_mode")...), client: prefixed("pg_", "fake_SMR SMR_mode")}},
	{[]string{"tapir"}, flags{server: pairs("tapir_linearizable strictly_serializable"), client: prefixed("tapir_", "sync_commit")}},
	{[]string{"strong"}, flags{server: pairs("strongmode")}},
	{[]string{"crdb"}, flags{server: prefixed("indicus_", "sign_messages"), client: prefixed("indicus_", "sign_messages")}},
}

// topRules has the flags for settings of the top level, by protocol.
var topRules = []rule{
	{nil, flags{
		server: pairs(`
			protocol replication_protocol
			num_shards
			server_load_time
			debug_stats server_debug_stats
			partitioner`),
		client: pairs(`
			protocol_mode client_protocol_mode
			benchmark     benchmark_name
			num_shards
			debug_stats     client_debug_stats
			message_timeout client_message_timeout
			abort_backoff   client_abort_backoff
			retry_aborted   client_retry_aborted
			max_attempts    client_max_attempts
			max_backoff     client_max_backoff
			delay           client_rand_sleep
			partitioner`),
	}},
	{[]string{"bftsmart", "pg-smr", "peloton-smr"}, flags{server: pairs("bftsmart_codebase_dir"), client: pairs("bftsmart_codebase_dir")}},
	{[]string{"pg"}, flags{server: pairs("pg_replicated"), client: pairs("pg_replicated\nexperiment_name")}},
}

// benchmarkRules has the flags for settings of the top level, by benchmark.
var benchmarkRules = []rule{
	{[]string{"retwis", "rw"}, flags{server: pairs("num_keys client_num_keys")}},
	{[]string{"retwis", "rw", "rw-sql"}, flags{client: pairs("num_keys client_num_keys\nkey_selector client_key_selector\nzipf_coefficient client_zipf_coefficient")}},
	{[]string{"rw", "rw-sql"}, flags{client: pairs("num_ops_txn rw_num_ops_txn\nrw_read_only")}},
	{[]string{"rw-sql"}, flags{
		server: pairs("num_tables\nnum_keys_per_table\nvalue_size\nvalue_categories\nrw_simulate_point_kv"),
		client: pairs("rw_read_only_rate\nrw_secondary_condition\nnum_tables\nnum_keys_per_table\nvalue_size\nvalue_categories\nrw_no_wrap disable_wraparound\n" +
			"fixed_range\nmax_range\npoint_op_freq\nscan_as_point\nscan_as_point_parallel\nrw_simulate_point_kv"),
	}},
	{[]string{"tpcc", "tpcc-sync"}, flags{server: pairs("data_file_path tpcc_data_file_path")}},
	{[]string{"tpcc", "tpcc-sync", "tpcc-sql"}, flags{
		server: pairs("tpcc_num_warehouses"),
		client: pairs("tpcc_num_warehouses\ntpcc_C_c_id tpcc_c_c_id\ntpcc_C_c_last tpcc_c_c_last\ntpcc_stock_level_ratio\ntpcc_delivery_ratio\ntpcc_order_status_ratio\n" +
			"tpcc_payment_ratio\ntpcc_new_order_ratio\ntpcc_run_sequential"),
	}},
	{[]string{"smallbank"}, flags{
		server: pairs("data_file_path smallbank_data_file_path"),
		client: pairs("balance_ratio smallbank_balance_ratio\ndeposit_checking_ratio smallbank_deposit_checking_ratio\ntransact_saving_ratio smallbank_transact_saving_ratio\n" +
			"amalgamate_ratio smallbank_amalgamate_ratio\nwrite_check_ratio smallbank_write_check_ratio\nnum_hotspots smallbank_num_hotspots\n" +
			"num_customers smallbank_num_customers\nhotspot_probability smallbank_hotspot_probability\ncustomer_name_file_path smallbank_customer_name_file_path"),
	}},
	{[]string{"seats-sql", "auctionmark-sql"}, flags{client: pairs("benchbase_scale_factor scale_factor")}},
}

// add collects the flags of the rules for a protocol or benchmark.
func (f *flags) add(rules []rule, name string) {
	for _, r := range rules {
		if r.of == nil || slices.Contains(r.of, name) {
			f.server, f.client = append(f.server, r.server...), append(f.client, r.client...)
		}
	}
}

// programs describes the two programs under one configuration.
type programs struct {
	protocol, top flags // protocol: flags for members of replication_protocol_settings; top: flags for settings of the top level
	sql           bool
}

// programsOf returns the flags that the programs have with a protocol and a benchmark.
func programsOf(protocol, benchmark string, sql bool) programs {
	p := programs{sql: sql}
	p.protocol.add(protocolRules, protocol)
	p.top.add(topRules, protocol)
	p.top.add(benchmarkRules, benchmark)
	if file := (flag{"data_file_path", "benchmark_schema_file_path"}); sql && benchmark != rwSQL {
		p.top.server, p.top.client = append(p.top.server, file), append(p.top.client, file)
	}
	return p
}

// rwSQL is the benchmark whose server makes its data itself. The server also writes a file.
const rwSQL = "rw-sql"

// takes reports whether a program takes the setting.
func (p programs) takes(setting string, protocol bool) bool {
	f := p.top
	if protocol {
		f = p.protocol
	}
	is := func(f flag) bool { return f.setting == setting }
	return slices.ContainsFunc(f.server, is) || slices.ContainsFunc(f.client, is)
}

// arguments returns the flags of a program with their parameters, in the order of the artifact's
// scripts.
func (i *importer) arguments(protocol, top []flag) []string {
	var out []string
	for k, list := range [][]flag{protocol, top} {
		for _, f := range list {
			if f.name == sharedMemVerify && !i.sets("shared_mem_verify") {
				continue
			}
			if name, ok := i.parameter(f.setting, k == 0); ok {
				out = append(out, fmt.Sprintf("--%s={{.Parameters.%s}}", f.name, name))
			} else if v, ok := i.value(f.setting).(string); ok && k == 1 && mapped[f.setting] != "" {
				out = append(out, fmt.Sprintf("--%s=%s", f.name, v))
			}
		}
	}
	return out
}

// sharedMemVerify takes the value of another setting, and only if shared_mem_verify is set. The
// artifact's scripts do the same.
const sharedMemVerify = "indicus_shared_mem_verify"

// sets reports whether the first series has the setting of the protocol.
func (i *importer) sets(setting string) bool {
	settings, ok := i.value("replication_protocol_settings").(*object)
	return ok && slices.Contains(settings.names, setting)
}

// parameter returns the name of the parameter that a setting became. The result is false if the
// setting became none.
func (i *importer) parameter(setting string, protocol bool) (string, bool) {
	k := slices.IndexFunc(i.out.parameters, func(p parameter) bool { return p.setting == setting && p.protocol == protocol })
	if k < 0 {
		return "", false
	}
	return i.out.parameters[k].Name, true
}
