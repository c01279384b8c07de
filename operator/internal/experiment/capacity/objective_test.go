package capacity

import (
	"errors"
	"testing"
	"time"
)

func TestObjective(t *testing.T) {
	const ms = time.Millisecond
	fast := Measured{Committed: 10_000, Offered: 10_100, Mean: ms, P50: ms, P90: 2 * ms, P99: 5 * ms, P999: 9 * ms}
	with := func(change func(*Measured)) Measured { m := fast; change(&m); return m }
	for name, tc := range map[string]struct {
		objective Objective
		measured  Measured
		want      bool
		unknown   bool
		text      string
	}{
		"at the bound":        {Objective{P99: 5 * ms}, fast, true, false, "p99 latency at most 5ms"},
		"beyond it":           {Objective{P99: 5*ms - time.Microsecond}, fast, false, false, "p99 latency at most 4.999ms"},
		"both":                {Objective{Mean: ms, Goodput: 0.95}, fast, true, false, "mean latency at most 1ms and goodput at least 95%"},
		"one of two":          {Objective{Mean: ms, Goodput: 0.995}, fast, false, false, "mean latency at most 1ms and goodput at least 99.5%"},
		"nothing committed":   {Objective{P99: 5 * ms}, Measured{Offered: 7}, false, false, "p99 latency at most 5ms"},
		"1% failed":           {Objective{P99: 5 * ms}, with(func(m *Measured) { m.Committed, m.Failed = 9900, 100 }), false, false, "p99 latency at most 5ms"},
		"of all, within":      {Objective{P99: 5 * ms}, with(func(m *Measured) { m.Failed, m.OfAll = 90, &Percentiles{P99: 5 * ms} }), true, false, "p99 latency at most 5ms"},
		"of all, beyond":      {Objective{P99: 5 * ms}, with(func(m *Measured) { m.Failed, m.OfAll = 90, &Percentiles{P99: 6 * ms} }), false, false, "p99 latency at most 5ms"},
		"not kept, within":    {Objective{P99: 9 * ms}, with(func(m *Measured) { m.Failed = 90 }), true, false, "p99 latency at most 9ms"},
		"not kept, beyond":    {Objective{P99: 8 * ms}, with(func(m *Measured) { m.Failed = 90 }), false, false, "p99 latency at most 8ms"},
		"mean of 1 in 100":    {Objective{Mean: ms}, with(func(m *Measured) { m.Committed, m.Failed = 1000, 99_000 }), false, false, "mean latency at most 1ms"},
		"mean of 99 in 100":   {Objective{Mean: ms}, with(func(m *Measured) { m.Failed = 100 }), true, false, "mean latency at most 1ms"},
		"30 transactions":     {Objective{P99: 5 * ms}, with(func(m *Measured) { m.Committed = 30 }), false, true, "p99 latency at most 5ms"},
		"more than 1% failed": {Objective{P99: 5 * ms}, with(func(m *Measured) { m.Committed, m.Failed = 9900, 101 }), false, false, "p99 latency at most 5ms"},
		"no percentile":       {Objective{P90: 5 * ms}, with(func(m *Measured) { m.P90 = 0 }), false, true, "p90 latency at most 5ms"},
		"nothing offered":     {Objective{Goodput: 0.9}, with(func(m *Measured) { m.Offered = 0 }), false, true, "goodput at least 90%"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.objective.Met(tc.measured)
			if got != tc.want || errors.Is(err, ErrUnknown) != tc.unknown || (err != nil) != tc.unknown {
				t.Errorf("met %v, %v; want %v, unknown %v", got, err, tc.want, tc.unknown)
			}
			if text := tc.objective.String(); text != tc.text {
				t.Errorf("it is written %q, want %q", text, tc.text)
			}
		})
	}
}

func TestLoads(t *testing.T) {
	s := search()
	loads := s.Loads()
	if loads[0] != 100 || loads[len(loads)-1] != 10_000 || len(loads) < 180 || len(loads) > 190 {
		t.Errorf("%d loads from %d to %d", len(loads), loads[0], loads[len(loads)-1])
	}
	for i := 1; i < len(loads); i++ {
		if step := float64(loads[i])/float64(loads[i-1]) - 1; step <= 0 || step > s.Precision {
			t.Errorf("from %d to %d is a step of %.1f%%", loads[i-1], loads[i], 100*step)
		}
	}
	for load, want := range map[float64]int{50: 0, 100: 0, 101: 0, 20_000: len(loads) - 1, float64(loads[7]): 7, float64(loads[7]) + 0.4: 7} {
		if got := nearest(loads, load); got != want {
			t.Errorf("nearest to %g is number %d, want %d", load, got, want)
		}
	}
}
