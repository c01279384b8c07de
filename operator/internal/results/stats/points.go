package stats

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/results"
)

// The metrics of a point.
const (
	Throughput  = "throughput"
	MeanLatency = "meanLatency"
	P50Latency  = "p50Latency"
	P90Latency  = "p90Latency"
	P95Latency  = "p95Latency"
	P99Latency  = "p99Latency"
	P999Latency = "p999Latency"
	AbortRate   = "abortRate"
	// PerCorrectClientThroughput is throughput divided by the number of correct clients: see
	// PerCorrectClient.
	PerCorrectClientThroughput = "throughputPerCorrectClient"
)

// Metrics that every point has, in the order in which they are shown. PerCorrectClientThroughput is
// none of them: it is for points whose trials say how many clients were correct.
var Metrics = []string{Throughput, MeanLatency, P50Latency, P99Latency, AbortRate}

// OfSeries are the metrics of reported series, by their names in the API.
var OfSeries = map[string]string{
	"Throughput":                 Throughput,
	"ThroughputPerCorrectClient": PerCorrectClientThroughput,
	"MeanLatency":                MeanLatency,
	"P50Latency":                 P50Latency,
	"P90Latency":                 P90Latency,
	"P95Latency":                 P95Latency,
	"P99Latency":                 P99Latency,
	"P999Latency":                P999Latency,
}

// Further are the metrics of reported series, by their names in the API, that not every point has:
// each once, in the order of their names.
func Further(series []string) []string {
	var further []string
	for _, name := range series {
		m, known := OfSeries[name]
		if known && m != PerCorrectClientThroughput && !slices.Contains(Metrics, m) {
			further = append(further, m)
		}
	}
	slices.Sort(further)
	return slices.Compact(further)
}

// NotMeasured stands in place of a number that Prometheus did not give.
const NotMeasured = "NotMeasured"

// The outcomes of a trial.
const (
	Succeeded = "Succeeded"
	Invalid   = "Invalid"
	Failed    = "Failed"
)

// Of returns a metric of one trial: throughput in transactions per second, latencies in
// milliseconds, the abort rate from 0 to 1.
func Of(line results.TrialLine, metric string) float64 {
	switch metric {
	case Throughput:
		return line.Throughput
	case MeanLatency:
		return line.MeanMillis
	case P50Latency:
		return line.P50Millis
	case P90Latency:
		return line.P90Millis
	case P95Latency:
		return line.P95Millis
	case P99Latency:
		return line.P99Millis
	case P999Latency:
		return line.P999Millis
	case PerCorrectClientThroughput:
		// PerCorrectClient with the division by the window's length done already.
		return line.Throughput / float64(max(1, line.CorrectClients))
	case AbortRate:
		return float64(line.Aborted) / float64(max(1, Ended(line)))
	}
	panic("stats: there is no metric " + metric)
}

// Has says whether a trial has a metric. Latencies need a committed transaction, or clients that
// report them of their whole run. Rates need an ended attempt, and a client that reports the count.
func Has(line results.TrialLine, metric string) bool {
	switch metric {
	case MeanLatency, P50Latency, P99Latency:
		return line.Committed > 0 && !line.RunSummary || Of(line, metric) > 0
	case P90Latency, P95Latency, P999Latency: // 0 in older results
		return Of(line, metric) > 0
	case AbortRate:
		return Ended(line) > 0 && Reports(line, results.CounterAborted)
	case PerCorrectClientThroughput:
		return line.CorrectClients > 0
	case Throughput:
		// Imported trials, and rows of scripts, may have latencies alone.
		return line.Imported == nil && line.Script == "" || line.Throughput > 0
	}
	return true
}

// Ended is how many attempts ended in the window of a trial, with any outcome.
func Ended(line results.TrialLine) int64 {
	return line.Committed + line.Aborted + line.Errors + line.Timeouts
}

// Reports says whether all clients of a trial report a counter (results.CounterAborted and others).
func Reports(line results.TrialLine, counter string) bool {
	return !slices.Contains(line.Unreported, counter)
}

// Points aggregates the trials of each point, in order of the points. Only trials that succeeded
// are in the metrics; the others are counted. The result leaves out points without trials. A metric
// or a measurement is over the trials that have it (Has). Metrics leaves out a metric that no trial
// has. The argument further names metrics that points get besides their own.
func Points(lines []results.TrialLine, further ...string) []results.PointResult {
	metrics := slices.Concat(Metrics, []string{PerCorrectClientThroughput}, further)
	byIndex := map[int32]*results.PointResult{}
	samples := map[int32]map[string][]float64{}
	for _, line := range lines {
		p := byIndex[line.PointIndex]
		if p == nil {
			p = &results.PointResult{Index: line.PointIndex, Coordinates: line.Coordinates, Metrics: map[string]results.Aggregate{}}
			byIndex[line.PointIndex] = p
			samples[line.PointIndex] = map[string][]float64{}
		}
		switch line.Outcome {
		case Succeeded:
			p.Valid++
			for _, m := range metrics {
				if Has(line, m) {
					samples[p.Index][m] = append(samples[p.Index][m], Of(line, m))
				}
			}
			for _, m := range line.Measurements {
				if m.Value != nil {
					samples[p.Index][m.Name] = append(samples[p.Index][m.Name], *m.Value)
				}
			}
		case Invalid:
			p.Invalid++
		case Failed:
			p.Failed++
		}
	}
	points := make([]results.PointResult, 0, len(byIndex))
	for index, p := range byIndex {
		for metric, xs := range samples[index] {
			p.Metrics[metric] = Aggregate(xs)
		}
		points = append(points, *p)
	}
	slices.SortFunc(points, func(a, b results.PointResult) int { return int(a.Index) - int(b.Index) })
	return points
}

// Warning says what n valid trials of a point cannot show. It is empty from five trials on.
func Warning(n int) string {
	switch {
	case n == 0:
		return "no valid trial"
	case n == 1:
		return "one trial: there is no interval"
	case Few(n):
		return fmt.Sprintf("%d trials: the table shows the least and the greatest; the interval, which plots show and by which claims are judged, holds only if trials are normally distributed, which so few cannot show, "+
			"and is %.1f standard errors wide on each side", n, tQuantile(float64(n-1)))
	}
	return ""
}
