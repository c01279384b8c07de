package claims_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

var approx = cmpopts.EquateApprox(1e-12, 0)

var axes = []results.Axis{{Name: "clients", Values: []string{"5", "50"}}, {Name: "variant", Values: []string{"ideal", "failure-nofp", "failure-fp"}}}

// trial makes a trial that succeeded: mean latency in ms, throughput as a closed loop gives it, and
// 1 of 5 attempts aborted.
func trial(point int32, coordinates map[string]string, clients, mean float64) results.TrialLine {
	return results.TrialLine{PointIndex: point, Coordinates: coordinates, Outcome: stats.Succeeded, Committed: 4000, Aborted: 1000,
		MeanMillis: mean, P50Millis: mean * 0.9, P99Millis: mean * 3, Throughput: 1000 * clients / mean}
}

// lines are n trials of each point around the latencies that the Pesto artifact's notes give for
// Failure (uniform): 2.6, 4.1 and 8.2 ms at 5 clients.
func lines(n int) []results.TrialLine {
	var all []results.TrialLine
	spread := []float64{1, 0.98, 1.02, 0.99, 1.01}
	point := int32(0)
	for _, clients := range []float64{5, 50} {
		for i, variant := range []string{"ideal", "failure-nofp", "failure-fp"} {
			at := map[string]string{"clients": fmt.Sprint(clients), "variant": variant}
			mean := []float64{2.6, 4.1, 8.2}[i] * (1 + (clients-5)/45)
			for k := range n {
				all = append(all, trial(point, at, clients, mean*spread[k]))
			}
			point++
		}
	}
	return all
}

func claim(expr, reported, within string) v1alpha1.Claim {
	c := v1alpha1.Claim{Name: "c", Statement: "s", Expr: expr, Within: within}
	if reported != "" {
		v := v1alpha1.NewValue(reported)
		c.Reported = &v
	}
	return c
}

