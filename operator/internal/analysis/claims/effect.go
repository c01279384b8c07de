package claims

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/stats"
)

// A reported value within equality of "no effect", by its logarithm or as a share, states that
// there is no effect. A value of 1.02 does, and 1.04 is an effect of 4%.
const equality = 0.025

// Weak says why a bound does not test the statement. The bound may hold "no effect" (1 for a
// quotient, 0 for a difference), though the paper reports an effect. Or it holds 0 for a quantity
// that is never negative, so that no measurement is too small. Empty: the bound is not weak, the
// claim is a comparison, or its expression or bound is wrong.
func Weak(c v1alpha1.Claim) string {
	p, err := compile(c.Expr)
	if err != nil || p.isComparison() || target(c) == nil {
		return ""
	}
	b, err := newBound(*target(c), c.Within, unitOfType(p.result))
	if err != nil {
		return ""
	}
	u := unitOfType(p.result)
	reported, err := amount(target(c).String(), u)
	if err != nil {
		return ""
	}
	none, known := p.noEffect(p.ast.Expr())
	switch {
	case known && b.low <= none && none <= b.high && !isEquality(reported, none):
		return fmt.Sprintf("the bound from %s to %s holds %s, which is no effect, and the value that is wanted is one", showBound(b.low, u), showBound(b.high, u), showBound(none, u))
	case b.low <= 0 && reported > 0 && !p.signed(p.ast.Expr()):
		return fmt.Sprintf("the bound from %s to %s holds 0: no measurement is too small", showBound(b.low, u), showBound(b.high, u))
	}
	return ""
}

// checkEffect refuses a tolerance of the effect if the expression has no effect, or another one
// than newBound assumes. The value 1 is no effect of a plain number, and 0 of a latency or a
// throughput.
func (p *program) checkEffect(within string) error {
	if !strings.HasSuffix(within, ofTheEffect) {
		return nil
	}
	if p.ofEffect(unitOfType(p.result)) == nil {
		return wrong("within", "the expression has no effect of which a share could be: compare two like things by a quotient, as in a / b, or by a difference of latencies or throughputs")
	}
	return nil
}

// ofEffect is the value of the expression without an effect: 1 for a plain number, 0 for a
// difference. Nil: the expression has no effect.
func (p *program) ofEffect(u unit) *float64 {
	want := 0.0
	if u == plain {
		want = 1
	}
	if none, known := p.noEffect(p.ast.Expr()); !known || math.Abs(none-want) > 1e-9 {
		return nil
	}
	return &want
}

// shareOfEffect words the measured share of the reported effect.
func shareOfEffect(c v1alpha1.Claim, u unit, e stats.Estimate) string {
	reported, err := amount(target(c).String(), u)
	if err != nil {
		return "its share of the effect is not known"
	}
	share := func(x float64) float64 {
		switch {
		case u != plain:
			return x / reported
		case x <= 0:
			return math.Inf(-1) * math.Log(reported)
		}
		return math.Log(x) / math.Log(reported)
	}
	low, high := share(e.Low), share(e.High)
	of := stats.Estimate{Value: share(e.Value), Low: math.Min(low, high), High: math.Max(low, high), Known: e.Known}
	return show(of, plain) + " of that effect"
}

// isEquality reports whether a reported value says that there is no effect.
func isEquality(reported, none float64) bool {
	if none == 0 {
		return reported == 0
	}
	return reported/none > 0 && math.Abs(math.Log(reported/none)) <= equality
}

// noEffect is the value of an expression if no point differs from another: 1 for a/b, 0 for a-b and
// (a-b)/b, 0.5 for a/(a+b). The value must be the same for any means, as long as the means of each
// metric are equal. The result is false if it depends on the means. Examples are a single mean, and
// a tail latency divided by a median.
func (p *program) noEffect(e celast.Expr) (float64, bool) {
	first := p.ofEqualMeans(e, 1)
	for _, scale := range []float64{1.7, 2.9} {
		if other := p.ofEqualMeans(e, scale); !(math.Abs(other-first) <= 1e-9*math.Max(1, math.Abs(first))) {
			return 0, false
		}
	}
	return first, true
}

// ofEqualMeans is the value of the expression with equal means for each metric. The mean of a
// metric is scale to a power of its own, so that different metrics do not cancel.
func (p *program) ofEqualMeans(e celast.Expr, scale float64) float64 {
	if e.Kind() == celast.LiteralKind {
		switch v := e.AsLiteral().(type) {
		case types.Int:
			return float64(v)
		case types.Double:
			return float64(v)
		}
		return math.NaN()
	}
	call := e.AsCall()
	name, args := call.FunctionName(), call.Args()
	if f, ok := functions[name]; ok {
		a, err := p.arguments(call, e.ID())
		switch {
		case err != nil:
			return math.NaN()
		case f.points == ofTwoVariants:
			return 1
		case f.result == estimateType: // a place on an axis is no mean
			return math.Pow(scale, exponent(name))
		}
		return math.Pow(scale, exponent(fmt.Sprint(a.metric)))
	}
	switch name {
	case "duration":
		text, _ := scalar(args[0])
		ms, err := amount(text, milliseconds)
		if err != nil {
			return math.NaN()
		}
		return ms
	case operators.Negate:
		return -p.ofEqualMeans(args[0], scale)
	}
	a, b := p.ofEqualMeans(args[0], scale), p.ofEqualMeans(args[1], scale)
	switch name {
	case operators.Add:
		return a + b
	case operators.Subtract:
		return a - b
	case operators.Multiply:
		return a * b
	}
	return a / b
}

// exponent is a number from 1 to 2 that belongs to a name.
func exponent(name string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return 1 + float64(h.Sum32())/math.MaxUint32
}

// signed reports whether an expression may be negative.
func (p *program) signed(e celast.Expr) bool {
	if e.Kind() == celast.LiteralKind {
		return p.ofEqualMeans(e, 1) < 0
	}
	call := e.AsCall()
	if f, ok := functions[call.FunctionName()]; ok {
		return metric{name: f.metric}.signed() || f.result.IsExactType(cel.BoolType)
	}
	switch call.FunctionName() {
	case operators.Subtract, operators.Negate:
		return true
	case "duration":
		return false
	}
	return p.signed(call.Args()[0]) || p.signed(call.Args()[1])
}
