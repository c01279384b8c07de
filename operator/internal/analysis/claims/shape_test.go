package claims_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// curveOf makes a reported series of throughputs over clients.
func curveOf(values ...float64) v1alpha1.ReportedSeries {
	s := v1alpha1.ReportedSeries{Name: "fig", Metric: "Throughput", Unit: "tx/s", Axis: "clients"}
	for i, y := range values {
		s.Values = append(s.Values, v1alpha1.ReportedValue{X: v1alpha1.NewValue(fmt.Sprint(i + 1)), Y: v1alpha1.NewValue(fmt.Sprint(y))})
	}
	return s
}

// rising are the points and trials of a curve of throughputs.
func rising(rng *rand.Rand, n int, deviation float64, values ...float64) ([]results.PointResult, []results.TrialLine) {
	var curve []stats.CurvePoint
	for _, y := range values {
		curve = append(curve, stats.CurvePoint{Throughput: y, Latency: 1})
	}
	ls := closedLoop(rng, curve, n, deviation)
	return stats.Points(ls), ls
}

func judgeShape(t *testing.T, bound string, s v1alpha1.ReportedSeries, points []results.PointResult, lines []results.TrialLine) results.ClaimResult {
	t.Helper()
	return claims.EvaluateWith([]v1alpha1.Claim{{Name: "shape", Expr: "shape(series='fig') < " + bound}}, points, lines, nil, s)[0]
}

func TestShapes(t *testing.T) {
	for name, tc := range map[string]struct {
		reported, measured []float64
		bound              string
		value              float64
		verdict            string
	}{
		"one factor for all points":   {[]float64{100, 200, 400}, []float64{7, 14, 28}, "0.05", 0, "Holds"},
		"the last point is twice":     {[]float64{100, 200, 400}, []float64{10, 20, 80}, "0.2", math.Sqrt2 - 1, "Fails"},
		"a point on each side":        {[]float64{100, 100, 100}, []float64{80, 100, 125}, "0.3", 0.25, "Holds"},
		"the reverse of what is said": {[]float64{100, 200, 400}, []float64{400, 200, 100}, "0.5", 3, "Fails"},
	} {
		t.Run(name, func(t *testing.T) {
			points, lines := rising(rand.New(rand.NewPCG(1, 1)), 5, 1e-6, tc.measured...)
			got := judgeShape(t, tc.bound, curveOf(tc.reported...), points, lines)
			if got.Verdict != tc.verdict {
				t.Fatalf("%s, want %s: %s", got.Verdict, tc.verdict, got.Message)
			}
			if left := got.Terms[0].Left.Value; math.Abs(left-tc.value) > 1e-4 {
				t.Errorf("shape %g, want %g", left, tc.value)
			}
		})
	}
}

// testdata/shapes.py says what each number is. The intervals once had no degrees of freedom, so
// that the lower ends were those of a normal distribution, too high for few trials.
func TestShapesAgreeWithSciPy(t *testing.T) {
	for name, tc := range map[string]struct {
		reported []float64
		trials   [][]float64
		want     [3]float64
	}{
		"3 rounds":       {[]float64{100, 200, 400}, [][]float64{{31, 29, 30.5}, {63, 58, 61}, {180, 171, 176}}, [3]float64{0.145411827, 0.206565831, 0.256421176}},
		"4 rounds":       {[]float64{100, 250, 300}, [][]float64{{9.1, 9.9, 9.4, 9.6}, {26, 24, 25, 24.5}, {33, 32, 31, 34}}, [3]float64{0.021216333, 0.067872126, 0.103229442}},
		"the same shape": {[]float64{5, 6, 7}, [][]float64{{50, 51, 49.5}, {60.5, 59, 60}, {69, 70, 72}}, [3]float64{0, 0.003773224, 0.026093540}},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []results.TrialLine
			for k := range tc.trials[0] {
				for p, xs := range tc.trials {
					lines = append(lines, results.TrialLine{Number: int32(len(lines)), PointIndex: int32(p), Coordinates: map[string]string{"clients": fmt.Sprint(p + 1)},
						Repetition: int32(k), Outcome: stats.Succeeded, Committed: 1000, Throughput: xs[k], MeanMillis: 1})
				}
			}
			got := judgeShape(t, "0.5", curveOf(tc.reported...), stats.Points(lines), lines).Terms[0].Left
			for i, x := range []float64{*got.Low, got.Value, *got.High} {
				if math.Abs(x-tc.want[i]) > 1e-6 {
					t.Errorf("number %d is %.9f, want %.9f", i, x, tc.want[i])
				}
			}
		})
	}
}

