package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"text/template"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"

	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/text/printable"
)

// barRow is a row of a figure of bars: a bar, or a line with the name of a group.
type barRow struct {
	plot.FigureBar
	Label string
	Group bool
	Row   int // from 0, the top
}

func barRows(f plot.Figure) (rows []barRow) {
	group := ""
	for _, b := range f.Bars {
		if b.Group != group {
			group = b.Group
			rows = append(rows, barRow{Label: group, Group: true, Row: len(rows)})
		}
		rows = append(rows, barRow{FigureBar: b, Label: b.Name, Row: len(rows)})
	}
	return rows
}

// The parts of a row, from its top at 0 to the next row at 1: the bar, and below it the paper's
// stack.
const (
	barTop, barBottom     = 0.14, 0.74
	barMiddle             = (barTop + barBottom) / 2
	paperTop, paperBottom = 0.78, 0.96
	capHalf               = 0.14
)

// barHeight is the height that was asked for, or more where a row would have no room for its text.
// By default, rows have some space between them. Axis and label take about four lines, and each
// line of the legend one more.
func barHeight(rows []barRow, legendRows int, s Style) Length {
	of := func(row float64) Length {
		return Length(row*float64(len(rows))+1.4*float64(legendRows)+4) * s.FontSize
	}
	if s.FreeHeight {
		return of(2.2)
	}
	return max(s.Height, of(1.35))
}

// barEntry is an entry of the legend of bars.
type barEntry struct {
	Name  string
	Color string // of a part; empty: not one
	Pale  bool
	Paper bool
	One   bool
}

// barEntries are parts in the order of the stack, the baseline of ratios, and the paper's values.
func barEntries(f plot.Figure) (entries []barEntry) {
	for i, p := range f.Parts {
		entries = append(entries, barEntry{Name: p.Name, Color: p.Color, Pale: i%2 == 1})
	}
	if f.One != "" {
		entries = append(entries, barEntry{Name: f.One, One: true})
	}
	for _, b := range f.Bars {
		if b.HasPaper {
			return append(entries, barEntry{Name: "paper", Paper: true})
		}
	}
	return entries
}

// box is a rectangle of a bar, in the coordinates of the axes.
type box struct {
	From, To, Top, Bottom float64
	Color                 string
	// Hollow: the paper's. Whole: no part of a stack.
	Hollow, Whole, Pale bool
}

// Boxes of a row. None on a logarithmic axis, which has no 0 for a bar to begin at: a dot is there.
func (r barRow) Boxes(f plot.Figure) (boxes []box) {
	top := float64(r.Row)
	if f.X.Log {
		return nil
	}
	if len(r.Parts) == 0 {
		return []box{{0, r.Value, place(top + barTop), place(top + barBottom), r.Color, false, true, false}}
	}
	for _, stack := range []struct {
		parts       []float64
		top, bottom float64
		hollow      bool
	}{{r.Parts, barTop, barBottom, false}, {r.PaperParts, paperTop, paperBottom, true}} {
		from := 0.0
		for i, v := range stack.parts {
			boxes = append(boxes, box{from, min(from+v, f.X.Max), place(top + stack.top), place(top + stack.bottom), f.Parts[i].Color, stack.hollow, false, i%2 == 1})
			from += v
		}
	}
	return boxes
}

// Middle of the bar on the Y axis.
func (r barRow) Middle() float64 { return place(float64(r.Row) + barMiddle) }

// place rounds a place on the Y axis, for text that people read.
func place(y float64) float64 { return math.Round(y*1000) / 1000 }

// Dot says whether the paper's value is a dot: of a stacked bar it is a stack.
func (r barRow) Dot() bool { return r.HasPaper && len(r.PaperParts) == 0 }

