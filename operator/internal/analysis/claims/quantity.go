package claims

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// unit of a quantity, as it is shown.
type unit string

const (
	milliseconds unit = "ms"
	perSecond    unit = "tx/s"
	plain        unit = ""
)

// mean is one input of a quantity: the mean of a metric over the trials of a point.
type mean struct {
	point  int32
	metric metric
	// atLeast: the mean is a lower bound, since some trial gives only a lower bound.
	atLeast bool
}

func (m mean) compare(n mean) int {
	return cmp.Or(cmp.Compare(m.point, n.point), m.metric.compare(n.metric))
}

// quantity is a function of means: its value and its derivative by each of them. Or it has an
// interval of its own.
type quantity struct {
	value    float64
	unit     unit
	gradient map[mean]float64
	// ratio is true for a quotient of measured quantities that are never negative, times numbers:
	// its interval is that of its logarithm.
	ratio bool
	// signed is true for a quantity that may be negative, such as a difference. The interval of a
	// logarithm never holds 0, so a quotient of signed quantities has the linear interval.
	signed bool
	// unbounded is true for a quantity computed with a quotient whose denominator may be 0: it has
	// no interval.
	unbounded bool
	// own is the interval of a value that is not computed from means. counts are the trials of its
	// points.
	own    *stats.Estimate
	counts []int
	// multiple: the value is that of one mean, times a number.
	multiple bool
	// quotient: the value is that of one mean by another, times a number.
	quotient *[2]mean
	// or are alternatives of the quantity, if other points tie with the chosen point.
	or []quantity
	// absent says why there is no number and no verdict. contradicted: the trials show that no such
	// number exists; against is the evidence.
	absent       string
	contradicted bool
	against      evidence
}

func constant(value float64, u unit) quantity {
	return quantity{value: value, unit: u, signed: value < 0}
}

func (q quantity) measured() bool { return len(q.gradient) > 0 || q.own != nil || q.absent != "" }

// combine is value, a function of a and b, whose derivatives by them are da and db.
func combine(value float64, u unit, a quantity, da float64, b quantity, db float64) quantity {
	q := quantity{value: value, unit: u, gradient: map[mean]float64{}, signed: a.signed || b.signed, unbounded: a.unbounded || b.unbounded}
	for m, g := range a.gradient {
		q.gradient[m] += da * g
	}
	for m, g := range b.gradient {
		q.gradient[m] += db * g
	}
	return q
}

func (q quantity) plus(r quantity) quantity {
	return combine(q.value+r.value, q.unit, q, 1, r, 1)
}

func (q quantity) minus(r quantity) quantity {
	d := combine(q.value-r.value, q.unit, q, 1, r, -1)
	d.signed = d.measured() || d.value < 0
	return d
}

func (q quantity) times(r quantity) quantity {
	u := q.unit
	if u == plain {
		u = r.unit
	}
	p := combine(q.value*r.value, u, q, r.value, r, q.value)
	p.ratio = !p.signed && (q.ratio && !r.measured() || r.ratio && !q.measured())
	p.multiple = q.multiple && !r.measured() || r.multiple && !q.measured()
	if p.ratio {
		p.quotient = cmp.Or(q.quotient, r.quotient)
	}
	return p
}

func (q quantity) over(r quantity) quantity {
	u := q.unit
	if q.unit == r.unit {
		u = plain
	}
	p := combine(q.value/r.value, u, q, 1/r.value, r, -q.value/(r.value*r.value))
	p.ratio = !p.signed && (r.measured() || q.ratio)
	p.multiple = q.multiple && !r.measured()
	a, aMean := q.proportional()
	b, bMean := r.proportional()
	switch {
	case p.ratio && aMean && bMean && a.point != b.point:
		p.quotient = &[2]mean{a, b}
	case p.ratio && !r.measured():
		p.quotient = q.quotient
	}
	return p
}

// proportional returns the mean of which a quantity is a multiple.
func (q quantity) proportional() (m mean, yes bool) {
	if len(q.gradient) != 1 || q.ratio {
		return mean{}, false
	}
	for m = range q.gradient {
	}
	return m, q.multiple
}

// atLeast is the quantity as a lower bound.
func (q quantity) atLeast() quantity {
	gradient := map[mean]float64{}
	for m, g := range q.gradient {
		m.atLeast = true
		gradient[m] = g
	}
	q.gradient = gradient
	return q
}

// with applies op to all alternatives of a and b.
func with(a, b quantity, op func(a, b quantity) quantity) quantity {
	result := op(a.alone(), b.alone())
	if (1+len(a.or))*(1+len(b.or)) > maxChoices {
		result.unbounded = true
		return result
	}
	for i, x := range append([]quantity{a}, a.or...) {
		for j, y := range append([]quantity{b}, b.or...) {
			if i+j > 0 {
				result.or = append(result.or, op(x.alone(), y.alone()))
			}
		}
	}
	return result
}

