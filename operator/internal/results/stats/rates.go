package stats

import (
	"math"
	"slices"
)

// The grid of BurstyShare has burstShares shares. They go from a thousandth of the observed share
// to a thousand times that share, evenly by their logarithms. It has bursts deviations of a trial's
// own share, from leastBurst to mostBurst, relative to that share.
const (
	burstShares = 140
	bursts      = 20
	leastBurst  = 0.05
	mostBurst   = 3.5
)

// BurstyShare is the 95% interval of a share, if cases come in bursts. In each trial, some of all
// cases occurred. Bursts make each trial's own share deviate. The interval is the central interval
// of the posterior of the mean m in the beta-binomial model
//
//	some_i ~ Binomial(all_i, p_i),  p_i ~ Beta(s, s (1-m)/m),  s = 1/c²
//
// (Skellam, J. R. Stat. Soc. B 10, 1948), with a density of m^(-9/10), and c, which for a rare case
// is the relative deviation of p_i, from 0.05 to 3.5 with a density of 1/√c. Both densities are our
// choice: with them, the interval keeps its level for c from 0 to 2. If the deviation of shares is
// twice their mean, Student's interval ends below the truth in 19 to 34%. The mean then depends on
// trials with a burst, and few trials have one.
//
// Without a case in any trial the interval begins at 0. It is false without trials, and where
// nothing but cases occurred.
func BurstyShare(some, all []int64) (low, high float64, ok bool) {
	var cases, of int64
	for i := range some {
		if all[i] <= 0 || some[i] < 0 || some[i] > all[i] {
			return 0, 0, false
		}
		cases, of = cases+some[i], of+all[i]
	}
	if of == 0 || cases == of {
		return 0, 0, false
	}
	if 2*cases > of { // the model is of what is rare
		others := make([]int64, len(some))
		for i := range some {
			others[i] = all[i] - some[i]
		}
		low, high, ok = BurstyShare(others, all)
		return 1 - high, 1 - low, ok
	}
	observed := (float64(cases) + 0.5) / float64(of)
	from, to := math.Log(observed/1000), math.Log(math.Min(0.9999, 1000*observed))
	step := (to - from) / (burstShares - 1)
	posterior := shareLikelihoods(some, all, from, step)
	var total float64
	for _, p := range posterior {
		total += p
	}
	if cases > 0 {
		low = math.Exp(from + step*quantileOf(posterior, (1-confidence)/2*total))
	}
	return low, math.Exp(from + step*quantileOf(posterior, (1+confidence)/2*total)), true
}

// shareLikelihoods is the likelihood at each share, with deviations integrated out, up to a factor.
// Only those of the gamma functions that depend on all three are computed for each share, deviation
// and trial, since a simulation asks for millions.
func shareLikelihoods(some, all []int64, from, step float64) []float64 {
	logs := make([][bursts]float64, burstShares)
	most := math.Inf(-1)
	alike := !slices.ContainsFunc(all, func(n int64) bool { return n != all[0] })
	trials := float64(len(some))
	for k := range bursts {
		c := leastBurst * math.Pow(mostBurst/leastBurst, float64(k)/(bursts-1))
		s := 1 / (c * c)
		ofCases := math.Log(c)/2 - trials*logGamma(s) // the density of c, by log c
		for _, x := range some {
			ofCases += logGamma(float64(x) + s)
		}
		for i := range logs {
			m := math.Exp(from + step*float64(i))
			b := s * (1 - m) / m
			sum := ofCases + math.Log(m)/10 + trials*(logGamma(s+b)-logGamma(b))
			if alike {
				sum -= trials * logGamma(float64(all[0])+s+b)
			}
			for j := range some {
				sum += logGamma(float64(all[j]-some[j]) + b)
				if !alike {
					sum -= logGamma(float64(all[j]) + s + b)
				}
			}
			logs[i][k] = sum
			most = math.Max(most, sum)
		}
	}
	posterior := make([]float64, burstShares)
	for i := range logs {
		for _, l := range logs[i] {
			posterior[i] += math.Exp(l - most)
		}
	}
	return posterior
}

func logGamma(x float64) float64 {
	l, _ := math.Lgamma(x)
	return l
}

// quantileOf is where the sum of weights reaches a value, with a straight line between two weights.
func quantileOf(weights []float64, value float64) float64 {
	sum := 0.0
	at := slices.IndexFunc(weights, func(w float64) bool { sum += w; return sum >= value })
	if at <= 0 {
		return 0
	}
	return float64(at) - (sum-value)/weights[at]
}
