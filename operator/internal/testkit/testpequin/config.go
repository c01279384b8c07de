package testpequin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Setting is a member of a configuration. The value is the text of the file.
type Setting struct{ Name, Value string }

// Config is a configuration. An empty field means that the setting is missing.
type Config struct {
	Protocol  string
	Client    string // client_protocol_mode; empty: the same as the protocol
	Benchmark string
	SQL       bool
	F, Shards int
	// Servers are machines, each named after its region and a number: north-0.
	Servers []string
	// Clients, Processes and Threads are parallel lists, a value for each point.
	Clients, Processes, Threads    []int
	Length, RampUp, RampDown, Runs int
	WAN                            bool
	// Protocols are members of replication_protocol_settings, and Top members of the top level.
	Protocols, Top []Setting
	// Resolved: the form that the scripts save beside results, without the outer loop's lists.
	Resolved bool
}

// Names are n machines for each region, region by region.
func Names(n int, regions ...string) []string {
	var out []string
	for _, region := range regions {
		for i := range n {
			out = append(out, fmt.Sprintf("%s-%d", region, i))
		}
	}
	return out
}

// loops are the variables that all configurations sweep: those of the outer loop, and those of the
// inner one.
const loops = `[["replication_protocol", "client_protocol_mode", "server_names", "replication_protocol_settings", "server_regions",
	  "num_shards", "num_groups", "client_total", "client_threads_per_process", "client_processes_per_client_node"],
    ["client_total", "client_processes_per_client_node", "client_threads_per_process"]]`

// aside are settings that no program reads: those of the scripts, of other tools, of former
// programs, and comments. Two of the comments occur twice, as in files that people edit by hand.
var aside = []Setting{
	{"_first note", `"of people to people"`}, {"_first note", "0"}, {"__SECOND note", "true"},
	{"experiment_name", `"made-up"`}, {"codebase_name", `"none"`}, {"project_name", `"nobody"`}, {"emulab_user", `"someone"`},
	{"base_local_exp_directory", `"/nowhere/local"`}, {"base_mounted_fs_path", `"/nowhere/mounted"`}, {"base_remote_bin_directory_nfs", `"/nowhere/bin"`},
	{"base_remote_exp_directory", `"/nowhere/remote"`}, {"bin_directory_name", `"programs"`}, {"out_directory_name", `"written"`}, {"src_directory", `"/nowhere/source"`},
	{"client_bin_name", `"load"`}, {"server_bin_name", `"store"`}, {"client_name_format_str", `"load-%d-%d"`}, {"default_remote_shell", `"sh"`},
	{"client_host_format_str", `"load-%d-%d.%s.%s.example.org"`}, {"server_host_format_str", `"%s.%s.%s.example.org"`}, {"network_config_file_name", `"machines.config"`},
	{"stats_file_name", `"stats.json"`}, {"stats_merge_lists", `["one", "two"]`}, {"make_clean", "true"}, {"make_collect_bins", `["a", "b"]`}, {"make_env", "{}"},
	{"plots", `[{"name": "one", "x_label": "x", "height": 3}]`}, {"cdf_plots", `{"height": 3}`}, {"lot_plots", `{"width": 4}`}, {"plot_directory_name", `"pictures"`},
	{"plot_cdf_x_label", `"x"`}, {"plot_cdf_png_height", "3"}, {"plot_tput_lat_y_label", `"y"`}, {"input_latency_scale", "7"}, {"output_latency_scale", "8"},
	{"client_stats_blacklist", "[]"}, {"client_combine_stats_blacklist", "[]"}, {"pin_server_processes", "[0, 1]"}, {"pin_client_processes", "[2, 3]"},
	{"client_debug_output", "false"}, {"server_debug_output", `"store/*"`}, {"max_file_descriptors", "4321"}, {"rxe_cfg_path", `"/nowhere/rxe"`},
	{"remote_bin_directory_nfs_enabled", "false"}, {"run_locally", "false"}, {"max_retries", "2"}, {"use_master", "false"}, {"master_port", "7302"},
	{"server_rdma_port", "7303"}, {"server_durable", "false"}, {"client_disable_gc", "true"}, {"client_max_processors", "5"}, {"client_cpuprofile", "false"},
}

