package results_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/results"
)

func TestNumbersInTheOutputOfACheck(t *testing.T) {
	many := strings.Builder{}
	for i := range 40 {
		fmt.Fprintf(&many, "number n%d %d\n", i, i)
	}
	for name, tc := range map[string]struct {
		output string
		want   map[string]float64
	}{
		"nothing":                   {"", map[string]float64{}},
		"beside words":              {"cut off line 7\nall is well\nnumber reads 12\nnumber readMicros 812.5\r\n", map[string]float64{"reads": 12, "readMicros": 812.5}},
		"below 0":                   {"number selection -598", map[string]float64{"selection": -598}},
		"the last of a name counts": {"number reads 1\nnumber reads 2\n", map[string]float64{"reads": 2}},
		"what is no number":         {"number reads NaN\nnumber reads\nnumber Reads 1\nnumber reads 1 2\nnumber reads 1e3\nanumber reads 3\n", map[string]float64{}},
		"too great":                 {"number reads 1" + strings.Repeat("0", 400), map[string]float64{}},
	} {
		if got := results.CheckNumbers(tc.output); got == nil || !maps.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if got := results.CheckNumbers(many.String()); len(got) != 32 || got["n31"] != 31 {
		t.Errorf("of 40 numbers there are %d", len(got))
	}
}

// Three servers read with means of 100, 200 and 300 us: 200 in the mean, with a deviation of
// sqrt(20000/3) = 81.65.
func TestNumbersOfChecksOverPods(t *testing.T) {
	trial := &results.Trial{Checks: []results.Check{
		{Name: "held"},
		{Name: "counted", Numbers: map[string]map[string]float64{
			"r-0": {"read": 100, "none": 0, "of-one": 1, "less": -4}, "r-1": {"read": 300, "none": 0, "less": 1}, "r-2": {"read": 200, "none": 0, "less": 1},
		}},
		{Name: "alone", Numbers: map[string]map[string]float64{"r-0": {"lone": -3}}},
		{Name: "silent", Numbers: map[string]map[string]float64{"r-0": {"half": 1}, "r-1": {}}},
	}}
	own := results.OwnNumbers(trial)
	for name, want := range map[string]float64{
		"checkSum:read": 600, "checkMean:read": 200, "checkLargest:read": 300, "checkDeviation:read": 81.64966, "checkVariation:read": 0.4082483,
		"checkSum:none": 0, "checkMean:none": 0, "checkLargest:none": 0, "checkSum:less": -2, "checkLargest:less": 1,
		"checkSum:lone": -3, "checkMean:lone": -3, "checkLargest:lone": -3,
	} {
		if got, known := own[name]; !known || math.Abs(got-want) > 1e-5 {
			t.Errorf("%s is %v (known: %v), want %v", name, got, known, want)
		}
	}
	for _, name := range []string{"checkSum:of-one", "checkMean:half", "checkVariation:none"} {
		if got, known := own[name]; known {
			t.Errorf("%s is %v, and not all pods say so", name, got)
		}
	}
	if m := results.Counted("m", "checkSum:half", "", own); m.Value != nil || m.Reason != "not every pod of a check prints the number half" {
		t.Errorf("a number that half of the pods print: %v %q", m.Value, m.Reason)
	}
}

func TestNumbersOfSeveralClients(t *testing.T) {
	one, two, three := 1.0, 2.0, 3.0
	a, b := wholeClient(0, 100, 10, &one, &two), wholeClient(1, 300, 30, &three, &two)
	a.RunSummary.SetLatency("P95Latency", 1.5)
	m, err := results.Merge([]results.Client{b, a})
	if err != nil {
		t.Fatal(err)
	}
	own := results.OwnNumbers(&results.Trial{ClientSummaries: m.ClientSummaries})
	for name, want := range map[string]float64{
		"clientThroughput:0": 10, "clientThroughput:1": 30, "clientMeanMillis:1": 3, "clientP99Millis:0": 2, "clientP95Millis:0": 1.5,
		"clientThroughputVariation": 0.5, "clientMeanMillisVariation": 0.5, "clientP99MillisVariation": 0,
	} {
		if got, known := own[name]; !known || got != want {
			t.Errorf("%s is %v (known: %v), want %v", name, got, known, want)
		}
	}
	for _, name := range []string{"clientP50Millis:0", "clientP95Millis:1", "clientP95MillisVariation"} {
		if got, known := own[name]; known {
			t.Errorf("%s is %v, which some client does not say", name, got)
		}
	}
	if m, err = results.Merge([]results.Client{a}); err != nil || len(m.ClientSummaries) != 0 {
		t.Errorf("one client has %d summaries beside that of the trial: %v", len(m.ClientSummaries), err)
	}
}
