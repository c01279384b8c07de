package importer

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	planner "assay.dev/assay/operator/internal/experiment/plan"
)

// These configurations have other shapes, as some in the artifact, or as people make them by hand.

// keys of a configuration.
type keys = map[string]any

// changed writes the configuration of TPC-C with a change.
func changed(t *testing.T, change func(c keys)) string {
	t.Helper()
	c := keys{}
	if err := json.Unmarshal([]byte(configurations[tpccConfig].text()), &c); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(c, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
	change(c)
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return written(t, tpccConfig, string(b))
}

// settings returns the settings of the protocol in the first series.
func settings(c keys) keys { return c["replication_protocol_settings"].([]any)[0].(keys) }

// fits imports a configuration, checks the written YAML as admission would, and plans it.
func fits(t *testing.T, o PequinOptions) (p *planner.Plan, text, said string) {
	t.Helper()
	text, said, err := run(t, o)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = check(t.Context(), []byte(text)); err != nil {
		t.Fatal(err)
	}
	return p, text, said
}

// The wanted values follow the artifact's scripts: the number of replicas by protocol, the machine
// of each replica, and the defaults of settings.
func TestOtherConfigurationsOfTheArtifact(t *testing.T) {
	tests := map[string]struct {
		change                 func(c keys)
		replicas, shards       int32
		clients                []int32
		trials                 int
		regions                string
		links                  int
		window, workload, said string
	}{
		"as it is": {change: func(keys) {}},
		"PBFT":     {change: func(c keys) { c["replication_protocol"], c["client_protocol_mode"] = []any{"pbft"}, []any{"pbft"} }, replicas: 4, regions: "north 3, south 1"},
		// For protocols without a rule of their own the scripts take 2f+1.
		"Morty":              {change: func(c keys) { c["replication_protocol"] = []any{"morty"} }, replicas: 3},
		"no protocol known":  {change: func(c keys) { c["replication_protocol"] = []any{"janus"} }, replicas: 3, said: `replication_protocol "janus" has no number of replicas of its own in the artifact's scripts; as there, a shard has 2*f+1 = 3`},
		"its shards are not": {change: func(c keys) { c["replication_protocol"], c["num_groups"] = []any{"janus"}, []any{24} }, replicas: 3, shards: 24},
		"fewer machines": {change: func(c keys) { c["replication_protocol"], c["fault_tolerance"] = []any{"janus"}, 3 }, replicas: 6,
			said: "6 server_names for 1 groups are read as 6 replicas in each shard"},
		"without what is optional": {change: func(c keys) {
			for _, name := range []string{"client_nodes_per_server", "server_regions", "region_rtt_latencies", "num_shards", "max_bandwidth", "server_port", "server_load_time", "plots",
				"client_ramp_up", "client_ramp_down", "num_experiment_runs", "server_emulate_wan", "stats_merge_lists", "pin_server_processes", "replication_protocol_settings"} {
				delete(c, name)
			}
			c["experiment_independent_vars"] = []any{[]any{"client_total"}, []any{"client_total"}}
			for _, name := range []string{"replication_protocol", "client_protocol_mode", "num_groups", "server_names"} {
				c[name] = c[name].([]any)[0]
			}
			c["client_processes_per_client_node"], c["client_threads_per_process"] = 8, 1
		}, window: "0s 70s 0s"},
		"without client_total": {change: func(c keys) {
			delete(c, "client_total")
			c["experiment_independent_vars"] = []any{}
			c["client_processes_per_client_node"], c["client_threads_per_process"] = 5, 2
		}, clients: []int32{60}, trials: 1},
		"a run on one machine": {change: func(c keys) { c["run_locally"], c["server_emulate_wan"] = true, true }, said: "run_locally is true, so that server_emulate_wan has no effect"},
		"pings of servers, with neither regions nor their matrix": {change: func(c keys) {
			delete(c, "server_regions")
			delete(c, "region_rtt_latencies")
			names := []any{"a", "b", "c", "d", "e", "f"}
			c["server_names"], c["server_emulate_wan"] = []any{names}, true
			pings := keys{}
			for _, from := range names {
				row := keys{}
				for _, to := range names {
					row[to.(string)] = 10
				}
				pings[from.(string)] = row
			}
			c["server_ping_latencies"] = pings
		}, regions: "a 1, b 1, c 1, d 1, e 1, f 1", links: 21, trials: 7},
		"machines by address": {change: func(c keys) {
			delete(c, "server_regions")
			c["server_names"] = []any{[]any{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"}}
		}, regions: "local 6", said: "all replicas are in one region"},
		"booleans as JSON text":   {change: func(c keys) { settings(c)["query_eager_exec"] = "true" }},
		"a number that overflows": {change: func(c keys) { c["client_rand_sleep"] = json.Number("1e999") }},
		"a long name and a long text": {change: func(c keys) {
			c[strings.Repeat("long_", 200)], c["partitioner"] = 1, strings.Repeat("x", 2000)
			c["ünïcode key"], c["a.b/c d"], c[" "], c["9lives"] = "ä\u2028", 1, 2, 3
		}, said: "partitioner: it is longer than 1024 characters"},
		"a client that is a list at the top": {change: func(c keys) { c["client_nodes_per_server"] = []any{1} }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _, said := fits(t, PequinOptions{File: changed(t, tc.change)})
			if want := stdcmp.Or(tc.replicas, 6); p.Points[0].Replicas != want {
				t.Errorf("%d replicas, want %d", p.Points[0].Replicas, want)
			}
			if want := stdcmp.Or(tc.shards, 1); p.Spec.Topology.Shards != want {
				t.Errorf("%d shards, want %d", p.Spec.Topology.Shards, want)
			}
			var clients []int32
			for _, point := range p.Points {
				clients = append(clients, point.Template.Clients.Count)
			}
			if want := tc.clients; want == nil && len(clients) != 7 || want != nil && !slices.Equal(want, clients) {
				t.Errorf("clients %v, want %v", clients, want)
			}
			if tc.trials > 0 && p.Trials() != tc.trials {
				t.Errorf("%d trials, want %d", p.Trials(), tc.trials)
			}
			var regions []string
			for _, r := range p.Points[0].Template.Topology.Regions {
				regions = append(regions, fmt.Sprintf("%s %d", r.Name, r.Replicas))
			}
			if got := strings.Join(regions, ", "); tc.regions != "" && got != tc.regions {
				t.Errorf("regions %s, want %s", got, tc.regions)
			}
			if len(p.Spec.Network.Links) != tc.links {
				t.Errorf("%d links, want %d", len(p.Spec.Network.Links), tc.links)
			}
			if s := p.Spec.Schedule; tc.window != "" && strings.Join([]string{string(s.WarmUp), string(s.Measure), string(s.CoolDown)}, " ") != tc.window {
				t.Errorf("schedule %v, want %s", s, tc.window)
			}
			if !strings.Contains(said, tc.said) {
				t.Errorf("nothing says %q:\n%s", tc.said, said)
			}
		})
	}
}

// Each benchmark of the artifact's programs, with the settings that only it has.
func TestBenchmarks(t *testing.T) {
	for name, own := range map[string]keys{
		"rw":     {"rw_num_ops_txn": 2, "rw_read_only": false},
		"rw-sql": {"num_tables": 10, "num_keys_per_table": 1000, "max_range": 10, "point_op_freq": 50},
		"retwis": {"client_num_keys": 10, "client_key_selector": "zipf", "client_zipf_coefficient": 0.75},
		"tpcc":   {"tpcc_data_file_path": "/a", "tpcc_run_sequential": true}, "tpcc-sync": {"tpcc_data_file_path": "/a"}, "tpcc-sql": {"tpcc_num_warehouses": 20},
		"smallbank":       {"smallbank_hotspot_probability": 0.9, "smallbank_num_customers": 1000000, "smallbank_customer_name_file_path": "/b"},
		"auctionmark-sql": {"scale_factor": 1}, "seats-sql": {"scale_factor": 2}, "toy": {}, "YCSB_A/zipfian": {"ycsb_record_count": 7}, // no program knows the setting
	} {
		t.Run(name, func(t *testing.T) {
			file := changed(t, func(c keys) {
				maps.DeleteFunc(c, func(name string, _ any) bool { return strings.HasPrefix(name, "tpcc_") })
				c["benchmark_name"] = name
				maps.Copy(c, own)
			})
			p, text, _ := fits(t, PequinOptions{File: file})
			want := strings.NewReplacer("_", "-", "/", "-").Replace(strings.ToLower(name))
			if p.Spec.Workload.Name != want || !strings.Contains(text, "--benchmark="+name) {
				t.Errorf("workload %s, want %s; and the benchmark's own name for the program", p.Spec.Workload.Name, want)
			}
			for setting := range own {
				if known := !strings.HasPrefix(setting, "ycsb"); known != strings.Contains(text, `"`+setting+`"`) || !strings.Contains(text, setting) {
					t.Errorf("%s: a parameter: %t, want %t; else it is listed", setting, !known, known)
				}
			}
		})
	}
}
