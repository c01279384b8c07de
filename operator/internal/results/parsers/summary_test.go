package parsers_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

// ycsbNumbers read what YCSB prints, as experiments/systems do.
var ycsbNumbers = []results.SummaryNumber{
	{Name: "Committed", Pattern: `^\[(READ|UPDATE)\], Operations, (?P<value>[0-9]+)$`, Of: "Sum"},
	{Name: "Errors", Pattern: `^\[(READ|UPDATE)-FAILED\], Operations, (?P<value>[0-9]+)$`, Of: "Sum"},
	{Name: "RunTime", Pattern: `^\[OVERALL\], RunTime\(ms\), (?P<value>[0-9]+)$`, Unit: "ms"},
	{Name: "Throughput", Pattern: `^\[OVERALL\], Throughput\(ops/sec\), (?P<value>[0-9.E]+)$`},
	{Name: "P99Latency", Pattern: `^\[READ\], 99thPercentileLatency\(us\), (?P<value>[0-9.]+)$`, Unit: "us"},
}

const ycsbText = `[OVERALL], RunTime(ms), 20000
[OVERALL], Throughput(ops/sec), 460.7
[READ], Operations, 4600
[READ], AverageLatency(us), 13500.5
[READ], 99thPercentileLatency(us), 55435
[UPDATE], Operations, 4614
[READ-FAILED], Operations, 3
`

func summary(t *testing.T, text string, numbers []results.SummaryNumber) (results.Client, error) {
	t.Helper()
	c, err := parsers.Parse(parsers.FormatSummary, strings.NewReader(text), parsers.Options{
		Windows: timeline.Windows{WarmUp: time.Second, Measure: 10 * time.Second}, Index: 1, FirstClient: 4, Clients: 4, Summary: numbers,
	})
	if err == nil {
		// Agents send the parsed report as it is. The manager once refused every summary of a
		// client.
		sent, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := results.DecodeClient(sent); err != nil {
			t.Fatalf("the manager refuses the report: %v", err)
		}
	}
	return c, err
}

// The caller gets the lines without a number, but no empty ones.
func TestOtherLinesOfASummary(t *testing.T) {
	var other []string
	o := parsers.Options{
		Windows: timeline.Windows{Measure: time.Second}, Clients: 4, Summary: ycsbNumbers,
		Other: func(line []byte) { other = append(other, string(line)) },
	}
	if _, err := parsers.Parse(parsers.FormatSummary, strings.NewReader("Starting\n\n"+ycsbText+"[OVERALL], done\n"), o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Starting", "[READ], AverageLatency(us), 13500.5", "[OVERALL], done"}; !slices.Equal(other, want) {
		t.Errorf("other lines are %q, want %q", other, want)
	}
}

// A pod whose clients all misbehave prints no number.
func TestSummaryOfMisbehavingClients(t *testing.T) {
	o := parsers.Options{Windows: timeline.Windows{Measure: time.Second}, Clients: 4, Misbehaving: 4, Summary: ycsbNumbers}
	c, err := parsers.Parse(parsers.FormatSummary, strings.NewReader("stalled\n"), o)
	if err != nil || c.Counters.Committed != 0 || c.MisbehavingClients != 4 || c.Clients != 4 {
		t.Errorf("%+v (%v)", c, err)
	}
	o.Misbehaving = 3
	if _, err := parsers.Parse(parsers.FormatSummary, strings.NewReader("stalled\n"), o); err == nil {
		t.Error("a pod with a correct client may print nothing")
	}
	c, err = parsers.Parse(parsers.FormatSummary, strings.NewReader(ycsbText), o)
	if err != nil || c.MisbehavingClients != 3 || c.Counters.Committed != 9214 {
		t.Errorf("%+v (%v)", c, err)
	}
}

