package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/testkit/testpequin"
)

// The tables below say which setting each flag of the artifact's server and client takes, as in its
// scripts (experiment-scripts/lib/indicus_codebase.py at 3f47079c). The values are made up, and all
// numbers differ, so that a test notices a flag with the value of another setting. A dash stands
// for no flag.

// basilTable has the settings of protocols that sign messages.
const basilTable = `
setting                  value               server                          client
message_transport_type   udp                 trans_protocol                  trans_protocol
read_dep                 one                 indicus_read_dep                indicus_read_dep
watermark_time_delta     20011               indicus_watermark_time_delta    -
sign_messages            true                indicus_sign_messages           indicus_sign_messages
sign_client_proposals    true                indicus_sign_client_proposals   indicus_sign_client_proposals
validate_proofs          false               indicus_validate_proofs         indicus_validate_proofs
hash_digest              false               indicus_hash_digest             indicus_hash_digest
verify_deps              true                indicus_verify_deps             indicus_verify_deps
max_dep_depth            -7                  indicus_max_dep_depth           indicus_max_dep_depth
rts_mode                 12                  indicus_rts_mode                -
signature_type           2                   indicus_key_type                indicus_key_type
sig_batch                13                  indicus_sig_batch               indicus_sig_batch
sig_batch_timeout        14                  indicus_sig_batch_timeout       -
merkle_branch_factor     15                  indicus_merkle_branch_factor    indicus_merkle_branch_factor
read_reply_batch         true                indicus_read_reply_batch        -
adjust_batch_size        true                indicus_adjust_batch_size       -
shared_mem_batch         true                indicus_shared_mem_batch        -
multi_threading          false               indicus_multi_threading         -
batch_verification       true                indicus_batch_verification      -
mainThreadDispatching    false               indicus_mainThreadDispatching   -
dispatchMessageReceive   true                indicus_dispatchMessageReceive  -
dispatchCallbacks        false               indicus_dispatchCallbacks       -
parallel_reads           false               indicus_parallel_reads          -
parallel_CCC             true                indicus_parallel_CCC            indicus_parallel_CCC
hyper_threading          true                indicus_hyper_threading         indicus_hyper_threading
no_fallback              true                indicus_no_fallback             indicus_no_fallback
all_to_all_fb            true                indicus_all_to_all_fb           indicus_all_to_all_fb
relayP1_timeout          16                  indicus_relayP1_timeout         indicus_relayP1_timeout
replica_gossip           true                indicus_replica_gossip          -
read_quorum              majority            -                               indicus_read_quorum
read_messages            majority            -                               indicus_read_messages
client_multi_threading   true                -                               indicus_multi_threading
p1_decision_timeout      17                  -                               indicus_phase1_decision_timeout
inject_failure_proportion 18                 -                               indicus_inject_failure_proportion
inject_failure_ms        19                  -                               indicus_inject_failure_ms
inject_failure_freq      20                  -                               indicus_inject_failure_freq
inject_failure_type      client-stall        -                               indicus_inject_failure_type
key_path                 /nowhere/keys       -                               -
nobodys_setting          21                  -                               -
`

// pestoTable has the further settings of Pesto.
const pestoTable = `
setting                         value             server                                 client
query_eager_exec                false             pequin_query_eager_exec                pequin_query_eager_exec
query_point_eager_exec          true              pequin_query_point_eager_exec          pequin_query_point_eager_exec
eager_plus_snapshot             false             pequin_eager_plus_snapshot             pequin_eager_plus_snapshot
query_read_prepared             false             pequin_query_read_prepared             pequin_query_read_prepared
query_cache_read_set            true              pequin_query_cache_read_set            pequin_query_cache_read_set
query_optimistic_txid           false             pequin_query_optimistic_txid           pequin_query_optimistic_txid
query_compress_optimistic_txid  true              pequin_query_compress_optimistic_txid  pequin_query_compress_optimistic_txid
query_merge_active_at_client    false             pequin_query_merge_active_at_client    pequin_query_merge_active_at_client
use_semantic_cc                 false             pequin_use_semantic_cc                 pequin_use_semantic_cc
use_active_read_set             false             pequin_use_active_read_set             pequin_use_active_read_set
sign_client_queries             true              pequin_sign_client_queries             pequin_sign_client_queries
snapshot_prepared_k             22                pequin_snapshot_prepared_k             -
force_read_from_snapshot        true              pequin_force_read_from_snapshot        -
monotonicity_grace              23                pequin_monotonicity_grace              -
non_monotonicity_grace          24                pequin_non_monotonicity_grace          -
sign_replica_to_replica_sync    true              pequin_sign_replica_to_replica_sync    -
parallel_queries                false             pequin_parallel_queries                -
simulate_replica_failure        true              pequin_simulate_replica_failure        -
query_sync_quorum               made-up-1         -                                      pequin_query_sync_quorum
query_messages                  made-up-2         -                                      pequin_query_messages
query_merge_threshold           made-up-3         -                                      pequin_query_merge_threshold
query_result_honest             false             -                                      pequin_query_result_honest
sync_messages                   made-up-4         -                                      pequin_sync_messages
retry_limit                     25                -                                      pequin_retry_limit
`

