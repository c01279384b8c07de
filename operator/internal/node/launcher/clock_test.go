package launcher

import (
	"testing"
	"time"
)

// A thread may lose the processor between its readings of two clocks.
func TestHowFarAWallClockIsAheadDoesNotDependOnBeingScheduled(t *testing.T) {
	const ahead = int64(time.Hour)
	readings := 0
	slow := func() int64 {
		now := Monotonic() + ahead
		if readings++; readings <= 2 {
			time.Sleep(20 * time.Millisecond)
		}
		return now
	}
	if off := time.Duration(WallAhead(slow) - ahead); off.Abs() > 5*time.Millisecond {
		t.Errorf("%v off after readings that took 20 ms each and others that did not; want those others to count", off)
	}
	if readings < 3 {
		t.Errorf("%d readings; the first two were slow", readings)
	}
}

func TestTheNodesOwnWallClock(t *testing.T) {
	before := time.Now()
	at := Monotonic() + WallAhead(nil)
	if off := time.Unix(0, at).Sub(before); off < -time.Second || off > time.Minute {
		t.Errorf("%v away from time.Now", off)
	}
}
