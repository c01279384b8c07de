package importer

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/pequin"
	"assay.dev/assay/operator/internal/cli/session"
)

// run imports a configuration. It returns the YAML and the messages.
func run(t *testing.T, o PequinOptions) (yaml, said string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = Pequin(t.Context(), &session.Session{Out: &out, Err: &errs}, o)
	return out.String(), errs.String(), err
}

// planned is the plan that a configuration becomes.
type planned struct {
	Clients  []int32 // at each point
	Trials   int
	Replicas int32 // of one shard
	Shards   int32
	Window   string // warm-up, window, cool-down
	Links    int
}

// Worked out by hand from the configurations, by the rule of the artifact's instructions and of a
// comment in its configurations: the number of clients is
//
//	min(client_total, num_servers x client_nodes_per_server x client_processes_per_client_node) x client_threads_per_process
//
// The instructions write max where the comment writes min. It is min: they call client_total "the
// upper limit", and the artifact's own results say so. A folder of them ran with client_total 12 to
// 45 on 6 servers with 8 processes for each, 48. At client_total 12 it has 1308 tx/s at 9.45 ms,
// which are 12.4 clients and not 48.
//
// num_servers is the number of server_names. Trials are points times num_experiment_runs, the
// window is client_experiment_length less both ramps.
var byHand = map[string]planned{
	// 9 names x 8 = 72 processes; min(66, 72) x 2 threads. Tapir: 2f+1. 25 - 4 - 6.
	"tapir-bank.json": {[]int32{132}, 1, 3, 12, "4s 15s 6s", 0},
	// 18 names x 7 = 126; min(119, 126) x 3. Basil: 5f+1. 64 - 9 - 11, four runs.
	"basil-runs.json": {[]int32{357}, 4, 6, 3, "9s 44s 11s", 0},
	// 18 x 8 = 144; min(96, 144) x 4.
	"basil-reads.json": {[]int32{384}, 1, 6, 3, "10s 30s 5s", 0},
	// 18 x 5 = 90: min(200, 90) x 1.
	"basil-full.json": {[]int32{90}, 1, 6, 3, "6s 30s 4s", 0},
	// 5 x 25 = 125 processes. fault_tolerance 5 is the number of nodes.
	"nodes.json": {[]int32{12, 24, 36, 48}, 4, 5, 1, "12s 80s 8s", 0},
	// 4 x 8 = 32; threads 1 1 1 2 2 3 of 4 12 28 18 27 21 processes. 3f+1.
	"peloton-seats.json": {[]int32{4, 12, 28, 36, 54, 63}, 6, 4, 1, "10s 30s 10s", 0},
	// threads 1 1 3 of 8 16 13.
	"peloton-tpcc.json": {[]int32{8, 16, 39}, 3, 4, 1, "10s 30s 10s", 0},
	// 6 x 8 = 48: min(70, 48). Three regions, so three links.
	"pesto-wan.json": {[]int32{48}, 1, 6, 1, "10s 35s 10s", 3},
	// min(49, 48) and min(53, 48).
	"pesto-wan-series.json": {[]int32{2, 24, 48, 48, 48}, 5, 6, 1, "10s 35s 10s", 3},
	// 12 x 8 = 96.
	"pesto-shards.json": {[]int32{2, 22, 52, 62}, 4, 6, 2, "10s 35s 10s", 0},
	"pesto-tpcc.json":   {[]int32{12, 16, 24, 28, 32, 36, 44}, 7, 6, 1, "10s 50s 10s", 0},
	// With the outer loop resolved. 24 - 5 - 4.
	"pesto-saved.json": {[]int32{26}, 1, 6, 1, "5s 15s 4s", 0},
	// 18 24 30 36 42 processes of one thread, 27 and 33 of two. 34 - 6 - 4.
	"Pesto-Ranges.json": {[]int32{18, 24, 30, 36, 42, 54, 66}, 7, 6, 1, "6s 24s 4s", 0},
	// One name, as many processes as clients. 60 - 14 - 16.
	"postgres.json": {[]int32{2, 6, 14, 26}, 4, 1, 1, "14s 30s 16s", 0},
	// 2 4 7 7 8 processes of 1 1 2 3 4 threads.
	"postgres-threads.json": {[]int32{2, 4, 14, 21, 32}, 5, 1, 1, "15s 30s 15s", 0},
}

