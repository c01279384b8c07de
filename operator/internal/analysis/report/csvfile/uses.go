package csvfile

import (
	"fmt"
	"io"
	"strconv"

	"assay.dev/assay/operator/internal/results"
)

// Uses writes a line for each point, part and resource: how its use was spread over the seconds of
// the window. Numbers are in the resource's own unit: cores, bytes, bytes per second. pods is all
// (of the part, added up in each second first) or one (the mean over them). A volume has its size
// at the window's end as its mean, and nothing else.
func Uses(w io.Writer, e results.Experiment) error {
	out := NewWriter(w)
	_ = out.Write(append(header(e), "part", "pods", "trials", "resource", "unit", "mean", "p50", "p95", "p99", "max")) // kept: out.Error below
	for _, l := range e.Resources {
		row := func(pods, resource, unit string, numbers ...string) {
			_ = out.Write(append(append(at(e, l.Point, l.Coordinates), l.Part, pods, strconv.Itoa(l.Trials), resource, unit), numbers...))
		}
		for _, over := range []struct {
			pods string
			all  []results.ResourceOverTime
		}{{"all", l.OverTime}, {"one", l.PodOverTime}} {
			for _, o := range over.all {
				row(over.pods, o.Resource, unitOf(o.Resource), Exact(o.Mean, true), Exact(o.P50, true), Exact(o.P95, true), Exact(o.P99, true), Exact(o.Max, true))
			}
		}
		for _, v := range l.Volumes {
			row("all", results.UseVolumeSize+" "+v.Name, "B", Exact(v.Bytes, true), "", "", "", "")
		}
	}
	return ended(out, "the use over time")
}

// unitOf is a resource's own unit.
func unitOf(resource string) string {
	switch resource {
	case results.UseCPU:
		return "cores"
	case results.UseMemory, results.UsePageCache:
		return "B"
	}
	return "B/s"
}

// LatencyBy writes a line for each point and kind of operation, node that answered, or region of
// clients.
func LatencyBy(w io.Writer, e results.Experiment) error {
	out := NewWriter(w)
	_ = out.Write(append(header(e), "by", "name", "trials", "operations_s", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "mean_cov")) // kept: out.Error below
	for _, l := range e.LatencyBy {
		cov := ""
		if l.Variation != nil {
			cov = Exact(*l.Variation, true)
		}
		_ = out.Write(append(at(e, l.Point, l.Coordinates), l.By, l.Name, strconv.Itoa(l.Trials), Exact(l.Throughput, true),
			Exact(l.MeanMillis, l.MeanMillis > 0), Exact(l.P50Millis, l.P50Millis > 0), Exact(l.P95Millis, l.P95Millis > 0), Exact(l.P99Millis, l.P99Millis > 0), cov))
	}
	return ended(out, "the latencies")
}

// header and at begin a line: the point and its coordinates.
func header(e results.Experiment) []string {
	columns := []string{"point"}
	for _, a := range e.Axes {
		columns = append(columns, a.Name)
	}
	return columns
}

func at(e results.Experiment, point int32, coordinates map[string]string) []string {
	row := []string{strconv.Itoa(int(point))}
	for _, a := range e.Axes {
		row = append(row, coordinates[a.Name])
	}
	return row
}

func ended(out Writer, what string) error {
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write %s as CSV: %w", what, err)
	}
	return nil
}
