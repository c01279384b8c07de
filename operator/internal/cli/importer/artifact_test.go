//go:build artifact

package importer

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/testkit/testpequin"
)

// These tests read a clone of the Pequin artifact that the user names: make artifact SOURCE=CLONE.

// configsOfClone are all configurations of the clone, by path.
func configsOfClone(t *testing.T, clone string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(clone, "experiment-configs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".json") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// list is a value that is a list nested at least so deep, or nil.
func list(v any, depth int) []any {
	l, ok := v.([]any)
	if !ok || nested(v) < depth {
		return nil
	}
	return l
}

func nested(v any) int {
	if l, ok := v.([]any); ok && len(l) > 0 {
		return 1 + nested(l[0])
	}
	return 0
}

// clientsByHand computes the clients of each point of each series by the rule that byHand states.
// It does not use the code of the importer.
func clientsByHand(c keys) [][]int32 {
	number := func(v any) float64 { x, _ := v.(float64); return x }
	series := max(1, len(list(c["client_total"], 2)), len(list(c["server_names"], 2)), len(list(c["client_threads_per_process"], 2)))
	of := func(name string, s, deep int) any { // in series s
		if l := list(c[name], deep+1); l != nil {
			return l[min(s, len(l)-1)]
		}
		return c[name]
	}
	at := func(v any, i int) float64 {
		if l, ok := v.([]any); ok {
			return number(l[min(i, len(l)-1)])
		}
		return number(v)
	}
	var out [][]int32
	for s := range series {
		total, processes, threads := of("client_total", s, 1), of("client_processes_per_client_node", s, 1), of("client_threads_per_process", s, 1)
		servers := len(list(of("server_names", s, 1), 1))
		nodes := 1.
		if n := number(c["client_nodes_per_server"]); n > 0 {
			nodes = n
		}
		var points []int32
		for i := range max(1, len(list(total, 1))) {
			points = append(points, int32(min(at(total, i), float64(servers)*nodes*at(processes, i))*at(threads, i)))
		}
		out = append(out, points)
	}
	return out
}

func TestEveryConfigurationOfAClone(t *testing.T) {
	clone := testpequin.Clone(t, "experiment-configs")
	files := configsOfClone(t, clone)
	if len(files) < 100 {
		t.Fatalf("only %d configurations", len(files))
	}
	bySeries, incomplete := 0, 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := keys{}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if c["replication_protocol"] == nil || c["client_total"] == nil {
			// Such a file only overrides settings of another file. The scripts of the artifact
			// reject it, too.
			if _, _, err := run(t, PequinOptions{File: file}); err == nil {
				t.Errorf("%s lacks the protocol or the clients, and is imported", file)
			}
			incomplete++
			continue
		}
		want := clientsByHand(c)
		imports := func(series int, want []int32) bool {
			o := PequinOptions{File: file}
			o.Series = series
			text, said, err := run(t, o)
			if err != nil {
				if series == 0 && len(clientsByHand(c)) > 1 && strings.Contains(err.Error(), "--series") {
					return false
				}
				t.Errorf("%s: %v", strings.TrimPrefix(file, clone), err)
				return true
			}
			p, err := check(t.Context(), []byte(text))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				return true
			}
			var got []int32
			for _, point := range p.Points {
				got = append(got, point.Template.Clients.Count)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: clients (-by hand +planned):\n%s", strings.TrimPrefix(file, clone), diff)
			}
			if !strings.Contains(said, "Not carried over: settings of the artifact's own scripts") {
				t.Errorf("%s: said on stderr:\n%s", file, said)
			}
			everyNameIsAccountedFor(t, file, text)
			return true
		}
		if !imports(0, slices.Concat(want...)) {
			bySeries++
			for s, points := range want {
				imports(s+1, points)
			}
		}
	}
	t.Logf("%d configurations, %d of them by series; %d others are incomplete, and refused", len(files)-incomplete, bySeries, incomplete)
}

// TestCommandsAreThoseOfAClone runs the scripts of a clone, which need Python with numpy. It
// compares the flags that the scripts and the importer give each program at the first point of each
// configuration.
func TestCommandsAreThoseOfAClone(t *testing.T) {
	clone := testpequin.Clone(t, "experiment-configs", "experiment-scripts")
	files := configsOfClone(t, clone)
	out, err := exec.CommandContext(t.Context(), "python3", append([]string{"testdata/flags.py", filepath.Join(clone, "experiment-scripts")}, files...)...).Output()
	if err != nil {
		t.Fatalf("the clone's scripts: %v (they need python3 with numpy)", err)
	}
	want := map[int]map[string]map[string]string{} // by configuration and program: flags
	refused := map[int]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		number, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatalf("the scripts printed %q", line)
		}
		if f[1] == "error" {
			refused[number] = f[2]
			continue
		}
		if want[number] == nil {
			want[number] = map[string]map[string]string{"server": {}, "client": {}}
		}
		name, value, _ := strings.Cut(f[2], "=")
		want[number][f[1]][name] = value
	}
	compared := 0
	for number, file := range files {
		if refused[number] != "" {
			t.Logf("the clone's own scripts refuse %s: %s", filepath.Base(file), refused[number])
			continue
		}
		compared++
		compareCommands(t, file, want[number])
	}
	if compared < 100 {
		t.Errorf("only %d configurations were compared", compared)
	}
	t.Logf("the flags of %d configurations were compared", compared)
}

func compareCommands(t *testing.T, file string, want map[string]map[string]string) {
	t.Helper()
	commands := commandsOf(t, file)
	for program, want := range want {
		got := commands[program]
		// The server of rw-sql writes the file. The path in the artifact is on the authors'
		// machines.
		if got["--data_file_path"] == "/assay/out/rw-sql.json" {
			want["--data_file_path"] = got["--data_file_path"]
		}
		// The scripts leave out a flag whose value is the default of the program. They also leave
		// out the skew of a uniform choice, which does not read it.
		for name, value := range map[string]string{"--indicus_key_type": "4", "--debug_stats": "false", "--rw_or_retwis": "true", "--zipf_coefficient": got["--zipf_coefficient"]} {
			if _, said := want[name]; !said && got[name] == value && (name != "--zipf_coefficient" || got["--key_selector"] == "uniform") {
				delete(got, name)
			}
		}
		for name, value := range want {
			want[name] = plainNumber(value)
		}
		for _, flags := range []map[string]string{want, got} {
			maps.DeleteFunc(flags, func(name, _ string) bool { return otherwise[strings.TrimPrefix(name, "--")] != "" })
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: flags of the %s (-the artifact's +ours):\n%s", filepath.Base(file), program, diff)
		}
	}
}

var decimals = regexp.MustCompile(`^(\d+\.\d*?)0+$`)

// plainNumber returns a value in the form that a configuration has. The scripts write 0.9 as
// 0.900000, and one boolean as Python does.
func plainNumber(s string) string {
	if s == "False" || s == "True" {
		return strings.ToLower(s)
	}
	return strings.TrimSuffix(decimals.ReplaceAllString(s, "$1"), ".")
}
