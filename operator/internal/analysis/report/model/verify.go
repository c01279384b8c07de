package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Verified is the result of Verify.
type Verified struct {
	Trials, Points, Claims int
	// Differences name results that do not follow from the trials. None: all results follow.
	Differences []string
	// Notes say what could not be compared.
	Notes []string
}

func (v *Verified) differs(format string, args ...any) {
	v.Differences = append(v.Differences, fmt.Sprintf(format, args...))
}

// rounding bounds the part that the integers of a trial's status cut off: thousandths of a
// millisecond, or of a transaction a second.
const rounding = 0.000_501

// Verify computes an experiment's results again from its trials' own results. It computes the
// numbers of each trial from its histogram, counters and timeline. Then it computes the lines, and
// the points from the lines. It computes what ran from the spec and its Systems, by name. It
// computes the verdicts from points, lines, what ran, and the spec with its profile applied. For
// trials that are not given it uses their lines, and Notes report that.
func Verify(e results.Experiment, trials []results.Trial, spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) Verified {
	v := Verified{Points: len(e.Points), Claims: len(e.Claims)}
	trials = results.ByRow(results.Measuring(trials))
	lines := slices.Clone(e.Trials)
	byName := map[string]int{}
	for i, l := range lines {
		byName[l.Name] = i
	}
	lacking := LacksLines(e)
	own := map[string]bool{}
	for _, t := range trials {
		v.Trials++
		own[t.Name] = true
		v.trial(t)
		i, there := byName[t.Name]
		switch {
		case there:
			own := LineOf(t)
			v.line(t.Name, lines[i], own, e.Method < claims.SearchMethod)
			if lines[i].OfAll == nil {
				lines[i].OfAll = own.OfAll // older lines lack them
			}
		case lacking:
			lines = append(lines, LineOf(t))
		default:
			v.differs("trial %s: it has results, and is not among the trials of %s", t.Name, resultsName)
		}
	}
	alone := 0
	for _, l := range e.Trials {
		if !own[l.Name] {
			alone++
		}
	}
	if alone > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("of %s there are no results of its own: its line in %s is believed", Count(alone, "trial"), resultsName))
	}
	slices.SortStableFunc(lines, func(a, b results.TrialLine) int { return int(a.Number) - int(b.Number) })
	v.points(e, lines, furtherMetrics(spec), lacking)
	v.claims(e, spec, systems, lines)
	v.seal(e, trials, spec)
	return v
}

// judged notes a difference that an older method of judging explains, and counts any other.
func (v *Verified) judged(older bool, format string, args ...any) {
	if !older {
		v.differs(format, args...)
		return
	}
	v.Notes = append(v.Notes, "by an older method of judging: "+fmt.Sprintf(format, args...))
}

// resultsName is the file that the results of an experiment are in.
const resultsName = "results.json"

// trial computes a trial's numbers again from its histogram, counters and timeline.
func (v *Verified) trial(t results.Trial) {
	if t.Summary.RunSummary {
		v.Notes = append(v.Notes, fmt.Sprintf("trial %s: its numbers are those that its clients say of their whole run, and are believed", t.Name))
		return
	}
	if t.Latency == "" || t.MeasureNanos == 0 {
		if t.Outcome == stats.Succeeded {
			v.Notes = append(v.Notes, fmt.Sprintf("trial %s has no histogram: its latencies are believed", t.Name))
		}
		return
	}
	h, err := results.DecodeHistogram(t.Latency)
	if err != nil {
		v.differs("trial %s: its histogram cannot be read: %v", t.Name, err)
		return
	}
	window := time.Duration(t.MeasureNanos)
	var timeline results.Timeline
	if t.Timeline != nil {
		timeline = *t.Timeline
	}
	if err := results.Agree(t.Summary.Counters, h.Count(), timeline, window); err != nil {
		v.differs("trial %s: %v", t.Name, err)
	}
	if err := t.Summary.AgreeParts(); err != nil {
		v.differs("trial %s: %v", t.Name, err)
	}
	if len(timeline.Committed) == 0 && t.Summary.Committed > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("trial %s has no timeline: when its transactions were committed is not known", t.Name))
	}
	want := results.Summarize(t.Summary.Counters, h, window)
	for _, n := range []struct {
		what      string
		said, has float64
	}{
		{"throughput", t.Summary.Throughput, want.Throughput}, {"mean latency", t.Summary.MeanMillis, want.MeanMillis},
		{"p50", t.Summary.P50Millis, want.P50Millis}, {"p90", t.Summary.P90Millis, want.P90Millis}, {"p99", t.Summary.P99Millis, want.P99Millis},
		{"p99.9", t.Summary.P999Millis, want.P999Millis}, {"longest latency", t.Summary.MaxMillis, want.MaxMillis},
	} {
		if !near(n.said, n.has, 1e-9, 0) {
			v.differs("trial %s: its %s is said to be %g, its histogram and counters give %g", t.Name, n.what, n.said, n.has)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Summary.Percentiles)) {
		if said, has := t.Summary.Percentiles[name], want.Percentiles[name]; !near(said, has, 1e-9, 0) {
			v.differs("trial %s: its %s is said to be %g, its histogram gives %g", t.Name, name, said, has)
		}
	}
	if t.Timeline != nil {
		v.timeline(t, window)
	}
}

