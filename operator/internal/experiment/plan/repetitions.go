package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results/stats"
)

// leastToStop is how many trials a point needs before its interval may end its repetitions.
// Student's interval of two trials is 9 deviations wide on each side. By chance it is short far too
// often.
const leastToStop = 3

// Trials is the planned number of valid trials. If repetitions go on until the means are precise,
// it is the least number. For a search, it is about as many as the search takes.
func (p *Plan) Trials() int {
	if p.Search != nil {
		return p.searches() * p.Search.About()
	}
	return len(p.Points) * int(p.leastRepetitions()+p.Spec.AdditionalRepetitions)
}

// LeastRepetitions is the fewest valid trials of each of so many points. Without until, it is min.
// With until, it is the fewest trials that may end the repetitions, and the further rounds, if max
// allows them.
func LeastRepetitions(r v1alpha1.Repetitions, points int) int32 {
	if r.Until == nil || UntilDecided(r) {
		return r.Min
	}
	return min(max(r.Min, leastToStop+further(points)), MostRepetitions(r))
}

// UntilDecided reports whether repetitions go on until claims are decided.
func UntilDecided(r v1alpha1.Repetitions) bool {
	return r.Until != nil && r.Until.Claims == v1alpha1.ClaimsDecided
}

// LooksOf returns the looks at the claims, for repetitions that go on until claims are decided.
func LooksOf(r v1alpha1.Repetitions) stats.Looks {
	return stats.Looks{First: int(r.Min), Last: int(MostRepetitions(r))}
}

func (p *Plan) leastRepetitions() int32 { return LeastRepetitions(p.Spec.Repetitions, len(p.Points)) }

// further returns the number of rounds to run after the first round in which all points are
// precise. One or two points may be precise because their deviations are small by chance. A
// comparison by these deviations would call 6.7% of identical pairs different. Two more rounds,
// which are not chosen by their values, correct that (Simons, Ann. Math. Stat. 39, 1968). With
// three or more points, at least one deviation is not small by chance.
func further(points int) int32 {
	if points < 3 {
		return 2
	}
	return 0
}

// MostTrials is the greatest number of valid trials that the plan may want.
func (p *Plan) MostTrials() int {
	if p.Search != nil {
		return p.searches() * p.Search.MaxTrials
	}
	return len(p.Points) * int(MostRepetitions(p.Spec.Repetitions)+p.Spec.AdditionalRepetitions)
}

// MostRepetitions is the greatest number of valid trials of one point.
func MostRepetitions(r v1alpha1.Repetitions) int32 {
	if r.Max == nil {
		return r.Min
	}
	return max(r.Min, *r.Max)
}

// checkRepetitions bounds the number of trials, and refuses conditions that can never end
// repetitions.
func (e *fieldChecker) checkRepetitions(points int) {
	r, path := e.spec.Repetitions, e.origin.repetitions()
	most, where := int(r.Min), path.Child("min")
	if r.Min < 1 || r.Min > 100 {
		e.add(field.Invalid(where, r.Min, "must be from 1 to 100"))
		return
	}
	if r.Max != nil {
		most, where = int(*r.Max), path.Child("max")
		switch {
		case most > 100:
			e.add(field.Invalid(where, most, "must be from 1 to 100"))
			return
		case most < int(r.Min):
			e.add(field.Invalid(where, most, fmt.Sprintf("must be min, %d, or more", r.Min)))
			return
		case most > int(r.Min) && r.Until == nil:
			e.add(field.Invalid(where, most, "is more than min, but nothing ends the trials of a point early: add until, or remove max"))
			return
		}
	}
	if r.Until != nil {
		e.checkPrecision(path, r)
	}
	if err := CheckAdditional(e.spec, points); err != nil {
		e.add(err)
		return
	}
	if points*most > MaxTrials {
		e.add(field.Invalid(where, most,
			fmt.Sprintf("%d points make %d trials; at most %d are possible, so at most %d repetitions", points, points*most, MaxTrials, MaxTrials/points)))
	}
}

