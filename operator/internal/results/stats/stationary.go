package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// mserBatch is how many observations make a batch: the 5 of MSER-5.
	mserBatch = 5
	// mserBatches is how many batches the check needs to say anything.
	mserBatches = 10
	// DefaultTransientTolerance is the bias of a window's mean, as a share, that the check must
	// find.
	DefaultTransientTolerance = 0.05
	// seenFrom is the share of the tolerance above which an estimated bias counts. In every second
	// window, the estimate of a bias is too small.
	seenFrom = 0.6
	// transientDeviations is how many standard errors the transient's mean must be away from that
	// of the rest, for it to be more than noise. MSER chooses the end of the transient so that the
	// rest varies least. So noise alone would pass the usual two.
	transientDeviations = 4
	// driftLevel is the P below which a slope is a drift. As many steady windows have such a slope
	// by chance.
	driftLevel = 0.01
	// mostCorrelated bounds the correlation of neighbours: a window is too short to show a greater
	// one.
	mostCorrelated = 0.95
)

// Stationarity says whether a measurement window holds a transient, such as a warm-up that was too
// short, or drifts.
type Stationarity struct {
	// Transient is the number of observations at the start that do not look like the rest, a
	// multiple of 5 and at most half of them.
	Transient int
	// Mean of all observations, and of those after the transient.
	Mean, SteadyMean float64
	// Bias is the effect of the transient on the mean: Mean/SteadyMean - 1.
	Bias float64
	// Drift is by how much a straight line through the window rises from its start to its end, as a
	// share of the mean. 0: there is none beyond noise that matters.
	Drift float64
	// Cautions: NotStationary, when Bias or half of Drift is above the tolerance, and not by noise
	// alone.
	Cautions []Caution
}

// CheckStationarity looks for a transient at the start of a window by MSER-5: of the means Z_1 ...
// Z_n of batches of 5 observations, it leaves out the first d, at most half of them, that make the
// estimated error of the mean of the rest least,
//
//	d = argmin  1/(n-d)² sum_{i>d} (Z_i - mean(Z_{d+1} ... Z_n))²
//
// (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation
// 69, 1997; White, Cobb and Spratt, WSC'00). The number d alone is no verdict, for on steady noise
// it is seldom 0. So the window is judged by the transient's effect on the reported number. It is
// NotStationary on two conditions. The transient moves the mean by more than 60% of tolerance (a
// share). The means before and after d are further apart than noise explains,
//
//	|mean(Z_1 ... Z_d) - mean(Z_{d+1} ... Z_n)| > 4 s sqrt(k (1/d + 1/(n-d)))
//	s: standard deviation of Z_{d+1} ... Z_n
//	k = (1+f)/(1-f), f: correlation of neighbours among Z_{d+1} ... Z_n, corrected by 2/n, at least 0
//
// Without the second condition, most windows of a few seconds with a few transactions in a bin
// would be called not stationary.
//
// A drift over the whole window has no end that d could find. So a straight line is fitted to the
// batches, too. The window is NotStationary if the line moves the mean by more than 60% of
// tolerance from its start, and its slope has P < 1%. P is that of Student's test with n/k
// observations (Santer et al., J. Geophys. Res. 105, 2000; f of the residuals, corrected by 4/n).
//
// observations are throughput or mean latency of equal intervals of the window, in order: bins of
// 100 ms. Fewer than 50 say nothing, and are refused, as are values that are negative or not
// finite, and a steady part whose mean is 0.
func CheckStationarity(observations []float64, tolerance float64) (Stationarity, error) {
	z, err := batches(observations, tolerance)
	if err != nil {
		return Stationarity{}, err
	}
	s := Stationarity{Transient: mserBatch * truncation(z), Mean: stat.Mean(observations, nil)}
	s.SteadyMean = stat.Mean(observations[s.Transient:], nil)
	if s.SteadyMean == 0 {
		return Stationarity{}, fmt.Errorf("stationarity: nothing happened in the last %d observations", len(observations)-s.Transient)
	}
	s.Bias = s.Mean/s.SteadyMean - 1
	if d := s.Transient / mserBatch; math.Abs(s.Bias) > seenFrom*tolerance && beyondNoise(z[:d], z[d:]) {
		s.Cautions = append(s.Cautions, NotStationary)
	}
	if rise, p := drift(z); math.Abs(rise)/2 > seenFrom*tolerance && p < driftLevel {
		s.Drift = rise
		if len(s.Cautions) == 0 {
			s.Cautions = append(s.Cautions, NotStationary)
		}
	}
	return s, nil
}

