package stats_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// closeTo reports whether two numbers are the same to a millionth.
func closeTo(x, y float64) bool { return math.Abs(x-y) <= 1e-6*math.Max(1, math.Abs(y)) }

// TestFewRoundsThatArePaired: quantiles of Student's distribution are of printed tables: 12.7062 of
// one degree of freedom, 3.182446 of three, 2.776445 of four.
func TestFewRoundsThatArePaired(t *testing.T) {
	for name, tc := range map[string]struct {
		differences []float64
		mean, half  float64
		known       bool
		cautions    []stats.Caution
	}{
		"one":  {[]float64{2}, 2, 0, false, []stats.Caution{stats.OneSample}},
		"two":  {[]float64{1, 3}, 2, 12.706205, true, []stats.Caution{stats.FewSamples}},
		"four": {[]float64{1, 1, 3, 3}, 2, 3.182446 * math.Sqrt(4./3) / 2, true, []stats.Caution{stats.FewSamples}},
		"five": {[]float64{1, 2, 3, 4, 5}, 3, 2.776445 * math.Sqrt(2.5/5), true, nil},
	} {
		var a, b, fast, slow []float64
		for i, d := range tc.differences {
			a, b = append(a, 10*float64(i)+d), append(b, 10*float64(i))
			fast, slow = append(fast, math.Exp(float64(i)+d/10)), append(slow, math.Exp(float64(i)))
		}
		e, cautions, err := stats.Paired(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.cautions, cautions); diff != "" || e.Known != tc.known || !closeTo(e.Value, tc.mean) {
			t.Errorf("%s: %+v, want %g; cautions (-want +got)\n%s", name, e, tc.mean, diff)
		}
		if tc.known && (!closeTo(e.Low, tc.mean-tc.half) || !closeTo(e.High, tc.mean+tc.half)) {
			t.Errorf("%s: %+v, want %g ± %g", name, e, tc.mean, tc.half)
		}
		r, cautions, err := stats.PairedRatio(fast, slow)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.cautions, cautions); diff != "" || r.Known != tc.known || !closeTo(r.Value, math.Exp(tc.mean/10)) {
			t.Errorf("ratio of %s: %+v, want e^%g; cautions (-want +got)\n%s", name, r, tc.mean/10, diff)
		}
		if tc.known && (!closeTo(math.Log(r.Low), (tc.mean-tc.half)/10) || !closeTo(math.Log(r.High), (tc.mean+tc.half)/10)) {
			t.Errorf("ratio of %s: %+v, want e^(%g ± %g)", name, r, tc.mean/10, tc.half/10)
		}
	}
	for name, tc := range map[string]struct {
		a, b []float64
		want string
	}{
		"none":                {nil, nil, ""},
		"another number":      {[]float64{1, 2}, []float64{1}, ""},
		"0 of the first":      {[]float64{1, 0}, []float64{1, 2}, "round 2 has 0 and 2; both must be positive"},
		"0 of the second":     {[]float64{1, 2}, []float64{0, 2}, "round 1 has 1 and 0; both must be positive"},
		"a negative one":      {[]float64{1, -1}, []float64{1, 2}, "round 2 has -1 and 2; both must be positive"},
		"too large a ratio":   {[]float64{1e60, 1e60}, []float64{1e-60, 1e-60}, "that is no comparison"},
		"too small a ratio":   {[]float64{1e-60, 1e-60}, []float64{1e60, 1e60}, "that is no comparison"},
		"too wide a interval": {[]float64{1e20, 1}, []float64{1, 1}, "that is no comparison"},
	} {
		if r, _, err := stats.PairedRatio(tc.a, tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, r, err, tc.want)
		}
	}
}

