package figure

import (
	_ "embed" // the drawing parts of the scripts
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// A script draws a figure with its reader's own tools. It begins with the figure's data, and ends
// with the same drawing part for every figure, which its reader may change. It reads no other file.

//go:embed scripts/figure.py
var drawPython string

//go:embed scripts/figure.R
var drawR string

// Matplotlib writes a figure as a Python script that draws it as PDF: with matplotlib 3.7 or later.
func Matplotlib(f plot.Figure, s Style) ([]byte, error) {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s\n# Draws %s.pdf: python3 %s.py (matplotlib 3.7 or later)\n", comment(f.Describe()), f.Name, f.Name)
	b.WriteString("import matplotlib\n\nmatplotlib.use(\"Agg\")\nimport matplotlib.pyplot as plt\n\n")
	s.Height = scriptHeight(f, s)
	family := "serif"
	if s.Sans {
		family = "sans-serif"
	}
	fmt.Fprintf(b, "NAME = %s\nWIDTH, HEIGHT, FONT, FAMILY = %s, %s, %s, %s  # inches, inches, points\n",
		quoted(f.Name), decimal(float64(s.Width)/72), decimal(float64(s.Height)/72), decimal(float64(s.FontSize)), quoted(family))
	axis := func(a plot.FigureAxis) string {
		return fmt.Sprintf("dict(label=%s, log=%s, min=%s, max=%s, ticks=[%s])", quoted(a.Label), pythonBool(a.Log), number(a.Min), number(a.Max), numbers(a.Ticks))
	}
	fmt.Fprintf(b, "X = %s\nY = %s\nONE = %s\n", axis(f.X), axis(f.Y), quoted(f.One))
	b.WriteString("# Of a point: x, y, and the ends of its interval in x and in y\nCURVES = [\n")
	for _, c := range f.Curves {
		fmt.Fprintf(b, "    dict(name=%s, color=%s, style=%d, paper=%s, line=%s, dots=%s, band=%s, points=[\n", quoted(c.Name), quoted(c.Color), c.Style,
			pythonBool(c.Paper), pythonBool(c.Line), pythonBool(c.Dots), pythonBool(c.Band))
		for _, p := range c.Points {
			ends := "None, None, None, None"
			if p.Interval {
				ends = numbers([]float64{p.XLow, min(p.XHigh, math.Max(f.X.Max, p.X)), p.YLow, min(p.YHigh, math.Max(f.Y.Max, p.Y))})
			}
			fmt.Fprintf(b, "        (%s, %s, %s),\n", number(p.X), number(p.Y), ends)
		}
		b.WriteString("    ]),\n")
	}
	b.WriteString("]\nMARKS = [")
	for _, m := range f.Marks {
		fmt.Fprintf(b, "(%s, %s, %s), ", number(m.X), quoted(m.Name), pythonBool(m.Ends))
	}
	b.WriteString("]\nPARTS = [")
	for _, p := range f.Parts {
		fmt.Fprintf(b, "(%s, %s), ", quoted(p.Name), quoted(p.Color))
	}
	b.WriteString("]\nBARS = [\n")
	for _, bar := range f.Bars {
		low, high, paper := "None", "None", "None"
		if bar.Interval {
			low, high = number(bar.Low), number(bar.High)
		}
		if bar.HasPaper {
			paper = number(bar.Paper)
		}
		fmt.Fprintf(b, "    dict(group=%s, name=%s, color=%s, value=%s, low=%s, high=%s, paper=%s, parts=[%s], paper_parts=[%s]),\n",
			quoted(bar.Group), quoted(bar.Name), quoted(bar.Color), number(bar.Value), low, high, paper, numbers(bar.Parts), numbers(bar.PaperParts))
	}
	b.WriteString("]\n")
	b.WriteString(drawPython)
	return []byte(b.String()), nil
}

// scriptHeight is the height that a script draws a figure with.
func scriptHeight(f plot.Figure, s Style) Length {
	if len(f.Bars) > 0 {
		return barHeight(barRows(f), len(barEntries(f)), s)
	}
	longest, entries := Length(1), entriesOf(f)
	for _, e := range entries {
		longest = max(longest, s.FontSize*(4+Length(len([]rune(e.name)))/2))
	}
	beside := columns(max(1, len(entries)), s.Width, longest)
	return s.withLegend((len(entries) + beside - 1) / beside)
}

// GGPlot writes a figure as an R script that draws it as PDF: with ggplot2 3.4 or later.
func GGPlot(f plot.Figure, s Style) ([]byte, error) {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s\n# Draws %s.pdf: Rscript %s.R (ggplot2 3.4 or later)\nlibrary(ggplot2)\n\n", comment(f.Describe()), f.Name, f.Name)
	s.Height = scriptHeight(f, s)
	family := "serif"
	if s.Sans {
		family = "sans"
	}
	fmt.Fprintf(b, "name <- %s\nwidth <- %s # inches\nheight <- %s\nfont <- %s # points\nfamily <- %s\n",
		quoted(f.Name), decimal(float64(s.Width)/72), decimal(float64(s.Height)/72), decimal(float64(s.FontSize)), quoted(family))
	axis := func(a plot.FigureAxis) string {
		return fmt.Sprintf("list(label = %s, log = %s, min = %s, max = %s, ticks = c(%s))", quoted(a.Label), rBool(a.Log), number(a.Min), number(a.Max), numbers(a.Ticks))
	}
	fmt.Fprintf(b, "x <- %s\ny <- %s\none <- %s\nparts <- %s\n", axis(f.X), axis(f.Y), quoted(f.One), rBool(len(f.Parts) > 0))
	named, data, marks := newFrame("name:s", "color:s", "style:n", "paper:b"), newFrame("curve:s", "x:n", "y:n", "xlow:n", "xhigh:n", "ylow:n", "yhigh:n", "band:b", "line:b", "dots:b"), newFrame("x:n", "name:s", "ends:b")
	for _, c := range f.Curves {
		named.add(quoted(c.Name), quoted(c.Color), strconv.Itoa(c.Style), rBool(c.Paper))
		for _, p := range c.Points {
			row := []string{quoted(c.Name), number(p.X), number(p.Y), "NA", "NA", "NA", "NA", rBool(c.Band && p.Interval), rBool(!c.Dots), rBool(!c.Line)}
			if p.Interval {
				row[3], row[4], row[5], row[6] = number(p.XLow), number(min(p.XHigh, math.Max(f.X.Max, p.X))), number(p.YLow), number(min(p.YHigh, math.Max(f.Y.Max, p.Y)))
			}
			data.add(row...)
		}
	}
	for _, m := range f.Marks {
		marks.add(number(m.X), quoted(m.Name), rBool(m.Ends))
	}
	rows, boxes, totals := rBars(f, named)
	for _, of := range []struct {
		name string
		*frame
	}{{"names", named}, {"data", data}, {"marks", marks}, {"rows", rows}, {"boxes", boxes}, {"totals", totals}} {
		of.write(b, of.name)
	}
	b.WriteString(drawR)
	return []byte(b.String()), nil
}

// rBars are the rows of a figure of bars, the rectangles in them, and the values of whole bars.
func rBars(f plot.Figure, named *frame) (rows, boxes, totals *frame) {
	rows, boxes = newFrame("row:n", "label:s"), newFrame("name:s", "from:n", "to:n", "top:n", "bottom:n", "hollow:b")
	totals = newFrame("name:s", "row:n", "value:n", "low:n", "high:n", "paper:n")
	for _, p := range f.Parts {
		named.add(quoted(p.Name), quoted(p.Color), "0", "FALSE")
	}
	for _, r := range barRows(f) {
		rows.add(number(r.Middle()), quoted(r.Label))
		if r.Group {
			continue
		}
		label := barLabel(r.FigureBar)
		if len(f.Parts) == 0 {
			named.add(quoted(label), quoted(r.Color), "0", "FALSE")
		}
		whole := f
		whole.X.Log = false // boxes for both kinds of axes: the script chooses
		parts := max(1, len(r.Parts))
		for i, box := range r.Boxes(whole) {
			of := label
			if len(f.Parts) > 0 {
				of = f.Parts[i%parts].Name
			}
			boxes.add(quoted(of), number(box.From), number(box.To), number(box.Top), number(box.Bottom), rBool(box.Hollow))
		}
		row := []string{quoted(label), number(r.Middle()), number(r.Value), "NA", "NA", "NA"}
		if r.Interval {
			row[3], row[4] = number(r.Low), number(r.High)
		}
		if r.HasPaper {
			row[5] = number(r.Paper)
		}
		totals.add(row...)
	}
	return rows, boxes, totals
}

// frame is a data frame of R.
type frame struct {
	columns []string // with its kind after a colon: s, n or b
	rows    [][]string
}

func newFrame(columns ...string) *frame { return &frame{columns: columns} }

func (f *frame) add(cells ...string) { f.rows = append(f.rows, cells) }

// write gives each column a line of its own. One without rows keeps its kind.
func (f *frame) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "%s <- data.frame(\n", name)
	for i, column := range f.columns {
		column, kind, _ := strings.Cut(column, ":")
		cells := make([]string, len(f.rows))
		for k, row := range f.rows {
			cells[k] = row[i]
		}
		as := map[string]string{"s": "character", "n": "numeric", "b": "logical"}[kind]
		fmt.Fprintf(b, "  %s = as.%s(c(%s)),\n", column, as, strings.Join(cells, ", "))
	}
	b.WriteString("  stringsAsFactors = FALSE\n)\n")
}

// quoted writes a text as both Python and R read it.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f || r == utf8.RuneError:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func numbers(all []float64) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = number(v)
	}
	return strings.Join(texts, ", ")
}

// decimal rounds a length for people to read.
func decimal(v float64) string { return number(math.Round(v*1000) / 1000) }

func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func rBool(b bool) string { return strings.ToUpper(strconv.FormatBool(b)) }
