package agent

import (
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
)

// A run used the clock of the manager whose sample was best. So its faults moved against the
// clients' window when another manager took over.
func TestTheClockOfARunIsOneManagers(t *testing.T) {
	now := launcher.Monotonic()
	ms := int64(time.Millisecond)
	of := func(manager string, offset, within int64) sample {
		return sample{Offset: offset * ms, Error: within * ms, At: now, Manager: manager}
	}
	cases := map[string]struct {
		before, after []sample // of the agreement
		offset        int64    // in milliseconds
		manager       string
		stepped       time.Duration
	}{
		"one manager":                   {[]sample{of("a", 100, 1)}, []sample{of("a", 100, 1)}, 100, "a", 0},
		"another one before":            {[]sample{of("a", 100, 1), of("b", 170, 5)}, nil, 170, "b", 0},
		"another one, nearly the same":  {[]sample{of("a", 100, 1), of("b", 100, 5)}, nil, 100, "b", 0},
		"set before":                    {[]sample{of("a", 100, 1), of("a", 400, 5)}, nil, 400, "a", 0},
		"another one after":             {[]sample{of("a", 100, 1)}, []sample{of("b", 170, 1)}, 100, "a", 68 * time.Millisecond},
		"set after":                     {[]sample{of("a", 100, 1)}, []sample{of("a", 70, 1), of("a", 100, 1)}, 100, "a", 28 * time.Millisecond},
		"another one after, much alike": {[]sample{of("a", 100, 2)}, []sample{of("b", 101, 1)}, 101, "a", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clock{wall: time.Now}
			for _, s := range tc.before {
				c.add(s)
			}
			c.settle()
			for _, s := range tc.after {
				c.add(s)
			}
			best, _ := c.best()
			manager, stepped := c.base()
			if best.Offset != tc.offset*ms || manager != tc.manager {
				t.Errorf("the offset is %v by the clock of %q, want %d ms by %q", time.Duration(best.Offset), manager, tc.offset, tc.manager)
			}
			if stepped > tc.stepped || stepped < tc.stepped-time.Millisecond {
				t.Errorf("the clock stepped by %v, want %v less the drift", stepped, tc.stepped)
			}
		})
	}
}

func TestTheRestAfterReadings(t *testing.T) {
	ms := int64(time.Millisecond)
	for name, tc := range map[string]struct {
		measured int
		within   int64
		poor     int
		want     time.Duration
	}{
		"no answer":                {0, 0, 0, retryLater},
		"an answer was missing":    {clockSamples - 1, 1, 0, retryLater},
		"good":                     {clockSamples, ms, 1, clockRefresh},
		"poor for the first time":  {clockSamples, 16 * ms, 1, clockSoon},
		"poor for the last time":   {clockSamples, 16 * ms, clockPoor, clockSoon},
		"always poor, as far away": {clockSamples, 16 * ms, clockPoor + 1, clockRefresh},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rest(tc.measured, sample{Error: tc.within}, tc.poor); got != tc.want {
				t.Errorf("the next readings follow after %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheClockBelievesTheShortestRoundTripUntilDriftMayHaveEatenIt(t *testing.T) {
	now := launcher.Monotonic()
	minute := int64(time.Minute)
	cases := map[string]struct {
		samples    []sample
		wantOffset int64
	}{
		"the shorter of two round trips": {[]sample{{Offset: 1, Error: 500_000, At: now}, {Offset: 2, Error: 100_000, At: now}}, 2},
		"a good old one beats a bad new one": {
			[]sample{{Offset: 1, Error: 100_000, At: now - minute}, {Offset: 2, Error: 9_000_000, At: now}}, 1},
		"a good old one loses once the clocks may have parted": { // 60 s * 50 ppm = 3 ms
			[]sample{{Offset: 1, Error: 100_000, At: now - minute}, {Offset: 2, Error: 2_000_000, At: now}}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clock{wall: time.Now}
			if _, known := c.best(); known {
				t.Error("without a sample the offset is known")
			}
			for _, s := range tc.samples {
				c.add(s)
			}
			if best, known := c.best(); !known || best.Offset != tc.wantOffset {
				t.Errorf("the best is %+v (known %v), want offset %d", best, known, tc.wantOffset)
			}
			if got, want := c.monotonic(1000), 1000-tc.wantOffset; got != want {
				t.Errorf("the coordinator's instant 1000 is %d here, want %d", got, want)
			}
			if got, want := c.since(1000, 1500-tc.wantOffset), 500*time.Nanosecond; got != want {
				t.Errorf("an instant here is %v after the coordinator's, want %v", got, want)
			}
		})
	}
}