func TestEvaluate(t *testing.T) {
	const difference = "mean_latency(variant='failure-fp', clients=5) - mean_latency(variant='failure-nofp', clients=5)"
	order := "mean_latency(variant='ideal', clients=5) < mean_latency(variant='failure-nofp', clients=5) && " +
		"mean_latency(variant='failure-nofp', clients=5) < mean_latency(variant='failure-fp', clients=5)"
	for name, tc := range map[string]struct {
		expr, reported, within string
		trials                 int
		verdict                v1alpha1.Verdict
		message                string // a part of it
	}{
		"order of three":             {expr: order, trials: 3, verdict: v1alpha1.VerdictHolds, message: "2.60 ms [2.47, 2.73] < 4.10 ms [3.90, 4.30] holds"},
		"wrong order":                {expr: "mean_latency(variant='ideal', clients=5) > mean_latency(variant='failure-nofp', clients=5)", trials: 3, verdict: v1alpha1.VerdictFails, message: "does not hold"},
		"too near to tell":           {expr: "mean_latency(variant='ideal', clients=5) < 2.61ms", trials: 3, verdict: v1alpha1.VerdictInconclusive, message: "cannot be told apart"},
		"one false, one undecided":   {expr: "mean_latency(variant='ideal', clients=5) < 2.61ms && throughput(variant='ideal', clients=5) < 100", trials: 3, verdict: v1alpha1.VerdictFails, message: "cannot be told apart"},
		"one true, one undecided":    {expr: "mean_latency(variant='ideal', clients=5) < 2.61ms || throughput(variant='ideal', clients=5) > 100", trials: 3, verdict: v1alpha1.VerdictHolds},
		"not undecided":              {expr: "!(mean_latency(variant='ideal', clients=5) < 2.61ms)", trials: 3, verdict: v1alpha1.VerdictInconclusive},
		"not false":                  {expr: "!(mean_latency(variant='ideal', clients=5) > 4ms)", trials: 3, verdict: v1alpha1.VerdictHolds},
		"quantity inside":            {expr: difference, reported: "4.1ms", within: "25%", trials: 3, verdict: v1alpha1.VerdictHolds, message: "measured 4.10 ms [3.76, 4.44]; reported 4.1ms within 25%: from 3.07 ms to 5.12 ms; 95% intervals, n=3"},
		"quantity outside":           {expr: difference, reported: "8ms", within: "1ms", trials: 3, verdict: v1alpha1.VerdictFails},
		"quantity straddles":         {expr: difference, reported: "4.1ms", within: "0.1ms", trials: 3, verdict: v1alpha1.VerdictInconclusive, message: "repetitions would decide"},
		"one trial, inside":          {expr: difference, reported: "4.1ms", within: "1%", trials: 1, verdict: v1alpha1.VerdictInconclusive, message: "one trial for each point: there is no interval, so that nothing is decided"},
		"one trial, order":           {expr: order, trials: 1, verdict: v1alpha1.VerdictInconclusive, message: "one trial for each point: there is no interval, so that nothing is decided"},
		"ratio":                      {expr: "throughput(variant='ideal', clients=5) / throughput(variant='failure-fp', clients=5)", reported: "3.1538", within: "10%", trials: 3, verdict: v1alpha1.VerdictHolds, message: "measured 3.15 [3.01, 3.30]"},
		"greatest throughput":        {expr: "max_throughput(variant='failure-fp') < max_throughput(variant='ideal')", trials: 3, verdict: v1alpha1.VerdictHolds},
		"greatest over all":          {expr: "max_throughput()", reported: "9615", within: "6%", trials: 3, verdict: v1alpha1.VerdictHolds, message: "tx/s"},
		"throughput against number":  {expr: "throughput(variant='ideal', clients=5) > 1900", trials: 3, verdict: v1alpha1.VerdictInconclusive},
		"abort rate":                 {expr: "abort_rate(variant='ideal', clients=5)", reported: "0.2", within: "0.04", trials: 3, verdict: v1alpha1.VerdictHolds},
		"percentiles":                {expr: "p99_latency(variant='ideal', clients=5) > 3 * p50_latency(variant='ideal', clients=5)", trials: 3, verdict: v1alpha1.VerdictHolds},
		"arithmetic":                 {expr: "(mean_latency(variant='ideal', clients=5) + 1.5ms) / 2 * 4 - 2ms * 2", reported: "4.2ms", within: "20%", trials: 3, verdict: v1alpha1.VerdictHolds},
		"numbers are decimals":       {expr: "1 / 2 * abort_rate(variant='ideal', clients=5) < 0.12", trials: 3, verdict: v1alpha1.VerdictHolds},
		"negated":                    {expr: "-mean_latency(variant='ideal', clients=5) < 0ms", trials: 3, verdict: v1alpha1.VerdictHolds},
		"map form":                   {expr: "mean_latency({'variant': 'ideal', 'clients': 5}) < 3ms", trials: 3, verdict: v1alpha1.VerdictHolds},
		"number written differently": {expr: "mean_latency(variant='ideal', clients=5.0) < 3ms", trials: 3, verdict: v1alpha1.VerdictHolds},
		"no such point":              {expr: "mean_latency(variant='ideal', clients=7) < 3ms", trials: 3, verdict: v1alpha1.VerdictNotEvaluated, message: "no point has variant=ideal, clients=7"},
		"several points":             {expr: "mean_latency(variant='ideal') < 3ms", trials: 3, verdict: v1alpha1.VerdictNotEvaluated, message: "2 points match"},
		"no trials":                  {expr: order, verdict: v1alpha1.VerdictNotEvaluated, message: "missing: no point has"},
		"division by zero":           {expr: "1 / (abort_rate(variant='ideal', clients=5) - abort_rate(variant='ideal', clients=5))", reported: "1", within: "1", trials: 3, verdict: v1alpha1.VerdictNotEvaluated, message: "division by zero"},
		"syntax":                     {expr: "mean_latency(", verdict: v1alpha1.VerdictNotEvaluated, message: "expr: 1:14, at the end: Syntax error"},
		"tolerance of everything":    {expr: difference, reported: "8ms", within: "Inf%", trials: 3, verdict: v1alpha1.VerdictNotEvaluated, message: `"Inf%" is not a percentage`},
		"tolerance of nothing":       {expr: difference, reported: "4.1ms", within: "NaN%", trials: 3, verdict: v1alpha1.VerdictNotEvaluated, message: `"NaN%" is not a percentage`},
		"nothing reported":           {expr: difference, trials: 3, verdict: v1alpha1.VerdictNotEvaluated, message: "nothing is reported"},
	} {
		t.Run(name, func(t *testing.T) {
			ls := lines(tc.trials)
			got := claims.Evaluate([]v1alpha1.Claim{claim(tc.expr, tc.reported, tc.within)}, stats.Points(ls), ls)[0]
			if got.Verdict != string(tc.verdict) {
				t.Errorf("verdict %s, want %s; message: %s", got.Verdict, tc.verdict, got.Message)
			}
			if !strings.Contains(got.Message, tc.message) {
				t.Errorf("message %q, want it to contain %q", got.Message, tc.message)
			}
			if quantity := tc.reported != "" && tc.verdict != v1alpha1.VerdictNotEvaluated; quantity != (got.Measured != nil) {
				t.Errorf("measured %v, want one: %t", got.Measured, quantity)
			}
		})
	}
}

