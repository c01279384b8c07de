// Package claims judges the statements of a paper: an expression over results, and the verdict that
// the trials support. It is pure.
//
// The language is CEL's syntax with types and functions of its own and none of CEL's (language.go),
// after a small rewriting of tokens (source.go). An expression is parsed and checked by CEL and
// evaluated here (evaluate.go), because its values are not numbers but functions of measured means:
// each carries its derivatives, from which package stats makes the interval (quantity.go).
//
// Rejected: evaluating with CEL and returning its "unknown" for a comparison that cannot be
// decided. CEL would stop at the first side of && that settles it, and a verdict must show every
// comparison with its numbers.
//
//	quantity, with reported ± within     interval inside the bound -> Reproduced, disjoint -> NotReproduced, else Inconclusive
//	comparison a < b                     interval of b - a above 0 -> true, below 0 -> false, else undecided
//	increasing, significantly_different  by a test at 5% within rounds, as a comparison by its interval
//	&&, ||, !                            Kleene's logic; true -> Reproduced, false -> NotReproduced, undecided -> Inconclusive
//
// Nothing is decided without an interval: one trial for a point leaves every claim about it
// Inconclusive, but for a trend, whose test is over all trials of the curve and needs five of them.
//
// A conjunction is Reproduced only if each of its parts is, at its own 95%; so the chance to call
// it reproduced wrongly is not greater than that of a single part, and no correction for several
// comparisons is due. NotReproduced is another matter: it takes one of the parts, of one of the
// claims. So it must survive Holm's adjustment for all of them (evidence.go), or the claim is
// Inconclusive.
package claims

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// maxMessage is the most characters that the message of a claim's status can hold.
const maxMessage = 1024

// Check reports what is wrong with a claim of an experiment that has these axes, faults and
// measurements, or nil.
func Check(claim v1alpha1.Claim, axes []results.Axis, faults []string, measurements ...string) error {
	p, err := compile(claim.Expr)
	if err != nil {
		return err
	}
	var bad error
	celast.PreOrderVisit(p.ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || bad != nil {
			return
		}
		if _, ok := functions[e.AsCall().FunctionName()]; ok {
			bad = p.checkArguments(e.AsCall(), e.ID(), axes, faults, measurements)
		} else if e.AsCall().FunctionName() == "duration" {
			bad = p.checkDuration(e)
		}
	}))
	switch {
	case bad != nil:
		return bad
	case p.isComparison() && claim.Reported != nil:
		return wrong("reported", "expr is a comparison and has no value to compare with it; remove reported and within, or give a quantity")
	case p.isComparison():
		return nil
	case claim.Reported == nil:
		return wrong("expr", "gives a quantity; add reported and within, or compare it with <, <=, > or >=")
	}
	_, err = newBound(*claim.Reported, claim.Within, unitOfType(p.result))
	return err
}

func (p *program) isComparison() bool { return p.result.IsExactType(cel.BoolType) }

func (p *program) checkDuration(e celast.Expr) error {
	text, ok := scalar(e.AsCall().Args()[0])
	if !ok || !isDuration([]rune(text)) {
		return p.errorAt(e.ID(), "%q is not a duration such as 4.1ms", text)
	}
	return nil
}

// errorAt is an error at a part of the expression.
func (p *program) errorAt(id int64, format string, args ...any) error {
	at := p.ast.SourceInfo().GetStartLocation(id)
	return p.source.errorAt(p.source.nameOf(p.source.offset(at.Line(), at.Column())), format, args...)
}

// Evaluate is EvaluateWith for an experiment without a search.
func Evaluate(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine) []results.ClaimResult {
	return EvaluateWith(claims, points, lines, nil)
}

// EvaluateWith judges claims by the trials of the points, and by what searches came to. Points
// without trials may be among points. A claim that Check refuses is NotEvaluated, with what Check
// says where that shows without axes and faults.
func EvaluateWith(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity) []results.ClaimResult {
	judged := make([]results.ClaimResult, 0, len(claims))
	against := make([]evidence, 0, len(claims))
	for _, c := range claims {
		r := results.ClaimResult{Name: c.Name, Statement: c.Statement, Expr: c.Expr, Within: c.Within}
		if c.Reported != nil {
			r.Reported = c.Reported.String()
		}
		beside, found := "", noEvidence
		p, err := compile(c.Expr)
		if err == nil {
			var looked []int32
			looked, found, err = evaluate(&r, c, p, points, lines, capacities)
			if err != nil {
				r.Verdict = string(v1alpha1.VerdictNotEvaluated)
			}
			beside = sensitivity(r, c, p, points, lines, looked)
		}
		if err != nil {
			r.Verdict, r.Message = string(v1alpha1.VerdictNotEvaluated), err.Error()
		}
		r.Message = shorten(r.Message, maxMessage-len([]rune(beside))) + beside
		judged, against = append(judged, r), append(against, found)
	}
	adjust(judged, against)
	return judged
}

