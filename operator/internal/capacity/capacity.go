// Package capacity plans a search for the highest load that meets an objective, such as a p99
// latency under a bound. It is pure: trials go in, the next load or the answer comes out.
//
// Trials of one load differ, so the search cannot be plain bisection: one unlucky trial would send
// it to the wrong half for good. It keeps a probability for each capacity c, each deviation s and
// each lapse rate l, and weighs all by Bayes' rule with every trial:
//
//	P(a trial of load x meets the objective) = (1-l) Phi(ln(c/x) / s)
//
// So the capacity is the load that half of the trials carry which do not lapse. A trial that lapses
// fails whatever its load, as the lapse rate of psychometric functions (Wichmann and Hill, Percept.
// Psychophys. 63, 2001). s is by how much the capacity of a single trial deviates, 0.03 being 3%.
// Before the first trial all capacities between the bounds are alike on a logarithmic scale, as are
// all deviations of the list; one time in ten the capacity lies beyond a bound. The next load is
// the median of what is left ("probabilistic bisection", Waeber, Frazier and Henderson, SIAM J.
// Control Optim. 51(3), 2013), until a trial met the objective and another did not. From then on
// loads lie below the median and above it in turn, since those at the median say nothing of the
// deviation. An answer takes eight trials, with both outcomes inside of the interval. make
// bench-statistics measures how often the interval holds the capacity, at fixed deviations and in
// worlds that are not as the model says.
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
	// confidence of the interval, in what the search believes. It is more than the 95% that are
	// promised, since a search ends when its interval is narrow, and some are by chance.
	confidence = 0.97
	// aside is the quantile below which, or above which, loads are tried.
	aside = 0.2
	// beyond is the probability, before the first trial, that the capacity lies above the highest
	// load; and that it lies below the lowest.
	beyond = 0.05
	// steps of the capacity's grid for each half-width that is asked for.
	steps = 10
	// mostPoints of the grid: what a search costs grows with them.
	mostPoints = 10_000
)

// deviations of a trial's capacity that are possible. The list once ended at 0.08, and the interval
// then held 76% at that deviation, and 53% at 0.15.
var deviations = []float64{0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}

// lapses are the shares of trials that may fail whatever their load, with their probabilities
// before the first trial.
var lapses = []struct{ rate, prior float64 }{{0, 0.4}, {0.05, 0.25}, {0.1, 0.2}, {0.2, 0.15}}

// leastTrials is how many trials an answer takes: fewer say too little of how much trials deviate.
const leastTrials = 8

// disorder is by how many times the precision a met load may lie above a failed one without a word.
const disorder = 3

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

// About is how many trials a search takes where trials deviate by 2%: those of a bisection of the
// ladder, and more since trials deviate, the more so the finer the search. MaxTrials at most.
func (s Search) About() int {
	return min(s.MaxTrials, 5+int(math.Ceil(0.4/s.Precision))+int(math.Ceil(math.Log2(math.Log(s.High/s.Low)/s.Precision))))
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
	// Deviation of a trial's capacity that is most probable, as a share.
	Deviation float64
	// Disordered: a load was met that lies above a failed one by more than three times the
	// precision. The trials deviate by more than is asked for, some fail for other reasons than
	// their load, or the machines changed.
	Disordered bool
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
	p := s.begin()
	for _, t := range trials {
		p.add(t)
	}
	return p.State(), nil
}

// Progress is a search with the trials that it has so far.
type Progress struct {
	search Search
	*evidence
	trials []Trial
}

// Begin is a search without a trial. It fails for a Search that is not valid.
func (s Search) Begin() (*Progress, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.begin(), nil
}

func (s Search) begin() *Progress { return &Progress{search: s, evidence: s.start()} }

// Add weighs one more trial, whose load is above 0.
func (p *Progress) Add(t Trial) State {
	p.add(t)
	return p.State()
}

func (p *Progress) add(t Trial) {
	p.evidence.add(t)
	p.trials = append(p.trials, t)
}

