package plan

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/capacity"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// MaxSearches is the most searches of an experiment: its status has the result of each.
const MaxSearches = 32

// Names of the axes that are loads.
const (
	rateAxis    = "rate"
	clientsAxis = "clients"
)

// Search is a search along an axis. Each combination of the other axes, called a variant, has a
// search of its own.
type Search struct {
	capacity.Search
	Objective capacity.Objective
	// Axis is the name of the axis, axis its index in the plan's axes.
	Axis string
	axis int
}

// searchOf returns the search of a spec with its profile applied, or nil. It reads invalid values
// as 0.
func searchOf(spec v1alpha1.ExperimentSpec) *Search {
	i := slices.IndexFunc(spec.Sweep, func(a v1alpha1.Axis) bool { return a.Search != nil })
	if i < 0 {
		return nil
	}
	s, o := spec.Sweep[i].Search, spec.Sweep[i].Search.Objective
	at := i
	if len(spec.Systems) > 1 {
		at++
	}
	return &Search{
		Search: capacity.Search{Low: float64(s.From), High: float64(s.To), Precision: s.Precision.OrZero(), MaxTrials: int(s.Trials)},
		Objective: capacity.Objective{Mean: o.MeanLatency.OrZero(), P50: o.P50Latency.OrZero(), P90: o.P90Latency.OrZero(), P99: o.P99Latency.OrZero(),
			P999: o.P999Latency.OrZero(), Knee: o.KneeLatency.OrZero(), Goodput: o.Goodput.OrZero()},
		Axis: spec.Sweep[i].Axis, axis: at,
	}
}

// searchAxis makes the axis with the loads that a search may try. The axis is empty after an error.
func (e *axisBuilder) searchAxis(path *field.Path, written v1alpha1.Axis) axis {
	a, s := axis{name: written.Axis, path: path}, written.Search
	before := len(e.errs)
	e.checkSearchedAxis(path, written)
	e.checkObjective(path.Child("objective"), s.Objective)
	most := int64(100000000)
	if written.Axis == clientsAxis {
		most = 100000
	}
	switch share, err := s.Precision.Share(); {
	case s.From < 1 || s.From > most:
		e.add(field.Invalid(path.Child("from"), s.From, fmt.Sprintf("must be from 1 to %d", most)))
	case s.To <= s.From || s.To > most:
		e.add(field.Invalid(path.Child("to"), s.To, fmt.Sprintf("must be more than from, %d, and at most %d", s.From, most)))
	case written.Axis == clientsAxis && s.From < int64(e.spec.Clients.Nodes):
		e.add(field.Invalid(path.Child("from"), s.From, fmt.Sprintf("cannot be spread over %d client pods (clients.nodes); use at least as many clients as pods", e.spec.Clients.Nodes)))
	case err != nil || share < 0.005 || share > 0.5:
		e.add(field.Invalid(path.Child("precision"), string(s.Precision), "must be a percentage from 0.5% to 50%, such as 5%"))
	case s.Trials < 1 || s.Trials > 200:
		e.add(field.Invalid(path.Child("trials"), s.Trials, "must be from 1 to 200"))
	}
	if len(e.errs) > before {
		return a
	}
	if e.search != nil {
		e.add(field.Invalid(path, written.Axis, fmt.Sprintf("axis %q has a search already; one axis may", e.search.Axis)))
		return a
	}
	search := searchOf(e.spec)
	if err := search.Validate(); err != nil {
		e.add(field.Invalid(path, fmt.Sprintf("from %d, to %d, precision %s", s.From, s.To, s.Precision), err.Error()))
		return a
	}
	e.search = search
	for _, load := range search.Loads() {
		c := choice{label: strconv.FormatInt(load, 10), path: path}
		if written.Axis == clientsAxis {
			c.clients = ptr(int32(load))
		} else {
			c.rate = ptr(load)
		}
		a.choices = append(a.choices, c)
	}
	return a
}

