package claims

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/internal/stats"
)

// The types of the language. Numbers are CEL's own int and double; both are decimals here.
var (
	latencyType    = cel.OpaqueType("latency")
	throughputType = cel.OpaqueType("throughput")
)

// function is one that reads results.
type function struct {
	metric string
	result *cel.Type
	// greatest: the greatest mean over all points that match; otherwise the one point that matches.
	greatest bool
}

var functions = map[string]function{
	"mean_latency":   {metric: stats.MeanLatency, result: latencyType},
	"p50_latency":    {metric: stats.P50Latency, result: latencyType},
	"p99_latency":    {metric: stats.P99Latency, result: latencyType},
	"throughput":     {metric: stats.Throughput, result: throughputType},
	"abort_rate":     {metric: stats.AbortRate, result: cel.DoubleType},
	"max_throughput": {metric: stats.Throughput, result: throughputType, greatest: true},
}

func functionNames() string {
	names := make([]string, 0, len(functions))
	for name := range functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// comparisons that a claim may make. Equality is not among them: two measured means are never equal.
var comparisons = []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals}

// environment is the language; it is made once, since making it takes longer than compiling a claim.
var environment = sync.OnceValues(newEnvironment)

// newEnvironment declares the whole language and nothing of CEL's standard library, so that what a claim can say is what claims.md lists.
func newEnvironment() (*cel.Env, error) {
	selector := cel.MapType(cel.StringType, cel.DynType)
	options := []cel.EnvOption{
		cel.ClearMacros(),
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

// arithmetic declares the operators: like with like, anything by a number, and comparisons of throughput with a number (in tx/s).
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
			declare(c, cel.BoolType, throughputType, a)
			declare(c, cel.BoolType, a, throughputType)
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
		return nil, src.errorAt(src.offset(first.Location.Line(), first.Location.Column()), "%s", explain(first.Message))
	}
	return &program{source: src, ast: ast.NativeRep(), result: ast.OutputType()}, nil
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	mismatched = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '\((.*)\)'$`)
)

// explain says in the words of claims.md what CEL says in its own.
func explain(message string) string {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		symbol, isOperator := operators.FindReverse(m[1])
		switch {
		case m[1] == operators.Equals || m[1] == operators.NotEquals:
			return "measured values are never equal: compare with <, <=, > or >=, or give a quantity with reported and within"
		case isOperator && symbol != "":
			return fmt.Sprintf("claims have no operator %s", symbol)
		case m[1] == operators.Conditional:
			return "claims have no operator ?:"
		}
		return fmt.Sprintf("unknown name %s; functions are %s; text values need quotes", m[1], functionNames())
	}
	m := mismatched.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	symbol, isOperator := operators.FindReverse(m[1])
	args := strings.NewReplacer("int", "number", "double", "number", ", ", " and ").Replace(m[2])
	switch {
	case !isOperator && m[1] == "duration":
		return "duration takes one text, as in duration('4.1ms')"
	case !isOperator:
		return fmt.Sprintf("%s takes arguments of the form axis=value", m[1])
	case strings.Contains(m[2], "bool") && slices.Contains(comparisons, m[1]):
		return fmt.Sprintf("%s cannot be chained: write a < b && b < c", symbol)
	case args == "latency and number" || args == "number and latency":
		return fmt.Sprintf("%s cannot be applied to %s: give the number a unit, as in 5ms", symbol, args)
	}
	return fmt.Sprintf("%s cannot be applied to %s", symbol, args)
}
