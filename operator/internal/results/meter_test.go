package results

import (
	"math"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

var windowOf20 = timeline.Windows{WarmUp: 10 * time.Second, Measure: 20 * time.Second, CoolDown: 2 * time.Second}

// steadily is a container that uses half a processor, is throttled in one period of each second for
// 40 ms, and holds 10 MiB and 1 MiB more each second. Its pod receives 1000 bytes a second and
// sends twice as many. The node has 4 processors, of which 1 works and 0.1 is stolen.
func steadily(m *Meter, name string, at time.Duration) {
	since := at + time.Minute
	m.Container(name, ContainerReading{
		At: at, CPU: since / 2, ThrottledPeriods: int64(since / time.Second), Throttled: since / 25, Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond,
		Memory: 10<<20 + int64(max(0, at)/time.Second)<<20, Peak: 99 << 20, Waited: since / 20, Wakes: int64(since / (25 * time.Millisecond)), LateWakes: int64(since / (250 * time.Millisecond)),
	})
	m.Pod(PodReading{
		At: at, Received: since.Milliseconds(), Sent: 2 * since.Milliseconds(), Busy: int64(since), Steal: int64(since / 10), Total: 4 * int64(since), Interrupts: int64(since / 5), Agent: since / 50, Machine: "boot",
		Switches: since.Milliseconds() * 5, Pressure: since / 4, HasPressure: true, CPUs: 4,
	})
}

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

func TestMeter(t *testing.T) {
	every := func(from, to, step time.Duration) []time.Duration {
		var at []time.Duration
		for a := from; a <= to; a += step {
			at = append(at, a)
		}
		return at
	}
	second := time.Second
	for name, tc := range map[string]struct {
		windows timeline.Windows
		at      []time.Duration
		seconds float64
	}{
		"each second":                     {windowOf20, every(-5*second, 22*second, second), 20},
		"each late":                       {windowOf20, every(-5*second+30*time.Millisecond, 23*second, second+9*time.Millisecond), 20},
		"some left out":                   {windowOf20, []time.Duration{-5 * second, 3 * second, 4 * second, 12 * second, 22 * second}, 20},
		"begun late":                      {windowOf20, every(3*second, 22*second, second), 17},
		"a window of no whole seconds":    {timeline.Windows{WarmUp: second, Measure: 7500 * time.Millisecond}, every(-second, 9*second, second), 7.5},
		"the shortest, and no warm-up":    {timeline.Windows{Measure: second}, every(0, 2*second, second), 1},
		"the longest with each reading":   {timeline.Windows{Measure: 505 * second, CoolDown: second}, every(0, 506*second, second), 505},
		"longer: bins are of two seconds": {timeline.Windows{WarmUp: 5 * second, Measure: 900 * second, CoolDown: second}, every(-5*second, 901*second, second), 900},
		"a day":                           {timeline.Windows{WarmUp: 5 * second, Measure: 24 * time.Hour}, every(-5*second, 24*time.Hour+second, second), 86400},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMeter(tc.windows, []string{"c"})
			for _, at := range tc.at {
				steadily(m, "c", at)
			}
			r := m.Resources()
			c := r.Containers[0]
			if !near(r.Seconds, tc.seconds, 0.001) || !near(c.Seconds, tc.seconds, 0.001) || !near(r.Node.Seconds, tc.seconds, 0.001) {
				t.Errorf("%v, %v and %v s are covered, want %v", r.Seconds, c.Seconds, r.Node.Seconds, tc.seconds)
			}
			if !near(r.CPUMeanCores, 0.5, 1e-5) || !near(r.CPUMaxCores, 0.5, 1e-5) || c.LimitCores != 0.5 {
				t.Errorf("%v cores in the mean and %v at most of %v, want 0.5", r.CPUMeanCores, r.CPUMaxCores, c.LimitCores)
			}
			// A period of 0.1 s each second is a tenth of the window. Whole periods are counted, so
			// that readings off the second may see one more or less.
			if !near(r.ThrottledShare, 0.1, 0.1/tc.seconds+1e-6) || !near(c.ThrottledSeconds, 0.04*tc.seconds, 1e-4*tc.seconds) || !near(float64(c.ThrottledPeriods), tc.seconds, 1) {
				t.Errorf("throttled %v, for %v s in %d periods; want 0.1, %v, %v", r.ThrottledShare, c.ThrottledSeconds, c.ThrottledPeriods, 0.04*tc.seconds, tc.seconds)
			}
			if !near(float64(r.ReceivedBytes), 1000*tc.seconds, 2) || !near(float64(r.SentBytes), 2000*tc.seconds, 4) {
				t.Errorf("%d bytes in, %d out; want 1000 and 2000 a second", r.ReceivedBytes, r.SentBytes)
			}
			n := r.Node
			if c.LateShare == nil || !near(*c.LateShare, 0.1, 0.01) || !near(float64(c.Wakes), 40*tc.seconds, 40) {
				t.Errorf("late in %v of %d", c.LateShare, c.Wakes)
			}
			if c.WaitedSeconds == nil || !near(*c.WaitedSeconds, tc.seconds/20, 1e-4*tc.seconds) || !near(r.AgentMeanCores, 0.02, 1e-5) || n.Machine != "boot" || !near(n.InterruptShare, 0.05, 1e-5) {
				t.Errorf("waited %v s, agent %v cores, machine %q, interrupts %v", c.WaitedSeconds, r.AgentMeanCores, n.Machine, n.InterruptShare)
			}
			if n.CPUs != 4 || !near(n.BusyShare, 0.25, 1e-6) || !near(n.BusyMaxShare, 0.25, 1e-6) || !near(n.StealShare, 1/11.0, 1e-6) || !near(n.StealMaxShare, 1/11.0, 1e-6) ||
				n.PressureShare == nil || !near(*n.PressureShare, 0.25, 1e-5) || !near(n.SwitchesPerSecond, 5000, 5) {
				t.Errorf("the node is %+v", n)
			}
			if c.MemoryPeakBytes != 99<<20 || c.MemoryMaxBytes < 10<<20 || c.MemoryMaxBytes > 10<<20+int64(tc.windows.Measure/second+1)<<20 {
				t.Errorf("memory: %d at most, %d peak", c.MemoryMaxBytes, c.MemoryPeakBytes)
			}
			checkSeries(t, r.Series, tc.windows, tc.at)
		})
	}
}

