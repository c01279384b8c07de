package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Blocks is one model of a metric over all points of an experiment whose trials ran in rounds. The
// relative deviation of trial k of point p from the point's mean is that of its round and its own:
//
//	x_pk / mean_p - 1 = r_k + e_pk
//
// which is a randomised complete block design with rounds as blocks: a drift of the machines is in
// r_k, and all points tell how much trials vary. The variance of a point's own deviations is
// Shukla's (Heredity 29, 1972). It comes from the residuals of the additive model with P points and
// n rounds, of which the sum of squares is S_p:
//
//	s_p² = P/(P-2) (S_p/(n-1) - sum_q S_q / (P (P-1) (n-1)))
//
// Three trials say little of a variance. So each variance is drawn towards that of all points, the
// more so the more the points' variances agree (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004, as in
// limma): with a prior of d_0 degrees of freedom, found from how the logarithms of s_p² spread,
//
//	max(s_0², (d_0 s_0² + (n-1) s_p²) / (d_0 + n-1))
//
// Points that vary alike are pooled (d_0 is infinite); points that vary more keep their own
// variances. The maximum is our own addition: a point whose trials lie close together by chance is
// not known better than others. The degrees of freedom are our own, too: d_0 + (n-1) max(1, 2 -
// 6/P), and (P-1)(n-1) at most. With many points they are those of two independent variances
// (Satterthwaite). With few points, d_0 is uncertain, and they are those of one variance.
// TestBlocksAA checks that this keeps the level.
type Blocks struct {
	// Points and Rounds of the model.
	Points, Rounds int
	variance       []float64 // of a trial of each point, relative to its mean, without that of its round
	freedom        float64   // of each
	roundMeans     float64   // variance of the means of rounds
	ownOfRounds    float64   // as much of it as trials make: the sum of variance by P²
}

// BlockTerm is a point in a function of means. It has the change of the function by a relative
// change of the mean (the gradient times the mean), and the rounds in which the point has a trial.
type BlockTerm struct {
	// Point is its index in the samples that the model was made of.
	Point  int
	Change float64
	Rounds []int32
}

// LeastBlockPoints is how many points a model needs, for their variances to say how alike they are.
const LeastBlockPoints = 4

// With fewer than fewBlockPoints points, a prior says little. Below a P of unlikeLevel, points do
// not vary alike.
const (
	fewBlockPoints = 12
	unlikeLevel    = 0.001
)

// NewBlocks makes the model of samples[p][k], the trial of point p in round k. It is false where
// there are fewer than four points or two rounds, where some value is not above 0, or where most do
// not vary.
func NewBlocks(samples [][]float64) (Blocks, bool) {
	points := len(samples)
	if points < LeastBlockPoints || len(samples[0]) < 2 {
		return Blocks{}, false
	}
	b := Blocks{Points: points, Rounds: len(samples[0])}
	own := float64(b.Rounds - 1)
	deviations, ofRound := make([][]float64, points), make([]float64, b.Rounds)
	for p, xs := range samples {
		mean := stat.Mean(xs, nil)
		for _, x := range xs {
			if !(x > 0) || len(xs) != b.Rounds || mean > Limit {
				return Blocks{}, false
			}
			d := x/mean - 1
			ofRound[len(deviations[p])] += d / float64(points)
			deviations[p] = append(deviations[p], d)
		}
	}
	b.roundMeans = stat.Variance(ofRound, nil)
	sums, all := make([]float64, points), 0.0
	for p, ds := range deviations {
		for k, d := range ds {
			sums[p] += square(d - ofRound[k])
		}
		all += sums[p]
	}
	n := float64(points)
	for _, s := range sums {
		shukla := n / (n - 2) * (s - all/(n*(n-1))) / own
		b.variance = append(b.variance, math.Max(shukla, s/own/4)) // of a point that varies least it may be below 0
	}
	if !b.moderate(own) {
		return Blocks{}, false
	}
	b.ownOfRounds = sum(b.variance) / (n * n)
	return b, true
}

