package claims

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/text/suggest"
)

// The types of the language. Numbers are CEL's own int and double; both are decimals here. A value
// with an interval of its own, which is not made of means and derivatives, is an estimate. It can
// be compared with a number and be a claim's quantity, and nothing can be computed from it.
var (
	latencyType    = cel.OpaqueType("latency")
	throughputType = cel.OpaqueType("throughput")
	estimateType   = cel.OpaqueType("estimate")
)

// points says which points a function reads.
type points int

const (
	onePoint      points = iota // the one that matches
	greatestMean                // of all that match, the one with the greatest mean of the metric
	leastMean                   // of all that match, the one with the least
	atPeak                      // of all that match, the one with the greatest mean throughput
	atKnee                      // the knee of the curve along an axis
	alongAxis                   // every one along an axis
	ofTwoVariants               // two that differ in one axis
	curvesOfTwo                 // every one along an axis, of two variants
	ofSearch                    // none: the outcome of a search for a capacity
	ofSeries                    // those that a reported series stands beside
)

// function describes a function that reads results.
type function struct {
	metric string // empty: named by the argument of
	result *cel.Type
	points points
	// fault: it is about one fault, named by the argument fault.
	fault bool
}

// takes reports whether the function has an argument of this name, other than an axis.
func (f function) takes(argument string) bool {
	switch argument {
	case "of":
		return f.metric == "" && f.points != ofSearch && f.points != ofSeries
	case "along":
		return f.curve()
	case "fault", "time":
		return f.fault
	case "name":
		return f.metric == measurement
	case "series":
		return f.points == ofSeries
	}
	return false
}

// curve: it goes along an axis. pair: one of its axes has two values. open: axes may be left out.
func (f function) curve() bool {
	return f.points == atKnee || f.points == alongAxis || f.points == curvesOfTwo
}
func (f function) pair() bool { return f.points == ofTwoVariants || f.points == curvesOfTwo }
func (f function) open() bool {
	return f.points == greatestMean || f.points == leastMean || f.points == atPeak
}

var functions = map[string]function{
	"mean_latency":   {metric: stats.MeanLatency, result: latencyType},
	"p10_latency":    {metric: p10Latency, result: latencyType},
	"p50_latency":    {metric: stats.P50Latency, result: latencyType},
	"p75_latency":    {metric: p75Latency, result: latencyType},
	"p90_latency":    {metric: stats.P90Latency, result: latencyType},
	"p95_latency":    {metric: stats.P95Latency, result: latencyType},
	"p99_latency":    {metric: stats.P99Latency, result: latencyType},
	"p999_latency":   {metric: stats.P999Latency, result: latencyType},
	"p9999_latency":  {metric: p9999Latency, result: latencyType},
	"p99999_latency": {metric: p99999Latency, result: latencyType},
	"throughput":     {metric: stats.Throughput, result: throughputType},
	"abort_rate":     {metric: stats.AbortRate, result: cel.DoubleType},
	"error_rate":     {metric: errorRate, result: cel.DoubleType},
	"max_throughput": {metric: stats.Throughput, result: throughputType, points: greatestMean},
	"min_latency":    {metric: stats.MeanLatency, result: latencyType, points: leastMean},
	"peak_latency":   {metric: stats.MeanLatency, result: latencyType, points: atPeak},

	"throughput_per_correct_client": {metric: perCorrectClient, result: throughputType},

	"knee_throughput": {metric: stats.Throughput, result: throughputType, points: atKnee},
	"knee_latency":    {metric: stats.MeanLatency, result: latencyType, points: atKnee},

	"time_to_detect": {metric: timeToDetect, result: latencyType, fault: true},
	"dip":            {metric: dip, result: cel.DoubleType, fault: true},
	"time_to_90":     {metric: timeTo90, result: latencyType, fault: true},
	"goodput_lost":   {metric: goodputLost, result: cel.DoubleType, fault: true},

	"measurement": {metric: measurement, result: cel.DoubleType},

	"ratio":                   {result: estimateType, points: ofTwoVariants},
	"significantly_different": {result: cel.BoolType, points: ofTwoVariants},
	"capacity":                {result: estimateType, points: ofSearch},
	"crossover":               {result: estimateType, points: curvesOfTwo},
	"shape":                   {result: estimateType, points: ofSeries},
	"increasing":              {result: cel.BoolType, points: alongAxis},
	"decreasing":              {result: cel.BoolType, points: alongAxis},
}

