//go:build benchmarks

package parse_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/cli/parse"
	"assay.dev/assay/operator/internal/results/benchmarks"
)

// TestRealPrograms reads the output of programs that really ran (hack/bench/programs/run.sh). It
// compares the numbers with those that the programs printed. make test-benchmarks runs it.
func TestRealPrograms(t *testing.T) {
	folder := os.Getenv("BENCHMARK_OUTPUTS")
	files, err := filepath.Glob(filepath.Join(folder, "*.want"))
	if err != nil || len(files) < 12 {
		t.Errorf("%s has outputs of %d programs (%v), and 12 are promised", folder, len(files), err)
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
			want := wanted(t, file)
			compare(t, got, want, shareOf(of))
			allAreCompared(t, of, want)
			t.Logf("%s: %d numbers read, %d compared with the program's own", name, len(got.Numbers), len(want))
		})
	}
}
