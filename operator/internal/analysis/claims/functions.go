package claims

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
)

// FunctionsOf are the functions that read numbers of trials in an expression, by the system whose
// points they read; an empty system stands for all. A function of another one, as in
// ratio(of='p50_latency', ...), reads the numbers of that function. Nil: the text is no expression.
func FunctionsOf(expr string) map[string][]string {
	p, err := compile(expr)
	if err != nil {
		return nil
	}
	reads := map[string][]string{}
	celast.PreOrderVisit(p.ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		name := e.AsCall().FunctionName()
		if _, ok := functions[name]; !ok {
			return
		}
		system := ""
		for _, argument := range e.AsCall().Args() {
			if argument.Kind() != celast.MapKind {
				continue
			}
			for _, entry := range argument.AsMap().Entries() {
				key, _ := scalar(entry.AsMapEntry().Key())
				value, ok := scalar(entry.AsMapEntry().Value())
				switch {
				case !ok:
				case key == "system":
					system = value
				case key == "of":
					name = value
				}
			}
		}
		if !slices.Contains(reads[system], name) {
			reads[system] = append(reads[system], name)
		}
	}))
	return reads
}

// PointMetric is the metric of trials that a function reads at one point. Empty: the function reads
// several points, a fault, a search, or a measurement of the experiment's own.
func PointMetric(name string) string {
	if f := functions[name]; f.points == onePoint && !f.fault && f.metric != measurement {
		return f.metric
	}
	return ""
}
