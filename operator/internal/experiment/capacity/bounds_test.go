package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPercentilesOfAllAtMost: so many committed requests are slower than a percentile of all as its
// share leaves after the failed ones. It is at most the percentile of the committed with as few.
func TestPercentilesOfAllAtMost(t *testing.T) {
	p := Percentiles{P50: 1, P90: 2, P99: 3, P999: 4} // ns: a latency may be as short
	for name, tc := range map[string]struct {
		committed, failed int64
		known, want       Percentiles
	}{
		"none failed":           {1000, 0, p, p},
		"one of 1001":           {1000, 1, p, Percentiles{P50: 2, P90: 3, P99: 4}}, // of 1001 the P99 has 10 slower ones, 9 of them committed
		"1%":                    {990, 10, p, Percentiles{P50: 2, P90: 3}},         // all 10 slower ones failed
		"40%":                   {600, 400, p, Percentiles{P50: 2}},                // 500 are slower than the P50, and 100 of them committed: a sixth
		"half":                  {500, 500, p, Percentiles{}},                      // the P50 itself lies among those that failed
		"the next is not known": {1000, 1, Percentiles{P50: 1, P999: 4}, Percentiles{P50: 4, P90: 4, P99: 4}},
		"only one is known":     {1000, 0, Percentiles{P50: 1}, Percentiles{P50: 1}},
		"none is known":         {1000, 0, Percentiles{}, Percentiles{}},
	} {
		m := Measured{Committed: tc.committed, Failed: tc.failed, P50: tc.known.P50, P90: tc.known.P90, P99: tc.known.P99, P999: tc.known.P999}
		if diff := cmp.Diff(tc.want, m.atMost()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestCapacityNow: what is believed moves by the shift of its state and by the trend of so many
// trials, by whole points. The weight beyond the grid stays there, and no weight leaves it.
func TestCapacityNow(t *testing.T) {
	const step = 0.5
	for name, tc := range map[string]struct {
		shift, trend float64
		count        int
		points       []float64
		want         []float64
	}{
		"as it is":                        {0, 0, 3, []float64{1, 2, 4, 8, 16}, []float64{1, 2, 4, 8, 16}},
		"one up":                          {step, 0, 3, []float64{1, 2, 4, 8, 16}, []float64{1, 0, 2, 4, 24}},
		"one down":                        {-step, 0, 3, []float64{1, 2, 4, 8, 16}, []float64{3, 4, 8, 0, 16}},
		"up by the trend of three trials": {0, step / 3, 3, []float64{1, 2, 4, 8, 16}, []float64{1, 0, 2, 4, 24}},
		"both, which add up":              {step, -step / 3, 3, []float64{1, 2, 4, 8, 16}, []float64{1, 2, 4, 8, 16}},
		"less than half a point":          {0.49 * step, 0, 3, []float64{1, 2, 4, 8, 16}, []float64{1, 2, 4, 8, 16}},
		"far up":                          {9 * step, 0, 3, []float64{1, 2, 4, 8, 16}, []float64{1, 0, 0, 0, 30}},
		"far down":                        {-9 * step, 0, 3, []float64{1, 2, 4, 8, 16}, []float64{15, 0, 0, 0, 16}},
	} {
		e := &evidence{low: 0, step: step, count: tc.count, models: []model{{shifts: []float64{tc.shift}, trend: tc.trend}},
			weights: [][][]float64{{tc.points}}, spans: []span{{0, len(tc.points)}}}
		sum, got := 0.0, e.now()
		for _, w := range tc.want {
			sum += w
		}
		want := e.scaled(tc.want)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(belief{}), cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < 1e-12 })); diff != "" || sum != 31 {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestBoundOfAKnee is that of the lowest load, unless a smaller one is asked for.
func TestBoundOfAKnee(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ asked, reference, want time.Duration }{{0, 3 * ms, 6 * ms}, {5 * ms, 3 * ms, 5 * ms}, {6 * ms, 3 * ms, 6 * ms}, {7 * ms, 3 * ms, 6 * ms}} {
		if got := (Objective{Mean: tc.asked, Knee: 2}).WithReference(tc.reference); got != (Objective{Mean: tc.want}) {
			t.Errorf("%v of %v: %+v, want %v", tc.asked, tc.reference, got, tc.want)
		}
	}
}
