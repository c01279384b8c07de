package claims

import (
	"math"
	"math/rand/v2"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Paper says what a paper reports of a metric at a point, in tx/s or ms; false: nothing.
type Paper func(metric string, coordinates map[string]string) (float64, bool)

// Power is the probability of Holds if the paper is right.
type Power struct {
	Claim string
	// Known: the paper's curves have what the claim reads, or it is Assumed.
	Known bool
	// Assumed: the paper's curves do not have all that the claim reads. The rest is assumed such
	// that the claim holds: the sides of a comparison differ by the given effect, and a quantity
	// has its reported value.
	Assumed bool
	// Share of simulated experiments that reproduce the claim with the planned repetitions, from 0
	// to 1.
	Share float64
	// Enough is the least number of repetitions with which 80% of the simulated experiments
	// reproduce the claim; 0: more than maxPower.
	Enough int
}

const (
	// wantedPower is the share of experiments that should decide for a claim that is right.
	wantedPower = 0.8
	// powerError is how far a share of simulated experiments may be wrong, by three standard
	// errors. For a share of one half, that takes 2,500 experiments.
	powerError = 0.03
	// A share is first looked at after leastDraws experiments, and drawing ends after mostDraws.
	leastDraws, mostDraws = 50, 2500
)

// tried are the numbers of repetitions among which Enough is looked for.
var tried = []int{2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50}

// PowerOf simulates experiments whose points have the paper's values, and judges the claims by
// them. The values are means of trials with a normal deviation (a share of the mean, above 0), in n
// repetitions. A trial that is faster by a share has a latency that is shorter by it. If the paper
// lacks a value that a claim reads, its comparisons hold by the share effect (above 0). The draws
// are always the same.
func PowerOf(claims []v1alpha1.Claim, points []results.PointResult, paper Paper, n int, deviation, effect float64) []Power {
	fromPaper := newSimulation(points, paper, deviation)
	var all []Power
	for _, c := range claims {
		p := Power{Claim: c.Name}
		if compiled, err := compile(c.Expr); err == nil {
			var s simulation
			if s, p.Known, p.Assumed = fromPaper.of(c, compiled, effect); p.Known {
				p.Share, _ = s.share(c, compiled, n, func(_, off float64) bool { return off <= powerError })
			}
			for i := 0; p.Known && p.Enough == 0 && i < len(tried); i++ {
				if share, _ := s.share(c, compiled, tried[i], settled); share >= wantedPower {
					p.Enough = tried[i]
				}
			}
		}
		all = append(all, p)
	}
	return all
}

// simulation of experiments at the points of which the paper says something.
type simulation struct {
	points    []results.PointResult
	means     []results.TrialLine // of each point: a trial with the paper's values
	deviation float64

	all   []results.PointResult // also those of which the paper says nothing
	lines []results.TrialLine   // of each of these, not a number where it says nothing
}

// of returns a simulation in which a claim can be judged. It prefers the paper's numbers to assumed
// ones.
func (s simulation) of(c v1alpha1.Claim, p *program, effect float64) (found simulation, known, assumed bool) {
	judges := func(s simulation) bool {
		_, ok := s.share(c, p, leastRounds, func(_, _ float64) bool { return true })
		return ok
	}
	if judges(s) {
		return s, true, false
	}
	found, assumed = s.assume(c, p, effect)
	known = assumed && judges(found)
	return found, known, known
}

// expectedDraws is how many simulated experiments give the expected number of rounds.
const expectedDraws = 100

// ExpectedRounds is the mean number of rounds, with its standard error, if repetitions go on until
// claims are decided. It simulates the experiments of PowerOf. It covers only the claims that can
// be judged there, and returns their number.
func ExpectedRounds(claims []v1alpha1.Claim, points []results.PointResult, paper Paper, looks stats.Looks, deviation, effect float64) (mean, standardError float64, of int) {
	fromPaper := newSimulation(points, paper, deviation)
	taken := make([]float64, expectedDraws)
	for _, c := range claims {
		compiled, err := compile(c.Expr)
		if err != nil {
			continue
		}
		s, known, _ := fromPaper.of(c, compiled, effect)
		if !known {
			continue
		}
		of++
		rng := rand.New(rand.NewPCG(2, uint64(looks.Last)))
		for i := range taken {
			taken[i] = math.Max(taken[i], float64(s.roundsTaken(c, compiled, rng, looks)))
		}
	}
	a := stats.Aggregate(taken)
	return a.Mean, a.StdDev / math.Sqrt(expectedDraws), of
}

// roundsTaken is after how many rounds one experiment has decided a claim, or given it up.
func (s simulation) roundsTaken(c v1alpha1.Claim, p *program, rng *rand.Rand, looks stats.Looks) int {
	lines := s.experiment(rng, looks.Last)
	for n := looks.First; n < looks.Last; n++ {
		at := *p
		at.look = &look{looks: looks, rounds: n}
		var r results.ClaimResult
		if _, _, err := evaluate(&r, c, &at, s.points, lines[:n*len(s.means)], nil, false); err != nil {
			return n
		}
		if len(Open([]results.ClaimResult{r}, nil)) == 0 {
			return n
		}
	}
	return looks.Last
}

// manyCommitted is enough for every percentile.
const manyCommitted = 1_000_000

// newSimulation looks up the paper's values. A value that the paper does not give for a point
// becomes NaN, so that no claim can be judged by it.
func newSimulation(points []results.PointResult, paper Paper, deviation float64) simulation {
	s := simulation{deviation: deviation}
	for _, p := range points {
		some := false
		value := func(metric string) float64 {
			x, ok := paper(metric, p.Coordinates)
			if !ok {
				return math.NaN()
			}
			some = true
			return x
		}
		unsaid := math.NaN()
		line := results.TrialLine{
			PointIndex: p.Index, Coordinates: p.Coordinates, Outcome: stats.Succeeded, Committed: manyCommitted,
			Unreported: []string{results.CounterAborted, results.CounterErrors, results.CounterTimeouts},
			Throughput: value(stats.Throughput), MeanMillis: value(stats.MeanLatency), P50Millis: value(stats.P50Latency), P99Millis: value(stats.P99Latency),
			P10Millis: unsaid, P90Millis: unsaid, P95Millis: unsaid, P999Millis: unsaid,
		}
		s.all, s.lines = append(s.all, p), append(s.lines, line)
		if some {
			s.points, s.means = append(s.points, p), append(s.means, line)
		}
	}
	return s
}

// experiment draws the trials, in turn.
func (s simulation) experiment(rng *rand.Rand, n int) []results.TrialLine {
	lines := make([]results.TrialLine, 0, n*len(s.means))
	for k := range n {
		for _, line := range s.means {
			by := s.deviation * rng.NormFloat64()
			line.Number, line.Repetition = int32(len(lines)), int32(k)
			line.Throughput *= 1 + by
			line.MeanMillis, line.P50Millis, line.P99Millis = line.MeanMillis*(1-by), line.P50Millis*(1-by), line.P99Millis*(1-by)
			line.P10Millis, line.P90Millis, line.P95Millis, line.P999Millis = line.P10Millis*(1-by), line.P90Millis*(1-by), line.P95Millis*(1-by), line.P999Millis*(1-by)
			lines = append(lines, line)
		}
	}
	return lines
}

// settled says that a share is above or below the wanted one, or so near to it that it does not
// matter.
func settled(share, off float64) bool {
	return off <= 2*powerError || math.Abs(share-wantedPower) > off
}

// share of experiments that reproduce a claim; false where the paper lacks what it reads. It draws
// experiments until enough accepts the share and its error (three standard errors of Wilson's
// interval, J. Am. Stat. Assoc. 22, 1927, which has a width where all experiments agree, too).
func (s simulation) share(c v1alpha1.Claim, p *program, n int, enough func(share, off float64) bool) (share float64, known bool) {
	const z = 3
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	reproduced := 0
	for i := 1; ; i++ {
		lines := s.experiment(rng, n)
		var r results.ClaimResult
		if _, _, err := evaluate(&r, c, p, s.points, lines, nil, false); err != nil {
			return 0, false
		}
		if r.Verdict == string(v1alpha1.VerdictHolds) {
			reproduced++
		}
		draws := float64(i)
		share = float64(reproduced) / draws
		off := z / (1 + z*z/draws) * math.Sqrt(share*(1-share)/draws+z*z/(4*draws*draws))
		if i >= leastDraws && enough(share, off) || i == mostDraws {
			return share, true
		}
	}
}
