package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"assay.dev/assay/operator/internal/analysis/report/figure"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/results"
)

// FigureFlags say how to draw figures for a paper (figureForms). An empty field stands for the
// default of its flag.
type FigureFlags struct {
	Width, Height, FontSize, Font, Log string
	Labels, Curves                     []string
}

// The defaults: the column of a two-column ACM paper, and the size of its captions.
const (
	defaultWidth    = "3.33in"
	defaultFontSize = "8pt"
	defaultFont     = "serif"
)

func (f *FigureFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.Width, "width", defaultWidth, "width of figures for a paper: a number and in, cm, mm, pt (TeX's, as \\the\\columnwidth prints) or bp")
	flags.StringVar(&f.Height, "height", "", "height of figures; the width by 1.618 if not given")
	flags.StringVar(&f.FontSize, "font-size", defaultFontSize, "size of all text of figures, 4 to 72 bp; do not scale the figure in the paper")
	flags.StringVar(&f.Font, "font", defaultFont, "serif or sans")
	flags.StringVar(&f.Log, "log", "", "logarithmic axes of figures: x, y or xy; linear for none; if not given, axes whose values are above 0 and span two decades")
	flags.StringArrayVar(&f.Labels, "label", nil, "NAME=TEXT: the text that figures show instead of the name of an axis, a curve or a fault's mark; can be repeated")
	flags.StringArrayVar(&f.Curves, "curve", nil, "draw only this curve, and the paper's beside it; can be repeated")
}

// drawing has the options that the flags result in. The zero value draws with the defaults.
type drawing struct {
	style   figure.Style
	options plot.FigureOptions
}

func (f FigureFlags) drawing() (drawing, error) {
	var d drawing
	lengths := map[string]figure.Length{}
	for name, text := range map[string]string{"width": cmp.Or(f.Width, defaultWidth), "height": f.Height, "font-size": cmp.Or(f.FontSize, defaultFontSize)} {
		if text == "" {
			continue
		}
		l, err := figure.ParseLength(text)
		if err != nil {
			return drawing{}, fmt.Errorf("--%s: %w", name, err)
		}
		lengths[name] = l
	}
	font := cmp.Or(f.Font, defaultFont)
	if font != "serif" && font != "sans" {
		return drawing{}, fmt.Errorf("--font %s: choose serif or sans", font)
	}
	var err error
	if d.style, err = figure.NewStyle(lengths["width"], lengths["height"], lengths["font-size"], font == "sans"); err != nil {
		return drawing{}, err
	}
	switch f.Log {
	case "linear":
		d.options.Linear = true
	case "", "x", "y", "xy", "yx":
		d.options.LogX, d.options.LogY = strings.Contains(f.Log, "x"), strings.Contains(f.Log, "y")
	default:
		return drawing{}, fmt.Errorf("--log %s: choose x, y, xy or linear", f.Log)
	}
	d.options.Curves = f.Curves
	for _, l := range f.Labels {
		// The last = separates the two, since names of curves may have some: "clients=5,
		// variant=ideal=Ideal".
		i := strings.LastIndex(l, "=")
		if i < 1 || i == len(l)-1 {
			return drawing{}, fmt.Errorf("--label %s: write NAME=TEXT, such as --label 'mean latency (ms)=Latency (ms)'", l)
		}
		if d.options.Labels == nil {
			d.options.Labels = map[string]string{}
		}
		d.options.Labels[l[:i]] = l[i+1:]
	}
	return d, nil
}

// figureForm is a form of figures for a paper.
type figureForm struct {
	ending string
	write  func(plot.Figure, figure.Style) ([]byte, error)
}

var figureForms = map[string]figureForm{
	"pdf": {".pdf", figure.PDF}, "pgfplots": {".tex", figure.PGFPlots},
	"vega-lite": {".vl.json", figure.VegaLite}, "matplotlib": {".py", figure.Matplotlib}, "ggplot": {".R", figure.GGPlot},
}

// captionsFile says for each figure what it shows, and which measurements it is from.
const captionsFile = "plots/captions.txt"

// files are the figures of an experiment in a form, with their captions.
func (d drawing) files(e results.Experiment, form string) ([]File, error) {
	if d.style == (figure.Style{}) {
		var err error
		if d, err = (FigureFlags{}).drawing(); err != nil {
			return nil, err
		}
	}
	figures, err := plot.Figures(e, d.options)
	if err != nil {
		return nil, err
	}
	var files []File
	var captions strings.Builder
	for _, f := range figures {
		data, err := figureForms[form].write(f, d.style)
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", f.Name, err)
		}
		files = append(files, File{"plots/" + f.Name + figureForms[form].ending, data})
		fmt.Fprintf(&captions, "%s: %s\n", f.Name, f.Describe())
	}
	if len(files) > 0 {
		files = append(files, File{captionsFile, []byte(captions.String())})
	}
	return files, nil
}
