package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// noises are random factors of a trial's latency, by their names in the page.
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

// slower returns the factor of a trial that is in a slow mode with a probability, and has noise of
// 2%.
func slower(r *rand.Rand, probability float64) float64 {
	x := 1 + 0.02*r.NormFloat64()
	if r.Float64() < probability {
		x *= 1.5
	}
	return x
}

// This is an A/A test under the rule that ends repetitions: the points are two identical variants
// at several loads, compared at each load. When each point stopped by itself, up to 46% of
// identical variants differed. Without a further round after two points became precise, 6.7%
// differed. At most 6% may. By two standard errors of the draw, that is 6.5% of 10,000 comparisons,
// and 7.4% of 1,200.
func TestIdenticalVariantsAfterStopping(t *testing.T) {
	const allowed = 0.06
	table := "| repetitions | points | trials | trials of a point | comparisons | Welch | by rounds | one model |\n|---|---|---|---|---|---|---|---|\n"
	for _, tc := range []struct {
		least, most int32
		points      int
		noises      []int
		comparisons int
	}{
		{5, 5, 8, []int{0, 1, 2, 3, 4}, 1200},
		{3, 10, 2, []int{0, 1, 2, 3, 4}, 10000},
		{3, 30, 2, []int{1}, 10000},
		{3, 10, 3, []int{0}, 10000},
		{3, 10, 8, []int{0, 1, 2, 3, 4}, 1200},
		{3, 30, 8, []int{1, 3}, 4000},
	} {
		set := until(tc.least, tc.most, "5%")
		if tc.least == tc.most {
			set = func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min = tc.least }
		}
		p := expand(t, builders.Experiment("e").System("basil").Values("clients", manyNumbers(tc.points)...).Set(set))
		for _, i := range tc.noises {
			noise := noises[i]
			rng := rand.New(rand.NewPCG(uint64(i), uint64(tc.most)))
			loads := tc.points / 2
			experiments := tc.comparisons / loads
			var found aa
			for range experiments {
				found.add(t, identical(t, p, rng, noise.draw))
			}
			table += fmt.Sprintf("| %s | %d | %s | %.1f | %d | %s |\n", p.DescribeRepetitions(), tc.points, noise.name,
				float64(found.rounds)/float64(experiments), found.comparisons, strings.Join(found.shares(), " | "))
			atMost := allowed + 2*math.Sqrt(allowed*(1-allowed)/float64(found.comparisons))
			if worst := float64(max(found.welch, found.paired, found.model)) / float64(found.comparisons); worst > atMost {
				t.Errorf("%d to %d repetitions of %d points, %s: identical variants differ in %s by Welch's interval, by rounds, and by one model; at most 6%% may",
					tc.least, tc.most, tc.points, noise.name, strings.Join(found.shares(), ", "))
			}
		}
	}
	inPage(t, "identical variants", table)
}

// aa counts how many comparisons of identical variants find a difference.
type aa struct{ rounds, comparisons, models, welch, paired, model int }

// add compares the first half of the points with the second.
func (c *aa) add(t *testing.T, points [][]float64) {
	t.Helper()
	c.rounds += len(points[0])
	blocks, modelled := stats.NewBlocks(points)
	if modelled != (len(points) >= stats.LeastBlockPoints) {
		t.Fatalf("a model of %d points: %t", len(points), modelled)
	}
	for load := range len(points) / 2 {
		x, y := load, load+len(points)/2
		a, b := points[x], points[y]
		c.comparisons++
		if d := stats.Difference(stats.Aggregate(a), stats.Aggregate(b)); d.Low > 0 || d.High < 0 {
			c.welch++
		}
		if d, _, err := stats.Paired(a, b); err != nil {
			t.Fatal(err)
		} else if d.Low > 0 || d.High < 0 {
			c.paired++
		}
		if !modelled {
			continue
		}
		c.models++
		if d := difference(blocks, points, x, y); d.Low > 0 || d.High < 0 {
			c.model++
		}
	}
}

// shares returns the shares of comparisons that find a difference, by method.
func (c *aa) shares() (cells []string) {
	for _, by := range []struct{ found, of int }{{c.welch, c.comparisons}, {c.paired, c.comparisons}, {c.model, c.models}} {
		if by.of == 0 {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, fmt.Sprintf("%.1f%%", 100*float64(by.found)/float64(by.of)))
	}
	return cells
}

// manyNumbers returns n values of an axis: 1, 2, ...
func manyNumbers(n int) (values []any) {
	for i := range n {
		values = append(values, i+1)
	}
	return values
}

// difference returns the difference between the means of two points, estimated by the model of all
// blocks.
func difference(b stats.Blocks, points [][]float64, x, y int) stats.Estimate {
	rounds := make([]int32, len(points[x]))
	for k := range rounds {
		rounds[k] = int32(k)
	}
	a, c := stats.Aggregate(points[x]).Mean, stats.Aggregate(points[y]).Mean
	return b.Estimate(a-c, []stats.BlockTerm{{Point: x, Change: a, Rounds: rounds}, {Point: y, Change: -c, Rounds: rounds}})
}

// identical runs an experiment with identical points, and returns the latencies of each. It asks
// the rule after each round, when all trials of the round are over.
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
		if round+1 < plan.LeastRepetitions(p.Spec.Repetitions, len(p.Points)) {
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

// A user who continues only while the verdicts do not decide stops optionally. This measures the
// cost, for docs/reference/repetitions.md: two identical variants, five rounds, and five more if no
// difference is found.
func TestIdenticalVariantsWhenContinued(t *testing.T) {
	const experiments, added = 10000, 5
	continued := []int{0, 1, 2, 4, 9}
	rng := rand.New(rand.NewPCG(2026, 14))
	found := make([]int, slices.Max(continued)+1)
	for range experiments {
		var a, b []float64
		for look := range found {
			for range added {
				a, b = append(a, 1+0.05*rng.NormFloat64()), append(b, 1+0.05*rng.NormFloat64())
			}
			d, _, err := stats.Paired(a, b)
			if err != nil {
				t.Fatal(err)
			}
			if d.Low > 0 || d.High < 0 { // these variants stop here, and would have with more looks
				for later := look; later < len(found); later++ {
					found[later]++
				}
				break
			}
		}
	}
	table := "| continued at most | rounds at most | identical variants differ |\n|---|---|---|\n"
	for _, n := range continued {
		table += fmt.Sprintf("| %s | %d | %.1f%% |\n", map[int]string{0: "never", 1: "once"}[n]+map[bool]string{true: fmt.Sprintf("%d times", n)}[n > 1], added*(n+1), 100*float64(found[n])/experiments)
	}
	if share := float64(found[0]) / experiments; share > 0.056 {
		t.Errorf("without continuing, %.1f%% differ", 100*share)
	}
	if share := float64(found[1]) / experiments; share > 0.09 {
		t.Errorf("continued once, %.1f%% differ; the page and the report say 9%% at most", 100*share)
	}
	inPage(t, "continued", table)
}
