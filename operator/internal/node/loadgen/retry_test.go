package loadgen

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		first, longest time.Duration
		n              int32
		min, max       time.Duration
	}{
		"first":             {2 * ms, 300 * ms, 1, ms, 2 * ms},
		"second":            {2 * ms, 300 * ms, 2, 2 * ms, 4 * ms},
		"eighth":            {2 * ms, 300 * ms, 8, 128 * ms, 256 * ms},
		"ninth is capped":   {2 * ms, 300 * ms, 9, 150 * ms, 300 * ms},
		"millionth":         {2 * ms, 300 * ms, 1_000_000, 150 * ms, 300 * ms},
		"no overflow":       {time.Hour, 1<<63 - 1, 64, 1<<62 - 1, 1<<63 - 1},
		"none":              {0, 300 * ms, 5, 0, 0},
		"none, no longest":  {0, 0, 1, 0, 0},
		"one nanosecond":    {1, 1, 3, 0, 1},
		"first is too long": {400 * ms, 300 * ms, 1, 150 * ms, 300 * ms},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 1))
			lowest, highest := time.Duration(1<<63-1), time.Duration(0)
			for range 2000 {
				d := backoff(tc.first, tc.longest, tc.n, rng)
				if d < tc.min || d > tc.max {
					t.Fatalf("%v is not from %v to %v", d, tc.min, tc.max)
				}
				lowest, highest = min(lowest, d), max(highest, d)
			}
			if spread := tc.max - tc.min; highest-lowest < spread-spread/10 {
				t.Errorf("2000 waits lie from %v to %v only; they are to fill %v to %v", lowest, highest, tc.min, tc.max)
			}
		})
	}
}
