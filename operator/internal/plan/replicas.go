package plan

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
)

// Bounds of replicas.count. The expression is a line of arithmetic; whatever needs more than this
// is a mistake or an attack.
const (
	maxCountLength   = 128
	maxCountDepth    = 16
	maxCountCost     = 1000
	maxReplicasShard = 200
)

// countExpression is a compiled replicas.count, or count of a component.
type countExpression struct {
	field   string // that it is of, for messages
	text    string
	program cel.Program
}

// countEnvironment is made once: it costs a millisecond and holds no state.
var countEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("f", cel.IntType),
		cel.ParserExpressionSizeLimit(maxCountLength),
		cel.ParserRecursionLimit(maxCountDepth),
		cel.ClearMacros(),
	)
})

// compileCount compiles a System's replicas.count, an expression over the integer f that gives an
// integer.
func compileCount(text string) (*countExpression, error) {
	if len(text) > maxCountLength {
		return nil, fmt.Errorf("is longer than %d characters", maxCountLength)
	}
	env, err := countEnvironment()
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	ast, issues := env.Compile(text)
	if errs := issues.Errors(); len(errs) > 0 {
		return nil, fmt.Errorf("is not a CEL expression over f such as 3*f+1: %s", errs[0].Message)
	}
	if ast.OutputType() != cel.IntType {
		return nil, fmt.Errorf("gives a %s; a CEL expression over f that gives an integer is wanted, such as 3*f+1", ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(maxCountCost))
	if err != nil {
		return nil, fmt.Errorf("cannot be evaluated: %w", err)
	}
	return &countExpression{field: "replicas.count", text: text, program: program}, nil
}

// replicas evaluates the expression for f. Pods of a component are called replicas, too.
func (c *countExpression) replicas(f int32) (int32, error) {
	out, _, err := c.program.Eval(map[string]any{"f": int64(f)})
	if err != nil {
		return 0, fmt.Errorf("%s %q fails for f = %d: %w", c.field, c.text, f, err)
	}
	n, ok := out.Value().(int64)
	if !ok || n < 1 || n > maxReplicasShard {
		return 0, fmt.Errorf("%s %q gives %v replicas for f = %d; 1 to %d are possible", c.field, c.text, out.Value(), f, maxReplicasShard)
	}
	return int32(n), nil
}