func (e *fieldChecker) checkSearchedAxis(path *field.Path, written v1alpha1.Axis) {
	open := e.spec.Clients.Loop == v1alpha1.LoopOpen
	switch {
	case written.Axis != rateAxis && written.Axis != clientsAxis:
		e.add(field.NotSupported(path, written.Axis, []string{clientsAxis, rateAxis}))
	case written.Axis == rateAxis && !open:
		e.add(field.Invalid(path, written.Axis, "only an Open loop has a rate; set spec.clients.loop: Open, or search clients"))
	case written.Axis == clientsAxis && open:
		e.add(field.Invalid(path, written.Axis, "the clients of an Open loop are not its load; search rate, or set spec.clients.loop: Closed"))
	}
}

// checkObjective requires an objective, and the measurements for it.
func (e *fieldChecker) checkObjective(path *field.Path, o v1alpha1.LoadObjective) {
	if o == (v1alpha1.LoadObjective{}) {
		e.add(field.Required(path, "say what a trial must meet to carry its load, such as p99Latency: 20ms"))
	}
	for name, d := range map[string]v1alpha1.Duration{"meanLatency": o.MeanLatency, "p50Latency": o.P50Latency, "p90Latency": o.P90Latency,
		"p99Latency": o.P99Latency, "p999Latency": o.P999Latency} {
		if d != "" {
			_, errs := checkDuration(path.Child(name), d, bounds{time.Microsecond, time.Hour})
			e.add(errs...)
		}
	}
	if share, err := o.KneeLatency.Share(); o.KneeLatency != "" && (err != nil || share < 1.1 || share > 10) {
		e.add(field.Invalid(path.Child("kneeLatency"), string(o.KneeLatency), "must be a percentage from 110% to 1000%, such as 200% for twice the latency at the lowest load"))
	}
	if o.Goodput == "" {
		return
	}
	if share, err := o.Goodput.Share(); err != nil || share <= 0 || share > 1 {
		e.add(field.Invalid(path.Child("goodput"), string(o.Goodput), "must be a percentage above 0% and at most 100%, such as 95%"))
	}
	if e.spec.Clients.Loop != v1alpha1.LoopOpen {
		e.add(field.Invalid(path.Child("goodput"), string(o.Goodput), "only an Open loop offers requests; bound a latency, or set spec.clients.loop: Open"))
	}
}

// checkSearch refuses settings that exclude a search, and bounds its trials.
func (e *axisBuilder) checkSearch(points int) {
	if e.spec.Repetitions.Until != nil {
		e.add(field.Invalid(e.origin.repetitions().Child("until"), cmp.Or(e.spec.Repetitions.Until.RelativeCI, string(e.spec.Repetitions.Until.Claims)),
			"repetitions do not apply to a search, which has a precision of its own: remove it, and set sweep[].search.precision"))
	}
	if err := CheckAdditional(e.spec, points); err != nil {
		e.add(err)
	}
	path := e.axes[e.search.axis].path
	switch n := points / len(e.axes[e.search.axis].choices); {
	case n > MaxSearches:
		e.add(field.Invalid(path, n, fmt.Sprintf("the other axes make %d searches; at most %d are possible", n, MaxSearches)))
	case n*e.search.MaxTrials > MaxTrials:
		e.add(field.Invalid(path.Child("trials"), e.search.MaxTrials, fmt.Sprintf("%d searches make %d trials; at most %d are possible", n, n*e.search.MaxTrials, MaxTrials)))
	}
}

// leastBeyond is how many transactions of a trial should be slower than a percentile. With fewer,
// the percentile is about the few slowest only.
const leastBeyond = 10

