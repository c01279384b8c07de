package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/stats"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// noises of a trial, by what they are called in the page: factors of its latency.
var noises = []struct {
	name string
	draw func(*rand.Rand) float64
}{
	{"normal, 5%", func(r *rand.Rand) float64 { return 1 + 0.05*r.NormFloat64() }},
	{"normal, 10%", func(r *rand.Rand) float64 { return 1 + 0.1*r.NormFloat64() }},
	{"log-normal, σ = 0.1", func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) }},
	{"one trial in ten 50% slower", func(r *rand.Rand) float64 { return slower(r, 0.1) }},
	{"three trials in ten 50% slower", func(r *rand.Rand) float64 { return slower(r, 0.3) }},
}

// slower is a trial that is in a slow mode with a probability, and has noise of 2%.
func slower(r *rand.Rand, probability float64) float64 {
	x := 1 + 0.02*r.NormFloat64()
	if r.Float64() < probability {
		x *= 1.5
	}
	return x
}

// A/A under the rule that ends repetitions: eight points, which are two identical variants at four
// loads, compared at each load. While each point stopped by itself, up to 46% of identical variants
// differed. At most 6% may; of 1200 comparisons the draw alone makes that 7.4%, by two standard
// errors.
func TestIdenticalVariantsAfterStopping(t *testing.T) {
	const experiments, loads, allowed = 300, 4, 7.4
	table := "| repetitions | trials | trials of a point | Welch | by rounds | one model |\n|---|---|---|---|---|---|\n"
	for _, rule := range []struct{ least, most int32 }{{5, 5}, {3, 10}, {3, 30}} {
		set := until(rule.least, rule.most, "5%")
		if rule.least == rule.most {
			set = func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min = rule.least }
		}
		p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2, 3, 4, 5, 6, 7, 8).Set(set))
		for i, noise := range noises {
			if rule.most > 10 && i%2 == 0 { // the longest ones: one of each kind
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(i), uint64(rule.most)))
			rounds, welch, paired, model := 0, 0, 0, 0
			for range experiments {
				points := identical(t, p, rng, noise.draw)
				rounds += len(points[0])
				blocks, ok := stats.NewBlocks(points)
				if !ok {
					t.Fatal("there is no model")
				}
				for load := range loads {
					a, b := points[load], points[load+loads]
					if d := stats.Difference(stats.Aggregate(a), stats.Aggregate(b)); d.Low > 0 || d.High < 0 {
						welch++
					}
					if d, _, err := stats.Paired(a, b); err != nil {
						t.Fatal(err)
					} else if d.Low > 0 || d.High < 0 {
						paired++
					}
					if d := difference(blocks, points, load, load+loads); d.Low > 0 || d.High < 0 {
						model++
					}
				}
			}
			share := func(n int) float64 { return 100 * float64(n) / (experiments * loads) }
			table += fmt.Sprintf("| %s | %s | %.1f | %.1f%% | %.1f%% | %.1f%% |\n", plan.DescribeRepetitions(p.Spec.Repetitions), noise.name,
				float64(rounds)/experiments, share(welch), share(paired), share(model))
			if max(share(welch), share(paired), share(model)) > allowed {
				t.Errorf("%d to %d repetitions, %s: identical variants differ in %.1f%% by Welch's interval, in %.1f%% by rounds, in %.1f%% by one model; at most 6%% may",
					rule.least, rule.most, noise.name, share(welch), share(paired), share(model))
			}
		}
	}
	inPage(t, "identical variants", table)
}

// difference of two points by the model of all.
func difference(b stats.Blocks, points [][]float64, x, y int) stats.Estimate {
	rounds := make([]int32, len(points[x]))
	for k := range rounds {
		rounds[k] = int32(k)
	}
	a, c := stats.Aggregate(points[x]).Mean, stats.Aggregate(points[y]).Mean
	return b.Estimate(a-c, []stats.BlockTerm{{Point: x, Change: a, Rounds: rounds}, {Point: y, Change: -c, Rounds: rounds}})
}

// identical runs an experiment whose points are all the same, and gives the latencies of each. The
// rule is asked after each round, when all trials of it are over.
func identical(t *testing.T, p *plan.Plan, rng *rand.Rand, draw func(*rand.Rand) float64) [][]float64 {
	t.Helper()
	points := make([][]float64, len(p.Points))
	var trials []v1alpha1.Trial
	for round := int32(0); ; round++ {
		for point := range points {
			micros := math.Round(100000 * draw(rng))
			points[point] = append(points[point], micros)
			spec := v1alpha1.TrialSpec{Number: int32(len(trials)), Repetition: round, Point: v1alpha1.Point{Index: int32(point)}}
			trials = append(trials, measured(spec, micros))
		}
		if round+1 < p.Spec.Repetitions.Min {
			continue
		}
		step := plan.Next(p, 1, trials)
		if step.Done {
			return points
		}
		if step.Create == nil || step.Create.Repetition != round+1 {
			t.Fatalf("after round %d: %+v", round, step)
		}
	}
}
