package model

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// Power returns, for each judged claim, the probability that n repetitions support it. It assumes
// that the paper's curves hold, and that trials deviate by a share of their mean. If the curves
// lack a value that a claim reads, the claim holds by the share effect. The spec has its profile
// applied.
func Power(spec v1alpha1.ExperimentSpec, axes []results.Axis, n int, deviation, effect float64) []claims.Power {
	judged, points, paper := simulated(spec, axes)
	return claims.PowerOf(judged, points, paper, n, deviation, effect)
}

// ExpectedRounds is the mean number of rounds until claims are decided, with its standard error. It
// simulates the experiments of Power. The result of is the number of claims behind it.
func ExpectedRounds(spec v1alpha1.ExperimentSpec, axes []results.Axis, deviation, effect float64) (mean, standardError float64, of int) {
	judged, points, paper := simulated(spec, axes)
	return claims.ExpectedRounds(judged, points, paper, plan.LooksOf(spec.Repetitions), deviation, effect)
}

// simulated returns the judged claims, the points, and the paper's values for them.
func simulated(spec v1alpha1.ExperimentSpec, axes []results.Axis) ([]v1alpha1.Claim, []results.PointResult, claims.Paper) {
	e := results.Experiment{Axes: axes, Points: everyPoint(axes, nil)}
	e.Reported, _ = reported(spec.Reported)
	skipped := plan.SkippedClaims(spec)
	var judged []v1alpha1.Claim
	for _, c := range spec.Claims {
		if _, ok := skipped[c.Name]; !ok {
			judged = append(judged, c)
		}
	}
	paper := func(metric string, coordinates map[string]string) (float64, bool) {
		return PaperValue(e, metric, coordinates)
	}
	return judged, e.Points, paper
}
