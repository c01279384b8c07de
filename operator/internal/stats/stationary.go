package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

const (
	// mserBatch is how many observations make a batch: the 5 of MSER-5.
	mserBatch = 5
	// mserBatches is how many batches the check needs to say anything.
	mserBatches = 10
	// DefaultTransientTolerance is how much the mean of a window may change, as a share, by leaving
	// its transient out.
	DefaultTransientTolerance = 0.05
	// transientDeviations is how many standard errors the transient's mean must be away from that
	// of the rest, for it to be more than noise. MSER chose where the transient ends so that the
	// rest varies least, so that the usual two would be passed by noise alone.
	transientDeviations = 4
)

// Stationarity is whether a measurement window holds a transient, such as a warm-up that was too
// short.
type Stationarity struct {
	// Transient is the number of observations at the start that do not look like the rest, a
	// multiple of 5 and at most half of them.
	Transient int
	// Mean of all observations, and of those after the transient.
	Mean, SteadyMean float64
	// Bias is what the transient does to the mean: Mean/SteadyMean - 1.
	Bias float64
	// Cautions: NotStationary, when |Bias| is above the tolerance, and not by noise alone.
	Cautions []Caution
}

// CheckStationarity looks for a transient at the start of a window by MSER-5: of the means Z_1 ...
// Z_n of batches of 5 observations, it leaves out the first d, at most half of them, that make the
// estimated error of the mean of the rest least,
//
//	d = argmin  1/(n-d)² sum_{i>d} (Z_i - mean(Z_{d+1} ... Z_n))²
//
// (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation
// 69, 1997; White, Cobb and Spratt, WSC'00). d alone is no verdict, for on steady noise it is
// seldom 0; so the window is judged by what the transient does to the number that is reported:
// NotStationary when it moves the mean by more than tolerance (a share), and when the means before
// and after d are further apart than noise explains,
//
//	|mean(Z_1 ... Z_d) - mean(Z_{d+1} ... Z_n)| > 4 s sqrt(1/d + 1/(n-d)),  s: standard deviation of Z_{d+1} ... Z_n
//
// without which a window of a few seconds with a few transactions in a bin would be called not
// stationary more often than not. A drift over the whole window has no end that d could find; it
// shows as a transient of half the window.
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
	if d := s.Transient / mserBatch; math.Abs(s.Bias) > tolerance && beyondNoise(z[:d], z[d:]) {
		s.Cautions = append(s.Cautions, NotStationary)
	}
	return s, nil
}

// batches are the means of 5 observations each, of a window that is long enough.
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
	return math.Abs(stat.Mean(transient, nil)-mean) > transientDeviations*deviation*math.Sqrt(1/before+1/after)
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
