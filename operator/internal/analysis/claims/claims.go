// Package claims judges the statements of a paper: an expression over results, and the verdict that
// the trials support. It is pure.
//
// The language is CEL's syntax with types and functions of its own and none of CEL's (language.go),
// after a small rewriting of tokens (source.go). An expression is parsed and checked by CEL and
// evaluated here (evaluate.go), because its values are not numbers but functions of measured means.
// Each carries its derivatives, from which package stats makes the interval (quantity.go).
//
// Rejected: evaluating with CEL and returning its "unknown" for a comparison that cannot be
// decided. CEL would stop at the first side of && that settles it, and a verdict must show every
// comparison with its numbers.
//
//	quantity, with a value ± within      interval inside the bound -> Holds, disjoint -> Fails, else Inconclusive
//	comparison a < b                     interval of b - a above 0 -> true, below 0 -> false, else undecided
//	increasing, significantly_different  by a test at 5% within rounds, as a comparison by its interval
//	&&, ||, !                            Kleene's logic; true -> Holds, false -> Fails, undecided -> Inconclusive
//
// Nothing is decided without an interval: one trial for a point leaves every claim about it
// Inconclusive. A trend is an exception: its test is over all trials of the curve and needs five of
// them.
//
// A conjunction holds only if each of its parts does, at its own 95%. So the chance that it holds
// wrongly is not greater than that of a single part, and no correction for several comparisons is
// due. Fails is different: one part of one claim is enough for it. So Fails must survive Holm's
// adjustment for all claims (evidence.go), or the claim is Inconclusive.
package claims

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Method is the version of the statistics that judge claims and searches. It grows with each change
// after which the same trials may give another interval or verdict.
//
//	0, not kept  trends over all trials, percentiles of committed transactions, the best of several
//	             points with its own interval, searches with deviations up to 8%
//	1            trends within rounds, percentiles of all requests, the union over points that tie,
//	             searches with lapses and wide deviations
//	2            rates with bursts, curves that do not cross with a P of their own
//	3            searches whose trials depend on each other; alternatives of a claim adjusted for
//	             their number; timeouts in the clients' time count for what the rest leaves at most
//	4            first attempts wherever disturbances left out more of one point, and bounded; P of
//	             Fieller's intervals by Student's distribution; and so the lower end of a shape;
//	             rates of trials that deviate by more
const Method = 4

// SearchMethod is the first version with today's searches.
const SearchMethod = 3

// changedByMethod1 are the functions whose intervals or tests method 1 changed.
var changedByMethod1 = regexp.MustCompile(`\b(capacity|increasing|decreasing|max_throughput|min_latency|peak_latency|knee_throughput|knee_latency|p[0-9]+_latency|dip|time_to_90|time_to_detect|goodput_lost)\b`)

// changedByMethod2 are the functions that method 2 changed.
var changedByMethod2 = regexp.MustCompile(`\b(error_rate|abort_rate|crossover)\b`)

// changedByMethod3 are the functions and operators that method 3 changed.
var changedByMethod3 = regexp.MustCompile(`\bcapacity\b|\|\|`)

// changedByMethod4 matches the expressions that method 4 changed, and the message of a verdict that
// first attempts or an adjusted P decide.
var changedByMethod4 = regexp.MustCompile(`\b(shape|error_rate|abort_rate)\b|` + unlikeExclusions + `|which may be chance`)

// ByOlderMethod reports whether the results of an older method may differ from today's result of a
// claim. The result of a plain mean, difference or quotient may not differ. It may only if today's
// method looks at first attempts, or adjusts for the number of claims.
func ByOlderMethod(method int, today results.ClaimResult) bool {
	return method < 1 && (changedByMethod1.MatchString(today.Expr) || strings.Contains(today.Message, unlikeExclusions)) ||
		method < 2 && changedByMethod2.MatchString(today.Expr) || method < 3 && changedByMethod3.MatchString(today.Expr) ||
		method < 4 && changedByMethod4.MatchString(today.Expr+today.Message)
}

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
	if bad == nil {
		bad = p.checkVacuous()
	}
	switch {
	case bad != nil:
		return bad
	case p.isComparison() && claim.Reported != nil:
		return wrong("reported", "expr is a comparison and has no value to compare with it; remove reported and within, or give a quantity")
	case p.isComparison() && claim.Expected != nil:
		return wrong("expected", "expr is a comparison and has no value to compare with it; remove expected and within, or give a quantity")
	case p.isComparison():
		return nil
	case target(claim) == nil:
		return wrong("expr", "gives a quantity; add reported and within, or expected and within, or compare it with <, <=, > or >=")
	}
	if _, err = boundOf(claim, unitOfType(p.result)); err != nil {
		return err
	}
	if err := p.checkEffect(claim.Within); err != nil {
		return err
	}
	return p.checkMissable(claim)
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

