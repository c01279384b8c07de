package capacity

import "math"

// model is one way in which trials may deviate from the capacity.
type model struct {
	// prior is its probability before the first trial.
	prior float64
	// deviation of a trial's own capacity, and lapse, the share of trials that fail at any load.
	deviation, lapse float64
	// shifts are the deviations that a trial may share with its neighbours: only 0, or those of the
	// chain.
	shifts []float64
	// trend is by how much the capacity grows from trial to trial.
	trend float64
}

// shared reports whether trials of the model depend on their neighbours.
func (m model) shared() bool { return len(m.shifts) > 1 }

// The parameters of the models. Their ranges are wider than a good experiment needs. The list of
// deviations once ended at 0.08: the interval then held 76% at that deviation, and 53% at 0.15.
// Without shared deviations it held 73% if trials depend on each other.
var (
	deviations       = []float64{0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}
	lapses           = []struct{ rate, prior float64 }{{0, 0.4}, {0.05, 0.25}, {0.1, 0.2}, {0.2, 0.15}}
	sharedDeviations = []float64{0.03, 0.06, 0.12, 0.24}
	ownByShared      = []float64{0.25, 1} // deviation of a trial's own capacity, as a multiple of the shared one
	trends           = []float64{-0.04, -0.02, -0.01, -0.005, 0.005, 0.01, 0.02, 0.04}
)

// ownWithTrend is the deviation of a trial's own capacity in models with a trend.
const ownWithTrend = 0.04

// The probabilities, before the first trial, that trials share deviations with their neighbours,
// and that the machines get faster or slower from trial to trial.
const (
	priorShared = 0.25
	priorTrend  = 0.05
)

// models returns all models.
func models() (all []model) {
	alone := []float64{0}
	for _, s := range deviations {
		for _, l := range lapses {
			all = append(all, model{prior: (1 - priorShared - priorTrend) * l.prior / float64(len(deviations)), deviation: s, lapse: l.rate, shifts: alone})
		}
	}
	for _, d := range sharedDeviations {
		for _, f := range ownByShared {
			all = append(all, model{prior: priorShared / float64(len(sharedDeviations)*len(ownByShared)), deviation: f * d, shifts: []float64{-2 * d, -d, 0, d, 2 * d}})
		}
	}
	for _, t := range trends {
		all = append(all, model{prior: priorTrend / float64(len(trends)), deviation: ownWithTrend, shifts: alone, trend: t})
	}
	return all
}

// The chain has the deviation and the neighbours' correlation of a normal AR(1) with the
// coefficient kept (Rouwenhorst 1995; Kopecky and Suen, Rev. Econ. Dyn. 13, 2010). It has four
// coins. Each stays as it is with probability (1+kept)/2, and is turned otherwise. The state is the
// number of heads.
const (
	kept   = 0.9
	states = 5
)

// often is the share of trials in each state of the chain. moves are the probabilities of one state
// after another.
var often, moves = chain()

func chain() (often [states]float64, moves [states][states]float64) {
	coins := func(heads int, stays float64) []float64 {
		number := []float64{1} // the probability of each number of heads
		for coin := range states - 1 {
			up := 1 - stays
			if coin < heads {
				up = stays
			}
			next := make([]float64, len(number)+1)
			for n, p := range number {
				next[n] += p * (1 - up)
				next[n+1] += p * up
			}
			number = next
		}
		return number
	}
	copy(often[:], coins(0, 0.5))
	for from := range moves {
		copy(moves[from][:], coins(from, (1+kept)/2))
	}
	return often, moves
}

// evidence has the probability, up to a factor, of each model, state and point of the grid. It also
// has the probabilities of all below the grid and all above it.
type evidence struct {
	low, step float64 // logarithms: point i stands for low + i*step to low + (i+1)*step
	models    []model
	weights   [][][]float64 // by model, state, point
	spans     []span        // by model: the points whose weights are not 0
	count     int           // of trials
}

// span is a range of points: the first, and the one after the last.
type span struct{ from, to int }

// negligible weights, relative to the greatest, become 0 at the ends of a span. That saves most of
// the work, and moves no quantile by a millionth.
const negligible = 1e-13

func (s Search) start() *evidence {
	width := math.Log(s.High / s.Low)
	n := int(math.Ceil(steps * width / s.Precision))
	e := &evidence{low: math.Log(s.Low), step: width / float64(n), models: models()}
	for _, m := range e.models {
		all := make([][]float64, len(m.shifts))
		for j := range all {
			share := m.prior
			if m.shared() {
				share *= often[j]
			}
			all[j] = make([]float64, n+2)
			for i := range all[j] {
				all[j][i] = share * (1 - 2*beyond) / float64(n)
			}
			all[j][0], all[j][n+1] = share*beyond, share*beyond
		}
		e.weights, e.spans = append(e.weights, all), append(e.spans, span{0, n + 2})
	}
	return e
}

// capacity returns the capacity that an element stands for, as a logarithm. The elements beyond the
// grid stand for capacities two deviations outside of it.
func (e *evidence) capacity(m model, i int) float64 {
	last := len(e.weights[0][0]) - 1
	switch i {
	case 0:
		return e.low - 2*m.deviation
	case last:
		return e.low + float64(last-1)*e.step + 2*m.deviation
	}
	return e.low + (float64(i)-0.5)*e.step
}

