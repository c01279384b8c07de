package loadgen

import (
	"math/rand/v2"
	"time"
)

// Waits after requests that failed (not aborted): without them a dead system would be flooded with
// connections.
const (
	errorBackoff    = time.Millisecond
	maxErrorBackoff = 100 * time.Millisecond
)

// backoff draws the wait after the n-th failure in a row, from 1: uniformly from half of first *
// 2^(n-1), or of longest if that is less, to all of it.
func backoff(first, longest time.Duration, n int32, rng *rand.Rand) time.Duration {
	d := first
	for i := int32(1); i < n && d > 0 && d < longest; i++ {
		if d > longest/2 { // twice as much could overflow
			d = longest
		} else {
			d *= 2
		}
	}
	d = min(d, longest)
	if d <= 0 {
		return 0
	}
	half := d / 2
	return half + time.Duration(rng.Int64N(int64(d-half)+1))
}
