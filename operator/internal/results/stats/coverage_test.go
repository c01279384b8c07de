package stats_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// In 10,000 simulated experiments, the 95% intervals must hold the truth in 93% to 97% (the
// standard deviation of that share is 0.2%). For log-normal data, that share is in the table of the
// documentation only: there is no promise.
func TestCoverageOfTenThousandExperiments(t *testing.T) {
	const experiments = 10000
	draws := map[string]struct {
		next         func(*rand.Rand) float64
		mean, median float64
	}{
		"normal":     {func(rng *rand.Rand) float64 { return 100 + 10*rng.NormFloat64() }, 100, 100},
		"log-normal": {func(rng *rand.Rand) float64 { return math.Exp(0.5 * rng.NormFloat64()) }, math.Exp(0.125), 1},
	}
	rows := map[int]string{}
	for _, distribution := range []string{"normal", "log-normal"} {
		d := draws[distribution]
		for _, n := range []int{3, 5, 10, 30} {
			rng := rand.New(rand.NewPCG(2026, uint64(n)))
			held := map[string]int{}
			expected := 0.0
			for range experiments {
				xs, ys := make([]float64, n), make([]float64, n)
				for i := range xs {
					xs[i], ys[i] = d.next(rng), d.next(rng)
				}
				count(t, held, xs, ys, d.mean, d.median)
				s, err := stats.Summarize(xs)
				if err != nil {
					t.Fatal(err)
				}
				expected = s.Median.Coverage
			}
			share := func(what string) float64 { return float64(held[what]) / experiments }
			t.Logf("%-10s n=%-2d mean %.1f%%, difference %.1f%%, ratio %.1f%%, median %.1f%% (says %.1f%%)", distribution, n,
				100*share("mean"), 100*share("difference"), 100*share("ratio"), 100*share("median"), 100*expected)
			rows[n] += fmt.Sprintf(" %.1f%% | %.1f%% | %.1f%% |", 100*share("mean"), 100*share("difference"), 100*share("ratio"))
			if math.Abs(share("median")-expected) > 0.02 {
				t.Errorf("%s, n=%d: the median's interval holds it in %.1f%%, and says %.1f%%", distribution, n, 100*share("median"), 100*expected)
			}
			if distribution != "normal" {
				continue
			}
			for _, what := range []string{"mean", "difference", "ratio"} {
				if share(what) < 0.93 || share(what) > 0.97 {
					t.Errorf("%s, n=%d: the interval of the %s holds the truth in %.1f%%, want 93%% to 97%%", distribution, n, what, 100*share(what))
				}
			}
		}
	}
	var table strings.Builder
	table.WriteString("| trials | normal: mean | difference | ratio | log-normal (σ = 0.5): mean | difference | ratio |\n|---|---|---|---|---|---|---|\n")
	for _, n := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&table, "| %d |%s\n", n, rows[n])
	}
	inPage(t, "coverage", table.String())
}

// count adds 1 for each interval of two samples of one distribution that holds the truth.
func count(t *testing.T, held map[string]int, xs, ys []float64, mean, median float64) {
	t.Helper()
	a, err := stats.Summarize(xs)
	if err != nil {
		t.Fatal(err)
	}
	b := results.Aggregate{N: len(ys)} // its own interval is not needed, and costs time
	b.Mean, b.StdDev = stat.MeanStdDev(ys, nil)
	d := stats.Difference(a.Aggregate, b)
	r, err := stats.Ratio(a.Aggregate, b)
	if err != nil {
		t.Fatal(err)
	}
	for what, holds := range map[string]bool{
		"mean":       a.Low <= mean && mean <= a.High,
		"median":     a.Median.Low <= median && median <= a.Median.High,
		"difference": d.Low <= 0 && 0 <= d.High,
		"ratio":      !r.Known || r.Low <= 1 && 1 <= r.High, // without an interval nothing is excluded
	} {
		if holds {
			held[what]++
		}
	}
}