// add multiplies each weight by the probability of the trial's outcome. It then scales the weights,
// which would become too small for a float.
func (e *evidence) add(t Trial) {
	load, greatest := math.Log(t.Load), 0.0
	for k, m := range e.models {
		if m.shared() && e.count > 0 {
			pass(e.weights[k], e.spans[k])
		}
		for j, shift := range m.shifts {
			shift += m.trend*float64(e.count) - load
			for i := e.spans[k].from; i < e.spans[k].to; i++ {
				carries, fails := halves((e.capacity(m, i) + shift) / m.deviation)
				chance := (1 - m.lapse) * carries
				if !t.Met {
					chance = fails + m.lapse*carries
				}
				e.weights[k][j][i] *= chance
				greatest = max(greatest, e.weights[k][j][i])
			}
		}
	}
	e.count++
	for _, points := range e.each {
		for i := range points {
			points[i] /= greatest
		}
	}
	for k := range e.spans {
		e.tighten(k)
	}
}

// chance is the probability that a trial meets the objective. below is how far its load lies below
// the capacity, as a difference of logarithms.
func (m model) chance(below float64) float64 {
	sum := 0.0
	for j, shift := range m.shifts {
		share := 1.0
		if m.shared() {
			share = often[j]
		}
		carries, _ := halves((below + shift) / m.deviation)
		sum += share * carries
	}
	return (1 - m.lapse) * sum
}

// tighten shortens the span of a model to the weights that are not negligible.
func (e *evidence) tighten(k int) {
	drop := func(i int) bool {
		for _, points := range e.weights[k] {
			if points[i] > negligible {
				return false
			}
		}
		for _, points := range e.weights[k] {
			points[i] = 0
		}
		return true
	}
	s := &e.spans[k]
	for s.from < s.to && drop(s.from) {
		s.from++
	}
	for s.from < s.to && drop(s.to-1) {
		s.to--
	}
}

// at names a state of a model, and the first point of its span.
type at struct{ model, state, from int }

// each yields the weights of the points of each state.
func (e *evidence) each(yield func(at, []float64) bool) {
	for k := range e.weights {
		for j := range e.weights[k] {
			if !yield(at{k, j, e.spans[k].from}, e.weights[k][j][e.spans[k].from:e.spans[k].to]) {
				return
			}
		}
	}
}

// pass advances the states of a chain by one trial.
func pass(weights [][]float64, s span) {
	for i := s.from; i < s.to; i++ {
		var next [states]float64
		for from := range states {
			for to := range states {
				next[to] += weights[from][i] * moves[from][to]
			}
		}
		for to := range states {
			weights[to][i] = next[to]
		}
	}
}

// halves are the shares of the normal distribution below z and above it.
func halves(z float64) (below, above float64) {
	tail := math.Erfc(math.Abs(z)/math.Sqrt2) / 2
	if z < 0 {
		return tail, 1 - tail
	}
	return 1 - tail, tail
}

// belief adds up the weights of all models and states.
func (e *evidence) belief() belief {
	weights := make([]float64, len(e.weights[0][0]))
	for at, points := range e.each {
		for i, w := range points {
			weights[at.from+i] += w
		}
	}
	return e.scaled(weights)
}

// now is the belief about the capacity of the next trial, given the state of the last one.
func (e *evidence) now() belief {
	weights := make([]float64, len(e.weights[0][0]))
	last := len(weights) - 1
	for at, points := range e.each {
		m := e.models[at.model]
		by := int(math.Round((m.shifts[at.state] + m.trend*float64(e.count)) / e.step))
		for i, w := range points {
			if i += at.from; 0 < i && i < last {
				i = min(max(i+by, 0), last)
			}
			weights[i] += w
		}
	}
	return e.scaled(weights)
}

// describe writes into the state which models are more probable than not.
func (e *evidence) describe(state *State) {
	shared, trending, trend := e.shares()
	state.Shared = shared > 0.5
	if trending > 0.5 {
		state.Trend = trend / trending
	}
	deviations := map[float64]float64{}
	for k, p := range e.probabilities() {
		s := e.models[k].deviation
		if deviations[s] += p; deviations[s] > deviations[state.Deviation] {
			state.Deviation = s
		}
	}
}

// shares returns the probabilities that trials share deviations, and that machines have a trend. It
// also returns the sum of all trends, weighed by their probabilities.
func (e *evidence) shares() (shared, trending, trend float64) {
	for k, p := range e.probabilities() {
		m := e.models[k]
		if m.shared() {
			shared += p
		}
		if m.trend != 0 {
			trending, trend = trending+p, trend+p*m.trend
		}
	}
	return shared, trending, trend
}

// probabilities returns the probabilities of the models.
func (e *evidence) probabilities() []float64 {
	of, total := make([]float64, len(e.models)), 0.0
	for at, points := range e.each {
		for _, w := range points {
			of[at.model] += w
			total += w
		}
	}
	for k := range of {
		of[k] /= total
	}
	return of
}

// belief has the probability of each capacity of a grid, and of the capacities beyond its ends.
type belief struct {
	low, step    float64 // as of evidence
	points       []float64
	below, above float64
}

func (e *evidence) scaled(weights []float64) belief {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	for i := range weights {
		weights[i] /= total
	}
	last := len(weights) - 1
	return belief{low: e.low, step: e.step, points: weights[1:last], below: weights[0], above: weights[last]}
}

// quantile returns the capacity below which a share of the probability lies. It is 0 if that
// capacity lies below the grid, and infinite if it lies above.
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
