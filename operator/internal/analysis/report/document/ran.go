package document

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/fidelity"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// TitleOf names what ran before the source, so that no reader confuses them.
func titleOf(e results.Experiment) string {
	source := strings.TrimSuffix(fmt.Sprintf("%s, %s", e.Source["title"], e.Source["section"]), ", ")
	switch {
	case e.Source["title"] == "":
		return e.Name
	case e.Fidelity == nil:
		return e.Name + ": " + source
	}
	return fmt.Sprintf("%s: %s, after %s", e.Name, fidelity.Programs(e.Fidelity), source)
}

// whatRan compares what ran with the source's measurements, and names the changes of the profile.
func whatRan(e results.Experiment) []string {
	f := e.Fidelity
	if f == nil {
		if e.Source["title"] == "" {
			return nil
		}
		return []string{"What ran, relative to what the source measured, is not in these results: an earlier version of Assay wrote them."}
	}
	text := "What ran: " + fidelity.Summary(f, e.Profile) + "."
	if n := len(f.Changes); n > 0 {
		text += fmt.Sprintf(" The profile changes %s: see %q.", model.Count(n, "setting"), ChangesTitle)
	}
	return []string{text}
}

// ChangesTitle is the heading of changesTable.
const ChangesTitle = "What the profile changes"

// changesTable has a row for each setting that the profile changes.
func changesTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"setting", false}, {"with the profile", false}, {"full evaluation", false}}}
	if e.Fidelity == nil {
		return t
	}
	for _, change := range e.Fidelity.Changes {
		setting, values, _ := strings.Cut(change, ": ")
		with, full, _ := strings.Cut(values, " in place of ")
		t.Rows = append(t.Rows, []string{setting, with, full})
	}
	return t
}

// compared says how many of the source's numbers are compared, and how many claims the profile
// leaves out. Verdicts compare values of claims. A number of a curve beside a measured point is
// only shown.
func compared(e results.Experiment) []string {
	judged, claimed, skipped := 0, 0, 0
	for _, c := range e.Claims {
		if c.Reported != "" {
			claimed++
			if c.Verdict != string(v1alpha1.VerdictNotEvaluated) {
				judged++
			}
		}
		if c.Skipped != "" || strings.HasPrefix(c.Message, "profile "+e.Profile+" skips it") { // older results have the message alone
			skipped++
		}
	}
	var parts []string
	if claimed > 0 {
		parts = append(parts, fmt.Sprintf("Verdicts compare %d of %s that the claims take from the source", judged, model.Count(claimed, "number")))
	}
	if beside, printed := besidePoints(e); printed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s of its curves stand beside a measured point", beside, model.Count(printed, "number")))
	}
	if skipped > 0 {
		parts = append(parts, fmt.Sprintf("%s skipped by the profile", model.Count(skipped, "claim")))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{strings.Join(parts, "; ") + "."}
}

// besidePoints counts the numbers of the source's curves. It also counts the numbers whose metric
// was measured at their point.
func besidePoints(e results.Experiment) (beside, printed int) {
	for _, s := range e.Reported {
		printed += len(s.Y)
		if _, known := model.Factor(s); !known {
			continue
		}
		for _, x := range s.X {
			for _, p := range e.Points {
				if model.Agrees(s.At, p.Coordinates) && results.SameValue(x, p.Coordinates[s.Axis]) && p.Metrics[model.MetricOfSeries(s)].N > 0 {
					beside++
					break
				}
			}
		}
	}
	return beside, printed
}

// WhatRan says what ran, relative to the source, and how much of the source is compared: the first
// lines of a report.
func WhatRan(e results.Experiment) []string { return append(whatRan(e), compared(e)...) }
