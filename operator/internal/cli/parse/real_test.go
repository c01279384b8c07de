//go:build benchmarks

package parse_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/benchmarks"
	"assay.dev/assay/operator/internal/cli/parse"
)

// TestRealPrograms compares what is read from programs that were run (hack/bench/programs.sh) with
// the programs' own numbers. It runs by make test-benchmarks.
func TestRealPrograms(t *testing.T) {
	folder := os.Getenv("BENCHMARK_OUTPUTS")
	files, err := filepath.Glob(filepath.Join(folder, "*.want"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no output of a program (%v)", folder, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".want")
		t.Run(name, func(t *testing.T) {
			recipe, known := benchmarks.Results(name)
			if !known {
				t.Fatal("the cookbook does not have it")
			}
			of, err := parse.Decode([]byte(recipe))
			if err != nil {
				t.Fatal(err)
			}
			output, err := os.Open(filepath.Join(folder, name+".out"))
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close()
			got, err := parse.Read(of, output, 0)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, wanted(t, file), 1e-6)
			t.Logf("%d numbers read, %d compared", len(got.Numbers), len(wanted(t, file)))
		})
	}
}