// evaluate judges a claim and says which points it looked at, and what contradicts it.
func evaluate(r *results.ClaimResult, c v1alpha1.Claim, p *program, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity) (
	looked []int32, against evidence, err error,
) {
	e := newRun(p, points, lines)
	e.capacities = capacities
	if p.isComparison() {
		t := e.truth(p.ast.Expr())
		if len(e.missing) > 0 {
			return e.looked, noEvidence, e.missingData()
		}
		r.Verdict = string(verdictOf(t.truth))
		r.Message = strings.Join(e.notes, "; ")
		if t.truth == unsettled {
			r.Message += e.moreNote()
		}
		r.Message += e.sampleNote()
		return e.looked, t.against, nil
	}
	if c.Reported == nil {
		return nil, noEvidence, fmt.Errorf("expr gives a quantity and nothing is reported to compare it with")
	}
	q := e.quantity(p.ast.Expr())
	if len(e.missing) > 0 {
		return e.looked, noEvidence, e.missingData()
	}
	b, err := newBound(*c.Reported, c.Within, unitOfType(p.result))
	if err != nil {
		return e.looked, noEvidence, err
	}
	return e.looked, e.judge(r, c, q, b), nil
}

// judge compares a quantity with what is reported, and says how sure it is that they differ.
func (r *run) judge(result *results.ClaimResult, c v1alpha1.Claim, q quantity, b bound) evidence {
	wanted := fmt.Sprintf("reported %s within %s: from %s to %s", c.Reported, c.Within, showBound(b.low, q.unit), showBound(b.high, q.unit))
	result.Unit = string(q.unit)
	if q.absent != "" {
		result.Verdict, result.Message = string(v1alpha1.VerdictInconclusive), q.absent+"; "+wanted+r.sampleNote()
		if q.contradicted {
			result.Verdict = string(v1alpha1.VerdictNotReproduced)
			return evidence{tests: 1} // each of several points shows it
		}
		return noEvidence
	}
	estimate, counts := r.estimate(q)
	r.counts, r.unknown = append(r.counts, counts...), r.unknown || !estimate.Known
	t := unsettled
	if estimate.Known {
		t = b.judge(estimate)
	}
	result.Verdict = string(verdictOf(t))
	bounded := !math.IsInf(estimate.Low, 0) && !math.IsInf(estimate.High, 0)
	if bounded { // JSON has no infinity; the message says it
		result.Measured, result.Low, result.High = &estimate.Value, &estimate.Low, &estimate.High
	}
	result.Message = fmt.Sprintf("measured %s; %s", show(estimate, q.unit), wanted)
	if t == unsettled && estimate.Known && bounded {
		r.more(estimate, counts, b.low, b.high)
		result.Message += "; the interval straddles the bound" + r.moreNote()
	}
	if estimate.Known && bounded {
		result.Message += replication(c, q.unit, estimate, counts)
	}
	result.Message += r.sampleNote()
	return b.outside(estimate)
}

func (r *run) missingData() error {
	return fmt.Errorf("missing: %s", strings.Join(compact(r.missing), "; "))
}

// sampleNote says on how many trials a verdict rests, and what its reader must know of them.
func (r *run) sampleNote() string {
	note := ""
	r.remarks = append(r.remarks, r.orderRemarks()...)
	if survivors := r.survivors(); survivors != "" {
		note += "; " + survivors
	}
	for _, caution := range r.cautions() {
		note += "; " + caution
	}
	for _, remark := range compact(r.remarks) {
		note += "; " + remark
	}
	for _, remark := range r.ofTrial {
		note += "; " + remark.String()
	}
	switch {
	case len(r.counts) == 0:
	case r.unknown && slices.Max(r.counts) == 1:
		note += "; one trial for each point: there is no interval, so that nothing is decided; it takes two repetitions or more"
	case r.unknown && slices.Min(r.counts) == 1:
		note += fmt.Sprintf("; %s, some points have one trial: there is no interval, so that nothing is decided; it takes two repetitions or more", showCounts(r.counts))
	case r.unknown:
		note += fmt.Sprintf("; %s, and no interval", showCounts(r.counts))
	default:
		note += fmt.Sprintf("; 95%% intervals, %s", showCounts(r.counts))
		if how := r.how(); how != "" {
			note += ", " + how
		}
	}
	return note
}

func verdictOf(t truth) v1alpha1.Verdict {
	switch t {
	case holds:
		return v1alpha1.VerdictReproduced
	case fails:
		return v1alpha1.VerdictNotReproduced
	}
	return v1alpha1.VerdictInconclusive
}

// bound is what still counts as reproduced.
type bound struct{ low, high float64 }

func (b bound) judge(e stats.Estimate) truth {
	switch {
	case e.Low >= b.low && e.High <= b.high:
		return holds
	case e.High < b.low || e.Low > b.high:
		return fails
	}
	return unsettled
}

// shorten cuts a message to what a status can hold; the API server counts characters.
func shorten(message string, limit int) string {
	runes := []rune(message)
	if len(runes) <= limit {
		return message
	}
	return string(runes[:limit-3]) + "..."
}
