package claims

import (
	"maps"
	"math"
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Means that are assumed if the paper gives no value. The search for means with which a claim holds
// starts there.
const (
	assumedThroughput    = 1000.0 // tx/s
	assumedLatencyMillis = 10.0
)

// assumable are the metrics whose means may be assumed: they deviate with the speed of a trial.
// Rates, recoveries and measurements are not among them.
var assumable = map[string]struct {
	start float64
	in    func(*results.TrialLine) *float64
}{
	stats.Throughput:  {assumedThroughput, func(l *results.TrialLine) *float64 { return &l.Throughput }},
	stats.MeanLatency: {assumedLatencyMillis, func(l *results.TrialLine) *float64 { return &l.MeanMillis }},
	p10Latency:        {assumedLatencyMillis, func(l *results.TrialLine) *float64 { return &l.P10Millis }},
	stats.P50Latency:  {assumedLatencyMillis, func(l *results.TrialLine) *float64 { return &l.P50Millis }},
	stats.P90Latency:  {assumedLatencyMillis, func(l *results.TrialLine) *float64 { return &l.P90Millis }},
	stats.P95Latency:  {assumedLatencyMillis, func(l *results.TrialLine) *float64 { return &l.P95Millis }},
	stats.P99Latency:  {assumedLatencyMillis, func(l *results.TrialLine) *float64 { return &l.P99Millis }},
	stats.P999Latency: {assumedLatencyMillis, func(l *results.TrialLine) *float64 { return &l.P999Millis }},
}

// assumption is an experiment that is made such that a claim holds.
type assumption struct {
	simulation
	free  map[mean]bool // what the paper does not say
	moved map[mean]bool // for a comparison that is made
	last  []mean        // those of the comparison in the making
}

// mostMoves is how often a mean is moved before a claim counts as one that cannot hold.
const mostMoves = 500

// assume finds means for points of which the paper says nothing, so that a claim holds. In each
// comparison, the greater side is greater by the share effect, or by more if another comparison
// demands it. A quantity has its reported value. The search starts from equal means, and moves the
// mean that changes the comparison most. The result is false if the search fails. It is false for
// claims about curves, since a curve would have to be assumed.
func (s simulation) assume(c v1alpha1.Claim, p *program, effect float64) (simulation, bool) {
	a := assumption{simulation: simulation{points: s.all, deviation: s.deviation, all: s.all}, free: map[mean]bool{}, moved: map[mean]bool{}}
	for i, q := range s.all {
		line := s.lines[i]
		for name, m := range assumable {
			if x := m.in(&line); math.IsNaN(*x) {
				*x, a.free[mean{point: q.Index, metric: metric{name: name}}] = m.start, true
			}
		}
		a.means = append(a.means, line)
	}
	exact := 0 // of the comparisons, in order, that were made to differ by just the effect
	for range mostMoves {
		r := newRun(p, a.points, a.means)
		wants, ok := r.wants(c, p, effect)
		if !ok || len(r.missing) > 0 {
			return simulation{}, false
		}
		for exact < len(wants) && !wants[exact].more() && !wants[exact].less() {
			exact++
			for _, m := range a.last { // what the next one moves is another
				a.moved[m] = true
			}
		}
		next := exact
		if exact == len(wants) {
			next = slices.IndexFunc(wants, want.more)
		}
		if next < 0 {
			return a.simulation, true
		}
		if !a.move(wants[next]) {
			return simulation{}, false
		}
	}
	return simulation{}, false
}

// want is by how much a quantity is to change.
type want struct {
	of    quantity
	by    float64
	small float64 // what does not matter
}

func (w want) more() bool { return w.by > w.small }
func (w want) less() bool { return w.by < -w.small }

// wants are the changes with which a claim holds by just the effect. It is false for quantities
// that cannot be assumed.
func (r *run) wants(c v1alpha1.Claim, p *program, effect float64) (wants []want, ok bool) {
	if p.isComparison() {
		return r.comparisonWants(p.ast.Expr(), effect)
	}
	q, ok := r.assumedQuantity(p.ast.Expr())
	if !ok || len(r.missing) > 0 || c.Reported == nil {
		return nil, false
	}
	b, err := newBound(*c.Reported, c.Within, unitOfType(p.result))
	if err != nil {
		return nil, false
	}
	target := (b.low + b.high) / 2
	return []want{{of: q, by: target - q.value, small: 1e-6 * math.Abs(target)}}, true
}

// comparisonWants are the changes for comparisons that must all hold.
func (r *run) comparisonWants(e celast.Expr, effect float64) ([]want, bool) {
	if e.Kind() != celast.CallKind {
		return nil, false
	}
	call := e.AsCall()
	var less, greater quantity
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd:
		a, ok := r.comparisonWants(call.Args()[0], effect)
		b, too := r.comparisonWants(call.Args()[1], effect)
		return slices.Concat(a, b), ok && too
	case "significantly_different":
		args, err := r.arguments(call, e.ID())
		if err != nil {
			return nil, false
		}
		pair := r.pairOf(args)
		less, greater = pair.a, pair.b
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		left, ok := r.assumedQuantity(call.Args()[0])
		right, too := r.assumedQuantity(call.Args()[1])
		if !ok || !too {
			return nil, false
		}
		less, greater = left, right
		if name == operators.Greater || name == operators.GreaterEquals {
			less, greater = right, left
		}
	default:
		return nil, false
	}
	if len(r.missing) > 0 {
		return nil, false
	}
	d := with(greater, less, quantity.minus)
	whole := math.Max(math.Abs(less.value), math.Abs(greater.value))
	return []want{{of: d, by: effect*whole - d.value, small: 1e-6 * whole}}, true
}