// rarePercentiles warns of a percentile that is hardly known from trials at the lowest rate.
func (e *axisBuilder) rarePercentiles() []string {
	if e.search == nil || e.search.Axis != rateAxis {
		return nil
	}
	for _, p := range []struct {
		name  string
		bound time.Duration
		share float64
	}{{"p999Latency", e.search.Objective.P999, 0.001}, {"p99Latency", e.search.Objective.P99, 0.01}, {"p90Latency", e.search.Objective.P90, 0.1}} {
		if requests := e.search.Low * e.windows.Measure.Seconds(); p.bound > 0 && requests*p.share < leastBeyond {
			return []string{fmt.Sprintf("spec.sweep: at the rate %g a window of %s has %g requests, of which %.2g are slower than its %s: raise search.from, measure for longer, or bound a lower percentile",
				e.search.Low, e.windows.Measure, requests, requests*p.share, p.name)}
		}
	}
	return nil
}

// searches returns the number of searches.
func (p *Plan) searches() int { return len(p.Points) / len(p.Axes[p.Search.axis].Values) }

// variant returns a point's number among the searches, and its place on the ladder of loads.
func (p *Plan) variant(point int32) (variant, rung int) {
	stride := p.stride()
	loads := len(p.Axes[p.Search.axis].Values)
	return int(point)/(stride*loads)*stride + int(point)%stride, int(point) / stride % loads
}

// point is the reverse of variant.
func (p *Plan) point(variant, rung int) int32 {
	stride := p.stride()
	return int32(variant/stride*stride*len(p.Axes[p.Search.axis].Values) + rung*stride + variant%stride)
}

// stride is the distance between the indexes of points at neighbouring loads.
func (p *Plan) stride() int {
	stride := 1
	for _, a := range p.Axes[p.Search.axis+1:] {
		stride *= len(a.Values)
	}
	return stride
}

// tried is a valid trial of a search, with its number, its load and its measurements.
type tried struct {
	number int32
	load   float64
	capacity.Measured
}

// weigh returns the state of a search after these trials. unknown says why it cannot go on.
func (s *Search) weigh(trials []tried) (state capacity.State, unknown string) {
	judged, unknown := s.judge(trials)
	if unknown != "" {
		return capacity.State{}, unknown
	}
	state, err := s.Next(judged)
	if err != nil { // admission refuses such a search
		return capacity.State{}, err.Error()
	}
	if s.Objective.Knee > 0 && judged == nil {
		state.Next = 0 // the lowest load
	}
	return state, ""
}

// referenceTrials is how many trials at the lowest load determine the reference of a knee.
const referenceTrials = 3

// reference returns the mean latency of the first trials at the lowest load, in the order in which
// trials ran. ok is false if there are too few. A trial that committed nothing does not count.
func (s *Search) reference(trials []tried) (mean time.Duration, ok bool) {
	n := 0
	for _, t := range trials {
		if t.load == s.Low && t.Mean > 0 && n < referenceTrials {
			mean += t.Mean
			n++
		}
	}
	return mean / referenceTrials, n == referenceTrials
}

// judge returns for each trial, in order of time, whether it met the objective. unknown names a
// trial that cannot be judged. A search for a knee judges no trial before it has its reference.
func (s *Search) judge(trials []tried) (judged []capacity.Trial, unknown string) {
	slices.SortFunc(trials, func(a, b tried) int { return cmp.Compare(a.number, b.number) })
	objective := s.Objective
	if objective.Knee > 0 {
		mean, ok := s.reference(trials)
		if !ok {
			if len(trials) >= s.MaxTrials {
				return nil, fmt.Sprintf("there is no reference for the knee: too few of %d trials at the lowest load committed anything", len(trials))
			}
			return nil, ""
		}
		objective = objective.WithReference(mean)
	}
	for _, t := range trials {
		met, err := objective.Met(t.Measured)
		if err != nil {
			return nil, fmt.Sprintf("trial %d cannot be judged: %v", t.number, err)
		}
		judged = append(judged, capacity.Trial{Load: t.load, Met: met})
	}
	return judged, ""
}

