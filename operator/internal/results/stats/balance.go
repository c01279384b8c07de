package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

// Balance is how evenly a quantity (load, latency, storage) is spread over nodes.
type Balance struct {
	Mean float64
	// StdDev over the nodes. The divisor is n, not n-1: they are all the nodes, not a sample of
	// them.
	StdDev float64
	// CoV is the coefficient of variation, StdDev/Mean: 0 is perfect balance, and sqrt(n-1) one
	// node that does everything.
	CoV float64
	// MaxToMean is the busiest node's value divided by the mean, from 1 (balance) to n.
	MaxToMean float64
}

// BalanceOf computes the balance of one quantity over nodes. When all values are 0, nothing is out
// of balance: CoV is 0 and MaxToMean 1. It fails when there are no nodes or when a value is
// negative or not finite: a coefficient of variation means nothing then.
func BalanceOf(nodes []float64) (Balance, error) {
	if len(nodes) == 0 {
		return Balance{}, fmt.Errorf("balance: there are no nodes")
	}
	greatest := 0.0
	for i, x := range nodes {
		if !(x >= 0 && x <= Limit) {
			return Balance{}, fmt.Errorf("balance: node %d has %g; it must be 0 or more", i+1, x)
		}
		greatest = math.Max(greatest, x)
	}
	if greatest == 0 {
		return Balance{MaxToMean: 1}, nil
	}
	mean, deviation := stat.PopMeanStdDev(nodes, nil)
	if mean == 0 { // the sum of denormal numbers
		return Balance{MaxToMean: 1}, nil
	}
	return Balance{Mean: mean, StdDev: deviation, CoV: deviation / mean, MaxToMean: greatest / mean}, nil
}

// MeanCoV is the mean over intervals of time of the coefficient of variation over nodes:
// intervals[t][node]. It shows an imbalance that moves from node to node, which totals over the run
// hide. It is the "Avg CoV" that the artifact of HATS prints for its balance of latency.
func MeanCoV(intervals [][]float64) (float64, error) {
	if len(intervals) == 0 {
		return 0, fmt.Errorf("balance: there are no intervals")
	}
	var sum float64
	for t, nodes := range intervals {
		b, err := BalanceOf(nodes)
		if err != nil {
			return 0, fmt.Errorf("interval %d: %w", t+1, err)
		}
		sum += b.CoV
	}
	return sum / float64(len(intervals)), nil
}

// ShareOutside is the share of values below low or above high, from 0 to 1: HATS's "Out-of-Range"
// of the slowest node's latencies. It fails when there are no values, one is not finite, or low is
// above high.
func ShareOutside(values []float64, low, high float64) (float64, error) {
	if len(values) == 0 || !(low <= high) {
		return 0, fmt.Errorf("share outside [%g, %g]: there must be values and a range", low, high)
	}
	if err := check("share outside", values); err != nil {
		return 0, err
	}
	outside := 0
	for _, x := range values {
		if x < low || x > high {
			outside++
		}
	}
	return float64(outside) / float64(len(values)), nil
}
