package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A BarPlot compares points by one metric where no axis is a number: named variants, as in many
// papers' figures. Each bar goes from 0 to a point's mean, whole or in parts that add up to it.
type BarPlot struct {
	Title, XLabel string
	Bars          []Bar
	// The axis whose values are the names of the bars. Empty: the names are not values of one axis.
	Axis string
	// parts of stacked bars, the first from 0 on. None: bars are whole.
	Parts []string
	// The meaning of a bar of length 1: the baseline of ratios. Empty: the numbers are no ratios.
	One string
	// WithN shows the number of trials beside each mean.
	WithN bool
	// metrics that are drawn, of package stats.
	Metrics []string
}

// Bar of a point. The plot writes group, if there is one, above the first bar that has it.
type Bar struct {
	Group, Name string
	Style       int
	Mean        Point // of which y is the value
	N           int
	Paper       float64
	HasPaper    bool
	// parts of a stacked bar, and the paper's if it reports all.
	Parts, PaperParts []float64
}

const (
	BarsLegend = "Each bar goes from 0 to the mean; where means span two decades, the axis is logarithmic and each mean a dot. The line through it is the 95% interval of the mean, cut off at the frame. Small dots are trials, hollow dots the paper. Where the paper's values are more than five times as large or as small, they have a plot of their own."
	// mostBars is how many rows can be compared at a glance.
	mostBars = 40
)

// BarPlots are throughput and latencies of named variants. None where an axis is a number with
// several values, since curves show these, and none for a single point. The note says which points
// are not drawn.
func BarPlots(e results.Experiment) (all []BarPlot, note string) {
	if _, curves := NumericAxis(e); curves || len(e.Points) < 2 {
		return nil, ""
	}
	if len(e.Points) > mostBars {
		note = fmt.Sprintf("The first %d of %d points are drawn.", mostBars, len(e.Points))
	}
	for _, m := range barMetrics(e) {
		p := BarPlot{Title: m.title, XLabel: m.label, Axis: barAxis(e), Metrics: []string{m.metric}}
		for _, point := range e.Points[:min(mostBars, len(e.Points))] {
			if b, ok := barOf(e, point, m.metric); ok {
				p.Bars = append(p.Bars, b)
			}
		}
		if len(p.Bars) > 1 {
			all = append(all, p.besideOrApart()...)
		}
	}
	return all, note
}

// A barMetric is what one plot of bars shows.
type barMetric struct{ metric, title, label string }

// barMetrics are throughput and two latencies. If claims judge another metric (ClaimedMetric), it
// comes first.
func barMetrics(e results.Experiment) []barMetric {
	all := []barMetric{
		{stats.Throughput, "Throughput", "throughput (tx/s)"},
		{stats.MeanLatency, "Mean latency", "mean latency (ms)"},
		{stats.P99Latency, "99th percentile of latency", "99th percentile of latency (ms)"},
	}
	further := map[string]barMetric{
		stats.P50Latency:  {stats.P50Latency, "Median of latency", "median of latency (ms)"},
		stats.P90Latency:  {stats.P90Latency, "90th percentile of latency", "90th percentile of latency (ms)"},
		stats.P95Latency:  {stats.P95Latency, "95th percentile of latency", "95th percentile of latency (ms)"},
		stats.P999Latency: {stats.P999Latency, "99.9th percentile of latency", "99.9th percentile of latency (ms)"},
	}
	if m, ok := further[ClaimedMetric(e)]; ok {
		return append([]barMetric{m}, all...)
	}
	return all
}

// ClaimedMetric is what the first judged claim compares at points, a metric of package stats.
// Empty: no judged claim does.
func ClaimedMetric(e results.Experiment) string {
	for _, c := range e.Claims {
		if len(c.Terms) == 0 {
			continue
		}
		reads := claims.FunctionsOf(c.Expr)
		for _, system := range slices.Sorted(maps.Keys(reads)) {
			for _, function := range reads[system] {
				if metric := claims.PointMetric(function); metric != "" {
					return metric
				}
			}
		}
	}
	return ""
}

// mostTimes is how many times greater the paper's values may be than the measured ones, or smaller.
// Beyond this factor, one of the two would be too low for its shape to be seen.
const mostTimes = 5

// apart reports whether two values are too far from each other for one scale.
func apart(a, b float64) bool { return a > 0 && b > 0 && (a > mostTimes*b || b > mostTimes*a) }

// besideOrApart draws the paper's values in a plot of their own if they are of another order of
// magnitude than the measured ones, as on other machines. Ratios have the same scale whatever the
// machines.
func (p BarPlot) besideOrApart() []BarPlot {
	measured, paper := 0.0, 0.0
	for _, b := range p.Bars {
		measured = max(measured, b.Mean.Y)
		if b.HasPaper {
			paper = max(paper, b.Paper)
		}
	}
	if p.One != "" || !apart(measured, paper) {
		return []BarPlot{p}
	}
	own, theirs := p, p
	own.Bars, theirs.Bars, theirs.WithN = slices.Clone(p.Bars), nil, false
	theirs.Title += InThePaper
	for i, b := range p.Bars {
		own.Bars[i].HasPaper, own.Bars[i].Paper, own.Bars[i].PaperParts = false, 0, nil
		if b.HasPaper {
			b.Mean = Point{Y: b.Paper, YLow: b.Paper, YHigh: b.Paper}
			b.Parts, b.PaperParts = b.PaperParts, nil
			b.HasPaper, b.Paper = false, 0
			theirs.Bars = append(theirs.Bars, b)
		}
	}
	return []BarPlot{own, theirs}
}

