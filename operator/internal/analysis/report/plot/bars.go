package plot

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"unicode"

	"assay.dev/assay/operator/internal/analysis/report/document"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

const (
	barRow, barGroupRow = 24.0, 22.0
	paperBarRow         = 14.0 // of the paper's stack below a bar
	barPaperLine        = 16.0 // from the text of a bar to that of the paper's
	barsTop, barsBottom = 6.0, 44.0
	barValueWidth       = 70.0
	barNWidth           = 46.0
	barLetter           = 6.6 // a letter's width, about
	longestBarName      = 34
	barNameGaps         = 12.0 // left of a name, and between it and its bar
)

// cutName is as much of a name as there is room for.
func cutName(name string) string {
	if runes := []rune(name); len(runes) > longestBarName {
		return string(runes[:longestBarName-1]) + "…"
	}
	return name
}

// nameWidth is how much room a name takes at the size of labels, in a font with wide letters:
// a browser takes the font that its machine has.
func nameWidth(name string) (width float64) {
	for _, r := range name {
		switch {
		case strings.ContainsRune("mwMW%@", r):
			width += 12.7
		case strings.ContainsRune("iljI.,:;|' ", r):
			width += 4.4
		case strings.ContainsRune("frt-()[]/", r):
			width += 5.4
		case unicode.IsUpper(r):
			width += 9.6
		default:
			width += 8.3
		}
	}
	return width
}

