package figure

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"strconv"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/text/encoding/charmap"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"

	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// reproducible has PDFs of the same figure have the same bytes. The library behind vgpdf takes
// dates and the order of its objects from defaults of the whole program only.
var reproducible = sync.OnceFunc(func() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
})

// PDF draws a figure with embedded fonts, exactly as wide and high as the style says; one of bars
// is higher where they need it. Text must be of the characters of Windows-1252, which the library
// embeds.
func PDF(f plot.Figure, s Style) ([]byte, error) {
	reproducible()
	if err := writable(f); err != nil {
		return nil, err
	}
	if len(f.Bars) > 0 {
		return pdfBars(f, s)
	}
	p := newPlot(f, s)
	legend := legendOf(f, s)
	s.Height = s.withLegend(legend.rows())
	for i := range f.Curves {
		if err := addCurve(p, f.Curves[i], i, s, legend); err != nil {
			return nil, fmt.Errorf("draw the curve %s: %w", f.Curves[i].Name, err)
		}
	}
	if err := addMarks(p, f, legend); err != nil {
		return nil, err
	}
	if f.One != "" {
		if err := addOne(p, f, legend); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.X.Min, f.X.Max, f.Y.Min, f.Y.Max
	canvas := vgpdf.New(vg.Length(s.Width), vg.Length(s.Height))
	page := draw.New(canvas)
	p.Draw(draw.Crop(page, 0, -legend.margin, 0, -legend.draw(page)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("write the figure as PDF: %w", err)
	}
	return b.Bytes(), nil
}

// ErrCharacters is the error for text that the fonts of a PDF figure cannot show.
var ErrCharacters = errors.New("has a character that is not in Windows-1252, which PDF figures are limited to")

// writable refuses text that the PDF's fonts would show as something else.
func writable(f plot.Figure) error {
	texts := []string{f.X.Label, f.Y.Label}
	for _, c := range f.Curves {
		texts = append(texts, c.Name)
	}
	for _, m := range f.Marks {
		texts = append(texts, m.Name)
	}
	for _, b := range f.Bars {
		texts = append(texts, b.Group, b.Name)
	}
	for _, p := range f.Parts {
		texts = append(texts, p.Name)
	}
	texts = append(texts, f.One)
	for _, t := range texts {
		if _, err := charmap.Windows1252.NewEncoder().String(t); err != nil {
			return fmt.Errorf("%q %w; give it another label, or use pgfplots", t, ErrCharacters)
		}
	}
	return nil
}

func (s Style) font() font.Font {
	f := font.Font{Typeface: "Liberation", Variant: "Serif", Size: vg.Length(s.FontSize)}
	if s.Sans {
		f.Variant = "Sans"
	}
	return f
}

func newPlot(f plot.Figure, s Style) *gonum.Plot {
	p := gonum.New()
	p.BackgroundColor = color.Transparent
	for _, a := range []struct {
		axis *gonum.Axis
		of   plot.FigureAxis
	}{{&p.X, f.X}, {&p.Y, f.Y}} {
		a.axis.Label.Text = a.of.Label
		a.axis.Label.TextStyle.Font, a.axis.Tick.Label.Font = s.font(), s.font()
		a.axis.Padding = 0
		a.axis.Tick.Length = vg.Length(s.FontSize) * 0.4
		a.axis.Tick.Marker = ticks(a.of)
		if a.of.Log {
			a.axis.Scale = gonum.LogScale{}
		}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe0}, color.Gray{0xe0}
	if len(f.Bars) > 0 {
		grid.Horizontal.Color = nil // a line through the middle of each bar says nothing
	}
	p.Add(grid)
	return p
}

func ticks(a plot.FigureAxis) gonum.ConstantTicks {
	var all gonum.ConstantTicks
	for _, v := range a.Ticks {
		all = append(all, gonum.Tick{Value: v, Label: number(v)})
	}
	return all
}

// glyphs of markers: filled for measured points, hollow for the paper's.
var (
	filled = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}}
	hollow = []draw.GlyphDrawer{draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}}
)

// dashes of lines. A line without markers has the one of its style, and the paper's lines have the
// second.
var dashes = [][]vg.Length{nil, {vg.Points(4), vg.Points(2)}, {vg.Points(1), vg.Points(1.5)}, {vg.Points(5), vg.Points(1.5), vg.Points(1), vg.Points(1.5)}}

