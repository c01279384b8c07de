package bundle

import (
	"path"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/archive"
)

// slim says whether a bundle of this form leaves out the files of which IsMade is true.
func slim(form *archive.Form) bool { return form == archive.Zstd }

// IsMade says whether a file of a bundle is made from its other files: the report, its tables and
// plots, and parts of a trial's results. The verb report makes them again.
func IsMade(name string) bool {
	folder, base := path.Split(name)
	switch {
	case strings.HasPrefix(name, "plots/"):
		return true
	case folder == "":
		return base == "report.html" || base == "report.md" || path.Ext(base) == ".csv"
	case strings.HasPrefix(name, "trials/"):
		return strings.Count(name, "/") == 2 && (base == TimelineFile || base == LatencyFile)
	}
	return false
}

// WithoutMade removes from a bundle's README the rows about files of which IsMade is true.
func WithoutMade(readme string) string {
	var kept strings.Builder
	for line := range strings.Lines(readme) {
		cell, isRow := strings.CutPrefix(line, "| ")
		cell, _, _ = strings.Cut(cell, " |")
		if isRow && !slices.ContainsFunc(strings.Split(cell, ", "), func(name string) bool { return !IsMade(name) }) {
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}
