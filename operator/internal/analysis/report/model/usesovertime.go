package model

import (
	"cmp"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/results"
)

// overTimeSum adds up the use of resources over time, each over the trials in which it is known.
type overTimeSum struct {
	sums  []results.ResourceOverTime
	times map[string]float64
}

func (s *overTimeSum) add(all []results.ResourceOverTime) {
	for _, o := range all {
		i := slices.IndexFunc(s.sums, func(has results.ResourceOverTime) bool { return has.Resource == o.Resource })
		if i < 0 {
			s.sums = append(s.sums, results.ResourceOverTime{Resource: o.Resource})
			i = len(s.sums) - 1
		}
		if s.times == nil {
			s.times = map[string]float64{}
		}
		s.times[o.Resource]++
		t := &s.sums[i]
		t.Mean, t.P50, t.P95, t.P99, t.Max = t.Mean+o.Mean, t.P50+o.P50, t.P95+o.P95, t.P99+o.P99, t.Max+o.Max
	}
}

func (s *overTimeSum) mean() []results.ResourceOverTime {
	all := slices.Clone(s.sums)
	for i := range all {
		o, n := &all[i], s.times[all[i].Resource]
		o.Mean, o.P50, o.P95, o.P99, o.Max = o.Mean/n, o.P50/n, o.P95/n, o.P99/n, o.Max/n
	}
	return all
}

// addOverTime takes in the use of a part's pods over time, together and each, and the sizes of
// their volumes. It leaves out a volume whose size is unknown for some pod.
func (s *resourceSum) addOverTime(t results.Trial, part string, pods []results.Pod) {
	for _, u := range t.Use {
		if u.Part == part {
			s.together.add(u.OverTime)
		}
	}
	held, unknown := map[string]float64{}, map[string]bool{}
	for _, p := range pods {
		s.single.add(p.Resources.OverTime)
		for _, v := range p.Resources.Volumes {
			held[v.Name] += float64(v.Bytes)
			unknown[v.Name] = unknown[v.Name] || v.Unmeasured != ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if unknown[name] {
			continue
		}
		i := slices.IndexFunc(s.volumes, func(v results.VolumeLine) bool { return v.Name == name })
		if i < 0 {
			s.volumes = append(s.volumes, results.VolumeLine{Name: name})
			i = len(s.volumes) - 1
		}
		if s.volumeTrials == nil {
			s.volumeTrials = map[string]int{}
		}
		s.volumes[i].Bytes += held[name]
		s.volumeTrials[name]++
	}
}

func (s *resourceSum) volumeMeans() []results.VolumeLine {
	all := slices.Clone(s.volumes)
	for i := range all {
		all[i].Bytes /= float64(s.volumeTrials[all[i].Name])
	}
	slices.SortFunc(all, func(a, b results.VolumeLine) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// The values of LatencyBy.By, in the order of reports.
var latenciesBy = []struct {
	by string
	of func(results.Summary) []results.OperationSummary
}{
	{"operation", func(s results.Summary) []results.OperationSummary { return s.Operations }},
	{"node", func(s results.Summary) []results.OperationSummary { return s.Nodes }},
	{"region", func(s results.Summary) []results.OperationSummary { return s.Regions }},
}

// latencyBySum is a LatencyBy in the making: sums over trials.
type latencyBySum struct {
	results.LatencyBy
	variation  float64
	variations int
}

// addLatencyBy takes in the latencies of a valid trial by kind of operation, node that answered and
// clients' region.
func (d *Details) addLatencyBy(t results.Trial) {
	for _, row := range t.ByRow() {
		for _, l := range latenciesBy {
			parts := l.of(row.Summary)
			variation, varies := results.LatencyVariation(parts)
			for _, o := range parts {
				i := slices.IndexFunc(d.latencyBy, func(s *latencyBySum) bool { return s.Point == row.PointIndex && s.By == l.by && s.Name == o.Name })
				if i < 0 {
					d.latencyBy = append(d.latencyBy, &latencyBySum{LatencyBy: results.LatencyBy{Point: row.PointIndex, Coordinates: row.Coordinates, By: l.by, Name: o.Name}})
					i = len(d.latencyBy) - 1
				}
				s := d.latencyBy[i]
				s.Trials++
				s.Throughput, s.MeanMillis = s.Throughput+o.Throughput, s.MeanMillis+o.MeanMillis
				s.P50Millis, s.P95Millis, s.P99Millis = s.P50Millis+o.Percentiles["P50"], s.P95Millis+o.Percentiles["P95"], s.P99Millis+o.Percentiles["P99"]
				if varies && l.by != latenciesBy[0].by {
					s.variation, s.variations = s.variation+variation, s.variations+1
				}
			}
		}
	}
}

// latencyLines returns the means over the trials. They are in the order of points, and those of one
// point in the order of latenciesBy.
func (d *Details) latencyLines() (lines []results.LatencyBy) {
	for _, s := range d.latencyBy {
		l, n := s.LatencyBy, float64(s.Trials)
		l.Throughput, l.MeanMillis, l.P50Millis, l.P95Millis, l.P99Millis = l.Throughput/n, l.MeanMillis/n, l.P50Millis/n, l.P95Millis/n, l.P99Millis/n
		if s.variations > 0 {
			mean := s.variation / float64(s.variations)
			l.Variation = &mean
		}
		lines = append(lines, l)
	}
	rank := func(by string) int {
		for i, l := range latenciesBy {
			if l.by == by {
				return i
			}
		}
		return len(latenciesBy)
	}
	slices.SortFunc(lines, func(a, b results.LatencyBy) int {
		return cmp.Or(cmp.Compare(a.Point, b.Point), cmp.Compare(rank(a.By), rank(b.By)), cmp.Compare(a.Name, b.Name))
	})
	return lines
}
