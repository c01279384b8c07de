package document

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// loadAxis is the axis along which load grows: the number of clients, the rate of an open loop, or
// named points that set the number of clients. Only along such an axis has a curve of latency over
// throughput a knee. If there are several, it is the one that the plots are over.
func loadAxis(e results.Experiment) (string, bool) {
	if axis, ok := NumericAxis(e); ok && isLoad(e, axis) {
		return axis, true
	}
	for _, a := range e.Axes {
		if len(a.Values) > 1 && !slices.ContainsFunc(a.Values, notANumber) && isLoad(e, a.Name) {
			return a.Name, true
		}
	}
	return "", false
}

// rateAxis is the axis that sets the offered rate: only an open loop may have it.
const rateAxis = "rate"

func isLoad(e results.Experiment, axis string) bool {
	if axis == "clients" || axis == rateAxis {
		return true
	}
	var spec v1alpha1.ExperimentSpec
	if json.Unmarshal(e.Spec, &spec) != nil {
		return false
	}
	i := slices.IndexFunc(spec.Sweep, func(a v1alpha1.Axis) bool { return a.Axis == axis })
	return i >= 0 && len(spec.Sweep[i].Points) > 0 && !slices.ContainsFunc(spec.Sweep[i].Points, func(p v1alpha1.AxisPoint) bool { return p.Clients == nil })
}

// latencyCurve is a curve of latency over throughput as stats takes it. Its points are those of the
// curve, in their order.
func latencyCurve(c Curve) []stats.CurvePoint {
	var points []stats.CurvePoint
	for _, p := range c.Points {
		points = append(points, stats.CurvePoint{Throughput: p.X, Latency: p.Y})
	}
	return points
}

// markKnees marks the knee of each curve that has one.
func markKnees(curves []Curve) []Curve {
	for _, c := range curves {
		if k, err := stats.FindKnee(latencyCurve(c)); err == nil {
			c.Points[k.Index].Knee = true
		}
	}
	return curves
}

