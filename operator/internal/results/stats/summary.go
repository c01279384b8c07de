package stats

import (
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/internal/results"
)

// fewSamples is the least n for an interval without a caution. With fewer samples, a result is read
// by its mean, minimum and maximum, as the artifacts of ELECT (FAST'24) and DMTree print theirs.
// One run has its value, two to four runs mean, minimum and maximum, five and more a 95% Student-t
// interval. The interval of two to four runs is computed all the same, and is wide. Claims are
// judged by it. Without it, any difference of two means of three trials would be a verdict.
const fewSamples = 5

// Few reports whether so many samples, two to four, are read by their mean, minimum and maximum.
func Few(n int) bool { return n > 1 && n < fewSamples }

// Summary summarises the samples of one metric.
type Summary struct {
	// Aggregate: n, mean, standard deviation (with n-1), minimum, maximum and Student's interval of
	// the mean.
	results.Aggregate
	// Few is true for two to four samples: show mean, minimum and maximum; the interval needs its
	// caution beside it.
	Few bool
	// Median of the samples.
	Median Median
	// Cautions: NoSamples, OneSample, FewSamples, NoVariation, MedianCoverage.
	Cautions []Caution
}

// Median is the median of some samples with an interval of two of them. It needs no assumption but
// that samples are independent and equally distributed.
type Median struct {
	Value float64
	// Low and High are the samples that enclose the median with probability Coverage or more. They
	// are equal to Value when there are fewer than two samples.
	Low, High float64
	// Coverage of [Low, High]: at least 95% from six samples on, else 1 - 2^(1-n), which is that of
	// [minimum, maximum]. 0 without an interval.
	Coverage float64
}

// Summarize summarises the samples of one metric. It fails when one of them is no finite number
// within Limit.
func Summarize(samples []float64) (Summary, error) {
	if err := check("summarise", samples); err != nil {
		return Summary{}, err
	}
	s := Summary{Aggregate: Aggregate(samples), Median: medianOf(samples)}
	switch {
	case s.N == 0:
		s.Cautions = append(s.Cautions, NoSamples)
		return s, nil
	case s.N == 1:
		s.Cautions = append(s.Cautions, OneSample)
		return s, nil
	case Few(s.N):
		s.Few = true
		s.Cautions = append(s.Cautions, FewSamples)
	}
	if s.Min == s.Max {
		s.Cautions = append(s.Cautions, NoVariation)
	}
	if s.Median.Coverage < confidence {
		s.Cautions = append(s.Cautions, MedianCoverage)
	}
	return s, nil
}

// medianOf finds the narrowest interval [x(k), x(n+1-k)] of the sorted samples that holds the
// median of their distribution with 95% or more:
//
//	P(x(k) <= median <= x(n+1-k)) = 1 - 2 P(B <= k-1),  B ~ Binomial(n, 1/2)
//
// (David and Nagaraja, Order Statistics, 3rd ed., section 7.1; for skewed or discrete data the
// coverage is that or more). Maricq et al., "Taming performance variability" (OSDI'18), recommend
// it for measurements of systems, which are seldom normal.
func medianOf(samples []float64) Median {
	n := len(samples)
	if n == 0 {
		return Median{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	m := Median{Value: sorted[n/2]}
	if n%2 == 0 {
		m.Value = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	m.Low, m.High = m.Value, m.Value
	if n == 1 {
		return m
	}
	coin := distuv.Binomial{N: float64(n), P: 0.5}
	for k := 1; k <= n/2; k++ {
		coverage := 1 - 2*coin.CDF(float64(k-1))
		if k > 1 && coverage < confidence {
			break
		}
		m.Low, m.High, m.Coverage = sorted[k-1], sorted[n-k], coverage
	}
	return m
}
