package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// shot is one target of one fault. Times are in ms after the planned instant, or after the request
// for the deletion.
type shot struct {
	group            string // the same for the targets of one fault at one time
	began, confirmed float64
	reaped           float64 // of a kill
	end              string  // of a deleted pod's process: see howEnded
}

func confirmed(s shot) float64 { return s.confirmed }

// shotsOf makes shots of the records of one kind.
func shotsOf(records []record, kind string) []shot {
	var shots []shot
	for _, r := range records {
		if r.Kind == kind {
			group := fmt.Sprintf("%s %s %.3f", r.trial, r.Fault, r.PlannedMillis)
			shots = append(shots, shot{
				group: group, began: r.StartedMillis - r.PlannedMillis, confirmed: r.ConfirmedMillis - r.PlannedMillis,
				reaped: r.ReapedMillis - r.PlannedMillis,
			})
		}
	}
	return shots
}

// sorted values of the shots.
func sorted(shots []shot, value func(shot) float64) []float64 {
	var values []float64
	for _, s := range shots {
		values = append(values, value(s))
	}
	slices.Sort(values)
	return values
}

// quantile of sorted values by nearest rank: the least value for which at least a share q of the
// values is not above it. With fewer than 100 values the 99th percentile is the greatest.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}

// spreads are, for each fault and time, the differences between its first target's value and its
// last one's, sorted.
func spreads(shots []shot, value func(shot) float64) []float64 {
	groups := map[string][2]float64{}
	for _, s := range shots {
		g, ok := groups[s.group]
		if !ok {
			g = [2]float64{value(s), value(s)}
		}
		groups[s.group] = [2]float64{min(g[0], value(s)), max(g[1], value(s))}
	}
	var values []float64
	for _, g := range groups {
		values = append(values, g[1]-g[0])
	}
	slices.Sort(values)
	return values
}

// row prints one line of the table, with spreads if a fault has several targets.
func row(what string, shots []shot, value func(shot) float64) {
	v, s := sorted(shots, value), spreads(shots, value)
	fmt.Printf("%-44s %5d  %6.2f %6.2f %6.2f %6.2f", what, len(v), quantile(v, 0.5), quantile(v, 0.9), quantile(v, 0.99), quantile(v, 1))
	if len(s) < len(v) {
		fmt.Printf("  %8.2f %6.2f %6.2f", quantile(s, 0.5), quantile(s, 0.9), quantile(s, 1))
	}
	fmt.Println()
}

// edges of the histogram's bins, in ms. The first bin is below the first edge, and the last one
// above the last.
var edges = []float64{0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200}

// histogram prints how many shots were confirmed, by their lateness.
func histogram(title string, shots []shot) {
	const width = 60
	bins := make([]int, len(edges)+1)
	for _, s := range shots {
		i := 0
		for i < len(edges) && s.confirmed >= edges[i] {
			i++
		}
		bins[i]++
	}
	fmt.Printf("\n%s\n", title)
	for i, n := range bins {
		label := "          <    0"
		switch {
		case i == len(edges):
			label = fmt.Sprintf("%5g ms and more", edges[i-1])
		case i > 0:
			label = fmt.Sprintf("%5g to %5g ms", edges[i-1], edges[i])
		}
		fmt.Printf("  %-17s %4d %s\n", label, n, strings.Repeat("#", (n*width+max(1, len(shots))-1)/max(1, len(shots))))
	}
}

// ends prints how processes ended. A victim handles SIGTERM, as Kubernetes' own pause container
// does. A victim that gets SIGTERM before SIGKILL ends in order, with status 0: that is not a
// crash.
func ends(what string, shots []shot) {
	counts := map[string]int{}
	for _, s := range shots {
		counts[cmp.Or(s.end, "not known (the kernel is older than 6.15)")]++
	}
	for _, end := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%s: %d of %d ended by %s\n", what, counts[end], len(shots), end)
	}
}
