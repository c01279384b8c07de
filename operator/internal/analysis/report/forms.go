package report

import (
	"io"

	"assay.dev/assay/operator/internal/results"
)

// Form is a report as one file, made from an experiment's results alone.
type Form struct {
	// File is the name of the file in a folder or bundle.
	File  string
	Write func(io.Writer, results.Experiment) error
}

// Forms by the names that the command line knows them by.
var Forms = map[string]Form{
	"markdown":      {"report.md", Markdown},
	"html":          {"report.html", HTML},
	"csv":           {"points.csv", CSV},
	"claims-csv":    {"claims.csv", ClaimCSV},
	"network-csv":   {"network.csv", NetworkCSV},
	"recovery-csv":  {"recovery.csv", RecoveryCSV},
	"resources-csv": {"resources.csv", ResourceCSV},
	"trials-csv":    {"trials.csv", TrialCSV},
	"latex":         {"tables.tex", LaTeX},
}