// The interval of a difference of two points is Welch's. Two metrics of one point depend on each
// other, and the interval must allow for that. Here every trial's p99 is three times its mean, so
// their ratio has no spread although each of them has.
func TestIntervals(t *testing.T) {
	ls := lines(5)
	points := stats.Points(ls)
	got := claims.Evaluate([]v1alpha1.Claim{
		claim("mean_latency(variant='failure-fp', clients=5) - mean_latency(variant='ideal', clients=5)", "1ms", "1ms"),
		claim("p99_latency(variant='ideal', clients=5) / mean_latency(variant='ideal', clients=5)", "3", "0.1"),
	}, points, ls)
	welch := stats.Difference(points[2].Metrics[stats.MeanLatency], points[0].Metrics[stats.MeanLatency])
	if diff := cmp.Diff([]float64{welch.Value, welch.Low, welch.High}, []float64{*got[0].Measured, *got[0].Low, *got[0].High}, approx); diff != "" {
		t.Errorf("difference (-Welch +got):\n%s", diff)
	}
	if width := *got[1].High - *got[1].Low; width > 1e-9 || got[1].Verdict != "Holds" {
		t.Errorf("p99/mean is 3 in every trial, so its interval has no width; got %g and %s", width, got[1].Verdict)
	}
}

func TestInvalidTrialsAreNamed(t *testing.T) {
	at := map[string]string{"clients": "5"}
	ls := []results.TrialLine{
		{Coordinates: at, Outcome: stats.Invalid, Reason: "FaultLate"}, {Coordinates: at, Outcome: stats.Invalid, Reason: "FaultLate"}, {Coordinates: at, Outcome: stats.Failed, Reason: "RunLost"},
	}
	got := claims.Evaluate([]v1alpha1.Claim{claim("throughput(clients=5) > 1", "", "")}, stats.Points(ls), ls)[0]
	want := "missing: clients=5 has no valid trial (1 Failed RunLost, 2 Invalid FaultLate)"
	if got.Verdict != "NotEvaluated" || got.Message != want {
		t.Errorf("%s: %q\nwant NotEvaluated: %q", got.Verdict, got.Message, want)
	}
}

