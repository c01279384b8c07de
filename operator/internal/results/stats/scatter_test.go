package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results/stats"
)

// Groups finds trials in a slow mode, and heavy tails. It names normal trials in at most 2% of
// experiments (3%, with the error of 1,000 draws).
func TestGroups(t *testing.T) {
	noises := append([]blockNoise{}, blockNoises...)
	noises = append(noises, blockNoise{"log-normal, σ = 0.1", 0, 0, func(rng *rand.Rand, _ float64) float64 { return math.Exp(0.1 * rng.NormFloat64()) }},
		blockNoise{"half of the trials 50% slower", 0, 0, modes(0.5)})
	sizes := []struct{ points, rounds int }{{1, 6}, {1, 10}, {6, 3}, {6, 5}, {24, 3}, {24, 5}}
	var table strings.Builder
	table.WriteString("| trials |")
	for _, size := range sizes {
		fmt.Fprintf(&table, " %d of %d |", size.rounds, size.points)
	}
	table.WriteString("\n|---" + strings.Repeat("|---", len(sizes)) + "|\n")
	for i, noise := range noises {
		if noise.drift > 0 {
			continue
		}
		fmt.Fprintf(&table, "| %s |", noise.name)
		for _, size := range sizes {
			const experiments = 1000
			rng := rand.New(rand.NewPCG(uint64(i), uint64(100*size.points+size.rounds)))
			seen := 0
			for range experiments {
				if len(stats.Groups(noise.drawPoints(rng, size.points, size.rounds))) > 0 {
					seen++
				}
			}
			share := float64(seen) / experiments
			fmt.Fprintf(&table, " %.0f%% |", 100*share)
			switch {
			case (noise.name == "normal, 4%" || noise.name == "log-normal, σ = 0.1") && share > 0.03:
				t.Errorf("%s, %d points, %d trials: groups are seen in %.1f%%", noise.name, size.points, size.rounds, 100*share)
			case strings.Contains(noise.name, "slower") && size.points > 6 && share < 0.98:
				t.Errorf("%s, %d points, %d trials: groups are seen in %.1f%% only", noise.name, size.points, size.rounds, 100*share)
			}
		}
		table.WriteString("\n")
	}
	inPage(t, "trials in groups", table.String())
}

func TestGroupsNamesPoints(t *testing.T) {
	steady, slow := []float64{100, 101, 99, 102, 98}, []float64{100, 101, 99, 151, 98}
	for name, tc := range map[string]struct {
		samples [][]float64
		want    []int
	}{
		"none":                    {},
		"one point":               {samples: [][]float64{append(slow, 100.5, 99.5, 101.5)}, want: []int{0}},
		"the second":              {samples: [][]float64{steady, slow, steady}, want: []int{1}},
		"all equal":               {samples: [][]float64{{1, 1, 1, 1}, {1, 1, 1, 9}}},
		"too few to say":          {samples: [][]float64{{100, 100.1, 150}}},
		"points of two are not":   {samples: [][]float64{{100, 200}, steady, steady}},
		"zeros and what is below": {samples: [][]float64{{0, 0, 0}, {-1, -2, -9}, steady, steady}},
	} {
		if diff := cmp.Diff(tc.want, stats.Groups(tc.samples)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
