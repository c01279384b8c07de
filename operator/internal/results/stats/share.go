package stats

import "gonum.org/v1/gonum/stat/distuv"

// ExactShare is the interval of a probability, if some of all independent cases occurred (Clopper
// and Pearson, Biometrika 26, 1934). It misses the probability in at most the share level of
// experiments: 0.05 for 95%. If none of n cases occurred, the 95% interval reaches up to 3.7/n. The
// number all must be above 0, some from 0 to all, and level between 0 and 1.
func ExactShare(some, all int64, level float64) (low, high float64) {
	k, n, tail := float64(some), float64(all), level/2
	high = 1
	if some > 0 {
		low = distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(tail)
	}
	if some < all {
		high = distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(1 - tail)
	}
	return low, high
}