// kneeTable has a row for the curve of each variant, and one for the paper's below it.
func kneeTable(e results.Experiment) Table {
	axis, ok := loadAxis(e)
	if !ok || len(e.Capacities) > 0 { // a search tries loads near the capacity, which are no curve
		return Table{}
	}
	// A single point, for example of a source with one readable pair of numbers, has no peak
	// either.
	curves := slices.DeleteFunc(against(e, axis, variantsOf(e, axis)), func(c Curve) bool { return len(c.Points) < 2 })
	papers := slices.ContainsFunc(curves, func(c Curve) bool { return c.Paper })
	t := Table{Columns: []Column{{"curve", false}, {"points", true}, {"knee tx/s", true}, {"ms", true}, {"at " + axis, true}, {"bound ms", true},
		{"peak tx/s", true}, {"ms", true}, {"at " + axis, true}}}
	if papers {
		t.Columns = append(t.Columns, Column{"knee / paper", true}, Column{"peak / paper", true})
	}
	if axis == rateAxis {
		t.Columns = append(t.Columns, Column{"sustained tx/s", true})
	}
	for _, c := range curves {
		row := []string{c.Legend(), strconv.Itoa(len(c.Points))}
		row = append(row, kneeCells(c)...)
		if papers {
			row = append(row, toPaper(c, curves)...)
		}
		if axis == rateAxis {
			row = append(row, sustainedCell(c))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// kneeCells are the knee's throughput and latency, where it is, its bound, and the same of the
// peak.
func kneeCells(c Curve) []string {
	knee, bound, peak := []string{"-", "-", "-"}, "-", []string{"-", "-", "-"}
	points := latencyCurve(c)
	if k, err := stats.FindKnee(points); err == nil {
		knee, bound = c.Points[k.Index].cells(), Tick3(k.Bound)
		if slices.Contains(k.Cautions, stats.Unsaturated) {
			knee[0] = "≥ " + knee[0]
		}
	}
	if i, err := stats.Peak(points); err == nil {
		peak = c.Points[i].cells()
	}
	return slices.Concat(knee, []string{bound}, peak)
}

// cells of a point of latency over throughput: each with the decimals that its interval supports,
// and where it is.
func (p Point) cells() []string {
	return []string{stats.Rounded(p.X, (p.XHigh-p.XLow)/2), Rounded(p), p.At}
}

// toPaper compares the throughput of a measured curve, at its knee and its peak, with the paper's
// curve of the same variant. Each is divided by the paper's.
func toPaper(c Curve, curves []Curve) []string {
	cells := []string{"-", "-"}
	i := slices.IndexFunc(curves, func(o Curve) bool { return o.Paper && o.Style == c.Style })
	if c.Paper || i < 0 {
		return cells
	}
	ours, theirs := latencyCurve(c), latencyCurve(curves[i])
	if k, err := stats.FindKnee(ours); err == nil {
		if o, err := stats.FindKnee(theirs); err == nil && o.Throughput > 0 {
			cells[0] = Tick3(k.Throughput / o.Throughput)
		}
	}
	if k, err := stats.Peak(ours); err == nil {
		if o, err := stats.Peak(theirs); err == nil && theirs[o].Throughput > 0 {
			cells[1] = Tick3(ours[k].Throughput / theirs[o].Throughput)
		}
	}
	return cells
}

// countedLoad is what the trials of a point of an open loop were offered.
type countedLoad struct {
	perSecond  float64 // 0: not known
	queueGrows bool
}

// loadOf counts the load of a point. Requests do not arrive exactly at the nominal rate. With 10
// random requests a second, 200 arrive in 20 s, give or take 14. By the nominal rate, a system that
// keeps up would not sustain them in a fifth of experiments.
func loadOf(e results.Experiment, p results.PointResult) countedLoad {
	var rates, left []float64
	for _, l := range e.Trials {
		if l.PointIndex != p.Index || l.Outcome != stats.Succeeded {
			continue
		}
		if l.Offered == 0 || l.Committed == 0 || !(l.Throughput > 0) {
			return countedLoad{}
		}
		rates = append(rates, float64(l.Offered)*l.Throughput/float64(l.Committed))
		left = append(left, 1-float64(l.Committed+l.GivenUp+l.Errors+l.Timeouts)/float64(l.Offered))
	}
	if len(rates) == 0 || len(rates) != p.Valid {
		return countedLoad{}
	}
	return countedLoad{perSecond: stats.Aggregate(rates).Mean, queueGrows: stats.QueueGrows(left)}
}

// offeredOf are the points of an open loop's curve, whose axis is the offered rate. Goodput is
// scaled by the ratio of the nominal rate to the rate that was really offered.
func offeredOf(c Curve) []stats.LoadPoint {
	var loads []stats.LoadPoint
	for _, p := range c.Points {
		offered, err := strconv.ParseFloat(p.At, 64)
		if err != nil {
			offered = math.NaN() // which is refused
		}
		load := stats.LoadPoint{Offered: offered, Goodput: p.X, QueueGrows: p.load.queueGrows}
		if p.load.perSecond > 0 {
			load.Goodput *= offered / p.load.perSecond
		}
		loads = append(loads, load)
	}
	return loads
}

// sustainedCell is the greatest offered load that the system sustains.
func sustainedCell(c Curve) string {
	loads := offeredOf(c)
	i, err := stats.SustainedLoad(loads, stats.DefaultGoodputTolerance)
	if err != nil {
		return "-"
	}
	byLoad := func(a, b stats.LoadPoint) int { return cmp.Compare(a.Offered, b.Offered) }
	switch {
	case i < 0:
		return "less than " + Tick(slices.MinFunc(loads, byLoad).Offered)
	case loads[i].Offered == slices.MaxFunc(loads, byLoad).Offered:
		return c.Points[i].At + " or more"
	}
	return c.Points[i].At
}

// kneeNotes name the points of an open loop whose latency is no property of the system.
func kneeNotes(e results.Experiment) []string {
	if axis, ok := loadAxis(e); !ok || axis != rateAxis {
		return nil
	}
	var notes []string
	for _, c := range against(e, rateAxis, variantsOf(e, rateAxis)) {
		var lost []string
		for i, l := range offeredOf(c) {
			if !l.Sustained(stats.DefaultGoodputTolerance) {
				lost = append(lost, c.Points[i].At)
			}
		}
		if len(lost) > 0 {
			notes = append(notes, fmt.Sprintf("Not sustained: %s at %s = %s. Latencies there say how long the run was, not how fast the system is.",
				cmp.Or(c.Name, "measured"), rateAxis, strings.Join(lost, ", ")))
		}
	}
	return notes
}

// kneeLegend says how to read the table of knees.
const kneeLegend = "Knee: of the points whose mean latency is at most twice the least of the curve (the bound), the one with the greatest throughput: Jain's usable capacity (1991, section 3.3) with the bound at " +
	"Kleinrock's operating point (ICC'79). It is a point that was measured, of three or more; ≥ where the curve ends before it leaves the bound, so that the knee lies there or beyond. Peak: the greatest mean throughput. " +
	"The paper's curves by the same rule, at all points that it reports."

// sustainedLegend is added to the table's legend for an open loop.
const sustainedLegend = " Sustained: the greatest rate such that at it and at all lesser ones mean throughput is within 5% of the rate, as counted where that is known, and the queue does not grow (the rule of the HotStuff evaluation in OCaml, University of Cambridge)."

func kneeLegendOf(e results.Experiment) string {
	if axis, ok := loadAxis(e); ok && axis == rateAxis {
		return kneeLegend + sustainedLegend
	}
	return kneeLegend
}