// pdfBars draws a figure of bars. Rows go down: their coordinates on the Y axis are negative.
func pdfBars(f plot.Figure, s Style) ([]byte, error) {
	rows := barRows(f)
	legend := barLegend(f, s)
	s.Height = barHeight(rows, legend.rows(), s)
	p := newPlot(f, s)
	p.Y.Tick.Length, p.Y.Tick.LineStyle.Width = vg.Length(s.FontSize)*0.3, 0
	var names gonum.ConstantTicks
	for _, r := range rows {
		names = append(names, gonum.Tick{Value: -r.Middle(), Label: r.Label})
	}
	p.Y.Tick.Marker = names
	for _, r := range rows {
		if r.Group {
			continue
		}
		if err := addBar(p, r, f, s); err != nil {
			return nil, fmt.Errorf("draw the bar %s: %w", r.Label, err)
		}
	}
	if f.One != "" {
		if err := addLine(p, draw.LineStyle{Color: color.Gray{0x33}, Width: lineWidth, Dashes: dashes[1]}, plotter.XYs{{X: 1, Y: 0}, {X: 1, Y: -float64(len(rows))}}); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.X.Min, f.X.Max, -float64(len(rows)), 0
	canvas := vgpdf.New(vg.Length(s.Width), vg.Length(s.Height))
	page := draw.New(canvas)
	p.Draw(draw.Crop(page, 0, -legend.margin, 0, -legend.draw(page)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("write the figure as PDF: %w", err)
	}
	return b.Bytes(), nil
}

func addBar(p *gonum.Plot, r barRow, f plot.Figure, s Style) error {
	for _, b := range r.Boxes(f) {
		area, err := plotter.NewPolygon(plotter.XYs{{X: b.From, Y: -b.Top}, {X: b.To, Y: -b.Top}, {X: b.To, Y: -b.Bottom}, {X: b.From, Y: -b.Bottom}})
		if err != nil {
			return err
		}
		area.Color, area.LineStyle = boxStyle(b)
		p.Add(area)
	}
	if r.Interval {
		style, y := draw.LineStyle{Color: rgb(r.Color), Width: lineWidth}, -r.Middle()
		if len(r.Parts) > 0 { // it belongs to no part
			style.Color = color.Gray{0x33}
		}
		for _, line := range []plotter.XYs{{{X: r.Low, Y: y}, {X: r.High, Y: y}}, {{X: r.Low, Y: y - capHalf}, {X: r.Low, Y: y + capHalf}}, {{X: r.High, Y: y - capHalf}, {X: r.High, Y: y + capHalf}}} {
			if err := addLine(p, style, line); err != nil {
				return err
			}
		}
	}
	if f.X.Log {
		if err := addDot(p, r.Value, r, s, draw.CircleGlyph{}); err != nil {
			return err
		}
	}
	if !r.Dot() {
		return nil
	}
	return addDot(p, r.Paper, r, s, draw.RingGlyph{})
}

// addDot marks a value in a row.
func addDot(p *gonum.Plot, value float64, r barRow, s Style, shape draw.GlyphDrawer) error {
	dot, err := plotter.NewScatter(plotter.XYs{{X: value, Y: -r.Middle()}})
	if err != nil {
		return err
	}
	dot.GlyphStyle = draw.GlyphStyle{Color: rgb(r.Color), Radius: vg.Length(s.FontSize) * 0.28, Shape: shape}
	p.Add(dot)
	return nil
}

// boxStyle fills a part with its colour, with a white line between it and the next one.
func boxStyle(b box) (fill color.Color, line draw.LineStyle) {
	switch {
	case b.Hollow:
		return color.White, draw.LineStyle{Color: rgb(b.Color), Width: lineWidth * 0.75}
	case b.Pale: // so that neighbours differ in greyscale, too
		return mixed(b.Color, 0.45), draw.LineStyle{Color: color.White, Width: lineWidth * 0.5}
	case b.Whole:
		return light(b.Color), draw.LineStyle{Color: rgb(b.Color), Width: lineWidth * 0.75}
	}
	return rgb(b.Color), draw.LineStyle{Color: color.White, Width: lineWidth * 0.5}
}

func addLine(p *gonum.Plot, style draw.LineStyle, points plotter.XYs) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = style
	p.Add(line)
	return nil
}

// barLegend is the legend above the bars.
func barLegend(f plot.Figure, s Style) *legend {
	l := newLegend(f, s)
	for _, e := range barEntries(f) {
		l.entries = append(l.entries, entry{name: e.Name, curve: len(l.entries)})
		var thumb gonum.Thumbnailer = &plotter.Line{LineStyle: draw.LineStyle{Color: color.Gray{0x33}, Width: lineWidth, Dashes: dashes[1]}}
		switch {
		case e.Color != "":
			area := &plotter.Polygon{}
			area.Color, area.LineStyle = boxStyle(box{Color: e.Color, Pale: e.Pale})
			thumb = area
		case e.Paper && len(f.Parts) > 0:
			thumb = &plotter.Polygon{Color: color.White, LineStyle: draw.LineStyle{Color: color.Gray{0x33}, Width: lineWidth * 0.75}}
		case e.Paper:
			thumb = &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: color.Gray{0x33}, Radius: vg.Length(s.FontSize) * 0.28, Shape: draw.RingGlyph{}}}
		}
		l.thumbs = append(l.thumbs, []gonum.Thumbnailer{thumb})
	}
	l.fit(s)
	return l
}

// texBars is what the template of bars is filled with.
type texBars struct {
	plot.Figure
	Style
	Rows    []barRow
	Columns int
	Entries []barEntry
	Bottom  int
}

