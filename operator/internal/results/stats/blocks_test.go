package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// blockNoise draws a trial of a point: its share of the point's mean.
type blockNoise struct {
	name string
	// vary is how much the points' own deviations differ: the standard deviation of their
	// logarithm.
	vary float64
	// drift of machines in one round, as a share.
	drift float64
	draw  func(*rand.Rand, float64) float64
}

func normalNoise(rng *rand.Rand, deviation float64) float64 { return 1 + deviation*rng.NormFloat64() }

// modes is a trial that is in a slow mode with a probability.
func modes(probability float64) func(*rand.Rand, float64) float64 {
	return func(rng *rand.Rand, _ float64) float64 {
		x := 1 + 0.02*rng.NormFloat64()
		if rng.Float64() < probability {
			x *= 1.5
		}
		return x
	}
}

var blockNoises = []blockNoise{
	{"normal, 4%", 0, 0, normalNoise},
	{"the same, machines drift by 3% a round", 0, 0.03, normalNoise},
	{"the same, deviations of points differ (σ = 0.3)", 0.3, 0, normalNoise},
	{"the same, deviations of points differ (σ = 0.6)", 0.6, 0, normalNoise},
	{"log-normal, σ = 1", 0, 0, func(rng *rand.Rand, _ float64) float64 { return math.Exp(rng.NormFloat64()) }},
	{"log-normal, σ = 0.5", 0, 0, func(rng *rand.Rand, _ float64) float64 { return math.Exp(0.5 * rng.NormFloat64()) }},
	{"one trial in ten 50% slower", 0, 0, modes(0.1)},
	{"three trials in ten 50% slower", 0, 0, modes(0.3)},
}

// drawPoints makes n rounds of points that have the same mean.
func (b blockNoise) drawPoints(rng *rand.Rand, points, n int) [][]float64 {
	samples, speed := make([][]float64, points), make([]float64, n)
	for k := range speed {
		speed[k] = b.drift * rng.NormFloat64()
		if k > 0 {
			speed[k] += speed[k-1]
		}
	}
	for p := range samples {
		deviation := 0.04 * math.Exp(b.vary*rng.NormFloat64())
		for k := range n {
			samples[p] = append(samples[p], 1000*(1+speed[k])*b.draw(rng, deviation))
		}
	}
	return samples
}

// blockTerm is the first-order term of the mean of a point, times change.
func blockTerm(samples [][]float64, point int, sign float64) stats.BlockTerm {
	t := stats.BlockTerm{Point: point, Change: sign * stats.Aggregate(samples[point]).Mean}
	for k := range samples[point] {
		t.Rounds = append(t.Rounds, int32(k))
	}
	return t
}

// calls is how often two identical points are called different, by the model and by Welch, and how
// wide the intervals are in all.
type calls struct {
	comparisons, model, welch  int
	widthOfModel, widthOfWelch float64
}

func (c *calls) compare(b stats.Blocks, samples [][]float64, x, y int) {
	one := func(e stats.Estimate, called *int, width *float64) {
		*width += e.High - e.Low
		if e.Low > 0 || e.High < 0 {
			*called++
		}
	}
	c.comparisons++
	w := stats.Difference(stats.Aggregate(samples[x]), stats.Aggregate(samples[y]))
	one(w, &c.welch, &c.widthOfWelch)
	one(b.Estimate(w.Value, []stats.BlockTerm{blockTerm(samples, x, 1), blockTerm(samples, y, -1)}), &c.model, &c.widthOfModel)
}

