package strip_test

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

func at(x float64) *float64 { return &x }

func interval(value, low, high float64) results.Interval {
	return results.Interval{Value: value, Low: at(low), High: at(high)}
}

func alone(value float64) results.Interval { return results.Interval{Value: value} }

func term(text, relation, outcome, unit string, left, right results.Interval) results.ClaimTerm {
	return results.ClaimTerm{Text: text, Relation: relation, Outcome: outcome, Unit: unit, Left: left, Right: right}
}

func withRatio(t results.ClaimTerm, r results.Interval) results.ClaimTerm {
	t.Ratio = &r
	return t
}

func withDifference(t results.ClaimTerm, d results.Interval) results.ClaimTerm {
	t.Difference = &d
	return t
}

// cases are claims as results have them, of every shape.
var cases = map[string]struct {
	claim    results.ClaimResult
	sentence string
	tracks   []strip.Track
}{
	"ratio": {
		results.ClaimResult{
			Verdict: "Consistent", Measured: at(1.49), Low: at(1.42), High: at(1.58), Reported: "1.565", ReportedIn: "Figure 5a", Within: "10%", BoundLow: at(1.4085), BoundHigh: at(1.7215), N: 3, NMost: 3, P: at(0.012),
		},
		"measured 1.490 [1.420, 1.580]; allowed is 1.41 to 1.72, since 1.565 is reported in Figure 5a, within 10%; n=3",
		[]strip.Track{{Quantity: strip.Value, Interval: interval(1.49, 1.42, 1.58), BoundLow: at(1.4085), BoundHigh: at(1.7215), Reference: at(1.565), State: strip.Supported}},
	},
	"absolute with a unit": {
		results.ClaimResult{Verdict: "Inconclusive", Measured: at(201), Low: at(141), High: at(260), Unit: "ms", Expected: "200ms", Within: "25%", BoundLow: at(150), BoundHigh: at(250), N: 3, NMost: 4},
		"measured 201 ms [141, 260]; allowed is 150 to 250 ms, since 200ms is expected, within 25%; the interval straddles the bound; n=3 to 4",
		[]strip.Track{{Quantity: strip.Value, Unit: "ms", Interval: interval(201, 141, 260), BoundLow: at(150), BoundHigh: at(250), Reference: at(200), State: strip.Open}},
	},
	// The term's p is that of the test that decided. The claim's p is that of the evidence against
	// the claim.
	"trend": {
		results.ClaimResult{Verdict: "Consistent", N: 5, NMost: 5, P: at(1), Terms: []results.ClaimTerm{
			{Text: "increasing(throughput, along='clients')", Relation: "increasing", Outcome: "True", Left: results.Interval{Value: 0.82}, Unit: "Kendall's tau", P: at(0.004)}}},
		"increasing holds: Kendall's tau 0.820, p=0.004; n=5", nil,
	},
	"difference": {
		results.ClaimResult{Verdict: "Contradicted", N: 3, P: at(0.0004), Terms: []results.ClaimTerm{
			withDifference(term("a > b", ">", "False", "ms", interval(4.4, 4.1, 4.7), interval(6.2, 5.8, 6.6)), interval(1.8, 1.2, 2.4))}},
		"4.40 ms [4.10, 4.70] > 6.20 ms [5.80, 6.60] does not hold: difference -1.80 ms [-2.40, -1.20]; n=3; p<0.001",
		[]strip.Track{{Text: "a > b", Quantity: strip.Difference, Unit: "ms", Interval: interval(-1.8, -2.4, -1.2), BoundLow: at(0), Reference: at(0), State: strip.Refuted}},
	},
	"a chain of comparisons": {
		results.ClaimResult{Verdict: "Reproduced", N: 5, Terms: []results.ClaimTerm{
			withRatio(term("a > b", ">", "True", "tx/s", interval(150, 143, 157), interval(101, 82, 119)), interval(1.5, 1.2, 1.8)),
			withRatio(term("b > c", ">", "Undecided", "tx/s", interval(101, 82, 119), interval(95, 69, 111)), interval(1.06, 0.9, 1.25))}},
		"(1) 150.0 tx/s [143.0, 157.0] > 101 tx/s [82, 119] holds: ratio 1.50 [1.20, 1.80]; (2) 101 tx/s [82, 119] > 95 tx/s [69, 111] cannot be told apart: ratio 1.06 [0.90, 1.25]; n=5",
		[]strip.Track{
			{Text: "a > b", Quantity: strip.Ratio, Interval: interval(1.5, 1.2, 1.8), BoundLow: at(1), Reference: at(1), State: strip.Supported},
			{Text: "b > c", Quantity: strip.Ratio, Interval: interval(1.06, 0.9, 1.25), BoundLow: at(1), Reference: at(1), State: strip.Open},
		},
	},
	"a search for a capacity, below a number": {
		results.ClaimResult{Verdict: "Holds", N: 1, NMost: 2, Terms: []results.ClaimTerm{term("capacity() <= 100", "<=", "True", "", interval(77, 74, 81.7), alone(100))}},
		"77.0 [74.0, 81.7] ≤ 100 holds; n=1 to 2",
		[]strip.Track{{Text: "capacity() <= 100", Quantity: strip.Value, Interval: interval(77, 74, 81.7), BoundHigh: at(100), Reference: at(100), State: strip.Supported}},
	},
	"a number above what was measured": {
		results.ClaimResult{Verdict: "Fails", N: 3, Terms: []results.ClaimTerm{term("8s > time", ">", "False", "ms", alone(8000), interval(9231, 9088, 9474))}},
		"8000 ms > 9231 ms [9088, 9474] does not hold; n=3",
		[]strip.Track{{Text: "8s > time", Quantity: strip.Value, Unit: "ms", Interval: interval(9231, 9088, 9474), BoundHigh: at(8000), Reference: at(8000), State: strip.Refuted}},
	},
	"no interval": {
		results.ClaimResult{Verdict: "Inconclusive", Measured: at(0.828), Reported: "1.743", Within: "15%", BoundLow: at(1.48155), BoundHigh: at(2.00445), N: 1},
		"measured 0.828, and no interval; allowed is 1.48 to 2.00, since 1.743 is reported, within 15%; n=1",
		[]strip.Track{{Quantity: strip.Value, Interval: alone(0.828), BoundLow: at(1.48155), BoundHigh: at(2.00445), Reference: at(1.743), State: strip.Open}},
	},
	"an interval that is open on one side": {
		results.ClaimResult{Verdict: "Inconclusive", N: 3, Terms: []results.ClaimTerm{term("time < 8s", "<", "Undecided", "ms", results.Interval{Value: 3231, Low: at(3088)}, alone(8000))}},
		"3231 ms [3088, ...] < 8000 ms cannot be told apart; n=3",
		[]strip.Track{{Text: "time < 8s", Quantity: strip.Value, Unit: "ms", Interval: results.Interval{Value: 3231, Low: at(3088)}, BoundHigh: at(8000), Reference: at(8000), State: strip.Open}},
	},
	"a weak bound": {
		results.ClaimResult{Verdict: "Consistent", Weak: "it also holds where there is no effect", N: 3, P: at(0.0001), Terms: []results.ClaimTerm{
			withRatio(term("a > 0.7 * b", ">", "True", "tx/s", interval(34.5, 30.8, 38.1), interval(25.8, 24.7, 26.9)), interval(1.34, 1.19, 1.5))}},
		"34.5 tx/s [30.8, 38.1] > 25.8 tx/s [24.7, 26.9] holds: ratio 1.34 [1.19, 1.50]; n=3",
		[]strip.Track{{Text: "a > 0.7 * b", Quantity: strip.Ratio, Interval: interval(1.34, 1.19, 1.5), BoundLow: at(1), Reference: at(1), State: strip.Supported}},
	},
	"a test, which has no direction": {
		results.ClaimResult{Verdict: "Replicated", N: 6, Terms: []results.ClaimTerm{
			withRatio(term("significantly_different(of='throughput')", "significantly_different", "True", "tx/s", interval(34, 30, 38), interval(25, 24, 26)), interval(1.36, 1.19, 1.5))}},
		"significantly_different holds for 34.0 tx/s [30.0, 38.0] and 25.0 tx/s [24.0, 26.0]: ratio 1.36 [1.19, 1.50]; n=6",
		[]strip.Track{{Text: "significantly_different(of='throughput')", Quantity: strip.Ratio, Interval: interval(1.36, 1.19, 1.5), Reference: at(1), State: strip.Supported}},
	},
	"not evaluated": {
		results.ClaimResult{Verdict: "NotEvaluated", Message: "profile smoke skips it: one replica", Terms: []results.ClaimTerm{term("a > b", ">", "", "", alone(0), alone(0))}},
		"profile smoke skips it: one replica",
		nil,
	},
	"older results, a comparison": {
		results.ClaimResult{Verdict: "Reproduced", Message: "9 ms [8, 10] > 3.00 ms holds: difference 6 ms [5, 7]; at clients=5 in 3 of 3 trials client pods were busy; 95% intervals, n=3"},
		"9 ms [8, 10] > 3.00 ms holds: difference 6 ms [5, 7]",
		nil,
	},
	"older results, a quantity": {
		results.ClaimResult{Verdict: "NotReproduced", Measured: at(15.1), Low: at(12.8), High: at(17.9), Unit: "ms", Reported: "5ms", Within: "50%", Message: "measured 15.1 ms"},
		"measured 15.1 ms [12.8, 17.9]; allowed is 2.50 to 7.50 ms, since 5ms is reported, within 50%",
		[]strip.Track{{Quantity: strip.Value, Unit: "ms", Interval: interval(15.1, 12.8, 17.9), BoundLow: at(2.5), BoundHigh: at(7.5), Reference: at(5), State: strip.Refuted}},
	},
	"older results, without an interval": {
		results.ClaimResult{Verdict: "Inconclusive", Measured: at(0.8), Low: at(0.8), High: at(0.8), Reported: "1.7", Within: "0.1"},
		"measured 0.800, and no interval; allowed is 1.60 to 1.80, since 1.7 is reported, within 0.1",
		[]strip.Track{{Quantity: strip.Value, Interval: alone(0.8), BoundLow: at(1.6), BoundHigh: at(1.8), Reference: at(1.7), State: strip.Open}},
	},
}

