package claims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/stats"
)

// A claim that no result can refute says nothing, and neither does one that no result can support.
// Check refuses both: they are errors of their authors. Results that are stored are judged all the
// same, so that a bundle with such a claim can still be verified.

// span is the range of values that an expression may have, whatever is measured.
type span struct{ low, high float64 }

var anything = span{math.Inf(-1), math.Inf(1)}

// constant reports whether the expression has one value, which depends on no result.
func (s span) constant() bool { return s.low == s.high }

// checkVacuous refuses a comparison that cannot be decided both ways, alone or with the others.
func (p *program) checkVacuous() error {
	var bad error
	celast.PreOrderVisit(p.ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || bad != nil {
			return
		}
		name, args := e.AsCall().FunctionName(), e.AsCall().Args()
		if len(args) != 2 || name == operators.LogicalAnd || name == operators.LogicalOr {
			return
		}
		switch same := canonical(args[0]) == canonical(args[1]); {
		case same && slices.Contains(comparisons, name):
			bad = p.errorAt(e.ID(), "both sides are the same, so that no result has a part in it")
		case same && (name == operators.Subtract || name == operators.Divide) && !p.span(args[0]).constant():
			bad = p.errorAt(e.ID(), "both sides are the same, so that the result is the same whatever was measured")
		case slices.Contains(comparisons, name):
			if always, never := p.decided(e); always || never {
				bad = p.errorAt(e.ID(), "%s", p.whyDecided(args, always))
			}
		}
	}))
	if bad != nil || !p.isComparison() {
		return bad
	}
	switch always, never := p.decided(p.ast.Expr()); {
	case always:
		return wrong("expr", "holds whatever was measured: no result can refute it")
	case never:
		return wrong("expr", "cannot hold, whatever was measured: no result can support it")
	}
	return nil
}

// whyDecided says why a comparison is decided before anything is measured.
func (p *program) whyDecided(args []celast.Expr, always bool) string {
	says := "cannot hold, whatever was measured"
	if always {
		says = "holds whatever was measured"
	}
	var ranges []string
	for _, a := range args {
		s := p.span(a)
		switch {
		case s.constant():
		case math.IsInf(s.high, 1):
			ranges = append(ranges, fmt.Sprintf("one side is %g or more", s.low))
		case math.IsInf(s.low, -1):
			ranges = append(ranges, fmt.Sprintf("one side is %g or less", s.high))
		default:
			ranges = append(ranges, fmt.Sprintf("one side is from %g to %g", s.low, s.high))
		}
	}
	if len(ranges) == 0 {
		return says + ": no side reads a result"
	}
	return says + ": " + strings.Join(ranges, ", and ")
}

// checkMissable refuses a tolerance that holds the least possible value. Then no measurement of a
// quantity that cannot be negative is too small, and the bound is really an upper bound only.
func (p *program) checkMissable(c v1alpha1.Claim) error {
	u := unitOfType(p.result)
	b, err := boundOf(c, u)
	if err != nil {
		return err
	}
	possible := p.span(p.ast.Expr())
	switch {
	case b.value < possible.low || b.value > possible.high:
		field := "reported"
		if c.Reported == nil {
			field = "expected"
		}
		return wrong(field, "%s cannot be measured: the expression is from %g to %g", target(c), possible.low, possible.high)
	case b.low <= possible.low && b.high >= possible.high:
		return wrong("within", "from %s to %s is all that the expression can be: no measurement can miss it", showBound(b.low, u), showBound(b.high, u))
	case b.low <= possible.low && b.value > possible.low:
		return wrong("within", "from %s to %s holds %s, the least that the expression can be: no measurement is too small; give a smaller tolerance, or compare by <", showBound(b.low, u), showBound(b.high, u), showBound(possible.low, u))
	}
	return nil
}