// measuredOf reads the measurements from a trial's headline.
func measuredOf(h *v1alpha1.Headline) capacity.Measured {
	if h == nil {
		return capacity.Measured{}
	}
	micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	return capacity.Measured{
		OfAll:     ofAllOf(h.OfAll),
		Committed: h.Committed, Failed: h.Errors + h.Timeouts + h.Unsent, Offered: h.Offered, Mean: micros(h.MeanLatencyMicroseconds), P50: micros(h.P50LatencyMicroseconds),
		P90: micros(h.P90LatencyMicroseconds), P99: micros(h.P99LatencyMicroseconds), P999: micros(h.P999LatencyMicroseconds),
	}
}

// measuredBy reads the same measurements from a trial's line.
func measuredBy(l results.TrialLine) capacity.Measured {
	return capacity.Measured{
		OfAll:     ofAllBy(l.OfAll),
		Committed: l.Committed, Failed: l.Errors + l.Timeouts + l.Unsent, Offered: l.Offered, Mean: millis(l.MeanMillis), P50: millis(l.P50Millis),
		P90: millis(l.P90Millis), P99: millis(l.P99Millis), P999: millis(l.P999Millis),
	}
}

// millis reads a time of a line, which is a whole number of microseconds.
func millis(x float64) time.Duration {
	return time.Duration(x * float64(time.Millisecond)).Round(time.Microsecond)
}

// ofAllOf and ofAllBy read the percentiles of all requests, if there are any.
func ofAllOf(p *v1alpha1.PercentilesOfAll) *capacity.Percentiles {
	if p == nil {
		return nil
	}
	micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	return &capacity.Percentiles{P50: micros(p.P50Microseconds), P90: micros(p.P90Microseconds), P99: micros(p.P99Microseconds), P999: micros(p.P999Microseconds)}
}

func ofAllBy(p *results.Percentiles) *capacity.Percentiles {
	if p == nil {
		return nil
	}
	return &capacity.Percentiles{P50: millis(p.P50Millis), P90: millis(p.P90Millis), P99: millis(p.P99Millis), P999: millis(p.P999Millis)}
}

// progressOfSearch is the progress of a search.
type progressOfSearch struct {
	outcome capacity.Outcome
	trials  int
	slot    Slot   // the next slot, while searching
	stuck   string // why it does not go on: a budget, or an unknown measurement
}

func (q progressOfSearch) open() bool { return q.outcome == capacity.Searching && q.stuck == "" }

// progressesOfSearches returns the progress of each variant.
func progressesOfSearches(p *Plan, o observation) []progressOfSearch {
	byVariant := make([][]tried, p.searches())
	for slot, t := range o.valid {
		if int(slot.Point) >= len(p.Points) {
			continue
		}
		v, rung := p.variant(slot.Point)
		load, _ := strconv.ParseFloat(p.Axes[p.Search.axis].Values[rung], 64) // the text was made from a number
		byVariant[v] = append(byVariant[v], tried{t.Spec.Number, load, measuredOf(t.Status.Headline)})
	}
	out := make([]progressOfSearch, len(byVariant))
	for v, trials := range byVariant {
		state, unknown := p.Search.weigh(trials)
		q := progressOfSearch{outcome: state.Outcome, trials: len(trials), stuck: unknown}
		if q.open() {
			q.slot.Point = p.point(v, state.Next)
			for o.valid[q.slot] != nil {
				q.slot.Repetition++
			}
			if budget := o.givenUp(p, q.slot); budget != "" {
				q.stuck = budget + " used up"
			}
		}
		out[v] = q
	}
	return out
}

