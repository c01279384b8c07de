package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/experiment/capacity"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// A search tries loads near the capacity, some of them once. Means over loads are then no curve:
// their line goes up and down with the luck of single trials. A search measures the probability
// that a trial meets the objective, which falls with the load.

// A SearchPlot draws that probability over the load for some searches, from all their trials. A
// trial that met the objective is drawn above, and one that did not is drawn below. A bar at one
// half is the interval of the capacity.
type SearchPlot struct {
	Title, Axis string
	Curves      []SearchCurve
}

// SearchCurve is the search at one point of the other axes.
type SearchCurve struct {
	Name     string
	Style    int
	Capacity results.Capacity
	search   capacity.Search
	Trials   []capacity.Trial
	Loads    []float64
	Chances  []float64
}

const (
	// searchSteps is the number of loads at which the probability is drawn.
	searchSteps = 60
	// searchRoom is how far the axis reaches beyond the loads that were tried, by ratio.
	searchRoom = 1.06
)

// CapacityPlots are the plots of an experiment's searches. False: there is none, or the results
// lack its spec or its trials.
func CapacityPlots(e results.Experiment) ([]SearchPlot, bool) {
	if len(e.Capacities) == 0 {
		return nil, false
	}
	var spec v1alpha1.ExperimentSpec
	if json.Unmarshal(e.Spec, &spec) != nil {
		return nil, false
	}
	spec = plan.ApplyProfile(spec)
	if !sameSearches(e.Capacities, plan.Capacities(spec, e.Axes, e.Trials)) {
		return nil, false
	}
	searched := e.Capacities[0].Axis
	others := slices.DeleteFunc(slices.Clone(e.Axes), func(a results.Axis) bool { return a.Name == searched || len(a.Values) < 2 })
	var all []SearchPlot
	drawn := 0
	for _, j := range plan.JudgedTrials(spec, e.Axes, e.Trials) {
		i := slices.IndexFunc(e.Capacities, func(c results.Capacity) bool { return maps.Equal(c.At, j.At) })
		if i < 0 || len(j.Trials) == 0 {
			continue
		}
		c := SearchCurve{Name: FigureVariant(others, j.At), Style: drawn % ManyCurves, Capacity: e.Capacities[i], search: j.Search, Trials: j.Trials}
		if drawn%ManyCurves == 0 {
			all = append(all, SearchPlot{Title: "Capacity", Axis: searched})
		}
		last := &all[len(all)-1]
		last.Curves = append(last.Curves, c)
		drawn++
	}
	for k := range all {
		if len(all) > 1 {
			all[k].Title += fmt.Sprintf(" (variants %d to %d of %d)", k*ManyCurves+1, k*ManyCurves+len(all[k].Curves), drawn)
		}
		low, high := all[k].Loads()
		for i := range all[k].Curves {
			all[k].Curves[i].fit(low, high)
		}
	}
	return all, drawn > 0
}

// sameSearches reports whether results have the searches that their trials lead to. Those of an
// earlier version may not: a plot would contradict the table.
func sameSearches(stored, now []results.Capacity) bool {
	return slices.EqualFunc(stored, now, func(a, b results.Capacity) bool {
		return maps.Equal(a.At, b.At) && a.Objective == b.Objective && (a.Capacity == nil) == (b.Capacity == nil) &&
			(a.Capacity == nil || math.Abs(*a.Capacity-*b.Capacity) <= 0.02**a.Capacity)
	})
}

// fit adds the probability at some loads.
func (c *SearchCurve) fit(low, high float64) {
	p, err := c.search.Begin()
	if err != nil { // JudgedTrials gives no trials of such a search
		return
	}
	for _, t := range c.Trials {
		p.Weigh(t)
	}
	for i := range searchSteps + 1 {
		c.Loads = append(c.Loads, low*math.Pow(high/low, float64(i)/searchSteps))
	}
	c.Chances = p.Chances(c.Loads)
}

// Loads are the ends of the axis: a little beyond the loads that were tried.
func (p SearchPlot) Loads() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, c := range p.Curves {
		for _, t := range c.Trials {
			low, high = min(low, t.Load/searchRoom), max(high, t.Load*searchRoom)
		}
	}
	return low, high
}

// Heading is the title above a plot.
func (p SearchPlot) Heading() string { return p.Title }

// Says is the caption below the plot.
func (p SearchPlot) Says(results.Experiment) string {
	text := "Probability that a trial meets the objective (" + p.Curves[0].Capacity.Objective + "), over " + p.Axis + ", after " + model.Count(p.trials(), "trial") + "."
	return text + " Bar: the highest load with its 95% interval. Dots above met the objective, dots below did not."
}

func (p SearchPlot) trials() (n int) {
	for _, c := range p.Curves {
		n += len(c.Trials)
	}
	return n
}

// Legend is the name of a curve, with the capacity that was found.
func (c SearchCurve) Legend() string { return c.Name + ": " + model.CapacityText(c.Capacity) }