const lineWidth = 1.0 // points

func lineStyle(c plot.FigureCurve) draw.LineStyle {
	style := draw.LineStyle{Color: rgb(c.Color), Width: lineWidth}
	switch {
	case c.Paper:
		style.Dashes = dashes[1]
	case c.Line:
		style.Dashes = dashes[c.Style%len(dashes)]
	case c.Style >= len(filled): // the markers repeat, so that the line tells curves apart
		style.Dashes = dashes[2]
	}
	return style
}

func rgb(hex string) color.Color {
	v, _ := strconv.ParseUint(hex[1:], 16, 32)
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}

func addCurve(p *gonum.Plot, c plot.FigureCurve, i int, s Style, legend *legend) error {
	xys := make(plotter.XYs, len(c.Points))
	for k, pt := range c.Points {
		xys[k] = plotter.XY{X: pt.X, Y: pt.Y}
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	line.LineStyle = lineStyle(c)
	if c.Band {
		if err := addBand(p, c); err != nil {
			return err
		}
	} else if err := addBars(p, c, s); err != nil {
		return err
	}
	var thumbs []gonum.Thumbnailer
	if !c.Dots {
		p.Add(line)
		thumbs = append(thumbs, line)
	}
	if !c.Line {
		dots, err := plotter.NewScatter(xys)
		if err != nil {
			return err
		}
		glyphs := filled
		if c.Paper {
			glyphs = hollow
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: rgb(c.Color), Radius: vg.Length(s.FontSize) * 0.28, Shape: glyphs[c.Style%len(glyphs)]}
		p.Add(dots)
		thumbs = append(thumbs, dots)
	}
	legend.add(i, thumbs...)
	return nil
}

// addBand fills between the ends of the intervals.
func addBand(p *gonum.Plot, c plot.FigureCurve) error {
	n := len(c.Points)
	around := make(plotter.XYs, 2*n)
	for i, pt := range c.Points {
		around[i], around[2*n-1-i] = plotter.XY{X: pt.X, Y: pt.YHigh}, plotter.XY{X: pt.X, Y: pt.YLow}
	}
	band, err := plotter.NewPolygon(around)
	if err != nil {
		return err
	}
	band.Color, band.LineStyle.Width = light(c.Color), 0
	p.Add(band)
	return nil
}

// light is a colour with three quarters of white: vgpdf darkens colours that are not opaque.
func light(hex string) color.Color { return mixed(hex, 0.25) }

// mixed is a share of a colour, and white.
func mixed(hex string, share float64) color.Color {
	r, g, b, _ := rgb(hex).RGBA()
	mix := func(v uint32) uint8 { return uint8(float64(v>>8)*share + 0xff*(1-share)) }
	return color.RGBA{mix(r), mix(g), mix(b), 0xff}
}

// intervals of points, as the library's bars want them.
type intervals struct {
	plotter.XYs
	plotter.XErrors
	plotter.YErrors
}

func addBars(p *gonum.Plot, c plot.FigureCurve, s Style) error {
	var all intervals
	wide := false
	for _, pt := range c.Points {
		if pt.Interval {
			all.XYs = append(all.XYs, plotter.XY{X: pt.X, Y: pt.Y})
			all.XErrors = append(all.XErrors, struct{ Low, High float64 }{pt.X - pt.XLow, pt.XHigh - pt.X})
			all.YErrors = append(all.YErrors, struct{ Low, High float64 }{pt.Y - pt.YLow, pt.YHigh - pt.Y})
			wide = wide || pt.XHigh > pt.XLow
		}
	}
	if len(all.XYs) == 0 {
		return nil
	}
	style := draw.LineStyle{Color: rgb(c.Color), Width: lineWidth * 0.75}
	y, err := plotter.NewYErrorBars(all)
	if err != nil {
		return err
	}
	y.LineStyle, y.CapWidth = style, vg.Length(s.FontSize)*0.4
	p.Add(y)
	if !wide {
		return nil
	}
	x, err := plotter.NewXErrorBars(all)
	if err != nil {
		return err
	}
	x.LineStyle, x.CapWidth = style, y.CapWidth
	p.Add(x)
	return nil
}

// addMarks draws a line from bottom to top at each instant, dashed where a fault ended.
func addMarks(p *gonum.Plot, f plot.Figure, legend *legend) error {
	for _, m := range f.Marks {
		line, err := plotter.NewLine(plotter.XYs{{X: m.X, Y: f.Y.Min}, {X: m.X, Y: f.Y.Max}})
		if err != nil {
			return fmt.Errorf("draw the mark %s: %w", m.Name, err)
		}
		line.LineStyle = draw.LineStyle{Color: color.Gray{0x33}, Width: lineWidth}
		if m.Ends {
			line.Dashes = dashes[1]
		}
		p.Add(line)
		legend.addMark(m.Name, line)
	}
	return nil
}

// addOne marks the baseline of ratios.
func addOne(p *gonum.Plot, f plot.Figure, legend *legend) error {
	line, err := plotter.NewLine(plotter.XYs{{X: f.X.Min, Y: 1}, {X: f.X.Max, Y: 1}})
	if err != nil {
		return fmt.Errorf("draw the baseline %s: %w", f.One, err)
	}
	line.LineStyle = draw.LineStyle{Color: color.Gray{0x33}, Width: lineWidth, Dashes: dashes[1]}
	p.Add(line)
	legend.addMark(f.One, line)
	return nil
}

// legendPadding is the room between two lines of a legend, in ems.
const legendPadding = 0.25

// legend is above the frame, in columns, so that it hides no curve.
type legend struct {
	entries []entry
	thumbs  [][]gonum.Thumbnailer
	style   text.Style
	columns int
	// margin to the right, for half of the last tick's label.
	margin vg.Length
}

func legendOf(f plot.Figure, s Style) *legend {
	l := newLegend(f, s)
	l.entries = entriesOf(f)
	l.thumbs = make([][]gonum.Thumbnailer, len(l.entries))
	l.fit(s)
	return l
}

// newLegend is one without entries.
func newLegend(f plot.Figure, s Style) *legend {
	l := &legend{style: gonum.NewLegend().TextStyle}
	l.style.Font = s.font()
	if n := len(f.X.Ticks); n > 0 {
		l.margin = l.style.Width(number(f.X.Ticks[n-1])) / 2
	}
	return l
}

// fit chooses the number of columns.
func (l *legend) fit(s Style) {
	longest := Length(1)
	for _, e := range l.entries {
		longest = max(longest, Length(l.style.Width(e.name))+4*s.FontSize)
	}
	l.columns = columns(len(l.entries), s.Width, longest)
}

// rows of the legend.
func (l *legend) rows() int {
	if len(l.entries) == 0 {
		return 0
	}
	return (len(l.entries) + l.columns - 1) / l.columns
}

func (l *legend) add(curve int, thumbs ...gonum.Thumbnailer) {
	for i, e := range l.entries {
		if e.curve == curve {
			l.thumbs[i] = thumbs
		}
	}
}

func (l *legend) addMark(name string, thumb gonum.Thumbnailer) {
	for i, e := range l.entries {
		if e.curve < 0 && e.name == name {
			l.thumbs[i] = []gonum.Thumbnailer{thumb}
		}
	}
}

// draw returns how high the legend is, with the room below it.
func (l *legend) draw(page draw.Canvas) vg.Length {
	size := l.style.Font.Size
	if len(l.entries) == 0 {
		return size / 2 // of the topmost tick's label
	}
	rows := l.rows()
	width := (page.Max.X - page.Min.X) / vg.Length(l.columns)
	for column := range l.columns {
		part := gonum.NewLegend()
		part.Top, part.Left, part.TextStyle, part.ThumbnailWidth = true, true, l.style, 2.2*size
		part.Padding = size * legendPadding
		for i := column; i < len(l.entries); i += l.columns {
			part.Add(l.entries[i].name, l.thumbs[i]...)
		}
		cell := page
		cell.Min.X = page.Min.X + width*vg.Length(column)
		cell.Max.X = cell.Min.X + width
		part.Draw(cell)
	}
	return vg.Length(rows)*(l.style.FontExtents().Height+size*legendPadding) + size/2
}