// CheckAdditional bounds the additional repetitions of a spec, which has its profile applied and so
// many points. Nil: the spec may have them.
func CheckAdditional(spec v1alpha1.ExperimentSpec, points int) *field.Error {
	if search := searchOf(spec); search != nil && spec.AdditionalRepetitions > 0 {
		return field.Invalid(field.NewPath("spec", "additionalRepetitions"), spec.AdditionalRepetitions, "a search has no repetitions; run the experiment again under another name, with more trials or a greater precision")
	}
	more := int(spec.AdditionalRepetitions)
	most, possible := int(MostRepetitions(spec.Repetitions))+more, min(100, MaxTrials/max(1, points))
	if more == 0 || most <= possible {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "additionalRepetitions"), more, fmt.Sprintf("makes %d repetitions of %d points; at most %d are possible", most, points, possible))
}

func (e *fieldChecker) checkPrecision(path *field.Path, r v1alpha1.Repetitions) {
	if r.Max == nil {
		e.add(field.Required(path.Child("max"), "until needs it: the most trials that a point may get"))
	}
	if r.Min < leastToStop {
		e.add(field.Invalid(path.Child("min"), r.Min, fmt.Sprintf("until needs %d or more: fewer trials give no reliable deviation", leastToStop)))
	}
	switch until := path.Child("until"); {
	case UntilDecided(r):
		e.checkUntilDecided(until, r)
		return
	case r.Until.RelativeCI == "":
		e.add(field.Required(until, "says nothing: add claims: Decided, or relativeCI, such as 5%"))
		return
	}
	if share := relativeCI(r); !(share > 0 && share <= 1) {
		e.add(field.Invalid(path.Child("until", "relativeCI"), r.Until.RelativeCI, "must be a percentage above 0% and at most 100%, such as 5%"))
	}
	for i, m := range r.Until.Of {
		if _, ok := precisionMetrics[m]; !ok {
			e.add(field.NotSupported(path.Child("until", "of").Index(i), m, sortedKeys(precisionMetrics)))
		}
	}
}

// checkUntilDecided refuses claims and orders that cannot be looked at after each round.
func (e *fieldChecker) checkUntilDecided(path *field.Path, r v1alpha1.Repetitions) {
	if r.Until.RelativeCI != "" {
		e.add(field.Forbidden(path.Child("relativeCI"), "repetitions end by claims or by precision; remove one of them"))
	}
	if e.spec.Order == v1alpha1.OrderSequential {
		e.add(field.Invalid(path.Child("claims"), string(r.Until.Claims), "needs rounds of all points, and spec.order: Sequential has none; use RandomizedInterleaved"))
	}
	skipped := SkippedClaims(e.spec)
	judged := 0
	for _, c := range e.spec.Claims {
		if _, skip := skipped[c.Name]; skip {
			continue
		}
		judged++
		if strings.Contains(c.Expr, "crossover(") {
			e.add(field.Invalid(path.Child("claims"), string(r.Until.Claims), fmt.Sprintf("claim %q is about a crossover, whose interval holds at one look only; use a fixed number of repetitions", c.Name)))
		}
	}
	if judged == 0 {
		e.add(field.Invalid(path.Child("claims"), string(r.Until.Claims), "there is no claim to decide; add spec.claims, or use relativeCI"))
	}
}

// relativeCI returns until.relativeCI as a share; NaN if it is no percentage.
func relativeCI(r v1alpha1.Repetitions) float64 {
	text, ok := strings.CutSuffix(r.Until.RelativeCI, "%")
	percent, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil {
		return math.NaN()
	}
	return percent / 100
}

// precisionMetrics read the metrics whose precision may end repetitions. Only ratios matter, so any
// unit will do.
var precisionMetrics = map[v1alpha1.PrecisionMetric]func(*v1alpha1.Headline) int64{
	v1alpha1.PrecisionMeanLatency: func(h *v1alpha1.Headline) int64 { return h.MeanLatencyMicroseconds },
	v1alpha1.PrecisionThroughput:  func(h *v1alpha1.Headline) int64 { return h.ThroughputMilli },
	v1alpha1.PrecisionP50Latency:  func(h *v1alpha1.Headline) int64 { return h.P50LatencyMicroseconds },
	v1alpha1.PrecisionP99Latency:  func(h *v1alpha1.Headline) int64 { return h.P99LatencyMicroseconds },
}

// ending is the reason why a point gets no further repetition.
type ending int

const (
	notYet  ending = iota // a planned repetition has no valid trial yet
	fixed                 // it has min, and there is no condition for more
	precise               // its intervals are short enough
	most                  // its intervals are too long, and it has max
	givenUp               // a repetition may not be tried again, so the point gets only its fixed ones
)

