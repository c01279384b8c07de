package claims

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
)

// Reads says which values of an axis an expression names, each once. The result every says that
// some function in it names none, and so reads every value of the axis, or the only one. An
// expression that cannot be read reads every value.
func Reads(expr, axis string) (named []string, every bool) {
	p, err := compile(expr)
	if err != nil {
		return nil, true
	}
	celast.PreOrderVisit(p.ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		if _, reads := functions[e.AsCall().FunctionName()]; !reads {
			return
		}
		a, err := p.arguments(e.AsCall(), e.ID())
		found := false
		for _, c := range slices.Concat(a.at, a.pair) {
			if c.axis != axis {
				continue
			}
			found = true
			if !slices.Contains(named, c.value) {
				named = append(named, c.value)
			}
		}
		every = every || err != nil || !found
	}))
	return named, every
}