// alone is the quantity without its alternatives.
func (q quantity) alone() quantity {
	q.or = nil
	return q
}

// samples are the trials that succeeded, by point.
type samples map[int32][]results.TrialLine

// estimate gives q its interval and says how many trials of each point are in it.
//
// The metrics of one trial depend on each other (a closed loop that is faster has a shorter
// latency). So the linearised quantity is computed for each trial first; only points are
// independent of each other.
func (s samples) estimate(q quantity) (stats.Estimate, []int) {
	if q.own != nil {
		return *q.own, q.counts
	}
	inputs := slices.SortedFunc(maps.Keys(q.gradient), mean.compare)
	var middle, lowest, highest side
	var counts []int
	for i := 0; i < len(inputs); {
		point := inputs[i].point
		n := len(s[point])
		linear, least, most := make([]float64, n), make([]float64, n), make([]float64, n)
		for ; i < len(inputs) && inputs[i].point == point; i++ {
			g := q.gradient[inputs[i]]
			lowest.open = lowest.open || inputs[i].atLeast && g < 0
			highest.open = highest.open || inputs[i].atLeast && g > 0
			for k, line := range s[point] {
				x, _ := inputs[i].metric.of(line) // missing values were found when they were read
				linear[k] += g * x.value
				least[k] += lowest.end(g, x, x.low, x.high)
				most[k] += highest.end(g, x, x.high, x.low)
			}
		}
		middle.add(linear, linear)
		lowest.add(least, linear)
		highest.add(most, linear)
		counts = append(counts, n)
	}
	if q.unbounded {
		return stats.Estimate{Value: q.value, Low: q.value, High: q.value}, counts
	}
	e := middle.estimate(q)
	e.Low = math.Min(e.Low, lowest.estimate(q).Low)
	e.High = math.Max(e.High, highest.estimate(q).High)
	if lowest.open {
		e.Low = math.Inf(-1)
	}
	if highest.open {
		e.High = math.Inf(1)
	}
	return e, counts
}

// side is an estimate from one end of the trials' samples. A trial that gives bounds has two ends.
type side struct {
	terms []stats.Term
	// shift is how far the quantity at that end lies from its value.
	shift float64
	// open: some trial gives no bound on this side.
	open bool
}

// add adds a point: what its trials give at this side, and what their values are.
func (s *side) add(xs, values []float64) {
	a := stats.Aggregate(xs)
	s.terms = append(s.terms, stats.Term{Gradient: 1, Sample: a})
	s.shift += a.Mean - stats.Aggregate(values).Mean
}

// end is the number that a sample adds to one side. If the quantity falls with the sample, the
// sample's other end counts. Without an end the side is open.
func (s *side) end(gradient float64, x sample, rising, falling float64) float64 {
	end := rising
	if gradient < 0 {
		end = falling
	}
	if math.IsInf(end, 0) {
		s.open, end = true, x.value
	}
	return gradient * end
}

func (s *side) estimate(q quantity) stats.Estimate {
	if q.ratio {
		return stats.PropagateRatio(q.value+s.shift, s.terms)
	}
	return stats.Propagate(q.value+s.shift, s.terms)
}

// show writes an estimate with the decimals that its interval supports.
func show(e stats.Estimate, u unit) string {
	half := (e.High - e.Low) / 2
	switch {
	case math.IsInf(e.High, 1) && math.IsInf(e.Low, -1):
		half = 0
	case math.IsInf(e.High, 1):
		half = e.Value - e.Low
	case math.IsInf(e.Low, -1):
		half = e.High - e.Value
	}
	decimals := stats.Decimals(e.Value, half)
	text := number(e.Value, decimals) + suffix(u)
	if !e.Known || e.Low == e.High {
		return text
	}
	return fmt.Sprintf("%s [%s, %s]", text, end(e.Low, decimals), end(e.High, decimals))
}

// end of an interval; a side without an end is left open.
func end(x float64, decimals int) string {
	if math.IsInf(x, 0) {
		return "..."
	}
	return number(x, decimals)
}

// number writes x without a negative zero.
func number(x float64, decimals int) string {
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if zero := strconv.FormatFloat(0, 'f', decimals, 64); text == "-"+zero {
		return zero
	}
	return text
}

func suffix(u unit) string {
	if u == plain {
		return ""
	}
	return " " + string(u)
}

// showCounts writes how many trials there are of each point: "n=3", or "n=2 to 3" where they
// differ.
func showCounts(counts []int) string {
	low, high := slices.Min(counts), slices.Max(counts)
	if low == high {
		return fmt.Sprintf("n=%d", low)
	}
	return fmt.Sprintf("n=%d to %d", low, high)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
