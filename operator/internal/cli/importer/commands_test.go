package importer

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
)

// otherwise lists the flags whose values Assay chooses, with the reasons. The artifact determines
// all others.
var otherwise = map[string]string{
	"config_path": "a file of the pod", "stats_file": "a file of the pod", "indicus_key_path": "a directory of the pod",
	"exp_duration": "the schedule's, which a profile may change", "warmup_secs": "Assay cuts the window out", "cooldown_secs": "Assay cuts the window out",
	"indicus_process_id":      "0 and 1 are the defaults: a pod has one server",
	"indicus_total_processes": "0 and 1 are the defaults: a pod has one server",
}

// structure returns the flags that follow from the configuration's topology and clients, for
// replica 0 of group 0 and client 0 at the first point. The number of hosts is client_total, or
// less if the machines have room for fewer. The number of threads is client_threads_per_process.
func structure(c configuration, hosts int) (server, client map[string]string) {
	shards, threads := fmt.Sprint(c.Shards), fmt.Sprint(c.Threads[0])
	both := func(own map[string]string) map[string]string {
		maps.Copy(own, map[string]string{"--num_shards": shards, "--num_groups": shards, "--num_client_hosts": fmt.Sprint(hosts), "--num_client_threads": threads,
			"--sql_bench": fmt.Sprint(c.SQL), "--store_mode": fmt.Sprint(c.SQL), "--indicus_key_type": "4"})
		return own
	}
	mode := c.Client
	if mode == "" {
		mode = c.Protocol
	}
	return both(map[string]string{"--replica_idx": "0", "--group_idx": "0", "--protocol": c.Protocol}),
		both(map[string]string{"--client_id": "0", "--benchmark": c.Benchmark, "--protocol_mode": mode})
}

// TestCommandsAreThoseOfTheArtifact compares the programs' commands with tables of the commands of
// the artifact's own scripts. make artifact asks the scripts themselves.
func TestCommandsAreThoseOfTheArtifact(t *testing.T) {
	for config, tc := range map[string]struct {
		hosts          int // client processes of the first point
		server, client map[string]string
	}{
		"tapir-bank.json":   {66, nil, nil},
		"basil-runs.json":   {119, map[string]string{"--rw_or_retwis": "true"}, nil},
		"basil-full.json":   {18 * 5, map[string]string{"--rw_or_retwis": "true"}, nil},
		"peloton-tpcc.json": {8, nil, map[string]string{"--tpcc_w_id": "1"}},
		tpccConfig:          {12, nil, map[string]string{"--tpcc_w_id": "1"}},
		// The server writes the data file of rw-sql.
		"pesto-saved.json": {26, map[string]string{"--data_file_path": "/assay/out/rw-sql.json"}, map[string]string{"--data_file_path": "/assay/out/rw-sql.json"}},
		rangeConfig:        {18, map[string]string{"--data_file_path": "/assay/out/rw-sql.json"}, map[string]string{"--data_file_path": "/assay/out/rw-sql.json"}},
		"pesto-wan.json":   {48, nil, map[string]string{"--tpcc_w_id": "1", "--ping_replicas": "true"}},
	} {
		t.Run(config, func(t *testing.T) {
			c := configurations[config]
			server, client := structure(c, tc.hosts)
			for _, r := range tableRows(c.protocol, c.benchmark, clientTable) {
				for flag, into := range map[string]map[string]string{"s " + r.server: server, "c " + r.client: client} {
					if name := flag[2:]; name != "-" {
						into["--"+name] = r.value
					}
				}
			}
			maps.Copy(server, tc.server)
			maps.Copy(client, tc.client)
			got := commandsOf(t, configFile(t, config))
			for program, want := range map[string]map[string]string{"server": server, "client": client} {
				same := maps.Clone(got[program])
				maps.DeleteFunc(same, func(name, _ string) bool { return otherwise[strings.TrimPrefix(name, "--")] != "" })
				if diff := cmp.Diff(want, same); diff != "" {
					t.Errorf("flags of the %s (-the artifact's +ours):\n%s", program, diff)
				}
			}
		})
	}
}

// commandsOf renders the first replica's and the first client's flags at the first point.
func commandsOf(t *testing.T, file string) map[string]map[string]string {
	t.Helper()
	yaml, _, err := run(t, PequinOptions{File: file})
	if err != nil {
		t.Fatal(err)
	}
	p, err := check(t.Context(), []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Decode(t.Context(), bytes.NewReader([]byte(yaml)))
	if err != nil {
		t.Fatal(err)
	}
	spec, system := p.Points[0].Template, set.Systems[p.Spec.Systems[0].Name]
	l := placement.NewLayout("ns", "e-0000-0", &spec, &system)
	for i := range l.Servers {
		l.Servers[i].IP = fmt.Sprintf("192.0.2.%d", i+1)
	}
	for i := range l.Clients {
		l.Clients[i].IP = fmt.Sprintf("198.51.100.%d", i+1)
	}
	trial, err := render.NewTrial(&spec, &system, l)
	if err != nil {
		t.Fatal(err)
	}
	replica, err := trial.Server(l.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	client, err := trial.Client(l.Clients[0])
	if err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer("$i", "0", "$((0 % ", "$((", ">", " ").Replace(client.Directive.Containers[0].Command[2])
	return map[string]map[string]string{
		"server": flagsOf(replica.Directive.Containers[0].Command),
		"client": flagsOf(append(strings.Fields(script), client.Directive.Containers[0].Command[4:]...)),
	}
}

var warehouse = regexp.MustCompile(`--tpcc_w_id=\$\(\(.*`)

// flagsOf are a command's flags.
func flagsOf(command []string) map[string]string {
	out := map[string]string{}
	for _, word := range command {
		if warehouse.MatchString(word) {
			word = "--tpcc_w_id=1" // of client 0
		}
		if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "--") {
			out[name] = value
		}
	}
	return out
}