const tapirTable = `
setting                  value    server              client
message_transport_type   udp      trans_protocol      trans_protocol
strictly_serializable    true     tapir_linearizable  -
sync_commit              true     -                   tapir_sync_commit
`

const smrTable = `
setting       value    server         client
fake_SMR      false    pg_fake_SMR    pg_fake_SMR
SMR_mode      26       pg_SMR_mode    pg_SMR_mode
ebatch_tout   27       pbft_esig_batch_timeout   -
ebatch_size   28       pbft_esig_batch           -
dummy_tout    29       hs_dummy_to               -
use_coord     true     indicus_use_coordinator   -
local_config  true     local_config              -
`

// clientTable has the settings that testpequin gives the client in each configuration.
const clientTable = `
setting                  value   server        client
client_abort_backoff     3       -             abort_backoff
client_retry_aborted     true    -             retry_aborted
client_max_attempts      -1      -             max_attempts
client_max_backoff       175     -             max_backoff
client_rand_sleep        6       -             delay
client_message_timeout   9500    -             message_timeout
server_debug_stats       false   debug_stats   -
client_debug_stats       false   -             debug_stats
`

// The settings of the top level, by benchmark.
const (
	rwTable = `
setting                   value     server             client
server_load_time          31        server_load_time   -
client_num_keys           32000     num_keys           num_keys
client_key_selector       zipf      -                  key_selector
client_zipf_coefficient   0.65      -                  zipf_coefficient
rw_num_ops_txn            33        -                  num_ops_txn
rw_read_only              true      -                  rw_read_only
`
	rwSQLTable = `
setting                   value     server                client
server_load_time          34        server_load_time      -
partitioner               made-up   partitioner           partitioner
client_num_keys           35000     -                     num_keys
client_key_selector       uniform   -                     key_selector
client_zipf_coefficient   0.85      -                     zipf_coefficient
rw_num_ops_txn            36        -                     num_ops_txn
rw_read_only              false     -                     rw_read_only
rw_read_only_rate         37        -                     rw_read_only_rate
rw_secondary_condition    true      -                     rw_secondary_condition
num_tables                38        num_tables            num_tables
num_keys_per_table        39        num_keys_per_table    num_keys_per_table
value_size                40        value_size            value_size
value_categories          41        value_categories      value_categories
disable_wraparound        false     -                     rw_no_wrap
fixed_range               false     -                     fixed_range
max_range                 42        -                     max_range
point_op_freq             43        -                     point_op_freq
scan_as_point             true      -                     scan_as_point
scan_as_point_parallel    true      -                     scan_as_point_parallel
rw_simulate_point_kv      true      rw_simulate_point_kv  rw_simulate_point_kv
`
	tpccTable = `
setting                     value                 server                client
server_load_time            44                    server_load_time      -
partitioner                 made-up               partitioner           partitioner
benchmark_schema_file_path  /nowhere/tables.json  data_file_path        data_file_path
tpcc_num_warehouses         45                    tpcc_num_warehouses   tpcc_num_warehouses
tpcc_c_c_id                 46                    -                     tpcc_C_c_id
tpcc_c_c_last               47                    -                     tpcc_C_c_last
tpcc_stock_level_ratio      48                    -                     tpcc_stock_level_ratio
tpcc_delivery_ratio         49                    -                     tpcc_delivery_ratio
tpcc_order_status_ratio     50                    -                     tpcc_order_status_ratio
tpcc_payment_ratio          51                    -                     tpcc_payment_ratio
tpcc_new_order_ratio        52                    -                     tpcc_new_order_ratio
tpcc_run_sequential         true                  -                     tpcc_run_sequential
`
	smallbankTable = `
setting                            value             server             client
server_load_time                   53                server_load_time   -
smallbank_data_file_path           /nowhere/data     data_file_path     -
smallbank_customer_name_file_path  /nowhere/names    -                  customer_name_file_path
smallbank_hotspot_probability      0.35              -                  hotspot_probability
smallbank_balance_ratio            54                -                  balance_ratio
smallbank_deposit_checking_ratio   55                -                  deposit_checking_ratio
smallbank_transact_saving_ratio    56                -                  transact_saving_ratio
smallbank_amalgamate_ratio         57                -                  amalgamate_ratio
smallbank_write_check_ratio        58                -                  write_check_ratio
smallbank_num_hotspots             59                -                  num_hotspots
smallbank_num_customers            60                -                  num_customers
`
	seatsTable = `
setting                     value                 server                client
server_load_time            61                    server_load_time      -
benchmark_schema_file_path  /nowhere/seats.json   data_file_path        data_file_path
scale_factor                62                    -                     benchbase_scale_factor
`
)

