package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// resourceTable has a row for each point and part.
func resourceTable(e results.Experiment) Table {
	var t Table
	for _, a := range e.Axes {
		t.Columns = append(t.Columns, Column{Name: a.Name, Numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	t.Columns = append(t.Columns, Column{"part", false}, Column{"pods", true}, Column{"trials", true}, Column{"cores of a pod", true}, Column{"of all", true},
		Column{"max of a pod", true}, Column{"memory MiB", true}, Column{"received MB/s", true}, Column{"sent MB/s", true},
		Column{"node busy %", true}, Column{"throttled %", true}, Column{"steal %", true})
	for _, l := range e.Resources {
		var row []string
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		t.Rows = append(t.Rows, append(row, l.Part, strconv.Itoa(l.Pods), strconv.Itoa(l.Trials),
			stats.Fixed(l.CPUMeanCores, 3), stats.Fixed(l.CPUTotalCores, 3), stats.Fixed(l.CPUMaxCores, 3), stats.Fixed(float64(l.MemoryMaxBytes)/(1<<20), 1),
			stats.Fixed(l.ReceivedPerSecond/1e6, 3), stats.Fixed(l.SentPerSecond/1e6, 3), stats.Fixed(100*l.BusyShare, 1), stats.Fixed(100*l.ThrottledShare, 2), stats.Fixed(100*l.StealShare, 2)))
	}
	return t
}

// ResourceLegend says how to read the table of resources.
const ResourceLegend = "In the measurement window of the valid trials. Cores: processors' time by time, the mean of a pod, the sum over all pods of a trial, and the most that any pod used in one second. " +
	"Memory: the greatest working set of any pod. Received and sent: by all pods of a trial. Node busy: the share of processors' time, whoever used it. Throttled and steal: of the worst container and node of any trial."

// shareCell writes a share in per cent, if it was measured.
func shareCell(share *float64) string {
	if share == nil {
		return "-"
	}
	return stats.Fixed(100**share, 2)
}

// From these shares on, clients may limit throughput: they read replies late, and the system looks
// slow. In a closed loop nothing else shows that.
const (
	fullShare     = 0.9
	pressureShare = 0.1
)

// saturatedClients names the points whose clients may have been the bottleneck.
func saturatedClients(e results.Experiment) []string {
	var points []string
	if len(e.Scripts) > 0 {
		return nil // the machine of a script is no client of Assay's, and there are no more of it
	}
	for _, l := range e.Resources {
		var why []string
		if l.LimitShare >= fullShare {
			why = append(why, fmt.Sprintf("%.0f%% of their limit", 100*l.LimitShare))
		}
		if l.BusyWorstShare >= fullShare {
			why = append(why, fmt.Sprintf("node busy %.0f%%", 100*l.BusyWorstShare))
		}
		if l.PressureShare >= pressureShare {
			why = append(why, fmt.Sprintf("waiting for processors %.0f%% of the time", 100*l.PressureShare))
		}
		if l.Part == v1alpha1.PodTypeClient && len(why) > 0 {
			points = append(points, fmt.Sprintf("%s (%s)", cmp.Or(model.At(e.Axes, l.Coordinates), "the only point"), strings.Join(why, ", ")))
		}
	}
	if len(points) == 0 {
		return nil
	}
	return []string{"Clients may have been what limits throughput and delays latency, and not the system: " + strings.Join(points, "; ") +
		". Measure again with twice the client pods at the same load: if the numbers move, it was the clients."}
}