func TestSummaryOfAWholeRun(t *testing.T) {
	c, err := summary(t, ycsbText, ycsbNumbers)
	if err != nil {
		t.Fatal(err)
	}
	if c.Counters.Committed != 9214 || c.Counters.Errors != 3 || c.RunSummary.Throughput != 460.7 {
		t.Errorf("%d committed, %d errors, %g/s; want 9214, 3, 460.7", c.Counters.Committed, c.Counters.Errors, c.RunSummary.Throughput)
	}
	if c.RunSummary.P99Millis == nil || *c.RunSummary.P99Millis != 55.435 || c.RunSummary.MeanMillis != nil {
		t.Errorf("p99 %v, mean %v; want 55.435 ms and none", c.RunSummary.P99Millis, c.RunSummary.MeanMillis)
	}
	if slices.Contains(c.Unreported, results.CounterErrors) || !slices.Contains(c.Unreported, results.CounterAborted) {
		t.Errorf("unreported are %v; errors are reported, aborts are not", c.Unreported)
	}
	if c.Index != 1 || c.FirstClient != 4 || c.Clients != 4 || c.MeasureNanos != 10e9 || !c.NothingSent {
		t.Errorf("the report is of %+v", c)
	}
}

// Many programs print a count of failures only when there are some. Any other missing number means
// that the program died, or that the pattern is wrong.
func TestSummaryWithoutANumber(t *testing.T) {
	c, err := summary(t, strings.Replace(ycsbText, "[READ-FAILED], Operations, 3\n", "", 1), ycsbNumbers)
	if err != nil || c.Counters.Errors != 0 || slices.Contains(c.Unreported, results.CounterErrors) {
		t.Errorf("without a line of failures: %d errors, unreported %v, %v", c.Counters.Errors, c.Unreported, err)
	}
	without := slices.DeleteFunc(slices.Clone(ycsbNumbers), func(n results.SummaryNumber) bool { return n.Name == "Throughput" })
	if c, err := summary(t, ycsbText, without); err != nil || math.Abs(c.RunSummary.Throughput-460.7) > 1e-9 {
		t.Errorf("from the run time: %g/s, %v; want 460.7", c.RunSummary.Throughput, err)
	}
}

func TestSummaryOfTheLastLine(t *testing.T) {
	const lines = `total,interval_op_rate
1754,527,2635,13175,1686400,0.0040,6
3508,1754,8770,43850,5612800,0.0041,7
`
	numbers := []results.SummaryNumber{
		{Name: "Committed", Pattern: `^(?P<value>[0-9]+)(,[0-9]+){4},[0-9.]+,[0-9]+$`, Of: "Last"},
		{Name: "RunTime", Pattern: `^[0-9]+(,[0-9]+){4},[0-9.]+,(?P<value>[0-9]+)$`, Unit: "s", Of: "Last"},
	}
	c, err := summary(t, lines+"9999,1,1,1,1,0.1", numbers)
	if err != nil || c.Counters.Committed != 3508 || math.Abs(c.RunSummary.Throughput-3508.0/7) > 1e-9 || c.Driver["cutLines"] != 1 {
		t.Errorf("%d committed, %v, driver %v, %v; want 3508 in 7 s and a line that is cut off", c.Counters.Committed, c.RunSummary, c.Driver, err)
	}
}

