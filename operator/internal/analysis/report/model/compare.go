package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A Comparison has the differences between two experiments, or two groups of runs of one.
type Comparison struct {
	// A and B are the first runs of the groups: what they are called and what they ran on.
	A, B results.Experiment
	// RunsA and RunsB are how many runs the groups have.
	RunsA, RunsB int
	// Between is the standard deviation of runs divided by their mean, as the caller stated it; 0:
	// not stated.
	Between float64
	// Rows are the comparisons at the points that both have, by point and metric.
	Rows []ComparedMetric
	// OnlyA and OnlyB are the points that the other side lacks.
	OnlyA, OnlyB []string
	// Origins are the differences in what the two ran on. They include facts that are known for one
	// only.
	Origins []DifferentOrigin
	// Order is that in which the runs were taken, such as AAABBB; empty: not known.
	Order string
	// Apart: all runs of one group were taken before those of the other.
	Apart bool
	// Notes name differences between the two in spite of which they are compared.
	Notes []string
}

// ComparedMetric is one metric at one point.
type ComparedMetric struct {
	// Point in words, and its coordinates in A.
	Point       string
	Coordinates map[string]string
	Metric      string
	stats.RunComparison
	// Adjusted is P for all tests of the comparison together (Holm).
	Adjusted float64
	// Ranked: both groups have two runs or more, so that RankP is known. RankP is the P of Mann and
	// Whitney's test on the means of runs, for this row by itself.
	Ranked bool
	RankP  float64
}

// level of significance.
const level = 0.05

// Significant reports whether the difference is significant among all tested ones.
func (m ComparedMetric) Significant() bool { return m.Tested && m.Adjusted < level }

// DifferentOrigin is a fact about what the two ran on that differs.
type DifferentOrigin struct{ What, A, B string }

// comparedMetrics are the metrics that are compared at each point.
var comparedMetrics = []string{stats.Throughput, stats.MeanLatency, stats.P99Latency}

// Compare puts the points of two groups of runs side by side. The argument between is the standard
// deviation of runs divided by their mean. It is used if each group has one run
// (stats.CompareRuns). Points are the same when all axes with more than one value in either
// experiment have the same value. An axis with one value in each does not tell points apart. A note
// names it if the values differ.
func Compare(runsA, runsB []results.Experiment, between float64) Comparison {
	a, b := runsA[0], runsB[0]
	c := Comparison{A: a, B: b, RunsA: len(runsA), RunsB: len(runsB), Between: between}
	axes := comparedAxes(a, b)
	c.Notes = fixedAxes(a, b, axes)
	pointsA, pointsB := pointsOf(runsA, axes), pointsOf(runsB, axes)
	places := c.order(runsA, runsB)
	inB := maps.Clone(pointsB[0])
	for _, p := range a.Points {
		key := keyOf(axes, p.Coordinates)
		q, ok := inB[key]
		if !ok {
			c.OnlyA = append(c.OnlyA, At(a.Axes, p.Coordinates))
			continue
		}
		delete(inB, key)
		for _, m := range comparedMetrics {
			x, y := metricAt(pointsA, key, m, places), metricAt(pointsB, key, m, places[len(runsA):])
			if len(x) == 0 || len(y) == 0 {
				continue
			}
			row := ComparedMetric{Metric: m, Coordinates: p.Coordinates, Point: At(axes, p.Coordinates), RunComparison: compareRuns(x, y, between, c.Order != "")}
			row.RankP, row.Ranked = rankTest(x, y)
			c.Rows = append(c.Rows, row)
		}
		if p.Valid == 0 || q.Valid == 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: %s in A and %s in B, so that there is nothing to compare.",
				cmp.Or(At(axes, p.Coordinates), "the only point"), Count(p.Valid, "valid trial"), Count(q.Valid, "valid trial")))
		}
	}
	for _, p := range b.Points {
		if _, left := inB[keyOf(axes, p.Coordinates)]; left {
			c.OnlyB = append(c.OnlyB, At(b.Axes, p.Coordinates))
		}
	}
	c.adjust()
	c.Origins = differentOrigins(a, b)
	return c
}

// pointsOf are the points of each run, by the key for the comparison.
func pointsOf(runs []results.Experiment, axes []results.Axis) []map[string]results.PointResult {
	all := make([]map[string]results.PointResult, len(runs))
	for i, r := range runs {
		all[i] = map[string]results.PointResult{}
		for _, p := range r.Points {
			all[i][keyOf(axes, p.Coordinates)] = p
		}
	}
	return all
}

