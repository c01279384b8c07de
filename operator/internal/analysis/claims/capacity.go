package claims

import (
	"fmt"
	"math"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// checkSearched checks that an axis has a search with a capacity for the call to read, and returns
// the axes that need a value.
func (p *program) checkSearched(a arguments, id int64, axes []results.Axis) ([]results.Axis, error) {
	i := slices.IndexFunc(axes, func(x results.Axis) bool { return x.Searched })
	if i < 0 {
		return nil, p.errorAt(id, "capacity reads what a search came to, and no axis has one")
	}
	for _, c := range a.at {
		if c.axis == axes[i].Name {
			return nil, p.errorAt(c.keyID, "axis %s is searched: capacity gives its value", c.axis)
		}
	}
	return slices.Delete(slices.Clone(axes), i, i+1), nil
}

// capacity is the outcome of a search, with the search's own interval: it is not made of means.
func (r *run) capacity(a arguments) quantity {
	var found []results.Capacity
	for _, c := range r.capacities {
		if matches(results.PointResult{Coordinates: c.At}, a.at) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		r.missing = append(r.missing, fmt.Sprintf("%d searches have %s, and one is needed", len(found), showCoordinates(a.at)))
		return quantity{}
	}
	c := found[0]
	e, known := estimateOf(c)
	if !known {
		why := c.Message
		if why == "" {
			why = fmt.Sprintf("it has %d trials and is %s", c.Trials, c.Outcome)
		}
		r.missing = append(r.missing, "the search has no capacity: "+why)
		return quantity{}
	}
	if c.Message != "" {
		r.caveat(CaveatSearch, c.Message)
	}
	if c.Low == nil && c.High == nil { // the message says why
		return quantity{value: e.Value, unit: plain, own: &e}
	}
	r.caveat(CaveatOneSession, searchOfOneSession)
	r.caveat(CaveatSearch, fmt.Sprintf("the search is %s after %d trials; its interval holds 95%% of the probability", c.Outcome, c.Trials))
	return quantity{value: e.Value, unit: plain, own: &e}
}

// estimateOf is a capacity as an estimate. One beyond the loads that were searched is bounded on
// one side.
func estimateOf(c results.Capacity) (stats.Estimate, bool) {
	e := stats.Estimate{Low: math.Inf(-1), High: math.Inf(1), Known: true}
	if c.Low != nil {
		e.Low = *c.Low
	}
	if c.High != nil {
		e.High = *c.High
	}
	switch {
	case c.Outcome == string(v1alpha1.CapacityNotJudged) || c.Trials == 0:
		return e, false
	case c.Capacity != nil:
		e.Value = *c.Capacity
	case c.Low != nil:
		e.Value = float64(c.To)
	default:
		e.Value = float64(c.From)
	}
	return e, true
}
