package model

import (
	"cmp"
	"math"
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// RecoverySum is the effect of a fault at a point, over its occurrences and the valid trials.
type RecoverySum struct {
	point              int32
	Coordinates        map[string]string
	Fault              string
	Trials, Times      int
	NoDip, NotMeasured int
	// Least is the depth above which a dip would have been seen at every occurrence without a dip.
	// Unknown: the results of some occurrences lack it.
	Least         float64
	Unknown       bool
	NotBack       int // when the data ended
	lastTrial     string
	Detect, Depth []float64
	Lost          []float64
	// The times to recovery, at least and at most. Without a recovery, they are the length of the
	// data, and +Inf.
	BackLeast, BackMost []float64
	Cautions            []string
}

// Recoveries of an experiment, by point and then in the order of the faults.
func Recoveries(e results.Experiment) []*RecoverySum {
	var sums []*RecoverySum
	for _, l := range e.Trials {
		if l.Outcome != stats.Succeeded {
			continue
		}
		for _, r := range l.Recovery {
			i := slices.IndexFunc(sums, func(s *RecoverySum) bool { return s.point == l.PointIndex && s.Fault == r.Fault })
			if i < 0 {
				sums = append(sums, &RecoverySum{point: l.PointIndex, Coordinates: l.Coordinates, Fault: r.Fault})
				i = len(sums) - 1
			}
			sums[i].add(l.Name, r)
		}
	}
	slices.SortStableFunc(sums, func(a, b *RecoverySum) int { return cmp.Compare(a.point, b.point) })
	return sums
}

func (s *RecoverySum) add(trial string, r results.Recovery) {
	if s.lastTrial != trial {
		s.Trials, s.lastTrial = s.Trials+1, trial
	}
	s.Times++
	for _, c := range r.Cautions {
		if c := stats.Caution(c); (c == stats.NoisyBaseline || c == stats.ShortBaseline) && !slices.Contains(s.Cautions, c.Text()) {
			s.Cautions = append(s.Cautions, c.Text())
		}
	}
	switch {
	case r.Error != "":
		s.NotMeasured++
		return
	case !r.Dipped:
		s.NoDip++
		s.Least, s.Unknown = math.Max(s.Least, r.LeastDip), s.Unknown || r.LeastDip == 0
		return
	}
	s.Detect, s.Depth, s.Lost = append(s.Detect, r.DetectMillis), append(s.Depth, r.Depth*100), append(s.Lost, r.LostTransactions)
	most := r.RecoverMillis
	if !r.Recovered {
		s.NotBack, most = s.NotBack+1, math.Inf(1)
	}
	s.BackLeast, s.BackMost = append(s.BackLeast, r.RecoverMillis), append(s.BackMost, most)
}