// progress says how many repetitions a point gets, by its trials so far, and why.
type progress struct {
	wanted int32
	ending ending
	// width is half of the widest interval divided by its mean, and metric the metric of that
	// interval. Both are known for precise and most.
	width  float64
	metric v1alpha1.PrecisionMetric
}

// progresses returns how many repetitions each point gets. All points stop together: after the
// first round in which every point is precise, or two rounds later if there are only one or two
// points (further). They stop after min at least and max at most.
//
// Whether there is round n depends only on the trials of the rounds before it. So every manager
// decides the same at any time. A point that is given up does not count, and gets no more.
//
// This is a sequential procedure: it looks after each round at the intervals that end it (Chow and
// Robbins, Ann. Math. Stat. 36, 1965; Law, Simulation Modeling and Analysis, section on obtaining a
// specified precision). If each point stopped by itself, it would stop when its own deviation is
// small by chance, and a comparison would use these deviations. Then 23 to 46% of identical
// variants would differ, if three trials in ten have another mode. docs/reference/repetitions.md
// has the details.
//
// With several sets of nodes (sets.go), as many rounds are added at a time, and looked at together.
// Otherwise a set would be idle while it waits for the look after each round.
//
// Additional repetitions are added to the settled number.
func (o observation) progresses(p *Plan) []progress {
	out := o.asked(p)
	if p.Spec.Repetitions.Until != nil && slices.ContainsFunc(out, func(q progress) bool { return q.ending == notYet }) {
		return out
	}
	for i := range out {
		if out[i].ending != givenUp {
			out[i].wanted += p.Spec.AdditionalRepetitions
		}
	}
	return out
}

// asked returns the progress by spec.repetitions alone.
func (o observation) asked(p *Plan) []progress {
	out := make([]progress, len(p.Points))
	for n := p.leastRepetitions(); ; n = min(n+int32(p.AtOnce()), MostRepetitions(p.Spec.Repetitions)) {
		running, wide := false, false
		for point := range out {
			if out[point].ending == givenUp {
				continue
			}
			out[point] = o.progressAt(p, int32(point), n)
			running = running || out[point].ending == notYet
			wide = wide || out[point].ending == most
		}
		if running { // all wait for the decision about another round
			for point := range out {
				if out[point].ending != givenUp {
					out[point].ending = notYet
				}
			}
		}
		if running || n >= MostRepetitions(p.Spec.Repetitions) {
			return out
		}
		if UntilDecided(p.Spec.Repetitions) {
			wide = p.Open == nil || len(p.Open(int(n))) > 0
		}
		if !wide {
			return out
		}
	}
}

// progressAt returns the progress of a point that gets n repetitions. The ending most says that its
// means are not precise enough.
func (o observation) progressAt(p *Plan, point, n int32) progress {
	r := p.Spec.Repetitions
	if state := o.settled(p, point, n); state != fixed {
		return progress{wanted: n, ending: state}
	}
	if r.Until == nil || UntilDecided(r) {
		return progress{wanted: n, ending: fixed}
	}
	looked := n // at max, all trials decide whether a point is precise
	if n < MostRepetitions(r) {
		looked = n - further(len(p.Points))
	}
	width, metric := o.widest(r.Until.Of, point, looked)
	state := precise
	if width > relativeCI(r) {
		state = most
	}
	return progress{wanted: n, ending: state, width: width, metric: metric}
}

// settled reports whether each of the first n repetitions of a point has a valid trial (fixed), not
// yet (notYet), or never will (givenUp).
func (o observation) settled(p *Plan, point, n int32) ending {
	state := fixed
	for repetition := range n {
		s := Slot{Point: point, Repetition: repetition}
		switch {
		case o.valid[s] != nil:
		case o.givenUp(p, s) != "":
			return givenUp
		default:
			state = notYet
		}
	}
	return state
}

// widest returns the greatest relative half-width of the 95% intervals of a point's first n
// repetitions, and its metric.
func (o observation) widest(of []v1alpha1.PrecisionMetric, point, n int32) (width float64, metric v1alpha1.PrecisionMetric) {
	width = -1
	for _, m := range of {
		samples := make([]float64, n)
		known := true
		for repetition := range n {
			h := o.valid[Slot{Point: point, Repetition: repetition}].Status.Headline
			if known = known && h != nil; known {
				samples[repetition] = float64(precisionMetrics[m](h))
			}
		}
		mine := math.Inf(1) // for a valid trial without numbers
		if known {
			mine = relativeWidth(samples)
		}
		if mine > width {
			width, metric = mine, m
		}
	}
	return width, metric
}

