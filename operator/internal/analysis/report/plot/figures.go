package plot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// Figure is the data of one plot of a report, for a program that draws figures of a paper: it has
// numbers, labels, bounds and ticks, and no sizes.
type Figure struct {
	// Name of a file for it, without its ending.
	Name string
	// Title says what the figure shows, and Caption how it was measured. Both belong into a caption
	// and are not drawn.
	Title, Caption string
	X, Y           FigureAxis
	// Curves in the order of the legend.
	Curves []FigureCurve
	// Marks are instants at which faults began or ended, in the order of time.
	Marks []FigureMark
	// One is the meaning of 1 on the Y axis, or on the X axis of bars: the baseline of ratios.
	// Empty: the numbers are no ratios.
	One string
	// Bars from top to bottom, along the X axis; a figure has bars or curves. Their Y axis has no
	// ticks, and a label that explains the names of the bars. Parts are those of stacked bars, from
	// 0 on. Whole bars have none.
	Bars  []FigureBar
	Parts []FigurePart
}

// Describe is a caption: what the figure shows, and how it was measured.
func (f Figure) Describe() string {
	return strings.TrimSpace(strings.TrimSuffix(f.Title, ".") + ". " + f.Caption)
}

// FigureBar is a bar from 0 to a mean. It has the mean's 95% interval if Interval is true.
type FigureBar struct {
	// Group stands above its first bar. Empty: the bar has no group.
	Group, Name string
	Color       string
	Value       float64
	Low, High   float64
	Interval    bool
	// Paper is the source's value, if HasPaper is true.
	Paper    float64
	HasPaper bool
	// Parts of a stacked bar, and those of the source if it has all.
	Parts, PaperParts []float64
}

// FigurePart is a part of stacked bars.
type FigurePart struct{ Name, Color string }

// FigureAxis is an axis with its bounds, and its ticks in rising order, all of them within the
// bounds.
type FigureAxis struct {
	Label string
	Log   bool
	// Tight: a linear axis begins and ends with its points, and not at 0.
	Tight    bool
	Min, Max float64
	Ticks    []float64
}

// FigureCurve is a line through points.
type FigureCurve struct {
	// Name in the legend; never empty.
	Name string
	// Style from 0 tells curves apart: a measured curve and the paper's of the same variant share
	// it.
	Style int
	// Color as #rrggbb.
	Color string
	// Paper: the source reports this curve, it was not measured.
	Paper bool
	// Line: there are too many points for a marker at each. Dots: no line joins the markers.
	Line, Dots bool
	// Search: the curve is one of those of a search. The name of the variant chooses all of them
	// together.
	Search bool
	// Band: the points' intervals are drawn as an area, not as a bar at each point.
	Band   bool
	Points []FigurePoint
}

// FigurePoint is a mean. It has its 95% interval if Interval is true. Over time, it has the minimum
// and the maximum of its trials.
type FigurePoint struct {
	X, Y        float64
	XLow, XHigh float64
	YLow, YHigh float64
	Interval    bool
}

// FigureMark is an instant, in the unit of the X axis.
type FigureMark struct {
	X float64
	// Name in the legend. Marks that happen several times share it.
	Name string
	Ends bool
}

// FigureOptions choose what figures show.
type FigureOptions struct {
	// Labels replace the names of axes and of curves; the keys are those names.
	Labels map[string]string
	// Curves are the names of the curves to draw; a variant's name also chooses the paper's curve
	// of that variant. Empty: all.
	Curves []string
	// LogX and LogY ask for logarithmic axes. Points at or below 0 are then left out. Linear asks
	// for linear ones. Without any, an axis whose values are above 0 and span two decades is
	// logarithmic. A figure of distributions has a logarithmic X axis in any case.
	LogX, LogY, Linear bool
}

