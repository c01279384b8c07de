package stats

import (
	"fmt"
	"math"
)

// Paired estimates mean(a - b) of two variants that were measured in the same rounds: a[i] and b[i]
// are the trials of round i. Its interval is Student's of the differences (Student 1908), d ±
// t(n-1) s_d/sqrt(n).
//
// Paired is right for interleaved trials when machines drift. The drift of a whole round is in both
// trials, so their difference does not have it. Difference (Welch's) treats it as noise of each
// variant. With interleaving, both intervals have their stated level. Difference is wider, and so
// finds fewer differences. Without interleaving, neither has its level. See Abedi and Brecht,
// "Conducting repeatable experiments in highly variable cloud computing environments" (ICPE'17).
//
// One round has no interval (OneSample); two to four have the caution FewSamples. Paired fails when
// the lists differ in length, are empty or hold a value that is not finite.
func Paired(a, b []float64) (Estimate, []Caution, error) {
	if err := checkPairs("the first variant", a, "the second variant", b); err != nil {
		return Estimate{}, nil, err
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	return estimateOf(differences)
}

// PairedRatio is Paired for the ratio a/b: the geometric mean of the ratios of the rounds, with the
// interval of its logarithm. A drift that slows everything by a share leaves it unchanged. It
// fails, beyond what Paired fails for, when a value is not positive, and when the interval reaches
// beyond 1e100.
func PairedRatio(a, b []float64) (Estimate, []Caution, error) {
	if err := checkPairs("the first variant", a, "the second variant", b); err != nil {
		return Estimate{}, nil, err
	}
	logs := make([]float64, len(a))
	for i := range a {
		if a[i] <= 0 || b[i] <= 0 {
			return Estimate{}, nil, fmt.Errorf("paired ratio: round %d has %g and %g; both must be positive", i+1, a[i], b[i])
		}
		logs[i] = math.Log(a[i]) - math.Log(b[i])
	}
	e, cautions, err := estimateOf(logs)
	if err != nil {
		return Estimate{}, nil, err
	}
	ratio := Estimate{Value: math.Exp(e.Value), Low: math.Exp(e.Low), High: math.Exp(e.High), Known: e.Known}
	if ratio.High > Limit || ratio.Value < 1/Limit {
		return Estimate{}, nil, fmt.Errorf("paired ratio: the ratios of the rounds are between e^%.3g and e^%.3g; that is no comparison", e.Low, e.High)
	}
	return ratio, cautions, nil
}

// estimateOf gives the mean of one value for each round.
func estimateOf(values []float64) (Estimate, []Caution, error) {
	if len(values) == 0 {
		return Estimate{}, nil, fmt.Errorf("paired: there are no rounds")
	}
	s, err := Summarize(values)
	if err != nil {
		return Estimate{}, nil, err
	}
	e := Estimate{Value: s.Mean, Low: s.Low, High: s.High, Known: s.N > 1}
	switch {
	case s.N == 1:
		return e, []Caution{OneSample}, nil
	case s.Few:
		return e, []Caution{FewSamples}, nil
	}
	return e, nil, nil
}