func TestEveryConfigurationPlans(t *testing.T) {
	if len(configurations) != len(byHand) {
		t.Errorf("%d configurations, %d in the table", len(configurations), len(byHand))
	}
	for name := range configurations {
		t.Run(name, func(t *testing.T) {
			file := configFile(t, name)
			yaml, said, err := run(t, PequinOptions{File: file})
			if err != nil {
				t.Fatal(err)
			}
			p, err := check(t.Context(), []byte(yaml))
			if err != nil {
				t.Fatal(err)
			}
			s := p.Spec.Schedule
			got := planned{Trials: p.Trials(), Replicas: p.Points[0].Replicas, Shards: p.Spec.Topology.Shards,
				Window: strings.Join([]string{string(s.WarmUp), string(s.Measure), string(s.CoolDown)}, " "), Links: len(p.Spec.Network.Links)}
			for _, point := range p.Points {
				got.Clients = append(got.Clients, point.Template.Clients.Count)
			}
			if diff := cmp.Diff(byHand[name], got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(said, "Not carried over: settings of the artifact's own scripts") {
				t.Errorf("said on stderr:\n%s", said)
			}
			everyNameIsAccountedFor(t, file, yaml)
		})
	}
}

// everyNameIsAccountedFor looks for every key of the configuration in the written file. The key
// must be in a parameter's doc or in the comment.
func everyNameIsAccountedFor(t *testing.T, file, yaml string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fields := pequin.MappedSettings()
	for _, name := range topLevelNames(t, data) {
		if slices.Contains(fields, name) || strings.HasPrefix(name, "_") {
			continue
		}
		if !strings.Contains(yaml, `"`+name+`"`) && !strings.Contains(yaml, " "+name+",") && !strings.Contains(yaml, " "+name+".") {
			t.Errorf("%s is neither a parameter nor listed", name)
		}
	}
}

// topLevelNames finds the keys by their indentation, without the parser of the importer.
func topLevelNames(t *testing.T, data []byte) []string {
	t.Helper()
	depth, inText, start := 0, false, 0
	var names []string
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			if inText = !inText; inText {
				start = i + 1
			} else if rest := bytes.TrimSpace(data[i+1:]); depth == 1 && rest[0] == ':' {
				names = append(names, string(data[start:i]))
			}
		case inText:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	if len(names) < 50 {
		t.Fatalf("found only %d names", len(names))
	}
	return names
}

func TestImportSaysWhy(t *testing.T) {
	folder := t.TempDir()
	tests := map[string]struct{ in, want string }{
		"no JSON":  {"replication_protocol: pequin", "config.json:1: "},
		"a line":   {"{\n\"replication_protocol\": \"pequin\",\n\"fault_tolerance\": \"1\"}", `config.json:3: fault_tolerance is "1"; it must be a whole number`},
		"a trial":  {`{"replication_protocol": "pequin"}`, "there is no fault_tolerance; it must be a whole number"},
		"too long": {`{"a": "` + strings.Repeat("x", maxFile) + `"}`, "it is no configuration"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(folder, "config.json")
			if err := os.WriteFile(file, []byte(tc.in), 0o600); err != nil {
				t.Fatal(err)
			}
			yaml, _, err := run(t, PequinOptions{File: file})
			if err == nil || !strings.Contains(err.Error(), tc.want) || yaml != "" {
				t.Errorf("error = %v, want one with %q; %d bytes were written", err, tc.want, len(yaml))
			}
		})
	}
	if _, _, err := run(t, PequinOptions{File: filepath.Join(folder, "none.json")}); err == nil {
		t.Error("a file that does not exist is read")
	}
	_, _, err := run(t, PequinOptions{File: configFile(t, onlyConfig), Options: pequin.Options{Name: "Not-A-Name"}})
	if err == nil || !strings.Contains(err.Error(), "would be refused") {
		t.Errorf("error = %v, want a refusal of the name", err)
	}
}

// Parameters keep the spelling of values, also of values that YAML reads as another type.
func TestValuesArriveAsWritten(t *testing.T) {
	const rest = `"replication_protocol": "pg", "benchmark_name": "rw", "fault_tolerance": 0, "server_names": ["a-0"], "client_total": 1, "client_experiment_length": 30, `
	values := map[string]string{`"1e5"`: "1e5", `1e5`: "1e5", `0.10`: "0.10", `"007"`: "007", `"yes"`: "yes", `"null"`: "null", `""`: "", `" a "`: " a ", `"a\nb: c"`: "a\nb: c",
		`-1`: "-1", `9007199254740993`: "9007199254740993", `123456789012345678901234567890`: "123456789012345678901234567890", `"{{.F}}"`: "{{.F}}", `"2024-10-21"`: "2024-10-21",
		`"~"`: "~", `"# no comment"`: "# no comment", `0.75`: "0.75", `-0`: "-0", `true`: "true", `"0x10"`: "0x10", `"1_000"`: "1_000", `"12:30:45"`: "12:30:45", `1.5e-7`: "1.5e-7"}
	for in, want := range values {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte("{"+rest+`"partitioner": `+in+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		yaml, _, err := run(t, PequinOptions{File: file})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		p, err := check(t.Context(), []byte(yaml))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := p.Spec.Workload.Parameters["partitioner"].String(); got != want {
			t.Errorf("%s arrives as %q, want %q", in, got, want)
		}
	}
}

func TestOutputFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.yaml")
	out, said, err := run(t, PequinOptions{File: configFile(t, onlyConfig), Output: file, Options: pequin.Options{Name: "pg", Image: "mine:1"}})
	if err != nil || out != "" || !strings.Contains(said, "Written to "+file) {
		t.Fatalf("error %v, stdout %q, said:\n%s", err, out, said)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte("image: mine:1")) || !bytes.Contains(b, []byte("name: pg\n")) {
		t.Error("name or image are not in the file")
	}
}
