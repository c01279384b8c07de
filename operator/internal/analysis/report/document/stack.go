package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

const stackLegend = "Each part is the mean over the trials, and the bar ends at the mean of their totals. The line through its end is the 95% interval of the mean total, cut off at the frame. Small dots are the totals of trials. The narrow bar below is the paper's."

// stackFigure draws measurements that add up, a bar for each point.
func stackFigure(e results.Experiment, f results.Stack) DeclaredFigure {
	unit, ofRun := "", false
	for _, m := range e.Measurements {
		if slices.Contains(f.Parts, m.Name) {
			unit, ofRun = m.Unit, ofRun || m.Counter != ""
		}
	}
	d := DeclaredFigure{Title: strings.Join(f.Parts, " + "), Legend: stackLegend}
	if ofRun {
		d.Legend += " The clients' counters are of the whole run, with warm-up and cool-down."
	}
	plot := &BarPlot{XLabel: strings.TrimSpace("total " + bracketed(unit)), Parts: f.Parts, Axis: barAxis(e), WithN: true}
	d.Numbers.Columns = append(pointColumns(e), Column{"n", true})
	for _, part := range f.Parts {
		d.Numbers.Columns = append(d.Numbers.Columns, Column{strings.TrimSpace(part + " " + unit), true})
	}
	d.Numbers.Columns = append(d.Numbers.Columns, Column{strings.TrimSpace("total " + unit), true}, Column{"paper", true}, Column{"ratio", true})
	var lacking []string
	papers := false
	for _, p := range e.Points {
		parts, total := stackAt(e, p, f.Parts)
		if total.N < p.Valid {
			lacking = append(lacking, fmt.Sprintf("%d of %s at %s", p.Valid-total.N, model.Count(p.Valid, "valid trial"), pointName(e, p)))
		}
		if total.N == 0 {
			continue
		}
		b := barNamed(e, p)
		b.Mean, b.N = barMean(total), total.N
		row := append(pointCells(e, p), fmt.Sprint(total.N))
		for k, part := range parts {
			b.Parts = append(b.Parts, part.Mean)
			row = append(row, meanCell(part, 1))
			if paper, has := model.PaperValue(e, f.Parts[k], p.Coordinates); has {
				b.PaperParts = append(b.PaperParts, paper)
				b.Paper += paper
			}
		}
		if b.HasPaper = len(b.PaperParts) == len(f.Parts); !b.HasPaper { // a sum of some parts is no total
			b.Paper, b.PaperParts = 0, nil
		}
		papers = papers || b.HasPaper
		for _, t := range stackTotals(e, p, f.Parts) {
			b.Mean.Trials = append(b.Mean.Trials, [2]float64{0, t})
		}
		d.Numbers.Rows = append(d.Numbers.Rows, append(row, meanCell(total, 1), paperCell(b.Paper, b.HasPaper), ratioCell(total, b.Paper, b.HasPaper)))
		plot.Bars = append(plot.Bars, b)
	}
	if !papers {
		d.Numbers.dropLast(2)
	}
	if len(lacking) > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("Not in the figure, since not all of %s were measured: %s.", strings.Join(f.Parts, ", "), strings.Join(lacking, "; ")))
	}
	d.addBars(plot)
	return d
}

// addBars adds a plot of bars, and draws the first mostBars of them.
func (f *DeclaredFigure) addBars(p *BarPlot) {
	if n := len(p.Bars); n > mostBars {
		f.Notes = append(f.Notes, fmt.Sprintf("The first %d of %d points are drawn.", mostBars, n))
		p.Bars = p.Bars[:mostBars]
	}
	if len(p.Bars) > 0 {
		f.Plots = append(f.Plots, DeclaredPlot{Bars: p})
	}
}

// dropLast leaves out the last columns of a table.
func (t *Table) dropLast(n int) {
	t.Columns = t.Columns[:len(t.Columns)-n]
	for i, row := range t.Rows {
		t.Rows[i] = row[:len(row)-n]
	}
}

// stackAt are the parts of a point and their total, over the valid trials that have all parts.
func stackAt(e results.Experiment, p results.PointResult, names []string) (parts []results.Aggregate, total results.Aggregate) {
	samples := make([][]float64, len(names))
	for _, l := range e.Trials {
		if values, ok := stackOf(l, p, names); ok {
			for k, v := range values {
				samples[k] = append(samples[k], v)
			}
		}
	}
	for _, xs := range samples {
		parts = append(parts, stats.Aggregate(xs))
	}
	return parts, stats.Aggregate(stackTotals(e, p, names))
}

// stackTotals are the sums of the parts, for each trial that has all parts.
func stackTotals(e results.Experiment, p results.PointResult, names []string) (totals []float64) {
	for _, l := range e.Trials {
		if values, ok := stackOf(l, p, names); ok {
			sum := 0.0
			for _, v := range values {
				sum += v
			}
			// Shares of a whole are 1, and not 0.9999999999999999.
			if rounded, err := strconv.ParseFloat(strconv.FormatFloat(sum, 'g', 12, 64), 64); err == nil {
				sum = rounded
			}
			totals = append(totals, sum)
		}
	}
	return totals
}

// stackOf returns the parts of one trial. It returns false for a trial of another point, an invalid
// trial, and a trial without all parts. A part below 0 cannot be stacked, and gives false, too.
func stackOf(l results.TrialLine, p results.PointResult, names []string) ([]float64, bool) {
	if l.PointIndex != p.Index || l.Outcome != stats.Succeeded {
		return nil, false
	}
	var values []float64
	for _, name := range names {
		i := slices.IndexFunc(l.Measurements, func(m results.Measurement) bool { return m.Name == name && m.Value != nil && *m.Value >= 0 })
		if i < 0 {
			return nil, false
		}
		values = append(values, *l.Measurements[i].Value)
	}
	return values, true
}

// bracketed writes a unit as labels of axes have it.
func bracketed(unit string) string {
	if unit == "" {
		return ""
	}
	return "(" + unit + ")"
}
