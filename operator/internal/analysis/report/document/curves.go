package document

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A LinePlot is an SVG of curves. Measured ones have their means as dots and every trial as a small
// dot. The 95% interval of the mean is a band over four points of an axis and more. It is whiskers
// over fewer, and for latency against throughput. The paper's curves are dashed, with hollow dots.
// Their dots and colour are those of the curves that they are compared with. The interval has the
// same meaning at every n, and claims are judged by it. The minimum and the maximum of two to four
// trials hold the mean in 50 to 87% of experiments only. With them a point with fewer trials would
// look more precise than one with five.
type LinePlot struct {
	Title, XLabel, YLabel string
	// The axis of the experiment whose values the points have, if XLabel is another one.
	Axis   string
	Curves []Curve
	// The meaning of y = 1: the baseline of ratios. Empty: the numbers are no ratios.
	One string
	// metrics that are drawn, of package stats.
	Metrics []string
	// Logarithmic axes (scaled).
	LogX, LogY bool
}

// Curve is one line of a plot, with its points in the order of x.
type Curve struct {
	Name   string
	Style  int // which dots and colour
	Paper  bool
	Band   bool
	Points []Point
}

// Point with its intervals; a value without one has low and high equal to it.
type Point struct {
	X, Y         float64
	XLow, XHigh  float64
	YLow, YHigh  float64
	IntervalsToo bool
	At           string // of latency over throughput: the value of the axis
	Knee         bool
	Trials       [][2]float64
	load         countedLoad
	// half is half of the span beside the mean in tables. The mean and the span are rounded by it.
	// 0: they are rounded by the interval.
	half float64
}

// mostCurveGroups is how many times a page has the three plots of curves, each time with other
// variants.
const mostCurveGroups = 4

// LinePlots of an experiment are throughput and mean latency over the axis that is a number, and
// latency against throughput if that axis is a load. A search has plots of its own (CapacityPlots).
// If there are more variants than can be told apart, each group of variants has these plots. The
// note says if a page has no room for all groups. There are no plots if no axis is a number with
// several values.
func LinePlots(e results.Experiment) (all []LinePlot, note string) {
	axis, ok := NumericAxis(e)
	if _, searched := CapacityPlots(e); !ok || searched {
		return nil, ""
	}
	variants := variantsOf(e, axis)
	if len(variants) == 0 {
		return nil, ""
	}
	groups := (len(variants) + ManyCurves - 1) / ManyCurves
	size := (len(variants) + groups - 1) / groups // as equal as they can be
	for i := range groups {
		if i == mostCurveGroups {
			return all, fmt.Sprintf("The first %d of %d variants are drawn.", i*size, len(variants))
		}
		from, to := i*size, min((i+1)*size, len(variants))
		which := ""
		if groups > 1 {
			which = fmt.Sprintf(" (variants %d to %d of %d)", from+1, to, len(variants))
		}
		all = append(all, plotsOf(e, axis, variants[from:to], which)...)
	}
	return all, ""
}

// plotsOf are the plots of some variants. A line through latency and throughput says how latency
// grows with the load, so that it is drawn along a load alone.
func plotsOf(e results.Experiment, axis string, variants []variant, which string) []LinePlot {
	all := []LinePlot{
		{Title: "Throughput" + which, XLabel: axis, YLabel: "throughput (tx/s)", Metrics: []string{stats.Throughput}, Curves: overAxis(e, axis, variants, stats.Throughput)},
		{Title: "Mean latency" + which, XLabel: axis, YLabel: "mean latency (ms)", Metrics: []string{stats.MeanLatency}, Curves: overAxis(e, axis, variants, stats.MeanLatency)},
	}
	if isLoad(e, axis) {
		all = append(all, LinePlot{Title: LatencyAgainstThroughput + which, XLabel: "throughput (tx/s)", YLabel: "mean latency (ms)", Axis: axis, Metrics: []string{stats.Throughput, stats.MeanLatency},
			Curves: markKnees(against(e, axis, variants))})
	}
	var drawn []LinePlot
	for _, p := range all {
		if len(p.Curves) > 0 {
			drawn = append(drawn, p.besideOrApart()...)
		}
	}
	return drawn
}

// besideOrApart draws the paper's curves in a plot of their own if they are of another order of
// magnitude than the measured ones, as for bars.
func (p LinePlot) besideOrApart() []LinePlot {
	own, theirs := p.Split()
	common := placesOf(own.Curves)
	maps.DeleteFunc(common, func(place string, _ bool) bool { return !placesOf(theirs.Curves)[place] })
	x, y := greatestOf(own.Curves, common)
	paperX, paperY := greatestOf(theirs.Curves, common)
	if p.One != "" || !apart(y, paperY) && (len(p.Metrics) < 2 || !apart(x, paperX)) {
		return []LinePlot{p.scaled()}
	}
	title, which, found := strings.Cut(p.Title, " (")
	theirs.Title = title + InThePaper
	if found {
		theirs.Title += " (" + which
	}
	return []LinePlot{own, theirs}
}

