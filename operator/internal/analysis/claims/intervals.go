package claims

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// leastRounds is how many rounds there must be to use the differences of rounds, if there is no
// model of all points. With fewer, Student's quantile costs more than a drift would.
const leastRounds = 5

// estimate gives q its interval, and says how many trials of each point are in it. The interval
// also holds those of all alternatives of q.
func (r *estimator) estimate(q quantity) (stats.Estimate, []int) {
	e, counts := r.estimateOne(q.alone())
	e = r.atLeastExact(q.alone(), e)
	for _, other := range q.or {
		o, n := r.estimateOne(other)
		o = r.atLeastExact(other, o)
		e.Known = e.Known && o.Known
		e.Low, e.High = math.Min(e.Low, o.Low), math.Max(e.High, o.High)
		e.Freedom = math.Min(e.Freedom, o.Freedom)
		counts = append(counts, n...)
	}
	return e, counts
}

// estimateOne gives q its interval, at the level of the look.
func (r *estimator) estimateOne(q quantity) (stats.Estimate, []int) {
	e, counts := r.estimateAlone(q)
	if q.own == nil && r.at() != nil {
		e = e.At(r.level())
	}
	return e, counts
}

// estimateAlone gives q its interval by the best method that its trials allow. The methods are the
// model of all points, the differences of rounds, Fieller's interval of a quotient, and the
// deviations of each point.
func (r *estimator) estimateAlone(q quantity) (stats.Estimate, []int) {
	e, counts := r.samples.estimate(q)
	if q.own != nil || q.unbounded || !e.Known || len(q.gradient) == 0 || e.Low == e.High || !r.exact(q) {
		return e, counts
	}
	better, known := r.modelled(q)
	if !known {
		better, known = r.byRounds(q)
	}
	if !known && q.quotient != nil {
		better, known = r.fieller(q), true
	}
	if !known {
		return e, counts
	}
	if math.IsInf(e.Low, 0) {
		better.Low = e.Low
	}
	if math.IsInf(e.High, 0) {
		better.High = e.High
	}
	return better, counts
}

// difference estimates b - a. Against a constant, the interval of the other side is used as it is,
// so that a comparison with a bound agrees with the interval that is shown.
func (r *estimator) difference(a, b quantity) (stats.Estimate, []int) {
	shift := func(e stats.Estimate, factor, by float64) stats.Estimate {
		low, high := factor*e.Low+by, factor*e.High+by
		e.Value, e.Low, e.High, e.Log = factor*e.Value+by, math.Min(low, high), math.Max(low, high), false
		return e
	}
	switch {
	case !a.measured():
		e, n := r.estimate(b)
		return shift(e, 1, -a.value), n
	case !b.measured():
		e, n := r.estimate(a)
		return shift(e, -1, b.value), n
	}
	return r.estimate(with(b, a, quantity.minus))
}

// exact reports whether every trial that q reads gives a number, and not only bounds.
func (r *readings) exact(q quantity) bool {
	for m := range q.gradient {
		if _, ok := r.values(m); !ok {
			return false
		}
	}
	return true
}

// values returns one value for each trial of a point. It returns false if a trial has none, or has
// bounds in place of a value.
func (r *readings) values(of mean) ([]float64, bool) {
	of.atLeast = false
	if xs, ok := r.kept[of]; ok {
		return xs, len(xs) > 0
	}
	xs := r.readValues(of)
	r.kept[of] = xs
	return xs, len(xs) > 0
}

func (r *readings) readValues(of mean) (xs []float64) {
	for _, line := range r.samples[of.point] {
		x, err := of.metric.of(line)
		if err != nil || x.low != x.high {
			return nil
		}
		xs = append(xs, x.value)
	}
	return xs
}

// byRound are the values of a point by round; false, too, where a round is there twice.
func (r *readings) byRound(of mean) (map[int32]float64, bool) {
	xs, ok := r.values(of)
	rounds := roundsOf(r.samples[of.point])
	if !ok || len(rounds) != len(xs) {
		return nil, false
	}
	by := map[int32]float64{}
	for i, k := range rounds {
		by[k] = xs[i]
	}
	return by, true
}

// commonRounds are the rounds in which all points that q reads have a trial, in order, if their
// trials ran in turn.
func (r *readings) commonRounds(q quantity) []int32 {
	var rounds []int32
	var first []results.TrialLine
	for i, m := range slices.SortedFunc(maps.Keys(q.gradient), mean.compare) {
		lines := r.samples[m.point]
		mine := roundsOf(lines)
		if i == 0 {
			rounds, first = mine, lines
		}
		if !interleaved(first, lines) {
			return nil
		}
		rounds = slices.DeleteFunc(slices.Clone(rounds), func(k int32) bool { return !slices.Contains(mine, k) })
	}
	return rounds
}

// model is one of all points, for one metric and the rounds that a quantity has.
type model struct {
	stats.Blocks
	known bool
	place map[int32]int // of a point, in the samples of the model
}

// modelled is the interval of the model of all points, which is of one metric.
func (r *estimator) modelled(q quantity) (stats.Estimate, bool) {
	inputs := slices.SortedFunc(maps.Keys(q.gradient), mean.compare)
	for _, m := range inputs {
		if m.metric != inputs[0].metric {
			return stats.Estimate{}, false
		}
	}
	rounds := r.commonRounds(q)
	if len(rounds) < 2 {
		return stats.Estimate{}, false
	}
	of := r.model(inputs[0].metric, rounds)
	var terms []stats.BlockTerm
	for _, m := range inputs {
		place, ok := of.place[m.point]
		if !of.known || !ok {
			return stats.Estimate{}, false
		}
		xs, _ := r.byRound(m)
		terms = append(terms, stats.BlockTerm{Point: place, Change: q.gradient[m] * meanOf(xs), Rounds: sortedKeys(xs)})
	}
	r.models = max(r.models, of.Points)
	if q.ratio {
		return of.EstimateRatio(q.value, terms), true
	}
	return of.Estimate(q.value, terms), true
}

