package stats_test

import (
	"math"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

func TestSustainedLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		points    []stats.LoadPoint
		tolerance float64
		want      int
	}{
		"collapse":                             {[]stats.LoadPoint{{Offered: 100, Goodput: 100}, {Offered: 200, Goodput: 198}, {Offered: 400, Goodput: 300}, {Offered: 800, Goodput: 10}}, 0.05, 1},
		"exactly the tolerance":                {[]stats.LoadPoint{{Offered: 100, Goodput: 95}, {Offered: 200, Goodput: 189.9}}, 0.05, 0},
		"more than was offered":                {[]stats.LoadPoint{{Offered: 100, Goodput: 100}, {Offered: 200, Goodput: 211}}, 0.05, 0},
		"sustained by chance after a collapse": {[]stats.LoadPoint{{Offered: 100, Goodput: 100}, {Offered: 200, Goodput: 100}, {Offered: 300, Goodput: 300}}, 0.05, 0},
		"none":                                 {[]stats.LoadPoint{{Offered: 100, Goodput: 50}, {Offered: 200, Goodput: 200}}, 0.05, -1},
		"the order does not matter":            {[]stats.LoadPoint{{Offered: 400, Goodput: 300}, {Offered: 200, Goodput: 198}, {Offered: 100, Goodput: 100}}, 0.05, 1},
		"the queue grows":                      {[]stats.LoadPoint{{Offered: 100, Goodput: 100}, {Offered: 200, Goodput: 193, QueueGrows: true}}, 0.05, 0},
		"no tolerance":                         {[]stats.LoadPoint{{Offered: 100, Goodput: 100}, {Offered: 200, Goodput: 199}}, 0, 0},
	} {
		if got, err := stats.SustainedLoad(tc.points, tc.tolerance); err != nil || got != tc.want {
			t.Errorf("%s: SustainedLoad = %d, %v, want %d", name, got, err, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		points    []stats.LoadPoint
		tolerance float64
	}{
		"no points":     {nil, 0.05},
		"no load":       {[]stats.LoadPoint{{Offered: 0, Goodput: 0}}, 0.05},
		"NaN":           {[]stats.LoadPoint{{Offered: 1, Goodput: math.NaN()}}, 0.05},
		"all tolerated": {[]stats.LoadPoint{{Offered: 1, Goodput: 1}}, 1},
	} {
		if got, err := stats.SustainedLoad(tc.points, tc.tolerance); err == nil {
			t.Errorf("%s: SustainedLoad = %d, want an error", name, got)
		}
	}
}

func TestPerCorrectClient(t *testing.T) {
	if got, err := stats.PerCorrectClient(10700, 10, 10); err != nil || got != 107 {
		t.Errorf("PerCorrectClient = %g, %v, want 107", got, err)
	}
	for name, tc := range map[string]struct {
		committed int64
		clients   int
		seconds   float64
	}{
		"no correct client": {1, 0, 1}, "no window": {1, 1, 0}, "NaN": {1, 1, math.NaN()}, "an endless window": {1, 1, math.Inf(1)}, "less than nothing": {-1, 1, 1},
	} {
		if got, err := stats.PerCorrectClient(tc.committed, tc.clients, tc.seconds); err == nil {
			t.Errorf("%s: PerCorrectClient = %g, want an error", name, got)
		}
	}
}
