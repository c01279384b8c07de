package claims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
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

// run evaluates one program over results, term by term as its author wrote it. It is the top of
// five parts. Each part knows only the parts below it.
type run struct {
	*recorder
	// capacities are the outcomes of searches.
	capacities []results.Capacity
}

// recorder keeps the parts of a verdict, as data and in words.
type recorder struct {
	*estimator
	// terms are the comparisons as data, if detailed is set.
	terms    []results.ClaimTerm
	detailed bool
	effects  []Effect // what the terms measure
	outlook  outlook
}

// estimator gives quantities their intervals.
type estimator struct {
	*pointReader
	made   map[string]model // of all points, by metric and rounds
	models int              // points of the greatest model that an interval is of
	rounds bool             // some interval is that of the differences of rounds
}

// pointReader reads points. It notes which points it read, and which values are missing.
type pointReader struct {
	*program
	*readings
	*findings
	groups map[metric][]int32 // points whose trials lie in groups
}

// findings are facts from evaluating a claim that a reader of the verdict must know.
type findings struct {
	missing []string         // what was needed and is not there
	notes   []string         // what was compared, in the order of the expression
	caveats []results.Caveat // what a reader of the numbers must know
	ofTrial []remark         // the same of single trials
	// metricsAt are the metrics that were read at a point.
	metricsAt map[int32][]metric
	counts    []int   // trials of the points that were read
	unknown   bool    // some comparison had no interval
	looked    []int32 // points whose trials were looked at
	latency   []int32 // points whose mean latency was read
}

// readings give the numbers of points from their trials. They note nothing.
type readings struct {
	points  []results.PointResult
	samples samples // the trials that count, by point
	lines   []results.TrialLine
	kept    map[mean][]float64 // values that were read once
}

func newRun(p *program, points []results.PointResult, lines []results.TrialLine) *run {
	s := samples{}
	for _, line := range lines {
		if line.Outcome == stats.Succeeded {
			s[line.PointIndex] = append(s[line.PointIndex], line)
		}
	}
	for _, trials := range s { // what is drawn or paired must not depend on the order in which trials are seen
		slices.SortFunc(trials, func(a, b results.TrialLine) int {
			return cmp.Or(cmp.Compare(a.Repetition, b.Repetition), cmp.Compare(a.Number, b.Number))
		})
	}
	reader := &pointReader{
		program: p, readings: &readings{points: points, samples: s, lines: lines, kept: map[mean][]float64{}},
		findings: &findings{metricsAt: map[int32][]metric{}}, groups: map[metric][]int32{},
	}
	return &run{recorder: &recorder{estimator: &estimator{pointReader: reader, made: map[string]model{}}, outlook: outlook{look: p.at()}}}
}

