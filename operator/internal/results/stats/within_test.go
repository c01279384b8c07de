package stats_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// testdata/trends.py says what each value is.
func TestFindTrendWithin(t *testing.T) {
	packed, err := os.ReadFile("testdata/trends.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Rounds     [][]float64
		Deviations []float64
		P          float64
	}
	if err := json.Unmarshal(packed, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 70 {
		t.Fatalf("%d cases, want 70", len(cases))
	}
	for i, c := range cases {
		var rounds []stats.TrendRound
		for _, ys := range c.Rounds {
			round := stats.TrendRound{Y: ys, Deviations: c.Deviations}
			for x := range ys {
				round.X = append(round.X, float64(x))
			}
			rounds = append(rounds, round)
		}
		got, err := stats.FindTrendWithin(rounds)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.P-c.P) > 1e-6*c.P {
			t.Errorf("case %d (%v, deviations %v): P is %g, want %g", i, c.Rounds, c.Deviations, got.P, c.P)
		}
	}
}

// The slope is the median over the pairs of each round: 10, 11, 10.5 and -1. In which order a round
// names its trials is nothing to it.
func TestSlopeWithinRounds(t *testing.T) {
	for name, round := range map[string]stats.TrendRound{
		"in order": {X: []float64{1, 2, 3}, Y: []float64{10, 20, 31}},
		"shuffled": {X: []float64{3, 1, 2}, Y: []float64{31, 10, 20}},
	} {
		got, err := stats.FindTrendWithin([]stats.TrendRound{round, {X: []float64{2, 4}, Y: []float64{7, 5}}})
		if err != nil || math.Abs(got.Slope-10.25) > 1e-12 {
			t.Errorf("%s: %v, slope %g, want 10.25", name, err, got.Slope)
		}
	}
}

func TestFindTrendWithinRefuses(t *testing.T) {
	for name, rounds := range map[string][]stats.TrendRound{
		"no round":           nil,
		"one trial a round":  {{X: []float64{1}, Y: []float64{1}}, {X: []float64{2}, Y: []float64{1}}},
		"a point twice":      {{X: []float64{1, 1, 2}, Y: []float64{1, 2, 3}}},
		"not finite":         {{X: []float64{1, 2}, Y: []float64{1, math.NaN()}}},
		"another length":     {{X: []float64{1, 2}, Y: []float64{1}}},
		"too few deviations": {{X: []float64{1, 2}, Y: []float64{1, 2}, Deviations: []float64{1}}},
	} {
		if got, err := stats.FindTrendWithin(rounds); err == nil {
			t.Errorf("%s: accepted with %+v", name, got)
		}
	}
}
