// Package capacity plans a search for the highest load that meets an objective, such as a p99
// latency under a bound. It is pure: trials go in, the next load or the answer comes out.
//
// Trials of one load differ, so the search cannot be plain bisection: one unlucky trial would send
// it to the wrong half for good. It keeps a probability for each capacity c and each model of how
// trials deviate, and weighs all by Bayes' rule with every trial:
//
//	P(trial i of load x meets the objective) = (1-l) Phi((ln(c/x) + d_i + t i) / s)
//
// The deviation s is by how much the capacity of a trial by itself deviates, 0.03 being 3%. The
// lapse rate l is the share of trials that fail whatever their load (psychometric functions have
// it: Wichmann and Hill, Percept. Psychophys. 63, 2001). d_i is a deviation that a trial shares
// with its neighbours: the machines have good hours and bad ones. It is a chain that keeps 0.9 of
// its deviation from trial to trial. t is by how much the machines grow faster from trial to trial,
// or slower. With d and t of 0 the capacity is the load that half of the trials carry which do not
// lapse.
//
// Before the first trial all capacities between the bounds are alike on a logarithmic scale, and
// the models have the probabilities of models(). Three times in ten the capacity lies beyond a
// bound. The next load is the median of what is left ("probabilistic bisection", Waeber, Frazier
// and Henderson, SIAM J. Control Optim. 51(3), 2013), until a trial met the objective and another
// did not. From then on loads lie below the median and above it in turn, since those at the median
// say nothing of the deviation. An answer takes eight trials, with both outcomes inside of the
// interval. Where a trend is more probable than not, there is no one capacity to find, and State
// says so. The command make bench-statistics measures how often the interval holds the capacity. It
// does so at fixed deviations and in worlds that are not as the model says.
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
	// confidence of the interval, by the search's own belief. It is more than the promised 95%,
	// since a search ends when its interval is narrow, and some intervals are narrow by chance.
	confidence = 0.97
	// aside is the quantile at which loads are tried below the median; 1 - aside is the one above
	// it.
	aside = 0.2
	// beyond is the probability, before the first trial, that the capacity lies above the highest
	// load. The probability that it lies below the lowest load is the same.
	beyond = 0.15
	// steps is how many points the capacity's grid has for each requested half-width.
	steps = 5
	// mostPoints is the most points of the grid. The cost of a search grows with them.
	mostPoints = 5_000
)

// leastTrials is how many trials an answer needs: fewer do not show how much trials deviate.
const leastTrials = 8

// disorder is by how many times the precision a load that met the objective may lie above one that
// did not. Beyond it the search reports a disorder.
const disorder = 3

// Search describes a search.
type Search struct {
	// Low and High bound the load: whole numbers above 0.
	Low, High float64
	// Precision is the greatest distance between the middle of the interval and its ends, as a
	// share of the middle: 0.05.
	Precision float64
	// MaxTrials is after how many trials the search ends.
	MaxTrials int
}

// Validate returns an error that names the wrong field.
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

// rounding is the allowed error of computed numbers.
const rounding = 1e-9

// Loads are the loads that may be tried, in order: whole numbers from Low to High. Each is above
// the load before it by half of the precision, or by 1 if that is more. Low and High must be whole.
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

// nearest returns the index of the load that is nearest, by ratio.
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

// About is how many trials a search takes if trials deviate by 2%, at most MaxTrials. A bisection
// of the ladder would take fewer: deviations cost further trials, and a finer search costs more of
// them.
func (s Search) About() int {
	return min(s.MaxTrials, 5+int(math.Ceil(0.4/s.Precision))+int(math.Ceil(math.Log2(math.Log(s.High/s.Low)/s.Precision))))
}

// Trial is a trial that counts, and whether it met the objective.
type Trial struct {
	Load float64
	Met  bool
}

// Outcome is the state of a search.
type Outcome int

// The outcomes of a search.
const (
	// Searching: there is a next load.
	Searching Outcome = iota
	// Found: the interval is as narrow as requested.
	Found
	// OutOfTrials: the interval is too wide, and no trials are left.
	OutOfTrials
	// AboveHigh: trials meet the objective at the highest load, too. The interval lies above that
	// load. Or its lower end is as near to the load as the precision, and most of it lies above.
	AboveHigh
	// BelowLow: trials do not meet the objective at the lowest load, by the same rule.
	BelowLow
)

