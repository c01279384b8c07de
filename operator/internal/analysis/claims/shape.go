package claims

import (
	"fmt"
	"math"
	"slices"

	celast "github.com/google/cel-go/common/ast"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/stats"
)

// leastShapePoints is how many points a curve needs to have a shape. Two points only have a
// quotient, which ratio is about.
const leastShapePoints = 3

// Shapes visits the calls of the function shape in an expression: the name of each series, and the
// coordinates given beside those of the series. A text that is no expression has none.
func Shapes(expr string, visit func(series string, at map[string]string)) {
	p, err := compile(expr)
	if err != nil {
		return
	}
	celast.PreOrderVisit(p.ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || functions[e.AsCall().FunctionName()].points != ofSeries {
			return
		}
		a, err := p.arguments(e.AsCall(), e.ID())
		if err != nil {
			return
		}
		at := map[string]string{}
		for _, c := range a.at {
			at[c.axis] = c.value
		}
		visit(a.series, at)
	}))
}

// shape is how far a measured curve is from the reported one, up to one factor for all points. It
// is the least s for which a factor exists that brings each measured value within a factor of 1+s
// of the reported one. With d the logarithm of measured by reported, 1+s = exp((max d - min d) /
// 2).
//
// It is half the greatest contrast of two points, and its interval follows from those of all
// contrasts. Its upper end is the greatest of their upper ends, each at 95%: the shape is below a
// bound only if each contrast is (intersection and union). Its lower end is the greatest of their
// lower ends, each at 95% after Bonferroni: one contrast above a bound suffices.
func (r *run) shape(a arguments) quantity {
	i := slices.IndexFunc(r.program.series, func(s v1alpha1.ReportedSeries) bool { return s.Name == a.series })
	if i < 0 {
		r.missing = append(r.missing, "there is no reported series "+a.series)
		return quantity{}
	}
	c := reportedCurve{r, r.program.series[i]}
	beside := c.beside(a.at)
	if len(beside) < leastShapePoints && len(r.missing) == 0 {
		r.missing = append(r.missing, fmt.Sprintf("%d points stand beside a value of the series %s, and %d are needed", len(beside), a.series, leastShapePoints))
	}
	if len(r.missing) > 0 {
		return quantity{}
	}
	e, counts := c.spread(beside)
	return quantity{value: e.Value, unit: plain, own: &e, counts: counts}
}

// reportedCurve compares a reported series with what a run measured beside it.
type reportedCurve struct {
	*run
	series v1alpha1.ReportedSeries
}

// besideReported is a measured quantity beside the reported value of its point.
type besideReported struct {
	measured quantity
	reported float64
}

// metricOfSeries is the metric that a series reports.
func metricOfSeries(s v1alpha1.ReportedSeries) metric {
	switch s.Metric {
	case "Measurement":
		return metric{name: measurement, measurement: s.Measurement}
	case "ThroughputPerCorrectClient":
		return metric{name: perCorrectClient}
	}
	return metric{name: stats.OfSeries[s.Metric]}
}

// beside are the measured points that a series reports, in its order. A value that is not measured
// is left out and named.
func (c reportedCurve) beside(at []coordinate) (all []besideReported) {
	s := c.series
	m := metricOfSeries(s)
	fixed := slices.Clone(at)
	for _, axis := range sortedKeys(s.At) {
		fixed = append(fixed, coordinate{axis: axis, value: s.At[axis].String()})
	}
	left := 0
	for _, v := range s.Values {
		found := c.find(append(slices.Clone(fixed), coordinate{axis: s.Axis, value: v.X.String()}))
		reported, ok := axisNumber(v.Y.String())
		switch {
		case len(found) == 0 || !ok || reported <= 0:
			left++
		case len(found) > 1:
			c.missing = append(c.missing, fmt.Sprintf("%d points stand beside %s=%s of the series %s, and one is needed", len(found), s.Axis, v.X.String(), s.Name))
			return nil
		default:
			q := c.meanAt(found[0], m, unitOfMetric(m))
			if q.value <= 0 && len(c.missing) == 0 {
				c.missing = append(c.missing, fmt.Sprintf("%s is not above 0 at %s, so that no factor brings it to the reported value", s.Metric, showPoint(found[0].Coordinates)))
			}
			all = append(all, besideReported{q, reported})
		}
	}
	if left > 0 {
		c.caveat(CaveatPartOfCurve, fmt.Sprintf("%d of %d values of the series %s have no measured point: the shape is that of the others", left, len(s.Values), s.Name))
	}
	return all
}

// spread is shape's estimate.
func (c reportedCurve) spread(all []besideReported) (stats.Estimate, []int) {
	out := stats.Estimate{Known: true}
	contrasts := float64(len(all) * (len(all) - 1) / 2)
	half := func(ratio float64) float64 { return math.Expm1(math.Abs(math.Log(ratio)) / 2) }
	var counts []int
	for i, a := range all {
		for _, b := range all[:i] {
			q := c.over(a.measured, b.measured).times(constant(b.reported/a.reported, plain))
			e, n := c.estimate(q)
			counts = append(counts, n...)
			out.Known = out.Known && e.Known && e.Low > 0
			out.Value = max(out.Value, half(q.value))
			out.High = max(out.High, half(e.Low), half(e.High))
			if strict := e.At(c.level() / contrasts); strict.Low > 1 || strict.High < 1 {
				out.Low = max(out.Low, min(half(strict.Low), half(strict.High)))
			}
		}
	}
	if !out.Known {
		out.Low, out.High = out.Value, out.Value
	}
	return out, counts
}