// tableRow is a line of a table.
type tableRow struct{ setting, value, server, client string }

func tableRows(tables ...string) []tableRow {
	var out []tableRow
	for line := range strings.Lines(strings.Join(tables, "")) {
		if f := strings.Fields(line); len(f) == 4 && f[0] != "setting" {
			out = append(out, tableRow{f[0], f[1], f[2], f[3]})
		}
	}
	return out
}

// settingsOf returns the settings of tables in the form of a configuration.
func settingsOf(tables ...string) []testpequin.Setting {
	var out []testpequin.Setting
	for _, r := range tableRows(tables...) {
		value := r.value
		if number := strings.Trim(value, "-0123456789.") == ""; !number && value != "true" && value != "false" {
			value = fmt.Sprintf("%q", value)
		}
		out = append(out, testpequin.Setting{Name: r.setting, Value: value})
	}
	return out
}

// configuration is made by tests, from the tables of its settings.
type configuration struct {
	testpequin.Config
	protocol, benchmark string
}

func (c configuration) text() string {
	c.Protocols, c.Top = settingsOf(c.protocol), settingsOf(c.benchmark)
	return c.JSON()
}

func ones(n int) []int   { return times(1, n) }
func eights(n int) []int { return times(8, n) }

func times(x, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = x
	}
	return out
}

var (
	twoRegions   = testpequin.Names(3, "north", "south")
	threeRegions = testpequin.Names(2, "north", "south", "east")
	sixRegions   = testpequin.Names(3, "north", "south", "east", "west", "middle", "edge")
)

