package document

import (
	"cmp"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// DeclaredFigure is a figure that the experiment declares, with its data.
type DeclaredFigure struct {
	Name, Title string
	// legend says how to read it.
	Legend string
	Plots  []DeclaredPlot
	// numbers that are drawn, with their intervals.
	Numbers Table
	// notes name the data that is not drawn, and explain the data that is.
	Notes []string
}

// DeclaredPlot is one plot of such a figure: curves, or bars.
type DeclaredPlot struct {
	// of is added to name and title where a figure has several plots. Empty: it has one.
	Of     string
	Curves *LinePlot
	Bars   *BarPlot
}

// besideOrApart gives a plot its title and axes; two plots where the paper's values need their own.
func (p DeclaredPlot) besideOrApart(title string) (all []DeclaredPlot) {
	if p.Curves != nil {
		p.Curves.Title = title
		for i, part := range p.Curves.besideOrApart() {
			all = append(all, DeclaredPlot{Of: p.part(i), Curves: &part})
		}
		return all
	}
	p.Bars.Title = title
	for i, part := range p.Bars.besideOrApart() {
		all = append(all, DeclaredPlot{Of: p.part(i), Bars: &part})
	}
	return all
}

// part names the second plot of two, which has the paper's values.
func (p DeclaredPlot) part(i int) string {
	if i == 0 {
		return p.Of
	}
	return strings.TrimSpace(p.Of + InThePaper)
}

// Says is a caption.
func (p DeclaredPlot) Says(e results.Experiment) string {
	if p.Curves != nil {
		return p.Curves.Says(e)
	}
	return p.Bars.Says(e)
}

// TitleOf a plot of the figure.
func (f DeclaredFigure) TitleOf(p DeclaredPlot) string {
	if p.Of == "" {
		return f.Title
	}
	return f.Title + ", " + p.Of
}

// DeclaredFigures are those of an experiment, in its order.
func DeclaredFigures(e results.Experiment) (figures []DeclaredFigure) {
	for _, f := range e.Figures {
		var d DeclaredFigure
		switch {
		case f.Stack != nil:
			d = stackFigure(e, *f.Stack)
		case f.SpeedUp != nil:
			d = speedUpFigure(e, *f.SpeedUp)
		case len(f.Percentiles) > 0:
			d = percentileFigure(e, f.Percentiles)
		default: // of a later version
			continue
		}
		d.Name, d.Title = f.Name, cmp.Or(f.Title, d.Title)
		var plots []DeclaredPlot
		for _, p := range d.Plots {
			plots = append(plots, p.besideOrApart(d.TitleOf(p))...)
		}
		d.Plots = plots
		figures = append(figures, d)
	}
	return figures
}

// pointColumns are those of a table that has a row for each point.
func pointColumns(e results.Experiment) (columns []Column) {
	for _, a := range e.Axes {
		columns = append(columns, Column{Name: a.Name, Numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	return columns
}

func pointCells(e results.Experiment, p results.PointResult) (cells []string) {
	for _, a := range e.Axes {
		cells = append(cells, p.Coordinates[a.Name])
	}
	return cells
}
