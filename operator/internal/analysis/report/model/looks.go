package model

import (
	"fmt"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// OpenClaims is for a plan whose repetitions go on until claims are decided. It returns the claims
// that the first rounds of these trials leave open. It judges each number of rounds once.
func OpenClaims(p *plan.Plan, lines []results.TrialLine) func(rounds int) []string {
	kept := map[int][]string{}
	skipped := plan.SkippedClaims(p.Spec)
	return func(rounds int) []string {
		if open, ok := kept[rounds]; ok {
			return open
		}
		judged := claims.EvaluateLook(p.Spec.Claims, everyPoint(p.Axes, stats.Points(lines)), lines, plan.LooksOf(p.Spec.Repetitions), rounds, p.Spec.Reported...)
		kept[rounds] = claims.Open(judged, skipped)
		return kept[rounds]
	}
}

// lookOf is the look at which results are judged: after the last whole round while trials go on,
// and after the last round of all when the experiment is complete. Nil: verdicts are looked at
// once.
func lookOf(r v1alpha1.Repetitions, points []results.PointResult, lines []results.TrialLine, complete bool) *results.Look {
	if !plan.UntilDecided(r) {
		return nil
	}
	least, most := -1, 0
	for _, p := range points {
		n := roundsOf(p.Index, lines)
		if least < 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	looks := plan.LooksOf(r)
	look := results.Look{Rounds: max(0, least), Of: looks.Count(), First: looks.First, Last: looks.Last}
	if complete { // a point that was given up has fewer rounds than the others
		look.Rounds = most
	}
	if look.Rounds >= looks.First {
		look.Number = min(look.Rounds, looks.Last) - looks.First + 1
	}
	look.Level = looks.Level(look.Rounds)
	return &look
}

// roundsOf is how many rounds from the first one on have a valid trial of a point.
func roundsOf(point int32, lines []results.TrialLine) int {
	has := map[int32]bool{}
	for _, l := range lines {
		if l.PointIndex == point && l.Outcome == stats.Succeeded {
			has[l.Repetition] = true
		}
	}
	n := int32(0)
	for has[n] {
		n++
	}
	return int(n)
}

// judgeAtLook judges claims at a look. Before the first one nothing is judged.
func judgeAtLook(spec v1alpha1.ExperimentSpec, points []results.PointResult, lines []results.TrialLine, look results.Look, complete bool) []results.ClaimResult {
	if look.Number == 0 && !complete {
		var all []results.ClaimResult
		for _, c := range spec.Claims {
			r := claims.TextOf(c)
			r.Verdict, r.Message = string(v1alpha1.VerdictNotEvaluated), fmt.Sprintf("the first look is after %d rounds", look.First)
			all = append(all, r)
		}
		return all
	}
	looks := stats.Looks{First: look.First, Last: look.Last}
	judged := claims.EvaluateLook(spec.Claims, points, lines, looks, look.Rounds, spec.Reported...)
	claims.AddAnalysesAtLook(spec.Claims, points, lines, judged, looks, look.Rounds, spec.Reported...)
	return judged
}
