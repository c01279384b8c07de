package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

const percentilesLegend = "Large dots, or bars, are means over trials of each trial's own percentile. Bands and lines are the 95% interval of the mean, cut off at the frame. Small dots are trials. Hollow: the paper's."

// ownPercentile is a percentile that a trial's line has.
type ownPercentile struct {
	// beyond is the share of transactions that are slower.
	beyond float64
	of     func(results.TrialLine) float64
	// metric of package stats, of those that papers report.
	metric string
}

var ownPercentiles = map[string]ownPercentile{
	"P10":  {0.9, func(l results.TrialLine) float64 { return l.P10Millis }, ""},
	"P50":  {0.5, func(l results.TrialLine) float64 { return l.P50Millis }, stats.P50Latency},
	"P75":  {0.25, func(l results.TrialLine) float64 { return l.Percentiles["P75"] }, ""},
	"P90":  {0.1, func(l results.TrialLine) float64 { return l.P90Millis }, ""},
	"P95":  {0.05, func(l results.TrialLine) float64 { return l.P95Millis }, ""},
	"P99":  {0.01, func(l results.TrialLine) float64 { return l.P99Millis }, stats.P99Latency},
	"P999": {0.001, func(l results.TrialLine) float64 { return l.P999Millis }, ""},

	"P9999":  {0.0001, func(l results.TrialLine) float64 { return l.Percentiles["P9999"] }, ""},
	"P99999": {0.00001, func(l results.TrialLine) float64 { return l.Percentiles["P99999"] }, ""},
}

// leastBeyond is how many transactions must lie beyond a percentile, as claims ask for.
const leastBeyond = 10

// samplesOf are the percentile in the valid trials of a point that have it, and how many of these
// have too few transactions for it.
func (q ownPercentile) samplesOf(e results.Experiment, p results.PointResult) (samples []float64, few int) {
	for _, l := range e.Trials {
		if l.PointIndex != p.Index || l.Outcome != stats.Succeeded || q.of(l) == 0 {
			continue
		}
		samples = append(samples, q.of(l))
		if l.Committed > 0 && float64(l.Committed)*min(q.beyond, 1-q.beyond) < leastBeyond {
			few++
		}
	}
	return samples, few
}

// percentileFigure draws percentiles over the axis that is a number: all variants in one plot if
// their curves can be told apart, else a plot for each. Without such an axis there are bars.
func percentileFigure(e results.Experiment, names []string) declaredFigure {
	d := declaredFigure{title: "Percentiles of latency", legend: percentilesLegend}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, known := ownPercentiles[name]; return !known })
	d.numbers.columns = append(pointColumns(e), column{"n", true})
	for _, name := range names {
		d.numbers.columns = append(d.numbers.columns, column{percentileText(name) + " ms", true})
	}
	few, lacking := map[string]int{}, map[string]int{}
	for _, p := range e.Points {
		row, n := pointCells(e, p), 0
		var cells []string
		for _, name := range names {
			samples, tooFew := ownPercentiles[name].samplesOf(e, p)
			if tooFew > 0 {
				few[name]++
			}
			if len(samples) == 0 && p.Valid > 0 {
				lacking[name]++
			}
			n = max(n, len(samples))
			cells = append(cells, meanCell(stats.Aggregate(samples), 1))
		}
		if n > 0 {
			d.numbers.rows = append(d.numbers.rows, slices.Concat(row, []string{strconv.Itoa(n)}, cells))
		}
	}
	for _, name := range names {
		if lacking[name] > 0 {
			d.notes = append(d.notes, fmt.Sprintf("%s no %s: the trials' results do not say it.", have(lacking[name], "point"), percentileText(name)))
		}
		if few[name] > 0 {
			d.notes = append(d.notes, fmt.Sprintf("%s of %s: some trial has fewer than %d transactions beyond it, so that it is nearer to the slowest one than to the percentile.", percentileText(name), count(few[name], "point"), leastBeyond))
		}
	}
	axis, ok := numericAxis(e)
	if !ok {
		d.addBars(percentileBars(e, names))
		return d
	}
	variants := variantsOf(e, axis)
	if len(variants)*len(names) <= manyCurves {
		d.addPercentiles(e, axis, names, variants, "")
		return d
	}
	if len(variants) > mostPercentilePlots {
		d.notes = append(d.notes, fmt.Sprintf("The first %d of %d variants are drawn.", mostPercentilePlots, len(variants)))
	}
	for _, v := range variants[:min(len(variants), mostPercentilePlots)] {
		d.addPercentiles(e, axis, names, []variant{{name: "", points: v.points}}, v.name)
	}
	return d
}

// mostBands of curves can be told apart where they lie over each other; more curves have whiskers.
const mostBands = 3

// mostPercentilePlots is how many variants have a plot of their own.
const mostPercentilePlots = 8

func (f *declaredFigure) addPercentiles(e results.Experiment, axis string, names []string, variants []variant, of string) {
	p := &plot{xLabel: axis, yLabel: "latency (ms)"}
	for _, v := range variants {
		for _, name := range names {
			q, style := ownPercentiles[name], len(measuredCurves(p.curves))
			measured := curve{name: strings.TrimPrefix(v.name+", "+percentileText(name), ", "), style: style, band: true}
			for _, at := range v.points {
				samples, _ := q.samplesOf(e, at)
				if x, err := strconv.ParseFloat(at.Coordinates[axis], 64); err == nil && len(samples) > 0 {
					pt := barMean(stats.Aggregate(samples))
					pt.x, pt.xLow, pt.xHigh = x, x, x
					for _, y := range samples {
						pt.trials = append(pt.trials, [2]float64{x, y})
					}
					measured.points = append(measured.points, pt)
				}
			}
			paper := curve{name: measured.name + paperSuffix, style: style, paper: true}
			if q.metric != "" {
				for _, xy := range paperCurve(e, axis, q.metric, v) {
					paper.points = append(paper.points, plotPoint{x: xy[0], y: xy[1]})
				}
			}
			p.curves = appendCurves(p.curves, measured, paper)
		}
	}
	if len(measuredCurves(p.curves)) > mostBands {
		for i := range p.curves {
			p.curves[i].band = false
		}
	}
	if len(p.curves) > 0 {
		f.plots = append(f.plots, declaredPlot{of: of, curves: p})
	}
}

func measuredCurves(curves []curve) []curve {
	return slices.DeleteFunc(slices.Clone(curves), func(c curve) bool { return c.paper })
}

// percentileBars has the percentiles of each point below each other.
func percentileBars(e results.Experiment, names []string) *barPlot {
	p := &barPlot{xLabel: "latency (ms)", withN: true}
	for _, point := range e.Points {
		for i, name := range names {
			q := ownPercentiles[name]
			samples, _ := q.samplesOf(e, point)
			if len(samples) == 0 {
				continue
			}
			b := bar{group: pointName(e, point), name: percentileText(name), style: i, mean: barMean(stats.Aggregate(samples)), n: len(samples)}
			for _, y := range samples {
				b.mean.trials = append(b.mean.trials, [2]float64{0, y})
			}
			if q.metric != "" {
				b.paper, b.hasPaper = paperValue(e, q.metric, point.Coordinates)
			}
			p.bars = append(p.bars, b)
		}
	}
	return p
}

// percentileText writes P999 as p99.9.
func percentileText(name string) string {
	if digits, long := strings.CutPrefix(name, "P99"); long && digits != "" {
		return "p99." + digits
	}
	return strings.ToLower(name)
}