// State is the result of all trials so far.
type State struct {
	Outcome Outcome
	// Next is the index in Loads of the next load to try, if Searching.
	Next int
	// Capacity is the median. From and To are the ends of the interval. From is 0 if the capacity
	// may lie below the lowest load. To is infinite if it may lie above the highest load.
	Capacity, From, To float64
	// Deviation is the most probable deviation of a trial's own capacity, as a share.
	Deviation float64
	// Disordered: a trial met the objective at a load above that of a failed trial, by more than
	// three times the precision. Either trials deviate by more than assumed, some fail for other
	// reasons than their load, or the machines changed.
	Disordered bool
	// Shared: trials probably share a deviation with their neighbours, so the interval is wider.
	Shared bool
	// Trend is by how much more the machines carry from trial to trial, as a share. It is negative
	// if they carry less. It is 0 unless a trend is more probable than none. With a trend,
	// Capacity, From and To are those of the first trial, and the search has no answer: it is never
	// Found.
	Trend float64
}

// Next weighs all trials, in the order in which they ran, since neighbours may share a deviation.
// It fails for an invalid Search, and for loads that are not above 0.
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
		p.Weigh(t)
	}
	return p.State(), nil
}

// Progress is a search with its trials so far.
type Progress struct {
	search Search
	*evidence
	trials []Trial
}

// Begin starts a search without trials. It fails for an invalid Search.
func (s Search) Begin() (*Progress, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.begin(), nil
}

func (s Search) begin() *Progress { return &Progress{search: s, evidence: s.start()} }

// Add weighs one more trial and returns the state. The trial must be later than the others, and its
// load above 0.
func (p *Progress) Add(t Trial) State {
	p.Weigh(t)
	return p.State()
}

// Weigh weighs one more trial, as Add does, without computing the state.
func (p *Progress) Weigh(t Trial) {
	p.evidence.add(t)
	p.trials = append(p.trials, t)
}

// State returns the state of the search.
func (p *Progress) State() State {
	b, s := p.belief(), p.search
	tail := (1 - confidence) / 2
	state := State{Capacity: b.quantile(0.5), From: b.quantile(tail), To: b.quantile(1 - tail)}
	p.describe(&state)
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
	above := b.above >= confidence || b.above > 0.5 && state.From >= s.High*(1-s.Precision)
	below := b.below >= confidence || b.below > 0.5 && state.To <= s.Low*(1+s.Precision)
	narrow := state.From > 0 && !math.IsInf(state.To, 1) && state.To-state.From <= s.Precision*(state.To+state.From)
	switch {
	case above:
		state.Outcome = AboveHigh
	case below:
		state.Outcome = BelowLow
	case narrow && state.Trend == 0 && len(p.trials) >= leastTrials && inside[0] && inside[1]:
		state.Outcome = Found
	case len(p.trials) >= s.MaxTrials:
		state.Outcome = OutOfTrials
	default:
		state.Next = nearest(s.Loads(), min(max(p.now().quantile(p.aim()), s.Low), s.High))
	}
	return state
}

// Chances returns, for each load, the probability that a trial at that load meets the objective. It
// is the mean over all capacities and models, weighed by their probabilities after the trials. On
// machines with a trend, it is the probability in the middle of the search.
func (p *Progress) Chances(loads []float64) []float64 {
	chances, total := make([]float64, len(loads)), 0.0
	for k, m := range p.models {
		s := p.spans[k]
		for i := s.from; i < s.to; i++ {
			weight := 0.0
			for j := range m.shifts {
				weight += p.weights[k][j][i]
			}
			total += weight
			for l, load := range loads {
				chances[l] += weight * m.chance(p.evidence.capacity(m, i)+m.trend*float64(p.count)/2-math.Log(load))
			}
		}
	}
	for l := range chances {
		chances[l] /= total
	}
	return chances
}

// aim returns the quantile of the next trial's capacity at which to choose its load. It is the
// median while all trials had the same outcome. After that, trials take turns below and above the
// median. At the median, half of the trials meet the objective at any deviation, so such trials do
// not show the deviation.
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
