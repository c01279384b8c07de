package plot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/results"
)

// Pair is a plot of the measurements beside the same plot of the source's numbers. Each has the
// scales that it would have alone.
type Pair struct {
	Ours, Paper Picture
	// Caption says how the plot was measured, and Source who reports the other plot's numbers.
	Caption, Source string
	// Form has a row for each part of the form: its name, the source's, ours.
	Form [][3]string
}

// SideBySide are the plots of curves and bars for which the source has numbers, in the page's
// order.
func SideBySide(e results.Experiment) (pairs []Pair, err error) {
	type half struct {
		svg  func(id string) string
		form [][2]string
	}
	add := func(title, says string, ours, paper half) {
		if err != nil || paper.svg == nil {
			return
		}
		p := Pair{Caption: says, Source: document.SourceName(e)}
		name := FileName(title)
		if p.Ours, err = newPicture(name+"-ours", title, ours.svg("ours-"+name)); err != nil {
			return
		}
		if p.Paper, err = newPicture(name+"-paper", title, paper.svg("paper-"+name)); err != nil {
			return
		}
		for i, row := range paper.form {
			p.Form = append(p.Form, [3]string{row[0], row[1], ours.form[i][1]})
		}
		pairs = append(pairs, p)
	}
	curves, _ := document.LinePlots(e)
	for i, p := range curves {
		if strings.Contains(p.Title, document.InThePaper) {
			continue
		}
		own, theirs := p.Split()
		if i+1 < len(curves) && curves[i+1].Key() == p.Key() { // apart already
			own, theirs = p, curves[i+1]
		}
		if len(theirs.Curves) > 0 && len(own.Curves) > 0 {
			add(p.Title, document.CaptionOf(e), half{func(id string) string { return drawLines(own, id) }, lineForm(own)}, half{func(id string) string { return drawLines(theirs, id) }, lineForm(theirs)})
		}
	}
	bars, _ := document.BarPlots(e)
	for _, p := range bars {
		if theirs := p.OfTheSource(e); len(theirs.Bars) > 0 && !strings.Contains(p.Title, document.InThePaper) {
			own := p.Ours()
			add(p.Title, document.CaptionOf(e), half{func(id string) string { return drawBars(own, id) }, barForm(own)}, half{func(id string) string { return drawBars(theirs, id) }, barForm(theirs)})
		}
	}
	return pairs, err
}

// scaleText says how an axis is drawn.
func scaleText(low, high float64, log bool) string {
	kind := "linear"
	if log {
		kind = "logarithmic"
	}
	return fmt.Sprintf("%s to %s, %s", document.Tick(low), document.Tick(high), kind)
}

// lineForm says how curves are drawn.
func lineForm(p document.LinePlot) [][2]string {
	s := scaleOf(p)
	var names, points []string
	trials, spread := 0, "none"
	for _, c := range p.Curves {
		names = append(names, c.Legend())
		points = append(points, strconv.Itoa(len(c.Points)))
		for i, pt := range c.Points {
			trials = max(trials, len(pt.Trials))
			if pt.IntervalsToo {
				spread = "95% interval of the mean, as whiskers"
				if c.Band && len(c.Points) >= leastBand && i > 0 {
					spread = "95% interval of the mean, as a band"
				}
			}
		}
	}
	return append([][2]string{
		{p.XLabel, scaleText(s.xMin, s.xMax, s.logX)}, {p.YLabel, scaleText(s.yMin, s.yMax, s.logY)},
		{"curves, in order", strings.Join(names, ", ")}, {"points of each curve", strings.Join(points, ", ")},
	}, spreadOf(spread, trials)...)
}

func spreadOf(spread string, trials int) [][2]string {
	each := "none: a mean alone"
	if trials > 0 {
		each = "up to " + strconv.Itoa(trials) + " at a point, each a dot"
	}
	return [][2]string{{"error bars", spread}, {"trials", each}}
}

// barForm says how bars are drawn.
func barForm(p document.BarPlot) [][2]string {
	least, most := 0.0, roundUp(barExtent(p))
	if p.Log() {
		least, most = niceBelow(slices.Min(p.Values())), niceAbove(barExtent(p))
	}
	var names []string
	trials, spread := 0, "none"
	for _, b := range p.Bars {
		names = append(names, strings.TrimPrefix(b.Group+", "+b.Name, ", "))
		trials = max(trials, len(b.Mean.Trials))
		if b.Mean.IntervalsToo {
			spread = "95% interval of the mean, as a whisker"
		}
	}
	return append([][2]string{{p.XLabel, scaleText(least, most, p.Log())}, {"bars, in order", strings.Join(names, "; ")}}, spreadOf(spread, trials)...)
}
