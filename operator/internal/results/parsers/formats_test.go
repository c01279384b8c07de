package parsers

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

const eigerSample = "4\t24823\t124119\t620601\t79436159\t4\t15861\t79309\t396547\t50758186\t1.565\n"

func table(t *testing.T, format, in string, spec Spec) *Table {
	t.Helper()
	got, err := ReadTable(format, "file", strings.NewReader(in), spec)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func file(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// unpacked is a stats.json of a real run of the Pequin artifact.
func unpacked(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "pequin", "testdata", name, "stats.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
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
		{Line: 1, Labels: map[string]string{"system": "Eiger-PORT", "threads": "4"}, Values: []Value{{"throughput", "tx/s", 24823},
			{"keys", "keys/s", 124119}, {"columns", "columns/s", 620601}, {"bytes", "bytes/s", 79436159}, {"ratio", "", 1.565}}},
		{Line: 1, Labels: map[string]string{"system": "Eiger", "threads": "4"}, Values: []Value{{"throughput", "tx/s", 15861},
			{"keys", "keys/s", 79309}, {"columns", "columns/s", 396547}, {"bytes", "bytes/s", 50758186}}},
	}
	if diff := cmp.Diff(wantRows, got.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHATSTable(t *testing.T) {
	tests := map[string]struct {
		rows, warnings int
		title          string
	}{
		"hats-exp1.txt": {12, 0, "Exp#1 (Effectiveness of each technique)"},
		"hats-exp2.txt": {4 + 12 + 8 + 12, 1, "Exp#2 (YCSB synthetic workload performance)"}, // with Exp#4, Exp#6, Exp#7
		"hats-exp5.txt": {4, 0, "Exp#5 (Latency distribution at the highest-latency node)"},
		"hats-exp9.txt": {12, 0, "Exp#9 (Different read consistency levels)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := table(t, FormatHATSTable, file(t, name), Spec{})
			if len(got.Rows) != tc.rows || len(got.Warnings) != tc.warnings || got.Rows[0].Labels["experiment"] != tc.title {
				t.Errorf("%d rows of %q, %d warnings; want %d of %q, %d", len(got.Rows), got.Rows[0].Labels["experiment"], len(got.Warnings), tc.rows, tc.title, tc.warnings)
			}
		})
	}
	exp2 := table(t, FormatHATSTable, file(t, "hats-exp2.txt"), Spec{})
	want(t, exp2.Rows[4], "Avg CoV", "", .30)
	want(t, exp2.Rows[4], "Latency Standard Deviation", "us", 264.70)
	want(t, exp2.Rows[23], "Selection", "us", -598)
	want(t, exp2.Rows[24], "Memory", "GiB", 5.13)
	exp5 := table(t, FormatHATSTable, file(t, "hats-exp5.txt"), Spec{})
	want(t, exp5.Rows[3], "Out-of-Range", "%", 97.33)
	exp9 := table(t, FormatHATSTable, file(t, "hats-exp9.txt"), Spec{})
	if diff := cmp.Diff(map[string]string{"experiment": "Exp#9 (Different read consistency levels)", "scheme": "hats", "consistency": "TWO"}, exp9.Rows[1].Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestDMTreeTable(t *testing.T) {
	got := table(t, FormatDMTreeTable, file(t, "dmtree.csv"), Spec{})
	if len(got.Rows) != 4 || got.Skipped["missing runs"] != 24 {
		t.Fatalf("%d rows, %v skipped; want 4, and 24 missing runs", len(got.Rows), got.Skipped)
	}
	want(t, got.Rows[0], "Total", "Mops/s", 52.27219999999999)
	want(t, got.Rows[3], "Node7", "Mops/s", 0.566689)
}

func TestELECTSummary(t *testing.T) {
	got := table(t, FormatELECTSummary, file(t, "elect.txt"), Spec{})
	if len(got.Rows) != 7 {
		t.Fatalf("%d rows, want 7", len(got.Rows))
	}
	want(t, got.Rows[0], "Throughput", "op/s", 9992.38)
	want(t, got.Rows[1], "[READ] 99th percentile latency max", "us", 1943)
	want(t, got.Rows[2], "Total storage overhead", "GiB", 185.90)
	want(t, got.Rows[3], "Migration", "ms/MiB", 17.72)
	want(t, got.Rows[4], "Recovery time cost for decode SSTables average", "s", 3211)
	want(t, got.Rows[6], "95%-percentile CPU Usage", "%", 1.19)
	if got.Rows[0].Labels["workload"] != "Write" || got.Rows[6].Labels["info"] != "Resource usage with degraded operations" {
		t.Errorf("labels are %v and %v", got.Rows[0].Labels, got.Rows[6].Labels)
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

func TestPequinStats(t *testing.T) {
	s, err := ReadPequinStats("stats.json", bytes.NewReader(unpacked(t, "TPCC/2024-10-21-17-04-33")))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Aggregate) != 6 || len(s.Runs) != 1 || s.CDFPoints != 6*2*(99+359) {
		t.Errorf("%d operations, %d runs, %d points of distributions", len(s.Aggregate), len(s.Runs), s.CDFPoints)
	}
	wantCombined := PequinOperation{Ops: 53528, Time: 30, Tput: 1784.2666666666667, NewTput: 1725.6276776920931, TputHonest: 59.47555555555555,
		Mean: 17.311395202193243, Min: 3.152641, Max: 341.389961, Stddev: 9.497440805825926, Var: 90.20138186016743,
		P50: 15.320336000000001, P75: 20.234479, P90: 26.98384960000001, P95: 33.2513085, P99: 51.95845363999987, P999: 94.65792145300283}
	if diff := cmp.Diff(wantCombined, s.Aggregate[Combined]); diff != "" {
		t.Errorf("aggregate (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantCombined, s.Runs[0].Combined); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if got := s.RunStats[Combined].Tput; got != (Spread{Mean: 1784.2666666666667, Min: 1784.2666666666667, Max: 1784.2666666666667}) {
		t.Errorf("throughput over runs %+v", got)
	}
	if s.Runs[0].Counters["attempts"] != 120028 || s.Runs[0].Counters["committed"] != 100378 {
		t.Errorf("counters %v", s.Runs[0].Counters)
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
