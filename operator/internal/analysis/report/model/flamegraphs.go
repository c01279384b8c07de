package model

import (
	"cmp"
	"slices"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/flame"
)

// addFlameGraphs takes in the work of profilers in a trial that never counts.
func (d *Details) addFlameGraphs(t results.Trial) {
	for _, f := range t.Faults {
		if f.Kind != string(timeline.Sample) || f.Skipped {
			continue
		}
		g := results.FlameGraph{
			Trial: t.Name, Coordinates: t.Coordinates, Fault: f.Fault, Time: f.Time, Pod: f.Pod, Tool: f.Profiler, Samples: f.Samples, Error: f.Error,
			FromMillis: f.StartedMillis, ToMillis: f.StartedMillis + f.SampledMillis,
		}
		if f.Error != "" { // it did not begin, or is not known to have ended
			g.FromMillis, g.ToMillis = f.PlannedMillis, f.PlannedMillis+f.SampledMillis
		}
		d.flames = append(d.flames, g)
	}
}

// flameGraphs are those of all trials with their files, as far as these were taken in.
func (d *Details) flameGraphs() []results.FlameGraph {
	all := slices.Clone(d.flames)
	for i := range all {
		g := &all[i]
		name := flame.Collected + flame.File(g.Fault, g.Time) + flame.Picture
		k := slices.IndexFunc(d.collected, func(f results.CollectedFile) bool { return f.Trial == g.Trial && f.Pod == g.Pod && f.Name == name })
		if k >= 0 {
			g.File, g.In = name, d.collected[k].In
		}
	}
	slices.SortStableFunc(all, func(a, b results.FlameGraph) int {
		return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.FromMillis, b.FromMillis), cmp.Compare(a.Pod, b.Pod))
	})
	return all
}