// order finds in which order the runs were taken, and gives each run its place: those of A, then
// those of B. Where a run does not say when it started, the places mean nothing.
func (c *Comparison) order(runsA, runsB []results.Experiment) []int {
	runs := slices.Concat(runsA, runsB)
	inOrder := make([]int, len(runs))
	for i := range inOrder {
		inOrder[i] = i
	}
	slices.SortStableFunc(inOrder, func(i, j int) int { return runs[i].Started.Compare(runs[j].Started) })
	places := make([]int, len(runs))
	known := !slices.ContainsFunc(runs, func(r results.Experiment) bool { return r.Started.IsZero() })
	for place, i := range inOrder {
		places[i] = place
		if known {
			c.Order += map[bool]string{true: "A", false: "B"}[i < len(runsA)]
		}
	}
	n := len(runsA)
	if !known {
		return places
	}
	c.Apart = slices.Max(places[:n]) < slices.Min(places[n:]) || slices.Max(places[n:]) < slices.Min(places[:n])
	return places
}

// OrderNote says how the order of the runs affects their comparison. Empty: it needs no note.
func (c Comparison) OrderNote() string {
	switch {
	case c.RunsA+c.RunsB == 2:
		return ""
	case c.Order == "":
		return "Some run does not say when it started, so that nobody knows whether runs of A and B alternated. If they did not, what changed between them counts as a difference."
	case c.Apart:
		return fmt.Sprintf("The runs were taken in the order %s: all of one side before the other. What changed on the machines between them counts as a difference. "+
			"Intervals are wide enough for machines that wander from run to run, and not for a steady drift. Let runs alternate, or compare in one experiment: kubectl assay run --compare.", c.Order)
	}
	return ""
}

// compareRuns compares by the order of runs, where it is known.
func compareRuns(a, b []stats.Run, between float64, ordered bool) stats.RunComparison {
	if ordered {
		return stats.CompareRunsInOrder(a, b, between)
	}
	return stats.CompareRuns(trialsOf(a), trialsOf(b), between)
}

func trialsOf(runs []stats.Run) (all []results.Aggregate) {
	for _, r := range runs {
		all = append(all, r.Trials)
	}
	return all
}

// metricAt is a metric of a point in each run that has it, with the run's place.
func metricAt(runs []map[string]results.PointResult, key, metric string, places []int) []stats.Run {
	var all []stats.Run
	for i, points := range runs {
		if a := points[key].Metrics[metric]; a.N > 0 {
			all = append(all, stats.Run{Trials: a, Place: places[i]})
		}
	}
	return all
}

// rankTest is the p-value of Mann and Whitney's test on the means of runs.
func rankTest(a, b []stats.Run) (p float64, ok bool) {
	if min(len(a), len(b)) < 2 {
		return 0, false
	}
	var means [2][]float64
	for i, runs := range [][]stats.Run{a, b} {
		for _, r := range runs {
			means[i] = append(means[i], r.Trials.Mean)
		}
	}
	test, err := stats.MannWhitney(means[0], means[1])
	return test.P, err == nil
}

// adjust corrects the p-values for their number.
func (c *Comparison) adjust() {
	var ps []float64
	for _, r := range c.Rows {
		if r.Tested {
			ps = append(ps, r.P)
		}
	}
	adjusted := stats.Holm(ps)
	for i := range c.Rows {
		if c.Rows[i].Tested {
			c.Rows[i].Adjusted, adjusted = adjusted[0], adjusted[1:]
		}
	}
}

// Tested is how many comparisons could be tested, Significant how many of them show a difference.
func (c Comparison) Tested() (tested, significant int) {
	for _, r := range c.Rows {
		if r.Tested {
			tested++
		}
		if r.Significant() {
			significant++
		}
	}
	return tested, significant
}

// comparedAxes are those with several values in either, in the order of A and then of B.
func comparedAxes(a, b results.Experiment) []results.Axis {
	var axes []results.Axis
	for _, x := range slices.Concat(a.Axes, b.Axes) {
		several := len(x.Values) > 1 || slices.ContainsFunc(slices.Concat(a.Axes, b.Axes), func(y results.Axis) bool { return y.Name == x.Name && len(y.Values) > 1 })
		if several && !slices.ContainsFunc(axes, func(y results.Axis) bool { return y.Name == x.Name }) {
			axes = append(axes, x)
		}
	}
	return axes
}

// keyOf returns the same key for coordinates that are the same as text or as numbers.
func keyOf(axes []results.Axis, coordinates map[string]string) string {
	var b strings.Builder
	for _, a := range axes {
		v, has := coordinates[a.Name]
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			v = strconv.FormatFloat(x, 'g', -1, 64)
		}
		fmt.Fprintf(&b, "%t%q", has, v)
	}
	return b.String()
}

