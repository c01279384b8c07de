package loadgen

import (
	"math/rand/v2"
	"time"
)

// Waits after requests that failed without an abort. Without a wait, clients would flood a dead
// system with connections.
const (
	errorBackoff    = time.Millisecond
	maxErrorBackoff = 100 * time.Millisecond
)

// backoff draws the wait after the n-th failure in a row, from 1. The longest possible wait is
// first * 2^(n-1), or longest if that is less. The wait is uniform between half of that and all of
// it.
func backoff(first, longest time.Duration, n int32, rng *rand.Rand) time.Duration {
	d := first
	for i := int32(1); i < n && d > 0 && d < longest; i++ {
		if d > longest/2 { // doubling could overflow
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
