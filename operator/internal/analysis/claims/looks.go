package claims

import (
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// onlyLook is the level of intervals and tests where verdicts are looked at once.
const onlyLook = 0.05

// hopeless is the chance below which the trials that may still follow are not worth their time. To
// stop there makes no interval wrong: a claim that is given up is Inconclusive.
const hopeless = 0.1

// look is one of several looks at verdicts while trials go on.
type look struct {
	looks  stats.Looks
	rounds int
}

// level of the intervals and tests at a look.
func (l *look) level() float64 {
	if l == nil {
		return onlyLook
	}
	return l.looks.Level(l.rounds)
}

// number of the look, from 1.
func (l *look) number() int {
	return min(max(l.rounds, l.looks.First), l.looks.Last) - l.looks.First + 1
}

// at is the look at which a program is judged. Nil: there is only one look, or there is no program.
func (p *program) at() *look {
	if p == nil {
		return nil
	}
	return p.look
}

func (p *program) level() float64 { return p.at().level() }

// EvaluateLook is EvaluateWith at one of several looks: by the trials of the first rounds, with
// intervals that hold at all looks together. An Inconclusive claim has the chance that the last
// look decides it.
func EvaluateLook(claims []v1alpha1.Claim, points []results.PointResult, lines []results.TrialLine, looks stats.Looks, rounds int, reported ...v1alpha1.ReportedSeries) []results.ClaimResult {
	return evaluateAll(claims, points, upTo(rounds, lines), nil, &look{looks: looks, rounds: rounds}, reported)
}

// upTo are the trials of the first rounds.
func upTo(rounds int, lines []results.TrialLine) []results.TrialLine {
	return slices.DeleteFunc(slices.Clone(lines), func(l results.TrialLine) bool { return int(l.Repetition) >= rounds })
}

// Open names the claims that further rounds may decide: those that are Inconclusive and not
// hopeless. Claims that cannot be evaluated keep no experiment going, nor do those in skipped.
func Open(judged []results.ClaimResult, skipped map[string]string) []string {
	var names []string
	for _, c := range judged {
		_, skip := skipped[c.Name]
		if !skip && c.Verdict == string(v1alpha1.VerdictInconclusive) && (c.Chance == nil || *c.Chance >= hopeless) {
			names = append(names, c.Name)
		}
	}
	return names
}
