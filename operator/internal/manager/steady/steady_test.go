package steady

import (
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// The clock asks only the monotonic clock, even about instants of a status. Those have no monotonic
// part, and time.Now would compare them by the wall clock.
func TestStepsMoveNothing(t *testing.T) {
	first := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	passed := time.Duration(0)
	c := Clock{start: func() time.Time { return first }, since: func(time.Time) time.Duration { return passed }}
	begun := c.Now().Round(0) // as if read back from a status
	for range 2 {
		passed += time.Second // the wall clock may differ
		if got, want := c.Since(begun), passed; got != want {
			t.Errorf("%v have passed; want %v", got, want)
		}
	}
}

func TestTheClockAdvances(t *testing.T) {
	begun := clock.RealClock{}.Now()
	c := New()
	first := c.Now()
	if first.Before(begun) || first.Sub(begun) > time.Minute {
		t.Errorf("started at %v, it shows %v", begun, first)
	}
	for c.Now().Equal(first) {
		if (clock.RealClock{}).Since(begun) > time.Minute {
			t.Fatal("the clock stands still")
		}
	}
}
