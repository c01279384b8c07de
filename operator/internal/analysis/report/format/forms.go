// Package format writes a report as text, Markdown, LaTeX and one HTML page.
package format

import (
	"io"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
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
	"csv":           {"points.csv", csvfile.Points},
	"claims-csv":    {"claims.csv", ClaimsCSV},
	"network-csv":   {"network.csv", csvfile.Network},
	"recovery-csv":  {"recovery.csv", csvfile.Recovery},
	"resources-csv": {"resources.csv", csvfile.Resources},
	"trials-csv":    {"trials.csv", csvfile.Trials},
	"use-csv":       {"use.csv", csvfile.Uses},
	"latency-csv":   {"latency.csv", csvfile.LatencyBy},
	"latex":         {"tables.tex", LaTeX},
}
