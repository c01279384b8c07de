package figure

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/text/printable"
)

// marks of pgfplots: filled for measured points, hollow for the paper's.
var (
	texFilled = []string{"*", "square*", "triangle*", "+", "x"}
	texHollow = []string{"o", "square", "triangle", "+", "x"}
	texDashes = []string{"solid", "dashed", "dotted", "dashdotted"}
)

// texFigure is what the template is filled with.
type texFigure struct {
	plot.Figure
	Style
	Columns int
	Legend  bool
	Entries []entry
}

// pgfplotsText is a figure that \input takes. Rows of a table are on lines of their own, so that
// diffs of two runs are legible.
var pgfplotsText = template.Must(template.New("pgfplots").Delims("<<", ">>").Funcs(template.FuncMap{
	"tex": printable.TeX, "number": number, "color": func(c plot.FigureCurve) string { return strings.ToUpper(c.Color[1:]) },
	"ticks": func(a plot.FigureAxis) string {
		var all []string
		for _, v := range a.Ticks {
			all = append(all, number(v))
		}
		return strings.Join(all, ",")
	},
	"options": texOptions, "bars": bars, "reverse": reverse, "length": Length.tex, "comment": comment,
	"sub": func(a, b float64) float64 { return a - b },
}).Parse(`% << comment .Describe >>
% \usepackage{pgfplots} \pgfplotsset{compat=1.16} \input{<< .Name >>.tex}
\begin{tikzpicture}
<< range $i, $c := .Curves >>\definecolor{assay<< $i >>}{HTML}{<< color $c >>}
<< end >>\begin{axis}[
  width=<< length .Width >>, height=<< length .Height >>,
  font=\fontsize{<< length .FontSize >>}{<< length .Leading >>}\selectfont<< if .Sans >>\sffamily<< end >>,
  label style={font=\fontsize{<< length .FontSize >>}{<< length .Leading >>}\selectfont}, tick label style={font=\fontsize{<< length .FontSize >>}{<< length .Leading >>}\selectfont},
  xlabel={<< tex .X.Label >>}, xmin=<< number .X.Min >>, xmax=<< number .X.Max >>, xtick={<< ticks .X >>},<< if .X.Log >> xmode=log, log ticks with fixed point,<< end >>
  ylabel={<< tex .Y.Label >>}, ymin=<< number .Y.Min >>, ymax=<< number .Y.Max >>, ytick={<< ticks .Y >>},<< if .Y.Log >> ymode=log, log ticks with fixed point,<< end >>
  scaled ticks=false, tick label style={/pgf/number format/fixed, /pgf/number format/1000 sep={}, /pgf/number format/precision=6},
  grid=major, grid style={black!12}, tick align=outside, tick pos=left,
  legend columns=<< .Columns >>, legend cell align=left, legend style={at={(0.5,1.03)}, anchor=south, draw=none, fill=none, /tikz/every even column/.append style={column sep=0.8em}},
]
<< range $i, $c := .Curves >><< if $c.Band >>\addplot[draw=none, fill=assay<< $i >>, fill opacity=0.22, forget plot] table[x=x, y=y, row sep=\\] {
x y\\
<< range $c.Points >><< number .X >> << number .YHigh >>\\
<< end >><< range reverse $c.Points >><< number .X >> << number .YLow >>\\
<< end >>} -- cycle;
<< end >>\addplot[<< options $i $c >>] table[x=x, y=y<< if bars $c >>, x error minus=xm, x error plus=xp, y error minus=ym, y error plus=yp<< end >>, row sep=\\] {
<< if bars $c >>x y xm xp ym yp\\
<< range $c.Points >><< number .X >> << number .Y >> << if .Interval >><< number (sub .X .XLow) >> << number (sub .XHigh .X) >> << number (sub .Y .YLow) >> << number (sub .YHigh .Y) >><< else >>0 0 0 0<< end >>\\
<< end >><< else >>x y\\
<< range $c.Points >><< number .X >> << number .Y >>\\
<< end >><< end >>};
<< if $.Legend >>\addlegendentry{<< tex $c.Name >>}
<< end >><< end >><< range .Marks >>\draw[black!80, thick<< if .Ends >>, dashed<< end >>] (axis cs:<< number .X >>,<< number $.Y.Min >>) -- (axis cs:<< number .X >>,<< number $.Y.Max >>);
<< end >><< if .One >>\draw[black!80, thick, dashed] (axis cs:<< number .X.Min >>,1) -- (axis cs:<< number .X.Max >>,1);
<< end >><< range .Entries >>\addlegendimage{black!80, thick<< if .Ends >>, dashed<< end >>}
\addlegendentry{<< tex .Name >>}
<< end >>\end{axis}
\end{tikzpicture}
`))

// Leading is the distance of two lines of text.
func (s Style) Leading() Length { return s.FontSize * 1.2 }

// Name is for the template.
func (e entry) Name() string { return e.name }

// Ends is for the template.
func (e entry) Ends() bool { return e.ends }

// PGFPlots writes a figure for LaTeX's pgfplots, from version 1.16. The width is that which
// pgfplots plans for frame and labels; the legend above adds to the height.
func PGFPlots(f plot.Figure, s Style) ([]byte, error) {
	if len(f.Bars) > 0 {
		return texOfBars(f, s)
	}
	entries := entriesOf(f)
	longest := Length(1)
	var marks []entry
	for _, e := range entries {
		longest = max(longest, s.FontSize*(4+Length(len([]rune(e.name)))/2)) // a character is half an em wide, or less
		if e.curve < 0 {
			marks = append(marks, e)
		}
	}
	var b bytes.Buffer
	data := texFigure{Figure: f, Style: s, Columns: columns(max(1, len(entries)), s.Width, longest), Legend: len(entries) > 0, Entries: marks}
	if err := pgfplotsText.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("write the figure for pgfplots: %w", err)
	}
	return b.Bytes(), nil
}

// texOptions of a curve.
func texOptions(i int, c plot.FigureCurve) string {
	options := []string{fmt.Sprintf("assay%d", i), "thick"}
	marks, dash := texFilled, "solid"
	switch {
	case c.Paper:
		marks, dash = texHollow, "dashed"
	case c.Line:
		dash = texDashes[c.Style%len(texDashes)]
	case c.Style >= len(texFilled):
		dash = "dotted"
	}
	options = append(options, dash)
	if c.Dots {
		options = append(options, "only marks")
	}
	if c.Line {
		options = append(options, "no markers")
	} else {
		options = append(options, "mark="+marks[c.Style%len(marks)], "mark options={solid, scale=0.8}")
	}
	if bars(c) {
		options = append(options, "error bars/.cd, x dir=both, x explicit, y dir=both, y explicit, error bar style={solid}")
	}
	return strings.Join(options, ", ")
}

// bars reports whether a curve has a bar at some point.
func bars(c plot.FigureCurve) bool {
	for _, p := range c.Points {
		if p.Interval && !c.Band {
			return true
		}
	}
	return false
}

func reverse(points []plot.FigurePoint) []plot.FigurePoint {
	out := make([]plot.FigurePoint, len(points))
	for i, p := range points {
		out[len(points)-1-i] = p
	}
	return out
}

// comment keeps a text on one line.
func comment(s string) string { return strings.Join(strings.Fields(s), " ") }