// timeline measures a trial's recoveries again.
func (v *Verified) timeline(t results.Trial, window time.Duration) {
	for _, r := range t.Recovery {
		if r.Error != "" {
			continue
		}
		m, err := stats.Recover(*t.Timeline, r.ConfirmedMillis, stats.RecoveryRule{ToMillis: float64(window) / 1e6})
		if err != nil {
			v.differs("trial %s: the recovery from fault %s, time %d, cannot be measured again: %v", t.Name, r.Fault, r.Time, err)
			continue
		}
		same := m.Dipped == r.Dipped && m.Recovered == r.Recovered && near(m.DetectMillis, r.DetectMillis, 1e-9, 0) && near(m.Depth, r.Depth, 1e-9, 0) &&
			near(m.RecoverMillis, r.RecoverMillis, 1e-9, 0) && near(m.Lost, r.LostTransactions, 1e-9, 1e-6)
		if !same {
			v.differs("trial %s: the recovery from fault %s, time %d, is said to be %s, its timeline gives %s", t.Name, r.Fault, r.Time,
				recoveryText(r.Dipped, r.Depth, r.RecoverMillis), recoveryText(m.Dipped, m.Depth, m.RecoverMillis))
		}
	}
}

func recoveryText(dipped bool, depth, millis float64) string {
	if !dipped {
		return "no dip"
	}
	return fmt.Sprintf("a dip of %.1f%% until %g ms", 100*depth, millis)
}

// line compares a trial's line in the results with its own results, which it has rounded. Older
// methods counted every timeout in full in the clients' time.
func (v *Verified) line(name string, said, own results.TrialLine, older bool) {
	if said.Outcome != own.Outcome {
		v.differs("trial %s: it is %s in %s and %s by its own results", name, said.Outcome, resultsName, own.Outcome)
		return
	}
	if said.PointIndex != own.PointIndex || said.Repetition != own.Repetition || said.Attempt != own.Attempt || said.Number != own.Number || said.NodeSet != own.NodeSet {
		v.differs("trial %s: its point, repetition, attempt, number or set of nodes in %s is not that of its own results", name, resultsName)
	}
	if own.Outcome != stats.Succeeded {
		return // an invalid trial has its numbers in its own results alone, if at all
	}
	for _, n := range []struct {
		what      string
		said, own float64
	}{
		{"committed transactions", float64(said.Committed), float64(own.Committed)}, {"aborts", float64(said.Aborted), float64(own.Aborted)},
		{"errors", float64(said.Errors), float64(own.Errors)}, {"timeouts", float64(said.Timeouts), float64(own.Timeouts)},
		{"throughput", said.Throughput, own.Throughput}, {"mean latency", said.MeanMillis, own.MeanMillis}, {"p50", said.P50Millis, own.P50Millis},
		{"p99", said.P99Millis, own.P99Millis}, {"p99 of all requests", ofAllP99(said, own), ofAllP99(own, own)},
	} {
		if !near(n.said, n.own, 0, rounding) {
			v.differs("trial %s: its %s in %s: %g, in its own results: %g", name, n.what, resultsName, n.said, n.own)
		}
	}
	// Cautions at verdicts rest on both. Older lines lack them.
	for _, n := range []struct {
		what        string
		said, own   *float64
		kept, older bool
	}{
		{"share of the clients' time", said.ClientTimeShare, own.ClientTimeShare, own.ClientTimeShare != nil, older && own.Timeouts > 0},
		{"busy share of client pods", said.ClientBusyShare, own.ClientBusyShare, said.ClientBusyShare != nil || own.ClientBusyShare != nil && own.ClientTimeShare != nil, false},
	} {
		if n.kept && (n.said == nil || n.own == nil || !near(*n.said, *n.own, 0, rounding)) {
			v.judged(n.older, "trial %s: its %s in %s is not that of its own results", name, n.what, resultsName)
		}
	}
}

