package model

import (
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/results"
)

// Imported reports whether the trials of results were measured elsewhere.
func Imported(e results.Experiment) bool {
	return slices.ContainsFunc(e.Trials, func(l results.TrialLine) bool { return l.Imported != nil })
}

// unjudged words the facts that are unknown about trials that were measured elsewhere.
const unjudged = "the trials were measured elsewhere: whether they are valid was not judged, and their faults, clocks, disturbances, machines and order are not known"

// whatRanOf describes what ran, relative to the source. The size of trials that were measured
// elsewhere is unknown, so their verdicts are neither Reproduced nor Replicated.
func whatRanOf(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec, lines []results.TrialLine) *results.Fidelity {
	f := fidelity.Describe(spec, systems)
	if Imported(results.Experiment{Trials: lines}) {
		f.Size, f.Changes = fidelity.Unknown, nil
	}
	return f
}

// caveatImported adds a caveat about imported trials to each verdict.
func caveatImported(judged []results.ClaimResult, lines []results.TrialLine) {
	if !Imported(results.Experiment{Trials: lines}) {
		return
	}
	for i := range judged {
		c := &judged[i]
		if c.Verdict == string(v1alpha1.VerdictNotEvaluated) {
			continue
		}
		c.Caveats = append(c.Caveats, results.Caveat{Kind: "Imported", Text: unjudged})
	}
}
