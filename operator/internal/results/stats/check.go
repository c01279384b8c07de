package stats

import (
	"fmt"
	"math"
)

// Limit bounds the magnitude of every sample: far above any measurement, and low enough that no sum
// of squares overflows.
const Limit = 1e100

// check refuses samples that would make all results meaningless: NaN, infinities, and values beyond
// Limit.
func check(what string, samples []float64) error {
	for i, x := range samples {
		if math.IsNaN(x) || math.Abs(x) > Limit {
			return fmt.Errorf("%s: value %d is %g; it must be a number between -1e100 and 1e100", what, i+1, x)
		}
	}
	return nil
}

// checkPairs refuses two lists that do not go together.
func checkPairs(whatA string, a []float64, whatB string, b []float64) error {
	if len(a) != len(b) {
		return fmt.Errorf("%s and %s: there are %d and %d values; they must go together one by one", whatA, whatB, len(a), len(b))
	}
	if err := check(whatA, a); err != nil {
		return err
	}
	return check(whatB, b)
}
