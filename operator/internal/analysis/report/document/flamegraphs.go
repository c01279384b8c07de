package document

import (
	"path"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// FlameGraphsLegend says how to read the table.
const FlameGraphsLegend = "Where pods spent processor time, by a profiler, in trials of their own that came after all others. Such a trial never counts: no claim, mean or curve has it. " +
	"The time is relative to t = 0 of that trial. Beside each picture (.svg) are the stacks that it was drawn from (.folded)."

// FlameGraphColumn has the pictures.
const FlameGraphColumn = "flame graph"

// flameGraphsTable has a row for each pod that a profiler sampled.
func flameGraphsTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"point", false}, {"pod", false}, {"tool", false}, {"from s", true}, {"to s", true}, {"samples", true}, {FlameGraphColumn, false}}}
	for _, g := range e.FlameGraphs {
		at := model.At(e.Axes, g.Coordinates)
		if at == "" {
			at = "the only one"
		}
		where := "its file is not here"
		switch {
		case g.Error != "":
			where = "none: " + g.Error
		case IsFolder(g.In):
			where = path.Join(g.In, g.Pod, g.File)
		case g.In != "":
			where = g.File + " in " + g.In + " (kubectl assay logs " + g.Trial + " --files DIRECTORY)"
		}
		t.Rows = append(t.Rows, []string{at, g.Pod, g.Tool, number(g.FromMillis/1000, 3), number(g.ToMillis/1000, 3), strconv.FormatInt(g.Samples, 10), where})
	}
	return t
}

// IsFolder reports whether the place is a folder of a bundle, beside the report.
func IsFolder(in string) bool { return strings.HasPrefix(in, "trials/") }
