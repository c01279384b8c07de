package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results/stats"
)

// every run has a value.
func everyRun(values ...float64) stats.RunSeries {
	s := stats.RunSeries{Values: values}
	for i := range values {
		s.Runs = append(s.Runs, i)
	}
	return s
}

func TestFindShifts(t *testing.T) {
	for name, tc := range map[string]struct {
		series []stats.RunSeries
		want   [][]int // where the levels of each begin
	}{
		"nothing":                    {nil, [][]int{}},
		"a step":                     {[]stats.RunSeries{everyRun(10, 11, 10, 9, 10, 11, 15, 16, 15, 14, 15, 15)}, [][]int{{6}}},
		"two steps":                  {[]stats.RunSeries{everyRun(10, 11, 10, 9, 10, 11, 10, 20, 21, 20, 19, 20, 20, 21, 30, 29, 30, 31, 30, 30, 29)}, [][]int{{7, 14}}},
		"one metric of two":          {[]stats.RunSeries{everyRun(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2), everyRun(5, 5, 5, 5, 5, 5.1, 7, 7, 7, 7, 7, 7.1)}, [][]int{nil, {6}}},
		"all the same":               {[]stats.RunSeries{everyRun(5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5)}, [][]int{nil}},
		"one run that is an outlier": {[]stats.RunSeries{everyRun(10, 11, 10, 9, 10, 11, 10, 9, 10, 11, 10, 90)}, [][]int{nil}},
		"seven runs are too few":     {[]stats.RunSeries{everyRun(1, 1.1, 1, 1.1, 9, 9.1, 9)}, [][]int{nil}},
		"eight are enough":           {[]stats.RunSeries{everyRun(1, 1.1, 1, 1.1, 9, 9.1, 9, 9.1)}, [][]int{{4}}},
		"a metric that runs lack": {[]stats.RunSeries{
			everyRun(3, 1, 2, 3, 2, 1, 2, 3, 1, 2, 3, 2), {Values: []float64{5, 6, 5, 6, 5, 9, 10, 9, 10, 9}, Runs: []int{0, 1, 3, 4, 5, 6, 8, 9, 10, 11}}}, [][]int{nil, {5}}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := stats.FindShifts(tc.series, 0.05, 1999, rand.New(rand.NewPCG(1, 2)))
			if err != nil {
				t.Fatal(err)
			}
			got := [][]int{}
			for _, shifts := range found.Of {
				var at []int
				for _, shift := range shifts {
					at = append(at, shift.At)
					if !(shift.P > 0 && shift.P <= 0.05) {
						t.Errorf("P of a shift is %v", shift.P)
					}
				}
				got = append(got, at)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("shifts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShiftSaysByHowMuch(t *testing.T) {
	found, err := stats.FindShifts([]stats.RunSeries{everyRun(99, 100, 101, 100, 99, 101, 79, 80, 81, 80, 80, 80)}, 0.05, 999, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	s := found.Of[0]
	if len(s) != 1 || s[0].Before.Mean != 100 || s[0].After.Mean != 80 || !s[0].HasRatio || s[0].Ratio.Value != 0.8 || !(s[0].Ratio.Low > 0.79 && s[0].Ratio.High < 0.81) {
		t.Errorf("shifts are %+v, want one from 100 to 80", s)
	}
}

func TestFindShiftsRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		series stats.RunSeries
		want   string
	}{
		"lengths":              {stats.RunSeries{Values: []float64{1}}, "1 values of 0 runs"},
		"order":                {stats.RunSeries{Values: []float64{1, 2}, Runs: []int{1, 0}}, "not in rising order"},
		"NaN":                  {everyRun(math.NaN()), "shifts"},
		"a run that cannot be": {stats.RunSeries{Values: []float64{1}, Runs: []int{1 << 30}}, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := stats.FindShifts([]stats.RunSeries{tc.series}, 0.05, 99, rand.New(rand.NewPCG(1, 2))); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// history makes ten metrics of twenty runs. The metrics of a run depend on each other: half of each
// deviation is the run's own. The argument noise draws the deviations of one sequence of runs.
func history(rng *rand.Rand, noise func(*rand.Rand, int) []float64) []stats.RunSeries {
	const runs, metrics = 20, 10
	common := noise(rng, runs)
	series := make([]stats.RunSeries, metrics)
	for m := range series {
		own := noise(rng, runs)
		values := make([]float64, runs)
		for i := range values {
			values[i] = 100 + (common[i]+own[i])/math.Sqrt2
		}
		series[m] = everyRun(values...)
	}
	return series
}

// noises of runs that do not change. Those after the first three are not exchangeable.
var noises = []struct {
	name  string
	keeps bool
	of    func(*rand.Rand, int) []float64
}{
	{"normal", true, independent(func(r *rand.Rand) float64 { return r.NormFloat64() })},
	{"log-normal (σ = 1)", true, independent(func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) })},
	{"one run in ten is ten deviations off", true, independent(func(r *rand.Rand) float64 {
		if r.IntN(10) == 0 {
			return 10 + r.NormFloat64()
		}
		return r.NormFloat64()
	})},
	{"each run keeps 0.3 of the last", false, autoregressive(0.3)},
	{"each run keeps 0.6 of the last", false, autoregressive(0.6)},
	{"a random walk", false, autoregressive(1)},
}

func independent(draw func(*rand.Rand) float64) func(*rand.Rand, int) []float64 {
	return func(r *rand.Rand, n int) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = draw(r)
		}
		return xs
	}
}

func autoregressive(keeps float64) func(*rand.Rand, int) []float64 {
	return func(r *rand.Rand, n int) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			if i > 0 {
				xs[i] = keeps * xs[i-1]
			}
			xs[i] += r.NormFloat64()
		}
		return xs
	}
}

