package claims

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Effect is what a claim measures: a quantity, or the quotient of the two sides of a comparison.
type Effect struct {
	Claim string
	// The effect as the expression has it, and its unit: ms, tx/s or empty.
	What, Unit string
	stats.Estimate
}

// Effects are those of claims, with intervals by the trials of one experiment. Quantities without
// an interval, and trends, which measure no quantity, are left out.
func Effects(list []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine) (all []Effect) {
	for _, c := range list {
		p, err := compile(c.Expr)
		if err != nil {
			continue
		}
		for _, e := range p.effects(c, points, lines) {
			if e.Known && e.Low < e.High && isFinite(e.Low) && isFinite(e.High) {
				e.Claim = c.Name
				all = append(all, e)
			}
		}
	}
	return all
}

func (p *program) effects(c v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine) []Effect {
	e := newRun(p, points, lines)
	e.detailed = true
	if p.isComparison() {
		e.truth(p.ast.Expr())
		return e.effects
	}
	q := e.quantity(p.ast.Expr())
	b, err := newBoundIf(c, p)
	if len(e.missing) > 0 || err != nil {
		return nil
	}
	var r results.ClaimResult
	e.judge(&r, c, q, b)
	return e.effects
}

// newBoundIf is the bound of a claim that has a target.
func newBoundIf(c v1alpha1.Claim, p *program) (bound, error) {
	if target(c) == nil {
		return bound{}, wrong("expr", "gives a quantity and nothing to compare it with")
	}
	return boundOf(c, unitOfType(p.result))
}
