package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// leastScatter is how many degrees of freedom Groups needs: with fewer, all trials may lie close
// together by chance.
const leastScatter = 5

// Groups returns the points whose trials lie in groups that are far apart, relative to how much
// trials of these points vary. The cause may be a slow mode, an outlier, a heavy tail, or a point
// that varies much more than the others. The argument samples[p] has the trials of point p. With
// such data, intervals are right less often than they say. If one trial in ten is in a slow mode,
// the interval of a mean of five trials is right in 41% of experiments.
//
// Deviations are shares of a point's mean. How much trials vary is Rousseeuw's and Croux's Q_n (J.
// Am. Stat. Assoc. 88, 1993), 2.2219 times the first quartile of all differences of two trials of
// one point: it needs no centre, and half of the trials may lie elsewhere. A point has groups where
// two neighbouring trials differ by more than 4.5 (1 + 9/f) Q_n, with f degrees of freedom (trials
// less points). TestGroups checks how often Groups names normal trials (in 2% of experiments at
// most), and how often it finds modes.
//
// Points with fewer than three trials, or a mean that is not above 0, are left out.
func Groups(samples [][]float64) []int {
	var differences []float64
	gaps, freedom := make([]float64, len(samples)), 0
	for p, xs := range samples {
		mean := stat.Mean(xs, nil)
		if len(xs) < leastModes || !(mean > 0) || mean > Limit {
			continue
		}
		sorted := slices.Sorted(slices.Values(xs))
		for i := range sorted {
			for j := range i {
				differences = append(differences, (sorted[i]-sorted[j])/mean)
			}
			if i > 0 {
				gaps[p] = math.Max(gaps[p], (sorted[i]-sorted[i-1])/mean)
			}
		}
		freedom += len(xs) - 1
	}
	if freedom < leastScatter {
		return nil
	}
	slices.Sort(differences)
	scatter := 2.2219 * stat.Quantile(0.25, stat.Empirical, differences, nil)
	var apart []int
	for p, gap := range gaps {
		if scatter > 0 && gap > 4.5*(1+9/float64(freedom))*scatter {
			apart = append(apart, p)
		}
	}
	return apart
}

// leastModes is how many trials a point needs for one of them to lie apart.
const leastModes = 3
