package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// FiguresOf are the figures that a spec declares, with its profile applied.
func FiguresOf(spec v1alpha1.ExperimentSpec) (figures []results.Figure) {
	for _, f := range spec.Figures {
		out := results.Figure{Name: f.Name, Title: f.Title}
		if f.Stack != nil {
			out.Stack = &results.Stack{Parts: f.Stack.Parts}
		}
		if f.SpeedUp != nil {
			out.SpeedUp = &results.SpeedUp{Of: f.SpeedUp.Of, Over: map[string]string{}}
			for axis, value := range f.SpeedUp.Over {
				out.SpeedUp.Over[axis] = value.String()
			}
		}
		if f.Percentiles != nil {
			for _, p := range f.Percentiles.Of {
				out.Percentiles = append(out.Percentiles, string(p))
			}
		}
		figures = append(figures, out)
	}
	return figures
}

// MeasurementColumn is the column of a measurement in results.
func MeasurementColumn(m v1alpha1.Measurement) results.MeasurementColumn {
	return results.MeasurementColumn{Name: m.Name, Unit: m.Unit, Query: m.Query, Over: string(m.Over), Counter: m.Counter, Per: m.Per}
}

// declaredFigure is what a figure that the experiment declares comes to.
type declaredFigure struct {
	name, title string
	// legend says how to read it.
	legend string
	plots  []declaredPlot
	// numbers that are drawn, with their intervals.
	numbers table
	// notes name the data that is not drawn, and explain the data that is.
	notes []string
}

// declaredPlot is one plot of such a figure: curves, or bars.
type declaredPlot struct {
	// of is added to name and title where a figure has several plots. Empty: it has one.
	of     string
	curves *plot
	bars   *barPlot
}

func (p declaredPlot) svg(id string) string {
	if p.curves != nil {
		return p.curves.svg(id)
	}
	return p.bars.svg(id)
}

// besideOrApart gives a plot its title and axes; two plots where the paper's values need their own.
func (p declaredPlot) besideOrApart(title string) (all []declaredPlot) {
	if p.curves != nil {
		p.curves.title = title
		for i, part := range p.curves.besideOrApart() {
			all = append(all, declaredPlot{of: p.part(i), curves: &part})
		}
		return all
	}
	p.bars.title = title
	for i, part := range p.bars.besideOrApart() {
		all = append(all, declaredPlot{of: p.part(i), bars: &part})
	}
	return all
}

// part names the second plot of two, which has the paper's values.
func (p declaredPlot) part(i int) string {
	if i == 0 {
		return p.of
	}
	return strings.TrimSpace(p.of + inThePaper)
}

func (p declaredPlot) says(e results.Experiment) string {
	if p.curves != nil {
		return p.curves.says(e)
	}
	return p.bars.says(e)
}

// titleOf a plot of the figure.
func (f declaredFigure) titleOf(p declaredPlot) string {
	if p.of == "" {
		return f.title
	}
	return f.title + ", " + p.of
}

// declaredFigures are those of an experiment, in its order.
func declaredFigures(e results.Experiment) (figures []declaredFigure) {
	for _, f := range e.Figures {
		var d declaredFigure
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
		d.name, d.title = f.Name, cmp.Or(f.Title, d.title)
		var plots []declaredPlot
		for _, p := range d.plots {
			plots = append(plots, p.besideOrApart(d.titleOf(p))...)
		}
		d.plots = plots
		figures = append(figures, d)
	}
	return figures
}

// htmlDeclared are the plots of declared figures for a page. Their ids begin with id.
func htmlDeclared(e results.Experiment, id string) (all []htmlFigure) {
	for i, f := range declaredFigures(e) {
		h := htmlFigure{Title: f.title, Legend: f.legend, Numbers: htmlTableOf(f.numbers), Notes: f.notes}
		for k, p := range f.plots {
			h.Plots = append(h.Plots, htmlOne(e, f, p, fmt.Sprintf("%s%d-%d", id, i, k)))
		}
		all = append(all, h)
	}
	return all
}

// htmlOne draws one plot of a declared figure for a page.
func htmlOne(e results.Experiment, f declaredFigure, p declaredPlot, id string) htmlPlot {
	return htmlPlot{Title: f.titleOf(p), Says: p.says(e), SVG: escaped(p.svg(id))}
}

// pointColumns are those of a table that has a row for each point.
func pointColumns(e results.Experiment) (columns []column) {
	for _, a := range e.Axes {
		columns = append(columns, column{name: a.Name, numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	return columns
}

func pointCells(e results.Experiment, p results.PointResult) (cells []string) {
	for _, a := range e.Axes {
		cells = append(cells, p.Coordinates[a.Name])
	}
	return cells
}