// Eiger-PORT's client prints this: a line a second, and percentiles when it is told to stop.
func TestSummaryOfEigerPORT(t *testing.T) {
	const text = `total,interval_op_rate,interval_key_rate,avg_latency,elapsed_time
0,0,0,0,0,NaN,1
198,43,215,1075,137600,0.34106976744186046,18
227,29,145,725,92800,0.45455172413793105,22
Overall Latencies (usecs): 50=76532, 75=390093, 90=959255, 95=1502557, 99=2486462, 99.9=3768756
Read Latencies (usecs): 50=82823, 75=433537, 90=1177938, 95=1512912, 99=2486462, 99.9=3768756
`
	const line = `^[0-9]+(,[0-9]+){4},[^,]+,`
	c, err := summary(t, text, []results.SummaryNumber{
		{Name: "Committed", Pattern: `^(?P<value>[0-9]+)(,[0-9]+){4},[^,]+,[0-9]+$`, Of: "Last"},
		{Name: "RunTime", Pattern: line + `(?P<value>[0-9]+)$`, Unit: "s", Of: "Last"},
		{Name: "P50Latency", Pattern: `^Overall Latencies \(usecs\): 50=(?P<value>[0-9]+),`, Unit: "us"},
		{Name: "P999Latency", Pattern: `^Overall Latencies \(usecs\):.* 99\.9=(?P<value>[0-9]+)$`, Unit: "us"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Counters.Committed != 227 || math.Abs(c.RunSummary.Throughput-227.0/22) > 1e-9 || *c.RunSummary.P50Millis != 76.532 || *c.RunSummary.P999Millis != 3768.756 {
		t.Errorf("%d committed, %+v", c.Counters.Committed, c.RunSummary)
	}
}

// The YCSB of HATS's artifact printed this on a kind cluster: its driver refused some reads. The
// artifact added the percentiles of all operations together.
func TestSummaryOfHATS(t *testing.T) {
	const text = `INFO  [Thread-5] 2026-11-23 09:12:43,508 CassandraCQLClient.java:238 - Connected to cluster: hats-ed41-0
java.lang.IllegalArgumentException: bound must be positive
	at com.datastax.driver.core.HatsUtils$HatsReplicaSelector.selectTarget(HatsUtils.java:225) ~[classes/:na]
[OVERALL], RunTime(ms), 50930
[OVERALL], Throughput(ops/sec), 157.0783428234832
[READ], Operations, 3497
[READ], 99thPercentileLatency(us), 175393
[READ], Return=ERROR, 539
[OVERALL], Operations, 7461
[OVERALL], AverageLatency(us), 23877.902291917973
[OVERALL], LatencyVariance(us), 1.1954225600602827E9
[OVERALL], MaxLatency(us), 513110
[OVERALL], MedianLatency(us), 11296
[OVERALL], 99thPercentileLatency(us), 166494
[OVERALL], 999thPercentileLatency(us), 307440
[OVERALL-FAILED], Operations, 539
[OVERALL-FAILED], 99thPercentileLatency(us), 85457
`
	numbers := []results.SummaryNumber{
		{Name: "Committed", Pattern: `^\[OVERALL\], Operations, (?P<value>[0-9]+)$`},
		{Name: "Errors", Pattern: `^\[OVERALL-FAILED\], Operations, (?P<value>[0-9]+)$`},
		{Name: "Throughput", Pattern: `^\[OVERALL\], Throughput\(ops/sec\), (?P<value>[0-9.]+)$`},
		{Name: "MeanLatency", Unit: "us", Pattern: `^\[OVERALL\], AverageLatency\(us\), (?P<value>[0-9.]+)$`},
		{Name: "P50Latency", Unit: "us", Pattern: `^\[OVERALL\], MedianLatency\(us\), (?P<value>[0-9]+)$`},
		{Name: "P99Latency", Unit: "us", Pattern: `^\[OVERALL\], 99thPercentileLatency\(us\), (?P<value>[0-9]+)$`},
	}
	c, err := summary(t, text, numbers)
	if err != nil {
		t.Fatal(err)
	}
	if c.Counters.Committed != 7461 || c.Counters.Errors != 539 || math.Abs(c.RunSummary.Throughput-157.0783) > 1e-3 ||
		*c.RunSummary.P50Millis != 11.296 || *c.RunSummary.P99Millis != 166.494 || math.Abs(*c.RunSummary.MeanMillis-23.8779) > 1e-3 {
		t.Errorf("%d committed, %d errors, %+v", c.Counters.Committed, c.Counters.Errors, c.RunSummary)
	}
}

func TestSummaryRefusesDamage(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"died before the end": {"[READ], Operations, 46\n[UPDATE], Operations, 3\n", "no line of the client's output matches the pattern of RunTime"},
		"half a count":        {strings.Replace(ycsbText, "4614", "4614.5", 1), "UPDATE"},
		"nothing":             {"", "no line"},
		"not a number":        {strings.Replace(ycsbText, "460.7", "E..", 1), `line`},
	} {
		numbers := slices.Clone(ycsbNumbers)
		if name == "half a count" {
			numbers[0].Pattern = `^\[(READ|UPDATE)\], Operations, (?P<value>[0-9.]+)$`
			tc.want = "which is no count"
		}
		if name == "not a number" {
			tc.want = "is not a decimal number"
		}
		if c, err := summary(t, tc.text, numbers); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, c.RunSummary, err, tc.want)
		}
	}
}