// span of an expression of numbers, by the rules of interval arithmetic.
func (p *program) span(e celast.Expr) span {
	if e.Kind() == celast.LiteralKind {
		switch v := e.AsLiteral().(type) {
		case types.Int:
			return span{float64(v), float64(v)}
		case types.Double:
			return span{float64(v), float64(v)}
		}
		return anything
	}
	if e.Kind() != celast.CallKind {
		return anything
	}
	name, args := e.AsCall().FunctionName(), e.AsCall().Args()
	if f, ok := functions[name]; ok {
		return spanOf(name, f)
	}
	switch {
	case name == "duration":
		text, _ := scalar(args[0])
		ms, err := amount(text, milliseconds)
		if err != nil {
			return anything
		}
		return span{ms, ms}
	case name == operators.Negate:
		s := p.span(args[0])
		return span{-s.high, -s.low}
	case len(args) != 2:
		return anything
	}
	a, b := p.span(args[0]), p.span(args[1])
	switch name {
	case operators.Add:
		return span{a.low + b.low, a.high + b.high}
	case operators.Subtract:
		return span{a.low - b.high, a.high - b.low}
	case operators.Multiply:
		return spanning(a.low, a.high, b, func(x, y float64) float64 { return x * y })
	case operators.Divide:
		if b.low < 0 && b.high > 0 || b.constant() && b.low == 0 {
			return anything
		}
		return spanning(a.low, a.high, b, func(x, y float64) float64 { return x / y })
	}
	return anything
}

// spanOf is the range of a function's values. Only two metrics may be below 0, and shares are at
// most 1.
func spanOf(name string, f function) span {
	switch {
	case metric{name: f.metric}.signed() || name == "crossover":
		return anything
	case f.metric == stats.AbortRate || f.metric == errorRate || f.metric == dip:
		return span{0, 1}
	}
	return span{0, math.Inf(1)}
}

// spanning applies an operation to the ends of two spans, and returns the span from its least to
// its greatest value. An undefined value (0 times infinity, 0 by 0) is 0 or anything between the
// others.
func spanning(low, high float64, b span, of func(x, y float64) float64) span {
	out := span{math.Inf(1), math.Inf(-1)}
	for _, x := range []float64{low, high} {
		for _, y := range []float64{b.low, b.high} {
			v := of(x, y)
			if math.IsNaN(v) {
				v = 0
			}
			if math.IsInf(v, 0) && y == 0 { // divided by a 0 that is approached from the side where b lies
				v = math.Copysign(v, x)
				if b.high == 0 {
					v = -v
				}
			}
			out.low, out.high = math.Min(out.low, v), math.Max(out.high, v)
		}
	}
	return out
}

