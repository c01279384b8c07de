package report

import (
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"strings"
)

// mostHistoryPlots of metrics that a page has.
const mostHistoryPlots = 60

// historyPlot is a metric over the runs: a dot for each, with the interval over its trials, a line
// for each level, and a mark where it changes.
type historyPlot struct {
	h History
	m HistoryMetric
	// least and most of what is drawn, with some room. The axis does not begin at 0: a change of 2%
	// must be seen. The ticks say so.
	least, most float64
}

func newHistoryPlot(h History, m HistoryMetric) historyPlot {
	p := historyPlot{h: h, m: m, least: math.Inf(1), most: math.Inf(-1)}
	for _, v := range m.Values {
		p.least, p.most = min(p.least, v.Mean), max(p.most, v.Mean)
	}
	span := p.most - p.least
	for _, v := range m.Values { // intervals of two trials would leave no room for the dots
		if v.Low != nil && v.High != nil {
			p.least, p.most = min(p.least, max(*v.Low, p.least-span/2)), max(p.most, min(*v.High, p.most+span/2))
		}
	}
	room := max((p.most-p.least)*0.06, math.Abs(p.most)*1e-3)
	if room == 0 { // all runs have 0
		room = 1
	}
	p.least, p.most = p.least-room, p.most+room
	return p
}

func (p historyPlot) x(run int) float64 {
	return frameLeft + frameWidth*(float64(run)+0.5)/float64(max(1, len(p.h.Runs)))
}

func (p historyPlot) y(v float64) float64 {
	return frameTop + frameHeight*(1-(min(p.most, max(p.least, v))-p.least)/(p.most-p.least))
}

func (p historyPlot) svg(id string) string {
	b := &strings.Builder{}
	openSVG(b, id, plotHeight, p.m.title(), fmt.Sprintf("%d runs, %s.", len(p.m.Values), counted(len(p.m.Changes), "change of the level", "changes of the level")))
	step := niceStep(p.most - p.least)
	for v := math.Ceil(p.least/step) * step; v <= p.most; v += step {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frameLeft, p.y(v), frameWidth, frameLeft-8, p.y(v)+4, tick(v))
	}
	every := max(1, (len(p.h.Runs)+7)/8)
	for i := 0; i < len(p.h.Runs); i += every {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", p.x(i), frameTop+frameHeight+18, i+1)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">run</text>`+"\n", frameLeft+frameWidth/2, plotHeight-14)
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", frameTop+frameHeight/2, html.EscapeString(p.m.named()))
	p.levels(b)
	b.WriteString(`<g class="c0">` + "\n")
	for _, v := range p.m.Values {
		if v.Low != nil && v.High != nil {
			fmt.Fprintf(b, `<path class="line thin" d="M%.1f,%.1fV%.1f"/>`, p.x(v.Run), p.y(*v.Low), p.y(*v.High))
		}
		fmt.Fprintf(b, `<circle class="dot" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`+"\n", p.x(v.Run), p.y(v.Mean),
			html.EscapeString(fmt.Sprintf("run %d: %s %s; %s", v.Run+1, tick3(v.Mean), p.m.Unit, p.h.runName(v.Run))))
	}
	b.WriteString("</g>\n</svg>")
	return b.String()
}

// levels draws the mean of each level, and where one begins.
func (p historyPlot) levels(b *strings.Builder) {
	from := p.m.Values[0].Run
	last := p.m.Values[len(p.m.Values)-1].Run
	for i, c := range p.m.Changes {
		middle := (p.x(c.Last) + p.x(c.At)) / 2
		fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,%.1fv%.1f"/>`+"\n", middle, frameTop, frameHeight)
		fmt.Fprintf(b, `<path class="mark" d="M%.1f,%.1fH%.1f"/>`+"\n", p.x(from)-6, p.y(c.Before), p.x(c.Last)+6)
		if i == len(p.m.Changes)-1 {
			fmt.Fprintf(b, `<path class="mark" d="M%.1f,%.1fH%.1f"/>`+"\n", p.x(c.At)-6, p.y(c.After), p.x(last)+6)
		}
		from = c.At
	}
}

// title of a metric's plot.
func (m HistoryMetric) title() string {
	text := m.Metric + ", " + m.where()
	if n := len(m.Changes); n > 0 {
		c := m.Changes[n-1]
		text += ": " + strings.ToLower(c.Kind) + ", " + c.ratioInWords()
	}
	return text
}

// htmlHistory draws a metric of a history for a page.
func htmlHistory(h History, m HistoryMetric, id string) htmlPlot {
	return htmlPlot{Title: m.title(), SVG: escaped(newHistoryPlot(h, m).svg(id))}
}

// HistoryHTML writes a history as one page that needs nothing else.
func HistoryHTML(w io.Writer, h History) error {
	view := struct {
		Lead, Legend, More string
		Changes, Runs      htmlTable
		Changed, Steady    []htmlPlot
		Notes              []string
	}{Lead: h.lead(), Legend: historyLegend, Changes: htmlTableOf(h.changesTableOf(allChanges)), Runs: htmlTableOf(h.runsTable()), Notes: h.Notes}
	for i, m := range h.Metrics {
		if i == mostHistoryPlots {
			view.More = fmt.Sprintf("The first %d of %d metrics are drawn; -o csv has all.", i, len(h.Metrics))
			break
		}
		drawn := htmlHistory(h, m, fmt.Sprintf("history%d", i))
		if len(m.Changes) > 0 {
			view.Changed = append(view.Changed, drawn)
		} else {
			view.Steady = append(view.Steady, drawn)
		}
	}
	if err := historyPage.Execute(w, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

var historyPage = template.Must(template.Must(htmlPage.Clone()).New("history").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + pagePolicy() + `
<title>Benchmarks over time</title>
<style>` + pageStyle + `</style>
</head>
<body>
<main>
<h1>Benchmarks over time</h1>
<p>{{.Lead}}</p>
{{range .Notes}}<p>{{.}}</p>
{{end}}{{if .Changes.Rows}}<h2>Changes</h2>
{{template "table" .Changes}}
{{end}}<p>{{.Legend}}</p>
{{if .Changed}}<h2>Metrics that change</h2>
<p>A dot is the mean of a run, with the 95% interval over its trials. A line is the mean of a level; a dashed line stands where it changes. The axis does not begin at 0.</p>
{{template "plots" .Changed}}
{{end}}{{if .Steady}}<h2>Metrics without a change</h2>
{{template "plots" .Steady}}
{{end}}{{with .More}}<p>{{.}}</p>
{{end}}<h2>Runs</h2>
{{template "table" .Runs}}
</main>
{{script}}
</body>
</html>
`))
