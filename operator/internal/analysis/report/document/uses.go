package document

import (
	"strconv"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// UsesLegend says how to read the table.
const UsesLegend = "How much pods used in the seconds of the measurement window: mean, percentiles over time and maximum, means over the valid trials. \"all\" are all pods of the part, added up in each second first; " +
	"\"one\" is the mean over its pods. A row is missing where a pod's use is not known. Volumes have what files took on the disk when the window was over."

// usesTable has a row for each point, part and resource.
func usesTable(e results.Experiment) Table {
	t := Table{Columns: axisColumns(e)}
	t.Columns = append(t.Columns, Column{"part", false}, Column{"pods", false}, Column{"resource", false}, Column{"unit", false},
		Column{"mean", true}, Column{"p50", true}, Column{"p95", true}, Column{"p99", true}, Column{"max", true})
	for _, l := range e.Resources {
		row := func(pods, resource, unit string, numbers ...string) {
			for len(numbers) < 5 {
				numbers = append(numbers, "-")
			}
			cells := append(coordinatesOf(e, l.Coordinates), l.Part, pods, resource, unit)
			t.Rows = append(t.Rows, append(cells, numbers...))
		}
		for _, over := range []struct {
			pods string
			all  []results.ResourceOverTime
		}{{"all", l.OverTime}, {"one", l.PodOverTime}} {
			if over.pods == "one" && l.Pods < 2 {
				continue
			}
			for _, o := range over.all {
				unit, size, decimals := shownUnit(o.Resource)
				cell := func(x float64) string { return stats.Fixed(x/size, decimals) }
				row(over.pods, o.Resource, unit, cell(o.Mean), cell(o.P50), cell(o.P95), cell(o.P99), cell(o.Max))
			}
		}
		for _, v := range l.Volumes {
			row("all", results.UseVolumeSize+" "+v.Name, "MiB", stats.Fixed(v.Bytes/(1<<20), 1))
		}
	}
	return t
}

// shownUnit is the unit that a resource is shown in, in its own unit, and with how many decimals.
func shownUnit(resource string) (unit string, size float64, decimals int) {
	switch resource {
	case results.UseCPU:
		return "cores", 1, 3
	case results.UseMemory, results.UsePageCache:
		return "MiB", 1 << 20, 1
	}
	return "MB/s", 1e6, 3
}

func axisColumns(e results.Experiment) (columns []Column) {
	for _, a := range e.Axes {
		columns = append(columns, Column{Name: a.Name, Numeric: false})
	}
	return columns
}

func coordinatesOf(e results.Experiment, at map[string]string) (cells []string) {
	for _, a := range e.Axes {
		cells = append(cells, at[a.Name])
	}
	return cells
}

// LatencyByLegend says how to read the table.
const LatencyByLegend = "Committed operations of the window by their kind, by the node that answered and by the region of the clients, as far as clients say so: means over the valid trials. " +
	"Percentiles are those of the merged histogram of each trial. CoV: the standard deviation of the mean latencies over the nodes, or regions, by their mean; 0 is perfect balance."

// latencyByTable has a row for each point and kind, node or region.
func latencyByTable(e results.Experiment) Table {
	t := Table{Columns: axisColumns(e)}
	t.Columns = append(t.Columns, Column{"by", false}, Column{"name", false}, Column{"trials", true}, Column{"operations/s", true},
		Column{"mean ms", true}, Column{"p50 ms", true}, Column{"p95 ms", true}, Column{"p99 ms", true}, Column{"CoV", true})
	for _, l := range e.LatencyBy {
		millis := func(x float64) string {
			if x == 0 {
				return "-"
			}
			return stats.Fixed(x, 3)
		}
		variation := "-"
		if l.Variation != nil {
			variation = stats.Fixed(*l.Variation, 3)
		}
		t.Rows = append(t.Rows, append(coordinatesOf(e, l.Coordinates), l.By, l.Name, strconv.Itoa(l.Trials), stats.Fixed(l.Throughput, 1),
			millis(l.MeanMillis), millis(l.P50Millis), millis(l.P95Millis), millis(l.P99Millis), variation))
	}
	return t
}
