package format_test

import (
	"bytes"
	"encoding/csv"
	"html"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/reports"
	"assay.dev/assay/operator/internal/text/printable"
)

func ptr(x float64) *float64 { return &x }

func between(value, low, high float64) *results.Interval {
	return &results.Interval{Value: value, Low: ptr(low), High: ptr(high)}
}

// withEveryShape has a claim of every shape that the strip draws, and says what ran.
func withEveryShape() results.Experiment {
	e := reports.WithEverything()
	e.Fidelity = &results.Fidelity{
		Systems: []results.SystemFidelity{{System: "basil", Program: "Basil in Go", Version: "0.1", Class: "Reimplementation", InPlaceOf: "Pesto"}},
		Class:   "Reimplementation", Size: "Reduced", Changes: []string{"clients: 5, 50 in place of 12 values", "measure: 10s in place of 60s"},
	}
	distance := "Basil in Go in place of Pesto, profile smoke"
	busy := results.Caveat{Kind: "SaturatedClients", Points: []string{"clients=5, variant=ideal", "clients=5, variant=failure-fp"}, Text: "client pods or their nodes were 90% busy or more, and may be what limits throughput and delays latency"}
	e.Claims = []results.ClaimResult{
		{
			Name: "one-timeout", Statement: "Losing the fast path costs one fast-path timeout, some 4 ms, at low load.", Expr: "mean_latency(variant='failure-fp', clients=5) - mean_latency(variant='failure-nofp', clients=5)",
			Verdict: "Consistent", Distance: distance, Basis: "Source", Measured: ptr(4.42), Low: ptr(4.14), High: ptr(4.71), Unit: "ms", Reported: "4.1ms", ReportedIn: "Table 5, row FP", Within: "25%", BoundLow: ptr(3.075), BoundHigh: ptr(5.125), N: 5, NMost: 5, P: ptr(0.0004),
			Full:    &results.ClaimText{Statement: "Losing the fast path costs 4.1 ms.", Expr: "mean_latency(variant='failure-fp', clients=25) - mean_latency(variant='failure-nofp', clients=25)", Reported: "4.1ms", Within: "10%", WiderBecause: "five clients vary more than 25"},
			Caveats: []results.Caveat{busy, {Kind: "NotInterleaved", Text: "trials of the points did not run in turn"}},
		},
		{
			Name: "port-is-faster", Statement: "Eiger-PORT does half as much again as Eiger.", Expr: "throughput(system='eiger-port') / throughput(system='eiger')",
			Verdict: "Inconclusive", Distance: distance, Measured: ptr(1.49), Low: ptr(1.32), High: ptr(1.69), Reported: "1.565", Within: "10%", BoundLow: ptr(1.4085), BoundHigh: ptr(1.7215), N: 3, NMost: 3,
		},
		{
			Name: "scans-win-at-a-thousand", Statement: "A scan of a thousand rows takes an eleventh of the time of a thousand point reads.", Expr: "mean_latency(access='point') / mean_latency(access='scan')",
			Verdict: "Contradicted", Distance: distance, Measured: ptr(64.4), Low: ptr(55.6), High: ptr(74.5), Reported: "11.1", Within: "50%", BoundLow: ptr(5.55), BoundHigh: ptr(16.65), N: 3, NMost: 3,
		},
		{
			Name: "order", Statement: "Stronger reads get less done: one replica, two, and all.", Expr: "throughput(read='ONE') > throughput(read='TWO') && throughput(read='TWO') > throughput(read='ALL')",
			Verdict: "Holds", N: 3, NMost: 4, Caveats: []results.Caveat{busy},
			Terms: []results.ClaimTerm{
				{Text: "throughput(read='ONE') > throughput(read='TWO')", Relation: ">", Outcome: "True", Unit: "tx/s", Left: *between(150, 143.4, 156.6), Right: *between(101, 82, 119), Ratio: between(1.49, 1.21, 1.83), Difference: between(-49, -65, -33)},
				{Text: "throughput(read='TWO') > throughput(read='ALL')", Relation: ">", Outcome: "True", Unit: "tx/s", Left: *between(101, 82, 119), Right: *between(80, 69, 91), Ratio: between(1.26, 1.06, 1.5), Difference: between(-21, -36, -5)},
			},
		},
		{
			Name: "crash-costs", Statement: "A crash costs latency.", Expr: "mean_latency(variant='crash') > mean_latency(variant='low')", Verdict: "Inconclusive", N: 3, NMost: 3,
			Terms: []results.ClaimTerm{{Text: "mean_latency(variant='crash') > mean_latency(variant='low')", Relation: ">", Outcome: "Undecided", Unit: "ms", Left: *between(30, 13, 47), Right: *between(33, 22, 44), Difference: between(3, -11, 17)}},
		},
		{
			Name: "two-round-trips-bound-a-client", Statement: "A client commits 100 transactions a second at most.", Expr: "capacity() <= 100", Verdict: "Holds", N: 1, NMost: 2,
			Terms: []results.ClaimTerm{{Text: "capacity() <= 100", Relation: "<=", Outcome: "True", Left: *between(77, 74, 81.7), Right: results.Interval{Value: 100}}},
		},
		{
			Name: "shards-cost-nothing", Statement: "Where there are two shards, clients get at least 70% as much done.", Expr: "throughput(shards=2) > 0.7 * throughput(shards=1)", Verdict: "Consistent", Distance: distance, Weak: "it also holds where shards have no effect", N: 3, NMost: 3,
			Terms: []results.ClaimTerm{{Text: "throughput(shards=2) > 0.7 * throughput(shards=1)", Relation: ">", Outcome: "True", Unit: "tx/s", Left: *between(34.5, 30.8, 38.1), Right: *between(25.8, 24.7, 26.9), Ratio: between(1.34, 1.19, 1.5)}},
		},
		{
			Name: "promoted-in-time", Statement: "A standby serves within 3 s.", Expr: "time_to_90(fault='primary-crash') < 3s", Verdict: "Fails", N: 3, NMost: 3,
			Terms: []results.ClaimTerm{{Text: "time_to_90(fault='primary-crash') < 3s", Relation: "<", Outcome: "False", Unit: "ms", Left: *between(3231, 3088, 3474), Right: results.Interval{Value: 3000}}},
		},
		{Name: "hats-beats-mlsm", Statement: "HATS does 1.74 times as much as mLSM.", Expr: "throughput(scheme='hats') / throughput(scheme='mlsm')", Verdict: "Inconclusive", Measured: ptr(0.828), Reported: "1.743", Within: "15%", BoundLow: ptr(1.48), BoundHigh: ptr(2), N: 1, NMost: 1},
		{Name: "tails-differ", Statement: "The tails differ.", Expr: "p99_latency(variant='a') < p99_latency(variant='b')", Verdict: "Reproduced", Message: "9 ms [8, 10] < 13 ms [12, 14] holds: difference 4 ms [2, 6]; at clients=5 in 3 of 3 trials client pods were 90% busy or more; 95% intervals, n=3"},
		{Name: "peaks", Statement: "The ideal case peaks higher.", Expr: "max_throughput(variant='ideal') > 1", Verdict: "NotEvaluated", Message: "profile smoke skips it: two cores do not reach the peak"},
		{Name: "latency-at-peak", Statement: "Latency is least in the ideal case.", Expr: "peak_latency(variant='ideal') < 5ms", Verdict: "NotEvaluated", Message: "profile smoke skips it: two cores do not reach the peak"},
	}
	return e
}