// ofAllP99 is the 99th percentile of all requests in a line, or in another line if this one is too
// old to have it.
func ofAllP99(l, otherwise results.TrialLine) float64 {
	switch {
	case l.OfAll != nil:
		return l.OfAll.P99Millis
	case otherwise.OfAll != nil:
		return otherwise.OfAll.P99Millis
	}
	return 0
}

// points aggregates the lines again.
func (v *Verified) points(e results.Experiment, lines []results.TrialLine, further []string, lacking bool) {
	want := map[int32]results.PointResult{}
	for _, p := range stats.Points(lines, further...) {
		want[p.Index] = p
	}
	relative := 1e-9
	if lacking { // lines that did not fit are not rounded
		relative = 1e-4
	}
	for _, p := range e.Points {
		w, name := want[p.Index], fmt.Sprintf("point %d", p.Index)
		if where := At(e.Axes, p.Coordinates); where != "" {
			name += " (" + where + ")"
		}
		delete(want, p.Index)
		if p.Valid != w.Valid || p.Invalid != w.Invalid || p.Failed != w.Failed {
			v.differs("%s: %d valid, %d invalid and %d failed trials are said, there are %d, %d and %d", name, p.Valid, p.Invalid, p.Failed, w.Valid, w.Invalid, w.Failed)
			continue
		}
		for _, m := range slices.Concat(stats.Metrics, further) {
			a, b := p.Metrics[m], w.Metrics[m]
			if a.N == 0 && slices.Contains(further, m) {
				continue // results from before reports had it
			}
			if a.N != b.N || !near(a.Mean, b.Mean, relative, 0) || !near(a.Low, b.Low, relative*10, 0) || !near(a.High, b.High, relative*10, 0) {
				v.differs("%s: %s is said to be %s of %d trials, the trials give %s of %d", name, m, intervalText(a), a.N, intervalText(b), b.N)
			}
		}
	}
	for index := range want {
		v.differs("point %d has trials and is not among the points", index)
	}
}

func intervalText(a results.Aggregate) string {
	return fmt.Sprintf("%.6g [%.6g, %.6g]", a.Mean, a.Low, a.High)
}

// claims judges again.
func (v *Verified) claims(e results.Experiment, spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec, lines []results.TrialLine) {
	if len(spec.Claims) == 0 && len(e.Claims) > 0 {
		v.differs("there are %s with verdicts, and the spec has none", Count(len(e.Claims), "claim"))
		return
	}
	want := map[string]results.ClaimResult{}
	capacities := plan.Capacities(plan.ApplyProfile(spec), e.Axes, lines)
	v.capacities(e, capacities)
	points := everyPoint(e.Axes, stats.Points(lines))
	if len(capacities) > 0 {
		points = stats.Points(lines)
	}
	ran := v.ran(e, spec, systems)
	complete := e.Completed != nil
	look := lookOf(plan.ApplyProfile(spec).Repetitions, points, lines, complete)
	for _, r := range JudgeAt(spec, ran, points, lines, capacities, look, complete) {
		want[r.Name] = r
	}
	for _, said := range e.Claims {
		w, ok := want[said.Name]
		delete(want, said.Name)
		switch {
		case !ok:
			v.differs("claim %s has a verdict and is not in the spec", said.Name)
		case said.Expr != w.Expr || said.Reported != w.Reported || said.Within != w.Within:
			v.differs("claim %s: its expression, reported value or tolerance is not that of the spec", said.Name)
		case said.Expected != w.Expected || e.Fidelity != nil && (said.Statement != w.Statement || said.Basis != w.Basis):
			v.differs("claim %s: its statement, basis or expected value is not that of the spec", said.Name)
		case e.Fidelity == nil && !sameOutcome(said.Verdict, w.Verdict), e.Fidelity != nil && said.Verdict != w.Verdict:
			v.judged(claims.ByOlderMethod(e.Method, w), "claim %s: %s is said, the trials and what ran give %s: %s", said.Name, said.Verdict, w.Verdict, w.Message)
		case e.Fidelity != nil && said.Distance != w.Distance:
			v.differs("claim %s: it is said to be judged by %q, and is by %q", said.Name, said.Distance, w.Distance)
		case !same64(said.Measured, w.Measured) || !same64(said.Low, w.Low) || !same64(said.High, w.High):
			v.judged(claims.ByOlderMethod(e.Method, w), "claim %s: what was measured is said to be other than the trials give: %s", said.Name, w.Message)
		}
	}
	for name := range want {
		v.differs("claim %s is in the spec and has no verdict", name)
	}
}

