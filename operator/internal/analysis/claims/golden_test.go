package claims_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

var golden = flag.Bool("golden", false, "write testdata/verdicts.golden")

// rich are six rounds of two variants at four loads. Claims have caveats for most of it. Some
// trials do not count and were repeated, and some windows are not steady. There are failures,
// recoveries and measurements. One variant is better at high loads only.
func rich() []results.TrialLine {
	var all []results.TrialLine
	wobble := []float64{0.3, -0.5, 0.9, -0.2, -0.8, 0.6}
	number := int32(0)
	for round := range int32(6) {
		point := int32(0)
		for _, clients := range []float64{1, 4, 16, 64} {
			for v, variant := range []string{"a", "b"} {
				w := wobble[(int(round)+int(point))%len(wobble)] + 0.2*float64(round)/6
				mean := []float64{2, 2.6}[v]*(1+clients/[]float64{20, 60}[v]) + 0.04*w*float64(v+1)
				share, busy := 0.96+0.01*w, 0.5+clients/100
				value := 10 + 3*float64(v) + w
				l := results.TrialLine{
					Name: fmt.Sprintf("t-%d", number), Number: number, PointIndex: point, Repetition: round, Outcome: stats.Succeeded, Coordinates: map[string]string{"clients": fmt.Sprint(clients), "variant": variant},
					Committed: int64(20_000 * clients / mean), Aborted: int64(100*clients) + int64(7*round) + int64(50*v), Errors: int64(v) * int64(point) * int64(round%2), Timeouts: int64(round % 3), Unsent: int64(v),
					MeanMillis: mean, P10Millis: mean * 0.4, P50Millis: mean * 0.9, P90Millis: mean * (2 + 0.01*w), P95Millis: mean * 2.5, P99Millis: mean * (3 - 0.02*w), P999Millis: mean * 5,
					Percentiles: map[string]float64{"P75": mean * 1.5, "P9999": mean * 7, "P99999": mean * 8}, Throughput: 1000 * clients / mean, CorrectClients: int32(clients),
					ClientTimeShare: &share, ClientBusyShare: &busy, ThrottledShare: new(float64), Measurements: []results.Measurement{{Name: "cpu", Value: &value}, {Name: "gone", Reason: "no answer"}},
					Recovery: []results.Recovery{{Fault: "crash", Time: 1, Dipped: true, Recovered: round != 4 || v == 0, DetectMillis: 100 + 10*w, Depth: 0.5 + 0.1*float64(v) + 0.01*w, RecoverMillis: 900 + 50*w + 300*float64(v), LostTransactions: 40 + w}},
				}
				if point == 3 && round < 4 {
					l.Window = &results.WindowCheck{Throughput: &results.Transient{Bias: 0.05 + 0.01*float64(round), Millis: 900}, Latency: &results.Transient{Drift: -0.3}}
				}
				if point == 5 && round%2 == 1 {
					l.Attempt = 1
					first := l
					first.Name, first.Attempt, first.Outcome, first.Reason, first.MeanMillis, first.Throughput = l.Name+"-x", 0, stats.Invalid, v1alpha1.ReasonReplicaExited, mean*1.4, l.Throughput*0.7
					all = append(all, first)
				}
				if point == 2 && round == 0 {
					l.Attempt = 1
					first := l
					first.Name, first.Attempt, first.Outcome, first.Reason = l.Name+"-x", 0, stats.Invalid, v1alpha1.ReasonFaultLate
					all = append(all, first)
				}
				all = append(all, l)
				number++
				point++
			}
		}
	}
	return all
}