// EvaluateWith judges claims by the trials of the points, and by the outcomes of searches. The
// points may include points without trials. A claim that Check refuses is NotEvaluated. It has the
// error of Check, if Check finds it without axes and faults. The series in reported are those that
// claims may name.
//
// Its verdicts are Holds, Fails, Inconclusive and NotEvaluated: whether the trials support the
// claim. Package fidelity relates a verdict to the source of its claim, since it knows the programs
// that ran.
func EvaluateWith(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity, reported ...v1alpha1.ReportedSeries) []results.ClaimResult {
	return evaluateAll(claims, points, lines, capacities, nil, reported)
}

// evaluateAll judges claims at a look; nil: there is only one look.
func evaluateAll(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity, at *look, reported []v1alpha1.ReportedSeries) []results.ClaimResult {
	judged := make([]results.ClaimResult, 0, len(claims))
	against := make([]evidence, 0, len(claims))
	for _, c := range claims {
		r := TextOf(c)
		r.Weak = Weak(c)
		found := noEvidence
		p, err := compile(c.Expr)
		if err == nil {
			p.look, p.series = at, reported
			var looked []int32
			looked, found, err = evaluate(&r, c, p, points, lines, capacities, true)
			if err != nil {
				r.Verdict, r.Message = string(v1alpha1.VerdictNotEvaluated), err.Error()
			}
			if beside := sensitivity(r, c, p, points, lines, looked); beside != "" {
				r.Caveats = append(r.Caveats, results.Caveat{Kind: CaveatSpoiledBySystem, Text: beside})
				r.Message += "; " + beside
			}
			if beside := lopsided(&r, c, p, points, lines, looked); beside != "" {
				r.Caveats = append(r.Caveats, results.Caveat{Kind: CaveatExcludedTrials, Text: beside})
				r.Message += "; " + beside
			}
		}
		if err != nil && r.Verdict == "" {
			r.Verdict, r.Message = string(v1alpha1.VerdictNotEvaluated), err.Error()
		}
		judged, against = append(judged, r), append(against, found)
	}
	adjust(judged, against, at.level())
	return judged
}

// TextOf is a claim as results have it, without a verdict.
func TextOf(c v1alpha1.Claim) results.ClaimResult {
	r := results.ClaimResult{Name: c.Name, Statement: c.Statement, Expr: c.Expr, Within: c.Within, ReportedIn: c.ReportedIn}
	if c.Reported != nil {
		r.Reported = c.Reported.String()
	}
	if c.Expected != nil {
		r.Expected = c.Expected.String()
	}
	return r
}

// evaluate judges a claim. It returns the points that it looked at, and the evidence against the
// claim. The argument detailed asks for the comparisons as data, which doubles the time.
func evaluate(r *results.ClaimResult, c v1alpha1.Claim, p *program, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity, detailed bool) (
	looked []int32, against evidence, err error,
) {
	e := newRun(p, points, lines)
	e.capacities, e.detailed = capacities, detailed
	if p.isComparison() {
		t := e.truth(p.ast.Expr())
		if len(e.missing) > 0 {
			return e.looked, noEvidence, e.missingData()
		}
		if note := t.byChance(p.level()); note != "" {
			t.truth = unsettled
			e.caveat(CaveatSeveralClaims, note)
		}
		if t.truth == unsettled {
			e.moreCaveat()
		}
		e.write(r, verdictOf(t.truth), e.notes)
		return e.looked, t.against, nil
	}
	if target(c) == nil {
		return nil, noEvidence, fmt.Errorf("expr gives a quantity and nothing is reported or expected to compare it with")
	}
	q := e.quantity(p.ast.Expr())
	if len(e.missing) > 0 {
		return e.looked, noEvidence, e.missingData()
	}
	b, err := boundOf(c, unitOfType(p.result))
	if err != nil {
		return e.looked, noEvidence, err
	}
	return e.looked, e.judge(r, c, q, b), nil
}

// write stores a verdict with its parts, and puts them into words.
func (r *recorder) write(result *results.ClaimResult, verdict v1alpha1.Verdict, compared []string) {
	caveats, basis := r.sampleCaveats()
	result.Verdict, result.Terms, result.Caveats = string(verdict), r.terms, caveats
	if len(r.counts) > 0 {
		result.N, result.NMost = slices.Min(r.counts), slices.Max(r.counts)
	}
	if verdict == v1alpha1.VerdictInconclusive {
		result.Chance = r.outlook.chance()
	}
	result.Message = message(compared, caveats, basis)
}

