package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"assay.dev/assay/operator/internal/results"
)

// RunSeries is one metric over runs: Values in the order of the runs, and Runs, the places of these
// runs among all. A run that lacks the metric has no value.
type RunSeries struct {
	Values []float64
	Runs   []int
}

// Shift is a change of a metric's level from one run to the next.
type Shift struct {
	// At is the first value of the new level.
	At int
	// P is the probability of such a change in any of the metrics, if the order of the runs means
	// nothing.
	P float64
	// Before and After are of the runs of the two levels.
	Before, After results.Aggregate
	// Ratio is After divided by Before, if HasRatio is true. Its interval does not allow for the
	// search: the search chose levels that differ, so that a change looks greater than it is.
	Ratio    RatioEstimate
	HasRatio bool
}

// Shifts of several metrics of the same runs.
type Shifts struct {
	// The shifts of each metric, in the order of the runs.
	Of [][]Shift
	// DriftP is the probability that so few runs are above or below both of their neighbours, if
	// their order means nothing. If it is small, the machines change slowly, and the error rate
	// does not hold.
	DriftP float64
}

const (
	// LeastRuns is how many runs FindShifts needs to find a shift. With seven runs, chance
	// separates three from four in 5.7% of orders.
	LeastRuns = 8
	// leastLevel is how many runs a level has: one run that is unlike the others is no level.
	leastLevel = 2
	// maxShiftWork bounds the runs times the metrics.
	maxShiftWork = 1 << 20
)

// FindShifts finds at which runs metrics change. The probability of any false change, in all
// metrics together, is at most level, if the order of runs without a change means nothing. It
// assumes no distribution.
//
// It splits each series as E-Divisive does (Matteson and James, J. Am. Stat. Assoc. 109, 2014; for
// benchmarks Daly et al., ICPE'20, and Fleming et al., ICPE'23): level by level, by a test that
// permutes runs within the levels found so far. The statistic is that of a change of the mean
// (Sen and Srivastava, Ann. Stat. 3, 1975), in units of the deviation within levels:
//
//	T = max over splits of √(k(m-k)/m) |mean of k before - mean of m-k after| / s
//
// One permutation of the runs is used for all metrics. The statistic T is compared with the
// greatest T of any of them, which keeps the dependence of metrics of one run (Westfall and Young,
// Resampling-Based Multiple Testing, 1993). P is (1 + number of permutations with as great a T) /
// (1 + draws). Series whose P is at most level are split there, until none is.
//
// A level has two runs at least, and a series LeastRuns: with fewer no P of 5% is possible. Runs
// must be exchangeable where nothing changed. A machine that drifts is a change, and FindShifts
// cannot say whose; DriftP is a hint. A change that is taken back later may be hidden: no single
// split shows it. draws are at least 99. It fails for lists of different lengths and for values
// that are not finite.
func FindShifts(series []RunSeries, level float64, draws int, rng *rand.Rand) (Shifts, error) {
	work := make([]*shiftSearch, len(series))
	runs := 0
	for i, s := range series {
		if len(s.Values) != len(s.Runs) {
			return Shifts{}, fmt.Errorf("shifts: metric %d has %d values of %d runs", i, len(s.Values), len(s.Runs))
		}
		if err := check("shifts", s.Values); err != nil {
			return Shifts{}, err
		}
		for j, r := range s.Runs {
			if r < 0 || j > 0 && r <= s.Runs[j-1] {
				return Shifts{}, fmt.Errorf("shifts: the runs of metric %d are not in rising order", i)
			}
			runs = max(runs, r+1)
		}
	}
	if runs > maxShiftWork || runs*len(series) > maxShiftWork {
		return Shifts{}, fmt.Errorf("shifts: %d runs of %d metrics are more than %d numbers", runs, len(series), maxShiftWork)
	}
	for i, s := range series {
		work[i] = newShiftSearch(s)
	}
	ps := map[*shiftSearch]map[int]float64{}
	for {
		found := false
		for i, p := range shiftTest(work, runs, max(99, draws), rng) {
			if p > level {
				continue
			}
			if ps[work[i]] == nil {
				ps[work[i]] = map[int]float64{}
			}
			ps[work[i]][work[i].split()] = p
			found = true
		}
		if !found {
			break
		}
	}
	out := Shifts{Of: make([][]Shift, len(series)), DriftP: driftTest(work, runs, max(99, draws), rng)}
	for i, w := range work {
		out.Of[i] = w.shifts(ps[w])
	}
	return out, nil
}

// shiftSearch is the search in one series.
type shiftSearch struct {
	values []float64
	// place of each run in values; -1, or beyond the end: it has none.
	place []int
	// starts of the levels, with the number of values at their end.
	starts []int
	level  []int // of each value
	// deviation within the levels. 0: nothing varies, and nothing is searched.
	deviation float64
	// at is the best split, and t its statistic. scratch is for permuted values.
	at      int
	t       float64
	scratch []float64
	next    []int
}

func newShiftSearch(s RunSeries) *shiftSearch {
	w := &shiftSearch{values: s.Values, starts: []int{0, len(s.Values)}, scratch: make([]float64, len(s.Values)), level: make([]int, len(s.Values))}
	for i, r := range s.Runs {
		for len(w.place) < r {
			w.place = append(w.place, -1)
		}
		w.place = append(w.place, i)
	}
	w.prepare()
	return w
}