// moderate draws the variances towards each other.
func (b *Blocks) moderate(own float64) bool {
	sorted := slices.Sorted(slices.Values(b.variance))
	floor := 1e-5 * sorted[len(sorted)/2] // of a point that happens not to vary
	if floor == 0 {
		return false
	}
	logs := make([]float64, len(b.variance))
	for p, v := range b.variance {
		b.variance[p] = math.Max(v, floor)
		logs[p] = math.Log(b.variance[p]) - mathext.Digamma(own/2) + math.Log(own/2)
	}
	mean, spread := stat.MeanVariance(logs, nil)
	prior, middle := math.Inf(1), stat.Mean(b.variance, nil)
	if beyond := spread - trigamma(own/2); beyond > 0 {
		prior = 2 * trigammaInverse(beyond)
		middle = math.Exp(mean + mathext.Digamma(prior/2) - math.Log(prior/2))
	}
	unlike := b.unlike(own)
	if unlike && b.Points < fewBlockPoints && Few(b.Rounds) {
		middle = math.Max(middle, stat.Mean(b.variance, nil))
	}
	for p, v := range b.variance {
		if math.IsInf(prior, 1) {
			b.variance[p] = middle
		} else {
			b.variance[p] = math.Max(middle, (prior*middle+own*v)/(prior+own))
		}
	}
	variances := math.Max(1, 2-6/float64(b.Points))
	if unlike {
		variances = 1
	}
	b.freedom = math.Min(prior+own*variances, own*float64(b.Points-1))
	return true
}

// unlike reports whether the variances of points, of so many degrees of freedom each, are not
// equal.
func (b *Blocks) unlike(own float64) bool {
	points := float64(b.Points)
	logMean := math.Log(stat.Mean(b.variance, nil))
	var statistic float64
	for _, v := range b.variance {
		statistic += own * (logMean - math.Log(v))
	}
	statistic /= 1 + (points/own-1/(own*points))/(3*(points-1))
	return distuv.ChiSquared{K: points - 1}.Survival(statistic) < unlikeLevel
}

// Deviation of a trial of a point, relative to its mean and without that of its round.
func (b Blocks) Deviation(point int) float64 { return math.Sqrt(b.variance[point]) }

// Estimate returns value, a function of the means of points, with its first-order interval. If the
// changes of the terms add up to 0, as for a ratio, the variation of rounds cancels.
func (b Blocks) Estimate(value float64, terms []BlockTerm) Estimate {
	half, freedom := b.halfWidth(terms)
	return Estimate{Value: value, Low: value - half, High: value + half, Known: true, Freedom: freedom}
}

// EstimateRatio is Estimate on the logarithm of value, which is above 0. The changes of the terms
// are those of value.
func (b Blocks) EstimateRatio(value float64, terms []BlockTerm) Estimate {
	half, freedom := b.halfWidth(terms)
	half /= value
	return Estimate{Value: value, Low: value * math.Exp(-half), High: value * math.Exp(half), Known: true, Freedom: freedom, Log: true}
}

// halfWidth is half of the interval's width, with Satterthwaite's degrees of freedom of two
// variances: that of trials, and that of rounds as far as it does not cancel.
func (b Blocks) halfWidth(terms []BlockTerm) (half, freedom float64) {
	var ofTrials float64
	left := map[int32]float64{} // of each round's own effect, what the function has of it
	for _, t := range terms {
		ofTrials += square(t.Change) * b.variance[t.Point] / float64(len(t.Rounds))
		for _, k := range t.Rounds {
			left[k] += t.Change / float64(len(t.Rounds))
		}
	}
	if ofTrials == 0 {
		return 0, 0
	}
	var rest float64
	for _, x := range left {
		rest += x * x
	}
	ofTrials = math.Max(0, ofTrials-rest*b.ownOfRounds)
	ofRounds := rest * b.roundMeans
	whole := ofTrials + ofRounds
	freedom = 1 / (square(ofTrials/whole)/b.freedom + square(ofRounds/whole)/float64(b.Rounds-1))
	return tQuantile(freedom) * math.Sqrt(whole), freedom
}

// trigamma is the second derivative of the logarithm of the gamma function.
func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// trigammaInverse finds x with trigamma(x) = y, for y above 0, by Newton's method on 1/trigamma,
// which is convex and nearly linear (Smyth 2004, appendix).
func trigammaInverse(y float64) float64 {
	if y > 1e7 {
		return 1 / math.Sqrt(y)
	}
	if y < 1e-6 {
		return 1 / y
	}
	x := 0.5 + 1/y
	for range 50 {
		now := trigamma(x)
		step := now * (1 - now/y) / (-2 * mathext.Zeta(3, x)) // the third derivative is -2 zeta(3, x)
		x += step
		if -step/x < 1e-8 {
			break
		}
	}
	return x
}

func sum(xs []float64) (s float64) {
	for _, x := range xs {
		s += x
	}
	return s
}