var barsText = template.Must(template.New("bars").Delims("<<", ">>").Funcs(template.FuncMap{
	"tex": printable.TeX, "number": number, "html": func(c string) string { return strings.ToUpper(c[1:]) }, "length": Length.tex, "comment": comment,
	"id": func(c string) string { return "assay" + strings.ToUpper(c[1:]) },
	"colors": func(f plot.Figure) (all []string) {
		for _, p := range f.Parts {
			all = append(all, p.Color)
		}
		for _, b := range f.Bars {
			all = append(all, b.Color)
		}
		slices.Sort(all)
		return slices.Compact(all)
	},
	"add": func(a, b float64) float64 { return place(a + b) }, "half": func() float64 { return capHalf },
	"ticks": func(a plot.FigureAxis) string {
		var all []string
		for _, v := range a.Ticks {
			all = append(all, number(v))
		}
		return strings.Join(all, ",")
	},
	"places": func(rows []barRow) string {
		var all []string
		for _, r := range rows {
			all = append(all, number(r.Middle()))
		}
		return strings.Join(all, ",")
	},
	"labels": func(rows []barRow) string {
		var all []string
		for _, r := range rows {
			all = append(all, "{"+printable.TeX(r.Label)+"}")
		}
		return strings.Join(all, ",")
	},
}).Parse(`% << comment .Describe >>
% \usepackage{pgfplots} \pgfplotsset{compat=1.16} \input{<< .Name >>.tex}
\begin{tikzpicture}
<< range colors .Figure >>\definecolor{<< id . >>}{HTML}{<< html . >>}
<< end >>\begin{axis}[
  width=<< length .Width >>, height=<< length .Height >>,
  font=\fontsize{<< length .FontSize >>}{<< length .Leading >>}\selectfont<< if .Sans >>\sffamily<< end >>,
  label style={font=\fontsize{<< length .FontSize >>}{<< length .Leading >>}\selectfont}, tick label style={font=\fontsize{<< length .FontSize >>}{<< length .Leading >>}\selectfont},
  xlabel={<< tex .X.Label >>}, xmin=<< number .X.Min >>, xmax=<< number .X.Max >>, xtick={<< ticks .X >>},<< if .X.Log >> xmode=log, log ticks with fixed point,<< end >>
  ylabel={<< tex .Y.Label >>}, y dir=reverse, ymin=0, ymax=<< .Bottom >>, ytick={<< places .Rows >>}, yticklabels={<< labels .Rows >>}, ytick style={draw=none},
  scaled ticks=false, tick label style={/pgf/number format/fixed, /pgf/number format/1000 sep={}, /pgf/number format/precision=6},
  xmajorgrids, grid style={black!12}, tick align=outside, tick pos=left,
  legend columns=<< .Columns >>, legend cell align=left, legend style={at={(0.5,1.03)}, anchor=south, draw=none, fill=none, /tikz/every even column/.append style={column sep=0.8em}},
]
\addplot[draw=none, forget plot] coordinates {(<< number .X.Min >>,0)};
<< range .Rows >><< if not .Group >>% << comment .Label >>
<< range .Boxes $.Figure >>\draw[<< if .Hollow >>fill=white, draw=<< id .Color >><< else if .Whole >>fill=<< id .Color >>!25, draw=<< id .Color >><< else >>fill=<< id .Color >><< if .Pale >>!45<< end >>, draw=white, very thin<< end >>] (axis cs:<< number .From >>,<< number .Top >>) rectangle (axis cs:<< number .To >>,<< number .Bottom >>);
<< end >><< if .Interval >>\draw[<< if .Parts >>black!80<< else >><< id .Color >><< end >>, thick] (axis cs:<< number .Low >>,<< number .Middle >>) -- (axis cs:<< number .High >>,<< number .Middle >>)
  (axis cs:<< number .Low >>,<< number (add .Middle half) >>) -- ++(axis direction cs:0,-<< number (add half half) >>) (axis cs:<< number .High >>,<< number (add .Middle half) >>) -- ++(axis direction cs:0,-<< number (add half half) >>);
<< end >><< if $.Figure.X.Log >>\addplot[only marks, mark=*, << id .Color >>, forget plot] coordinates {(<< number .Value >>,<< number .Middle >>)};
<< end >><< if .Dot >>\addplot[only marks, mark=o, << id .Color >>, forget plot] coordinates {(<< number .Paper >>,<< number .Middle >>)};
<< end >><< end >><< end >><< if .One >>\draw[black!80, thick, dashed] (axis cs:1,0) -- (axis cs:1,<< .Bottom >>);
<< end >><< range $e := .Entries >><< if $e.Color >>\addlegendimage{area legend, fill=<< id $e.Color >><< if $e.Pale >>!45<< end >>, draw=white}
<< else if $e.One >>\addlegendimage{black!80, thick, dashed}
<< else if $.Parts >>\addlegendimage{area legend, fill=white, draw=black!80}
<< else >>\addlegendimage{only marks, mark=o, black!80}
<< end >>\addlegendentry{<< tex $e.Name >>}
<< end >>\end{axis}
\end{tikzpicture}
`))

// texOfBars writes a figure of bars for pgfplots.
func texOfBars(f plot.Figure, s Style) ([]byte, error) {
	rows, entries := barRows(f), barEntries(f)
	longest := Length(1)
	for _, e := range entries {
		longest = max(longest, s.FontSize*(4+Length(len([]rune(e.Name)))/2))
	}
	data := texBars{Figure: f, Style: s, Rows: rows, Entries: entries, Columns: columns(max(1, len(entries)), s.Width, longest), Bottom: len(rows)}
	data.Height = barHeight(rows, 0, s)
	var b bytes.Buffer
	if err := barsText.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("write the figure for pgfplots: %w", err)
	}
	return b.Bytes(), nil
}
