package importer

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/placement"
	"assay.dev/assay/operator/internal/render"
)

// otherwise are flags whose value is Assay's to say, and why. All others are the artifact's.
var otherwise = map[string]string{
	"config_path": "a file of the pod", "stats_file": "a file of the pod", "indicus_key_path": "a directory of the pod",
	"exp_duration": "the schedule's, which a profile may change", "warmup_secs": "Assay cuts the window out", "cooldown_secs": "Assay cuts the window out",
	"indicus_process_id":      "0 and 1 are the defaults: a pod has one server",
	"indicus_total_processes": "0 and 1 are the defaults: a pod has one server",
}

// TestCommandsAreThoseOfTheArtifact compares what the programs get with what the artifact's own
// scripts give them: testdata/commands.txt, which systems/pequin/commands.py has written.
func TestCommandsAreThoseOfTheArtifact(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(configs, "../commands.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{} // by configuration and program: flags
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		name, value, _ := strings.Cut(f[2], "=")
		key := f[0] + " " + f[1]
		if want[key] == nil {
			want[key] = map[string]string{}
		}
		want[key][name] = value
	}
	if len(want) != 2*9 {
		t.Fatalf("%d commands, want those of two programs in 9 configurations", len(want))
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		t.Run(key, func(t *testing.T) {
			config, program, _ := strings.Cut(key, " ")
			got := commandsOf(t, config)[program]
			same := func(flags map[string]string) map[string]string {
				maps.DeleteFunc(flags, func(name, _ string) bool { return otherwise[strings.TrimPrefix(name, "--")] != "" })
				return flags
			}
			// rw-sql's server makes the file, and the artifact's path is on the authors' machines.
			if strings.HasPrefix(config, "Uniform") {
				want[key]["--data_file_path"] = "/assay/out/rw-sql.json"
			}
			// The scripts leave out a flag with the programs' own default, and a skew that no
			// uniform choice reads.
			for name, value := range map[string]string{"--indicus_key_type": "4", "--debug_stats": "false", "--rw_or_retwis": "true", "--zipf_coefficient": got["--zipf_coefficient"]} {
				if _, said := want[key][name]; !said && got[name] == value && (name != "--zipf_coefficient" || got["--key_selector"] == "uniform") {
					delete(got, name)
				}
			}
			for name, value := range want[key] {
				want[key][name] = number(value)
			}
			if diff := cmp.Diff(same(want[key]), same(got)); diff != "" {
				t.Errorf("flags (-the artifact's +ours):\n%s", diff)
			}
		})
	}
}

var decimals = regexp.MustCompile(`^(\d+\.\d*?)0+$`)

// number is a value as a configuration writes it: the scripts write 0.9 as 0.900000, and one
// boolean as Python does.
func number(s string) string {
	if s == "False" || s == "True" {
		return strings.ToLower(s)
	}
	return strings.TrimSuffix(decimals.ReplaceAllString(s, "$1"), ".")
}

// commandsOf renders the first replica's and the first client's flags at the first point.
func commandsOf(t *testing.T, config string) map[string]map[string]string {
	t.Helper()
	yaml, _, err := run(t, PequinOptions{File: filepath.Join(configs, config)})
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
