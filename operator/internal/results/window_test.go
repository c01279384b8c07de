package results

import (
	"math"
	"testing"
)

// A status keeps the cause and how far it moves the mean, and both are read back.
func TestWhatIsNotSteadyGoesThroughAStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		level *Transient
		cause string
		moves float64
	}{
		"steady":            {&Transient{Steady: true, Bias: 0.01}, "", 0.01},
		"start":             {&Transient{Bias: -0.06, Millis: 2000, Drift: 0.02}, CauseStart, -0.06},
		"drift":             {&Transient{Bias: -0.02, Drift: -0.1}, CauseDrift, -0.05},
		"change":            {&Transient{Change: &LevelChange{AtMillis: []float64{5000}, Bias: 0.07}}, CauseChange, 0.07},
		"clients end early": {&Transient{Change: &LevelChange{AtMillis: []float64{5000}, Bias: -0.2, EndsMillis: 4000}}, CauseEnd, -0.2},
	} {
		if got := tc.level.Cause(); got != tc.cause {
			t.Errorf("%s: the cause is %q, want %q", name, got, tc.cause)
		}
		if got := tc.level.Moves(); math.Abs(got-tc.moves) > 1e-12 {
			t.Errorf("%s: it moves the mean by %g, want %g", name, got, tc.moves)
		}
		if tc.cause == "" {
			continue
		}
		if back := UnsteadyBy(tc.cause, tc.moves); back.Steady || back.Cause() != tc.cause || math.Abs(back.Moves()-tc.moves) > 1e-12 {
			t.Errorf("%s: read back it is %+v", name, back)
		}
	}
	var none *Transient
	if none.Cause() != "" {
		t.Error("no level has a cause")
	}
}
