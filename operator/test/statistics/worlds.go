package main

import (
	"math/rand/v2"
	"strconv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// slot is one trial of an experiment: its point, its round, and how many trials ran before it.
type slot struct{ point, round, before int }

// interleaved runs rounds. Each round has the points in its own order.
func interleaved(rng *rand.Rand, points, rounds int) (slots []slot) {
	for k := range rounds {
		for _, p := range rng.Perm(points) {
			slots = append(slots, slot{p, k, len(slots)})
		}
	}
	return slots
}

// inSequence runs all repetitions of a point before the next point.
func inSequence(points, rounds int) (slots []slot) {
	for p := range points {
		for k := range rounds {
			slots = append(slots, slot{p, k, len(slots)})
		}
	}
	return slots
}

// experiment has points with means. A trial's metric is the mean times a factor from a world.
type experiment struct {
	points []results.PointResult
	means  []float64
}

// grid is an experiment with these numbers of clients and these variants, all with a throughput of
// 1000.
func grid(clients []int, variants ...string) experiment {
	var e experiment
	for _, c := range clients {
		for _, v := range variants {
			e.points = append(e.points, results.PointResult{Index: int32(len(e.points)), Coordinates: map[string]string{"clients": strconv.Itoa(c), "variant": v}})
			e.means = append(e.means, 1000)
		}
	}
	return e
}

// many is enough transactions for every percentile.
const many = 1_000_000

// lines are the trials. Each has the mean of its point times its factor.
func (e experiment) lines(slots []slot, factor func(slot) float64) []results.TrialLine {
	lines := make([]results.TrialLine, 0, len(slots))
	for _, s := range slots {
		throughput := e.means[s.point] * factor(s)
		clients, _ := strconv.ParseFloat(e.points[s.point].Coordinates["clients"], 64) // made from a number
		latency := 1000 * clients / throughput
		lines = append(lines, results.TrialLine{
			Number: int32(s.before), PointIndex: int32(s.point), Coordinates: e.points[s.point].Coordinates, Repetition: int32(s.round),
			Outcome: stats.Succeeded, Committed: many, Throughput: throughput, MeanMillis: latency, P50Millis: latency, P10Millis: latency / 2,
			P90Millis: 2 * latency, P99Millis: 3 * latency, P999Millis: 5 * latency,
		})
	}
	return lines
}

// quantity and comparison are claims.
func quantity(expr string, reported float64, within string) v1alpha1.Claim {
	v := v1alpha1.NewValue(strconv.FormatFloat(reported, 'g', -1, 64))
	return v1alpha1.Claim{Name: "c", Statement: "s", Expr: expr, Reported: &v, Within: within}
}

func comparison(expr string) v1alpha1.Claim {
	return v1alpha1.Claim{Name: "c", Statement: "s", Expr: expr}
}

// judge evaluates one claim alone, so that no other claim adjusts its verdict.
func (e experiment) judge(c v1alpha1.Claim, lines []results.TrialLine) results.ClaimResult {
	return claims.Evaluate([]v1alpha1.Claim{c}, e.points, lines)[0]
}

func reproduced(r results.ClaimResult) bool { return r.Verdict == string(v1alpha1.VerdictHolds) }
func refuted(r results.ClaimResult) bool    { return r.Verdict == string(v1alpha1.VerdictFails) }

// covers reports whether a claim's interval holds a value.
func covers(r results.ClaimResult, value float64) bool {
	return r.Low != nil && *r.Low <= value && value <= *r.High
}