func functionNames() []string { return sortedKeys(functions) }

// ofNames are the names that the argument of may have: functions that read one number of one point.
func ofNames() []string {
	return slices.DeleteFunc(functionNames(), func(name string) bool {
		return functions[name].points != onePoint || functions[name].fault || functions[name].metric == measurement
	})
}

// comparisons that a claim may make. Equality is not among them: two measured means are never
// equal.
var comparisons = []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals}

// The bounds of an expression: its length in characters, as the API has it, and how deep its
// brackets may nest. They bound the work of any expression.
const (
	maxLength = 2048
	maxDepth  = 64
)

// environment is the language; it is made once, since making it takes longer than compiling a
// claim.
var environment = sync.OnceValues(newEnvironment)

// newEnvironment declares the whole language and nothing of CEL's standard library. So a claim can
// use exactly the functions and operators in claims.md.
func newEnvironment() (*cel.Env, error) {
	selector := cel.MapType(cel.StringType, cel.DynType)
	options := []cel.EnvOption{
		cel.ClearMacros(),
		cel.ParserRecursionLimit(2 * maxDepth),
		cel.Function("duration", cel.Overload("duration_string", []*cel.Type{cel.StringType}, latencyType)),
		cel.Function(operators.LogicalAnd, cel.Overload("and", []*cel.Type{cel.BoolType, cel.BoolType}, cel.BoolType)),
		cel.Function(operators.LogicalOr, cel.Overload("or", []*cel.Type{cel.BoolType, cel.BoolType}, cel.BoolType)),
		cel.Function(operators.LogicalNot, cel.Overload("not", []*cel.Type{cel.BoolType}, cel.BoolType)),
	}
	for name, f := range functions {
		options = append(options, cel.Function(name,
			cel.Overload(name+"_all", []*cel.Type{}, f.result),
			cel.Overload(name+"_at", []*cel.Type{selector}, f.result)))
	}
	return cel.NewCustomEnv(append(options, arithmetic()...)...)
}

// arithmetic declares the operators: like with like, anything by a number, and comparisons of
// throughput and estimates with a number.
func arithmetic() []cel.EnvOption {
	overloads := map[string][]cel.FunctionOpt{}
	declare := func(operator string, result *cel.Type, args ...*cel.Type) {
		id := operator
		for _, a := range args {
			id += "_" + a.TypeName()
		}
		overloads[operator] = append(overloads[operator], cel.Overload(id, args, result))
	}
	numbers := []*cel.Type{cel.IntType, cel.DoubleType}
	for _, q := range []*cel.Type{latencyType, throughputType} {
		declare(operators.Add, q, q, q)
		declare(operators.Subtract, q, q, q)
		declare(operators.Negate, q, q)
		declare(operators.Divide, cel.DoubleType, q, q)
		for _, n := range numbers {
			declare(operators.Multiply, q, q, n)
			declare(operators.Multiply, q, n, q)
			declare(operators.Divide, q, q, n)
		}
		for _, c := range comparisons {
			declare(c, cel.BoolType, q, q)
		}
	}
	for _, a := range numbers {
		declare(operators.Negate, a, a)
		for _, b := range numbers {
			for _, o := range []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide} {
				declare(o, cel.DoubleType, a, b)
			}
			for _, c := range comparisons {
				declare(c, cel.BoolType, a, b)
			}
		}
		for _, c := range comparisons {
			for _, q := range []*cel.Type{throughputType, estimateType} {
				declare(c, cel.BoolType, q, a)
				declare(c, cel.BoolType, a, q)
			}
		}
	}
	var options []cel.EnvOption
	for operator, os := range overloads {
		options = append(options, cel.Function(operator, os...))
	}
	return options
}

// program is an expression whose syntax and types are right.
type program struct {
	source source
	ast    *celast.AST
	result *types.Type
	// series are the reported series that shape may name.
	series []v1alpha1.ReportedSeries
	// look is the look at which the program is judged; nil: there is only one.
	look *look
}

