package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

const stackLegend = "Each part is the mean over the trials, and the bar ends at the mean of their totals. The line through its end is the 95% interval of the mean total, cut off at the frame. Small dots are the totals of trials. The narrow bar below is the paper's."

// stackFigure draws measurements that add up, a bar for each point.
func stackFigure(e results.Experiment, f results.Stack) declaredFigure {
	unit, ofRun := "", false
	for _, m := range e.Measurements {
		if slices.Contains(f.Parts, m.Name) {
			unit, ofRun = m.Unit, ofRun || m.Counter != ""
		}
	}
	d := declaredFigure{title: strings.Join(f.Parts, " + "), legend: stackLegend}
	if ofRun {
		d.legend += " The clients' counters are of the whole run, with warm-up and cool-down."
	}
	plot := &barPlot{xLabel: strings.TrimSpace("total " + bracketed(unit)), parts: f.Parts, axis: barAxis(e), withN: true}
	d.numbers.columns = append(pointColumns(e), column{"n", true})
	for _, part := range f.Parts {
		d.numbers.columns = append(d.numbers.columns, column{strings.TrimSpace(part + " " + unit), true})
	}
	d.numbers.columns = append(d.numbers.columns, column{strings.TrimSpace("total " + unit), true}, column{"paper", true}, column{"ratio", true})
	var lacking []string
	papers := false
	for _, p := range e.Points {
		parts, total := stackAt(e, p, f.Parts)
		if total.N < p.Valid {
			lacking = append(lacking, fmt.Sprintf("%d of %s at %s", p.Valid-total.N, count(p.Valid, "valid trial"), pointName(e, p)))
		}
		if total.N == 0 {
			continue
		}
		b := barNamed(e, p)
		b.mean, b.n = barMean(total), total.N
		row := append(pointCells(e, p), fmt.Sprint(total.N))
		for k, part := range parts {
			b.parts = append(b.parts, part.Mean)
			row = append(row, meanCell(part, 1))
			if paper, has := paperValue(e, f.Parts[k], p.Coordinates); has {
				b.paperParts = append(b.paperParts, paper)
				b.paper += paper
			}
		}
		if b.hasPaper = len(b.paperParts) == len(f.Parts); !b.hasPaper { // a sum of some parts is no total
			b.paper, b.paperParts = 0, nil
		}
		papers = papers || b.hasPaper
		for _, t := range stackTotals(e, p, f.Parts) {
			b.mean.trials = append(b.mean.trials, [2]float64{0, t})
		}
		d.numbers.rows = append(d.numbers.rows, append(row, meanCell(total, 1), paperCell(b.paper, b.hasPaper), ratioCell(total, b.paper, b.hasPaper)))
		plot.bars = append(plot.bars, b)
	}
	if !papers {
		d.numbers.dropLast(2)
	}
	if len(lacking) > 0 {
		d.notes = append(d.notes, fmt.Sprintf("Not in the figure, since not all of %s were measured: %s.", strings.Join(f.Parts, ", "), strings.Join(lacking, "; ")))
	}
	d.addBars(plot)
	return d
}

// addBars adds a plot of bars, and draws the first mostBars of them.
func (f *declaredFigure) addBars(p *barPlot) {
	if n := len(p.bars); n > mostBars {
		f.notes = append(f.notes, fmt.Sprintf("The first %d of %d points are drawn.", mostBars, n))
		p.bars = p.bars[:mostBars]
	}
	if len(p.bars) > 0 {
		f.plots = append(f.plots, declaredPlot{bars: p})
	}
}

// dropLast leaves out the last columns of a table.
func (t *table) dropLast(n int) {
	t.columns = t.columns[:len(t.columns)-n]
	for i, row := range t.rows {
		t.rows[i] = row[:len(row)-n]
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

// stackTotals are the sums of the parts of each such trial.
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