func TestTracksAndSentences(t *testing.T) {
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.tracks, strip.Tracks(tc.claim), near); diff != "" {
				t.Errorf("tracks (-want +got):\n%s", diff)
			}
			if got := strip.Sentence(tc.claim); got != tc.sentence {
				t.Errorf("got  %s\nwant %s", got, tc.sentence)
			}
		})
	}
}

// Every part of a picture lies in its frame: nothing is clipped, however far a value is from its
// bound.
func TestPicturesStayInTheirFrames(t *testing.T) {
	numbers := regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			svg := strip.SVG(tc.claim, "a")
			if (svg == "") != (len(tc.tracks) == 0) {
				t.Fatalf("%d tracks, and the picture is %q", len(tc.tracks), svg)
			}
			decoder := xml.NewDecoder(strings.NewReader(svg))
			for {
				token, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				e, ok := token.(xml.StartElement)
				if !ok {
					continue
				}
				for _, a := range e.Attr {
					if a.Name.Local != "x" && a.Name.Local != "transform" && (a.Name.Local != "d" || slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == "transform" })) {
						continue
					}
					x, err := strconv.ParseFloat(numbers.FindString(a.Value), 64)
					if err != nil || x < 0 || x > 320 {
						t.Errorf("%s of %s begins at %q, which is beyond the frame", a.Name.Local, e.Name.Local, a.Value)
					}
				}
			}
		})
	}
}

