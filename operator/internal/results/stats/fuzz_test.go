package stats_test

import (
	"encoding/binary"
	"math"
	"testing"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Whatever the numbers, there is an error or an answer made of finite numbers that keep their
// order; never a panic.

// numbers reads floats of all kinds: NaN, infinities, denormals, both zeros.
func numbers(data []byte) []float64 {
	var xs []float64
	for ; len(data) >= 8 && len(xs) < 200; data = data[8:] {
		xs = append(xs, math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	return xs
}

// bytesOf is the inverse of numbers, for seeds.
func bytesOf(xs ...float64) []byte {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func seedNumbers(f *testing.F) {
	f.Helper()
	f.Add(bytesOf(), bytesOf())
	f.Add(bytesOf(1, 2, 3), bytesOf(2, 3, 5, 7))
	f.Add(bytesOf(1, 1, 1), bytesOf(1, 1, 1))
	f.Add(bytesOf(0, math.Copysign(0, -1)), bytesOf(5e-324, -5e-324))
	f.Add(bytesOf(1e100, -1e100, 1e100), bytesOf(1e-100, 1e100, 3))
	f.Add(bytesOf(math.NaN()), bytesOf(math.Inf(1), math.Inf(-1)))
}

func finite(t *testing.T, what string, xs ...float64) {
	t.Helper()
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("%s: %v has a number that is not finite", what, xs)
		}
	}
}

func ordered(t *testing.T, what string, e stats.Estimate) {
	t.Helper()
	finite(t, what, e.Value, e.Low, e.High)
	// Rounding may move an end of a narrow interval by the last digit of the value.
	slack := 1e-12 * math.Abs(e.Value)
	if e.Low > e.Value+slack || e.High < e.Value-slack {
		t.Fatalf("%s: %+v is not in order", what, e)
	}
}

func FuzzSamples(f *testing.F) {
	seedNumbers(f)
	f.Fuzz(trySamples)
}

func trySamples(t *testing.T, a, b []byte) {
	t.Helper()
	xs, ys := numbers(a), numbers(b)
	sx, errX := stats.Summarize(xs)
	sy, errY := stats.Summarize(ys)
	if errX == nil {
		ordered(t, "mean", stats.Estimate{Value: sx.Mean, Low: sx.Low, High: sx.High})
		ordered(t, "median", stats.Estimate{Value: sx.Median.Value, Low: sx.Median.Low, High: sx.Median.High})
		finite(t, "summary", sx.StdDev, sx.Min, sx.Max, sx.Median.Coverage)
	}
	if errX == nil && errY == nil && sx.N > 0 && sy.N > 0 {
		ordered(t, "difference", stats.Difference(sx.Aggregate, sy.Aggregate))
		if r, err := stats.Ratio(sx.Aggregate, sy.Aggregate); err == nil {
			ordered(t, "ratio", r.Estimate)
		}
	}
	if e, _, err := stats.Paired(xs, ys); err == nil {
		ordered(t, "pairs", e)
	}
	if e, _, err := stats.PairedRatio(xs, ys); err == nil {
		ordered(t, "ratio of pairs", e)
	}
	if share, err := stats.ShareOutside(xs, 0, 1); err == nil {
		finite(t, "share", share)
	}
	if b, err := stats.BalanceOf(xs); err == nil {
		finite(t, "balance", b.Mean, b.StdDev, b.CoV, b.MaxToMean)
	}
}

func FuzzRanks(f *testing.F) {
	seedNumbers(f)
	f.Fuzz(tryRanks)
}

func tryRanks(t *testing.T, a, b []byte) {
	t.Helper()
	xs, ys := numbers(a), numbers(b)
	if u, err := stats.MannWhitney(xs, ys); err == nil {
		if finite(t, "U", u.Statistic); !(u.P >= 0 && u.P <= 1) || u.Statistic < 0 || u.Statistic > float64(len(xs)*len(ys)) {
			t.Fatalf("MannWhitney = %+v", u)
		}
		v, err := stats.MannWhitney(ys, xs)
		if err != nil || math.Abs(v.P-u.P) > 1e-12 {
			t.Fatalf("P is %g one way and %g (%v) the other", u.P, v.P, err)
		}
	}
	if trend, err := stats.FindTrend(xs, ys); err == nil {
		if finite(t, "slope", trend.Slope); !(trend.P >= 0 && trend.P <= 1 && trend.Statistic >= -1 && trend.Statistic <= 1) {
			t.Fatalf("FindTrend = %+v", trend)
		}
	}
}

func FuzzCurves(f *testing.F) {
	seedNumbers(f)
	f.Add(bytesOf(100, 200, 250, 240), bytesOf(10, 11, 15, 40))
	f.Fuzz(tryCurves)
}

func tryCurves(t *testing.T, a, b []byte) {
	t.Helper()
	xs, ys := numbers(a), numbers(b)
	n := min(len(xs), len(ys))
	curve, loads := make([]stats.CurvePoint, n), make([]stats.LoadPoint, n)
	x, rising, falling := make([]float64, n), stats.Series{}, stats.Series{}
	for i := range n {
		curve[i] = stats.CurvePoint{Throughput: xs[i], Latency: ys[i]}
		loads[i] = stats.LoadPoint{Offered: xs[i], Goodput: ys[i]}
		x[i] = float64(i)
		rising.Samples = append(rising.Samples, []float64{xs[i], xs[(i+1)%n]})
		falling.Samples = append(falling.Samples, []float64{ys[i], ys[(i+1)%n]})
	}
	if k, err := stats.FindKnee(curve); err == nil && (k.CurvePoint != curve[k.Index] || k.Latency > k.Bound) {
		t.Fatalf("FindKnee = %+v", k)
	}
	if i, err := stats.Peak(curve); err == nil && (i < 0 || i >= n) {
		t.Fatalf("Peak = %d", i)
	}
	if i, err := stats.SustainedLoad(loads, stats.DefaultGoodputTolerance); err == nil && i >= 0 && !loads[i].Sustained(stats.DefaultGoodputTolerance) {
		t.Fatalf("SustainedLoad = %d, %+v", i, loads[i])
	}
	rising.X, falling.X = x, x
	if c, err := stats.Crossover(rising, falling); err == nil {
		ordered(t, "crossing", c.Estimate)
	}
}

func FuzzTimeline(f *testing.F) {
	f.Add([]byte{10, 10, 10, 10, 0, 0, 0, 10, 10, 10, 10, 10}, 350.0, 0.0, 1200.0, 0.9, int64(100))
	f.Add([]byte{}, math.NaN(), math.Inf(-1), math.Inf(1), -1.0, int64(0))
	f.Add([]byte{255, 0, 255}, 1e300, -1e300, 1e300, 1.0, int64(math.MaxInt64))
	f.Fuzz(tryTimeline)
}

func tryTimeline(t *testing.T, counts []byte, confirmed, from, to, share float64, interval int64) {
	t.Helper()
	timeline := results.NewTimeline(-200, 0)
	timeline.IntervalMillis = interval
	series := make([]float64, len(counts))
	for i, c := range counts {
		timeline.Committed = append(timeline.Committed, int64(c))
		series[i] = float64(c)
	}
	if r, err := stats.Recover(timeline, confirmed, stats.RecoveryRule{FromMillis: from, ToMillis: to, Share: share}); err == nil {
		finite(t, "recovery", r.Before, r.DetectMillis, r.Depth, r.RecoverMillis, r.Lost)
		if r.DetectMillis < 0 || r.RecoverMillis < r.DetectMillis || r.Depth < 0 || r.Depth > 1 {
			t.Fatalf("Recover = %+v", r)
		}
	}
	if s, err := stats.CheckStationarity(series, stats.DefaultTransientTolerance); err == nil {
		if finite(t, "stationarity", s.Mean, s.SteadyMean, s.Bias); s.Transient > len(series)/2 {
			t.Fatalf("CheckStationarity = %+v", s)
		}
	}
}
