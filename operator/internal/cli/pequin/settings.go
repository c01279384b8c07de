package pequin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The import does one of four things with a setting. A field of the Experiment expresses it, or a
// parameter that a program takes. A setting of the artifact's own scripts is left out, and so is a
// setting that reaches no program.

// mapped settings become fields of the Experiment.
var mapped = map[string]string{
	"benchmark_name": "workload.name", "fault_tolerance": "topology.f", "num_groups": "topology.shards", "server_names": "topology.regions",
	"server_regions": "topology.regions", "region_rtt_latencies": "network", "server_emulate_wan": "network", "max_bandwidth": "network",
	"client_experiment_length": "schedule", "client_ramp_up": "schedule.warmUp", "client_ramp_down": "schedule.coolDown",
	"server_ping_latencies": "network", "num_experiment_runs": "repetitions.min", "experiment_independent_vars": "sweep", "replication_protocol_settings": "systems[0].parameters",
	"client_total": "clients", "client_processes_per_client_node": "clients", "client_nodes_per_server": "clients.nodes",
	"benchmark_type": "the programs' commands", "server_port": "replicas.ports",
}

// scripts are settings of the artifact's own scripts. They say where to put files, and how to reach
// machines, build and plot. Assay has its own ways to do so.
var scripts = []string{
	"base_local_exp_directory", "base_mounted_fs_path", "base_remote_bin_directory_nfs", "base_remote_exp_directory", "bin_directory_name",
	"cdf_plots", "client_bin_name", "client_host_format_str", "client_name_format_str", "codebase_name", "default_remote_shell", "emulab_user",
	"experiment_independent_vars_unused", "input_latency_scale", "lot_plots", "make_clean", "make_collect_bins", "make_env", "network_config_file_name",
	"out_directory_name", "output_latency_scale", "plot_directory_name", "plots", "project_name", "remote_bin_directory_nfs_enabled", "run_locally", "rxe_cfg_path",
	"server_bin_name", "server_host_format_str", "src_commit_hash", "src_directory", "stats_file_name", "stats_merge_lists",
}

// around are settings of commands that the artifact's scripts put around the programs' commands:
// taskset, a debugger, a list of sources to trace, limits of the machine.
var around = []string{"pin_server_processes", "pin_client_processes", "server_wrap_command", "client_wrap_command", "server_debug_output", "client_debug_output",
	"max_file_descriptors"}

func ofScripts(name string) bool {
	return slices.Contains(scripts, name) || strings.HasPrefix(name, "plot_") || strings.HasSuffix(name, "_blacklist")
}

// workloadPrefixes and workloadNames are settings of the workload rather than of the system.
var (
	workloadPrefixes = []string{"tpcc", "tpcch", "smallbank", "retwis", "seats", "auctionmark", "rw_", "benchmark_", "scan_", "value_"}
	workloadNames    = []string{"client_key_selector", "client_zipf_coefficient", "client_num_keys", "num_tables", "num_keys_per_table", "point_op_freq",
		"fixed_range", "max_range", "disable_wraparound", "partitioner", "scale_factor"}
)

func ofWorkload(name string) bool {
	return slices.Contains(workloadNames, name) || slices.ContainsFunc(workloadPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Bounds of the API.
const (
	maxWorkloadParameters   = 32
	maxReferenceParameters  = 64
	maxExperimentParameters = 64
	maxParameterText        = 1024
	maxParameterName        = 63
	maxWorkloadName         = 63
	maxPointParameters      = 64
)

// clipped cuts a text to at most so many characters.
func clipped(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most]) + "..."
}

// nameInDoc quotes a setting's name for the doc of a parameter. It cuts long names, since a doc has
// at most 512 characters, and a quoted character may take up ten.
func nameInDoc(name string) string {
	if q := strconv.Quote(name); len(q) <= 400 {
		return q
	}
	return strconv.Quote(clipped(name, 40))
}

// parameter is a setting that the import keeps.
type parameter struct {
	v1alpha1.Parameter
	setting  string // the artifact's name
	value    v1alpha1.Value
	varies   []v1alpha1.Value // by point, where points set it
	protocol bool             // a member of replication_protocol_settings
	workload bool             // declared by the workload
}

// parameters are the kept settings. Each has a name of its own.
type parameters struct {
	list []parameter
	used map[string]bool
}

// keep adds a setting that is a scalar.
func (p *parameters) keep(setting, where string, v any) {
	value, kind, _ := scalar(v)
	p.list = append(p.list, parameter{setting: setting, value: value, Parameter: v1alpha1.Parameter{
		Name: p.name(setting), Type: kind, Doc: where,
	}})
}

// scalar converts a value into that of a parameter. Lists and objects become JSON text.
func scalar(v any) (value v1alpha1.Value, kind v1alpha1.ParameterType, why string) {
	s, kind := "", v1alpha1.ParameterString
	switch v := v.(type) {
	case bool:
		s, kind = text(v), v1alpha1.ParameterBoolean
	case number:
		s, kind = string(v), v1alpha1.ParameterDecimal
		if _, err := strconv.ParseFloat(s, 64); err != nil { // 1e999 is a number in JSON, but no program can read it
			kind = v1alpha1.ParameterString
		} else if !strings.ContainsAny(s, ".eE") && len(s) < 19 {
			kind = v1alpha1.ParameterInteger
		}
	case string:
		s = v
	case nil:
		return value, kind, "it is null"
	default:
		s = text(v)
	}
	if len(s) > maxParameterText {
		return value, kind, fmt.Sprintf("it is longer than %d characters", maxParameterText)
	}
	return v1alpha1.NewValue(s), kind, ""
}

// reserved names have a meaning in an axis of a sweep.
var reserved = []string{"clients", "f", "rate", "shards", "system"}

// name turns relayP1_timeout into relayP1Timeout, and makes it unique.
func (p *parameters) name(setting string) string {
	var b strings.Builder
	up := false
	for _, c := range setting {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' && b.Len() > 0:
			s := string(c)
			if up {
				s = strings.ToUpper(s)
			} else if b.Len() == 0 {
				s = strings.ToLower(s)
			}
			b.WriteString(s)
			up = false
		default:
			up = b.Len() > 0
		}
	}
	name := b.String()
	if name == "" {
		name = "setting"
	}
	name = name[:min(len(name), maxParameterName-4)]
	for i, first := 2, name; p.used[name] || slices.Contains(reserved, name); i++ {
		name = fmt.Sprintf("%s%d", first, i)
	}
	p.used[name] = true
	return name
}

// MappedSettings are the artifact's settings that a field of the Experiment expresses.
func MappedSettings() []string {
	var names []string
	for name := range mapped {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