// checkSeries checks what steadily gives over time.
func checkSeries(t *testing.T, s *ResourceSeries, w timeline.Windows, at []time.Duration) {
	t.Helper()
	n := len(s.CPUMillicores)
	for _, other := range [][]int64{s.MemoryKiB, s.ThrottledPermille, s.ReceivedBytes, s.SentBytes, s.BusyPermille, s.StealPermille} {
		if len(other) != n {
			t.Fatalf("slices of %d and %d bins", n, len(other))
		}
	}
	end := s.FirstMillis + int64(n)*s.IntervalMillis
	if n > maxResourceBins || s.FirstMillis > 0 || s.FirstMillis%s.IntervalMillis != 0 || end < w.Measure.Milliseconds() {
		t.Errorf("%d bins of %d ms from %d ms on, of a window of %v", n, s.IntervalMillis, s.FirstMillis, w.Measure)
	}
	for i := range n {
		start := s.FirstMillis + int64(i)*s.IntervalMillis
		known := at[0].Milliseconds() <= start+s.IntervalMillis/2 && at[len(at)-1].Milliseconds() >= start+s.IntervalMillis/2
		if !known {
			if s.CPUMillicores[i] != -1 || s.BusyPermille[i] != -1 || s.SentBytes[i] != -1 {
				t.Errorf("the bin at %d ms is %d millicores, %d busy; nothing was measured", start, s.CPUMillicores[i], s.BusyPermille[i])
			}
			continue
		}
		if s.CPUMillicores[i] != 500 || !near(float64(s.ThrottledPermille[i]), 100, 110) || s.BusyPermille[i] != 250 || s.StealPermille[i] != 91 {
			t.Errorf("the bin at %d ms is %d millicores, throttled %d, busy %d, stolen %d permille", start, s.CPUMillicores[i], s.ThrottledPermille[i], s.BusyPermille[i], s.StealPermille[i])
		}
	}
}