// No text of a claim is cut or lost in a form that a reader sees, and each caveat stands once.
func TestNothingIsLost(t *testing.T) {
	long := strings.Repeat("long ", 300) + "end"
	c := results.ClaimResult{
		Name: "a<b", Statement: "It is <b>faster</b>. " + long, Expr: "throughput(a='<x>') > 1", Verdict: "Contradicted", Distance: "Cassandra 5 in place of HATS, profile smoke", Basis: "Source",
		Weak: "it holds at 0, too", Full: &results.ClaimText{Statement: "The full sentence.", Expr: "throughput() > 2", Reported: "5", Within: "10%", WiderBecause: "fewer trials"},
		Terms: cases["a chain of comparisons"].claim.Terms,
		Caveats: []results.Caveat{
			{Kind: "SaturatedClients", Points: []string{"clients=1"}, Text: "clients were busy"}, {Kind: "SaturatedClients", Points: []string{"clients=2"}, Text: "clients were busy"},
			{Kind: "NotInterleaved", Text: "trials did not run in turn"},
		},
	}
	html, err := strip.HTML([]results.ClaimResult{c, {Name: "left", Statement: "Left out.", Verdict: "NotEvaluated", Message: "profile smoke skips it"}}, true, false, "claim")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"✗", "Contradicted", "a&lt;b", "It is &lt;b&gt;faster&lt;/b&gt;", "end", "Cassandra 5 in place of HATS, profile smoke", "The full sentence.", "throughput() &gt; 2", "5 within 10%", "fewer trials", "it holds at 0, too",
		"Saturated clients", "clients=1; clients=2", "trials did not run in turn", "1 claim", "Left out.", "profile smoke skips it", "<details"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the strip lacks %q", want)
		}
	}
	if n := strings.Count(string(html), "clients were busy"); n != 1 {
		t.Errorf("a caveat stands there %d times", n)
	}
	if !strings.Contains(string(html), "> 95% interval, estimate") || strings.Contains(string(html), "looks") {
		t.Error("the legend does not call the intervals of one look 95% intervals")
	}
	if strings.Contains(string(html), "Preliminary") {
		t.Error("the verdicts of a complete experiment are called preliminary")
	}
	running, err := strip.HTML([]results.ClaimResult{c}, false, true, "claim")
	if err != nil || !strings.Contains(string(running), "Preliminary") {
		t.Errorf("the verdicts of an experiment that runs are not called preliminary (%v)", err)
	}
	// The legend once called the interval of one of several looks a 95% interval.
	picture := strip.Picture([]results.ClaimResult{c}, true, "verdicts", "Verdicts")
	for _, drawn := range []string{string(running), picture} {
		if !strings.Contains(drawn, "interval (95% over all looks), estimate") || strings.Contains(drawn, "95% interval") {
			t.Error("at one of several looks the legend does not say that all looks together hold 95%")
		}
	}
}

