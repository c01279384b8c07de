package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

const speedUpLegend = "Above 1 is better than the baseline. Bands, and lines through the ends of bars, are the 95% interval of the ratio, cut off at the frame: the one that a claim about the ratio has. Hollow: the ratio of the paper's values."

// speedUp is a point by its baseline.
type speedUp struct {
	point results.PointResult
	ratio claims.Ratio
	// baseline: the point is its own, and the ratio 1.
	baseline bool
	paper    float64
	hasPaper bool
}

// of is the mark of the ratio in a plot, at x on its axis.
func (s speedUp) of(x float64) plotPoint {
	return plotPoint{x: x, xLow: x, xHigh: x, y: s.ratio.Value, yLow: s.ratio.Low, yHigh: s.ratio.High, intervalsToo: s.ratio.Known}
}

// speedUpNames are the metrics in words.
var speedUpNames = map[string]string{stats.Throughput: "throughput", stats.MeanLatency: "mean latency", stats.P50Latency: "p50 latency", stats.P99Latency: "p99 latency"}

// speedUpFigure draws every point by its baseline: curves over an axis of numbers, else bars.
func speedUpFigure(e results.Experiment, f results.SpeedUp) declaredFigure {
	metric := stats.OfSeries[f.Of]
	name, over := speedUpNames[metric], overText(e, f)
	d := declaredFigure{title: fmt.Sprintf("Speed-up over %s, %s", over, name), legend: speedUpLegend}
	label := fmt.Sprintf("%s / that of %s", name, over)
	if metric != stats.Throughput {
		label = fmt.Sprintf("%s of %s / that of the point", name, over)
	}
	found, missing := speedUps(e, f, metric)
	d.numbers.columns = append(pointColumns(e), column{"n", true}, column{"n of the baseline", true}, column{"speed-up", true}, column{"95% interval", true}, column{"paper", true})
	papers := false
	for _, s := range found {
		if s.baseline {
			continue
		}
		value, interval := ratioTexts(s.ratio.Estimate)
		of, baseline := s.ratio.Trials[0], s.ratio.Trials[1]
		if metric != stats.Throughput {
			of, baseline = baseline, of
		}
		paper := "-"
		if s.hasPaper {
			paper, papers = paperText(s.paper), true
		}
		d.numbers.rows = append(d.numbers.rows, append(pointCells(e, s.point), strconv.Itoa(of), strconv.Itoa(baseline), value, interval, paper))
	}
	if !papers {
		d.numbers.dropLast(1)
	}
	d.notes = slices.Concat(missing, ratioNotes(found))
	if axis, ok := numericAxis(e); ok {
		d.addCurves(e, axis, label, over, found)
		return d
	}
	plot := &barPlot{xLabel: label, one: over, axis: barAxis(e), withN: true}
	for _, s := range found {
		if s.baseline {
			continue
		}
		b := barNamed(e, s.point)
		b.mean, b.n, b.paper, b.hasPaper = s.of(0), min(s.ratio.Trials[0], s.ratio.Trials[1]), s.paper, s.hasPaper
		plot.bars = append(plot.bars, b)
	}
	d.addBars(plot)
	return d
}

// addCurves draws a curve for each variant, with the paper's beside it.
func (f *declaredFigure) addCurves(e results.Experiment, axis, label, over string, found []speedUp) {
	p := &plot{xLabel: axis, yLabel: label, one: over}
	variants, drawn := variantsOf(e, axis), 0
	for _, v := range variants {
		measured, paper := curve{name: v.name, style: drawn, band: true}, curve{name: strings.TrimSpace(v.name + paperSuffix), style: drawn, paper: true}
		others := false
		for _, at := range v.points {
			i := slices.IndexFunc(found, func(s speedUp) bool { return s.point.Index == at.Index })
			x, err := strconv.ParseFloat(at.Coordinates[axis], 64)
			if i < 0 || err != nil {
				continue
			}
			measured.points = append(measured.points, found[i].of(x))
			if found[i].hasPaper {
				paper.points = append(paper.points, plotPoint{x: x, y: found[i].paper})
			}
			others = others || !found[i].baseline
		}
		if !others { // the baseline itself
			continue
		}
		if drawn++; drawn > manyCurves {
			continue
		}
		p.curves = appendCurves(p.curves, measured, paper)
	}
	if drawn > manyCurves {
		f.notes = append(f.notes, fmt.Sprintf("The first %d of %d variants are drawn.", manyCurves, drawn))
	}
	if len(p.curves) > 0 {
		f.plots = append(f.plots, declaredPlot{curves: p})
	}
}