// configurations by file name. They have the shapes of the artifact's configurations: one point and
// many, one region and six, shards that share machines. Some have more clients than the machines
// have room for, tables and keys, with and without an emulated WAN. One has the form that is saved
// beside results.
var configurations = map[string]configuration{
	"tapir-bank.json": {testpequin.Config{Protocol: "tapir", Client: "txn-l", Benchmark: "smallbank", F: 1, Shards: 12, Servers: testpequin.Names(3, "north", "south", "east"),
		Clients: []int{66}, Processes: []int{8}, Threads: []int{2}, Length: 25, RampUp: 4, RampDown: 6, Runs: 1}, tapirTable, smallbankTable},
	"basil-runs.json": {testpequin.Config{Protocol: "indicus", Benchmark: "rw", F: 1, Shards: 3, Servers: sixRegions,
		Clients: []int{119}, Processes: []int{7}, Threads: []int{3}, Length: 64, RampUp: 9, RampDown: 11, Runs: 4}, basilTable, rwTable},
	"basil-reads.json": {testpequin.Config{Protocol: "indicus", Benchmark: "rw", F: 1, Shards: 3, Servers: sixRegions,
		Clients: []int{96}, Processes: []int{8}, Threads: []int{4}, Length: 45, RampUp: 10, RampDown: 5, Runs: 1}, basilTable, rwTable},
	"basil-full.json": {testpequin.Config{Protocol: "indicus", Benchmark: "rw", F: 1, Shards: 3, Servers: sixRegions,
		Clients: []int{200}, Processes: []int{5}, Threads: []int{1}, Length: 40, RampUp: 6, RampDown: 4, Runs: 1}, basilTable, rwTable},
	"nodes.json": {testpequin.Config{Protocol: "crdb", Benchmark: "tpcc-sql", SQL: true, F: 5, Shards: 1, Servers: testpequin.Names(5, "north"),
		Clients: []int{12, 24, 36, 48}, Processes: times(25, 4), Threads: ones(4), Length: 100, RampUp: 12, RampDown: 8, Runs: 1}, basilTable, tpccTable},
	"peloton-seats.json": {testpequin.Config{Protocol: "peloton-smr", Benchmark: "seats-sql", SQL: true, F: 1, Shards: 1, Servers: append(testpequin.Names(3, "north"), "south-0"),
		Clients: []int{4, 12, 28, 18, 27, 21}, Processes: eights(6), Threads: []int{1, 1, 1, 2, 2, 3}, Length: 50, RampUp: 10, RampDown: 10, Runs: 1}, basilTable + smrTable, seatsTable},
	"peloton-tpcc.json": {testpequin.Config{Protocol: "peloton-smr", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 1, Servers: append(testpequin.Names(3, "north"), "south-0"),
		Clients: []int{8, 16, 13}, Processes: eights(3), Threads: []int{1, 1, 3}, Length: 50, RampUp: 10, RampDown: 10, Runs: 1}, basilTable + smrTable, tpccTable},
	"pesto-wan.json": {testpequin.Config{Protocol: "pequin", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 1, Servers: threeRegions, WAN: true,
		Clients: []int{70}, Processes: []int{8}, Threads: []int{1}, Length: 55, RampUp: 10, RampDown: 10, Runs: 1}, basilTable + pestoTable, tpccTable},
	"pesto-wan-series.json": {testpequin.Config{Protocol: "pequin", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 1, Servers: threeRegions, WAN: true,
		Clients: []int{2, 24, 48, 49, 53}, Processes: eights(5), Threads: ones(5), Length: 55, RampUp: 10, RampDown: 10, Runs: 1}, basilTable + pestoTable, tpccTable},
	"pesto-shards.json": {testpequin.Config{Protocol: "pequin", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 2, Servers: testpequin.Names(3, "north", "south", "east", "west"),
		Clients: []int{2, 22, 52, 62}, Processes: eights(4), Threads: ones(4), Length: 55, RampUp: 10, RampDown: 10, Runs: 1}, basilTable + pestoTable, tpccTable},
	tpccConfig: {testpequin.Config{Protocol: "pequin", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 1, Servers: twoRegions,
		Clients: []int{12, 16, 24, 28, 32, 36, 44}, Processes: eights(7), Threads: ones(7), Length: 70, RampUp: 10, RampDown: 10, Runs: 1}, basilTable + pestoTable, tpccTable},
	"pesto-saved.json": {testpequin.Config{Protocol: "pequin", Benchmark: "rw-sql", SQL: true, F: 1, Shards: 1, Servers: twoRegions, Resolved: true,
		Clients: []int{26}, Processes: []int{8}, Threads: []int{1}, Length: 24, RampUp: 5, RampDown: 4, Runs: 1}, basilTable + pestoTable, rwSQLTable},
	rangeConfig: {testpequin.Config{Protocol: "pequin", Benchmark: "rw-sql", SQL: true, F: 1, Shards: 1, Servers: twoRegions,
		Clients: []int{18, 24, 30, 36, 42, 27, 33}, Processes: eights(7), Threads: []int{1, 1, 1, 1, 1, 2, 2}, Length: 34, RampUp: 6, RampDown: 4, Runs: 1}, basilTable + pestoTable, rwSQLTable},
	onlyConfig: {testpequin.Config{Protocol: "pg", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 1, Servers: testpequin.Names(1, "north"),
		Clients: []int{2, 6, 14, 26}, Processes: []int{2, 6, 14, 26}, Threads: ones(4), Length: 60, RampUp: 14, RampDown: 16, Runs: 1}, "", tpccTable},
	"postgres-threads.json": {testpequin.Config{Protocol: "pg", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 1, Servers: append(testpequin.Names(3, "north"), "south-0"),
		Clients: []int{2, 4, 7, 7, 8}, Processes: eights(5), Threads: []int{1, 1, 2, 3, 4}, Length: 60, RampUp: 15, RampDown: 15, Runs: 1}, "", tpccTable},
}

// Configurations that several tests use.
const (
	tpccConfig  = "pesto-tpcc.json"
	rangeConfig = "Pesto-Ranges.json"
	onlyConfig  = "postgres.json"
)

// configFile writes one of the configurations.
func configFile(t *testing.T, name string) string {
	t.Helper()
	c, ok := configurations[name]
	if !ok {
		t.Fatalf("there is no configuration %s", name)
	}
	return written(t, name, c.text())
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