// model of all points that have a trial in each of these rounds, made once.
func (r *estimator) model(m metric, rounds []int32) model {
	key := fmt.Sprint(m, rounds)
	if made, ok := r.made[key]; ok {
		return made
	}
	made := model{place: map[int32]int{}}
	var samples [][]float64
	var pool []results.TrialLine
	for _, point := range sortedKeys(r.samples) {
		byRound, ok := r.byRound(mean{point: point, metric: m})
		var xs []float64
		for _, k := range rounds {
			if x, has := byRound[k]; has {
				xs = append(xs, x)
			}
		}
		if !ok || len(xs) < len(rounds) || slices.ContainsFunc(xs, func(x float64) bool { return !(x > 0) }) {
			continue
		}
		made.place[point] = len(samples)
		samples = append(samples, xs)
		for _, l := range r.samples[point] {
			if slices.Contains(rounds, l.Repetition) {
				pool = append(pool, l)
			}
		}
	}
	if inTurn(pool) {
		made.Blocks, made.known = stats.NewBlocks(samples)
	}
	r.made[key] = made
	return made
}

// inTurn reports whether all trials of one round ran before those of the next, on each set of nodes
// by itself.
func inTurn(lines []results.TrialLine) bool {
	for _, there := range bySet(lines) {
		if !inTurnThere(there) {
			return false
		}
	}
	return len(onSeveralSets(lines)) == 0
}

func inTurnThere(lines []results.TrialLine) bool {
	first, last := map[int32]int32{}, map[int32]int32{}
	for _, l := range lines {
		if at, ok := first[l.Repetition]; !ok || l.Number < at {
			first[l.Repetition] = l.Number
		}
		last[l.Repetition] = max(last[l.Repetition], l.Number)
	}
	rounds := sortedKeys(first)
	for i := 1; i < len(rounds); i++ {
		if first[rounds[i]] <= last[rounds[i-1]] {
			return false
		}
	}
	return true
}

// byRounds is Student's interval of the linearised quantity of each round. If a drift of the
// machines cancels in the quantity, it does not widen the interval.
func (r *estimator) byRounds(q quantity) (stats.Estimate, bool) {
	rounds := r.commonRounds(q)
	points := map[int32]bool{}
	for m := range q.gradient {
		points[m.point] = true
	}
	if len(points) < 2 || len(rounds) < leastRounds {
		return stats.Estimate{}, false
	}
	linear, value := make([]float64, len(rounds)), q.value
	add := func(m mean, g float64, shift bool) {
		xs, _ := r.byRound(m)
		for i, k := range rounds {
			linear[i] += g * xs[k]
			if shift { // to the mean of the rounds that all have, or the drift is in it
				value += g * (xs[k] - meanOf(xs)) / float64(len(rounds))
			}
		}
	}
	r.rounds = true
	if q.quotient != nil {
		a, b := r.meanIn(q.quotient[0], rounds), r.meanIn(q.quotient[1], rounds)
		if a == 0 || b == 0 {
			return stats.Estimate{}, false
		}
		value = a / b * q.value / (r.meanIn(q.quotient[0], nil) / r.meanIn(q.quotient[1], nil))
		add(q.quotient[0], value/a, false)
		add(q.quotient[1], -value/b, false)
	} else {
		for _, m := range slices.SortedFunc(maps.Keys(q.gradient), mean.compare) {
			add(m, q.gradient[m], true)
		}
	}
	terms := []stats.Term{{Gradient: 1, Sample: stats.Aggregate(linear)}}
	if q.ratio {
		return stats.PropagateRatio(value, terms), true
	}
	return stats.Propagate(value, terms), true
}

// meanIn is the mean of a point in some rounds; nil: in all.
func (r *readings) meanIn(m mean, rounds []int32) float64 {
	xs, _ := r.byRound(m)
	some := map[int32]float64{}
	for k, x := range xs {
		if rounds == nil || slices.Contains(rounds, k) {
			some[k] = x
		}
	}
	return meanOf(some)
}

// fieller is the interval of one mean by another, times a number.
func (r *estimator) fieller(q quantity) stats.Estimate {
	var sides [2]results.Aggregate
	for i, m := range q.quotient {
		xs, _ := r.values(m)
		sides[i] = stats.Aggregate(xs)
	}
	unknown := stats.Estimate{Value: q.value, Low: q.value, High: q.value}
	e, err := stats.RatioAt(sides[0], sides[1], r.level())
	if err != nil || e.Value == 0 {
		return unknown
	}
	if slices.Contains(e.Cautions, stats.DenominatorNearZero) {
		r.caveat(CaveatNearZero, stats.DenominatorNearZero.Text())
		return unknown
	}
	factor := q.value / e.Value
	return stats.Estimate{Value: q.value, Low: factor * e.Low, High: factor * e.High, Known: e.Known, Freedom: e.Freedom, Level: e.Level}
}

// how names the method of the intervals, unless it is by each point's own deviations.
func (r *estimator) how() string {
	switch {
	case r.models > 0:
		return fmt.Sprintf("by rounds, in one model of %d points", r.models)
	case r.rounds:
		return "by rounds"
	}
	return ""
}

func meanOf(byRound map[int32]float64) (mean float64) {
	for _, k := range sortedKeys(byRound) {
		mean += byRound[k] / float64(len(byRound))
	}
	return mean
}