// drift is the rise of a straight line through all batches, as a share of their mean, and its P.
func drift(z []float64) (rise, p float64) {
	n := float64(len(z))
	mean := stat.Mean(z, nil)
	var slope, squares float64
	for i, x := range z {
		t := float64(i) - (n-1)/2
		slope += t * x
		squares += t * t
	}
	slope /= squares
	residuals := make([]float64, len(z))
	var rest float64
	for i, x := range z {
		residuals[i] = x - mean - slope*(float64(i)-(n-1)/2)
		rest += square(residuals[i])
	}
	if rest == 0 || slope == 0 {
		return slope * n / mean, map[bool]float64{true: 1, false: 0}[slope == 0]
	}
	k := correlated(residuals, 4)
	freedom := math.Max(1, n/k-2)
	student := distuv.StudentsT{Sigma: 1, Nu: freedom}
	return slope * n / mean, 2 * student.Survival(math.Abs(slope)/math.Sqrt(k*rest/(n-2)/squares))
}

// correlated is the factor by which the variance of a mean is greater because its values depend on
// each other. The argument deviations has the values' deviations from their mean or a line. In n
// such deviations, the correlation of neighbours is too small by correction/n.
func correlated(deviations []float64, correction float64) float64 {
	var neighbours, own float64
	for i, x := range deviations {
		own += x * x
		if i > 0 {
			neighbours += x * deviations[i-1]
		}
	}
	if own == 0 {
		return 1
	}
	f := math.Min(mostCorrelated, math.Max(0, neighbours/own+correction/float64(len(deviations))))
	return (1 + f) / (1 - f)
}

// batches are the means of 5 observations each. A window that is too short is an error.
func batches(observations []float64, tolerance float64) ([]float64, error) {
	if len(observations) < mserBatch*mserBatches {
		return nil, fmt.Errorf("stationarity: there are %d observations; it needs %d", len(observations), mserBatch*mserBatches)
	}
	if !(tolerance > 0 && tolerance <= 1) {
		return nil, fmt.Errorf("stationarity: the tolerance is %g; it must be a share above 0 and at most 1", tolerance)
	}
	for i, x := range observations {
		if !(x >= 0 && x <= Limit) {
			return nil, fmt.Errorf("stationarity: observation %d is %g; it must be 0 or more", i+1, x)
		}
	}
	z := make([]float64, len(observations)/mserBatch)
	for i := range z {
		z[i] = stat.Mean(observations[mserBatch*i:mserBatch*(i+1)], nil)
	}
	return z, nil
}

// beyondNoise reports whether the means of the transient's batches and of the steady ones differ by
// more than the steady ones vary. MSER leaves half of the batches at least, and a transient that
// moves the mean has one, so that neither is empty.
func beyondNoise(transient, steady []float64) bool {
	mean, deviation := stat.MeanStdDev(steady, nil)
	before, after := float64(len(transient)), float64(len(steady))
	deviations := make([]float64, len(steady))
	for i, x := range steady {
		deviations[i] = x - mean
	}
	apart := deviation * math.Sqrt(correlated(deviations, 2)*(1/before+1/after))
	return math.Abs(stat.Mean(transient, nil)-mean) > transientDeviations*apart
}

// truncation is how many batches MSER leaves out; of several, the least. It walks from the end, so
// that every d costs one step (Welford's update).
func truncation(z []float64) int {
	best, least := 0, math.Inf(1)
	var count, mean, squares float64
	for d := len(z) - 1; d >= 0; d-- {
		count++
		delta := z[d] - mean
		mean += delta / count
		squares += delta * (z[d] - mean)
		if d > len(z)/2 {
			continue
		}
		if e := squares / (count * count); e <= least {
			best, least = d, e
		}
	}
	return best
}
