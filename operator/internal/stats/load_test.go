package stats_test

import (
	"math"
	"testing"

	"assay.dev/assay/operator/internal/stats"
)

func TestSustainedLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		points    []stats.LoadPoint
		tolerance float64
		want      int
	}{
		"collapse":                             {[]stats.LoadPoint{{100, 100}, {200, 198}, {400, 300}, {800, 10}}, 0.05, 1},
		"exactly the tolerance":                {[]stats.LoadPoint{{100, 95}, {200, 189.9}}, 0.05, 0},
		"more than was offered":                {[]stats.LoadPoint{{100, 100}, {200, 211}}, 0.05, 0},
		"sustained by chance after a collapse": {[]stats.LoadPoint{{100, 100}, {200, 100}, {300, 300}}, 0.05, 0},
		"none":                                 {[]stats.LoadPoint{{100, 50}, {200, 200}}, 0.05, -1},
		"the order does not matter":            {[]stats.LoadPoint{{400, 300}, {200, 198}, {100, 100}}, 0.05, 1},
		"no tolerance":                         {[]stats.LoadPoint{{100, 100}, {200, 199}}, 0, 0},
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
		"no load":       {[]stats.LoadPoint{{0, 0}}, 0.05},
		"NaN":           {[]stats.LoadPoint{{1, math.NaN()}}, 0.05},
		"all tolerated": {[]stats.LoadPoint{{1, 1}}, 1},
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