// State says how the search stands.
func (p *Progress) State() State {
	b, s := p.belief(), p.search
	tail := (1 - confidence) / 2
	state := State{Capacity: b.quantile(0.5), From: b.quantile(tail), To: b.quantile(1 - tail), Deviation: p.deviation()}
	met, failed := 0.0, math.Inf(1)
	inside := [2]bool{}
	for _, t := range p.trials {
		within := state.From <= t.Load && t.Load <= state.To
		if t.Met {
			met, inside[0] = max(met, t.Load), inside[0] || within
		} else {
			failed, inside[1] = min(failed, t.Load), inside[1] || within
		}
	}
	state.Disordered = met > 0 && math.Log(met/failed) > disorder*s.Precision
	narrow := state.From > 0 && !math.IsInf(state.To, 1) && state.To-state.From <= s.Precision*(state.To+state.From)
	switch {
	case b.above >= confidence:
		state.Outcome = AboveHigh
	case b.below >= confidence:
		state.Outcome = BelowLow
	case narrow && len(p.trials) >= leastTrials && inside[0] && inside[1]:
		state.Outcome = Found
	case len(p.trials) >= s.MaxTrials:
		state.Outcome = OutOfTrials
	default:
		state.Next = nearest(s.Loads(), min(max(b.quantile(p.aim()), s.Low), s.High))
	}
	return state
}

// aim is the quantile of the capacity that the next load is at. As long as all trials came to the
// same, it is the median. After that trials take turns below and above it: half of the trials at
// the median meet the objective whatever their deviation is, so that they say nothing of it.
func (p *Progress) aim() float64 {
	differ := slices.ContainsFunc(p.trials, func(t Trial) bool { return t.Met != p.trials[0].Met })
	switch {
	case !differ:
		return 0.5
	case len(p.trials)%2 == 0:
		return aside
	}
	return 1 - aside
}

// belief is the probability of each capacity of a grid, and of those beyond its ends.
type belief struct {
	low, step    float64 // logarithms: point i stands for low + i*step to low + (i+1)*step
	points       []float64
	below, above float64
}

// evidence has the probability, up to a factor, of each deviation and lapse rate with each point of
// the grid, with what lies below it and what lies above.
type evidence struct {
	low, step float64
	weights   [][][]float64 // by deviation, lapse rate, point
}

func (s Search) start() *evidence {
	width := math.Log(s.High / s.Low)
	n := int(math.Ceil(steps * width / s.Precision))
	e := &evidence{low: math.Log(s.Low), step: width / float64(n), weights: make([][][]float64, len(deviations))}
	for k := range e.weights {
		for _, lapse := range lapses {
			points := make([]float64, n+2)
			for i := range points {
				points[i] = lapse.prior * (1 - 2*beyond) / float64(n)
			}
			points[0], points[n+1] = lapse.prior*beyond, lapse.prior*beyond
			e.weights[k] = append(e.weights[k], points)
		}
	}
	return e
}

// capacity that an element stands for, as a logarithm. What lies beyond the grid stands for one of
// two deviations further.
func (e *evidence) capacity(k, i int) float64 {
	last := len(e.weights[k][0]) - 1
	switch i {
	case 0:
		return e.low - 2*deviations[k]
	case last:
		return e.low + float64(last-1)*e.step + 2*deviations[k]
	}
	return e.low + (float64(i)-0.5)*e.step
}

// add multiplies by the probability of what the trial came to. The weights are then scaled: they
// would become too small for a float.
func (e *evidence) add(t Trial) {
	load := math.Log(t.Load)
	var greatest float64
	for k, deviation := range deviations {
		for i := range e.weights[k][0] {
			carries := math.Erfc(-(e.capacity(k, i)-load)/deviation/math.Sqrt2) / 2
			fails := math.Erfc((e.capacity(k, i)-load)/deviation/math.Sqrt2) / 2
			for j, lapse := range lapses {
				if t.Met {
					e.weights[k][j][i] *= (1 - lapse.rate) * carries
				} else {
					e.weights[k][j][i] *= fails + lapse.rate*carries
				}
				greatest = max(greatest, e.weights[k][j][i])
			}
		}
	}
	for k := range e.weights {
		for j := range e.weights[k] {
			for i := range e.weights[k][j] {
				e.weights[k][j][i] /= greatest
			}
		}
	}
}

// belief adds up deviations and lapse rates.
func (e *evidence) belief() belief {
	weights := make([]float64, len(e.weights[0][0]))
	var total float64
	for k := range e.weights {
		for j := range e.weights[k] {
			for i, w := range e.weights[k][j] {
				weights[i] += w
				total += w
			}
		}
	}
	for i := range weights {
		weights[i] /= total
	}
	last := len(weights) - 1
	return belief{low: e.low, step: e.step, points: weights[1:last], below: weights[0], above: weights[last]}
}

// deviation is the one that is most probable.
func (e *evidence) deviation() float64 {
	best, most := 0.0, -1.0
	for k := range e.weights {
		var sum float64
		for j := range e.weights[k] {
			for _, w := range e.weights[k][j] {
				sum += w
			}
		}
		if sum > most {
			best, most = deviations[k], sum
		}
	}
	return best
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