func compile(expr string) (*program, error) {
	src, err := newSource(expr)
	if err != nil {
		return nil, err
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("declare the language of claims: %w", err)
	}
	ast, issues := env.Compile(src.text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		offset := src.offset(first.Location.Line(), first.Location.Column())
		message, isCall := src.explain(first.Message, offset)
		if isCall {
			offset = src.nameOf(offset)
		}
		return nil, src.errorAt(offset, "%s", message)
	}
	p := &program{source: src, ast: ast.NativeRep(), result: ast.OutputType()}
	if err := p.checkResult(); err != nil {
		return nil, err
	}
	return p, nil
}

// checkResult refuses an expression that is neither a quantity nor a comparison, or that reads no
// result. Such an expression cannot be evaluated.
func (p *program) checkResult() error {
	switch p.result.Kind() {
	case types.BoolKind, types.IntKind, types.DoubleKind, types.OpaqueKind:
	default:
		what := map[types.Kind]string{types.StringKind: "a text", types.ListKind: "a list", types.MapKind: "a map"}[p.result.Kind()]
		return p.errorAt(p.ast.Expr().ID(), "gives %s; a claim is a quantity or a comparison", cmp.Or(what, p.result.String()))
	}
	reads := false
	celast.PreOrderVisit(p.ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.CallKind {
			_, ok := functions[e.AsCall().FunctionName()]
			reads = reads || ok
		}
	}))
	if !reads {
		return wrong("expr", "reads no results; use one of %s", strings.Join(functionNames(), ", "))
	}
	return nil
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	mismatched = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '\((.*)\)'$`)
	misplaced  = regexp.MustCompile(`^Syntax error: (mismatched input|extraneous input|no viable alternative at input) '([^']*)'`)
	expecting  = regexp.MustCompile(` expecting \{.*\}$`)
)

// explain puts an error of CEL into the words of claims.md. isCall: the error is about the function
// called at offset.
func (s source) explain(message string, offset int) (text string, isCall bool) {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		symbol, isOperator := operators.FindReverse(m[1])
		switch {
		case m[1] == operators.Equals || m[1] == operators.NotEquals:
			return "measured values are never equal: compare with <, <=, > or >=, or give a quantity with reported and within", false
		case isOperator && symbol != "":
			return fmt.Sprintf("claims have no operator %s", symbol), false
		case m[1] == operators.Conditional:
			return "claims have no operator ?:", false
		case s.tokenAt(offset).is("("):
			return unknown("function", m[1], functionNames(), "the functions are"), true
		}
		return fmt.Sprintf("unknown name %s; texts need quotes, as in '%s'", m[1], m[1]), false
	}
	m := mismatched.FindStringSubmatch(message)
	if m == nil {
		return syntax(message), false
	}
	symbol, isOperator := operators.FindReverse(m[1])
	args := strings.NewReplacer("int", "number", "double", "number", ", ", " and ").Replace(m[2])
	switch {
	case !isOperator && m[1] == "duration":
		return "duration takes one text, as in duration('4.1ms')", true
	case !isOperator:
		return fmt.Sprintf("%s takes arguments of the form axis=value", m[1]), true
	case strings.Contains(m[2], "bool") && slices.Contains(comparisons, m[1]):
		return fmt.Sprintf("%s cannot be chained: write a < b && b < c", symbol), false
	case args == "latency and number" || args == "number and latency":
		return fmt.Sprintf("%s cannot be applied to %s: give the number a unit, as in 5ms", symbol, args), false
	case strings.Contains(args, "estimate"):
		return fmt.Sprintf("%s cannot be applied to %s: ratio, crossover, shape and capacity can be compared with a number, and nothing can be computed from them", symbol, args), false
	}
	return fmt.Sprintf("%s cannot be applied to %s", symbol, args), false
}

// syntax says what the parser says of a text that is no expression, without the names of its
// grammar.
func syntax(message string) string {
	message = expecting.ReplaceAllString(message, "")
	m := misplaced.FindStringSubmatch(message)
	switch {
	case m == nil:
		return message
	case m[2] == "<EOF>":
		return "Syntax error: the expression is not complete; a value or a closing bracket is missing"
	}
	return fmt.Sprintf("Syntax error: %s cannot stand here; an operator, a comma or a bracket is missing before it, or it is one too many", m[2])
}

// unknown says that there is no thing of this name, and gives the most similar name, or all names.
func unknown(what, name string, known []string, listed string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf("there is no %s %s; did you mean %s?", what, name, near)
	}
	return fmt.Sprintf("there is no %s %s; %s %s", what, name, listed, strings.Join(known, ", "))
}