func TestCheck(t *testing.T) {
	const quantity = "mean_latency(variant='ideal', clients=5)"
	for name, tc := range map[string]struct {
		expr, reported, within string
		want                   string // empty: accepted
	}{
		"comparison":         {expr: quantity + " < mean_latency(variant='failure-fp', clients=5)"},
		"quantity":           {expr: quantity, reported: "2.6ms", within: "10%"},
		"greatest":           {expr: "max_throughput(variant='ideal') > 100"},
		"text like keywords": {expr: "max_throughput(variant='ideal') > 100 // a='b', c=d"},

		"comparison with a value":   {expr: quantity + " < 3ms", reported: "2.6ms", within: "10%", want: "reported: expr is a comparison"},
		"quantity without a value":  {expr: quantity, want: "expr: gives a quantity; add reported and within, or expected and within"},
		"latency needs a duration":  {expr: quantity, reported: "2.6", within: "10%", want: `reported: "2.6" must be a duration such as 4.1ms`},
		"throughput needs a number": {expr: "max_throughput()", reported: "2.6ms", within: "10%", want: "must be a number, since expr is a throughput"},
		"within in another unit":    {expr: "max_throughput()", reported: "100", within: "3ms", want: `within: "3ms" must be a number`},
		"no tolerance":              {expr: quantity, reported: "0ms", within: "10%", want: "within: leaves no tolerance"},
		"every measurement fits":    {expr: quantity, reported: "2.6ms", within: "Inf%", want: `within: "Inf%" is not a percentage such as 25%`},
		"no measurement fits":       {expr: quantity, reported: "2.6ms", within: "NaN%", want: `within: "NaN%" is not a percentage such as 25%`},
		"tolerance too large":       {expr: "max_throughput()", reported: "1e308", within: "900%", want: "within: 900% around 1e308 is more than a number can hold"},
		"nothing is too small":      {expr: "max_throughput()", reported: "1000", within: "100%", want: "within: from 0 tx/s to 2000 tx/s holds 0 tx/s, the least that the expression can be: no measurement is too small"},
		"nor for a quotient":        {expr: "max_throughput(variant='ideal') / max_throughput(variant='failure-fp')", reported: "1", within: "100%", want: "within: from 0 to 2.00 holds 0"},
		"nor for a difference":      {expr: quantity + " - mean_latency(variant='failure-fp', clients=5)", reported: "4ms", within: "200%"},
		"nor for a small share":     {expr: "error_rate(variant='ideal', clients=5)", reported: "0.02", within: "0.05", want: "within: from -0.0300 to 0.0700 holds 0"},
		"a share near 0":            {expr: "error_rate(variant='ideal', clients=5)", reported: "0", within: "0.05"},
		"a tolerance of all":        {expr: "error_rate(variant='ideal', clients=5)", reported: "0", within: "1", want: "within: from -1.00 to 1.00 is all that the expression can be: no measurement can miss it"},
		"a tolerance of just all":   {expr: "error_rate(variant='ideal', clients=5)", reported: "0.5", within: "0.5", want: "within: from 0 to 1.00 is all that the expression can be: no measurement can miss it"},
		"a value that none has":     {expr: "error_rate(variant='ideal', clients=5)", reported: "5", within: "1%", want: "reported: 5 cannot be measured: the expression is from 0 to 1"},
		"nearly all":                {expr: "max_throughput()", reported: "1000", within: "99%"},
		"nothing measured":          {expr: "1 < 2", want: "expr: reads no results"},

		"some throughput":          {expr: "max_throughput() > 0"},
		"no failure":               {expr: "error_rate(variant='ideal', clients=5) <= 0"},
		"any throughput":           {expr: "max_throughput() >= 0", want: "expr: 1:18, at >=: holds whatever was measured: one side is 0 or more"},
		"any throughput, turned":   {expr: "0 <= max_throughput()", want: "holds whatever was measured"},
		"no throughput":            {expr: "max_throughput() < 0", want: "expr: 1:18, at <: cannot hold, whatever was measured: one side is 0 or more"},
		"any latency":              {expr: quantity + " > -1ms", want: "holds whatever was measured"},
		"a share of all":           {expr: "error_rate(variant='ideal', clients=5) < 100", want: "holds whatever was measured: one side is from 0 to 1"},
		"a dip of all":             {expr: "dip(fault='crash', variant='ideal', clients=5) < 1"},
		"a sum":                    {expr: "max_throughput() + max_throughput(variant='ideal') >= 0", want: "holds whatever was measured: one side is 0 or more"},
		"by less than 0":           {expr: "max_throughput() / -max_throughput(variant='ideal') > 1", want: "cannot hold, whatever was measured: one side is 0 or less"},
		"a difference":             {expr: quantity + " - mean_latency(variant='failure-fp', clients=5) > -1ms"},
		"with itself":              {expr: quantity + " <= mean_latency(clients=5, variant='ideal')", want: "expr: 1:42, at <=: both sides are the same, so that no result has a part in it"},
		"less itself":              {expr: quantity + " - " + quantity + " < 5ms", want: "at -: both sides are the same, so that the result is the same whatever was measured"},
		"by itself":                {expr: "max_throughput() / max_throughput()", reported: "1", within: "5%", want: "at /: both sides are the same"},
		"a part that always holds": {expr: "max_throughput() > 5 && 1 < 2", want: "expr: 1:27, at <: holds whatever was measured: no side reads a result"},
		"one or the other":         {expr: "max_throughput() > 5 || max_throughput() < 10", want: "expr: holds whatever was measured: no result can refute it"},
		"one or the other, apart":  {expr: "max_throughput() > 10 || max_throughput() < 5"},
		"between":                  {expr: "max_throughput() > 5 && max_throughput() < 10"},
		"between the wrong way":    {expr: "max_throughput() < 5 && max_throughput() > 10", want: "expr: cannot hold, whatever was measured: no result can support it"},
		"more or not more":         {expr: "max_throughput(variant='ideal') > max_throughput(variant='failure-fp') || max_throughput(variant='failure-fp') >= max_throughput(variant='ideal')", want: "no result can refute it"},
		"more and less":            {expr: "max_throughput(variant='ideal') > max_throughput(variant='failure-fp') && max_throughput(variant='ideal') < max_throughput(variant='failure-fp')", want: "no result can support it"},
		"more or less":             {expr: "max_throughput(variant='ideal') > max_throughput(variant='failure-fp') || max_throughput(variant='ideal') < max_throughput(variant='failure-fp')"},
		"a test or its opposite":   {expr: "significantly_different(of='throughput', variant=['ideal', 'failure-fp'], clients=5) || !significantly_different(of='throughput', variant=['ideal', 'failure-fp'], clients=5)", want: "no result can refute it"},
		"or true":                  {expr: "max_throughput() > 5 || true", want: "no result can refute it"},
		"and true":                 {expr: "max_throughput() > 5 && true"},

		"unknown axis":        {expr: "mean_latency(variant='ideal', client=5) < 3ms", want: "expr: 1:31, at client: there is no axis client; did you mean clients?"},
		"unknown value":       {expr: "mean_latency(clients=5,\n variant='idle') < 3ms", want: "expr: 2:10, at 'idle': axis variant has no value idle; its values are ideal, failure-nofp, failure-fp"},
		"escaped quote":       {expr: `max_throughput(variant='a\'b') > 1`, want: "axis variant has no value a'b"},
		"space before a =":    {expr: "mean_latency(variant ='ideal', clients =5) < 3ms"},
		"an axis left open":   {expr: "mean_latency(variant='ideal') < 3ms", want: "expr: 1:1, at mean_latency: mean_latency reads one point: give axis clients one of its values 5, 50"},
		"axis twice":          {expr: "mean_latency(variant='ideal', clients=5, clients=5) < 3ms", want: "expr: 1:42, at clients: clients is given twice"},
		"computed value":      {expr: "mean_latency(variant='ideal', clients=5+5) < 3ms", want: "the value of clients must be a text, a number, true or false"},
		"position after text": {expr: "max_throughput(variant='ideal') > 1 && max_throughput(variant='a=b') > 1", want: "expr: 1:63, at 'a=b': axis variant has no value a=b"},

		"unknown function":          {expr: "median(clients=5) < 3ms", want: "expr: 1:1, at median: there is no function median; the functions are abort_rate, capacity, crossover, decreasing, dip, error_rate"},
		"value without quotes":      {expr: "max_throughput(variant=ideal) > 1", want: "expr: 1:24, at ideal: unknown name ideal; texts need quotes, as in 'ideal'"},
		"chained":                   {expr: quantity + " < 3ms < 4ms", want: "expr: 1:48, at <: < cannot be chained: write a < b && b < c"},
		"latency against number":    {expr: quantity + " < 3", want: "give the number a unit, as in 5ms"},
		"latency and throughput":    {expr: quantity + " < max_throughput()", want: "< cannot be applied to latency and throughput"},
		"equality":                  {expr: quantity + " == 3ms", want: "measured values are never equal"},
		"single equals":             {expr: quantity + " = 3ms", want: "expr: 1:42, at =: a single = belongs to an argument"},
		"argument without a name":   {expr: "mean_latency(variant='ideal', 5) < 3ms", want: "expr: 1:31, at 5: write every argument as axis=value"},
		"name after none":           {expr: "mean_latency('ideal', clients=5) < 3ms", want: "expr: 1:23, at clients: write every argument as axis=value"},
		"text argument":             {expr: "mean_latency('ideal') < 3ms", want: "mean_latency takes arguments of the form axis=value"},
		"conditional":               {expr: "true ? 1 : 2", want: "claims have no operator"},
		"syntax":                    {expr: quantity + " <", want: "expr: 1:43, at the end: Syntax error"},
		"not CEL":                   {expr: "mean latency", want: "expr: 1:6, at latency: Syntax error"},
		"bad duration":              {expr: quantity + " < duration('3 ms')", want: `"3 ms" is not a duration`},
		"open text":                 {expr: "mean_latency(variant='ideal", want: "expr: 1:"},
		"misspelt function":         {expr: "mean_latncy(variant='ideal', clients=5) < 3ms", want: "expr: 1:1, at mean_latncy: there is no function mean_latncy; did you mean mean_latency?"},
		"misspelt, second line":     {expr: "max_throughput() > 1 &&\n  !(  max_throughput (varant='ideal') > 1)", want: "expr: 2:23, at varant: there is no axis varant; did you mean variant?"},
		"no metric":                 {expr: "increasing(along='clients', variant='ideal')", want: "expr: 1:1, at increasing: increasing needs of"},
		"short axis":                {expr: "increasing(of='throughput', along='clients', variant='ideal')", want: "expr: 1:35, at 'clients': axis clients has 2 values; a curve along it needs 3"},
		"axis without numbers":      {expr: "decreasing(of='throughput', along='variant', clients=5)", want: "axis variant has the value ideal, which is no number"},
		"along an unknown axis":     {expr: "knee_latency(along='client', variant='ideal') < 5ms", want: "expr: 1:20, at 'client': there is no axis client; did you mean clients?"},
		"along and given":           {expr: "crossover(of='throughput', along='clients', clients=5, variant=['ideal', 'failure-fp']) < 5", want: "clients is what the curve goes along, and is given a value too"},
		"of a fault's metric":       {expr: "ratio(of='dip', variant=['ideal', 'failure-fp'], clients=5) < 5", want: "there is no function of one point dip; there are abort_rate"},
		"one variant":               {expr: "ratio(of='throughput', variant='ideal', clients=5) < 5", want: "expr: 1:1, at ratio: ratio needs two values of one axis"},
		"a variant with itself":     {expr: "ratio(of='throughput', clients=[5, 5.0], variant='ideal') < 5", want: "clients needs two different values"},
		"three variants":            {expr: "ratio(of='throughput', variant=['ideal', 'failure-fp', 'failure-nofp'], clients=5) < 5", want: "variant needs two different values"},
		"two pairs":                 {expr: "ratio(of='throughput', variant=['ideal', 'failure-fp'], clients=[5, 50]) < 5", want: "expr: 1:57, at clients: variant has two values already"},
		"a list where one is":       {expr: "throughput(variant=['ideal', 'failure-fp'], clients=5) > 1", want: "expr: 1:20, at [: variant takes one value"},
		"variants left open":        {expr: "significantly_different(of='throughput', variant=['ideal', 'failure-fp'])", want: "reads two variants: give axis clients one of its values 5, 50"},
		"no fault":                  {expr: "time_to_90(variant='ideal', clients=5) < 5s", want: "expr: 1:1, at time_to_90: time_to_90 needs fault"},
		"unknown fault":             {expr: "dip(fault='crush', variant='ideal', clients=5) < 1", want: "expr: 1:11, at 'crush': there is no fault crush; did you mean crash?"},
		"time 0":                    {expr: "dip(fault='crash', time=0, variant='ideal', clients=5) < 1", want: "expr: 1:25, at 0: time: 0 must be 1 or more"},
		"fault of a latency":        {expr: "mean_latency(fault='crash', variant='ideal', clients=5) < 1ms", want: "expr: 1:14, at fault: there is no axis fault; the axes are clients, variant"},
		"computed from an estimate": {expr: "1 - ratio(of='throughput', variant=['ideal', 'failure-fp'], clients=5) < 1", want: "expr: 1:3, at -: - cannot be applied to number and estimate: ratio, crossover, shape and capacity can be compared"},
		"too long":                  {expr: strings.Repeat("max_throughput() > 1 && ", 100) + "max_throughput() > 1", want: "expr: 1:2041, at max_throughput: the expression has 2420 characters"},
		"too deep":                  {expr: strings.Repeat("(", 65) + "1" + strings.Repeat(")", 65), want: "expr: 1:65, at (: brackets nest deeper than 64"},
		"empty duration":            {expr: quantity + " < duration('')", want: `"" is not a duration`},
	} {
		t.Run(name, func(t *testing.T) {
			err := claims.Check(claim(tc.expr, tc.reported, tc.within), axes, faults)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("accepted, want: %s", tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("got:  %v\nwant: %s", err, tc.want)
			}
		})
	}
}

// Every comparison is kept, as data and in the message, however many there are.
func TestNothingOfAVerdictIsCut(t *testing.T) {
	expr := strings.Repeat("max_throughput() > 1 && ", 80) + "max_throughput() > 1"
	ls := lines(3)
	got := claims.Evaluate([]v1alpha1.Claim{claim(expr, "", "")}, stats.Points(ls), ls)[0]
	if n := strings.Count(got.Message, " holds: difference "); n != 81 || len(got.Terms) != 81 || got.Verdict != "Holds" {
		t.Errorf("%s with %d comparisons in its message and %d terms; the claim makes 81", got.Verdict, n, len(got.Terms))
	}
}
