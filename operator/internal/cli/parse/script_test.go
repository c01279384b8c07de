package parse_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/cli/parse"
	"assay.dev/assay/operator/internal/cli/session"
)

// parse once claimed that a System with machines has no results.
func TestScriptResults(t *testing.T) {
	const sweep = "../../../../systems/sweep/system.yaml"
	const several = `apiVersion: assay.dev/v1alpha1
kind: System
metadata: {name: several}
spec:
  machines: [{name: nodes, count: "1", hostnames: m, image: i}]
  script:
    command: [./run.sh]
    results:
      path: ~/results/{policy}-{parts}/out.csv
      axes: [{name: policy}, {name: parts}]
`
	for name, tc := range map[string]struct {
		system, path, output string
		want                 []string
		refused              string
	}{
		"a table": {
			path: "table1.tsv", output: "policy\tshards\tops_per_s\tp50_us\tp99_us\nlock\t1\t1500\t420\t1800\nqueue\t4\t2500.5\t210\t900\n",
			want: []string{"rows: 2", "line 2, policy=lock parts=1\n  Throughput       1500 /s\n  P50Latency       0.42 ms\n  P99Latency       1.8 ms\n", "line 3, policy=queue parts=4\n  Throughput       2500.5 /s\n"},
		},
		"without a column":         {path: "table1.tsv", output: "policy\tshards\tops\tp50_us\tp99_us\nlock\t1\t1500\t420\t1800\n", refused: `has no column "ops_per_s", which is Throughput; its columns are policy, shards, ops, p50_us, p99_us`},
		"a cell that is no number": {path: "table1.tsv", output: "policy\tshards\tops_per_s\tp50_us\tp99_us\nlock\t1\tmany\t420\t1800\n", refused: "table1.tsv:2: "},
		"empty":                    {path: "table1.tsv", refused: "is empty"},
		"one of several files":     {system: several, path: "results/lock-4/out.csv", output: "throughput\n77\n", want: []string{"policy=lock parts=4\n  Throughput       77 /s"}},
		"none of these files":      {system: several, path: "lock/out.csv", output: "throughput\n77\n", refused: "is not one of the files ~/results/{policy}-{parts}/out.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			system := sweep
			if tc.system != "" {
				system = filepath.Join(folder, "system.yaml")
				if err := os.WriteFile(system, []byte(tc.system), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(folder, tc.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tc.output), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := parse.Run(&session.Session{Out: &out}, parse.Options{File: system}, strings.NewReader(""), []string{path})
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("error %v, want one with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}
