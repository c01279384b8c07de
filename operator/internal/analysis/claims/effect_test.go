package claims

import (
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

func TestWeak(t *testing.T) {
	const a, b = "throughput(x=1)", "throughput(x=2)"
	for name, tc := range map[string]struct {
		expr, reported, within string
		want                   string // part of it; empty: not weak
	}{
		"quotient that holds 1":        {a + " / " + b, "0.8", "30%", "holds 1.00, which is no effect"},
		"quotient that does not":       {a + " / " + b, "0.8", "20%", ""},
		"share of equals":              {a + " / (" + a + " + " + b + ")", "0.5", "20%", ""},
		"small effect":                 {a + " / " + b, "1.04", "25%", "holds 1.00, which is no effect"},
		"equality":                     {a + " / " + b, "1", "10%", ""},
		"nearly equality":              {a + " / " + b, "1.02", "10%", ""},
		"equality that holds 0":        {a + " / " + b, "1", "100%", "no measurement is too small"},
		"ratio":                        {"ratio(of='throughput', x=[1, 2])", "0.9", "15%", "holds 1.00, which is no effect"},
		"ratio that does not hold 1":   {"ratio(of='throughput', x=[1, 2])", "0.9", "5%", ""},
		"difference that holds 0":      {"mean_latency(x=1) - mean_latency(x=2)", "4ms", "5ms", "holds 0 ms, which is no effect"},
		"difference that does not":     {"mean_latency(x=1) - mean_latency(x=2)", "4ms", "50%", ""},
		"negative difference":          {a + " - " + b, "-4", "50%", ""},
		"negative one that holds 0":    {a + " - " + b, "-4", "100%", "holds 0 tx/s, which is no effect"},
		"difference of 0":              {"mean_latency(x=1) - mean_latency(x=2)", "0ms", "1ms", ""},
		"share of a difference":        {"(" + a + " - " + b + ") / " + b, "0.1", "100%", "holds 0, which is no effect"},
		"share of a difference, apart": {"(" + a + " - " + b + ") / " + b, "0.1", "50%", ""},
		"less than all":                {"1 - " + a + " / " + b, "0.1", "150%", "holds 0, which is no effect"},
		"twice a quotient":             {"2 * (" + a + " / " + b + ")", "1.5", "40%", "holds 2.00, which is no effect"},
		"quotient of quotients":        {"(" + a + " / " + b + ") / (throughput(x=3) / throughput(x=4))", "1.2", "30%", "holds 1.00, which is no effect"},
		"one mean":                     {a, "1000", "50%", ""},
		"one mean of any size":         {a, "1000000", "100%", "no measurement is too small"},
		"sum":                          {a + " + " + b, "1000", "50%", ""},
		"what may be negative":         {"goodput_lost(fault='f', x=1)", "10", "200%", ""},
		"share of a sum":               {a + " / (" + a + " + " + b + ")", "0.4", "50%", "holds 0.500, which is no effect"},
		"tail by median":               {"p99_latency(x=1) / p50_latency(x=1)", "1.5", "50%", ""},
		"two measurements":             {"measurement(name='m', x=1) / measurement(name='n', x=1)", "1.5", "50%", ""},
		"one measurement":              {"measurement(name='m', x=1) / measurement(name='m', x=2)", "1.5", "50%", "holds 1.00, which is no effect"},
		"difference by difference":     {"(" + a + " - " + b + ") / (" + a + " - throughput(x=3))", "1.5", "50%", ""},
		"comparison":                   {a + " < " + b, "", "", ""},
		"no expression":                {a + " <", "1", "1%", ""},
		"no bound":                     {a, "1", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := v1alpha1.Claim{Expr: tc.expr, Within: tc.within}
			if tc.reported != "" {
				v := v1alpha1.NewValue(tc.reported)
				c.Reported = &v
			}
			got := Weak(c)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Weak is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBoundOfTheEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		expr, reported, within string
		low, high              float64
		wrong                  string
	}{
		"quotient below 1": {expr: "throughput(x=1) / throughput(x=2)", reported: "0.8", within: "50% of the effect", low: 0.715542, high: 0.894427},
		"quotient above 1": {expr: "throughput(x=1) / throughput(x=2)", reported: "1.25", within: "20% of the effect", low: 1.195441, high: 1.307049},
		"difference":       {expr: "mean_latency(x=1) - mean_latency(x=2)", reported: "4ms", within: "25% of the effect", low: 3, high: 5},
		"negative":         {expr: "throughput(x=1) - throughput(x=2)", reported: "-100", within: "25% of the effect", low: -125, high: -75},
		"all of it":        {expr: "throughput(x=1) / throughput(x=2)", reported: "0.8", within: "100% of the effect", wrong: "less than 100%"},
		"none of it":       {expr: "throughput(x=1) / throughput(x=2)", reported: "0.8", within: "0% of the effect", wrong: "more than 0%"},
		"equality":         {expr: "throughput(x=1) / throughput(x=2)", reported: "1", within: "50% of the effect", wrong: "there is no effect"},
		"one mean":         {expr: "throughput(x=1)", reported: "1000", within: "50% of the effect", wrong: "has no effect"},
		"share of a whole": {expr: "(throughput(x=1) - throughput(x=2)) / throughput(x=2)", reported: "0.1", within: "50% of the effect", wrong: "has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			v := v1alpha1.NewValue(tc.reported)
			c := v1alpha1.Claim{Expr: tc.expr, Reported: &v, Within: tc.within}
			axes := []results.Axis{{Name: "x", Values: []string{"1", "2"}}}
			if err := Check(c, axes, nil); (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Fatalf("Check says %v, want %q", err, tc.wrong)
			}
			if tc.wrong != "" {
				return
			}
			p, err := compile(tc.expr)
			if err != nil {
				t.Fatal(err)
			}
			b, err := newBound(v, tc.within, unitOfType(p.result))
			if err != nil || math.Abs(b.low-tc.low) > 1e-6 || math.Abs(b.high-tc.high) > 1e-6 {
				t.Errorf("from %.6f to %.6f, %v; want from %.6f to %.6f", b.low, b.high, err, tc.low, tc.high)
			}
			if why := Weak(c); why != "" {
				t.Errorf("it is weak: %s", why)
			}
		})
	}
}