// fixedAxes names axes with one value at most in each experiment, if the values differ.
func fixedAxes(a, b results.Experiment, compared []results.Axis) []string {
	value := func(e results.Experiment, axis string) string {
		for _, x := range e.Axes {
			if x.Name == axis && len(x.Values) > 0 {
				return x.Values[0]
			}
		}
		return ""
	}
	names := map[string]bool{}
	for _, x := range slices.Concat(a.Axes, b.Axes) {
		if !slices.ContainsFunc(compared, func(y results.Axis) bool { return y.Name == x.Name }) {
			names[x.Name] = true
		}
	}
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if x, y := value(a, name), value(b, name); !results.SameValue(x, y) {
			notes = append(notes, fmt.Sprintf("%s is %s in A and %s in B; they are compared all the same.", name, cmp.Or(x, "not an axis"), cmp.Or(y, "not an axis")))
		}
	}
	return notes
}

// differentOrigins lists the differences in what the two ran on.
func differentOrigins(a, b results.Experiment) []DifferentOrigin {
	var all []DifferentOrigin
	add := func(what, x, y string) {
		if x != y {
			all = append(all, DifferentOrigin{what, cmp.Or(x, "not known"), cmp.Or(y, "not known")})
		}
	}
	add("experiment", a.Name, b.Name)
	add("profile", cmp.Or(a.Profile, "none"), cmp.Or(b.Profile, "none"))
	add("spec", a.SpecSHA256, b.SpecSHA256)
	var pa, pb results.Provenance
	if a.Provenance != nil {
		pa = *a.Provenance
	}
	if b.Provenance != nil {
		pb = *b.Provenance
	}
	parts := map[string]bool{}
	for _, images := range []map[string][]string{pa.Images, pb.Images} {
		for part := range images {
			parts[part] = true
		}
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		add("image of "+part, strings.Join(pa.Images[part], ", "), strings.Join(pb.Images[part], ", "))
	}
	for i, row := range SoftwareRows(pa) {
		add(row[0], row[1], SoftwareRows(pb)[i][1])
	}
	add("kernel", strings.Join(pa.Kernels, ", "), strings.Join(pb.Kernels, ", "))
	add("CPU", strings.Join(pa.CPUs, ", "), strings.Join(pb.CPUs, ", "))
	add("nodes", strings.Join(pa.Nodes, ", "), strings.Join(pb.Nodes, ", "))
	return append(all, differentNetworks(a, b)...)
}

// networkDiffers is by how much the measured round trips of two regions may differ and still count
// as the same. It is 5%, and 0.5 ms besides, since they are the least of a few probes on pods that
// share their machine.
func networkDiffers(x, y float64) bool { return max(x, y)-min(x, y) > 0.5+0.05*min(x, y) }

// differentNetworks lists the pairs of regions with different networks. The two experiments asked
// for different links, or measured different round trips under equal ones.
func differentNetworks(a, b results.Experiment) []DifferentOrigin {
	la, lb := roundTrips(a), roundTrips(b)
	says := func(of map[string][2]float64, key string) string {
		if rtt, ok := of[key]; ok {
			return "measured RTT " + Span(rtt[0], rtt[1]) + " ms"
		}
		return "not there"
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(la)), maps.Keys(lb))
	slices.Sort(keys)
	var all []DifferentOrigin
	for _, key := range slices.Compact(keys) {
		x, inA := la[key]
		y, inB := lb[key]
		if inA != inB || networkDiffers(x[0], y[0]) || networkDiffers(x[1], y[1]) {
			all = append(all, DifferentOrigin{"network " + key, says(la, key), says(lb, key)})
		}
	}
	return all
}

// roundTrips are the minimum and the maximum that were measured, in milliseconds, by the regions
// and what was asked between them.
func roundTrips(e results.Experiment) map[string][2]float64 {
	m := map[string][2]float64{}
	for _, n := range e.Networks {
		key := fmt.Sprintf("%s - %s, asked %s and %s back", n.From, n.To, AskedText(n.Out), AskedText(n.In))
		if rtt, seen := m[key]; seen {
			m[key] = [2]float64{least(rtt[0], n.MeasuredMinMillis), max(rtt[1], n.MeasuredMaxMillis)}
			continue
		}
		m[key] = [2]float64{n.MeasuredMinMillis, n.MeasuredMaxMillis}
	}
	return m
}