// A container that came back has new counters: the time between is unknown, and the rest stays
// valid.
func TestMeterOfCountersThatBeginAnew(t *testing.T) {
	m := NewMeter(windowOf20, []string{"c"})
	for at := -5 * time.Second; at <= 22*time.Second; at += time.Second {
		since := at + time.Minute
		if at >= 8*time.Second {
			since = at - 8*time.Second
		}
		m.Container("c", ContainerReading{At: at, CPU: since / 2})
	}
	c := m.Resources().Containers[0]
	if !near(c.Seconds, 19, 1e-6) || !near(c.CPUMeanCores, 0.5, 1e-6) || !near(c.CPUMaxCores, 0.5, 1e-6) {
		t.Errorf("%+v, want half a processor over 19 s", c)
	}
}

// The use of several containers is added up second by second: they need not be busy at the same
// time.
func TestMeterOfSeveralContainers(t *testing.T) {
	m := NewMeter(windowOf20, []string{"a", "b", "never"})
	var a, b time.Duration
	for at := -5 * time.Second; at <= 22*time.Second; at += time.Second {
		m.Container("a", ContainerReading{At: at, CPU: a, Memory: 1 << 20, DiskFrom: "io.stat"})
		m.Container("b", ContainerReading{At: at, CPU: b, Memory: 2 << 20, DiskFrom: "io.stat", ThrottledPeriods: int64(b / time.Second)})
		if (at/time.Second)%2 == 0 {
			a += time.Second
		} else {
			b += 2 * time.Second
		}
	}
	m.Unmeasured("container never: no control group")
	m.Unmeasured("container never: no control group")
	r := m.Resources()
	if r.CPUMaxCores != 2 || r.CPUMeanCores != 1.5 || r.MemoryMaxBytes != 3<<20 || !near(r.ThrottledShare, 0.1, 1e-6) {
		t.Errorf("together %+v", r)
	}
	if r.Seconds != 0 || len(r.Unmeasured) != 1 || r.Containers[2].Seconds != 0 || r.Series.CPUMillicores[10] != -1 {
		t.Errorf("one was never read: %v s, unmeasured %v", r.Seconds, r.Unmeasured)
	}
}

func TestCoarser(t *testing.T) {
	m := NewMeter(timeline.Windows{Measure: 500 * time.Second}, []string{"c"})
	for at := time.Duration(0); at <= 501*time.Second; at += time.Second {
		if at < 100*time.Second || at > 150*time.Second {
			steadily(m, "c", at)
		}
	}
	fine := m.Resources().Series
	for i := 100; i < 140; i++ { // as if nothing had been read
		fine.CPUMillicores[i], fine.ReceivedBytes[i] = -1, -1
	}
	s := fine.coarser()
	if s.IntervalMillis != 8000 || len(s.CPUMillicores) != 63 || s.CPUMillicores[0] != 500 || s.ReceivedBytes[1] != 8000 || s.MemoryKiB[1] != (10+15)<<10 ||
		s.CPUMillicores[14] != -1 || s.ReceivedBytes[14] != -1 || s.BusyPermille[60] != 250 {
		t.Errorf("coarser: %+v", s)
	}
	if again := s.coarser(); again != s {
		t.Error("what is coarse enough became coarser")
	}
}

// BenchmarkMeter is what a second of readings costs the agent, beside the reading.
func BenchmarkMeter(b *testing.B) {
	m := NewMeter(timeline.Windows{Measure: 24 * time.Hour}, []string{"c"})
	at := time.Duration(0)
	for b.Loop() {
		steadily(m, "c", at)
		at += time.Second
	}
}