// barOf is the bar of a point for one metric.
func barOf(e results.Experiment, p results.PointResult, metric string) (Bar, bool) {
	a, ok := p.Metrics[metric]
	if !ok {
		return Bar{}, false
	}
	b := barNamed(e, p)
	b.Mean = barMean(a)
	for _, y := range model.SamplesOf(e, p, metric) {
		b.Mean.Trials = append(b.Mean.Trials, [2]float64{0, y})
	}
	b.Paper, b.HasPaper = model.PaperValue(e, metric, p.Coordinates)
	return b, true
}

// barNamed names a point after the last axis with several values, and groups it by those before.
func barNamed(e results.Experiment, p results.PointResult) Bar {
	axes := severalValues(e.Axes)
	n := len(axes)
	if n == 0 {
		return Bar{Name: "the only one"}
	}
	last := axes[n-1]
	b := Bar{Name: p.Coordinates[last.Name], Group: model.At(axes[:n-1], p.Coordinates)}
	b.Style = max(0, slices.Index(last.Values, b.Name)) % ManyCurves
	return b
}

// barAxis is the axis that bars are named after.
func barAxis(e results.Experiment) string {
	axes := severalValues(e.Axes)
	if len(axes) == 0 {
		return ""
	}
	return axes[len(axes)-1].Name
}

func barMean(a results.Aggregate) Point {
	low, high := spread(a)
	return Point{Y: a.Mean, YLow: a.Low, YHigh: a.High, IntervalsToo: a.N > 1, half: (high - low) / 2}
}

// severalValues are the axes that tell points apart.
func severalValues(axes []results.Axis) []results.Axis {
	return slices.DeleteFunc(slices.Clone(axes), func(a results.Axis) bool { return len(a.Values) < 2 })
}

// pointName tells a point from the others.
func pointName(e results.Experiment, p results.PointResult) string {
	return cmp.Or(model.At(severalValues(e.Axes), p.Coordinates), "the only point")
}

// Values returns the values of the bars, of their trials and of the paper, and the baseline.
func (p BarPlot) Values() (all []float64) {
	if p.One != "" {
		all = append(all, 1)
	}
	for _, b := range p.Bars {
		all = append(all, b.Mean.Y)
		if b.HasPaper {
			all = append(all, b.Paper)
		}
		for _, t := range b.Mean.Trials {
			all = append(all, t[1])
		}
	}
	return all
}

// Log reports whether the axis is logarithmic, as that of curves would be. Parts that add up need
// a linear one.
func (p BarPlot) Log() bool { return len(p.Parts) == 0 && Wide(p.Values()) }

// Ours are the bars without the source's values.
func (p BarPlot) Ours() BarPlot {
	p.Bars = slices.Clone(p.Bars)
	for i := range p.Bars {
		p.Bars[i].HasPaper, p.Bars[i].Paper, p.Bars[i].PaperParts = false, 0, nil
	}
	return p
}

// OfTheSource has a bar for each value that the source reports of the metric, measured or not.
func (p BarPlot) OfTheSource(e results.Experiment) BarPlot {
	theirs := p
	theirs.Bars, theirs.WithN = nil, false
	var series []string
	for _, s := range e.Reported {
		f, known := model.Factor(s)
		if !known || model.MetricOfSeries(s) != p.Metrics[0] {
			continue
		}
		for i, x := range s.X {
			coordinates := map[string]string{s.Axis: x}
			for axis, value := range s.At {
				coordinates[axis] = value
			}
			b := barNamed(e, results.PointResult{Coordinates: coordinates})
			b.Name = cmp.Or(b.Name, x)
			if b.Style = slices.Index(axisValues(e, p.Axis), b.Name); b.Style < 0 { // a variant that was not measured
				b.Style = len(axisValues(e, p.Axis)) + len(theirs.Bars)
			}
			b.Style %= ManyCurves
			b.Mean = Point{Y: s.Y[i] * f, YLow: s.Y[i] * f, YHigh: s.Y[i] * f}
			theirs.Bars = append(theirs.Bars, b)
			series = append(series, s.Name)
		}
	}
	if len(barNames(theirs.Bars)) < len(theirs.Bars) { // several series report the same variants
		for i := range theirs.Bars {
			theirs.Bars[i].Group = series[i]
		}
	}
	return theirs
}

// barNames bars are their names, each once.
func barNames(bars []Bar) map[string]bool {
	all := map[string]bool{}
	for _, b := range bars {
		all[b.Group+", "+b.Name] = true
	}
	return all
}

func axisValues(e results.Experiment, name string) []string {
	for _, a := range e.Axes {
		if a.Name == name {
			return a.Values
		}
	}
	return nil
}