// canonical is an expression as text. Two expressions that differ only in spaces and in the order
// of arguments have the same text.
func canonical(e celast.Expr) string {
	switch e.Kind() {
	case celast.LiteralKind:
		return fmt.Sprintf("%v", e.AsLiteral().Value())
	case celast.CallKind:
		args := make([]string, len(e.AsCall().Args()))
		for i, a := range e.AsCall().Args() {
			args[i] = canonical(a)
		}
		return e.AsCall().FunctionName() + "(" + strings.Join(args, ", ") + ")"
	case celast.ListKind:
		elements := make([]string, len(e.AsList().Elements()))
		for i, a := range e.AsList().Elements() {
			elements[i] = canonical(a)
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case celast.MapKind:
		var entries []string
		for _, entry := range e.AsMap().Entries() {
			entries = append(entries, canonical(entry.AsMapEntry().Key())+"="+canonical(entry.AsMapEntry().Value()))
		}
		slices.Sort(entries)
		return strings.Join(entries, ", ")
	}
	return fmt.Sprint(e.ID())
}

// unknownPart is something that an expression of comparisons depends on, with its possible places.
// For a value that is compared with constants, the places are the constants and the ranges between
// them. For two values, a place says which one is greater. For a test, it says whether the test
// holds.
type unknownPart struct {
	constants []float64 // sorted; nil: of two values, or of a test
	places    int
}

// mostCombinations of places are tried. An expression with more is let through.
const mostCombinations = 1 << 12

// decided reports whether an expression of comparisons holds for all values, or for none.
func (p *program) decided(e celast.Expr) (always, never bool) {
	parts := map[string]*unknownPart{}
	p.collect(e, parts)
	for _, u := range parts {
		if u.constants != nil {
			slices.Sort(u.constants)
			u.constants = slices.Compact(u.constants)
			u.places = 2*len(u.constants) + 1
		}
	}
	names, combinations := sortedKeys(parts), 1
	for _, name := range names {
		if combinations *= parts[name].places; combinations > mostCombinations {
			return false, false
		}
	}
	always, never = true, true
	for n := range combinations {
		at, rest := map[string]int{}, n
		for _, name := range names {
			at[name] = rest % parts[name].places
			rest /= parts[name].places
		}
		holds, possible := p.holdsAt(e, parts, at)
		if possible {
			always, never = always && holds, never && !holds
		}
	}
	return always, never
}

// sides of a comparison, in an order that does not depend on how it is written, and whether they
// were exchanged.
func (p *program) sides(call celast.CallExpr) (left, right celast.Expr, exchanged bool) {
	left, right = call.Args()[0], call.Args()[1]
	a, b := p.span(left).constant(), p.span(right).constant()
	if a && !b || a == b && canonical(left) > canonical(right) {
		return right, left, true
	}
	return left, right, false
}

// collect adds what an expression depends on.
func (p *program) collect(e celast.Expr, parts map[string]*unknownPart) {
	if e.Kind() != celast.CallKind {
		return
	}
	call := e.AsCall()
	if !slices.Contains(comparisons, call.FunctionName()) {
		if _, test := functions[call.FunctionName()]; test {
			parts[canonical(e)] = &unknownPart{places: 2}
			return
		}
		for _, a := range call.Args() {
			p.collect(a, parts)
		}
		return
	}
	left, right, _ := p.sides(call)
	if s := p.span(right); s.constant() {
		name := canonical(left)
		if parts[name] == nil {
			parts[name] = &unknownPart{}
		}
		parts[name].constants = append(parts[name].constants, s.low)
		return
	}
	parts[canonical(left)+" : "+canonical(right)] = &unknownPart{places: 3}
}

// holdsAt reports whether an expression holds where its parts are at these places, and whether they
// can be there.
func (p *program) holdsAt(e celast.Expr, parts map[string]*unknownPart, at map[string]int) (holds, possible bool) {
	if e.Kind() == celast.LiteralKind {
		return e.AsLiteral() == types.True, true
	}
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalNot:
		holds, possible = p.holdsAt(args[0], parts, at)
		return !holds, possible
	case operators.LogicalAnd, operators.LogicalOr:
		a, possibleA := p.holdsAt(args[0], parts, at)
		b, possibleB := p.holdsAt(args[1], parts, at)
		if call.FunctionName() == operators.LogicalAnd {
			return a && b, possibleA && possibleB
		}
		return a || b, possibleA && possibleB
	}
	if !slices.Contains(comparisons, call.FunctionName()) {
		return at[canonical(e)] == 1, true
	}
	left, right, exchanged := p.sides(call)
	order, possible := p.orderAt(left, right, parts, at)
	if exchanged {
		order = -order
	}
	switch call.FunctionName() {
	case operators.Less:
		return order < 0, possible
	case operators.LessEquals:
		return order <= 0, possible
	case operators.Greater:
		return order > 0, possible
	}
	return order >= 0, possible
}

// orderAt says whether the left side is less than, equal to or greater than the right one at a
// place (-1, 0, 1). It also says whether the spans of both sides admit that.
func (p *program) orderAt(left, right celast.Expr, parts map[string]*unknownPart, at map[string]int) (order int, possible bool) {
	a, b := p.span(left), p.span(right)
	if !b.constant() {
		switch at[canonical(left)+" : "+canonical(right)] {
		case 0:
			return -1, a.low < b.high
		case 1:
			return 0, a.low <= b.high && b.low <= a.high
		}
		return 1, a.high > b.low
	}
	name := canonical(left)
	constants, place := parts[name].constants, at[name]
	k, _ := slices.BinarySearch(constants, b.low)
	order = cmp.Compare(place, 2*k+1)
	from, to := math.Inf(-1), math.Inf(1) // the place itself
	if place > 0 {
		from = constants[(place-1)/2]
	}
	if place/2 < len(constants) {
		to = constants[place/2]
	}
	if place%2 == 1 {
		return order, a.low <= from && from <= a.high
	}
	return order, a.low < to && a.high > from
}