// One model of all points has rounds as blocks. Identical variants differ in at most 6%, and the
// interval of three trials of 24 points is at most 0.7 of Welch's. With 4,500 comparisons, chance
// alone may make 6% into 6.7% (two standard errors).
func TestBlocksAA(t *testing.T) {
	const experiments, comparisons, allowed = 1500, 3, 6.7
	var table strings.Builder
	table.WriteString("| trials | points | rounds | the model | Welch | width of the model's interval by Welch's |\n|---|---|---|---|---|---|\n")
	for i, noise := range blockNoises {
		for _, size := range []struct{ points, rounds int }{{24, 3}, {24, 5}, {6, 3}, {6, 10}} {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(size.points*size.rounds)))
			var c calls
			for range experiments {
				samples := noise.drawPoints(rng, size.points, size.rounds)
				b, ok := stats.NewBlocks(samples)
				if !ok {
					t.Fatal("there is no model")
				}
				for k := range comparisons {
					c.compare(b, samples, 2*k, 2*k+1)
				}
			}
			share := func(n int) float64 { return 100 * float64(n) / float64(c.comparisons) }
			fmt.Fprintf(&table, "| %s | %d | %d | %.1f%% | %.1f%% | %.2f |\n", noise.name, size.points, size.rounds, share(c.model), share(c.welch), c.widthOfModel/c.widthOfWelch)
			if share(c.model) > allowed {
				t.Errorf("%s, %d points, %d rounds: %.1f%% of identical variants differ", noise.name, size.points, size.rounds, share(c.model))
			}
			if i == 0 && size.points == 24 && size.rounds == 3 && c.widthOfModel > 0.7*c.widthOfWelch {
				t.Errorf("the interval of 24 points is %.2f of Welch's; at most 0.7 is wanted", c.widthOfModel/c.widthOfWelch)
			}
		}
	}
	inPage(t, "one model of all points", table.String())
}

// The model's interval of a single mean holds it in 93% or more, however machines drift: a drift is
// in the means of the rounds. If points differ in how much they vary, the interval holds it in
// 90.5%. (2,000 intervals; the standard error is 0.5%.)
func TestBlocksCoverTheMean(t *testing.T) {
	for i, noise := range blockNoises[:3] {
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		held := 0
		const experiments = 2000
		for range experiments {
			samples := noise.drawPoints(rng, 12, 3)
			truth := 1000.0
			if noise.drift > 0 { // a walk has no mean: rounds that vary by themselves have
				for p := range samples {
					for k := range samples[p] {
						samples[p][k] = 1000 + 40*rng.NormFloat64()
					}
				}
				for k := range samples[0] {
					speed := 1 + noise.drift*rng.NormFloat64()
					for p := range samples {
						samples[p][k] *= speed
					}
				}
			}
			b, ok := stats.NewBlocks(samples)
			if !ok {
				t.Fatal("there is no model")
			}
			if e := b.Estimate(stats.Aggregate(samples[0]).Mean, []stats.BlockTerm{blockTerm(samples, 0, 1)}); e.Low <= truth && truth <= e.High {
				held++
			}
		}
		t.Logf("%s: %.1f%%", noise.name, 100*float64(held)/experiments)
		if share := float64(held) / experiments; share < map[bool]float64{false: 0.93, true: 0.905}[noise.vary > 0] {
			t.Errorf("%s: the interval holds the mean in %.1f%%", noise.name, 100*share)
		}
	}
}

func TestNoModel(t *testing.T) {
	for name, samples := range map[string][][]float64{
		"none":            nil,
		"three points":    {{1, 2}, {1, 2}, {1, 2}},
		"one round":       {{1}, {2}, {3}, {4}},
		"a zero":          {{1, 2}, {0, 2}, {1, 2}, {1, 2}},
		"a round is not":  {{1, 2}, {1}, {1, 2}, {1, 2}},
		"nothing varies":  {{1, 1}, {2, 2}, {3, 3}, {4, 4}},
		"only the rounds": {{1, 2}, {2, 4}, {1, 2}, {1, 2}},
	} {
		if b, ok := stats.NewBlocks(samples); ok {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// A value that does not change with any mean has an interval without width.
func TestBlocksOfAConstant(t *testing.T) {
	b, ok := stats.NewBlocks([][]float64{{1, 2, 4}, {2, 1, 3}, {1, 3, 2}, {4, 2, 1}})
	if !ok {
		t.Fatal("there is no model")
	}
	want := stats.Estimate{Value: 3, Low: 3, High: 3, Known: true}
	if got := b.Estimate(3, nil); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