// The shape rests on the points that are measured, and says how many.
func TestShapeOfPartOfACurve(t *testing.T) {
	points, lines := rising(rand.New(rand.NewPCG(1, 2)), 5, 1e-6, 10, 20, 30)
	got := judgeShape(t, "0.1", curveOf(100, 200, 300, 900, 2000), points, lines)
	if got.Verdict != "Holds" || !strings.Contains(got.Message, "2 of 5 values of the series fig have no measured point") {
		t.Errorf("%s: %s", got.Verdict, got.Message)
	}
	got = judgeShape(t, "0.1", curveOf(100, 200), points, lines)
	if got.Verdict != "NotEvaluated" || !strings.Contains(got.Message, "2 points stand beside a value of the series fig, and 3 are needed") {
		t.Errorf("%s: %s", got.Verdict, got.Message)
	}
	got = judgeShape(t, "0.1", v1alpha1.ReportedSeries{Name: "other"}, points, lines)
	if got.Verdict != "NotEvaluated" || !strings.Contains(got.Message, "there is no reported series fig") {
		t.Errorf("%s: %s", got.Verdict, got.Message)
	}
}

// One trial for each point has no interval, and decides nothing.
func TestShapeOfSingleTrials(t *testing.T) {
	points, lines := rising(rand.New(rand.NewPCG(1, 3)), 1, 0.01, 10, 20, 30)
	if got := judgeShape(t, "0.5", curveOf(10, 20, 30), points, lines); got.Verdict != "Inconclusive" {
		t.Errorf("%s: %s", got.Verdict, got.Message)
	}
}

// If the distance of a shape equals the bound, at most one of twenty experiments calls it closer,
// and at most one calls it farther. That holds for any number of points. If a shape is clearly
// right, it is found to be right.
func TestShapesAreRarelyWrong(t *testing.T) {
	const experiments = 400
	for name, tc := range map[string]struct {
		points    int
		distance  float64 // of the true curve from the reported one
		deviation float64 // of a trial
		wrong     []string
		right     string // of a verdict that most have; empty: none
	}{
		"at the bound, 3 points":  {3, 0.2, 0.05, []string{"Holds", "Fails"}, ""},
		"at the bound, 8 points":  {8, 0.2, 0.05, []string{"Holds", "Fails"}, ""},
		"far below, 6 points":     {6, 0, 0.05, []string{"Fails"}, "Holds"},
		"far above, 6 points":     {6, 0.6, 0.05, []string{"Holds"}, "Fails"},
		"noisy and equal, 8":      {8, 0, 0.3, []string{"Fails"}, ""},
		"noisy, 8 points, beyond": {8, 0.2, 0.3, []string{"Holds"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(tc.points), 7))
			reported, measured := make([]float64, tc.points), make([]float64, tc.points)
			for i := range reported {
				reported[i] = 100 * float64(i+1)
				measured[i] = 0.3 * reported[i]
			}
			measured[tc.points-1] *= math.Pow(1+tc.distance, 2)
			count := map[string]int{}
			for range experiments {
				points, lines := rising(rng, 6, tc.deviation, measured...)
				count[judgeShape(t, "0.2", curveOf(reported...), points, lines).Verdict]++
			}
			t.Log(count)
			for _, verdict := range tc.wrong {
				if n := count[verdict]; float64(n) > 0.05*experiments {
					t.Errorf("%d of %d experiments say %s", n, experiments, verdict)
				}
			}
			if tc.right != "" && count[tc.right] < experiments/2 {
				t.Errorf("%d of %d experiments say %s", count[tc.right], experiments, tc.right)
			}
		})
	}
}
