package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// onSets reports whether trials ran on several sets of nodes.
func onSets(e results.Experiment) bool {
	return slices.ContainsFunc(e.Trials, func(l results.TrialLine) bool { return l.NodeSet != "" })
}

// validOnSets counts the valid trials of a point by their set of nodes.
func validOnSets(e results.Experiment, point int32) map[string]int {
	of := map[string]int{}
	for _, l := range e.Trials {
		if l.PointIndex == point && l.Outcome == stats.Succeeded {
			of[l.NodeSet]++
		}
	}
	return of
}

// countsOf sets, in words: "2 on a, 1 on b".
func countsOf(of map[string]int) string {
	var parts []string
	for _, set := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d on %s", of[set], cmp.Or(set, "no set")))
	}
	return strings.Join(parts, ", ")
}

// setsOf says how many valid trials each set of nodes has; empty: there are no sets.
func setsOf(e results.Experiment) string {
	if !onSets(e) {
		return ""
	}
	all := map[string]int{}
	for _, p := range e.Points {
		for set, n := range validOnSets(e, p.Index) {
			all[set] += n
		}
	}
	return fmt.Sprintf("on %d sets of nodes, one trial on each at a time, and each repetition on one of them (%s)", len(all), countsOf(all))
}

// setNotes name differences between sets of nodes, and points that did not run evenly on them.
func setNotes(e results.Experiment) []string {
	if !onSets(e) {
		return nil
	}
	notes := setEffects(e)
	if e.Completed == nil {
		return notes // points get their trials one after the other
	}
	var usual string
	alike := map[string]int{}
	for _, p := range e.Points {
		counts := countsOf(validOnSets(e, p.Index))
		if alike[counts]++; alike[counts] > alike[usual] {
			usual = counts
		}
	}
	for _, p := range e.Points {
		if of := validOnSets(e, p.Index); len(alike) > 1 && countsOf(of) != usual {
			notes = append(notes, fmt.Sprintf("%s has other shares of the sets (%s) than most points (%s). What is compared with it by rounds leaves out those that it lacks; all else compares machines, too.",
				cmp.Or(model.At(e.Axes, p.Coordinates), "The only point"), cmp.Or(countsOf(of), "none"), usual))
		}
	}
	return notes
}

// setEffects say by how much each set of nodes was faster or slower, by the points' means.
func setEffects(e results.Experiment) []string {
	var notes []string
	for _, m := range shownMetrics {
		if m.metric != stats.Throughput && m.metric != stats.MeanLatency {
			continue
		}
		shares := map[string][]float64{}
		for _, p := range e.Points {
			samples := model.SamplesOf(e, p, m.metric)
			mean := stat.Mean(samples, nil)
			i := 0
			for _, l := range e.Trials {
				if l.PointIndex != p.Index || l.Outcome != stats.Succeeded || !stats.Has(l, m.metric) || len(samples) < 2 || !(mean > 0) {
					continue
				}
				shares[l.NodeSet] = append(shares[l.NodeSet], samples[i]/mean-1)
				i++
			}
		}
		if len(shares) < 2 {
			continue
		}
		var parts []string
		for _, set := range slices.Sorted(maps.Keys(shares)) {
			parts = append(parts, fmt.Sprintf("%+.1f%% on %s", 100*stat.Mean(shares[set], nil), set))
		}
		notes = append(notes, fmt.Sprintf("%s was, by the mean of each point, %s.", m.name, strings.Join(parts, ", ")))
	}
	if len(notes) > 0 {
		notes = append(notes, "In each round all points ran on the same set, so that what sets differ by is in no comparison by rounds.")
	}
	return notes
}