// prepare computes what follows from the levels.
func (w *shiftSearch) prepare() {
	var squares float64
	for l := range len(w.starts) - 1 {
		part := w.values[w.starts[l]:w.starts[l+1]]
		mean := stat.Mean(part, nil)
		for i, x := range part {
			squares += square(x - mean)
			w.level[w.starts[l]+i] = l
		}
	}
	w.deviation = 0
	if n := len(w.values); n >= LeastRuns {
		w.deviation = math.Sqrt(squares / float64(n))
		if w.deviation <= 1e-12*math.Abs(stat.Mean(w.values, nil)) { // rounding
			w.deviation = 0
		}
	}
	w.t, w.at = w.greatest(w.values)
}

// greatest is the statistic of the best split of any level, and where it is.
func (w *shiftSearch) greatest(values []float64) (t float64, at int) {
	if w.deviation == 0 {
		return 0, 0
	}
	for l := range len(w.starts) - 1 {
		from, to := w.starts[l], w.starts[l+1]
		m := to - from
		var total, before float64
		for _, x := range values[from:to] {
			total += x
		}
		for k := 1; k <= m-leastLevel; k++ {
			before += values[from+k-1]
			if k < leastLevel {
				continue
			}
			// The difference of means times √(k(m-k)/m), with one division.
			d := math.Abs(before-total*float64(k)/float64(m)) * math.Sqrt(float64(m)/float64(k)/float64(m-k))
			if d > t {
				t, at = d, from+k
			}
		}
	}
	return t / w.deviation, at
}

// permuted is the greatest statistic where runs come in another order within their levels.
func (w *shiftSearch) permuted(order []int) float64 {
	if w.deviation == 0 {
		return 0
	}
	w.next = append(w.next[:0], w.starts...)
	for _, run := range order {
		if run >= len(w.place) || w.place[run] < 0 {
			continue
		}
		i := w.place[run]
		l := w.level[i]
		w.scratch[w.next[l]] = w.values[i]
		w.next[l]++
	}
	t, _ := w.greatest(w.scratch)
	return t
}

// shiftTest gives the P of the best split of each series.
func shiftTest(work []*shiftSearch, runs, draws int, rng *rand.Rand) []float64 {
	count := make([]int, len(work))
	for range draws {
		order := rng.Perm(runs)
		most := 0.0
		for _, w := range work {
			most = math.Max(most, w.permuted(order))
		}
		for i, w := range work {
			if most >= w.t*(1-1e-12) { // permutations that only swap equal sums differ by rounding
				count[i]++
			}
		}
	}
	ps := make([]float64, len(work))
	for i, w := range work {
		ps[i] = 1
		if w.t > 0 {
			ps[i] = float64(1+count[i]) / float64(1+draws)
		}
	}
	return ps
}

// split makes two levels of one, at the best split.
func (w *shiftSearch) split() (at int) {
	at = w.at
	l := w.level[at]
	w.starts = append(w.starts[:l+1], append([]int{at}, w.starts[l+1:]...)...)
	w.prepare()
	return at
}

// shifts are the changes between the levels.
func (w *shiftSearch) shifts(ps map[int]float64) []Shift {
	var all []Shift
	for l := 1; l < len(w.starts)-1; l++ {
		from, at, to := w.starts[l-1], w.starts[l], w.starts[l+1]
		shift := Shift{At: at, P: ps[at], Before: Aggregate(w.values[from:at]), After: Aggregate(w.values[at:to])}
		ratio, err := Ratio(shift.After, shift.Before)
		shift.Ratio, shift.HasRatio = ratio, err == nil
		all = append(all, shift)
	}
	return all
}

// driftTest returns the P that all metrics together have so few turning points, by permutation of
// the runs. A turning point is above or below both of its neighbours (Wallis and Moore, J. Am.
// Stat. Assoc. 36, 1941). In a random order, two in three values are turning points; in a random
// walk, every other one. A step of the level changes two of them at most, so that a version that
// differs does not count as drift.
func driftTest(work []*shiftSearch, runs, draws int, rng *rand.Rand) float64 {
	order := make([]int, runs)
	for i := range order {
		order[i] = i
	}
	turns := func() (n int) {
		for _, w := range work {
			n += w.turns(order)
		}
		return n
	}
	if !slices.ContainsFunc(work, func(w *shiftSearch) bool { return w.deviation > 0 }) {
		return 1
	}
	is, count := turns(), 0
	for range draws {
		rng.Shuffle(runs, func(i, j int) { order[i], order[j] = order[j], order[i] })
		if turns() <= is {
			count++
		}
	}
	return float64(1+count) / float64(1+draws)
}

// turns counts the turning points of values in an order of the runs.
func (w *shiftSearch) turns(order []int) (n int) {
	if w.deviation == 0 {
		return 0
	}
	xs := w.scratch[:0]
	for _, run := range order {
		if run < len(w.place) && w.place[run] >= 0 {
			xs = append(xs, w.values[w.place[run]])
		}
	}
	for i := 2; i < len(xs); i++ {
		if (xs[i-1]-xs[i-2])*(xs[i-1]-xs[i]) > 0 {
			n++
		}
	}
	return n
}
