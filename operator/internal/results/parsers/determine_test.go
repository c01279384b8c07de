package parsers

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

var update = flag.Bool("update", false, "write testdata/determined.golden")

// parseSaid reads a summary that has these numbers.
func parseSaid(names []string, values map[string]string) (results.Client, error) {
	o := Options{Windows: timeline.Windows{WarmUp: time.Second, Measure: 9 * time.Second}, Clients: 1}
	var text strings.Builder
	for _, name := range names {
		n := results.SummaryNumber{Name: name, Pattern: "^" + name + " (?P<value>.+)$"}
		if n.Kind() == results.NumberTime {
			n.Unit = "ms"
		}
		o.Summary = append(o.Summary, n)
		fmt.Fprintf(&text, "%s %s\n", name, values[name])
	}
	return Parse(FormatSummary, strings.NewReader(text.String()), o)
}

// A summary has up to four numbers of a run, which agree or not. The parser must compute the rest,
// or refuse the summary and name the numbers that contradict each other.
func TestNumbersThatSummariesLeaveOut(t *testing.T) {
	all := []string{
		results.NumberCommitted, results.NumberAborted, results.NumberErrors, results.NumberTimeouts, results.NumberEnded, results.NumberAnswered, results.NumberThroughput, results.NumberEndedRate, results.NumberRunTime,
	}
	// 900 of 1000 attempts committed in 10 s, 40 aborted, 35 failed and 25 timed out.
	agree := map[string]string{
		results.NumberCommitted: "900", results.NumberAborted: "40", results.NumberErrors: "35", results.NumberTimeouts: "25", results.NumberEnded: "1000", results.NumberAnswered: "975",
		results.NumberThroughput: "90.04", results.NumberEndedRate: "100.1", results.NumberRunTime: "10000",
	}
	others := map[string]map[string]string{
		"agree": nil, "a run of half the load": {results.NumberRunTime: "5000", results.NumberThroughput: "180", results.NumberEndedRate: "200"},
		"another rate": {results.NumberThroughput: "120"}, "fewer attempts": {results.NumberEnded: "930", results.NumberAnswered: "910"}, "rounded": {results.NumberThroughput: "90", results.NumberEndedRate: "1e2", results.NumberRunTime: "9750"},
		"nothing": {results.NumberCommitted: "0", results.NumberEnded: "0", results.NumberAnswered: "0", results.NumberThroughput: "0", results.NumberEndedRate: "0"}, "no time": {results.NumberRunTime: "0"},
	}
	var out bytes.Buffer
	for _, how := range []string{"agree", "a run of half the load", "another rate", "fewer attempts", "rounded", "nothing", "no time"} {
		values := map[string]string{}
		for _, name := range all {
			if values[name] = agree[name]; others[how][name] != "" {
				values[name] = others[how][name]
			}
		}
		fmt.Fprintf(&out, "# %s: %v\n", how, values)
		for set := 1; set < 1<<len(all); set++ {
			var names []string
			for i, name := range all {
				if set>>i&1 == 1 {
					names = append(names, name)
				}
			}
			c, err := parseSaid(names, values)
			switch {
			case len(names) > 4, err != nil && strings.HasPrefix(err.Error(), "the summary: "):
				continue // CheckSummary refuses it
			case err != nil:
				fmt.Fprintf(&out, "%s: %v\n", strings.Join(names, " "), err)
			default:
				n := c.Counters
				fmt.Fprintf(&out, "%s: %d, %d, %d, %d at %.6g", strings.Join(names, " "), n.Committed, n.Aborted, n.Errors, n.Timeouts, c.RunSummary.Throughput)
				for _, counter := range []string{results.CounterAborted, results.CounterErrors, results.CounterTimeouts} {
					if slices.Contains(c.Unreported, counter) {
						fmt.Fprintf(&out, ", %s not known", counter)
					}
				}
				for _, r := range c.RunSummary.Remarks {
					fmt.Fprintf(&out, "; %s", r)
				}
				fmt.Fprintln(&out)
			}
		}
	}
	file := filepath.Join("testdata", "determined.golden")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("go test -update writes it (-want +got):\n%s", diff)
	}
}

