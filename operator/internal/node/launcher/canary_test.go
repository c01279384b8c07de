package launcher

import (
	"testing"
	"time"
)

// The canary wakes up as often as it should, and ends once the agent does not ask any more.
func TestCanary(t *testing.T) {
	var c canary
	c.count()
	wakes := int64(0)
	for deadline := time.Now().Add(time.Minute); wakes < 5; wakes, _ = c.count() {
		if time.Now().After(deadline) {
			t.Fatalf("it woke up %d times in a minute", wakes)
		}
		time.Sleep(canaryEvery)
	}
	now := time.Duration(Monotonic())
	for name, tc := range map[string]struct {
		asked, late time.Duration
		lives       bool
		wantLate    int64
	}{
		"in time":           {late: canaryLate, lives: true},
		"late":              {late: canaryLate + 1, lives: true, wantLate: 1},
		"asked for no more": {asked: canaryLife},
	} {
		t.Run(name, func(t *testing.T) {
			c := canary{asked: now - tc.asked, lives: true}
			if lives := c.note(now, tc.late); lives != tc.lives || c.wakes != 1 || c.late != tc.wantLate {
				t.Errorf("lives %t, woke up %d times, %d late", lives, c.wakes, c.late)
			}
		})
	}
}
