package results

import (
	"strconv"
	"time"
)

// SameValue compares values of an axis: as text, as numbers (0.5 is 0.50) or as durations (4ms is
// 4000us).
func SameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	d, errD := time.ParseDuration(a)
	e, errE := time.ParseDuration(b)
	return errD == nil && errE == nil && d == e
}
