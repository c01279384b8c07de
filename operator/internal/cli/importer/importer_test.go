package importer

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/pequin"
)

const configs = "../../pequin/testdata/configs"

// run imports a configuration and returns the YAML and what was said.
func run(t *testing.T, o PequinOptions) (yaml, said string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = Pequin(t.Context(), &session.Session{Out: &out, Err: &errs}, o)
	return out.String(), errs.String(), err
}

// planned is what a configuration plans to.
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
// upper limit", and the artifact's own results say so. Uniform-Failure-2 ran with client_total 12
// to 45 on 6 servers with 8 processes for each, 48; at client_total 12 it has 1308 tx/s at 9.45 ms,
// which are 12.4 clients and not 48.
//
// num_servers is the number of server_names. Trials are points times num_experiment_runs, the
// window is client_experiment_length less both ramps.
var byHand = map[string]planned{
	// 9 names x 8 = 72 processes; min(71, 72) x 2 threads. Tapir: 2f+1.
	"Tapir-Smallbank.json": {[]int32{142}, 1, 3, 24, "5s 20s 5s", 0},
	// 18 names x 7 = 126; min(115, 126) x 3. Basil: 5f+1.
	"Indicus-30-3.json": {[]int32{345}, 3, 6, 3, "15s 40s 15s", 0},
	"Indicus-90-2.json": {[]int32{345}, 1, 6, 3, "5s 20s 5s", 0},
	// 18 x 8 = 144; min(140, 144) x 3.
	"f+1.json": {[]int32{420}, 1, 6, 3, "5s 30s 5s", 0},
	// min(110, 144) x 3.
	"3-Indicus-RW-U.json": {[]int32{330}, 1, 6, 3, "10s 25s 10s", 0},
	// min(140, 144) x 3, and 18 x 7 = 126: min(115, 126) x 4.
	"Indicus_16_FP_OFF.json": {[]int32{420}, 1, 6, 3, "5s 30s 5s", 0},
	"Indicus_16_FP_ON.json":  {[]int32{460}, 1, 6, 3, "5s 30s 5s", 0},
	// 18 x 6 = 108; min(108, 108) x 1. The ramps differ: 45 - 10 - 5.
	"Indicus_4.json": {[]int32{108}, 1, 6, 3, "10s 30s 5s", 0},
	// 5 x 40 = 200 processes. fault_tolerance 5 is the number of nodes.
	"CRDB-TPCC-SQL-5s.json": {[]int32{30, 40, 50, 60, 70, 80, 90}, 7, 5, 1, "20s 95s 5s", 0},
	// 4 x 8 = 32; threads 1 1 1 1 2 2 3 3 4 of 5 10 15 30 20 30 24 30 25 processes.
	"Peloton-BFTSMART-Seats.json": {[]int32{5, 10, 15, 30, 40, 60, 72, 90, 100}, 9, 4, 1, "15s 30s 15s", 0},
	// threads 1 1 1 2 2 2 3 of 10 20 30 20 25 30 24.
	"Peloton-HS-TPCC-20wh.json": {[]int32{10, 20, 30, 40, 50, 60, 72}, 7, 4, 1, "15s 30s 15s", 0},
	// 6 x 8 = 48: min(60, 48). Three regions, so three links.
	"Pequin-TPCC-SQL-CON-20wh.json": {[]int32{48}, 1, 6, 1, "15s 30s 15s", 3},
	// 12 x 8 = 96.
	"Pequin-TPCC-SQL-20wh-2s.json": {[]int32{1, 10, 20, 30, 40, 45, 50, 55, 60}, 9, 6, 2, "15s 30s 15s", 0},
	"Pequin-TPCC-SQL-20wh.json":    {[]int32{10, 15, 20, 30, 35, 40, 45}, 7, 6, 1, "15s 30s 15s", 0},
	// min(50, 48) and min(55, 48).
	"Pequin-TPCC-SQL-REG-20wh.json": {[]int32{1, 10, 20, 30, 35, 40, 45, 48, 48}, 9, 6, 1, "15s 30s 15s", 3},
	// Saved by the artifact beside its results, with the outer loop resolved. 20 - 5 - 5.
	"Uniform-Eager-0.json": {[]int32{30}, 1, 6, 1, "5s 10s 5s", 0},
	// 20 25 30 35 40 45 processes of one thread, 25 and 30 of two. 30 - 5 - 5.
	"Uniform-Failure-2.json": {[]int32{20, 25, 30, 35, 40, 45, 50, 60}, 8, 6, 1, "5s 20s 5s", 0},
	"Uniform-NoFP.json":      {[]int32{5, 10, 15, 20, 25, 30, 40, 45}, 8, 6, 1, "15s 30s 15s", 0},
	"Zipf-Failure-0.json":    {[]int32{5, 8, 12, 16, 20, 25, 30}, 7, 6, 1, "15s 30s 15s", 0},
	// One name, as many processes as clients.
	"PG-TPCC.json": {[]int32{1, 5, 10, 20, 30, 40, 50, 60, 70}, 9, 1, 1, "15s 30s 15s", 0},
	// 1 3 5 8 6 8 8 7 8 processes of 1 1 1 1 2 2 3 4 4 threads.
	"Postgres-TPCC-20wh.json": {[]int32{1, 3, 5, 8, 12, 16, 24, 28, 32}, 9, 1, 1, "15s 30s 15s", 0},
}

func TestEveryConfigurationPlans(t *testing.T) {
	files, err := filepath.Glob(configs + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(byHand) {
		t.Errorf("%d configurations, %d in the table", len(files), len(byHand))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
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
			if diff := cmp.Diff(byHand[filepath.Base(file)], got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(said, "Not carried over: settings of the artifact's own scripts") {
				t.Errorf("said on stderr:\n%s", said)
			}
			everyNameIsAccountedFor(t, file, yaml)
		})
	}
}

// everyNameIsAccountedFor looks for every key of the configuration in the file that was written: as
// a parameter's doc, or in the comment.
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

// topLevelNames finds them by their indentation: an independent, rougher reader.
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
	_, _, err := run(t, PequinOptions{File: configs + "/PG-TPCC.json", Options: pequin.Options{Name: "Not-A-Name"}})
	if err == nil || !strings.Contains(err.Error(), "would be refused") {
		t.Errorf("error = %v, want a refusal of the name", err)
	}
}

// Values arrive as they are written, whatever YAML takes them for.
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
	out, said, err := run(t, PequinOptions{File: configs + "/PG-TPCC.json", Output: file, Options: pequin.Options{Name: "pg", Image: "mine:1"}})
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
