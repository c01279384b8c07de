package claims

import (
	"regexp"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// choice is one way to judge the same trials; the field how names it. The choice without a name is
// that of the verdict.
type choice struct {
	how   string
	expr  func(string) string
	lines func([]results.TrialLine) []results.TrialLine
}

// AddAnalyses says of each verdict how many other analyses of the same trials agree with it. An
// analysis may take another statistic of latency, add trials that do not count, leave out trials
// with an unsteady window, or ignore rounds. All combinations are made (a multiverse: Steegen et
// al., Perspect. Psychol. Sci. 11, 2016). The argument judged has the verdicts of the claims, in
// their order.
func AddAnalyses(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, judged []results.ClaimResult, reported ...v1alpha1.ReportedSeries) {
	addAnalyses(claims, points, lines, judged, nil, reported)
}

// AddAnalysesAtLook is AddAnalyses for the verdicts of EvaluateLook: the other analyses have the
// level of the same look, and the trials of the same rounds.
func AddAnalysesAtLook(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, judged []results.ClaimResult, looks stats.Looks, rounds int, reported ...v1alpha1.ReportedSeries) {
	addAnalyses(claims, points, upTo(rounds, lines), judged, &look{looks: looks, rounds: rounds}, reported)
}

func addAnalyses(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, judged []results.ClaimResult, at *look, reported []v1alpha1.ReportedSeries) {
	for i, c := range claims {
		v := v1alpha1.Verdict(judged[i].Verdict)
		p, err := compile(c.Expr)
		if err != nil || !(v.Supports() || v.Refutes() || v == v1alpha1.VerdictInconclusive) {
			continue
		}
		p.look, p.series = at, reported
		var r results.ClaimResult
		looked, _, err := evaluate(&r, c, p, points, lines, nil, false)
		if err != nil || len(looked) == 0 {
			continue
		}
		if a := analysesOf(c, points, lines, looked, len(claims), judged[i].Verdict, at, reported); a.Of > 0 {
			judged[i].Analyses = &a
		}
	}
}

// analysesOf judges one claim in all other ways. It does not count an analysis without a verdict,
// such as one by a statistic that trials lack. A claim fails where its P times the number of claims
// is below 5%, or below the level of the look.
func analysesOf(c v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, looked []int32, claims int, verdict string, at *look, reported []v1alpha1.ReportedSeries) (a results.Analyses) {
	for _, ways := range combinations(choicesOf(c, lines, looked)) {
		other, changed := c, lines
		var how []string
		for _, w := range ways {
			if w.how == "" {
				continue
			}
			how = append(how, w.how)
			if w.expr != nil {
				other.Expr = w.expr(other.Expr)
			}
			if w.lines != nil {
				changed = w.lines(changed)
			}
		}
		if len(how) == 0 {
			continue
		}
		p, err := compile(other.Expr)
		if err != nil {
			continue
		}
		p.look, p.series = at, reported
		var r results.ClaimResult
		_, against, err := evaluate(&r, other, p, points, changed, nil, false)
		if err != nil {
			continue
		}
		if r.Verdict == string(v1alpha1.VerdictFails) && against.adjusted()*float64(claims) >= at.level() {
			r.Verdict = string(v1alpha1.VerdictInconclusive)
		}
		a.Of++
		if r.Verdict == verdict {
			a.Agree++
			continue
		}
		a.Others = append(a.Others, results.Analysis{How: strings.Join(how, ", "), Verdict: r.Verdict, Measured: r.Measured, Low: r.Low, High: r.High})
	}
	return a
}

// statistics of latency that a claim could be about as well.
var (
	statistics   = []string{"mean_latency", "p50_latency", "p10_latency"}
	statisticsOf = map[string]string{"mean_latency": "by mean latency", "p50_latency": "by median latency", "p10_latency": "by the 10th percentile"}
	anyStatistic = regexp.MustCompile(`\b(mean|p[0-9]+)_latency\b`)
)

// choicesOf returns the choices of each kind for a claim, with that of the verdict first.
func choicesOf(c v1alpha1.Claim, lines []results.TrialLine, looked []int32) [][]choice {
	all := [][]choice{{{}}, {{}}, {{}}, {{}}}
	// A number beside a single latency is about that statistic. So only a claim with two latencies
	// has others.
	if found := anyStatistic.FindAllString(c.Expr, -1); len(found) > 1 {
		for _, s := range statistics {
			if !slices.Contains(found, s) {
				all[0] = append(all[0], choice{how: statisticsOf[s], expr: func(expr string) string { return anyStatistic.ReplaceAllString(expr, s) }})
			}
		}
	}
	of := func(l results.TrialLine) bool { return slices.Contains(looked, l.PointIndex) }
	if slices.ContainsFunc(lines, func(l results.TrialLine) bool { return of(l) && l.Outcome != stats.Succeeded && l.Committed > 0 }) {
		all[1] = append(all[1], choice{how: "with trials that do not count", lines: func(lines []results.TrialLine) []results.TrialLine {
			with, _ := counted(firstAttempts(lines, looked), looked)
			return with
		}})
	}
	unsteady := func(l results.TrialLine) bool {
		steady, known := l.Window.Steady()
		return of(l) && l.Outcome == stats.Succeeded && known && !steady
	}
	if slices.ContainsFunc(lines, unsteady) {
		all[2] = append(all[2], choice{how: "without trials whose window was not steady", lines: func(lines []results.TrialLine) []results.TrialLine {
			rest := slices.Clone(lines)
			for i, l := range rest {
				if unsteady(l) {
					rest[i].Outcome = stats.Invalid
				}
			}
			return rest
		}})
	}
	if len(looked) > 1 {
		all[3] = append(all[3], choice{how: "not by rounds", lines: withoutRounds})
	}
	return all
}

// withoutRounds numbers rounds so that no two points share one.
func withoutRounds(lines []results.TrialLine) []results.TrialLine {
	most := int32(0)
	for _, l := range lines {
		most = max(most, l.Repetition)
	}
	apart := slices.Clone(lines)
	for i := range apart {
		apart[i].Repetition += apart[i].PointIndex * (most + 1)
	}
	return apart
}

// combinations takes one choice of each kind.
func combinations(kinds [][]choice) [][]choice {
	all := [][]choice{nil}
	for _, kind := range kinds {
		var longer [][]choice
		for _, start := range all {
			for _, c := range kind {
				longer = append(longer, append(slices.Clone(start), c))
			}
		}
		all = longer
	}
	return all
}
