package document

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// importedProgress describes imported results, in place of an experiment's progress.
func importedProgress(e results.Experiment) string {
	return fmt.Sprintf("%s over %s: measured elsewhere, and not judged whether they are valid. Not known are faults, clocks, disturbances, machines and the order of the trials.",
		model.Count(len(e.Trials), "imported trial"), model.Count(len(e.Points), "point"))
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

// Reading says how to read a table or a figure. Assay did not judge whether imported trials are
// valid.
func (p Page) Reading(legend string) string {
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