func TestLatenciesOfSummariesRise(t *testing.T) {
	for name, tc := range map[string]struct {
		values map[string]string
		want   string
	}{
		"rising":                 {map[string]string{"P50Latency": "1.0", "P99Latency": "2.0", "MaxLatency": "3.0", "MeanLatency": "1.5"}, ""},
		"the same":               {map[string]string{"P50Latency": "1.0", "P99Latency": "1.0", "MaxLatency": "1.0", "MeanLatency": "1.0"}, ""},
		"within what is allowed": {map[string]string{"P50Latency": "100.0", "P99Latency": "98.0"}, ""},
		"beyond it":              {map[string]string{"P50Latency": "100.0", "P99Latency": "97.0"}, "P50Latency is 100 ms, more than P99Latency, 97 ms"},
		"within rounding":        {map[string]string{"P50Latency": "100", "P99Latency": "96"}, ""},
		"beyond rounding":        {map[string]string{"P50Latency": "100", "P99Latency": "95"}, "P50Latency is 100 ms, more than P99Latency, 95 ms"},
		"a mean above all":       {map[string]string{"MeanLatency": "4.0", "MaxLatency": "3.0"}, "MeanLatency is 4 ms, more than MaxLatency, 3 ms"},
		"a percentile above all": {map[string]string{"P999Latency": "4.0", "MaxLatency": "3.0"}, "P999Latency is 4 ms, more than MaxLatency, 3 ms"},
		"near percentiles":       {map[string]string{"P99Latency": "9.0", "P999Latency": "3.0", "P9999Latency": "9.5"}, "P99Latency is 9 ms, more than P999Latency, 3 ms"},
		"a mean above the p99":   {map[string]string{"MeanLatency": "4.0", "P99Latency": "3.0"}, ""},
	} {
		names := []string{results.NumberThroughput}
		tc.values[results.NumberThroughput] = "5"
		for _, n := range []string{"MeanLatency", "MaxLatency", "P9999Latency", "P999Latency", "P99Latency", "P50Latency"} {
			if tc.values[n] != "" {
				names = append(names, n)
			}
		}
		if _, err := parseSaid(names, tc.values); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestQuantities(t *testing.T) {
	const count, rate, mean, own = results.NumberCommitted, results.NumberThroughput, results.NumberMean, "gc"
	for _, tc := range []struct {
		name, unit, text, group string
		value, step             float64
		err                     string
	}{
		{count, "", "900", "", 900, 1, ""}, {count, "", " 28,744 ", "", 28744, 1, ""}, {count, "", "1.5k", "", 1500, 100, ""}, {count, "k", "2", "", 2000, 1000, ""}, {count, "", "3", "M", 3e6, 1e6, ""},
		{count, "k", "2", "M", 2e9, 1e9, ""}, {count, "", "2.5", "", 0, 0, "Committed is 2.5, which is no count"}, {count, "", "1.2345k", "", 0, 0, "is 1234.5, which is no count"}, {count, "", "1.5e3", "", 1500, 100, ""}, {count, "", "1e3", "", 1000, 1000, ""},
		{count, "", "-1", "", 0, 0, "-1 is negative"}, {count, "", "x", "", 0, 0, "not a decimal number"}, {count, "", "1", "ms", 0, 0, `"ms" is no unit of a count: k, M or G`}, {count, "", "k", "", 0, 0, "not a decimal number"}, {count, "", "", "", 0, 0, "not a decimal number"},
		{count, "", "28,7", "", 0, 0, "commas must separate thousands"}, {count, "", "1,2345", "", 0, 0, "commas must"}, {count, "", ",123", "", 0, 0, "commas must"}, {count, "", "1234,567", "", 0, 0, "commas must"}, {count, "", "123,456,789", "", 123456789, 1, ""},
		{rate, "", "28,744.5", "", 28744.5, 0.1, ""}, {rate, "/min", "120", "", 2, 1. / 60, ""}, {rate, "", "3.5", "K/s", 3500, 100, ""}, {rate, "", "1", "s", 0, 0, `"s" is no unit of a rate: k, M or G, /s, /min or /h`}, {rate, "", "1.25e-2", "", 0.0125, 0.0001, ""}, {rate, "", "-0.5", "", 0, 0, "is negative"},
		{own, "", "-3.25", "", -3.25, 0.01, ""}, {own, "M", "2", "", 2e6, 1e6, ""}, {own, "", "1", "%", 0, 0, `"%" is no unit of a number`},
		{mean, "us", "402", "", 0.402, 0.001, ""}, {mean, "", "402", "us", 0.402, 0.001, ""}, {mean, "s", "402", "us", 0.402, 0.001, ""}, {mean, "", "402us", "", 0.402, 0.001, ""}, {mean, "", "1m24.17s", "", 84170, 10, ""}, {mean, "", "1.5ms", "", 1.5, 0.1, ""},
		{mean, "", "2h", "", 7200e3, 3600e3, ""}, {mean, "", "1.0000005ms", "", 1, 1e-6, ""}, {mean, "", "00:01:24", "", 84e3, 1e3, ""}, {mean, "", "01:02:03.5", "", 3723.5e3, 100, ""}, {mean, "", "01:24", "", 0, 0, "is no duration"}, {mean, "", "00:-1:24", "", 0, 0, "is no duration"},
		{mean, "", "-5ms", "", 0, 0, "is no duration"}, {mean, "", "5", "", 0, 0, "is no duration"}, {mean, "ms", "5k", "", 0, 0, "not a decimal number"}, {mean, "", "1", "k", 0, 0, `"k" is no unit of a time`}, {mean, "ms", "-1", "", 0, 0, "is negative"}, {mean, "ms", "0", "", 0, 1, ""},
	} {
		q, err := parseQuantity(results.SummaryNumber{Name: tc.name, Unit: tc.unit}, tc.text, tc.group)
		switch {
		case (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err):
			t.Errorf("%s %q %q: error %v, want %q", tc.name, tc.text, tc.group, err, tc.err)
		case err == nil && (!near(q.value, tc.value) || !near(q.step, tc.step)):
			t.Errorf("%s %q %q in %q is %g with a step of %g, want %g and %g", tc.name, tc.text, tc.group, tc.unit, q.value, q.step, tc.value, tc.step)
		}
	}
}

func near(a, b float64) bool { return a == b || a-b < 1e-9*b && b-a < 1e-9*b }

// Documents of JSON fill the output, a line each, or come after other output.
func TestDocumentsOfJSON(t *testing.T) {
	numbers := []results.SummaryNumber{{Name: results.NumberThroughput, Path: "$.t"}}
	many := []results.SummaryNumber{{Name: results.NumberThroughput, Path: "$.t", Of: results.OfSum}}
	for name, tc := range map[string]struct {
		text    string
		numbers []results.SummaryNumber
		want    float64
		err     string
	}{
		"one that fills it":        {"{\n  \"t\": 5,\n  \"a\": [1, {\"b\": \"}\"}]\n}\n", numbers, 5, ""},
		"one after other output":   {"starts\n[info] go\n[1]\n{\"t\": 5}\nends\n", numbers, 5, ""},
		"without a last newline":   {"{\"t\": 5}", numbers, 5, ""},
		"a line each":              {"{\"t\": 5}\n{\"t\": 7}\n", many, 12, ""},
		"over several lines each":  {"{\"t\":\n5}\n{\n\"t\": 7}\n", many, 12, ""},
		"text with brackets":       {"{\"x\": \"a}\\\"{\\\\\", \"t\": 5}\n", numbers, 5, ""},
		"text as a number":         {"{\"t\": \"5\"}\n", numbers, 5, ""},
		"two, where one is wanted": {"{\"t\": 5}\n{\"t\": 7}\n", numbers, 0, "Throughput"},
		"none":                     {"{\"u\": 5}\n", numbers, 0, "Throughput"},
		"a list for a number":      {"{\"t\": [5]}\n", numbers, 0, "the client's output:1: Throughput: $.t: it is neither a number nor text"},
		"a truth for a number":     {"{}\n{\"t\": true}\n", numbers, 0, "the client's output:2: Throughput: $.t"},
		"one that does not end":    {"{\"t\": 5\n", numbers, 0, "the client's output"},
		"one that is damaged":      {"{\"t\": 5,}\n", numbers, 0, ""},
	} {
		c, err := Parse(FormatSummary, strings.NewReader(tc.text), Options{Windows: timeline.Windows{Measure: time.Second}, Clients: 1, Summary: tc.numbers})
		if name == "one that is damaged" {
			if err == nil {
				t.Errorf("%s: %+v, want an error", name, c.RunSummary)
			}
			continue
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v, want %q", name, err, tc.err)
		}
		if err == nil && c.RunSummary.Throughput != tc.want {
			t.Errorf("%s: throughput %g, want %g", name, c.RunSummary.Throughput, tc.want)
		}
	}
}

// A count agrees with every rate and run time that round to the numbers that were printed.
func TestCountsAgreeWithRoundedRates(t *testing.T) {
	names := []string{results.NumberCommitted, results.NumberThroughput, results.NumberRunTime}
	for name, tc := range map[string]struct {
		committed, throughput, runTime string
		want                           bool
	}{
		"a coarse rate":          {"140", "1", "100000", true},
		"too much for it":        {"210", "1", "100000", false},
		"a coarse run time":      {"1400", "1000.0", "1e3", true},
		"too much for that, too": {"2100", "1000.0", "1e3", false},
		"neither of them is":     {"140", "1.000", "100000", false},
	} {
		_, err := parseSaid(names, map[string]string{names[0]: tc.committed, names[1]: tc.throughput, names[2]: tc.runTime})
		if (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
