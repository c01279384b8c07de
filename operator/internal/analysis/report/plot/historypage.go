package plot

import (
	"fmt"
	"html"
	"math"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
)

// historyPlot is a metric over the runs: a dot for each, with the interval over its trials, a line
// for each level, and a mark where it changes.
type historyPlot struct {
	h model.History
	m model.HistoryMetric
	// least and most are the ends of the drawn values, with some room. The axis does not begin at
	// 0: a change of 2% must be seen. The ticks say so.
	least, most float64
}

func newHistoryPlot(h model.History, m model.HistoryMetric) historyPlot {
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
	openSVG(b, id, plotHeight, p.m.Title(), fmt.Sprintf("%d runs, %s.", len(p.m.Values), model.Counted(len(p.m.Changes), "change of the level", "changes of the level")))
	step := niceStep(p.most - p.least)
	for v := math.Ceil(p.least/step) * step; v <= p.most; v += step {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fh%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frameLeft, p.y(v), frameWidth, frameLeft-8, p.y(v)+4, document.Tick(v))
	}
	every := max(1, (len(p.h.Runs)+7)/8)
	for i := 0; i < len(p.h.Runs); i += every {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", p.x(i), frameTop+frameHeight+18, i+1)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">run</text>`+"\n", frameLeft+frameWidth/2, plotHeight-14)
	fmt.Fprintf(b, `<text transform="translate(16,%.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", frameTop+frameHeight/2, html.EscapeString(p.m.Named()))
	p.levels(b)
	b.WriteString(`<g class="c0">` + "\n")
	for _, v := range p.m.Values {
		if v.Low != nil && v.High != nil {
			fmt.Fprintf(b, `<path class="line thin" d="M%.1f,%.1fV%.1f"/>`, p.x(v.Run), p.y(*v.Low), p.y(*v.High))
		}
		fmt.Fprintf(b, `<circle class="dot" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`+"\n", p.x(v.Run), p.y(v.Mean),
			html.EscapeString(fmt.Sprintf("run %d: %s %s; %s", v.Run+1, document.Tick3(v.Mean), p.m.Unit, p.h.RunName(v.Run))))
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

// DrawnHistory draws a metric of a history for a page.
func DrawnHistory(h model.History, m model.HistoryMetric, id string) Drawn {
	return Drawn{Title: m.Title(), SVG: escaped(newHistoryPlot(h, m).svg(id))}
}