// Figures are the curves and bars, the figures that the experiment declares, the plots over time
// and the distributions of a report as data, in the report's order. If no figure has a name of the
// options, the error lists the names that there are.
func Figures(e results.Experiment, o FigureOptions) ([]Figure, error) {
	all := slices.Concat(curveFigures(e), barFigures(e), declaredAsFigures(e), timeFigures(e), distributionFigures(e))
	if err := o.check(all); err != nil {
		return nil, err
	}
	numbers := map[string]int{}
	var figures []Figure
	for _, f := range all {
		f.Curves = slices.DeleteFunc(f.Curves, func(c FigureCurve) bool { return !o.wants(c) })
		f.Bars = slices.DeleteFunc(f.Bars, func(b FigureBar) bool { return len(o.Curves) > 0 && !slices.Contains(o.Curves, b.Name) })
		o.logarithms(&f)
		f.dropForLog()
		if len(f.Curves)+len(f.Bars) == 0 {
			continue
		}
		f.bounds()
		o.relabel(&f)
		kind, rest, _ := strings.Cut(f.Name, "-")
		numbers[kind]++
		f.Name = fmt.Sprintf("%s-%02d-%s", kind, numbers[kind], rest)
		figures = append(figures, f)
	}
	return figures, nil
}

// logarithms chooses the axes.
func (o FigureOptions) logarithms(f *Figure) {
	if len(f.Bars) > 0 { // bars begin at 0, so that only --log linear changes anything
		f.X.Log = f.X.Log && !o.Linear
		return
	}
	if o.Linear && !f.distribution() {
		f.X.Log, f.Y.Log = false, false
	}
	f.X.Log, f.Y.Log = f.X.Log || o.LogX && !overTimeAxis(f.X), f.Y.Log || o.LogY
}

// distribution reports whether the figure has the shares of transactions over latency.
func (f *Figure) distribution() bool { return f.Y.Label == shareLabel }

// variantOf is the variant of a curve: the curve's name without the note that the source reports
// it.
func variantOf(c FigureCurve) string {
	switch {
	case c.Paper:
		return strings.TrimSuffix(c.Name, document.PaperSuffix)
	case c.Search:
		name, _, found := strings.Cut(c.Name, ": ")
		if !found {
			return "measured"
		}
		return name
	}
	return c.Name
}

func (o FigureOptions) wants(c FigureCurve) bool {
	return len(o.Curves) == 0 || slices.Contains(o.Curves, c.Name) || slices.Contains(o.Curves, variantOf(c))
}

