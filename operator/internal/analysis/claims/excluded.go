package claims

import (
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// bySystem reports whether the system under test, or its client, is the reason why a trial does not
// count. Without such trials, a verdict rests on the survivors.
func bySystem(l results.TrialLine) bool {
	return l.Outcome != stats.Succeeded && v1alpha1.CausedBy(l.Reason) == v1alpha1.CausedBySystem
}

// mostExcluded is the share of attempts that may be left out for other reasons without a caveat at
// the verdict.
const mostExcluded = 0.2

// excluded are the attempts at a point that do not count.
type excluded struct {
	attempts, left int
	// bySystem: the system is the reason for some of them.
	bySystem bool
	why      string
}

// excludedAt counts the attempts at a point.
func excludedAt(point int32, lines []results.TrialLine) excluded {
	var x excluded
	reasons := map[string]int{}
	for _, l := range lines {
		if l.PointIndex != point {
			continue
		}
		x.attempts++
		if l.Outcome == stats.Succeeded {
			continue
		}
		x.left++
		x.bySystem = x.bySystem || bySystem(l)
		reasons[strings.TrimSuffix(l.Outcome+" "+l.Reason, " ")]++
	}
	var parts []string
	for _, reason := range sortedKeys(reasons) {
		parts = append(parts, fmt.Sprintf("%d %s", reasons[reason], reason))
	}
	x.why = strings.Join(parts, ", ")
	return x
}

// survivors adds a caveat for each point that a claim reads and that lacks attempts. Its numbers
// may be those of successful trials only.
func (r *recorder) survivors() {
	for _, p := range r.points {
		if !slices.Contains(r.looked, p.Index) {
			continue
		}
		if x := excludedAt(p.Index, r.lines); x.bySystem || float64(x.left) > mostExcluded*float64(x.attempts) {
			where := showPoint(p.Coordinates)
			r.caveat(CaveatExcludedTrials, fmt.Sprintf("%s: %d of %d attempts do not count (%s)", where, x.left, x.attempts, x.why), where)
		}
	}
}

// counted returns the lines with some trials of the claim's points made valid, and their number.
// The system spoiled these trials, but they have numbers. A window in which nothing was committed
// has a throughput of 0.
func counted(lines []results.TrialLine, looked []int32) (all []results.TrialLine, n int) {
	all = slices.Clone(lines)
	for i, l := range all {
		has := l.Committed > 0 || l.Reason == v1alpha1.ReasonNothingMeasured
		if bySystem(l) && has && slices.Contains(looked, l.PointIndex) {
			all[i].Outcome = stats.Succeeded
			n++
		}
	}
	return all, n
}

// sensitivity gives the verdict that a claim would have if trials that the system itself spoiled
// counted. Empty: there are no such trials.
func sensitivity(r results.ClaimResult, c v1alpha1.Claim, p *program, points []results.PointResult, lines []results.TrialLine, looked []int32) string {
	all, n := counted(lines, looked)
	if n == 0 {
		return ""
	}
	with := results.ClaimResult{Expr: c.Expr}
	if _, _, err := evaluate(&with, c, p, points, all, nil, false); err != nil {
		with.Verdict = string(v1alpha1.VerdictNotEvaluated)
	}
	what := "the trial that the system spoiled itself"
	if n > 1 {
		what = fmt.Sprintf("the %d trials that the system spoiled itself", n)
	}
	does := map[string][2]string{
		string(v1alpha1.VerdictHolds): {"holds", "would hold"}, string(v1alpha1.VerdictFails): {"fails", "would fail"},
		string(v1alpha1.VerdictInconclusive): {"is Inconclusive", "would be Inconclusive"}, string(v1alpha1.VerdictNotEvaluated): {"is NotEvaluated", "would be NotEvaluated"},
	}[with.Verdict]
	if with.Verdict == r.Verdict {
		return fmt.Sprintf("with %s counted it %s, too", what, does[0])
	}
	return fmt.Sprintf("with %s counted it %s", what, does[1])
}

// unlikeExclusions is in the message of a verdict that was judged by first attempts, too.
const unlikeExclusions = "disturbances left out more attempts of one point than of another"

// lopsided judges a claim once more by the first attempt of each trial, if disturbances left out
// more attempts of one point than of another, even by one. With more trials the interval becomes
// narrower, but the effect of selection on the mean does not shrink. A variant that shows a
// disturbance sooner loses its slow trials, and so looks faster. A verdict that the first attempts
// do not give becomes Inconclusive.
func lopsided(r *results.ClaimResult, c v1alpha1.Claim, p *program, points []results.PointResult, lines []results.TrialLine, looked []int32) string {
	if !isDecided(r.Verdict) || !differsByExclusion(lines, looked) {
		return ""
	}
	first := results.ClaimResult{Expr: c.Expr}
	if _, _, err := evaluate(&first, c, p, points, boundedFirstAttempts(lines, looked), nil, false); err != nil {
		return ""
	}
	if first.Verdict == r.Verdict {
		return unlikeExclusions + fmt.Sprintf(": by the first attempts it is %s, too", r.Verdict)
	}
	note := unlikeExclusions + fmt.Sprintf(": it is %s, and by the first attempts %s", r.Verdict, first.Verdict)
	r.Verdict = string(v1alpha1.VerdictInconclusive)
	return note
}

func isDecided(verdict string) bool {
	v := v1alpha1.Verdict(verdict)
	return v.Supports() || v.Refutes()
}

// disturbed reports whether an attempt has numbers, but does not count for a reason that the system
// did not cause.
func disturbed(l results.TrialLine) bool {
	return l.Outcome != stats.Succeeded && !bySystem(l) && l.Committed > 0
}

// differsByExclusion compares the shares of attempts that disturbances left out.
func differsByExclusion(lines []results.TrialLine, looked []int32) bool {
	least, most := 1.0, 0.0
	for _, point := range looked {
		left, all := 0, 0
		for _, l := range lines {
			if l.PointIndex != point {
				continue
			}
			all++
			if disturbed(l) {
				left++
			}
		}
		if all > 0 {
			share := float64(left) / float64(all)
			least, most = min(least, share), max(most, share)
		}
	}
	return most > least
}

// firstAttempts returns the lines with another trial for each repetition at these points. Its first
// attempt with numbers, valid or not, takes the place of its valid one.
func firstAttempts(lines []results.TrialLine, looked []int32) []results.TrialLine {
	type slot struct{ point, repetition int32 }
	first := map[slot]int{}
	for i, l := range lines {
		at := slot{l.PointIndex, l.Repetition}
		has := l.Outcome == stats.Succeeded || disturbed(l)
		if j, there := first[at]; has && slices.Contains(looked, l.PointIndex) && (!there || l.Attempt < lines[j].Attempt) {
			first[at] = i
		}
	}
	all := slices.Clone(lines)
	for i, l := range lines {
		j, there := first[slot{l.PointIndex, l.Repetition}]
		switch {
		case there && i == j:
			all[i].Outcome = stats.Succeeded
		case there && l.Outcome == stats.Succeeded:
			all[i].Outcome = stats.Invalid
		}
	}
	return all
}

// boundedFirstAttempts are firstAttempts with bounded numbers of the attempts that do not count.
// Else one wild attempt of twenty would leave no verdict.
func boundedFirstAttempts(lines []results.TrialLine, looked []int32) []results.TrialLine {
	first := firstAttempts(lines, looked)
	for _, s := range speeds {
		s.bound(first, lines, looked)
	}
	return first
}

// beyondCounted bounds an attempt that does not count. It may lie this many times as far from the
// median as the slowest trial that counts. If equally bad disturbances had hit other points
// unnoticed, a counting trial of these points would show it. With 1, equal variants differed in 9%
// of experiments with twenty rounds, since the bound depends on the median. With 3 they differed in
// 5%.
const beyondCounted = 3

// speed is a number of a trial that a disturbance makes worse.
type speed struct {
	of func(*results.TrialLine) *float64
	// sign is 1 where a worse number is a greater one, and else -1.
	sign float64
}

var speeds = []speed{
	{func(l *results.TrialLine) *float64 { return &l.Throughput }, -1},
	{func(l *results.TrialLine) *float64 { return &l.MeanMillis }, 1},
	{func(l *results.TrialLine) *float64 { return &l.P10Millis }, 1},
	{func(l *results.TrialLine) *float64 { return &l.P50Millis }, 1},
	{func(l *results.TrialLine) *float64 { return &l.P90Millis }, 1},
	{func(l *results.TrialLine) *float64 { return &l.P95Millis }, 1},
	{func(l *results.TrialLine) *float64 { return &l.P99Millis }, 1},
	{func(l *results.TrialLine) *float64 { return &l.P999Millis }, 1},
}

// bound limits the numbers of disturbed attempts among first. None may be worse than beyondCounted
// times the worst trial in lines, relative to the median of the first attempts of its point.
func (s speed) bound(first, lines []results.TrialLine, looked []int32) {
	medians, worst := map[int32]float64{}, 0.0
	for _, point := range looked {
		summary, err := stats.Summarize(s.ofPoint(first, point))
		m := summary.Median.Value
		if err != nil || !(m > 0) {
			continue
		}
		medians[point] = m
		for _, x := range s.ofPoint(lines, point) {
			worst = max(worst, s.sign*(x/m-1))
		}
	}
	for i := range first {
		m, known := medians[first[i].PointIndex]
		if !known || !disturbed(lines[i]) || first[i].Outcome != stats.Succeeded {
			continue
		}
		if x := s.of(&first[i]); s.sign*(*x/m-1) > beyondCounted*worst {
			*x = m * (1 + s.sign*beyondCounted*worst)
		}
	}
}

// ofPoint are the numbers of the trials of a point that count.
func (s speed) ofPoint(lines []results.TrialLine, point int32) (xs []float64) {
	for i := range lines {
		if lines[i].PointIndex == point && lines[i].Outcome == stats.Succeeded {
			xs = append(xs, *s.of(&lines[i]))
		}
	}
	return xs
}
