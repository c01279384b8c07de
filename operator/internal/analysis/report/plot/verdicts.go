package plot

import (
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// VerdictPicture draws the strip of verdicts as a file of its own. False: no claim has numbers.
func VerdictPicture(e results.Experiment) (Picture, bool, error) {
	title := VerdictsOf(e)
	drawn := strip.Picture(e.Claims, e.Look != nil, "verdicts", title)
	if drawn == "" {
		return Picture{}, false, nil
	}
	picture, err := newPicture("verdicts", title, drawn)
	return picture, err == nil, err
}

// VerdictsOf is a title for verdicts. It says if they may still change.
func VerdictsOf(e results.Experiment) string {
	if e.Completed == nil {
		return "Preliminary verdicts of " + e.Name
	}
	return "Verdicts of " + e.Name
}
