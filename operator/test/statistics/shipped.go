package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// shippedBundle is the evidence of one experiment, as a world to draw trials from.
type shippedBundle struct {
	name   string
	claims []v1alpha1.Claim
	points []results.PointResult
	rounds [][]results.TrialLine // with a valid trial of each point
}

// evidence reads the bundles under experiments whose points have at least three complete rounds.
func evidence() (all []shippedBundle, err error) {
	files, err := filepath.Glob(filepath.Join(root(), "experiments/*/evidence/*.tar.zst"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		e, err := bundle.Read(data, func(results.Trial) {})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var spec v1alpha1.ExperimentSpec
		if err := json.Unmarshal(e.Spec, &spec); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		skipped := plan.SkippedClaims(spec)
		b := shippedBundle{name: filepath.Base(file), points: e.Points, rounds: completeRounds(e)}
		for _, c := range plan.ApplyProfile(spec).Claims {
			if _, skip := skipped[c.Name]; !skip {
				b.claims = append(b.claims, c)
			}
		}
		if len(b.claims) > 0 && len(b.rounds) >= 3 && len(e.Capacities) == 0 {
			all = append(all, b)
		}
	}
	return all, nil
}

// root of the repository: the folder above that has experiments.
func root() string {
	at := "."
	for range 5 {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		at = filepath.Join(at, "..")
	}
	return "."
}

// completeRounds are the rounds with a valid trial of every point that has a valid trial at all.
func completeRounds(e results.Experiment) (rounds [][]results.TrialLine) {
	byRound, points := map[int32]map[int32]results.TrialLine{}, map[int32]bool{}
	for _, l := range e.Trials {
		if l.Outcome != stats.Succeeded {
			continue
		}
		if byRound[l.Repetition] == nil {
			byRound[l.Repetition] = map[int32]results.TrialLine{}
		}
		byRound[l.Repetition][l.PointIndex], points[l.PointIndex] = l, true
	}
	for k := range int32(len(byRound)) {
		if len(byRound[k]) < len(points) {
			continue
		}
		var lines []results.TrialLine
		for _, p := range e.Points {
			if points[p.Index] {
				lines = append(lines, byRound[k][p.Index])
			}
		}
		rounds = append(rounds, lines)
	}
	return rounds
}

// draw makes an experiment of n rounds from the shipped ones. Each round is a whole round that
// really ran. Each of its trials gets a new deviation, of the same size as the deviation of the
// point's trials within their rounds. So a world has more than three values.
func (b shippedBundle) draw(rng *rand.Rand, n int) []results.TrialLine {
	var lines []results.TrialLine
	for k := range n {
		round := b.rounds[rng.IntN(len(b.rounds))]
		for _, i := range rng.Perm(len(round)) {
			l := round[i]
			by := b.deviation(i) * rng.NormFloat64()
			l.Number, l.Repetition, l.Attempt = int32(len(lines)), int32(k), 0
			l.Throughput *= math.Exp(by)
			for _, x := range []*float64{&l.MeanMillis, &l.P10Millis, &l.P50Millis, &l.P90Millis, &l.P95Millis, &l.P99Millis, &l.P999Millis} {
				*x *= math.Exp(-by)
			}
			if l.OfAll != nil {
				of := *l.OfAll
				for _, x := range []*float64{&of.P50Millis, &of.P90Millis, &of.P99Millis, &of.P999Millis} {
					*x *= math.Exp(-by)
				}
				l.OfAll = &of
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// deviation of a point's trials by their mean throughput.
func (b shippedBundle) deviation(point int) float64 {
	var xs []float64
	for _, round := range b.rounds {
		if x := round[point].Throughput; x > 0 {
			xs = append(xs, math.Log(x))
		}
	}
	return stats.Aggregate(xs).StdDev
}

// truths are the verdicts of so many rounds that chance has no effect.
func (b shippedBundle) truths() []results.ClaimResult {
	return claims.Evaluate(b.claims, b.points, b.draw(rand.New(rand.NewPCG(16, 0)), 100))
}

// shippedLooks are the looks of the experiments that are drawn from evidence.
var shippedLooks = stats.Looks{First: 3, Last: 20}

// tally has the outcomes of the experiments that were drawn from a bundle.
type tally struct {
	points, claims int
	trials         []float64 // of each experiment that continued until its claims were decided
	// decided counts the claims with the same verdict as after many rounds, and wrong those with
	// the opposite verdict. fixed counts the claims that n rounds decide rightly.
	decided, wrong int
	fixed          map[int]int
}

func (b shippedBundle) tally(experiments int) tally {
	t := tally{fixed: map[int]int{}, points: len(b.rounds[0]), claims: len(b.claims)}
	truths := b.truths()
	rng := rand.New(rand.NewPCG(17, 0))
	for range experiments {
		lines := b.draw(rng, shippedLooks.Last)
		rounds, judged := lookAt(b.claims, b.points, lines, shippedLooks)
		t.trials = append(t.trials, float64(rounds*t.points))
		for i, c := range judged {
			switch {
			case !isDecided(c):
			case c.Verdict == truths[i].Verdict:
				t.decided++
			default: // also if a hundred rounds decide nothing: then the claim is exactly at its bound
				t.wrong++
			}
		}
		for n := 2; n <= shippedLooks.Last; n++ {
			for i, c := range claims.Evaluate(b.claims, b.points, lines[:n*t.points]) {
				if isDecided(c) && c.Verdict == truths[i].Verdict {
					t.fixed[n]++
				}
			}
		}
	}
	return t
}

func isDecided(c results.ClaimResult) bool { return reproduced(c) || refuted(c) }

// sameNumber is the least number of rounds that decides at least decided claims. If there is none,
// it is the last look's number.
func sameNumber(fixed map[int]int, decided int) int {
	for n := 2; n < shippedLooks.Last; n++ {
		if fixed[n] >= decided {
			return n
		}
	}
	return shippedLooks.Last
}

// shipped compares two ways, in experiments drawn from the shipped evidence. One continues until
// its claims are decided. The other has a fixed number of repetitions that decides as many claims.
// It measures the number of trials of both.
func shipped(scale float64) []rate {
	bundles, err := evidence()
	if err != nil || len(bundles) == 0 {
		return []rate{{what: fmt.Sprintf("the evidence cannot be read: %v", err), least: 100}}
	}
	each := max(5, int(100*scale))
	all := tally{fixed: map[int]int{}}
	var taken, variance, known float64
	for _, b := range bundles {
		t := b.tally(each)
		a := stats.Aggregate(t.trials)
		taken += a.Mean
		variance += a.StdDev * a.StdDev / float64(each)
		known += float64(t.points * sameNumber(t.fixed, t.decided))
		all.points, all.claims = all.points+t.points, all.claims+t.claims
		all.decided, all.wrong = all.decided+t.decided, all.wrong+t.wrong
		for n, k := range t.fixed {
			all.fixed[n] += k
		}
	}
	n := sameNumber(all.fixed, all.decided)
	judged := each * all.claims
	share := func(what string, of, most float64) rate {
		return rate{what: what, of: each * len(bundles), most: most, value: 100 * taken / of, off: 100 * math.Sqrt(variance) / of}
	}
	return []rate{
		{what: fmt.Sprintf("%d bundles, %d claims, %d to %d rounds: claims decided wrongly", len(bundles), all.claims, shippedLooks.First, shippedLooks.Last), hits: all.wrong, of: judged, most: 5},
		{what: "claims decided rightly", hits: all.decided, of: judged},
		{what: fmt.Sprintf("the same with %d rounds for all bundles, the least that decide as many", n), hits: all.fixed[n], of: judged},
		share(fmt.Sprintf("trials (%.0f), as a share of these %d rounds (%d)", taken, n, n*all.points), float64(n*all.points), 60),
		share(fmt.Sprintf("trials, as a share of the least that decide as many of each bundle (%.0f), if that was known before", known), known, 0),
	}
}
