// Package capacity plans a search for the highest load that meets an objective, such as a p99
// latency under a bound. It is pure: trials go in, the next load or the answer comes out.
//
// Trials of one load differ, so the search cannot be plain bisection: one unlucky trial would send
// it to the wrong half for good. It keeps a probability for each capacity c and each deviation s,
// and weighs both by Bayes' rule with every trial:
//
//	P(a trial of load x meets the objective) = Phi(ln(c/x) / s)
//
// So the capacity is the load that half of the trials carry, and s is by how much the capacity of a
// single trial deviates, 0.03 being 3%. Before the first trial all capacities between the bounds
// are alike on a logarithmic scale, as are all deviations of the list; one time in ten the capacity
// lies beyond a bound. The next load is the median of what is left ("probabilistic bisection",
// Waeber, Frazier and Henderson, SIAM J. Control Optim. 51(3), 2013). The interval holds 95% of the
// probability. That it may stop at any time does not spoil it: the rule weighs what was seen, and
// not why no more was asked for.
//
// Loads are whole numbers, and of them only some are tried (Loads): a ladder whose steps are half
// of the precision. So every point of a search can be listed beforehand.
//
// A trial is judged by what it measured (Objective); that it counts is for others to say.
package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// confidence of the interval.
	confidence = 0.95
	// beyond is the probability, before the first trial, that the capacity lies above the highest
	// load; and that it lies below the lowest.
	beyond = 0.05
	// steps of the capacity's grid for each half-width that is asked for.
	steps = 10
	// mostPoints of the grid: what a search costs grows with them.
	mostPoints = 10_000
)

// deviations of a trial's capacity that are possible.
var deviations = []float64{0.005, 0.01, 0.02, 0.04, 0.08}

// Search is what is looked for.
type Search struct {
	// Low and High bound the load: whole numbers above 0.
	Low, High float64
	// Precision is how far the ends of the interval may lie from its middle, relative to it: 0.05.
	Precision float64
	// MaxTrials ends the search.
	MaxTrials int
}

// Validate names the field that is wrong.
func (s Search) Validate() error {
	switch {
	case !(s.Low > 0) || math.IsInf(s.Low, 0):
		return fmt.Errorf("low is %g; want more than 0", s.Low)
	case !(s.High > s.Low) || math.IsInf(s.High, 0):
		return fmt.Errorf("high is %g; want more than low, %g", s.High, s.Low)
	case !(s.Precision > 0) || s.Precision > 0.5:
		return fmt.Errorf("precision is %g; want more than 0, and 0.5 at most", s.Precision)
	case s.MaxTrials < 1:
		return fmt.Errorf("maxTrials is %d; want 1 or more", s.MaxTrials)
	case steps*math.Log(s.High/s.Low)/s.Precision > mostPoints:
		return fmt.Errorf("precision is %g; from %g to %g that is too fine", s.Precision, s.Low, s.High)
	case s.Low*s.Precision < 1-rounding:
		return fmt.Errorf("low is %g and precision is %g; loads are whole numbers, so that it takes a low of %g or more, or a greater precision", s.Low, s.Precision, math.Ceil(1/s.Precision))
	}
	return nil
}

// rounding is by how much computed numbers may be off.
const rounding = 1e-9

// Loads are those that may be tried, in order: whole numbers from Low to High, each half of the
// precision above the one before, or 1 where that is less. Low and High must be whole.
func (s Search) Loads() []int64 {
	n := int(math.Ceil(math.Log(s.High/s.Low) / (s.Precision / 2)))
	loads := []int64{int64(s.Low)}
	for i := 1; i <= n; i++ {
		if load := int64(math.Round(s.Low * math.Pow(s.High/s.Low, float64(i)/float64(n)))); load > loads[len(loads)-1] {
			loads = append(loads, load)
		}
	}
	return loads
}

// nearest is the place of the load that is nearest, by ratio.
func nearest(loads []int64, load float64) int {
	i, _ := slices.BinarySearchFunc(loads, load, func(l int64, want float64) int { return cmp.Compare(float64(l), want) })
	switch {
	case i == len(loads):
		return i - 1
	case i > 0 && load/float64(loads[i-1]) < float64(loads[i])/load:
		return i - 1
	}
	return i
}

// About is how many trials a search takes on average: those of a bisection of the ladder, and five
// more since trials deviate. MaxTrials at most.
func (s Search) About() int {
	return min(s.MaxTrials, 5+int(math.Ceil(math.Log2(math.Log(s.High/s.Low)/s.Precision))))
}

// Trial is one that counts, and whether it met the objective.
type Trial struct {
	Load float64
	Met  bool
}

// Outcome says how a search stands.
type Outcome int

// The outcomes of a search.
const (
	// Searching: there is a next load.
	Searching Outcome = iota
	// Found: the interval is as narrow as was asked for.
	Found
	// OutOfTrials: it is not, and there are no trials left.
	OutOfTrials
	// AboveHigh: the objective is met at the highest load, too.
	AboveHigh
	// BelowLow: it is not met at the lowest load.
	BelowLow
)