// drawBars draws the bars below each other, with names on their left and means on their right.
func drawBars(p document.BarPlot, id string) string {
	axis := cutName(p.Axis)
	widest := nameWidth(axis)
	for _, b := range p.Bars {
		widest = max(widest, nameWidth(cutName(b.Name)))
	}
	left, right := widest+barNameGaps, barValueWidth
	if p.WithN {
		right += barNWidth
	}
	frame := panel{left: left, top: barsTop, width: plotWidth - left - right, xMax: roundUp(barExtent(p)), yMax: 1, logX: p.Log()}
	if frame.logX {
		frame.xMin, frame.xMax = niceBelow(slices.Min(p.Values())), niceAbove(barExtent(p))
	}
	if p.One != "" || axis != "" {
		frame.top += legendLine
	}
	frame.height = barRows(p)
	b := &strings.Builder{}
	bottom := frame.top + frame.height + barsBottom
	openSVG(b, id, bottom+barLegendHeight(p), p.Title+": "+p.XLabel, describeBars(p))
	for _, v := range ticks(frame.xMin, frame.xMax, niceStep(frame.xMax), frame.logX) {
		x := frame.x(v)
		fmt.Fprintf(b, `<path class="grid" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x, frame.top, frame.height, x, frame.top+frame.height+17, document.Tick(v))
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", frame.left+frame.width/2, frame.top+frame.height+37, html.EscapeString(axisText(p.XLabel, frame.logX)))
	if axis != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n", frame.left-8, frame.top-7, html.EscapeString(axis))
	}
	y, group := frame.top, ""
	for _, one := range p.Bars {
		if one.Group != group {
			group = one.Group
			fmt.Fprintf(b, `<text x="4" y="%.1f">%s</text>`+"\n", y+barGroupRow-6, html.EscapeString(shortLegend(group)))
			y += barGroupRow
		}
		drawBar(one, b, frame, y, p)
		y += rowHeight(one)
	}
	drawBaseline(p, b, frame)
	drawBarLegend(p, b, bottom)
	b.WriteString("</svg>\n")
	return b.String()
}

// barExtent is how far the axis must reach.
func barExtent(p document.BarPlot) float64 {
	most, ends := 0.0, 0.0
	if p.One != "" {
		most = 1
	}
	for _, b := range p.Bars {
		most = max(most, b.Mean.Y, b.Paper)
		for _, t := range b.Mean.Trials {
			most = max(most, t[1])
		}
	}
	for _, b := range p.Bars { // intervals of two trials would leave no room for the bars
		ends = max(ends, most, min(b.Mean.YHigh, widestInterval*most))
	}
	return ends
}

// barRows is the height of all bars and of the lines above groups.
func barRows(p document.BarPlot) float64 {
	height, group := 0.0, ""
	for _, b := range p.Bars {
		if b.Group != group {
			group = b.Group
			height += barGroupRow
		}
		height += rowHeight(b)
	}
	return height
}

// rowHeight is the height of a bar, with the paper's below it.
func rowHeight(b document.Bar) float64 {
	if len(b.PaperParts) > 0 {
		return barRow + paperBarRow
	}
	return barRow
}

// drawBaseline marks the baseline of ratios.
func drawBaseline(p document.BarPlot, b *strings.Builder, frame panel) {
	if p.One == "" {
		return
	}
	x := frame.x(1)
	anchor := "middle"
	if x+barLetter*float64(len([]rune(p.One)))/2 > plotWidth {
		anchor = "end"
	}
	fmt.Fprintf(b, `<path class="mark ends" d="M%.1f,%.1fv%.1f"/><text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
		x, frame.top-2, frame.height+2, x, frame.top-7, anchor, html.EscapeString(shortLegend(p.One)))
}

// barEntries of the legend: parts, and what the narrow bars are.
func barEntries(p document.BarPlot) []string {
	if len(p.Parts) > 0 && slices.ContainsFunc(p.Bars, func(b document.Bar) bool { return len(b.PaperParts) > 0 }) {
		return append(slices.Clone(p.Parts), "paper")
	}
	return p.Parts
}

// barLegendHeight is the height of the legend: two columns below the axis.
func barLegendHeight(p document.BarPlot) float64 {
	return float64((len(barEntries(p))+1)/2) * legendLine
}

func drawBarLegend(p document.BarPlot, b *strings.Builder, top float64) {
	for i, entry := range barEntries(p) {
		x, y := frameLeft-20+float64(i%2)*legendColumn, top+float64(i/2)*legendLine
		if i < len(p.Parts) {
			fmt.Fprintf(b, `<g class="c%d"><path class="%s" d="M%.1f,%.1fh26v12h-26z"/></g>`, i, partClass(i), x, y-6)
		} else {
			fmt.Fprintf(b, `<path class="ghost" d="M%.1f,%.1fh26v8h-26z"/>`, x, y-4)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", x+32, y+4, html.EscapeString(entry))
	}
}

// partClass makes neighbours differ in greyscale, too: every other part is pale.
func partClass(i int) string {
	if i%2 == 1 {
		return "part pale"
	}
	return "part"
}

func drawBar(b document.Bar, out *strings.Builder, frame panel, y float64, p document.BarPlot) {
	middle := y + barRow/2
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, frame.left-8, middle+4, html.EscapeString(cutName(b.Name)))
	right := plotWidth - 4
	if p.WithN {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">n=%d</text>`, right, middle+4, b.N)
		right -= barNWidth
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end"%s>%s</text>`+"\n", right, middle+4, data("says", tellBar(p, b)), document.Rounded(b.Mean))
	if len(b.Parts) > 0 {
		drawParts(b, out, frame, y, p.Parts)
		return
	}
	fmt.Fprintf(out, `<g class="c%d"%s>`, b.Style, data("says", tellBar(p, b)))
	if !frame.logX {
		fmt.Fprintf(out, `<path class="band" d="M%.1f,%.1fH%.1fv%.1fH%.1fZ"/>`, frame.left, y+4, frame.x(b.Mean.Y), barRow-8, frame.left)
	}
	if b.Mean.IntervalsToo {
		whisker(out, lying(middle, frame.x(b.Mean.YLow), frame.x(b.Mean.YHigh), frame.left, frame.left+frame.width))
	}
	if frame.logX {
		dot(out, b.Style, false, frame.x(b.Mean.Y), middle, "")
	} else {
		fmt.Fprintf(out, `<path class="line" d="M%.1f,%.1fv%.1f"/>`+"\n", frame.x(b.Mean.Y), y+4, barRow-8)
	}
	for _, t := range b.Mean.Trials {
		fmt.Fprintf(out, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, frame.x(t[1]), middle+5, trialDot)
	}
	if b.HasPaper {
		dot(out, b.Style, true, frame.x(b.Paper), middle, html.EscapeString(fmt.Sprintf("%s%s: %s", b.Name, document.PaperSuffix, document.PaperText(b.Paper))))
	}
	out.WriteString("</g>\n")
}

const (
	// leastGap is how wide a part must be for a gap after it: a gap would hide a narrower one.
	leastGap = 4.0
	// A part narrower than leastPart is not drawn, not even the outline of a pale part.
	leastPart = 0.05
	// leastGhost is how wide a part of a bar of the paper must be to be drawn: outlines of narrower
	// parts would look wide.
	leastGhost = 1.5
)

// drawParts draws a stacked bar. The interval of its total has the colour of text, since it belongs
// to no part.
func drawParts(b document.Bar, out *strings.Builder, frame panel, y float64, names []string) {
	stack := func(parts []float64, class func(int) string, top, height float64) {
		from := 0.0
		for i, v := range parts {
			left, right := frame.x(from), frame.x(from+v)
			from += v
			if right-left < leastPart || class(i) == "ghost" && right-left < leastGhost {
				continue
			}
			fmt.Fprintf(out, `<g class="c%d"><path class="%s" d="M%.1f,%.1fH%.1fv%.1fH%.1fZ"%s><title>%s</title></path></g>`,
				i, class(i), left, top, right, height, left, data("says", names[i]+": "+document.Tick3(v)), html.EscapeString(document.Tick3(v)))
			if i < len(parts)-1 && right-left >= leastGap {
				fmt.Fprintf(out, `<path class="gap" d="M%.1f,%.1fv%.1f"/>`, right, top, height)
			}
		}
		out.WriteString("\n")
	}
	middle := y + barRow/2
	stack(b.Parts, partClass, y+4, barRow-8)
	if len(b.PaperParts) > 0 {
		stack(b.PaperParts, func(int) string { return "ghost" }, y+barRow-2, paperBarRow-4)
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text><text x="%.1f" y="%.1f" text-anchor="end">paper</text>`+"\n",
			plotWidth-4-barNWidth, middle+4+barPaperLine, document.PaperText(b.Paper), plotWidth-4, middle+4+barPaperLine)
	}
	if b.Mean.IntervalsToo && b.Mean.YLow < b.Mean.YHigh { // shares of a whole do not vary
		low, high := frame.x(b.Mean.YLow), frame.x(b.Mean.YHigh)
		fmt.Fprintf(out, `<path class="mark" d="M%.1f,%.1fH%.1fM%.1f,%.1fv8M%.1f,%.1fv8"/>`+"\n", low, middle, high, low, middle-4, high, middle-4)
	}
	for _, t := range b.Mean.Trials {
		fmt.Fprintf(out, `<path class="trial" transform="translate(%.1f,%.1f)" d="%s"/>`, frame.x(t[1]), middle+5, trialDot)
	}
	out.WriteString("\n")
}

// tellBar has all facts about a bar, for a reader who points at it.
func tellBar(p document.BarPlot, b document.Bar) string {
	lines := []string{strings.TrimPrefix(b.Group+", "+b.Name, ", "), p.XLabel + ": " + document.Rounded(b.Mean)}
	if b.Mean.IntervalsToo {
		lines[1] += ", 95% interval " + boundText(b.Mean.YLow) + " to " + boundText(b.Mean.YHigh)
	}
	if b.HasPaper {
		lines = append(lines, "paper: "+document.PaperText(b.Paper))
	}
	if n := len(b.Mean.Trials); n > 0 {
		lines = append(lines, model.Count(n, "trial"))
	}
	return strings.Join(lines, "\n")
}

// describeBars puts the bars into words.
func describeBars(p document.BarPlot) string {
	var texts []string
	for _, b := range p.Bars {
		text := strings.TrimPrefix(b.Group+", "+b.Name, ", ") + ": " + document.Rounded(b.Mean)
		if b.Mean.IntervalsToo {
			text += fmt.Sprintf(", interval %s to %s", boundText(b.Mean.YLow), boundText(b.Mean.YHigh))
		}
		for i, v := range b.Parts {
			text += fmt.Sprintf(", %s %s", p.Parts[i], document.Tick3(v))
		}
		if b.HasPaper {
			text += ", the paper's " + document.PaperText(b.Paper)
		}
		texts = append(texts, text+".")
	}
	return cmp.Or(strings.Join(texts, " "), "nothing")
}

// boundText writes the end of an interval, which a ratio may not have.
func boundText(y float64) string {
	if math.IsInf(y, 0) {
		return "no end"
	}
	return document.Rounded(document.Point{Y: y})
}

// DrawnBars are the plots of bars for a page. Their ids begin with id.
func DrawnBars(e results.Experiment, id string) (all []Drawn, note string) {
	drawn, note := document.BarPlots(e)
	return drawnPlots(e, drawn, drawBars, id), note
}

// DrawnLines are the plots of curves for a page, with the note beside them.
func DrawnLines(e results.Experiment, id string) (all []Drawn, note string) {
	drawn, note := document.LinePlots(e)
	return drawnPlots(e, drawn, drawLines, id), note
}

// DrawnSearches are the plots of searches for a page.
func DrawnSearches(e results.Experiment, id string) []Drawn {
	drawn, _ := document.CapacityPlots(e)
	return drawnPlots(e, drawn, drawSearch, id)
}