// Older results have caveats in their message alone.
func TestCaveatsOfOlderResults(t *testing.T) {
	got := strip.Caveats(cases["older results, a comparison"].claim)
	want := []strip.Group{{Title: "Notes", Notes: []strip.Note{{Text: "at clients=5 in 3 of 3 trials client pods were busy"}, {Text: "95% intervals, n=3"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The reason why a bound is weak is given once: by the caveat, or else by a detail.
func TestWeakBoundIsReportedOnce(t *testing.T) {
	weak := results.ClaimResult{Weak: "it also holds where there is no effect"}
	said := func(c results.ClaimResult) bool {
		return slices.ContainsFunc(strip.Details(c), func(row [2]string) bool { return row[0] == "weak bound" && row[1] == c.Weak })
	}
	if !said(weak) {
		t.Error("without a caveat no detail says why the bound is weak")
	}
	weak.Caveats = []results.Caveat{{Kind: "WeakBound", Text: "the bound is weak: " + weak.Weak}}
	if said(weak) {
		t.Error("a detail says again what the caveat says")
	}
}

// Once, a decided comparison stood beside "Inconclusive", and the reason was in a list that is
// closed at first.
func TestSentenceSaysWhyADecidedComparisonIsOpen(t *testing.T) {
	c := results.ClaimResult{Verdict: "Inconclusive", N: 3, Terms: []results.ClaimTerm{{Text: "a < b", Relation: "<", Outcome: "True"}},
		Caveats: []results.Caveat{{Kind: "ExcludedTrials", Text: "it is Holds, and by the first attempts Inconclusive"}}}
	const want = "Inconclusive all the same: it is Holds, and by the first attempts Inconclusive"
	if got := strip.Sentence(c); !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
	c.Verdict = "Holds"
	if got := strip.Sentence(c); strings.Contains(got, "all the same") {
		t.Errorf("Holds: %q", got)
	}
}