// ran compares the recorded programs and sizes with the spec and its Systems, and returns the
// latter. If the Systems are missing, it accepts the recorded programs. Verdicts of older results
// do not depend on what ran: their word for every supported claim is Reproduced. Notes report this.
func (v *Verified) ran(e results.Experiment, spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) *results.Fidelity {
	want := whatRanOf(spec, systems, e.Trials)
	switch {
	case e.Fidelity == nil && len(e.Claims) > 0:
		v.Notes = append(v.Notes, "the verdicts are of a version that did not say what ran: its Reproduced says that the trials support the claim, and not on which program or at which size")
	case e.Fidelity == nil:
	case len(systems) == 0:
		v.Notes = append(v.Notes, "the Systems are not there: what is said to have run is believed")
		return e.Fidelity
	case !sameRan(want, e.Fidelity):
		v.differs("it is said that this ran: %s; spec and Systems give: %s", fidelity.Summary(e.Fidelity, e.Profile), fidelity.Summary(want, e.Profile))
	case !slices.Equal(want.Changes, e.Fidelity.Changes): // words, which versions choose differently
		v.Notes = append(v.Notes, fmt.Sprintf("it is said that the profile changes %q; this version says %q", e.Fidelity.Changes, want.Changes))
	}
	return want
}

// sameRan compares all facts that words of verdicts depend on.
func sameRan(a, b *results.Fidelity) bool {
	return equality.Semantic.DeepEqual(a.Systems, b.Systems) && a.Class == b.Class && a.Size == b.Size && (len(a.Changes) == 0) == (len(b.Changes) == 0)
}

// sameOutcome reports whether two verdicts mean the same outcome, even in different words.
func sameOutcome(a, b string) bool {
	x, y := v1alpha1.Verdict(a), v1alpha1.Verdict(b)
	return x == y || x.Supports() && y.Supports() || x.Refutes() && y.Refutes()
}

// capacities compares the recorded results of searches with those of the trials. The lines do not
// know that a search was given up.
func (v *Verified) capacities(e results.Experiment, want []results.Capacity) {
	if len(e.Capacities) != len(want) {
		v.differs("%d capacities are said, and the spec searches %d", len(e.Capacities), len(want))
		return
	}
	for i, said := range e.Capacities {
		w, name := want[i], "the capacity"
		if where := At(e.Axes, said.At); len(said.At) > 0 {
			name += " at " + where
		}
		givenUp := said.Outcome == string(v1alpha1.CapacityGivenUp) && w.Outcome == string(v1alpha1.CapacitySearching)
		switch {
		case said.Trials != w.Trials || said.Objective != w.Objective || said.Outcome != w.Outcome && !givenUp:
			v.judged(e.Method < claims.SearchMethod, "%s: %s after %s is said, the trials give %s after %s", name, said.Outcome, Count(said.Trials, "trial"), w.Outcome, Count(w.Trials, "trial"))
		case !same64(said.Capacity, w.Capacity) || !same64(said.Low, w.Low) || !same64(said.High, w.High):
			v.judged(e.Method < claims.SearchMethod, "%s is said to be %s, the trials give %s", name, CapacityText(said), CapacityText(w))
		}
	}
}

// same64 compares numbers that may be absent.
func same64(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return near(*a, *b, 1e-4, rounding)
}

// near reports whether two numbers differ by at most a share of the greater one, or by at most
// absolute.
func near(a, b, relative, absolute float64) bool {
	return math.Abs(a-b) <= max(absolute, relative*max(math.Abs(a), math.Abs(b)))
}

// Text says what was verified, for a terminal.
func (v Verified) Text() string {
	var b strings.Builder
	for _, d := range v.Differences {
		b.WriteString("differs: " + d + "\n")
	}
	for _, n := range v.Notes {
		b.WriteString("note: " + n + "\n")
	}
	compared := fmt.Sprintf("%s, %s and %s were computed again", Count(v.Trials, "trial"), Count(v.Points, "point"), Count(v.Claims, "verdict"))
	if len(v.Differences) == 0 {
		return b.String() + compared + ": all are as they are said to be.\n"
	}
	return b.String() + compared + ": " + Count(len(v.Differences), "difference") + ".\n"
}