// All forms have the same sentence of a claim, and none cuts it.
func TestAllFormsSayTheSame(t *testing.T) {
	e := withEveryShape()
	forms := map[string]string{}
	for name, form := range format.Forms {
		var b bytes.Buffer
		if err := form.Write(&b, e); err != nil {
			t.Fatal(err)
		}
		forms[name] = b.String()
	}
	var text bytes.Buffer
	if err := format.Text(&text, e, format.TextOptions{Width: 10_000}); err != nil {
		t.Fatal(err)
	}
	forms["text"] = text.String()
	lines, err := csv.NewReader(strings.NewReader(forms["claims-csv"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range e.Claims {
		said := strip.Sentence(c)
		for form, want := range map[string]string{"text": said, "markdown": said, "html": html.EscapeString(said), "latex": printable.TeX(said)} {
			if !strings.Contains(forms[form], want) {
				t.Errorf("%s does not say of %s: %s", form, c.Name, want)
			}
			if !strings.Contains(forms[form], c.Distance) {
				t.Errorf("%s does not say how far %s is from the source", form, c.Name)
			}
		}
		found := 0
		for _, line := range lines {
			if line[0] == c.Name && line[len(line)-1] == said {
				found++
			}
		}
		if want := max(1, len(strip.Tracks(c))); found != want {
			t.Errorf("claims.csv has %d lines for %s, want %d", found, c.Name, want)
		}
		for _, caveat := range c.Caveats {
			for form, in := range forms {
				if (form == "text" || form == "markdown" || form == "html") && !strings.Contains(in, caveat.Text) {
					t.Errorf("%s lacks the caveat %s of %s", form, caveat.Kind, c.Name)
				}
			}
		}
	}
}

// The title and the first lines say what ran, and how much of the source is compared.
func TestPageSaysWhatRan(t *testing.T) {
	original := withEveryShape()
	original.Profile = ""
	original.Fidelity = &results.Fidelity{Systems: []results.SystemFidelity{{System: "pesto", Program: "Pesto", Version: "2", Class: "Original", SourceVersion: "1"}}, Class: "Original", Size: "Full"}
	standIn := withEveryShape()
	standIn.Fidelity.Systems = []results.SystemFidelity{{System: "cassandra", Program: "Cassandra", Version: "5", Class: "StandIn", InPlaceOf: "HATS"}}
	old := withEveryShape()
	old.Fidelity = nil
	for name, tc := range map[string]struct {
		e    results.Experiment
		want []string
	}{
		"a re-implementation": {withEveryShape(), []string{
			"failure-fp: Basil in Go 0.1, after Pesto (SOSP'25), 5 Failure\n",
			"What ran: Basil in Go 0.1, a re-implementation of Pesto; profile smoke, at reduced size. The profile changes 2 settings: see \"What the profile changes\".",
			"clients  5, 50             12 values",
			"Verdicts compare 4 of 4 numbers that the claims take from the source; 9 of 12 numbers of its curves stand beside a measured point; 2 claims skipped by the profile.",
			"12 claims: 1 Reproduced, 2 Consistent, 1 Contradicted, 2 Holds, 1 Fails, 3 Inconclusive, 2 NotEvaluated.",
		}},
		"the source's own program": {original, []string{"failure-fp: Pesto 2, after Pesto", "What ran: Pesto 2, the source's own program (the source measured 1); at full size."}},
		"a stand-in":               {standIn, []string{"failure-fp: Cassandra 5, after Pesto", "What ran: Cassandra 5 in place of HATS; profile smoke, at reduced size."}},
		"older results":            {old, []string{"failure-fp: Pesto (SOSP'25), 5 Failure\n", "What ran, relative to what the source measured, is not in these results"}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := format.Text(&b, tc.e, format.TextOptions{Width: 10_000}); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(b.String(), want) {
					head, _, _ := strings.Cut(b.String(), "\nVerdicts\n")
					t.Errorf("the report begins\n%s\nand does not say %q", head, want)
				}
			}
		})
	}
}
