// Package csvfile writes the numbers of a report as CSV, not rounded.
package csvfile

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Points writes a line for each point: its coordinates, the trials by outcome, and each metric. A
// metric has the mean, standard deviation, least and greatest value, the 95% interval of the mean,
// and the paper's value. Numbers are not rounded. Missing values are empty: everything if there is
// no valid trial, deviation and interval if there is one. Then come the median, the two trials that
// enclose it, and the probability that they do (stats.Median), if the results have the lines of the
// trials. Then come the requests of the valid trials, all that ended or were never sent, and of
// these the errors, timeouts, unsent and given up. They are empty if clients do not report them.
// For a closed loop, the next is the mean share of the clients' time that is in the numbers, which
// is 1 by Little's law. Last come measurements, with the number of trials that have them.
// NotMeasured: there are valid trials, but none has the measurement.
func Points(w io.Writer, e results.Experiment) error {
	out := NewWriter(w)
	header := []string{"point"}
	for _, a := range e.Axes {
		header = append(header, a.Name)
	}
	header = append(header, "valid", "invalid", "failed")
	metrics := csvMetrics(e)
	for _, m := range metrics {
		for _, part := range []string{"mean", "stddev", "min", "max", "low95", "high95", "paper"} {
			header = append(header, m+"_"+part+"_"+model.UnitOf[m])
		}
		header = append(header, m+"_median_"+model.UnitOf[m], m+"_median_low_"+model.UnitOf[m], m+"_median_high_"+model.UnitOf[m], m+"_median_coverage")
	}
	header = append(header, "requests", "errors", "timeouts", "unsent", "givenUp", "clientTime_ratio")
	for _, m := range e.Measurements {
		for _, part := range []string{"n", "mean", "stddev", "min", "max", "low95", "high95"} {
			header = append(header, m.Name+"_"+part+csvUnit(m.Unit, part))
		}
	}
	_ = out.Write(header) // kept: out.Error below
	for _, p := range e.Points {
		row := []string{strconv.Itoa(int(p.Index))}
		for _, a := range e.Axes {
			row = append(row, p.Coordinates[a.Name])
		}
		row = append(row, strconv.Itoa(p.Valid), strconv.Itoa(p.Invalid), strconv.Itoa(p.Failed))
		for _, m := range metrics {
			a := p.Metrics[m]
			paper, has := model.PaperValue(e, m, p.Coordinates)
			row = append(row, Exact(a.Mean, a.N > 0), Exact(a.StdDev, a.N > 1), Exact(a.Min, a.N > 0), Exact(a.Max, a.N > 0), Exact(a.Low, a.N > 1), Exact(a.High, a.N > 1), Exact(paper, has))
			s, known := model.SummaryOf(e, p, m)
			row = append(row, Exact(s.Median.Value, known), Exact(s.Median.Low, known && s.N > 1), Exact(s.Median.High, known && s.N > 1), Exact(s.Median.Coverage, known && s.N > 1))
		}
		row = append(row, failureCounts(e, p)...)
		for _, m := range e.Measurements {
			a := p.Metrics[m.Name]
			row = append(row, strconv.Itoa(a.N), measuredExact(a.Mean, p.Valid, a.N), Exact(a.StdDev, a.N > 1), Exact(a.Min, a.N > 0), Exact(a.Max, a.N > 0), Exact(a.Low, a.N > 1), Exact(a.High, a.N > 1))
		}
		_ = out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the results as CSV: %w", err)
	}
	return nil
}

// failureCounts are the requests of a point and how many of them failed.
func failureCounts(e results.Experiment, p results.PointResult) []string {
	f, known := model.FailuresAt(e, p)
	known = known && f.Ended+f.Unsent > 0
	row := []string{whole(f.Ended+f.Unsent, known)}
	for _, c := range model.FailureCounters {
		row = append(row, whole(c.Of(f), known && f.Reports(c.Counter)))
	}
	mean := stats.Aggregate(f.ClientTime)
	return append(row, Exact(mean.Mean, mean.N > 0))
}

// csvMetrics are the metrics of every experiment, and further metrics that the paper reports.
func csvMetrics(e results.Experiment) []string {
	metrics := slices.Clone(stats.Metrics)
	if slices.ContainsFunc(e.Reported, func(s results.ReportedSeries) bool {
		return stats.OfSeries[s.Metric] == stats.PerCorrectClientThroughput
	}) {
		metrics = append(metrics, stats.PerCorrectClientThroughput)
	}
	var series []string
	for _, s := range e.Reported {
		series = append(series, s.Metric)
	}
	return append(metrics, stats.Further(series)...)
}

// csvUnit ends the name of a column; a number of trials has no unit.
func csvUnit(unit, part string) string {
	if unit == "" || part == "n" {
		return ""
	}
	return "_" + unit
}

// measuredExact says NotMeasured where there are valid trials and none has the number.
func measuredExact(mean float64, valid, n int) string {
	if valid > 0 && n == 0 {
		return stats.NotMeasured
	}
	return Exact(mean, n > 0)
}

func whole(n int64, exists bool) string {
	if !exists {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Exact writes a number that is not rounded; one that does not exist is empty.
func Exact(x float64, exists bool) string {
	if !exists {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