// Split gives the measured curves and the source's, each with the ends of axes that it would have
// alone. Both plots have axes of the same kind: on a logarithmic and a linear axis, the same curve
// would have two shapes. A measurement of few points rarely spans two decades.
func (p LinePlot) Split() (own, theirs LinePlot) {
	own, theirs = p, p
	own.Curves = measuredCurves(p.Curves)
	theirs.Curves = slices.DeleteFunc(slices.Clone(p.Curves), func(c Curve) bool { return !c.Paper })
	own, theirs = own.scaled(), theirs.scaled()
	if len(own.Curves) == 0 || len(theirs.Curves) == 0 {
		return own, theirs
	}
	ownX, ownY := own.values()
	theirX, theirY := theirs.values()
	logX := (own.LogX || theirs.LogX) && slices.Min(ownX) > 0 && slices.Min(theirX) > 0
	logY := (own.LogY || theirs.LogY) && slices.Min(ownY) > 0 && slices.Min(theirY) > 0
	own.LogX, theirs.LogX, own.LogY, theirs.LogY = logX, logX, logY, logY
	return own, theirs
}

// place of a point on the axis of the experiment.
func (p Point) place() string { return cmp.Or(p.At, Tick(p.X)) }

func placesOf(curves []Curve) map[string]bool {
	places := map[string]bool{}
	for _, c := range curves {
		for _, p := range c.Points {
			places[p.place()] = true
		}
	}
	return places
}

// greatestOf are the greatest means of curves at some places, or anywhere if no places are given. A
// curve that only reaches further is not of another order of magnitude.
func greatestOf(curves []Curve, places map[string]bool) (x, y float64) {
	for _, c := range curves {
		for _, p := range c.Points {
			if len(places) == 0 || places[p.place()] {
				x, y = max(x, p.X), max(y, p.Y)
			}
		}
	}
	return x, y
}

// An axis is logarithmic if its values span two decades, and some lie between the ends.
const (
	leastSpan   = 100.0
	leastValues = 3
)

// Wide reports whether an axis of these values is logarithmic. Values at or below 0, which such an
// axis cannot show, keep it linear.
func Wide(values []float64) bool {
	if len(values) == 0 {
		return false
	}
	least, most := slices.Min(values), slices.Max(values)
	values = slices.Clone(values)
	slices.Sort(values)
	return least > 0 && most >= leastSpan*least && len(slices.Compact(values)) >= leastValues
}

// scaled chooses the axes by all means and trials.
func (p LinePlot) scaled() LinePlot {
	xs, ys := p.values()
	p.LogX, p.LogY = Wide(xs) || p.Axis == "" && doubles(xs), Wide(ys)
	return p
}

// leastDoubling is how many values that each double make an axis logarithmic.
const leastDoubling = 4

// doubles reports whether the values that an author chose for an axis are each twice the one before
// and more, such as batches of 1, 2, 4 and 8. On a linear axis half of them lie in one place.
func doubles(values []float64) bool {
	values = slices.Clone(values)
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) < leastDoubling || values[0] <= 0 {
		return false
	}
	for i := range values[1:] {
		if values[i+1] < 2*values[i] {
			return false
		}
	}
	return true
}

// values are all means and trials, on both axes.
func (p LinePlot) values() (xs, ys []float64) {
	for _, c := range p.Curves {
		for _, pt := range c.Points {
			xs, ys = append(xs, pt.X), append(ys, pt.Y)
			for _, t := range pt.Trials {
				xs, ys = append(xs, t[0]), append(ys, t[1])
			}
		}
	}
	return xs, ys
}

// NumericAxis is the axis that the paper's series run along, else the first whose values are
// numbers; it has several values.
func NumericAxis(e results.Experiment) (string, bool) {
	best := ""
	for _, a := range e.Axes {
		if len(a.Values) < 2 || slices.ContainsFunc(a.Values, notANumber) {
			continue
		}
		if slices.ContainsFunc(e.Reported, func(s results.ReportedSeries) bool { return s.Axis == a.Name }) {
			return a.Name, true
		}
		if best == "" {
			best = a.Name
		}
	}
	return best, best != ""
}

// variant has a value for each axis but one.
type variant struct {
	name   string
	points []results.PointResult // by the value of that one
}

func variantsOf(e results.Experiment, axis string) []variant {
	var others []results.Axis
	for _, a := range e.Axes {
		if a.Name != axis && len(a.Values) > 1 {
			others = append(others, a)
		}
	}
	var variants []variant
	for _, p := range e.Points {
		name := model.At(others, p.Coordinates)
		if len(others) == 1 {
			name = p.Coordinates[others[0].Name]
		}
		i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
		if i < 0 {
			variants = append(variants, variant{name: name})
			i = len(variants) - 1
		}
		variants[i].points = append(variants[i].points, p)
	}
	for _, v := range variants {
		slices.SortStableFunc(v.points, func(a, b results.PointResult) int {
			return compareNumbers(a.Coordinates[axis], b.Coordinates[axis])
		})
	}
	return variants
}