// State is what the trials say.
type State struct {
	Outcome Outcome
	// Next is the place of the next load to try in Loads, if Searching.
	Next int
	// Capacity is the median, and From and To the ends of the interval. From is 0 where the
	// capacity may lie below the lowest load, and To is infinite where it may lie above the
	// highest.
	Capacity, From, To float64
}

// Next weighs all trials, in any order. It fails for a Search that is not valid, and for loads that
// are not above 0.
func (s Search) Next(trials []Trial) (State, error) {
	if err := s.Validate(); err != nil {
		return State{}, err
	}
	for _, t := range trials {
		if !(t.Load > 0) || math.IsInf(t.Load, 0) {
			return State{}, fmt.Errorf("a trial has load %g; want more than 0", t.Load)
		}
	}
	e := s.start()
	for _, t := range trials {
		e.add(t)
	}
	return s.judge(e, len(trials)), nil
}

// judge says how a search stands after so many trials.
func (s Search) judge(e *evidence, trials int) State {
	b := e.belief()
	tail := (1 - confidence) / 2
	state := State{Capacity: b.quantile(0.5), From: b.quantile(tail), To: b.quantile(1 - tail)}
	switch {
	case b.above >= confidence:
		state.Outcome = AboveHigh
	case b.below >= confidence:
		state.Outcome = BelowLow
	case state.From > 0 && !math.IsInf(state.To, 1) && state.To-state.From <= s.Precision*(state.To+state.From):
		state.Outcome = Found
	case trials >= s.MaxTrials:
		state.Outcome = OutOfTrials
	default:
		state.Next = nearest(s.Loads(), min(max(state.Capacity, s.Low), s.High))
	}
	return state
}

// belief is the probability of each capacity of a grid, and of those beyond its ends.
type belief struct {
	low, step    float64 // logarithms: point i stands for low + i*step to low + (i+1)*step
	points       []float64
	below, above float64
}

// evidence has the logarithm of the probability, up to a factor, of each deviation with each point
// of the grid, with what lies below it and what lies above.
type evidence struct {
	low, step float64
	logs      [][]float64
}

func (s Search) start() *evidence {
	width := math.Log(s.High / s.Low)
	n := int(math.Ceil(steps * width / s.Precision))
	e := &evidence{low: math.Log(s.Low), step: width / float64(n), logs: make([][]float64, len(deviations))}
	for k := range e.logs {
		e.logs[k] = make([]float64, n+2)
		for i := range e.logs[k] {
			e.logs[k][i] = math.Log((1 - 2*beyond) / float64(n))
		}
		e.logs[k][0], e.logs[k][n+1] = math.Log(beyond), math.Log(beyond)
	}
	return e
}

// capacity that an element stands for, as a logarithm. What lies beyond the grid stands for one of
// two deviations further.
func (e *evidence) capacity(k, i int) float64 {
	last := len(e.logs[k]) - 1
	switch i {
	case 0:
		return e.low - 2*deviations[k]
	case last:
		return e.low + float64(last-1)*e.step + 2*deviations[k]
	}
	return e.low + (float64(i)-0.5)*e.step
}

func (e *evidence) add(t Trial) {
	load := math.Log(t.Load)
	for k, deviation := range deviations {
		for i := range e.logs[k] {
			z := (e.capacity(k, i) - load) / deviation
			if !t.Met {
				z = -z
			}
			e.logs[k][i] += logPhi(z)
		}
	}
}

// belief adds up the deviations.
func (e *evidence) belief() belief {
	greatest := math.Inf(-1)
	for _, logs := range e.logs {
		greatest = max(greatest, slices.Max(logs))
	}
	weights := make([]float64, len(e.logs[0]))
	var total float64
	for _, logs := range e.logs {
		for i, l := range logs {
			w := math.Exp(l - greatest)
			weights[i] += w
			total += w
		}
	}
	for i := range weights {
		weights[i] /= total
	}
	last := len(weights) - 1
	return belief{low: e.low, step: e.step, points: weights[1:last], below: weights[0], above: weights[last]}
}

// quantile is the capacity below which a share of the probability lies: 0 when that share lies
// below the grid, infinite when it reaches beyond.
func (b belief) quantile(share float64) float64 {
	sum := b.below
	if share < sum {
		return 0
	}
	for i, p := range b.points {
		if sum+p >= share && p > 0 {
			return math.Exp(b.low + (float64(i)+(share-sum)/p)*b.step)
		}
		sum += p
	}
	return math.Inf(1)
}

// logPhi is the logarithm of the standard normal distribution function. Far below zero the function
// is too small for a float. There logPhi takes the logarithm of the first terms of its tail.
func logPhi(z float64) float64 {
	switch {
	case z > 8:
		return 0
	case z < -30:
		return -z*z/2 - math.Log(-z) - math.Log(2*math.Pi)/2
	}
	return math.Log(math.Erfc(-z/math.Sqrt2) / 2)
}
