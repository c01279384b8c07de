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
	// confidence of the interval, in what the search believes. It is more than the 95% that are
	// promised, since a search ends when its interval is narrow, and some are by chance.
	confidence = 0.97
	// aside is the quantile below which, or above which, loads are tried.
	aside = 0.2
	// beyond is the probability, before the first trial, that the capacity lies above the highest
	// load; and that it lies below the lowest.
	beyond = 0.15
	// steps of the capacity's grid for each half-width that is asked for.
	steps = 5
	// mostPoints of the grid: what a search costs grows with them.
	mostPoints = 5_000
)

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

// About is how many trials a search takes where trials deviate by 2%. They are those of a bisection
// of the ladder, and more since trials deviate, the more so the finer the search. MaxTrials at
// most.
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
	// AboveHigh: the objective is met at the highest load, too. The interval lies above it, or its
	// lower end is as near to it as the precision, and most of it lies above.
	AboveHigh
	// BelowLow: it is not met at the lowest load, likewise.
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
	// Deviation of a trial's capacity by itself that is most probable, as a share.
	Deviation float64
	// Disordered: a load was met that lies above a failed one by more than three times the
	// precision. The trials deviate by more than is asked for, some fail for other reasons than
	// their load, or the machines changed.
	Disordered bool
	// Shared: trials more probably than not share a deviation with their neighbours. The interval
	// is the wider for it.
	Shared bool
	// Trend: by how much the machines carry more from trial to trial, as a share; below 0: less. 0
	// unless it is more probable than not that they do. Then Capacity, From and To are those of the
	// first trial, and the search has no answer: it is never Found.
	Trend float64
}

// Next weighs all trials, in the order in which they ran: neighbours may share a deviation. It
// fails for a Search that is not valid, and for loads that are not above 0.
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

// Add weighs one more trial, which ran after the others, and whose load is above 0.
func (p *Progress) Add(t Trial) State {
	p.Weigh(t)
	return p.State()
}

// Weigh is Add for those who do not ask yet how the search stands.
func (p *Progress) Weigh(t Trial) {
	p.evidence.add(t)
	p.trials = append(p.trials, t)
}

// State says how the search stands.
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

// Chances are the probabilities that a trial at each of these loads, at a time of its own, meets
// the objective. They are the means over all capacities and models by what the trials say of these.
// On machines with a trend they are those in the middle of the search.
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

// aim is the quantile of the next trial's capacity that its load is at. As long as all trials came
// to the same, it is the median. After that trials take turns below and above it: half of the
// trials at the median meet the objective whatever their deviation is, so that they say nothing of
// it.
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