// check refuses names that no figure has.
func (o FigureOptions) check(figures []Figure) error {
	curves, labels := map[string]bool{}, map[string]bool{}
	for _, f := range figures {
		labels[f.X.Label] = true
		if f.Y.Label != "" {
			labels[f.Y.Label] = true
		}
		for _, c := range f.Curves {
			curves[c.Name], curves[variantOf(c)] = true, true
			labels[c.Name], labels[variantOf(c)] = true, true
		}
		for _, m := range f.Marks {
			labels[m.Name] = true
		}
		for _, b := range f.Bars {
			curves[b.Name], labels[b.Name] = true, true
			if b.Group != "" {
				labels[b.Group] = true
			}
		}
		for _, p := range f.Parts {
			labels[p.Name] = true
		}
		if f.One != "" {
			labels[f.One] = true
		}
	}
	for _, name := range o.Curves {
		if !curves[name] {
			return fmt.Errorf("no figure has a curve %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(curves)), ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
		if !labels[name] {
			return fmt.Errorf("no figure has %q to label; there are %s", name, strings.Join(slices.Sorted(maps.Keys(labels)), ", "))
		}
	}
	return nil
}

// relabel gives axes, curves and marks the labels that were asked for.
func (o FigureOptions) relabel(f *Figure) {
	label := func(name string) string { return cmp.Or(o.Labels[name], name) }
	f.X.Label, f.Y.Label = label(f.X.Label), label(f.Y.Label)
	for i, c := range f.Curves {
		variant := variantOf(c)
		f.Curves[i].Name = label(c.Name)
		if of := o.Labels[variant]; c.Paper && o.Labels[c.Name] == "" && of != "" {
			f.Curves[i].Name = of + document.PaperSuffix
		}
	}
	for i, m := range f.Marks {
		f.Marks[i].Name = label(m.Name)
	}
	for i, b := range f.Bars {
		f.Bars[i].Name, f.Bars[i].Group = label(b.Name), label(b.Group)
	}
	for i, p := range f.Parts {
		f.Parts[i].Name = label(p.Name)
	}
	f.One = label(f.One)
}

// curveFigures are throughput and latency over an axis, and latency against throughput.
func curveFigures(e results.Experiment) []Figure {
	drawn, _ := document.LinePlots(e)
	var figures []Figure
	for _, p := range drawn {
		figures = append(figures, lineFigure(p, "curve-"+FileName(p.Title)).captioned(p.Says(e)))
	}
	searches, _ := document.CapacityPlots(e)
	for _, p := range searches {
		figures = append(figures, searchFigure(p, "search-"+FileName(p.Title)).captioned(p.Says(e)))
	}
	return figures
}

// captioned is the figure with a caption about its measurement.
func (f Figure) captioned(caption string) Figure {
	f.Caption = caption
	return f
}

func lineFigure(p document.LinePlot, name string) Figure {
	f := Figure{Name: name, Title: p.Title, X: FigureAxis{Label: p.XLabel, Log: p.LogX}, Y: FigureAxis{Label: p.YLabel, Log: p.LogY}, One: p.One}
	for _, c := range p.Curves {
		f.Curves = append(f.Curves, figureCurve(c))
	}
	return f
}

// barFigures are throughput and latencies of named variants.
func barFigures(e results.Experiment) []Figure {
	drawn, _ := document.BarPlots(e)
	var figures []Figure
	for _, p := range drawn {
		figures = append(figures, barFigure(p, "bars-"+FileName(p.Title)).captioned(p.Says(e)))
	}
	return figures
}

func barFigure(p document.BarPlot, name string) Figure {
	f := Figure{Name: name, Title: p.Title, X: FigureAxis{Label: p.XLabel, Log: p.Log()}, Y: FigureAxis{Label: p.Axis}, One: p.One}
	for i, part := range p.Parts {
		f.Parts = append(f.Parts, FigurePart{Name: part, Color: curveColor(i)})
	}
	for _, b := range p.Bars {
		f.Bars = append(f.Bars, FigureBar{
			Group: b.Group, Name: b.Name, Color: curveColor(b.Style), Value: b.Mean.Y, Low: b.Mean.YLow, High: b.Mean.YHigh, Interval: b.Mean.IntervalsToo,
			Paper: b.Paper, HasPaper: b.HasPaper, Parts: b.Parts, PaperParts: b.PaperParts,
		})
	}
	return f
}

// declaredAsFigures are the figures that the experiment declares.
func declaredAsFigures(e results.Experiment) []Figure {
	var figures []Figure
	for _, d := range document.DeclaredFigures(e) {
		for _, p := range d.Plots {
			name := "figure-" + FileName(d.Name+" "+p.Of)
			if p.Curves != nil {
				figures = append(figures, lineFigure(*p.Curves, name).captioned(p.Says(e)))
			} else {
				figures = append(figures, barFigure(*p.Bars, name).captioned(p.Says(e)))
			}
		}
	}
	return figures
}

func figureCurve(c document.Curve) FigureCurve {
	out := FigureCurve{Name: cmp.Or(c.Name, "measured"), Style: c.Style, Color: curveColor(c.Style), Paper: c.Paper}
	if c.Paper && c.Name == strings.TrimSpace(document.PaperSuffix) {
		out.Name = "measured" + document.PaperSuffix
	}
	for _, p := range c.Points {
		out.Points = append(out.Points, FigurePoint{X: p.X, Y: p.Y, XLow: p.XLow, XHigh: p.XHigh, YLow: p.YLow, YHigh: p.YHigh, Interval: p.IntervalsToo})
	}
	return out
}

func curveColor(style int) string {
	color := lightStyle().color[fmt.Sprintf("c%d", style%document.ManyCurves)]
	if len(color) == 4 { // #rgb
		color = "#" + strings.Repeat(color[1:2], 2) + strings.Repeat(color[2:3], 2) + strings.Repeat(color[3:], 2)
	}
	return color
}

// The labels of axes by which figures are told apart.
const shareLabel = "share of transactions"

const timeLabel = "time from the start of the window (s)"

func overTimeAxis(a FigureAxis) bool { return a.Label == timeLabel }

// timeFigures are throughput and latency over time, a figure each, for the points with faults or a
// changing load.
func timeFigures(e results.Experiment) []Figure {
	var figures []Figure
	for _, s := range e.Series[:min(len(e.Series), mostOverTime)] {
		if len(s.Throughput) == 0 {
			continue
		}
		name := cmp.Or(model.At(e.Axes, s.Coordinates), "the only point")
		throughput := FigureCurve{Name: "mean of " + model.Count(s.Trials, "trial"), Color: curveColor(0), Line: true, Band: s.Trials > 1}
		latency := FigureCurve{Name: throughput.Name, Style: 1, Color: curveColor(1), Line: true}
		for i, y := range s.Throughput {
			x := (float64(s.FirstMillis) + float64(s.IntervalMillis)*(float64(i)+0.5)) / 1000
			throughput.Points = append(throughput.Points, FigurePoint{X: x, XLow: x, XHigh: x, Y: y, YLow: s.ThroughputMin[i], YHigh: s.ThroughputMax[i], Interval: s.Trials > 1})
			if s.Committed[i] > 0 {
				latency.Points = append(latency.Points, FigurePoint{X: x, Y: s.Latency[i]})
			}
		}
		for metric, c := range map[string]FigureCurve{"throughput (tx/s)": throughput, "mean latency (ms)": latency} {
			short, _, _ := strings.Cut(metric, " (")
			figures = append(figures, Figure{
				Name: "time-" + FileName(name+" "+short), Title: "Over time, " + name, Caption: overTimeCaption(s), Marks: figureMarks(s.Marks),
				X: FigureAxis{Label: timeLabel}, Y: FigureAxis{Label: metric}, Curves: []FigureCurve{c},
			})
			if offered := offeredCurve(s); metric == "throughput (tx/s)" && len(offered.Points) > 0 {
				figures[len(figures)-1].Curves = append(figures[len(figures)-1].Curves, offered)
			}
		}
		slices.SortFunc(figures[len(figures)-2:], func(a, b Figure) int { return -cmp.Compare(a.Y.Label, b.Y.Label) })
	}
	return figures
}

// offeredCurve is the load of a point over time. It has no points if the load is unknown.
func offeredCurve(s results.PointSeries) FigureCurve {
	c := FigureCurve{Name: "offered", Style: 2, Color: curveColor(2), Line: true}
	for i, y := range s.Offered {
		c.Points = append(c.Points, FigurePoint{X: (float64(s.FirstMillis) + float64(s.IntervalMillis)*(float64(i)+0.5)) / 1000, Y: y})
	}
	return c
}

func figureMarks(marks []results.FaultMark) []FigureMark {
	var all []FigureMark
	for _, m := range marks {
		verb := " began"
		if m.Ends {
			verb = " ended"
		}
		all = append(all, FigureMark{X: m.Millis / 1000, Name: m.Fault + verb, Ends: m.Ends})
	}
	return all
}

// distributionFigures are the shares of transactions over latency, as many as the page has.
func distributionFigures(e results.Experiment) []Figure {
	axis, ok := document.NumericAxis(e)
	others := slices.DeleteFunc(slices.Clone(e.Axes), func(a results.Axis) bool { return ok && a.Name == axis || len(a.Values) < 2 })
	var figures []Figure
	for _, l := range e.Latencies {
		title := "Latency"
		if ok {
			title += ", " + axis + " = " + l.Coordinates[axis]
		}
		i := slices.IndexFunc(figures, func(f Figure) bool { return f.Title == title && len(f.Curves) < document.ManyCurves })
		if i < 0 {
			if len(figures) == mostCDFs {
				break
			}
			figures = append(figures, Figure{Name: "cdf-" + FileName(title), Title: title, Caption: cdfCaption, X: FigureAxis{Label: "latency (ms)", Log: true}, Y: FigureAxis{Label: shareLabel}})
			i = len(figures) - 1
		}
		f := &figures[i]
		c := FigureCurve{Name: document.FigureVariant(others, l.Coordinates), Style: len(f.Curves), Color: curveColor(len(f.Curves)), Line: true}
		for k, ms := range l.Millis {
			c.Points = append(c.Points, FigurePoint{X: ms, Y: l.Percentiles[k] / 100})
		}
		f.Curves = append(f.Curves, c)
	}
	return figures
}

// dropForLog leaves out points that a logarithmic axis cannot show, and curves without a remaining
// point.
func (f *Figure) dropForLog() {
	for i, c := range f.Curves {
		f.Curves[i].Points = slices.DeleteFunc(c.Points, func(p FigurePoint) bool { return f.X.Log && p.X <= 0 || f.Y.Log && p.Y <= 0 })
	}
	f.Curves = slices.DeleteFunc(f.Curves, func(c FigureCurve) bool { return len(c.Points) == 0 })
}

// bounds sets the axes' bounds and ticks. A linear axis starts at 0, or below where values are;
// time starts and ends with its points. The end of an interval that a logarithmic axis cannot show
// is cut off there.
func (f *Figure) bounds() {
	if len(f.Bars) > 0 {
		f.barBounds()
		return
	}
	var x, y extent
	if f.One != "" {
		y.add(1)
	}
	for _, c := range f.Curves {
		for _, p := range c.Points {
			x.add(p.X)
			y.add(p.Y)
			if p.Interval {
				x.add(p.XHigh)
				y.add(p.YHigh)
				x.addPositive(p.XLow)
				y.addPositive(p.YLow)
			}
		}
	}
	if f.Y.Label == probabilityLabel {
		y.add(1)
	}
	f.X.fit(x, overTimeAxis(f.X) || f.X.Tight)
	f.Y.fit(y, false)
	for i := range f.Curves {
		for k := range f.Curves[i].Points {
			p := &f.Curves[i].Points[k]
			p.XLow, p.YLow = math.Max(p.XLow, f.X.Min), math.Max(p.YLow, f.Y.Min)
		}
	}
	f.Marks = slices.DeleteFunc(f.Marks, func(m FigureMark) bool { return m.X < f.X.Min || m.X > f.X.Max })
}

// barBounds sets the X axis' bounds and ticks. Ends of intervals beyond are cut off, as on the
// page.
func (f *Figure) barBounds() {
	most, ends, least := 0.0, 0.0, math.Inf(1)
	if f.One != "" {
		most = 1
	}
	for _, b := range f.Bars {
		most, least = max(most, b.Value, b.Paper), min(least, b.Value)
		if b.HasPaper {
			least = min(least, b.Paper)
		}
	}
	for _, b := range f.Bars {
		ends = max(ends, most, min(b.High, widestInterval*most))
	}
	var x extent
	if !f.X.Log {
		x.add(0)
	} else if f.One != "" {
		least = min(least, 1)
	}
	x.add(min(least, ends))
	x.add(ends)
	f.X.fit(x, false)
	for i, b := range f.Bars {
		f.Bars[i].Low, f.Bars[i].High = max(b.Low, f.X.Min), min(b.High, f.X.Max)
	}
}

// extent of the values on an axis. The zero value has none.
type extent struct {
	min, max, positive float64 // positive: the least value above 0
	any                bool
}

func (s *extent) add(v float64) {
	if !s.any {
		*s = extent{v, v, math.Inf(1), true}
	}
	s.min, s.max = min(s.min, v), max(s.max, v)
	s.addPositive(v)
}

func (s *extent) addPositive(v float64) {
	if v > 0 {
		s.positive = min(s.positive, v)
	}
}

func (a *FigureAxis) fit(s extent, tight bool) {
	switch {
	case a.Log:
		a.Min, a.Max = niceBelow(s.positive), niceAbove(s.max)
		a.Ticks = panel{xMin: a.Min, xMax: a.Max, logX: true}.xTicks()
		return
	case tight:
		a.Min, a.Max = s.min, s.max
	default:
		a.Min = min(0, s.min)
		step := niceStep(s.max - a.Min)
		a.Min, a.Max = math.Floor(a.Min/step)*step, math.Max(step, math.Ceil(s.max/step)*step)
	}
	step := niceStep(a.Max - a.Min)
	for i := math.Ceil(a.Min/step - 1e-9); i*step <= a.Max+step*1e-9; i++ {
		a.Ticks = append(a.Ticks, math.Round(i*step*1e9)/1e9+0) // + 0: -0 becomes 0
	}
}
