package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// trends measures how often equal points are judged to rise or fall.
func trends(scale float64) (rates []rate) {
	for _, world := range []struct {
		name, review string
		factor       func(rng *rand.Rand, e experiment, n int) func(slot) float64
	}{
		{"normal, 5%", "5", func(rng *rand.Rand, _ experiment, _ int) func(slot) float64 {
			return func(slot) float64 { return 1 + 0.05*rng.NormFloat64() }
		}},
		{"one point of three varies five times as much", "9.0 to 11.1", func(rng *rand.Rand, e experiment, _ int) func(slot) float64 {
			return func(s slot) float64 {
				if e.points[s.point].Coordinates["clients"] == "5" {
					return 1 + 0.05*rng.NormFloat64()
				}
				return 1 + 0.01*rng.NormFloat64()
			}
		}},
		{"drift of 30% over the run", "0", func(rng *rand.Rand, e experiment, n int) func(slot) float64 {
			return func(s slot) float64 {
				return (1 + 0.02*rng.NormFloat64()) * (1.15 - 0.3*float64(s.before)/float64(len(e.points)*n-1))
			}
		}},
	} {
		for _, variants := range [][]string{{"a"}, {"a", "b"}} {
			for _, n := range []int{3, 5, 10} {
				rng := rand.New(rand.NewPCG(41, uint64(n)))
				some := rate{what: fmt.Sprintf("%s, three equal points, %d of all, n=%d: a trend", world.name, 3*len(variants), n), review: world.review, most: 6}
				e := grid([]int{5, 20, 50}, variants...)
				for range experiments(scale, 2000) {
					r := e.judge(comparison("increasing(of='throughput', along='clients', variant='a')"), e.lines(interleaved(rng, len(e.points), n), world.factor(rng, e, n)))
					some.see(reproduced(r) || refuted(r))
				}
				rates = append(rates, some)
			}
		}
	}
	return append(rates, power(scale)...)
}

// power measures how often a rise of 10% over three points is detected.
func power(scale float64) (rates []rate) {
	const n = 5
	for _, world := range []struct{ drift, least float64 }{{0, 95}, {0.3, 60}} {
		rng := rand.New(rand.NewPCG(42, n))
		seen := rate{what: fmt.Sprintf("a rise of 10%% over three points, deviation 2%%, drift %.0f%%, n=%d: seen", 100*world.drift, n), least: world.least}
		e := grid([]int{5, 20, 50}, "a")
		e.means = []float64{950, 1000, 1050}
		for range experiments(scale, 1000) {
			r := e.judge(comparison("increasing(of='throughput', along='clients')"), e.lines(interleaved(rng, 3, n), func(s slot) float64 {
				return (1 + 0.02*rng.NormFloat64()) * (1 - world.drift*float64(s.before)/float64(3*n-1))
			}))
			seen.see(reproduced(r))
		}
		rates = append(rates, seen)
	}
	return rates
}

// sequential measures whether the message of each kind of claim mentions the effect of a drift.
func sequential(scale float64) (rates []rate) {
	e := grid([]int{5, 20, 50, 100}, "a", "b")
	for _, n := range []int{3, 5} {
		for _, kind := range []struct{ expr, review string }{
			{"throughput(variant='a', clients=20) > throughput(variant='b', clients=20)", "100"},
			{"increasing(of='throughput', along='clients', variant='a')", "0"},
			{"decreasing(of='throughput', along='clients', variant='a')", "0"},
			{"max_throughput(variant='a') > 990", ""},
			{"knee_throughput(along='clients', variant='a') > 990", ""},
			{"max_throughput(variant='a') > max_throughput(variant='b')", "100"},
			{"crossover(of='throughput', along='clients', variant=['a', 'b']) < 30", "0"},
			{"ratio(of='throughput', variant=['a', 'b'], clients=20) > 1", ""},
		} {
			rng := rand.New(rand.NewPCG(18, uint64(n)))
			said := rate{what: "`" + kind.expr + "`, n=" + strconv.Itoa(n), review: kind.review, least: 100}
			for range experiments(scale, 200) {
				slots := inSequence(len(e.points), n)
				r := e.judge(comparison(kind.expr), e.lines(slots, func(s slot) float64 {
					return (1 + 0.02*rng.NormFloat64()) * (1 - 0.1*float64(s.before)/float64(len(slots)-1))
				}))
				said.see(strings.Contains(r.Message, "drift"))
			}
			rates = append(rates, said)
		}
	}
	return rates
}
