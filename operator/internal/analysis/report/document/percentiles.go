package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

const percentilesLegend = "Large dots, or bars, are means over trials of each trial's own percentile. Bands and lines are the 95% interval of the mean, cut off at the frame. Small dots are trials. Hollow: the paper's."

// ownPercentile is a percentile that a trial's line has.
type ownPercentile struct {
	// beyond is the share of transactions that are slower.
	beyond float64
	of     func(results.TrialLine) float64
	// The metric of package stats, if papers report the percentile.
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

// SamplesOf are the percentile in the valid trials of a point that have it, and how many of these
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
func percentileFigure(e results.Experiment, names []string) DeclaredFigure {
	d := DeclaredFigure{Title: "Percentiles of latency", Legend: percentilesLegend}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, known := ownPercentiles[name]; return !known })
	d.Numbers.Columns = append(pointColumns(e), Column{"n", true})
	for _, name := range names {
		d.Numbers.Columns = append(d.Numbers.Columns, Column{percentileText(name) + " ms", true})
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
			d.Numbers.Rows = append(d.Numbers.Rows, slices.Concat(row, []string{strconv.Itoa(n)}, cells))
		}
	}
	for _, name := range names {
		if lacking[name] > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("%s no %s: the trials' results do not say it.", have(lacking[name], "point"), percentileText(name)))
		}
		if few[name] > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("%s of %s: some trial has fewer than %d transactions beyond it, so that it is nearer to the slowest one than to the percentile.", percentileText(name), model.Count(few[name], "point"), leastBeyond))
		}
	}
	axis, ok := NumericAxis(e)
	if !ok {
		d.addBars(percentileBars(e, names))
		return d
	}
	variants := variantsOf(e, axis)
	if len(variants)*len(names) <= ManyCurves {
		d.addPercentiles(e, axis, names, variants, "")
		return d
	}
	if len(variants) > mostPercentilePlots {
		d.Notes = append(d.Notes, fmt.Sprintf("The first %d of %d variants are drawn.", mostPercentilePlots, len(variants)))
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

func (f *DeclaredFigure) addPercentiles(e results.Experiment, axis string, names []string, variants []variant, of string) {
	p := &LinePlot{XLabel: axis, YLabel: "latency (ms)"}
	for _, v := range variants {
		for _, name := range names {
			q, style := ownPercentiles[name], len(measuredCurves(p.Curves))
			measured := Curve{Name: strings.TrimPrefix(v.name+", "+percentileText(name), ", "), Style: style, Band: true}
			for _, at := range v.points {
				samples, _ := q.samplesOf(e, at)
				if x, err := strconv.ParseFloat(at.Coordinates[axis], 64); err == nil && len(samples) > 0 {
					pt := barMean(stats.Aggregate(samples))
					pt.X, pt.XLow, pt.XHigh = x, x, x
					for _, y := range samples {
						pt.Trials = append(pt.Trials, [2]float64{x, y})
					}
					measured.Points = append(measured.Points, pt)
				}
			}
			paper := Curve{Name: measured.Name + PaperSuffix, Style: style, Paper: true}
			if q.metric != "" {
				for _, xy := range paperCurve(e, axis, q.metric, v) {
					paper.Points = append(paper.Points, Point{X: xy[0], Y: xy[1]})
				}
			}
			p.Curves = appendCurves(p.Curves, measured, paper)
		}
	}
	if len(measuredCurves(p.Curves)) > mostBands {
		for i := range p.Curves {
			p.Curves[i].Band = false
		}
	}
	if len(p.Curves) > 0 {
		f.Plots = append(f.Plots, DeclaredPlot{Of: of, Curves: p})
	}
}

func measuredCurves(curves []Curve) []Curve {
	return slices.DeleteFunc(slices.Clone(curves), func(c Curve) bool { return c.Paper })
}

// percentileBars has the percentiles of each point below each other.
func percentileBars(e results.Experiment, names []string) *BarPlot {
	p := &BarPlot{XLabel: "latency (ms)", WithN: true}
	for _, point := range e.Points {
		for i, name := range names {
			q := ownPercentiles[name]
			samples, _ := q.samplesOf(e, point)
			if len(samples) == 0 {
				continue
			}
			b := Bar{Group: pointName(e, point), Name: percentileText(name), Style: i, Mean: barMean(stats.Aggregate(samples)), N: len(samples)}
			for _, y := range samples {
				b.Mean.Trials = append(b.Mean.Trials, [2]float64{0, y})
			}
			if q.metric != "" {
				b.Paper, b.HasPaper = model.PaperValue(e, q.metric, point.Coordinates)
			}
			p.Bars = append(p.Bars, b)
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
