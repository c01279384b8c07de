package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/results"
)

// Imported reports whether the trials of results were measured elsewhere.
func Imported(e results.Experiment) bool {
	return slices.ContainsFunc(e.Trials, func(l results.TrialLine) bool { return l.Imported != nil })
}

// unjudged is what is not known of trials that were measured elsewhere.
const unjudged = "the trials were measured elsewhere: whether they are valid was not judged, and their faults, clocks, disturbances, machines and order are not known"

// whatRanOf is what ran, relative to the source. The size of what was measured elsewhere is not
// known, so its verdicts are neither Reproduced nor Replicated.
func whatRanOf(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec, lines []results.TrialLine) *results.Fidelity {
	f := fidelity.Of(spec, systems)
	if Imported(results.Experiment{Trials: lines}) {
		f.Size, f.Changes = fidelity.Unknown, nil
	}
	return f
}

// caveatImported says so at each verdict.
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

// importedProgress says what there is, in the place of how far an experiment is.
func importedProgress(e results.Experiment) string {
	return fmt.Sprintf("%s over %s: measured elsewhere, and not judged whether they are valid. Not known are faults, clocks, disturbances, machines and the order of the trials.",
		count(len(e.Trials), "imported trial"), count(len(e.Points), "point"))
}

// importedFrom names the files, by format.
func importedFrom(e results.Experiment) string {
	files := map[string]map[string]bool{}
	for _, l := range e.Trials {
		if l.Imported == nil {
			continue
		}
		if files[l.Imported.Format] == nil {
			files[l.Imported.Format] = map[string]bool{}
		}
		files[l.Imported.Format][l.Imported.File] = true
	}
	var parts []string
	for _, format := range slices.Sorted(maps.Keys(files)) {
		names := slices.Sorted(maps.Keys(files[format]))
		if len(names) > 5 {
			names = append(names[:5], fmt.Sprintf("%d more", len(names)-5))
		}
		parts = append(parts, format+" ("+strings.Join(names, ", ")+")")
	}
	return strings.Join(parts, "; ")
}

// reading is how to read a table or a figure. Assay did not judge whether imported trials are
// valid.
func (p page) reading(legend string) string {
	if !p.imported {
		return legend
	}
	return strings.ReplaceAll(legend, "valid trials", "imported trials")
}

// outcomeCell says what became of a trial.
func outcomeCell(l results.TrialLine) string {
	if l.Imported != nil {
		from := l.Imported.File
		if l.Imported.Line > 0 {
			from = fmt.Sprintf("%s:%d", from, l.Imported.Line)
		}
		return "imported, validity not judged: " + from
	}
	return strings.TrimSuffix(l.Outcome+": "+l.Reason, ": ")
}
