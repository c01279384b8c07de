package claims

import (
	"errors"
	"fmt"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Ratios are quotients of a metric at two points, with the intervals that claims have.
type Ratios struct{ run *run }

// NewRatios reads the trials that succeeded. Points without trials may be among points.
func NewRatios(points []results.PointResult, lines []results.TrialLine) *Ratios {
	return &Ratios{newRun(nil, points, lines)}
}

// Ratio is one quotient.
type Ratio struct {
	stats.Estimate
	// Trials of the two points that it rests on.
	Trials [2]int
	// How names the method of the interval, unless it is by each point's own deviations: by rounds,
	// in one model of 24 points.
	How string
	// Apart: the trials of the two points did not run in turn.
	Apart bool
}

// Of is a metric of package stats at the point a divided by that at b, as ratio(of=...) in a claim
// is. The error says what is missing.
func (s *Ratios) Of(name string, a, b results.PointResult) (Ratio, error) {
	r := s.run
	r.missing, r.caveats, r.models, r.rounds = nil, nil, 0, false
	m := metric{name: name}
	above, below := r.meanAt(a, m, unitOfMetric(m)), r.meanAt(b, m, unitOfMetric(m))
	switch {
	case len(r.missing) > 0:
		return Ratio{}, errors.New(r.missing[0])
	case below.value == 0:
		return Ratio{}, fmt.Errorf("%s is 0 at %s", name, showPoint(b.Coordinates))
	}
	out := Ratio{Trials: [2]int{len(r.samples[a.Index]), len(r.samples[b.Index])}, Apart: !interleaved(r.samples[a.Index], r.samples[b.Index])}
	out.Estimate, _ = r.estimate(r.over(above, below))
	out.How = r.how()
	return out, nil
}