var expressions = []struct{ expr, reported, within string }{
	{expr: "mean_latency(variant='a', clients=4) < mean_latency(variant='b', clients=4)"},
	{expr: "mean_latency(variant='a', clients=16) > mean_latency(variant='b', clients=16) || throughput(variant='a', clients=1) > 5000"},
	{expr: "throughput(variant='a', clients=1) > throughput(variant='b', clients=1) && throughput(variant='a', clients=64) < throughput(variant='b', clients=64)"},
	{expr: "!(p99_latency(variant='a', clients=64) < 25ms)"},
	{expr: "throughput(variant='a', clients=4) > 1660"},
	{expr: "mean_latency(variant='b', clients=4) - mean_latency(variant='a', clients=4)", reported: "0.4ms", within: "20%"},
	{expr: "mean_latency(variant='b', clients=4) - mean_latency(variant='a', clients=4)", reported: "1ms", within: "0.2ms"},
	{expr: "mean_latency(variant='b', clients=4) / mean_latency(variant='a', clients=4)", reported: "1.15", within: "5%"},
	{expr: "p50_latency(variant='b', clients=4) + 2 * p90_latency(variant='a', clients=4)", reported: "11ms", within: "5%"},
	{expr: "-p10_latency(variant='a', clients=1) * p95_latency(variant='a', clients=1) / p999_latency(variant='a', clients=1)", reported: "-0.4ms", within: "20%"},
	{expr: "p75_latency(variant='a', clients=1) < p9999_latency(variant='a', clients=1) && p9999_latency(variant='b', clients=1) < p99999_latency(variant='b', clients=1)"},
	{expr: "abort_rate(variant='b', clients=4) < abort_rate(variant='a', clients=64)"},
	{expr: "error_rate(variant='b', clients=4)", reported: "0.0002", within: "50%"},
	{expr: "error_rate(variant='a', clients=64) < 0.01"},
	{expr: "max_throughput(variant='a') < max_throughput(variant='b')"},
	{expr: "max_throughput(variant='b') / max_throughput(variant='a')", reported: "1.5", within: "10%"},
	{expr: "min_latency(variant='a') < 2.2ms && peak_latency(variant='a') > 8ms"},
	{expr: "knee_throughput(along='clients', variant='a') < knee_throughput(along='clients', variant='b')"},
	{expr: "knee_latency(along='clients', variant='b')", reported: "3ms", within: "1ms"},
	{expr: "throughput_per_correct_client(variant='a', clients=4) > 100"},
	{expr: "ratio(of='throughput', variant=['a', 'b'], clients=4)", reported: "1.1", within: "10%"},
	{expr: "ratio(of='mean_latency', variant=['a', 'b'], clients=64) > 1.2"},
	{expr: "significantly_different(of='throughput', variant=['a', 'b'], clients=16)"},
	{expr: "!significantly_different(of='abort_rate', variant=['a', 'b'], clients=64)"},
	{expr: "increasing(of='throughput', along='clients', variant='a')"},
	{expr: "decreasing(of='mean_latency', along='clients', variant='b')"},
	{expr: "crossover(of='throughput', along='clients', variant=['a', 'b'])", reported: "10", within: "50%"},
	{expr: "crossover(of='mean_latency', along='clients', variant=['a', 'b']) < 12"},
	{expr: "time_to_detect(fault='crash', variant='a', clients=4) < 120ms"},
	{expr: "time_to_90(fault='crash', variant='a', clients=4) < time_to_90(fault='crash', variant='b', clients=4)"},
	{expr: "dip(fault='crash', variant='b', clients=1)", reported: "0.6", within: "10%"},
	{expr: "goodput_lost(fault='crash', variant='a', clients=1) > 39"},
	{expr: "measurement(name='cpu', variant='b', clients=1) > measurement(name='cpu', variant='a', clients=1)"},
	{expr: "measurement(name='gone', variant='b', clients=1) > 1"},
	{expr: "shape(series='fig') < 0.2"},
	{expr: "shape(series='fig', variant='a') < 0.3"},
	{expr: "capacity(variant='a') > 1"},
	{expr: "mean_latency(variant='a', clients=2) < 1ms"},
	{expr: "throughput(clients=4) > 1"},
	{expr: "max_throughput() > 0"},
	{expr: "mean_latency(variant='a', clients=4) > 1ms || mean_latency(variant='a', clients=4) < 2ms"},
}

// say writes all fields of a value, with six digits for floating-point numbers.
func say(w *bytes.Buffer, indent string, v reflect.Value) {
	if c, ok := v.Interface().(results.Caveat); ok { // the message has its text
		fmt.Fprintf(w, " %s %v", c.Kind, c.Points)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			say(w, indent, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				fmt.Fprintf(w, "\n%s%s:", indent, v.Type().Field(i).Name)
				say(w, indent+"  ", f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fmt.Fprintf(w, "\n%s-", indent)
			say(w, indent+"  ", v.Index(i))
		}
	case reflect.Float64:
		if x := v.Float(); math.Abs(x) < 1e-12 {
			fmt.Fprint(w, " 0")
		} else {
			fmt.Fprintf(w, " %.6g", x)
		}
	default:
		fmt.Fprintf(w, " %v", v.Interface())
	}
}

// The file has verdicts, intervals, caveats, replications and other analyses of one rich
// experiment, at its end and at a look before.
func TestVerdictsOfARichExperiment(t *testing.T) {
	var list []v1alpha1.Claim
	for i, e := range expressions {
		c := claim(e.expr, e.reported, e.within)
		c.Name = fmt.Sprintf("c%d", i)
		list = append(list, c)
	}
	figure := v1alpha1.ReportedSeries{Name: "fig", Metric: "Throughput", Unit: "tx/s", Axis: "clients", At: map[string]v1alpha1.Value{"variant": v1alpha1.NewValue("a")}}
	for i, load := range []string{"1", "4", "16", "64"} {
		figure.Values = append(figure.Values, v1alpha1.ReportedValue{X: v1alpha1.NewValue(load), Y: v1alpha1.NewValue([]string{"500", "1700", "4600", "7400"}[i])})
	}
	lines := rich()
	points := stats.Points(lines)
	var out bytes.Buffer
	for _, look := range []struct {
		name   string
		rounds int
		looks  stats.Looks
	}{{"at the end", 6, stats.Looks{}}, {"at a look after four of ten rounds", 4, stats.Looks{First: 3, Last: 10}}} {
		judged := claims.EvaluateWith(list, points, lines, nil, figure)
		if look.looks != (stats.Looks{}) {
			var some []results.TrialLine
			for _, l := range lines {
				if l.Repetition < int32(look.rounds) {
					some = append(some, l)
				}
			}
			judged = claims.EvaluateLook(list, stats.Points(some), some, look.looks, look.rounds, figure)
			claims.AddAnalysesAtLook(list, stats.Points(some), some, judged, look.looks, look.rounds, figure)
		} else {
			claims.AddAnalyses(list, points, lines, judged, figure)
		}
		fmt.Fprintf(&out, "# %s\n", look.name)
		for _, r := range judged {
			r.Statement = ""
			say(&out, "  ", reflect.ValueOf(r))
			fmt.Fprintln(&out)
		}
	}
	fmt.Fprint(&out, "# effects\n")
	for _, e := range claims.Effects(list, points, lines) {
		fmt.Fprintf(&out, "%s %s %.6g [%.6g, %.6g] %s\n", e.Claim, e.What, e.Value, e.Low, e.High, e.Unit)
	}
	fmt.Fprintf(&out, "# open: %v\n", claims.Open(claims.EvaluateLook(list, points, lines, stats.Looks{First: 3, Last: 10}, 6), map[string]string{"c3": "skipped"}))
	const file = "testdata/verdicts.golden"
	if *golden {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("run go test -golden if it is meant (-want +got):\n%s", diff)
	}
}