// speedUps of all points, and why some have none.
func speedUps(e results.Experiment, f results.SpeedUp, metric string) (found []speedUp, missing []string) {
	ratios := claims.NewRatios(e.Points, e.Trials)
	without := 0
	for _, p := range e.Points {
		at := maps.Clone(p.Coordinates)
		maps.Copy(at, f.Over)
		i := slices.IndexFunc(e.Points, func(b results.PointResult) bool { return agrees(at, b.Coordinates) })
		switch {
		case i < 0:
			without++
			continue
		case e.Points[i].Index == p.Index:
			if p.Metrics[metric].N > 0 {
				found = append(found, speedUp{point: p, baseline: true, ratio: claims.Ratio{Estimate: stats.Estimate{Value: 1, Low: 1, High: 1}}})
			}
			continue
		}
		above, below := p, e.Points[i]
		if metric != stats.Throughput {
			above, below = below, above
		}
		ratio, err := ratios.Of(metric, above, below)
		if err != nil {
			missing = append(missing, fmt.Sprintf("Not in the figure: %s: %v.", pointName(e, p), err))
			continue
		}
		s := speedUp{point: p, ratio: ratio}
		a, hasA := paperValue(e, metric, above.Coordinates)
		b, hasB := paperValue(e, metric, below.Coordinates)
		if s.hasPaper = hasA && hasB && b > 0; s.hasPaper {
			s.paper = a / b
		}
		found = append(found, s)
	}
	if without > 0 {
		missing = append(missing, fmt.Sprintf("%s no baseline: this sweep has not %s there.", have(without, "point"), overText(e, f)))
	}
	return found, missing
}

// have writes that n things have something.
func have(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " has"
	}
	return count(n, thing) + " have"
}

// overText names the baseline, in the order of the axes.
func overText(e results.Experiment, f results.SpeedUp) string {
	var parts []string
	for _, a := range e.Axes {
		if value, ok := f.Over[a.Name]; ok {
			parts = append(parts, a.Name+"="+value)
		}
	}
	for _, axis := range slices.Sorted(maps.Keys(f.Over)) {
		if !slices.ContainsFunc(e.Axes, func(a results.Axis) bool { return a.Name == axis }) {
			parts = append(parts, axis+"="+f.Over[axis])
		}
	}
	return strings.Join(parts, ", ")
}

// ratioTexts write a ratio and its interval, with the decimals that the interval supports.
func ratioTexts(e stats.Estimate) (value, interval string) {
	half := (e.High - e.Low) / 2
	if math.IsInf(half, 0) || !e.Known {
		half = 0
	}
	decimals := stats.Decimals(e.Value, half)
	if !e.Known {
		return stats.Fixed(e.Value, decimals), "-"
	}
	return stats.Fixed(e.Value, decimals), ratioEnd(e.Low, decimals) + " to " + ratioEnd(e.High, decimals)
}

// ratioEnd writes the end of an interval, which may have none.
func ratioEnd(x float64, decimals int) string {
	if math.IsInf(x, 0) {
		return "..."
	}
	return stats.Fixed(x, decimals)
}

// ratioNotes say how the intervals were found.
func ratioNotes(found []speedUp) (notes []string) {
	var hows []string
	single, apart := 0, 0
	for _, s := range found {
		switch {
		case s.baseline:
			continue
		case !s.ratio.Known:
			single++
		default:
			how := s.ratio.How
			if how == "" {
				how = "by each point's own deviations (Fieller)"
			}
			if !slices.Contains(hows, how) {
				hows = append(hows, how)
			}
		}
		if s.ratio.Apart {
			apart++
		}
	}
	if len(hows) > 0 {
		notes = append(notes, "Intervals: "+strings.Join(hows, "; ")+".")
	}
	if single > 0 {
		notes = append(notes, fmt.Sprintf("%s no interval: it takes two trials of the point and of its baseline, and a baseline that is not near 0.", have(single, "ratio")))
	}
	if apart > 0 {
		notes = append(notes, fmt.Sprintf("The trials of %s and of the baseline did not run in turn, so that a drift of the machines counts as speed-up.", count(apart, "point")))
	}
	return notes
}