// ofClients are settings of the client program that all configurations have.
var ofClients = []Setting{
	{"client_abort_backoff", "3"}, {"client_retry_aborted", "true"}, {"client_max_attempts", "-1"}, {"client_max_backoff", "175"}, {"client_rand_sleep", "6"},
	{"client_message_timeout", "9500"}, {"server_debug_stats", "false"}, {"client_debug_stats", "false"},
}

// millis is the round trip between two regions: another number for each pair.
func millis(regions []string, a, b int) int {
	if a == b {
		return 0
	}
	return 10 + 7*(a+b) + len(regions)
}

// protocols are replication_protocol_settings: an object in a list of series.
func (c Config) protocols() string {
	own := make([]string, len(c.Protocols))
	for i, s := range c.Protocols {
		own[i] = fmt.Sprintf("\t  %q : %s", s.Name, s.Value)
	}
	object := "{\n" + strings.Join(own, ",\n") + "\n    }"
	if c.Resolved {
		return object
	}
	return "[\n   " + object + "\n  ]"
}

// JSON is the configuration's text. It is as untidy as files that people edit: tabs beside blanks,
// empty lines, repeated comments.
func (c Config) JSON() string {
	series := func(v any) string { // of the outer loop
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		if c.Resolved {
			return string(b)
		}
		return "[" + string(b) + "]"
	}
	client := c.Client
	if client == "" {
		client = c.Protocol
	}
	var regions []string
	machines := map[string][]string{}
	for _, name := range c.Servers {
		region, _, _ := strings.Cut(name, "-")
		if !slices.Contains(regions, region) {
			regions = append(regions, region)
		}
		machines[region] = append(machines[region], name)
	}
	trips := map[string]map[string]int{}
	for a, from := range regions {
		trips[from] = map[string]int{}
		for b, to := range regions {
			trips[from][to] = millis(regions, a, b)
		}
	}
	matrix, err := json.MarshalIndent(trips, "\t", "  ")
	if err != nil {
		panic(err)
	}
	all := []Setting{
		{"experiment_independent_vars", loops}, {"replication_protocol", series(c.Protocol)}, {"client_protocol_mode", series(client)},
		{"num_shards", series(c.Shards)}, {"num_groups", series(c.Shards)}, {"fault_tolerance", fmt.Sprint(c.F)}, {"benchmark_name", fmt.Sprintf("%q", c.Benchmark)},
		{"server_names", series(c.Servers)}, {"server_regions", series(machines)}, {"region_rtt_latencies", string(matrix)},
		{"server_emulate_wan", fmt.Sprint(c.WAN)}, {"max_bandwidth", `"2gibps"`}, {"server_port", "7301"},
		{"client_total", series(c.Clients)}, {"client_processes_per_client_node", series(c.Processes)}, {"client_threads_per_process", series(c.Threads)},
		{"client_nodes_per_server", "1"}, {"num_experiment_runs", fmt.Sprint(c.Runs)}, {"client_experiment_length", fmt.Sprint(c.Length)},
		{"client_ramp_up", fmt.Sprint(c.RampUp)}, {"client_ramp_down", fmt.Sprint(c.RampDown)}, {"replication_protocol_settings", c.protocols()},
	}
	if c.SQL {
		all = append(all, Setting{"benchmark_type", `"sql_bench"`})
	}
	all = slices.Concat(all, c.Top, ofClients, aside)
	return untidy(all)
}

// untidy writes an object like people who edit by hand.
func untidy(members []Setting) string {
	lines := make([]string, len(members))
	for i, m := range members {
		indent := "  "
		if i%5 == 3 {
			indent = "\n\t"
		}
		lines[i] = fmt.Sprintf("%s%q: %s", indent, m.Name, m.Value)
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n}\n"
}
