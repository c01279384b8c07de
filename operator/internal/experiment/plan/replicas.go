package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Bounds of the expressions in Systems. Each is a line of arithmetic. A longer one is a mistake or
// an attack.
const (
	maxCountLength   = 128
	maxCountDepth    = 16
	maxCountCost     = 1000
	maxReplicasShard = 200
)

// countExpression is a compiled replicas.count, or the count of a component.
type countExpression struct {
	*arithmetic

	field string // field of the expression, for messages
	text  string
}

// ofParameters precedes the name of a parameter.
const ofParameters = "parameters."

// integers returns the parameters that counts may use.
func integers(spec *v1alpha1.SystemSpec) []string {
	var names []string
	for _, p := range spec.Parameters {
		if p.Type == v1alpha1.ParameterInteger {
			names = append(names, p.Name)
		}
	}
	return names
}

// arithmetic is a compiled expression over integers in a System.
type arithmetic struct {
	program cel.Program
	// parameters that the expression uses.
	parameters []string
}

// compileArithmetic compiles an expression of at most longest characters. Its variables and
// parameters are integers.
func compileArithmetic(text string, longest int, gives *cel.Type, example string, variables, parameters []string) (*arithmetic, error) {
	if len(text) > longest {
		return nil, fmt.Errorf("is longer than %d characters", longest)
	}
	options := []cel.EnvOption{cel.ParserExpressionSizeLimit(longest), cel.ParserRecursionLimit(maxCountDepth), cel.ClearMacros()}
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.IntType))
	}
	for _, name := range parameters {
		options = append(options, cel.Variable(ofParameters+name, cel.IntType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	over := strings.Join(variables, ", ")
	ast, issues := env.Compile(text)
	if errs := issues.Errors(); len(errs) > 0 {
		return nil, fmt.Errorf("is not a CEL expression over %s such as %s%s: %s", over, example, orParameters(parameters), errs[0].Message)
	}
	if !ast.OutputType().IsExactType(gives) {
		return nil, fmt.Errorf("gives a %s; write a CEL expression over %s that gives a %s, such as %s", ast.OutputType(), over, gives, example)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCountCost))
	if err != nil {
		return nil, fmt.Errorf("cannot be evaluated: %w", err)
	}
	a := &arithmetic{program: program}
	for reference := range maps.Values(ast.NativeRep().ReferenceMap()) {
		if name, ok := strings.CutPrefix(reference.Name, ofParameters); ok && !slices.Contains(a.parameters, name) {
			a.parameters = append(a.parameters, name)
		}
	}
	return a, nil
}

// values returns the values of the parameters that the expression uses, as its variables.
func (a *arithmetic) values(of map[string]v1alpha1.Value) (map[string]any, error) {
	variables := map[string]any{}
	for _, name := range a.parameters {
		n, err := strconv.ParseInt(of[name].String(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("needs the parameter %s, which has no value", name)
		}
		variables[ofParameters+name] = n
	}
	return variables, nil
}

// compileCount compiles a System's replicas.count, or the count of a component. The expression uses
// the integer f and the System's parameters of type Integer, and gives an integer.
func compileCount(text string, parameters []string) (*countExpression, error) {
	a, err := compileArithmetic(text, maxCountLength, cel.IntType, "3*f+1", []string{"f"}, parameters)
	if err != nil {
		return nil, err
	}
	return &countExpression{field: "replicas.count", text: text, arithmetic: a}, nil
}

// orParameters names the parameters that are further variables.
func orParameters(parameters []string) string {
	if len(parameters) == 0 {
		return ""
	}
	return ", or over parameters of type Integer (" + ofParameters + strings.Join(parameters, ", "+ofParameters) + ")"
}

// replicas evaluates the expression for f and the values of parameters. It may also count the pods
// of a component.
func (c *countExpression) replicas(f int32, values map[string]v1alpha1.Value) (int32, error) {
	variables, err := c.values(values)
	if err != nil {
		return 0, fmt.Errorf("%s %q %w", c.field, c.text, err)
	}
	variables["f"] = int64(f)
	out, _, err := c.program.Eval(variables)
	if err != nil {
		return 0, fmt.Errorf("%s %q fails for f = %d: %w", c.field, c.text, f, err)
	}
	n, ok := out.Value().(int64)
	if !ok || n < 1 || n > maxReplicasShard {
		return 0, fmt.Errorf("%s %q gives %v replicas for f = %d; 1 to %d are possible", c.field, c.text, out.Value(), f, maxReplicasShard)
	}
	return int32(n), nil
}