// assumedQuantity is a quantity of single points, as a function of their means.
func (r *run) assumedQuantity(e celast.Expr) (quantity, bool) {
	plainPoints := true
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(part celast.Expr) {
		if part.Kind() == celast.CallKind {
			f, reads := functions[part.AsCall().FunctionName()]
			plainPoints = plainPoints && (!reads || f.points == onePoint || f.points == ofTwoVariants)
		}
	}))
	if !plainPoints {
		return quantity{}, false
	}
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == "ratio" {
		a, err := r.arguments(e.AsCall(), e.ID())
		if err != nil {
			return quantity{}, false
		}
		pair := r.pairOf(a)
		return r.over(pair.a, pair.b), true
	}
	q := r.quantity(e)
	return q, q.own == nil && q.absent == ""
}

// move changes the free mean that changes a quantity most. It prefers a mean that no other
// comparison has moved, and of equal ones, one that grows. It is false if there is no free mean.
func (a *assumption) move(w want) bool {
	var best, kept mean
	most := 0.0
	for _, m := range slices.SortedFunc(maps.Keys(w.of.gradient), mean.compare) {
		at := mean{point: m.point, metric: m.metric}
		x := a.at(at)
		if !a.free[at] || x == nil {
			continue
		}
		g := w.of.gradient[m]
		weight := math.Abs(g * *x)
		if !a.moved[at] {
			weight *= 1e6
		}
		if weight > most*(1+1e-9) || weight > most*(1-1e-9) && g*w.by > 0 && w.of.gradient[best]*w.by < 0 {
			best, kept, most = m, at, weight
		}
	}
	if most == 0 {
		return false
	}
	x := a.at(kept)
	*x = math.Max(*x/2, *x+w.by/w.of.gradient[best]) // a mean stays above 0
	a.last = append(a.last, kept)
	return *x < stats.Limit
}

// at is where the mean of a point is kept.
func (a *assumption) at(m mean) *float64 {
	of, ok := assumable[m.metric.name]
	for i, p := range a.points {
		if ok && p.Index == m.point {
			return of.in(&a.means[i])
		}
	}
	return nil
}