// This is the error rate that the documentation gives. In histories in which nothing changes,
// FindShifts claims a change of any metric in at most 5%, whatever the distribution, as long as
// runs do not depend on their neighbours. The table shows what happens if they do.
func TestShiftsOfNothing(t *testing.T) {
	const mostHistories, draws = 1000, 199
	var table strings.Builder
	table.WriteString("| runs of an unchanged system | histories with a change | with one, and no sign of drift |\n|---|---|---|\n")
	for i, noise := range noises {
		rng := rand.New(rand.NewPCG(33, uint64(i)))
		claimed, unmarked := 0, 0
		histories := mostHistories
		if !noise.keeps {
			histories /= 4
		}
		for range histories {
			found, err := stats.FindShifts(history(rng, noise.of), 0.05, draws, rng)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(found.Of, func(s []stats.Shift) bool { return len(s) > 0 }) {
				continue
			}
			claimed++
			if found.DriftP > 0.05 {
				unmarked++
			}
		}
		share := float64(claimed) / float64(histories)
		fmt.Fprintf(&table, "| %s | %.1f%% | %.1f%% |\n", noise.name, 100*share, 100*float64(unmarked)/float64(histories))
		// Three standard errors of 5% in so many histories are 2.1 points.
		if noise.keeps && share > 0.071 {
			t.Errorf("%s: a change is claimed in %.1f%% of histories without one", noise.name, 100*share)
		}
	}
	inPage(t, "shifts of nothing", table.String())
}

// The test counts how often FindShifts finds a change, where it puts the change, and how often it
// claims another one. One metric of ten changes after twelve of twenty runs.
func TestShiftsAreSeen(t *testing.T) {
	const histories, draws = 400, 199
	var table strings.Builder
	table.WriteString("| the level changes by, in deviations of a run | seen | within one run of its place | with another change that is false |\n|---|---|---|---|\n")
	last := 0
	for i, size := range []float64{1, 2, 3, 5} {
		rng := rand.New(rand.NewPCG(34, uint64(i)))
		seen, placed, wrong := 0, 0, 0
		for range histories {
			series := history(rng, noises[0].of)
			for j := 12; j < 20; j++ {
				series[3].Values[j] += size
			}
			found, err := stats.FindShifts(series, 0.05, draws, rng)
			if err != nil {
				t.Fatal(err)
			}
			if len(found.Of[3]) > 0 {
				seen++
			}
			if slices.ContainsFunc(found.Of[3], func(s stats.Shift) bool { return s.At >= 11 && s.At <= 13 }) {
				placed++
			}
			others := max(0, len(found.Of[3])-1)
			for m, s := range found.Of {
				if m != 3 {
					others += len(s)
				}
			}
			if others > 0 {
				wrong++
			}
		}
		fmt.Fprintf(&table, "| %.0f | %.0f%% | %.0f%% | %.1f%% |\n", size, 100*float64(seen)/histories, 100*float64(placed)/histories, 100*float64(wrong)/histories)
		if seen < last {
			t.Errorf("a change of %v deviations is seen in %d histories, a smaller one in %d", size, seen, last)
		}
		last = seen
		if size == 5 && (placed < 390 || wrong > 34) { // 34: 5% and three standard errors
			t.Errorf("of %d changes of 5 deviations %d are where they belong; %d histories have a false one", histories, placed, wrong)
		}
	}
	inPage(t, "shifts that are seen", table.String())
}
