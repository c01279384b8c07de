package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// resourceSum is a ResourceLine in the making: sums over trials, and over their pods.
type resourceSum struct {
	results.ResourceLine
	pods                  int // of all trials
	cores, busy, in, sent float64
	balance               balanceSum
}

// addResources takes in what a valid trial's pods used. A part of which some pod is not known is
// left out: its sum would be too small.
func (d *Details) addResources(t results.Trial) {
	for _, part := range partsOf(t.Pods) {
		pods := podsOf(t.Pods, part)
		if slices.ContainsFunc(pods, func(p results.Pod) bool { return p.Resources == nil || p.Resources.Seconds == 0 }) {
			continue
		}
		i := slices.IndexFunc(d.resources, func(s *resourceSum) bool { return s.Point == t.PointIndex && s.Part == part })
		if i < 0 {
			d.resources = append(d.resources, &resourceSum{ResourceLine: results.ResourceLine{Point: t.PointIndex, Coordinates: t.Coordinates, Part: part}})
			i = len(d.resources) - 1
		}
		d.resources[i].add(pods)
		d.resources[i].balance.add(pods, t.MeasureNanos)
	}
}

// partsOf lists the parts of a trial in the order of their pods.
func partsOf(pods []results.Pod) []string {
	var parts []string
	for _, p := range pods {
		if !slices.Contains(parts, p.Part) {
			parts = append(parts, p.Part)
		}
	}
	return parts
}

func podsOf(pods []results.Pod, part string) []results.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p results.Pod) bool { return p.Part != part })
}

func (s *resourceSum) add(pods []results.Pod) {
	s.Trials++
	s.Pods = max(s.Pods, len(pods))
	s.pods += len(pods)
	for _, p := range pods {
		r := p.Resources
		s.cores += r.CPUMeanCores
		s.busy += r.Node.BusyShare
		s.in += float64(r.ReceivedBytes) / r.Seconds
		s.sent += float64(r.SentBytes) / r.Seconds
		s.CPUMaxCores, s.MemoryMaxBytes = max(s.CPUMaxCores, r.CPUMaxCores), max(s.MemoryMaxBytes, r.MemoryMaxBytes)
		s.BusyWorstShare = max(s.BusyWorstShare, r.Node.BusyShare)
		if r.Node.PressureShare != nil {
			s.PressureShare = max(s.PressureShare, *r.Node.PressureShare)
		}
		for _, c := range r.Containers {
			if c.LimitCores > 0 {
				s.LimitShare = max(s.LimitShare, c.CPUMeanCores/c.LimitCores)
			}
		}
		s.ThrottledShare, s.StealShare = max(s.ThrottledShare, r.ThrottledShare), max(s.StealShare, r.Node.StealShare)
	}
}

func (s *resourceSum) line() results.ResourceLine {
	l := s.ResourceLine
	l.CPUMeanCores, l.BusyShare = s.cores/float64(s.pods), s.busy/float64(s.pods)
	l.CPUTotalCores, l.ReceivedPerSecond, l.SentPerSecond = s.cores/float64(s.Trials), s.in/float64(s.Trials), s.sent/float64(s.Trials)
	l.Balance = s.balance.mean()
	return l
}

// resourceTable has a row for each point and part.
func resourceTable(e results.Experiment) table {
	var t table
	for _, a := range e.Axes {
		t.columns = append(t.columns, column{name: a.Name, numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	t.columns = append(t.columns, column{"part", false}, column{"pods", true}, column{"trials", true}, column{"cores of a pod", true}, column{"of all", true},
		column{"max of a pod", true}, column{"memory MiB", true}, column{"received MB/s", true}, column{"sent MB/s", true},
		column{"node busy %", true}, column{"throttled %", true}, column{"steal %", true})
	for _, l := range e.Resources {
		var row []string
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		t.rows = append(t.rows, append(row, l.Part, strconv.Itoa(l.Pods), strconv.Itoa(l.Trials),
			stats.Fixed(l.CPUMeanCores, 3), stats.Fixed(l.CPUTotalCores, 3), stats.Fixed(l.CPUMaxCores, 3), stats.Fixed(float64(l.MemoryMaxBytes)/(1<<20), 1),
			stats.Fixed(l.ReceivedPerSecond/1e6, 3), stats.Fixed(l.SentPerSecond/1e6, 3), stats.Fixed(100*l.BusyShare, 1), stats.Fixed(100*l.ThrottledShare, 2), stats.Fixed(100*l.StealShare, 2)))
	}
	return t
}

// resourceLegend says how to read the table of resources.
const resourceLegend = "In the measurement window of the valid trials. Cores: processors' time by time, the mean of a pod, the sum over all pods of a trial, and the most that any pod used in one second. " +
	"Memory: the greatest working set of any pod. Received and sent: by all pods of a trial. Node busy: the share of processors' time, whoever used it. Throttled and steal: of the worst container and node of any trial."

// ResourceCSV writes a line for each point and part: what its pods used, and how evenly. Numbers
// are not rounded. An experiment without gives the header alone.
func ResourceCSV(w io.Writer, e results.Experiment) error {
	out := newCSV(w)
	header := []string{"point"}
	for _, a := range e.Axes {
		header = append(header, a.Name)
	}
	_ = out.Write(append(header, "part", "pods", "trials", "cpu_mean_cores", "cpu_total_cores", "cpu_max_cores", "memory_max_bytes", // kept: out.Error below
		"received_bytes_s", "sent_bytes_s", "node_busy_ratio", "throttled_max_ratio", "steal_max_ratio",
		"cpu_cov", "cpu_max_to_mean", "cpu_mean_cov", "cpu_outside_ratio", "sent_cov", "sent_max_to_mean"))
	number := func(x float64) string { return exact(x, true) }
	for _, l := range e.Resources {
		row := []string{strconv.Itoa(int(l.Point))}
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		row = append(row, l.Part, strconv.Itoa(l.Pods), strconv.Itoa(l.Trials), number(l.CPUMeanCores), number(l.CPUTotalCores), number(l.CPUMaxCores),
			strconv.FormatInt(l.MemoryMaxBytes, 10), number(l.ReceivedPerSecond), number(l.SentPerSecond), number(l.BusyShare), number(l.ThrottledShare), number(l.StealShare))
		_ = out.Write(append(row, balanceExact(l.Balance)...))
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the resources as CSV: %w", err)
	}
	return nil
}

// shareCell writes a share in per cent, if it was measured.
func shareCell(share *float64) string {
	if share == nil {
		return "-"
	}
	return stats.Fixed(100**share, 2)
}

// From these on, clients may be what limits throughput: they read replies late, and the system
// looks slow. In a closed loop nothing else shows it.
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
			points = append(points, fmt.Sprintf("%s (%s)", cmp.Or(at(e.Axes, l.Coordinates), "the only point"), strings.Join(why, ", ")))
		}
	}
	if len(points) == 0 {
		return nil
	}
	return []string{"Clients may have been what limits throughput and delays latency, and not the system: " + strings.Join(points, "; ") +
		". Measure again with twice the client pods at the same load: if the numbers move, it was the clients."}
}