// nextOfSearch is Next for a plan with a search. Variants take turns: the next trial is for the
// variant with the fewest trials, in a random order in each round. With Sequential, it is for the
// first variant that is not done. A trial that does not count is repeated at its load.
func nextOfSearch(p *Plan, seed int64, o observation) Step {
	searches := progressesOfSearches(p, o)
	next, resolved, stuck, open := -1, int32(0), 0, 0
	for v, q := range searches {
		resolved += int32(q.trials)
		if q.stuck != "" {
			stuck++
		}
		if !q.open() {
			o.counts.Planned += int32(q.trials)
			continue
		}
		open++
		o.counts.Planned += int32(max(q.trials+1, p.Search.About()))
		if next < 0 || p.Spec.Order != v1alpha1.OrderSequential && before(seed, searches, v, next) {
			next = v
		}
	}
	planned := o.counts.Planned
	step := Step{Counts: o.counts, Disturbed: o.lost, NodeTime: o.nodeTime(p)}
	step.Budget, step.Withdraw = o.afford(p, 0, false), o.withdrawn(p)
	if o.counts.Active == 0 && open > 0 {
		step.Budget = o.afford(p, searches[next].slot.Point, true)
	}
	answered := fmt.Sprintf(" Searches that have an answer: %d of %d.", len(searches)-open-stuck, len(searches))
	switch {
	case o.counts.Active > 0:
		step.Reason, step.Message = v1alpha1.ReasonTrialsRunning, runs(p, o.active, resolved, planned)+o.disturbances(p)+answered
	case open == 0 && stuck == 0:
		step.Done, step.Reason = true, v1alpha1.ReasonAllTrialsValid
		step.Message = fmt.Sprintf("All searches are over after %s.", several(resolved, "valid trial")) + answered
	case open == 0:
		step.Done, step.Reason = true, v1alpha1.ReasonRetriesExhausted
		step.Message = fmt.Sprintf("%s cannot go on: %s.", severalSearches(stuck), firstStuck(searches)) + answered
	case step.Budget.over():
		step.Done, step.Reason = true, v1alpha1.ReasonBudgetExhausted
		step.Message = fmt.Sprintf("%s are judged. ", several(resolved, "valid trial")) + step.Budget.Message + answered
	case p.Spec.Suspend:
		step.Reason = v1alpha1.ReasonSuspended
		step.Message = fmt.Sprintf("No trial is started while spec.suspend is true; %d trials are valid.", resolved) + answered
	default:
		step.Reason = v1alpha1.ReasonTrialsRunning
		step.Create = newTrial(p, seed, searches[next].slot, o)
		step.Message = runs(p, []*v1alpha1.TrialSpec{step.Create}, resolved, planned) + o.disturbances(p) + answered
	}
	return step
}

// before reports whether variant a gets its next trial before variant b.
func before(seed int64, searches []progressOfSearch, a, b int) bool {
	if searches[a].trials != searches[b].trials {
		return searches[a].trials < searches[b].trials
	}
	order := permutation(int32(len(searches)), derive("order", seed, int64(searches[a].trials)))
	return slices.Index(order, int32(a)) < slices.Index(order, int32(b))
}

func severalSearches(n int) string {
	if n == 1 {
		return "1 search"
	}
	return fmt.Sprintf("%d searches", n)
}

func firstStuck(searches []progressOfSearch) string {
	i := slices.IndexFunc(searches, func(q progressOfSearch) bool { return q.stuck != "" })
	return searches[i].stuck
}

// outcomes of a search in the form of results.
var outcomes = map[capacity.Outcome]v1alpha1.CapacityOutcome{
	capacity.Searching: v1alpha1.CapacitySearching, capacity.Found: v1alpha1.CapacityFound, capacity.OutOfTrials: v1alpha1.CapacityOutOfTrials,
	capacity.AboveHigh: v1alpha1.CapacityAboveHighest, capacity.BelowLow: v1alpha1.CapacityBelowLowest,
}

// Capacities returns the results of the searches of a spec with its profile applied, one for each
// combination of the other axes. It reads the lines of the trials. Lines do not show budgets, so a
// search that gave up a load is Searching here.
func Capacities(spec v1alpha1.ExperimentSpec, axes []results.Axis, lines []results.TrialLine) []results.Capacity {
	s := searchOf(spec)
	if s == nil {
		return nil
	}
	var out []results.Capacity
	for at, trials := range s.searches(axes, lines) {
		c := results.Capacity{Axis: s.Axis, At: at, Objective: s.Objective.String(), From: int64(s.Low), To: int64(s.High), Precision: s.Precision, Trials: len(trials)}
		state, unknown := s.weigh(trials)
		c.Outcome, c.Message = string(outcomes[state.Outcome]), unknown
		if unknown != "" {
			c.Outcome = string(v1alpha1.CapacityNotJudged)
		} else if len(trials) > 0 {
			c.Message, c.Capacity = messageOf(state), finite(state.Capacity)
			if state.Trend == 0 || state.Outcome == capacity.AboveHigh || state.Outcome == capacity.BelowLow {
				c.Low, c.High = finite(state.From), finite(state.To)
			}
		}
		out = append(out, c)
	}
	return out
}

