package parsers

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const ycsbSample = `Command line: -db site.ycsb.db.CassandraCQLClient -s -P workloada
2024-10-21 17:04:33:000 10 sec: 4607 operations; 460.7 current ops/sec; est completion in 17 seconds
[OVERALL], RunTime(ms), 27131
[OVERALL], Throughput(ops/sec), 460.72
[OVERALL], 99thPercentileLatency(us), 51007
[TOTAL_GCs], Count, 12
[READ], Operations, 6250
[READ], AverageLatency(us), 13512.4
[READ], 99thPercentileLatency(us), 55435
[READ], Return=OK, 6250
[READ], 0, 17
[READ], 1, 100
[READ], >1000, 3
[READ-FAILED], Operations, 3
`

func table(t *testing.T, format, in string, spec Spec) *Table {
	t.Helper()
	got, err := ReadTable(format, "file", strings.NewReader(in), spec)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func want(t *testing.T, r Row, name, unit string, number float64) {
	t.Helper()
	if v, ok := r.Get(name); !ok || v.Unit != unit || v.Number != number {
		t.Errorf("%v: %s = %v %q, want %v %q", r.Labels, name, v.Number, v.Unit, number, unit)
	}
}

func TestYCSB(t *testing.T) {
	got := table(t, FormatYCSB, ycsbSample, Spec{})
	if len(got.Rows) != 4 {
		t.Fatalf("%d rows, want OVERALL, TOTAL_GCs, READ and READ-FAILED", len(got.Rows))
	}
	want(t, got.Rows[0], "Throughput", "ops/sec", 460.72)
	want(t, got.Rows[2], "AverageLatency", "us", 13512.4)
	want(t, got.Rows[2], "99thPercentileLatency", "us", 55435)
	want(t, got.Rows[2], "Return=OK", "", 6250)
	if diff := cmp.Diff(map[string]int{"other lines": 2, "histogram buckets": 3}, got.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestEigerGraph(t *testing.T) {
	got := table(t, FormatEigerGraph, eigerSample, Spec{})
	wantRows := []Row{
		{Line: 1, Labels: map[string]string{"system": "Eiger-PORT", "threads": "8"}, Values: []Value{{"throughput", "tx/s", 30000},
			{"keys", "keys/s", 150000}, {"columns", "columns/s", 300000}, {"bytes", "bytes/s", 19200000}, {"ratio", "", 1.25}}},
		{Line: 1, Labels: map[string]string{"system": "Eiger", "threads": "8"}, Values: []Value{{"throughput", "tx/s", 24000},
			{"keys", "keys/s", 120000}, {"columns", "columns/s", 240000}, {"bytes", "bytes/s", 15360000}}},
	}
	if diff := cmp.Diff(wantRows, got.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHATSTable(t *testing.T) {
	tests := map[string]struct {
		in             string
		rows, warnings int
		title          string
	}{
		"latencies":   {hatsLatencies, 3 * 2, 0, "Made-up#1 (Latencies)"},
		"many tables": {hatsManyTables, 4 * 3 * 2, 1, "Made-up#1 (Latencies)"},
		"one blank":   {hatsOneBlank, 3, 0, "Made-up#5 (Columns with one blank between them)"},
		"levels":      {hatsLevels, 3 * 3, 0, "Made-up#6 (Levels)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := table(t, FormatHATSTable, tc.in, Spec{})
			if len(got.Rows) != tc.rows || len(got.Warnings) != tc.warnings || got.Rows[0].Labels["experiment"] != tc.title {
				t.Errorf("%d rows of %q, %d warnings; want %d of %q, %d", len(got.Rows), got.Rows[0].Labels["experiment"], len(got.Warnings), tc.rows, tc.title, tc.warnings)
			}
		})
	}
	// A table has 3 schemes with 2 workloads each: rows 0 to 5 are of the first one.
	many := table(t, FormatHATSTable, hatsManyTables, Spec{})
	want(t, many.Rows[3], "P99", "us", 2000+200+20.5)
	want(t, many.Rows[6], "Avg CoV", "", .12) // two digits are printed
	want(t, many.Rows[9], "Latency Standard Deviation", "us", 15)
	want(t, many.Rows[17], "Selection", "us", -41)
	want(t, many.Rows[18], "Memory", "GiB", 1000+100+30.75)
	want(t, table(t, FormatHATSTable, hatsOneBlank, Spec{}).Rows[2], "Out-of-Range", "%", 37.5)
	levels := table(t, FormatHATSTable, hatsLevels, Spec{})
	if diff := cmp.Diff(map[string]string{"experiment": "Made-up#6 (Levels)", "scheme": "hats", "consistency": "HALF"}, levels.Rows[1].Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestDMTreeTable(t *testing.T) {
	got := table(t, FormatDMTreeTable, dmtreeSample, Spec{})
	if len(got.Rows) != 3 || got.Skipped["missing runs"] != 2 {
		t.Fatalf("%d rows, %v skipped; want 3, and 2 missing runs", len(got.Rows), got.Skipped)
	}
	want(t, got.Rows[1], "Total", "Mops/s", 0.30000000000000004)
	want(t, got.Rows[2], "Node3", "Mops/s", 3.25)
}

func TestELECTSummary(t *testing.T) {
	got := table(t, FormatELECTSummary, electSample, Spec{})
	if len(got.Rows) != 6 {
		t.Fatalf("%d rows, want 6", len(got.Rows))
	}
	want(t, got.Rows[0], "Throughput", "op/s", 812.25)
	want(t, got.Rows[1], "[READ] 99th percentile latency max", "us", 1000)
	want(t, got.Rows[2], "Total storage overhead", "GiB", 12.75)
	want(t, got.Rows[3], "Migration", "ms/MiB", 2.125)
	want(t, got.Rows[4], "Recovery time cost for decode SSTables average", "s", 44)
	want(t, got.Rows[5], "95%-percentile CPU Usage", "%", 61.5)
	if got.Rows[0].Labels["workload"] != "Filling" || got.Rows[5].Labels["info"] != "Resource usage with lost nodes" {
		t.Errorf("labels are %v and %v", got.Rows[0].Labels, got.Rows[5].Labels)
	}
}

func TestGenericFormats(t *testing.T) {
	wantRows := []Row{{Labels: map[string]string{"node": "b"}, Values: []Value{{"p99", "ms", 4.5}}}}
	tests := map[string]struct {
		format, in string
		spec       Spec
		line       int
	}{
		"regular expression": {FormatRegularExpression, "starting\nnode b: p99=4.5ms\n", Spec{Pattern: `node (?P<n>\w+): p99=(?P<p>[^m]+)ms`,
			Fields: []Field{{Name: "node", From: "n", Label: true}, {Name: "p99", From: "p", Unit: "ms"}}}, 2},
		"csv": {FormatCSV, "node;x;p99\n\"b\";1;4.5\n", Spec{Comma: ';',
			Fields: []Field{{From: "node", Label: true}, {From: "p99", Unit: "ms"}}}, 2},
		"jsonpath": {FormatJSONPath, `{"a": [{"n": "c", "p": -1}, {"n": "b", "p": 9, "p": 4.5}]}`, Spec{Rows: "$.a[?@.p > 0]",
			Fields: []Field{{Name: "node", From: "$.n", Label: true}, {Name: "p99", From: "$.p", Unit: "ms"}}}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			wantRows[0].Line = tc.line
			if diff := cmp.Diff(wantRows, table(t, tc.format, tc.in, tc.spec).Rows); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPequinClient(t *testing.T) {
	p := NewPequinClient()
	for name, in := range map[string]string{
		"a": "#start,5,0\nrw,4000000,8000000000,0\nr,2000001,7000000000,0\nServers: x\n#end,2,500000,0\n",
		"b": "rw,6000000,9000000000,1\nrw,3,9", // killed
	} {
		if err := p.Read(name, strings.NewReader(in)); err != nil {
			t.Fatal(err)
		}
	}
	if p.All.Count() != 3 || p.Operations["r"].Count() != 1 || p.All.MeanMillis() != 12000001./3/1e6 || p.FirstNanos != 7e9 || p.LastNanos != 9e9 {
		t.Errorf("%d transactions, mean %v ms, from %d to %d", p.All.Count(), p.All.MeanMillis(), p.FirstNanos, p.LastNanos)
	}
	if p.Starts != 1 || p.CutLines != 1 || p.OtherLines != 1 {
		t.Errorf("%d starts, %d cut lines, %d other lines; want 1 each", p.Starts, p.CutLines, p.OtherLines)
	}
	if _, ok := p.NewThroughput(); ok {
		t.Error("a throughput by the clients' own time, though client 1 was killed")
	}
	p.EndSeconds[1] = 2
	if got, ok := p.NewThroughput(); !ok || got != 2/2.5+1/2. {
		t.Errorf("new throughput %v, want 1.3", got)
	}
}

// The expected statistics are those of n evenly spaced latencies first, first+step, ...: the mean
// is first + step*(n-1)/2, the variance step^2*(n^2-1)/12, and percentile q is first +
// q/100*(n-1)*step.
func TestPequinStats(t *testing.T) {
	s, err := ReadPequinStats("stats.json", bytes.NewReader(statsPoint.Stats()))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Aggregate) != 7 || len(s.Runs) != 1 || s.CDFPoints != statsPoint.CDFPoints() {
		t.Errorf("%d operations, %d runs, %d points of distributions; want 7, 1, %d", len(s.Aggregate), len(s.Runs), s.CDFPoints, statsPoint.CDFPoints())
	}
	const n, first, step, seconds, clients = 1200, 3.25, 1. / 32, 32, 24
	percentile := func(q float64) float64 { return first + q/100*(n-1)*step }
	wantCombined := PequinOperation{Ops: n, Time: seconds, Tput: 37.5, NewTput: 37.5 / 1.02, TputHonest: 37.5 / clients,
		Mean: first + step*(n-1)/2, Min: first, Max: first + step*(n-1), Stddev: step * math.Sqrt((n*n-1)/12.), Var: step * step * (n*n - 1) / 12,
		P50: percentile(50), P75: percentile(75), P90: percentile(90), P95: percentile(95), P99: percentile(99), P999: percentile(99.9)}
	near := cmpopts.EquateApprox(1e-12, 0)
	if diff := cmp.Diff(wantCombined, s.Aggregate[Combined], near); diff != "" {
		t.Errorf("aggregate (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantCombined, s.Runs[0].Combined, near); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if got := s.Aggregate["pay"]; got.Ops != 200 || got.Min != 3.25+3./32 || got.Time != 0 {
		t.Errorf("operation pay: %+v", got)
	}
	if got := s.RunStats[Combined].Tput; got != (Spread{Mean: 37.5, Min: 37.5, Max: 37.5}) {
		t.Errorf("throughput over runs %+v", got)
	}
	if s.Runs[0].Counters["attempts"] != 2750 || s.Runs[0].Counters["committed"] != 2400 {
		t.Errorf("counters %v", s.Runs[0].Counters)
	}
}

// A number arrives with all digits that are written.
func TestPequinStatsKeepDigits(t *testing.T) {
	s, err := ReadPequinStats("stats.json", strings.NewReader(`{"aggregate": {"combined": {"tput": 271.8281828459045, "mean": 3.1415926535897936}}, "run_stats": {"combined": {}}}`))
	if got := s.Aggregate[Combined]; err != nil || got.Tput != 271.8281828459045 || got.Mean != 3.1415926535897936 {
		t.Errorf("error %v, %+v", err, got)
	}
}

// TestEveryFormatIsListed keeps the registry, the constants and the package's comment together.
func TestEveryFormatIsListed(t *testing.T) {
	source, err := os.ReadFile("parsers.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		if !strings.Contains(string(source), "\n//	"+f.Name+" ") {
			t.Errorf("the package's comment does not list %s", f.Name)
		}
		inBoth := f.Name == FormatRegularExpression || f.Name == FormatCSV // in a trial by its records, in a file by a Spec
		if (f.client != nil && f.table != nil) != inBoth || f.client == nil && f.table == nil {
			t.Errorf("%s must be read in one way, or be one of those with two", f.Name)
		}
	}
	if _, err := ReadTable("Excel", "file", nil, Spec{}); err == nil || !strings.Contains(err.Error(), "YCSB, ") {
		t.Errorf("error = %v, want one that lists the formats", err)
	}
}
