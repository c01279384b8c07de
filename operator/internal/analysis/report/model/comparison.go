package model

import (
	"fmt"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Says what a row shows.
func (m ComparedMetric) Says() string {
	switch {
	case !m.Tested:
		return "not tested"
	case m.Significant() && m.B.Mean > m.A.Mean:
		return "B is higher"
	case m.Significant():
		return "B is lower"
	case m.P < level:
		return "none shown (only before the correction)"
	default:
		return "none shown"
	}
}

// Verdict says how many differences are significant, and by what.
func (c Comparison) Verdict() string {
	tested, significant := c.Tested()
	switch {
	case tested == 0 && c.RunsA+c.RunsB == 2 && c.Between == 0:
		return "Nothing is decided: with one run on each side, nothing tells how much runs of the same differ, and trials of one run do not vary as runs do. " +
			"Give several runs on a side (A1,A2,A3 B1), or state the deviation between runs (--between-runs 1%); or make both variants systems of one experiment."
	case tested == 0:
		return "Nothing can be told apart: no point that both have has two valid trials in each."
	}
	by := fmt.Sprintf("by the means of %d and %d runs", c.RunsA, c.RunsB)
	if c.RunsA+c.RunsB == 2 {
		by = fmt.Sprintf("if runs of the same deviate by %.3g%%, as was stated", 100*c.Between)
	}
	return fmt.Sprintf("%d of %s significant, %s (Student's test, 5%% for all of them together by Holm's correction).", significant, Count(tested, "difference"), by)
}

// ComparedRuns is a comparison as data.
type ComparedRuns struct {
	A      string `json:"a"`
	B      string `json:"b"`
	RunsA  int    `json:"runsA"`
	RunsB  int    `json:"runsB"`
	Result string `json:"result"`
	// Between is the stated standard deviation of runs divided by their mean, from 0 to 1.
	Between float64       `json:"between,omitempty"`
	Order   string        `json:"order,omitempty"`
	Rows    []ComparedRow `json:"rows"`
	OnlyA   []string      `json:"onlyA,omitempty"`
	OnlyB   []string      `json:"onlyB,omitempty"`
	Origins []struct {
		What string `json:"what"`
		A    string `json:"a"`
		B    string `json:"b"`
	} `json:"origins,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// ComparedRow is one metric at one point. Unknown values are left out.
type ComparedRow struct {
	Point      map[string]string `json:"point"`
	Metric     string            `json:"metric"`
	Unit       string            `json:"unit,omitempty"`
	A          ComparedSide      `json:"a"`
	B          ComparedSide      `json:"b"`
	Ratio      *results.Interval `json:"ratio,omitempty"`
	Difference results.Interval  `json:"difference"`
	P          *float64          `json:"p,omitempty"`
	PHolm      *float64          `json:"pHolm,omitempty"`
	// Significant is among all rows together; left out: not tested.
	Significant  *bool    `json:"significant,omitempty"`
	PMannWhitney *float64 `json:"pMannWhitney,omitempty"`
}

// ComparedSide is what one side measured.
type ComparedSide struct {
	N      int      `json:"n"`
	Mean   float64  `json:"mean"`
	StdDev *float64 `json:"stddev,omitempty"`
}

// ComparisonData is a comparison as data, with the columns of its CSV.
func ComparisonData(c Comparison) ComparedRuns {
	out := ComparedRuns{
		A: c.A.Name, B: c.B.Name, RunsA: c.RunsA, RunsB: c.RunsB, Result: c.Verdict(), Between: c.Between, Order: c.Order,
		Rows: []ComparedRow{}, OnlyA: c.OnlyA, OnlyB: c.OnlyB, Notes: c.Notes,
	}
	for _, o := range c.Origins {
		out.Origins = append(out.Origins, struct {
			What string `json:"what"`
			A    string `json:"a"`
			B    string `json:"b"`
		}{o.What, o.A, o.B})
	}
	for _, r := range c.Rows {
		row := ComparedRow{Point: r.Coordinates, Metric: r.Metric, Unit: UnitOf[r.Metric], A: comparedSide(r.A), B: comparedSide(r.B), Difference: results.Interval{Value: r.Difference.Value}}
		if r.Difference.Known {
			row.Difference.Low, row.Difference.High = &r.Difference.Low, &r.Difference.High
		}
		if r.HasRatio {
			row.Ratio = &results.Interval{Value: r.Ratio.Value}
			if r.Ratio.Known {
				row.Ratio.Low, row.Ratio.High = &r.Ratio.Low, &r.Ratio.High
			}
		}
		if r.Tested {
			significant := r.Significant()
			row.P, row.PHolm, row.Significant = &r.P, &r.Adjusted, &significant
		}
		if r.Ranked {
			row.PMannWhitney = &r.RankP
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func comparedSide(a results.Aggregate) ComparedSide {
	side := ComparedSide{N: a.N, Mean: a.Mean}
	if a.N > 1 {
		side.StdDev = &a.StdDev
	}
	return side
}

// UnitOf is the unit of a metric, as it ends the names of its columns.
var UnitOf = map[string]string{
	stats.Throughput: "tx_s", stats.PerCorrectClientThroughput: "tx_s", stats.AbortRate: "ratio",
	stats.MeanLatency: "ms", stats.P50Latency: "ms", stats.P90Latency: "ms", stats.P95Latency: "ms", stats.P99Latency: "ms", stats.P999Latency: "ms",
}