// truth evaluates an expression of type bool. Both sides of && and || are evaluated, so that the
// message shows every comparison.
func (r *run) truth(e celast.Expr) judged {
	if e.Kind() == celast.LiteralKind {
		sure := judged{truth: holds, favour: evidence{tests: 1}, against: noEvidence}
		if e.AsLiteral() == types.True {
			return sure
		}
		return sure.not()
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
	if _, ok := functions[call.FunctionName()]; ok {
		return r.decide(call, e.ID())
	}
	return r.compare(call, e.ID())
}

// compare decides a < b by the interval of b - a.
func (r *run) compare(call celast.CallExpr, id int64) judged {
	left, right := r.quantity(call.Args()[0]), r.quantity(call.Args()[1])
	if len(r.missing) > 0 {
		return undecided
	}
	less, greater := left, right
	orEqual := call.FunctionName() == operators.LessEquals || call.FunctionName() == operators.GreaterEquals
	if call.FunctionName() == operators.Greater || call.FunctionName() == operators.GreaterEquals {
		less, greater = right, left
	}
	symbol, _ := operators.FindReverse(call.FunctionName())
	if absent := cmp.Or(left.absent, right.absent); absent != "" {
		r.notes = append(r.notes, fmt.Sprintf("%s cannot be decided: %s", symbol, absent))
		return undecided
	}
	d, counts := r.difference(less, greater)
	r.counts = append(r.counts, counts...)
	r.unknown = r.unknown || !d.Known
	if left.measured() != right.measured() && (ofOneSession(left, r.readings) || ofOneSession(right, r.readings)) {
		r.caveat(CaveatOneSession, oneSession)
	}
	verdict := unsettled
	switch {
	case !d.Known:
	case d.Low > 0 || orEqual && d.Low == 0:
		verdict = holds
	case d.High < 0 || !orEqual && d.High == 0:
		verdict = fails
	default:
		r.outlook.more(d, counts, 0, math.Inf(1))
	}
	a, _ := r.estimate(left)
	b, _ := r.estimate(right)
	r.notes = append(r.notes, fmt.Sprintf("%s %s %s %s: difference %s", show(a, left.unit), symbol, show(b, right.unit), verdict, show(d, unitOf(left, right))))
	j := sign(d, verdict)
	r.term(id, symbol, left, right, verdict, j.favour.least(j.against))
	return j
}

// unitOf is the unit of a comparison: a plain number beside a throughput is a throughput, too.
func unitOf(a, b quantity) unit {
	if a.unit == plain {
		return b.unit
	}
	return a.unit
}

// quantity evaluates an expression of a type other than bool. A missing value is noted; the value
// means nothing then.
func (r *run) quantity(e celast.Expr) quantity {
	q := r.value(e)
	if !isFinite(q.value) && len(r.missing) == 0 {
		r.missing = append(r.missing, "a division by zero, or a number too large")
	}
	return q
}

func (r *run) value(e celast.Expr) quantity {
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
	if _, ok := functions[call.FunctionName()]; ok {
		return r.readCall(call, e.ID())
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
		return with(constant(0, q.unit), q, quantity.minus)
	}
	a, b := r.quantity(args[0]), r.quantity(args[1])
	switch call.FunctionName() {
	case operators.Add:
		return with(a, b, quantity.plus)
	case operators.Subtract:
		return with(a, b, quantity.minus)
	case operators.Multiply:
		return with(a, b, quantity.times)
	}
	return with(a, b, r.over)
}

// over is a / b. The linear interval of a quotient is bounded even if the denominator may be 0, so
// this function checks the denominator.
func (r *estimator) over(a, b quantity) quantity {
	q := a.over(b)
	if !b.signed {
		return q
	}
	if e, _ := r.estimate(b); e.Known && e.Low <= 0 && e.High >= 0 {
		q.unbounded = true
		r.caveat(CaveatNearZero, stats.DenominatorNearZero.Text())
	}
	return q
}

// readCall is the value of a function that reads results.
func (r *run) readCall(call celast.CallExpr, id int64) quantity {
	a, err := r.arguments(call, id)
	if err != nil { // compile and Check have refused it
		r.missing = append(r.missing, err.Error())
		return quantity{}
	}
	switch f := functions[call.FunctionName()]; f.points {
	case ofTwoVariants:
		return r.ratioOf(a)
	case curvesOfTwo:
		return r.crossover(a)
	case atKnee:
		return r.knee(a, unitOfType(f.result))
	case ofSearch:
		return r.capacity(a)
	case ofSeries:
		return r.shape(a)
	}
	return r.readPoint(a, call.FunctionName())
}

// readPoint is the value of a function of one point, which it may choose among several.
func (r *run) readPoint(a arguments, name string) quantity {
	f := functions[name]
	found := r.find(a.at)
	asked := showCoordinates(a.at)
	switch {
	case len(found) == 0:
		r.missing = append(r.missing, "no point has "+asked)
	case len(found) > 1 && !f.open():
		r.missing = append(r.missing, fmt.Sprintf("%d points match %s and %s reads one", len(found), asked, name))
	}
	by := a.metric // what chooses among several points
	if f.points == atPeak {
		by = metric{name: stats.Throughput}
	}
	var best results.PointResult
	value, some := 0.0, false
	for _, p := range found {
		xs := r.valuesAt(p, by)
		if len(xs) == 0 {
			continue
		}
		if x := stats.Aggregate(xs).Mean; !some || f.points == leastMean && x < value || f.points != leastMean && x > value {
			best, value, some = p, x, true
		}
	}
	if !some {
		return quantity{}
	}
	at := func(p results.PointResult) quantity { return r.meanAt(p, a.metric, unitOfType(f.result)) }
	switch f.points {
	case atPeak:
		return r.choose(best, r.bestOrTied(found, by, false), "the peak", at)
	case greatestMean:
		return r.choose(best, r.bestOrTied(found, by, false), "the greatest mean", at)
	case leastMean:
		return r.choose(best, r.bestOrTied(found, by, true), "the least mean", at)
	}
	return at(best)
}

// find lists the points with these coordinates.
func (r *readings) find(at []coordinate) []results.PointResult {
	var found []results.PointResult
	for _, p := range r.points {
		if matches(p, at) {
			found = append(found, p)
		}
	}
	return found
}

// valuesAt are a metric of the valid trials of a point, by repetition. It notes if there is no
// trial, or if a trial lacks the metric.
func (r *pointReader) valuesAt(p results.PointResult, m metric) []float64 {
	if !slices.Contains(r.looked, p.Index) {
		r.looked = append(r.looked, p.Index)
	}
	r.noteLatency(p, m)
	if len(r.samples[p.Index]) == 0 {
		r.missing = append(r.missing, r.whyEmpty(p))
		return nil
	}
	var xs []float64
	for _, line := range r.samples[p.Index] {
		x, err := m.of(line)
		if err != nil {
			r.missing = append(r.missing, showPoint(p.Coordinates)+": "+err.Error())
			return nil
		}
		if x.remark != "" {
			r.remark(x.remark, line.Number)
		}
		xs = append(xs, x.value)
	}
	return xs
}

// meanAt is the mean of a metric at a point.
func (r *pointReader) meanAt(p results.PointResult, m metric, u unit) quantity {
	xs := r.valuesAt(p, m)
	if len(xs) == 0 {
		return quantity{}
	}
	if !slices.Contains(r.metricsAt[p.Index], m) {
		r.metricsAt[p.Index] = append(r.metricsAt[p.Index], m)
	}
	input := mean{point: p.Index, metric: m}
	if slices.Contains(r.inGroups(m), p.Index) {
		r.caveat(CaveatTrialsInGroups, fmt.Sprintf("at %s %s", showPoint(p.Coordinates), stats.ApartTrials.Text()), showPoint(p.Coordinates))
	}
	return quantity{value: stats.Aggregate(xs).Mean, unit: u, gradient: map[mean]float64{input: 1}, signed: m.signed(), multiple: true}
}

// inGroups are the points whose trials lie in groups far apart, for one metric.
func (r *pointReader) inGroups(m metric) []int32 {
	if found, ok := r.groups[m]; ok {
		return found
	}
	points := sortedKeys(r.samples)
	trials := make([][]float64, len(points))
	for i, point := range points {
		trials[i], _ = r.values(mean{point: point, metric: m})
	}
	found := []int32{}
	for _, i := range stats.Groups(trials) {
		found = append(found, points[i])
	}
	r.groups[m] = found
	return found
}

// whyEmpty says why a point has no valid trial.
func (r *readings) whyEmpty(p results.PointResult) string {
	text := showPoint(p.Coordinates) + " has no valid trial"
	if x := excludedAt(p.Index, r.lines); x.left > 0 {
		return text + " (" + x.why + ")"
	}
	return text
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

// remark is what must be known of the numbers of some trials.
type remark struct {
	text   string
	trials []int32
}

func (r *findings) remark(text string, trial int32) {
	i := slices.IndexFunc(r.ofTrial, func(m remark) bool { return m.text == text })
	if i < 0 {
		i = len(r.ofTrial)
		r.ofTrial = append(r.ofTrial, remark{text: text})
	}
	if !slices.Contains(r.ofTrial[i].trials, trial) {
		r.ofTrial[i].trials = append(r.ofTrial[i].trials, trial)
	}
}

// maxNamedTrials keeps a remark short.
const maxNamedTrials = 6

func (m remark) String() string {
	if len(m.trials) == 1 {
		return fmt.Sprintf("trial %d: %s", m.trials[0], m.text)
	}
	var names []string
	for _, t := range m.trials[:min(len(m.trials), maxNamedTrials)] {
		names = append(names, strconv.Itoa(int(t)))
	}
	if more := len(m.trials) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("trials %s: %s", strings.Join(names, ", "), m.text)
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