// relativeWidth returns half of the 95% interval of the mean, divided by the mean.
func relativeWidth(samples []float64) float64 {
	a := stats.Aggregate(samples)
	half := (a.High - a.Low) / 2
	switch {
	case half == 0:
		return 0
	case a.Mean == 0:
		return math.Inf(1)
	}
	return half / math.Abs(a.Mean)
}

// wanted returns the repetitions of each point, and their sum.
func wanted(points []progress) (each []int32, sum int32) {
	for _, p := range points {
		each = append(each, p.wanted)
		sum += p.wanted
	}
	return each, sum
}

// maxNamedPoints bounds the sentence about points that are not precise enough.
const maxNamedPoints = 5

// whyEnough explains the number of repetitions of the points of a plan with until.
func whyEnough(p *Plan, points []progress) string {
	r := p.Spec.Repetitions
	if r.Until == nil {
		return ""
	}
	if UntilDecided(r) {
		return p.whyDecided(points)
	}
	enough := 0
	var wide []string
	for i, point := range points {
		if point.ending == precise {
			enough++
		} else if point.ending == most {
			wide = append(wide, fmt.Sprintf("point %d (%s %.3g%%)", i, point.metric, 100*point.width))
		}
	}
	text := fmt.Sprintf(" Precision reached: the means of %d of %d points are known to within %s.", enough, len(points), r.Until.RelativeCI)
	if len(wide) == 0 {
		return text
	}
	named := wide[:min(len(wide), maxNamedPoints)]
	text += fmt.Sprintf(" Max reached: %d with %d trials are not: %s", len(wide), MostRepetitions(r), strings.Join(named, ", "))
	if more := len(wide) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "."
}

// whyDecided says after which look the repetitions ended, and which claims stayed open.
func (p *Plan) whyDecided(points []progress) string {
	rounds := int32(0)
	for _, q := range points {
		rounds = max(rounds, q.wanted-p.Spec.AdditionalRepetitions)
	}
	looks := LooksOf(p.Spec.Repetitions)
	text := fmt.Sprintf(" Look %d of %d, after %d rounds:", int(rounds)-looks.First+1, looks.Count(), rounds)
	var open []string
	if p.Open != nil {
		open = p.Open(int(rounds))
	}
	if len(open) == 0 {
		return text + " each claim is decided or hopeless."
	}
	named := open[:min(len(open), maxNamedPoints)]
	text += fmt.Sprintf(" max is reached, and %d claims are open: %s", len(open), strings.Join(named, ", "))
	if more := len(open) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "."
}

// mayFollow says how many trials beyond the planned ones there may be.
func mayFollow(p *Plan, points []progress) string {
	if p.Spec.Repetitions.Until == nil {
		return ""
	}
	more := int32(0)
	for _, point := range points {
		if point.ending == notYet {
			more += MostRepetitions(p.Spec.Repetitions) - point.wanted
		}
	}
	if more == 0 {
		return ""
	}
	if UntilDecided(p.Spec.Repetitions) {
		return fmt.Sprintf(" Up to %d more follow until claims are decided.", more)
	}
	return fmt.Sprintf(" Up to %d more follow where means are not known to within %s.", more, p.Spec.Repetitions.Until.RelativeCI)
}

// DescribeRepetitions describes how many valid trials a point gets: "3", or "3 to 10".
func (p *Plan) DescribeRepetitions() string {
	return fromTo(int(p.leastRepetitions()), int(MostRepetitions(p.Spec.Repetitions)))
}

// Describe describes the plan in a sentence.
func (p *Plan) Describe() string {
	if p.Search != nil {
		return fmt.Sprintf("%s for the highest %s from %g to %g with %s: %s valid trials each.", severalSearches(p.searches()),
			p.Search.Axis, p.Search.Low, p.Search.High, p.Search.Objective, fromTo(p.Search.About(), p.Search.MaxTrials))
	}
	return fmt.Sprintf("%d points with %s valid trials each are planned.", len(p.Points), p.DescribeRepetitions())
}

// DescribeTrials describes how many valid trials the plan wants: "72", or "72 to 240".
func (p *Plan) DescribeTrials() string { return fromTo(p.Trials(), p.MostTrials()) }

func fromTo(low, high int) string {
	if low == high {
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}