// TestMannWhitneyOfVeryFew: with m and n values there are (m+n)!/(m!n!) orders, each as likely, and
// P is twice the share of those in which U is as large.
func TestMannWhitneyOfVeryFew(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b []float64
		u, p float64
	}{
		"one and one":         {[]float64{1}, []float64{2}, 0, 1},
		"one below two":       {[]float64{1}, []float64{2, 3}, 0, 2. / 3},
		"two above one":       {[]float64{2, 3}, []float64{1}, 2, 2. / 3},
		"one between two":     {[]float64{2}, []float64{1, 3}, 1, 1},
		"two below two":       {[]float64{1, 2}, []float64{3, 4}, 0, 2. / 6},
		"three below three":   {[]float64{1, 2, 3}, []float64{4, 5, 6}, 0, 2. / 20},
		"three, one in place": {[]float64{1, 2, 4}, []float64{3, 5, 6}, 1, 4. / 20},
		"four below four":     {[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 0, 2. / 70},
	} {
		got, err := stats.MannWhitney(tc.a, tc.b)
		if err != nil || !got.Exact || got.Statistic != tc.u || !closeTo(got.P, tc.p) {
			t.Errorf("%s: %+v, %v; want U %g and P %g, exact", name, got, err, tc.u, tc.p)
		}
	}
	for name, tc := range map[string][2][]float64{"no first": {nil, {1}}, "no second": {{1}, nil}, "neither": {nil, nil}} {
		if got, err := stats.MannWhitney(tc[0], tc[1]); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestEndsOfACrossing: three trials of a at two points have the deviation 1, and those of b are all
// 0. In the middle between the points the variance of the difference is (1/4 + 1/4)/3, of 4 degrees
// of freedom: half its interval is 2.776445 √(1/6). The difference that straight lines give there
// is just as far from 0, so that one end is in the middle.
func TestEndsOfACrossing(t *testing.T) {
	half := 2.776445105 * math.Sqrt(1./6)
	around := func(x float64) []float64 { return []float64{x - 1, x, x + 1} }
	zeros := []float64{0, 0, 0}
	for name, tc := range map[string]struct {
		middle, rise float64
		low          bool // the end that is in the middle
	}{
		"the low end of a rise":  {-half, 40, true},
		"the high end of a rise": {half, 40, false},
		"the low end of a fall":  {half, -40, true},
		"the high end of a fall": {-half, -40, false},
	} {
		a := series([]float64{10, 20}, around(tc.middle-tc.rise/2), around(tc.middle+tc.rise/2))
		c, err := stats.Crossover(a, series([]float64{10, 20}, zeros, zeros))
		if err != nil {
			t.Fatal(err)
		}
		end := c.High
		if tc.low {
			end = c.Low
		}
		if at := 15 - 10*tc.middle/tc.rise; !c.Known || math.Abs(end-15) > 1e-5 || !closeTo(c.Value, at) || c.Freedom != 2 {
			t.Errorf("%s: %+v, want the end 15, the crossing %g, and 2 degrees of freedom", name, c, at)
		}
	}
}

// TestRatioOfRunsIsFiellers: the deviations of three and of four runs are pooled. An end ρ of the
// interval is where |b - ρa| is t √(s²/n_b + ρ² s²/n_a), with t of 5 degrees of freedom.
func TestRatioOfRunsIsFiellers(t *testing.T) {
	runs := func(means ...float64) (all []results.Aggregate) {
		for _, m := range means {
			all = append(all, stats.Aggregate([]float64{m, m}))
		}
		return all
	}
	for _, scale := range []float64{1, 0.1, 7, -3} {
		c := stats.CompareRuns(runs(9*scale, 10*scale, 11*scale), runs(18*scale, 19*scale, 21*scale, 22*scale), 0)
		if !c.Tested || !c.HasRatio || !c.Ratio.Known || !closeTo(c.Ratio.Value, 2) {
			t.Errorf("times %g: %+v, want the ratio 2", scale, c)
			continue
		}
		variance := (2. + 10.) / 5 // sums of squares around 10 and around 20, over n_a + n_b - 2
		for _, end := range []float64{c.Ratio.Low, c.Ratio.High} {
			if got, want := math.Abs(20-10*end), 2.570581836*math.Sqrt(variance/4+end*end*variance/3); math.Abs(got-want) > 1e-5 {
				t.Errorf("times %g: at the end %g the difference is %g, want %g", scale, end, got, want)
			}
		}
		if half := 2.570581836 * math.Sqrt(variance/3+variance/4) * math.Abs(scale); !closeTo(c.Difference.Value, 10*scale) || !closeTo(c.Difference.High-c.Difference.Value, half) {
			t.Errorf("times %g: the difference is %+v, want %g ± %g", scale, c.Difference, 10*scale, half)
		}
	}
}

// TestMeasurementsOfPoints: measurements are metrics of their point, of the trials that have them
// and count.
func TestMeasurementsOfPoints(t *testing.T) {
	line := func(outcome string, value *float64) results.TrialLine {
		return results.TrialLine{Outcome: outcome, Measurements: []results.Measurement{{Name: "gc", Value: value}}}
	}
	two, four, nine := 2.0, 4.0, 9.0
	got := stats.Points([]results.TrialLine{line(stats.Succeeded, &two), line(stats.Succeeded, nil), line(stats.Succeeded, &four), line(stats.Invalid, &nine), line(stats.Failed, &nine)})
	if len(got) != 1 || got[0].Valid != 3 || got[0].Metrics["gc"].N != 2 || got[0].Metrics["gc"].Mean != 3 {
		t.Errorf("%+v, want the mean 3 of two trials", got)
	}
	none := stats.Points([]results.TrialLine{line(stats.Succeeded, nil)})
	if _, has := none[0].Metrics["gc"]; has {
		t.Errorf("no trial has the measurement, and the point does: %+v", none)
	}
}

// TestObservationsThatAreRefused: where the error names one, it counts from 1.
func TestObservationsThatAreRefused(t *testing.T) {
	with := func(at int, x float64) []float64 {
		xs := make([]float64, 50)
		for i := range xs {
			xs[i] = 5 + float64(i%2)
		}
		if at >= 0 {
			xs[at] = x
		}
		return xs
	}
	for name, tc := range map[string]struct {
		observations []float64
		tolerance    float64
		want         string
	}{
		"50 are enough":           {with(-1, 0), 0.05, ""},
		"49 are not":              {with(-1, 0)[1:], 0.05, "there are 49 observations; it needs 50"},
		"0 is one":                {with(2, 0), 1, ""},
		"a negative one":          {with(2, -1), 0.05, "observation 3 is -1; it must be 0 or more"},
		"the first":               {with(0, math.NaN()), 0.05, "observation 1 is NaN"},
		"the last":                {with(49, math.Inf(1)), 0.05, "observation 50 is +Inf"},
		"no tolerance":            {with(-1, 0), 0, "the tolerance is 0"},
		"all may change":          {with(-1, 0), 1, ""},
		"more than all":           {with(-1, 0), 1.5, "the tolerance is 1.5"},
		"a tolerance that is NaN": {with(-1, 0), math.NaN(), "the tolerance is NaN"},
	} {
		_, err := stats.CheckStationarity(tc.observations, tc.tolerance)
		_, err2 := stats.FindChanges(tc.observations, tc.tolerance)
		for _, err := range []error{err, err2} {
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", name, err, tc.want)
			}
		}
	}
}

// TestMetricsThatATrialHas: results of others or of a script may lack throughput, and numbers of a
// whole run may lack latencies.
func TestMetricsThatATrialHas(t *testing.T) {
	elsewhere := &results.Imported{File: "x.csv"}
	for name, tc := range map[string]struct {
		line   results.TrialLine
		metric string
		want   bool
	}{
		"throughput of 0":                {results.TrialLine{}, stats.Throughput, true},
		"throughput of others":           {results.TrialLine{Imported: elsewhere, Throughput: 5}, stats.Throughput, true},
		"no throughput of others":        {results.TrialLine{Imported: elsewhere}, stats.Throughput, false},
		"throughput of a script":         {results.TrialLine{Script: "s", Throughput: 5}, stats.Throughput, true},
		"no throughput of a script":      {results.TrialLine{Script: "s"}, stats.Throughput, false},
		"a script of others":             {results.TrialLine{Script: "s", Imported: elsewhere}, stats.Throughput, false},
		"a latency of some":              {results.TrialLine{Committed: 1}, stats.P99Latency, true},
		"a latency of none":              {results.TrialLine{}, stats.P99Latency, false},
		"a whole run without a latency":  {results.TrialLine{Committed: 1, RunSummary: true}, stats.P99Latency, false},
		"a whole run with one":           {results.TrialLine{Committed: 1, RunSummary: true, P99Millis: 3}, stats.P99Latency, true},
		"a latency that older ones lack": {results.TrialLine{Committed: 1}, stats.P999Latency, false},
		"that latency":                   {results.TrialLine{Committed: 1, P999Millis: 3}, stats.P999Latency, true},
		"aborts of none":                 {results.TrialLine{}, stats.AbortRate, false},
		"aborts of some":                 {results.TrialLine{Committed: 1}, stats.AbortRate, true},
		"no correct client":              {results.TrialLine{Committed: 1}, stats.PerCorrectClientThroughput, false},
		"one correct client":             {results.TrialLine{CorrectClients: 1}, stats.PerCorrectClientThroughput, true},
	} {
		if got := stats.Has(tc.line, tc.metric); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestSamplesThatDoNotVary: equal means have P 1, others P 0 and the sign of their difference.
func TestSamplesThatDoNotVary(t *testing.T) {
	for _, tc := range []struct{ a, b, sign, p float64 }{{2, 2, 0, 1}, {2, 1, 1, 0}, {1, 2, -1, 0}, {-1, 1, -1, 0}, {1, -1, 1, 0}, {-2, -1, -1, 0}} {
		got, ok := stats.Welch(stats.Aggregate([]float64{tc.a, tc.a}), stats.Aggregate([]float64{tc.b, tc.b, tc.b}))
		if !ok || got.P != tc.p || got.Statistic != tc.sign*math.MaxFloat64 {
			t.Errorf("%g and %g: %+v, %v; want P %g and the sign %g", tc.a, tc.b, got, ok, tc.p, tc.sign)
		}
	}
	for _, one := range [][2][]float64{{{1}, {1, 2}}, {{1, 2}, {1}}} {
		if got, ok := stats.Welch(stats.Aggregate(one[0]), stats.Aggregate(one[1])); ok {
			t.Errorf("of one value: %+v", got)
		}
	}
}
