package results

import (
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// A container that is busy from the fifth to the tenth second alone, and read once a second.
func TestWhatPartsOfARunUsed(t *testing.T) {
	readings, busySeconds := &Readings{}, 0
	for second := range 21 {
		at := time.Duration(second)*time.Second + 30*time.Millisecond
		readings.Container("c", ContainerReading{At: at, CPU: time.Duration(busySeconds) * time.Second})
		readings.Pod(PodReading{At: at, Total: int64(second) * 200, Busy: int64(busySeconds) * 100, CPUs: 2})
		if second >= 5 && second < 10 {
			busySeconds++
		}
	}
	parts := []timeline.Span{{From: 6 * time.Second, To: 9 * time.Second}, {From: 12 * time.Second, To: 15500 * time.Millisecond}, {}}
	got := readings.Of(parts, []string{"c"})
	for i, want := range []struct{ seconds, cores float64 }{{3, 1}, {3.5, 0}, {0, 0}} {
		if r := got[i]; r.Node.Seconds < want.seconds-0.01 || r.Node.Seconds > want.seconds+0.01 || r.CPUMeanCores != want.cores || r.Series != nil {
			t.Errorf("part %d used %.3f cores in %.3f s, want %.0f in %.1f, without a series", i, r.CPUMeanCores, r.Node.Seconds, want.cores, want.seconds)
		}
	}
	var none *Readings
	none.Pod(PodReading{})
	if none.Of(parts, nil) != nil {
		t.Error("who keeps no readings says something of parts")
	}
}