func compareNumbers(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

// overAxis has a measured curve for each variant, and the paper's beside it.
func overAxis(e results.Experiment, axis string, variants []variant, metric string) []Curve {
	var curves []Curve
	for i, v := range variants {
		measured := Curve{Name: v.name, Style: i, Band: true}
		for _, p := range v.points {
			a, ok := p.Metrics[metric]
			if x, err := strconv.ParseFloat(p.Coordinates[axis], 64); ok && err == nil {
				pt := barMean(a)
				pt.X, pt.XLow, pt.XHigh = x, x, x
				for _, y := range model.SamplesOf(e, p, metric) {
					pt.Trials = append(pt.Trials, [2]float64{x, y})
				}
				measured.Points = append(measured.Points, pt)
			}
		}
		paper := Curve{Name: strings.TrimSpace(v.name + " (paper)"), Style: i, Paper: true}
		for _, xy := range paperCurve(e, axis, metric, v) {
			paper.Points = append(paper.Points, Point{X: xy[0], Y: xy[1]})
		}
		curves = appendCurves(curves, measured, paper)
	}
	return curves
}

// against has latency over throughput for each variant, in the order of the axis.
func against(e results.Experiment, axis string, variants []variant) []Curve {
	var curves []Curve
	for i, v := range variants {
		measured := Curve{Name: v.name, Style: i}
		for _, p := range v.points {
			x, okX := p.Metrics[stats.Throughput]
			y, okY := p.Metrics[stats.MeanLatency]
			if okX && okY {
				low, high := spread(y)
				measured.Points = append(measured.Points, Point{X: x.Mean, XLow: x.Low, XHigh: x.High, Y: y.Mean, YLow: y.Low, YHigh: y.High, half: (high - low) / 2,
					IntervalsToo: x.N > 1, At: p.Coordinates[axis], Trials: latencyOverThroughput(e, p), load: loadOf(e, p)})
			}
		}
		paper := Curve{Name: strings.TrimSpace(v.name + " (paper)"), Style: i, Paper: true}
		latency := paperCurve(e, axis, stats.MeanLatency, v)
		for _, t := range paperCurve(e, axis, stats.Throughput, v) {
			for _, l := range latency {
				if l[0] == t[0] {
					paper.Points = append(paper.Points, Point{X: t[1], Y: l[1], At: Tick(t[0])})
					break
				}
			}
		}
		curves = appendCurves(curves, measured, paper)
	}
	return curves
}

// latencyOverThroughput returns throughput and mean latency of each trial of a point.
func latencyOverThroughput(e results.Experiment, p results.PointResult) (trials [][2]float64) {
	x, y := model.SamplesOf(e, p, stats.Throughput), model.SamplesOf(e, p, stats.MeanLatency)
	for i := range y {
		if len(x) == len(y) { // else some trial has no latency
			trials = append(trials, [2]float64{x[i], y[i]})
		}
	}
	return trials
}

func appendCurves(curves []Curve, more ...Curve) []Curve {
	for _, c := range more {
		if len(c.Points) > 0 {
			curves = append(curves, c)
		}
	}
	return curves
}

// paperCurve is what the paper reports of a variant along an axis, in tx/s or ms, at all its
// points: also those that the sweep does not have.
func paperCurve(e results.Experiment, axis, metric string, v variant) [][2]float64 {
	for _, s := range e.Reported {
		f, known := model.Factor(s)
		if !known || s.Axis != axis || model.MetricOfSeries(s) != metric || len(v.points) == 0 || !model.Agrees(s.At, v.points[0].Coordinates) {
			continue
		}
		var xy [][2]float64
		for i, text := range s.X {
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				xy = append(xy, [2]float64{x, s.Y[i] * f})
			}
		}
		return xy
	}
	return nil
}

// Legend is the curve's name. It is empty if there is only one variant.
func (c Curve) Legend() string {
	if c.Paper && c.Name == strings.TrimSpace(PaperSuffix) {
		return "the paper"
	}
	return cmp.Or(c.Name, "measured")
}

// Rounded writes a point's value with as many decimals as the tables do (meanCell).
func Rounded(p Point) string {
	half := p.half
	if half == 0 {
		half = (p.YHigh - p.YLow) / 2
	}
	return stats.Rounded(p.Y, half)
}

// Tick3 writes a place on an axis, with decimals where it is measured and not chosen.
func Tick3(v float64) string { return stats.Rounded(v, 0) }

// Tick writes a place on an axis that was chosen, as exact as it is.
func Tick(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6+0, 'f', -1, 64) // + 0 makes 0 of -0
}

// Curves are told apart by the shape of their dots or by their dashes, and by colour besides: a
// report must be legible in greyscale print. The page's style gives the classes c0, c1, ... their
// colours, those of Okabe and Ito, which people with any colour vision can tell apart. In a dark
// page they are lighter.

// ManyCurves is how many curves can be told apart.
const ManyCurves = 8

// PaperSuffix ends the name of a curve that the source reports.
const PaperSuffix = " (paper)"

// FigureVariant names a variant as the curves do: by the value alone where one axis tells them
// apart.
func FigureVariant(others []results.Axis, coordinates map[string]string) string {
	if len(others) == 1 {
		return coordinates[others[0].Name]
	}
	return cmp.Or(model.At(others, coordinates), "measured")
}
