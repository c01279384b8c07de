package claims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
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
	metric string
}

// quantity is a function of means: its value and its derivative by each of them.
type quantity struct {
	value    float64
	unit     unit
	gradient map[mean]float64
	// ratio is true for a quotient of measured quantities, times numbers: its interval is that of its logarithm.
	ratio bool
}

func constant(value float64, u unit) quantity { return quantity{value: value, unit: u} }

func (q quantity) measured() bool { return len(q.gradient) > 0 }

// combine is value, a function of a and b, whose derivatives by them are da and db.
func combine(value float64, u unit, a quantity, da float64, b quantity, db float64) quantity {
	q := quantity{value: value, unit: u, gradient: map[mean]float64{}}
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
	return combine(q.value-r.value, q.unit, q, 1, r, -1)
}

func (q quantity) times(r quantity) quantity {
	u := q.unit
	if u == plain {
		u = r.unit
	}
	p := combine(q.value*r.value, u, q, r.value, r, q.value)
	p.ratio = q.ratio && !r.measured() || r.ratio && !q.measured()
	return p
}

func (q quantity) over(r quantity) quantity {
	u := q.unit
	if q.unit == r.unit {
		u = plain
	}
	p := combine(q.value/r.value, u, q, 1/r.value, r, -q.value/(r.value*r.value))
	p.ratio = r.measured() || q.ratio
	return p
}

// samples are the trials that succeeded, by point.
type samples map[int32][]results.TrialLine

// estimate gives q its interval and says how many trials of each point are in it.
//
// The metrics of one trial depend on each other (a closed loop that is faster has a shorter latency), so the linearised quantity is computed for
// each trial first; only points are independent of each other.
func (s samples) estimate(q quantity) (stats.Estimate, []int) {
	byPoint := map[int32]map[string]float64{}
	for m, g := range q.gradient {
		if byPoint[m.point] == nil {
			byPoint[m.point] = map[string]float64{}
		}
		byPoint[m.point][m.metric] = g
	}
	var terms []stats.Term
	var counts []int
	for _, point := range sortedKeys(byPoint) {
		gradient := byPoint[point]
		linear := make([]float64, len(s[point]))
		for i, line := range s[point] {
			for _, metric := range sortedKeys(gradient) {
				linear[i] += gradient[metric] * stats.Of(line, metric)
			}
		}
		terms = append(terms, stats.Term{Gradient: 1, Sample: stats.Aggregate(linear)})
		counts = append(counts, len(linear))
	}
	if q.ratio {
		return stats.PropagateRatio(q.value, terms), counts
	}
	return stats.Propagate(q.value, terms), counts
}

// difference estimates b - a. Against a constant, the interval of the other side is used as it is, so that a comparison with a bound agrees
// with the interval that is shown.
func (s samples) difference(a, b quantity) (stats.Estimate, []int) {
	switch {
	case !a.measured():
		e, n := s.estimate(b)
		return stats.Estimate{Value: e.Value - a.value, Low: e.Low - a.value, High: e.High - a.value, Known: e.Known}, n
	case !b.measured():
		e, n := s.estimate(a)
		return stats.Estimate{Value: b.value - e.Value, Low: b.value - e.High, High: b.value - e.Low, Known: e.Known}, n
	}
	return s.estimate(b.minus(a))
}

// show writes an estimate with the decimals that its interval supports.
func show(e stats.Estimate, u unit) string {
	decimals := stats.Decimals(e.Value, (e.High-e.Low)/2)
	text := number(e.Value, decimals) + suffix(u)
	if !e.Known || e.Low == e.High {
		return text
	}
	return fmt.Sprintf("%s [%s, %s]", text, number(e.Low, decimals), number(e.High, decimals))
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

// showCounts writes how many trials there are of each point: "n=3", or "n=2 to 3" where they differ.
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