// judge compares a quantity with the reported or expected value, and returns the evidence that they
// differ.
func (r *run) judge(result *results.ClaimResult, c v1alpha1.Claim, q quantity, b bound) evidence {
	what := "reported"
	if c.Reported == nil {
		what = "expected"
	}
	wanted := fmt.Sprintf("%s %s within %s: from %s to %s", what, target(c), c.Within, showBound(b.low, q.unit), showBound(b.high, q.unit))
	result.Unit, result.BoundLow, result.BoundHigh = string(q.unit), &b.low, &b.high
	if q.absent != "" {
		verdict, against := v1alpha1.VerdictInconclusive, noEvidence
		if q.contradicted {
			verdict, against = v1alpha1.VerdictFails, q.against
		}
		r.write(result, verdict, []string{q.absent, wanted})
		return against
	}
	estimate, counts := r.estimate(q)
	if ofOneSession(q, r.readings) {
		r.caveat(CaveatOneSession, oneSession)
	}
	r.counts, r.unknown = append(r.counts, counts...), r.unknown || !estimate.Known
	t := unsettled
	if estimate.Known {
		t = b.judge(estimate)
	}
	bounded := !math.IsInf(estimate.Low, 0) && !math.IsInf(estimate.High, 0)
	if bounded { // JSON has no infinity; the message says it
		result.Measured, result.Low, result.High = &estimate.Value, &estimate.Low, &estimate.High
	}
	compared := []string{"measured " + show(estimate, q.unit), wanted}
	if strings.HasSuffix(c.Within, ofTheEffect) && bounded {
		compared = append(compared, shareOfEffect(c, q.unit, estimate))
	}
	if t == unsettled && estimate.Known && bounded {
		r.outlook.more(estimate, counts, b.low, b.high)
		compared = append(compared, "the interval straddles the bound")
		r.moreCaveat()
	}
	if estimate.Known && bounded {
		if c.ReportedBy != nil {
			plain := estimate
			if plain.Level != 0 { // at one of several looks
				plain = plain.At(onlyLook)
			}
			result.Replication = replicationOf(c, q.unit, plain, r.ofEffect(q.unit))
		}
		if found := result.Replication; found != nil {
			r.caveat(CaveatReportedDeviation, replicationText(*found, q.unit))
		}
	}
	if result.Weak != "" {
		r.caveat(CaveatWeak, "the bound is weak: "+result.Weak)
	}
	against := b.outside(estimate)
	r.quantityTerm(q, estimate, b, t, against)
	r.write(result, verdictOf(t), compared)
	return against
}

// quantityTerm keeps a quantity and its bound as data.
func (r *recorder) quantityTerm(q quantity, e stats.Estimate, b bound, decided truth, against evidence) {
	if !r.detailed {
		return
	}
	r.effects = append(r.effects, Effect{What: oneLine(tokens(r.source.author)), Unit: string(q.unit), Estimate: e})
	t := results.ClaimTerm{Text: oneLine(tokens(r.source.author)), Relation: "within", Outcome: outcomeOf(decided), Left: interval(e), Unit: string(q.unit), P: against.of(),
		Right: results.Interval{Value: b.value, Low: &b.low, High: &b.high}}
	if b.value != 0 && e.Known && !math.IsInf(e.Low, 0) && !math.IsInf(e.High, 0) {
		low, high := e.Low/b.value, e.High/b.value
		t.Ratio = &results.Interval{Value: e.Value / b.value, Low: new(math.Min(low, high)), High: new(math.Max(low, high))}
	}
	r.terms = append(r.terms, t)
}

// moreCaveat says about how many repetitions would decide, if that can be estimated.
func (r *recorder) moreCaveat() {
	if note := r.outlook.note(); note != "" {
		r.caveat(CaveatFewRepetitions, note)
	}
}

func (r *findings) missingData() error {
	return fmt.Errorf("missing: %s", strings.Join(compact(r.missing), "; "))
}

func verdictOf(t truth) v1alpha1.Verdict {
	switch t {
	case holds:
		return v1alpha1.VerdictHolds
	case fails:
		return v1alpha1.VerdictFails
	}
	return v1alpha1.VerdictInconclusive
}

// bound is the range of values that agree with a reported or expected value.
type bound struct{ value, low, high float64 }

func (b bound) judge(e stats.Estimate) truth {
	switch {
	case e.Low >= b.low && e.High <= b.high:
		return holds
	case e.High < b.low || e.Low > b.high:
		return fails
	}
	return unsettled
}
