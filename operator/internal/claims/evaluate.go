package claims

import (
	"fmt"
	"slices"
	"strings"
	"time"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// truth has three values: a comparison whose interval straddles its bound is unsettled.
type truth int

const (
	unsettled truth = iota
	holds
	fails
)

func (t truth) String() string {
	return map[truth]string{unsettled: "cannot be told apart", holds: "holds", fails: "does not hold"}[t]
}

func (t truth) not() truth {
	return map[truth]truth{unsettled: unsettled, holds: fails, fails: holds}[t]
}

// and is Kleene's conjunction.
func (t truth) and(u truth) truth {
	switch {
	case t == fails || u == fails:
		return fails
	case t == holds && u == holds:
		return holds
	}
	return unsettled
}

// run evaluates one program over results.
type run struct {
	*program
	points  []results.PointResult
	samples samples
	lines   []results.TrialLine

	missing []string // what was needed and is not there
	notes   []string // what was compared, in the order of the expression
	counts  []int    // trials of the points that were read
	unknown bool     // some comparison had no interval
}

func newRun(p *program, points []results.PointResult, lines []results.TrialLine) *run {
	s := samples{}
	for _, line := range lines {
		if line.Outcome == stats.Succeeded {
			s[line.PointIndex] = append(s[line.PointIndex], line)
		}
	}
	return &run{program: p, points: points, samples: s, lines: lines}
}

// truth evaluates an expression of type bool. Both sides of && and || are evaluated, so that the message shows every comparison.
func (r *run) truth(e celast.Expr) truth {
	if e.Kind() == celast.LiteralKind {
		if e.AsLiteral() == types.True {
			return holds
		}
		return fails
	}
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		a, b := r.truth(args[0]), r.truth(args[1])
		return a.and(b)
	case operators.LogicalOr:
		a, b := r.truth(args[0]), r.truth(args[1])
		return a.not().and(b.not()).not()
	case operators.LogicalNot:
		return r.truth(args[0]).not()
	}
	return r.compare(call)
}

// compare decides a < b by the interval of b - a.
func (r *run) compare(call celast.CallExpr) truth {
	left, right := r.quantity(call.Args()[0]), r.quantity(call.Args()[1])
	if len(r.missing) > 0 {
		return unsettled
	}
	less, greater := left, right
	orEqual := call.FunctionName() == operators.LessEquals || call.FunctionName() == operators.GreaterEquals
	if call.FunctionName() == operators.Greater || call.FunctionName() == operators.GreaterEquals {
		less, greater = right, left
	}
	d, counts := r.samples.difference(less, greater)
	r.counts = append(r.counts, counts...)
	r.unknown = r.unknown || !d.Known
	verdict := unsettled
	switch {
	case d.Low > 0 || orEqual && d.Low == 0:
		verdict = holds
	case d.High < 0 || !orEqual && d.High == 0:
		verdict = fails
	}
	symbol, _ := operators.FindReverse(call.FunctionName())
	a, _ := r.samples.estimate(left)
	b, _ := r.samples.estimate(right)
	r.notes = append(r.notes, fmt.Sprintf("%s %s %s %s: difference %s", show(a, left.unit), symbol, show(b, right.unit), verdict, show(d, unitOf(left, right))))
	return verdict
}

// unitOf is the unit of a comparison: a plain number beside a throughput is one too.
func unitOf(a, b quantity) unit {
	if a.unit == plain {
		return b.unit
	}
	return a.unit
}

// quantity evaluates an expression of a type other than bool. What is missing is noted; the value means nothing then.
func (r *run) quantity(e celast.Expr) quantity {
	if e.Kind() == celast.LiteralKind {
		switch v := e.AsLiteral().(type) {
		case types.Int:
			return constant(float64(v), plain)
		case types.Double:
			return constant(float64(v), plain)
		}
	}
	call := e.AsCall()
	args := call.Args()
	if f, ok := functions[call.FunctionName()]; ok {
		return r.read(f, call)
	}
	switch call.FunctionName() {
	case "duration":
		text, _ := scalar(args[0])
		d, err := time.ParseDuration(text)
		if err != nil {
			r.missing = append(r.missing, fmt.Sprintf("%q is not a duration", text))
		}
		return constant(float64(d)/float64(time.Millisecond), milliseconds)
	case operators.Negate:
		q := r.quantity(args[0])
		return constant(0, q.unit).minus(q)
	}
	a, b := r.quantity(args[0]), r.quantity(args[1])
	var q quantity
	switch call.FunctionName() {
	case operators.Add:
		return a.plus(b)
	case operators.Subtract:
		return a.minus(b)
	case operators.Multiply:
		return a.times(b)
	case operators.Divide:
		q = a.over(b)
	}
	if !isFinite(q.value) && len(r.missing) == 0 {
		r.missing = append(r.missing, "a division by zero")
	}
	return q
}

// read is the value of a function that reads results.
func (r *run) read(f function, call celast.CallExpr) quantity {
	at, err := r.selector(call)
	if err != nil { // compile and Check have refused it
		r.missing = append(r.missing, err.Error())
		return quantity{}
	}
	var found []results.PointResult
	for _, p := range r.points {
		if matches(p, at) {
			found = append(found, p)
		}
	}
	asked := showSelector(at)
	switch {
	case len(found) == 0:
		r.missing = append(r.missing, "no point has "+asked)
	case len(found) > 1 && !f.greatest:
		r.missing = append(r.missing, fmt.Sprintf("%d points match %s and %s reads one", len(found), asked, call.FunctionName()))
	}
	best := quantity{}
	for _, p := range found {
		mine := r.samples[p.Index]
		if len(mine) == 0 {
			r.missing = append(r.missing, r.whyEmpty(p))
			continue
		}
		xs := make([]float64, len(mine))
		for i, line := range mine {
			xs[i] = stats.Of(line, f.metric)
		}
		if value := stats.Aggregate(xs).Mean; best.gradient == nil || value > best.value {
			best = quantity{value: value, unit: unitOfType(f.result), gradient: map[mean]float64{{point: p.Index, metric: f.metric}: 1}}
		}
	}
	return best
}

// whyEmpty says why a point has no valid trial.
func (r *run) whyEmpty(p results.PointResult) string {
	reasons := map[string]int{}
	for _, line := range r.lines {
		if line.PointIndex == p.Index && line.Outcome != stats.Succeeded {
			reasons[strings.TrimSuffix(line.Outcome+" "+line.Reason, " ")]++
		}
	}
	text := showPoint(p.Coordinates) + " has no valid trial"
	var parts []string
	for _, reason := range sortedKeys(reasons) {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	if len(parts) == 0 {
		return text
	}
	return text + " (" + strings.Join(parts, ", ") + ")"
}

func unitOfType(t *types.Type) unit {
	switch {
	case t.IsExactType(latencyType):
		return milliseconds
	case t.IsExactType(throughputType):
		return perSecond
	}
	return plain
}

func showSelector(at []coordinate) string {
	if len(at) == 0 {
		return "any coordinates"
	}
	parts := make([]string, len(at))
	for i, c := range at {
		parts[i] = c.axis + "=" + c.value
	}
	return strings.Join(parts, ", ")
}

// compact removes what was noted twice, in order.
func compact(texts []string) []string {
	var once []string
	for _, t := range texts {
		if !slices.Contains(once, t) {
			once = append(once, t)
		}
	}
	return once
}