// searches yields the trials of each search from all lines, in the order of the other axes' values.
func (s *Search) searches(axes []results.Axis, lines []results.TrialLine) iter.Seq2[map[string]string, []tried] {
	others := slices.DeleteFunc(slices.Clone(axes), func(a results.Axis) bool { return a.Name == s.Axis })
	byVariant := map[string][]tried{}
	for _, l := range lines {
		if load, err := strconv.ParseFloat(l.Coordinates[s.Axis], 64); err == nil && l.Outcome == stats.Succeeded {
			key := Variant(others, l.Coordinates)
			byVariant[key] = append(byVariant[key], tried{l.Number, load, measuredBy(l)})
		}
	}
	return func(yield func(map[string]string, []tried) bool) {
		for _, at := range combinations(others) {
			if !yield(at, byVariant[Variant(others, at)]) {
				return
			}
		}
	}
}

// Judged is a search with its trials. Each trial says whether it met the objective.
type Judged struct {
	capacity.Search
	// At has the values of the other axes.
	At     map[string]string
	Trials []capacity.Trial
}

// JudgedTrials returns the judged trials of the searches of a spec with its profile applied, in the
// order of Capacities. A search has no trials here if one of them cannot be judged.
func JudgedTrials(spec v1alpha1.ExperimentSpec, axes []results.Axis, lines []results.TrialLine) (all []Judged) {
	s := searchOf(spec)
	if s == nil {
		return nil
	}
	for at, trials := range s.searches(axes, lines) {
		judged, unknown := s.judge(trials)
		if unknown != "" || s.Validate() != nil {
			judged = nil
		}
		all = append(all, Judged{Search: s.Search, At: at, Trials: judged})
	}
	return all
}

// messageOf returns a warning about the answer of a search, if there is one.
func messageOf(state capacity.State) string {
	switch {
	case state.Trend != 0:
		change := "more"
		if state.Trend < 0 {
			change = "less"
		}
		return fmt.Sprintf("the machines carried %s from trial to trial, by some %.2g%%, so there is no one capacity, and no interval: wait for idle machines, and search again", change, 100*math.Abs(state.Trend))
	case state.Shared:
		return "trials depend on their neighbours, for example on machines with good hours and bad ones: the interval is wider for it, and trials at other times would say more"
	case state.Disordered:
		return fmt.Sprintf("a load was met that lies above a failed one by more than three times the precision: trials deviate by more (some %.2g%%), fail for other reasons than their load, or the machines changed", 100*state.Deviation)
	}
	return ""
}

// finite returns a load, or nil if it is beyond the loads that are tried.
func finite(load float64) *float64 {
	if load <= 0 || load > 1e12 {
		return nil
	}
	return &load
}

// Variant names a combination of axes: "system=etcd, variant=ideal".
func Variant(axes []results.Axis, at map[string]string) string {
	parts := make([]string, len(axes))
	for i, a := range axes {
		parts[i] = a.Name + "=" + at[a.Name]
	}
	return strings.Join(parts, ", ")
}

// combinations returns all combinations of values. The last axis changes fastest.
func combinations(axes []results.Axis) []map[string]string {
	all := []map[string]string{{}}
	for _, a := range axes {
		var longer []map[string]string
		for _, at := range all {
			for _, v := range a.Values {
				with := maps.Clone(at)
				with[a.Name] = v
				longer = append(longer, with)
			}
		}
		all = longer
	}
	return all
}
