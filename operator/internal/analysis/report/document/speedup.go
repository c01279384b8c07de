package document

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

const speedUpLegend = "Above 1 is better than the baseline. Bands, and lines through the ends of bars, are the 95% interval of the ratio, cut off at the frame: the one that a claim about the ratio has. Hollow: the ratio of the paper's values."

// speedUp is the ratio of a point to its baseline.
type speedUp struct {
	point results.PointResult
	ratio claims.Ratio
	// baseline: the point is its own baseline, and the ratio is 1.
	baseline bool
	paper    float64
	hasPaper bool
}

// of is the mark of the ratio in a plot, at x on its axis.
func (s speedUp) of(x float64) Point {
	return Point{X: x, XLow: x, XHigh: x, Y: s.ratio.Value, YLow: s.ratio.Low, YHigh: s.ratio.High, IntervalsToo: s.ratio.Known}
}

// speedUpNames are the metrics in words.
var speedUpNames = map[string]string{stats.Throughput: "throughput", stats.MeanLatency: "mean latency", stats.P50Latency: "p50 latency", stats.P99Latency: "p99 latency"}

// speedUpFigure draws the ratio of every point to its baseline: curves over an axis of numbers,
// else bars.
func speedUpFigure(e results.Experiment, f results.SpeedUp) DeclaredFigure {
	metric := stats.OfSeries[f.Of]
	name, over := speedUpNames[metric], overText(e, f)
	d := DeclaredFigure{Title: fmt.Sprintf("Speed-up over %s, %s", over, name), Legend: speedUpLegend}
	label := fmt.Sprintf("%s / that of %s", name, over)
	if metric != stats.Throughput {
		label = fmt.Sprintf("%s of %s / that of the point", name, over)
	}
	found, missing := speedUps(e, f, metric)
	d.Numbers.Columns = append(pointColumns(e), Column{"n", true}, Column{"n of the baseline", true}, Column{"speed-up", true}, Column{"95% interval", true}, Column{"paper", true})
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
			paper, papers = PaperText(s.paper), true
		}
		d.Numbers.Rows = append(d.Numbers.Rows, append(pointCells(e, s.point), strconv.Itoa(of), strconv.Itoa(baseline), value, interval, paper))
	}
	if !papers {
		d.Numbers.dropLast(1)
	}
	d.Notes = slices.Concat(missing, ratioNotes(found))
	if axis, ok := NumericAxis(e); ok {
		d.addCurves(e, axis, label, over, found)
		return d
	}
	plot := &BarPlot{XLabel: label, One: over, Axis: barAxis(e), WithN: true}
	for _, s := range found {
		if s.baseline {
			continue
		}
		b := barNamed(e, s.point)
		b.Mean, b.N, b.Paper, b.HasPaper = s.of(0), min(s.ratio.Trials[0], s.ratio.Trials[1]), s.paper, s.hasPaper
		plot.Bars = append(plot.Bars, b)
	}
	d.addBars(plot)
	return d
}

// addCurves draws a curve for each variant, with the paper's beside it.
func (f *DeclaredFigure) addCurves(e results.Experiment, axis, label, over string, found []speedUp) {
	p := &LinePlot{XLabel: axis, YLabel: label, One: over}
	variants, drawn := variantsOf(e, axis), 0
	for _, v := range variants {
		measured, paper := Curve{Name: v.name, Style: drawn, Band: true}, Curve{Name: strings.TrimSpace(v.name + PaperSuffix), Style: drawn, Paper: true}
		others := false
		for _, at := range v.points {
			i := slices.IndexFunc(found, func(s speedUp) bool { return s.point.Index == at.Index })
			x, err := strconv.ParseFloat(at.Coordinates[axis], 64)
			if i < 0 || err != nil {
				continue
			}
			measured.Points = append(measured.Points, found[i].of(x))
			if found[i].hasPaper {
				paper.Points = append(paper.Points, Point{X: x, Y: found[i].paper})
			}
			others = others || !found[i].baseline
		}
		if !others { // the baseline itself
			continue
		}
		if drawn++; drawn > ManyCurves {
			continue
		}
		p.Curves = appendCurves(p.Curves, measured, paper)
	}
	if drawn > ManyCurves {
		f.Notes = append(f.Notes, fmt.Sprintf("The first %d of %d variants are drawn.", ManyCurves, drawn))
	}
	if len(p.Curves) > 0 {
		f.Plots = append(f.Plots, DeclaredPlot{Curves: p})
	}
}

// speedUps of all points, and why some have none.
func speedUps(e results.Experiment, f results.SpeedUp, metric string) (found []speedUp, missing []string) {
	ratios := claims.NewRatios(e.Points, e.Trials)
	without := 0
	for _, p := range e.Points {
		at := maps.Clone(p.Coordinates)
		maps.Copy(at, f.Over)
		i := slices.IndexFunc(e.Points, func(b results.PointResult) bool { return model.Agrees(at, b.Coordinates) })
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
		a, hasA := model.PaperValue(e, metric, above.Coordinates)
		b, hasB := model.PaperValue(e, metric, below.Coordinates)
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
	return model.Count(n, thing) + " have"
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
		notes = append(notes, fmt.Sprintf("The trials of %s and of the baseline did not run in turn, so that a drift of the machines counts as speed-up.", model.Count(apart, "point")))
	}
	return notes
}
