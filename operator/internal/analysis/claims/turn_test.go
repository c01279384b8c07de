package claims

import (
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// TestWhereACurveTurns: the message names the best point, and by how much the curve is worse at its
// end, if the trials there show that.
func TestWhereACurveTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		direction string
		trend     bool
		means     []float64
		want      string
	}{
		"falls from its peak":       {"increasing", true, []float64{100, 800, 2000, 1700}, "; but not to the end: from clients=4 on it falls again, by 15%, which its trials show"},
		"falls from its begin":      {"increasing", true, []float64{400, 300, 200, 100}, "; but not to the end: from clients=1 on it falls again, by 75%, which its trials show"},
		"rises from its least":      {"decreasing", true, []float64{20, 6, 7, 8}, "; but not to the end: from clients=2 on it rises again, by 33%, which its trials show"},
		"rises to the end":          {"increasing", true, []float64{100, 800, 1700, 2000}, ""},
		"falls to the end":          {"decreasing", true, []float64{20, 15, 10, 6}, ""},
		"falls by less than trials": {"increasing", true, []float64{100, 800, 2000, 1995}, ""},
		"rises by less than trials": {"decreasing", true, []float64{20, 15, 6, 6.01}, ""},
		"has no trend":              {"increasing", false, []float64{100, 800, 2000, 1700}, ""},
	} {
		s := stats.Series{X: []float64{1, 2, 4, 8}}
		for _, m := range tc.means {
			s.Samples = append(s.Samples, []float64{0.99 * m, m, 1.01 * m, 1.005 * m, 0.995 * m})
		}
		if got := (&run{}).turn(s, arguments{along: "clients"}, tc.trend, tc.direction); got != tc.want {
			t.Errorf("a curve that %s: %q, want %q", name, got, tc.want)
		}
	}
}
