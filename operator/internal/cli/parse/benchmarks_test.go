package parse_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/parse"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results/benchmarks"
)

const samples = "../../results/benchmarks/testdata"

// wanted reads the numbers of a .want file, such as: committed 3, P99 4.1.
func wanted(t *testing.T, file string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{}
	names := map[string]string{"committed": "Committed", "aborted": "Aborted", "errors": "Errors", "timeouts": "Timeouts",
		"throughput": "Throughput", "mean": "MeanLatency", "max": "MaxLatency"}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if own, known := names[name]; known {
			name = own
		} else if regexp.MustCompile(`^P[0-9]+$`).MatchString(name) {
			name += "Latency"
		}
		want[name] = x
	}
	return want
}

// compare lists the numbers that differ by more than a share from the wanted numbers.
func compare(t *testing.T, got parse.Reading, want map[string]float64, share float64) {
	t.Helper()
	read := map[string]float64{}
	for _, n := range got.Numbers {
		read[n.Name] = n.Value
	}
	for name, x := range want {
		if y, there := read[name]; !there || math.Abs(x-y) > share*math.Abs(x) {
			t.Errorf("%s is %v (there: %v), want %v", name, y, there, x)
		}
	}
}

// TestTheCookbookReadsEachProgram reads an output of each program with the block that the page has
// for it. It compares every number of the block. The page has the block that kubectl assay new
// writes.
func TestTheCookbookReadsEachProgram(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/guide/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?m)^`--client ([a-z0-9-]+)`\\.(?s:.*?)```yaml\\n# System: spec.clients\\n(?s:(.*?))```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != len(benchmarks.Names()) || len(blocks) < 24 {
		t.Errorf("the page has %d blocks, there are %d programs, and 24 are promised", len(blocks), len(benchmarks.Names()))
	}
	for _, block := range blocks {
		t.Run(block[1], func(t *testing.T) {
			if recipe, _ := benchmarks.Results(block[1]); recipe != block[2] {
				t.Errorf("kubectl assay new writes another block:\n%s", recipe)
			}
			of, err := parse.Decode([]byte(block[2]))
			if err != nil {
				t.Fatal(err)
			}
			if errs := plan.CheckResults(of); len(errs) > 0 {
				t.Fatalf("it would be refused: %v", errs)
			}
			output, err := os.ReadFile(filepath.Join(samples, block[1]+".out"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := parse.Read(of, bytes.NewReader(output), 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			want := wanted(t, filepath.Join(samples, block[1]+".want"))
			compare(t, got, want, shareOf(of))
			allAreCompared(t, of, want)
		})
	}
}

// shareOf is by how much a number may differ, given the digits that a histogram keeps.
func shareOf(of *v1alpha1.ClientResults) float64 {
	if of.Format != v1alpha1.FormatSummary {
		return 1e-3
	}
	return 1e-6
}

// allAreCompared fails if a block has a number without a comparison. Numbers from which counts and
// rates are computed are exempt.
func allAreCompared(t *testing.T, of *v1alpha1.ClientResults, want map[string]float64) {
	t.Helper()
	if of.Summary == nil {
		return
	}
	for _, n := range of.Summary.Numbers {
		name := string(n.Name)
		if _, compared := want[name]; !compared && !slices.Contains([]string{"RunTime", "Ended", "EndedRate", "Answered"}, name) {
			t.Errorf("%s of the block is not compared", name)
		}
	}
}
