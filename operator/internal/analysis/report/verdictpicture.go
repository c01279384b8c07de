package report

import (
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// VerdictPicture draws the strip of verdicts as a file of its own. False: no claim has numbers.
func VerdictPicture(e results.Experiment) (Picture, bool, error) {
	title := verdictsOf(e)
	drawn := strip.Picture(e.Claims, e.Look != nil, "verdicts", title)
	if drawn == "" {
		return Picture{}, false, nil
	}
	picture, err := newPicture("verdicts", title, drawn)
	return picture, err == nil, err
}

// verdictsOf is a title that says whether the verdicts may still change.
func verdictsOf(e results.Experiment) string {
	if e.Completed == nil {
		return "Preliminary verdicts of " + e.Name
	}
	return "Verdicts of " + e.Name
}

// WhatRan says what ran, relative to the source, and how much of the source is compared: the first
// lines of a report.
func WhatRan(e results.Experiment) []string { return append(whatRan(e), compared(e)...) }
