package imported

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

func folder(files map[string]string) fstest.MapFS {
	f := fstest.MapFS{}
	for name, text := range files {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

// ycsb is a report in the form of YCSB's, with one kind of operation.
func ycsb(rate float64, reads, failed int) string {
	text := fmt.Sprintf("YCSB Client 0.17\n[OVERALL], RunTime(ms), 10000\n[OVERALL], Throughput(ops/sec), %g\n[TOTAL_GCS], Count, 3\n[READ], Operations, %d\n"+
		"[READ], AverageLatency(us), 1250.5\n[READ], 95thPercentileLatency(us), 3000\n[READ], 99thPercentileLatency(us), 5200\n", rate, reads)
	if failed > 0 {
		text += fmt.Sprintf("[READ-FAILED], Operations, %d\n[READ-FAILED], AverageLatency(us), 9000\n", failed)
	}
	return text
}

const bench = ` SUMMARY:
 + CONFIG:
 Faults: 1 node(s)
 Committee size: 4 node(s)
 Input rate: %s tx/s
 + RESULTS:
 Consensus TPS: 9,100 tx/s
 End-to-end TPS: %s tx/s
 End-to-end latency: 1,802 ms
`

// shown is a result as a line: point, then numbers.
func shown(r Result) string {
	text := r.String() + " " + labelsText(r.Labels) + ":"
	for _, n := range []struct {
		name string
		x    *float64
	}{{"tput", r.Throughput}, {"mean", r.Mean}, {"p50", r.P50}, {"p99", r.P99}, {"committed", r.Committed}, {"errors", r.Errors}} {
		if n.x != nil {
			text += fmt.Sprintf(" %s=%g", n.name, *n.x)
		}
	}
	return text
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		files   map[string]string
		o       Options
		want    []string
		skipped []string // parts of what is named
	}{
		"YCSB, points by names": {
			files:   map[string]string{"hats/4c/run1.txt": ycsb(200, 2000, 0), "hats/8c/run1.txt": ycsb(400, 4000, 0), "notes.md": "x\n"},
			o:       Options{Format: "YCSB", Point: "{system}/{clients}c/run{repetition}.txt"},
			want:    []string{"hats/4c/run1.txt clients=4, repetition=1, system=hats: tput=200 mean=1.2505 p99=5.2 committed=2000 errors=0", "hats/8c/run1.txt clients=8, repetition=1, system=hats: tput=400 mean=1.2505 p99=5.2 committed=4000 errors=0"},
			skipped: []string{"1 file, whose names do not match --point", "notes.md", "[TOTAL_GCS]", "95thPercentileLatency"},
		},
		"YCSB, whose rate counts what failed": {
			files: map[string]string{"a.txt": ycsb(400, 2500, 1500)}, o: Options{Format: "YCSB"},
			want: []string{"a.txt no label: tput=250 mean=1.2505 p99=5.2 committed=2500 errors=1500"},
		},
		"YCSB, whose counts are not all": {
			files: map[string]string{"a.txt": ycsb(400, 1000, 0)}, o: Options{Format: "YCSB", At: map[string]string{"clients": "4"}},
			want: []string{"a.txt clients=4: tput=400 mean=1.2505 p99=5.2"}, skipped: []string{"its counts of operations, 1000, since throughput and run time give 4000"},
		},
		"CSV with units": {
			files: map[string]string{"r.csv": "scheme,clients,throughput(kops/s),p50 [us],p99_ms,outcome\nours,4,1.5,900,2,Succeeded\nours,8,2,,3,Invalid\n"},
			o:     Options{Format: "CSV", Rename: map[string]string{"system": "scheme", "system:ours": "basil"}},
			want:  []string{"r.csv:2 clients=4, outcome=Succeeded, system=basil: tput=1500 p50=0.9 p99=2"}, skipped: []string{"of r.csv: 1 line whose outcome is not Succeeded"},
		},
		"HotStuff, several runs in a file": {
			files:   map[string]string{"bench-0-4.txt": fmt.Sprintf(bench, "10,000", "9,012") + fmt.Sprintf(bench, "10,000", "8,988")},
			o:       Options{Format: "HotStuffBench"},
			want:    []string{"bench-0-4.txt:1 faults=1, nodes=4, rate=10000: tput=9012 mean=1802", "bench-0-4.txt:10 faults=1, nodes=4, rate=10000: tput=8988 mean=1802"},
			skipped: []string{"1 other number, which clients do not see"},
		},
		"Eiger-PORT's graph": {
			files: map[string]string{"combined.graph": "4 150 750 3750 480000 4 100 500 2500 320000 1.5\n"}, o: Options{Format: "EigerGraph"},
			want:    []string{"combined.graph:1 system=Eiger-PORT, threads=4: tput=150", "combined.graph:1 system=Eiger, threads=4: tput=100"},
			skipped: []string{"the numbers bytes, columns, keys, ratio"},
		},
		"DMTree's table": {
			files: map[string]string{"simple_results.csv": "Index,Workload,Total,Node1,Node2\nmine,ycsb-a,3,1,2\nother,ycsb-a,0,0,0\n"}, o: Options{Format: "DMTreeTable"},
			want: []string{"simple_results.csv:2 index=mine, workload=ycsb-a: tput=3e+06"}, skipped: []string{"1 missing runs", "Node1"},
		},
		"HATS, two tables of one run": {
			files: map[string]string{"exp1_summary.txt": "###\n# Exp 1\n###\nScheme  Workload  Throughput(ops/s)\n---\nhats  workloada  1200\n\nScheme  Workload  P50(us)  P99(us)\n---\nhats  workloada  500  2500\n"}, o: Options{Format: "HATSTable"},
			want: []string{"exp1_summary.txt:6 scheme=hats, workload=workloada: tput=1200 p50=0.5 p99=2.5"},
		},
		"ELECT's log": {
			files: map[string]string{"Exp#1.log": "[Exp info] scheme: elect, workload: Read, KVNumber: 600\nThroughput (unit: op/s):\nAverage: 950.5, Min: 900, Max: 1001\n"}, o: Options{Format: "ELECTSummary"},
			want: []string{"Exp#1.log:1 KVNumber=600, info=Exp info, scheme=elect, workload=Read: tput=950.5"}, skipped: []string{"Throughput max, Throughput min"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(folder(tc.files), tc.o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range s.Results {
				got = append(got, shown(r))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, want := range tc.skipped {
				if !strings.Contains(strings.Join(s.Skipped, "\n"), want) {
					t.Errorf("nobody says %q: %s", want, s.Skipped)
				}
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	csv := func(text string) map[string]string { return map[string]string{"r.csv": text} }
	for name, tc := range map[string]struct {
		files map[string]string
		o     Options
		want  string
	}{
		"no unit":             {csv("clients,p99\n4,2\n"), Options{Format: "CSV"}, `r.csv:2: p99 has the unit ""; a time has one of ns, us, ms, s`},
		"mixed units":         {csv("clients,p50_ms,p99_us\n4,2,3\n"), Options{Format: "CSV"}, "r.csv:2: p50 is 2 ms and p99 is 0.003 ms: percentiles rise"},
		"no number":           {csv("clients,note\n4,x\n"), Options{Format: "CSV"}, "r.csv:2: there is neither a throughput nor a latency in the columns clients, note"},
		"an empty cell":       {csv("clients,p99_ms\n4,2\n8,\n"), Options{Format: "CSV"}, "r.csv:3: there is neither a throughput nor a latency in the columns clients, p99_ms; the line has nothing under p99_ms"},
		"text for a number":   {csv("clients,throughput\n4,fast\n"), Options{Format: "CSV"}, `r.csv:2: column throughput: "fast" is no number`},
		"a contradiction":     {csv("committed,runtime_s,throughput\n4000,10,900\n"), Options{Format: "CSV"}, "r.csv:2: 4000 operations in 10 s are 400.0 per second, and the throughput is said to be 900.0"},
		"cut off":             {map[string]string{"a.txt": "[READ], Operations, 5\n"}, Options{Format: "YCSB"}, "a.txt:1: the file ends without a line"},
		"no file of the name": {map[string]string{"a.txt": ""}, Options{Format: "YCSB", Point: "{clients}.log"}, "no file has a result"},
		"no pattern":          {csv(""), Options{Format: "CSV", Point: "{clients"}, "stands in braces"},
		"an axis twice":       {csv(""), Options{Format: "CSV", Point: "{a}/{a}"}, "names {a} twice"},
		"an empty folder":     {nil, Options{Format: "CSV"}, "the folder has no file"},
	} {
		if _, err := Read(folder(tc.files), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want: %s", name, err, tc.want)
		}
	}
}

func TestTrials(t *testing.T) {
	axes := []results.Axis{{Name: "system", Values: []string{"a", "b"}}, {Name: "clients", Values: []string{"4", "8"}}}
	for name, tc := range map[string]struct {
		csv  string
		want []string // name, point, repetition of each trial
		note string
		err  string
	}{
		"repetitions in turn": {
			csv:  "system,clients,throughput\na,4,10\na,4.0,11\nb,8,20\n",
			want: []string{"e-0 0 0", "e-1 3 0", "e-2 0 1"}, note: "results of 2 points: system=a, clients=8; system=b, clients=4",
		},
		"columns of no axis":     {csv: "system,clients,host,throughput\na,4,n1,10\n", want: []string{"e-0 0 0"}, note: "what is no axis: host"},
		"an unknown value":       {csv: "system,clients,throughput\nc,4,10\n", err: "r.csv:2: the experiment has no point with system=c; its values are a, b. Another spelling of a value is --rename system:c=VALUE"},
		"an axis that is absent": {csv: "clients,throughput\n4,10\n", err: "r.csv:2: it has no value of the axis system; it has clients=4"},
		"a point twice":          {csv: "system,clients,repetition,throughput\na,4,1,10\na,4,1,11\n", err: "r.csv:2 and r.csv:3 are both repetition 1 of the same point"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(folder(map[string]string{"r.csv": tc.csv}), Options{Format: "CSV"})
			if err != nil {
				t.Fatal(err)
			}
			trials, notes, err := s.Trials("e", axes)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want: %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tr := range trials {
				got = append(got, fmt.Sprintf("%s %d %d", tr.Name, tr.PointIndex, tr.Repetition))
				if tr.Imported == nil || tr.Imported.SHA256 == "" || !tr.Summary.RunSummary || !slices.Contains(tr.Summary.Unreported, results.CounterErrors) {
					t.Errorf("%s does not say that it was imported, or of what it knows nothing: %+v", tr.Name, tr)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(notes, "\n"), tc.note) {
				t.Errorf("nobody says %q: %s", tc.note, notes)
			}
		})
	}
}

// TestClientsOfARunAreMerged: two clients are one run with their sums, and with no percentile; a
// client that is there twice, or that lacks a number, is an error.
func TestClientsOfARunAreMerged(t *testing.T) {
	point := Options{Format: "YCSB", Point: "{threads}t/run{repetition}/client{client}.txt"}
	s, err := Read(folder(map[string]string{
		"8t/run1/client0.txt": ycsb(1000, 9990, 10), "8t/run1/client1.txt": ycsb(500, 5000, 0), "8t/run2/client0.txt": ycsb(990, 9900, 0),
	}), point)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Results {
		got = append(got, shown(r))
	}
	want := []string{
		"8t/run1/client0.txt repetition=1, threads=8: tput=1500 mean=1.2505 committed=14990 errors=10",
		"8t/run2/client0.txt repetition=2, threads=8: tput=990 mean=1.2505 p99=5.2 committed=9900 errors=0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if text := strings.Join(s.Skipped, "\n"); !strings.Contains(text, "of the 2 clients of repetition=1, threads=8: p99, which cannot be put together") {
		t.Errorf("what is left out is %q", text)
	}
	for want, files := range map[string]map[string]string{
		"client 0 of threads=8 is there twice":                       {"8t/a/client0.txt": ycsb(1000, 10000, 0), "8t/b/client0.txt": ycsb(1000, 10000, 0)},
		"has committed, and another client of the same run does not": {"8t/a/client0.txt": ycsb(1000, 10000, 0), "8t/b/client1.txt": ycsb(1000, 5000, 0)},
	} {
		if _, err := Read(folder(files), Options{Format: "YCSB", Point: "{threads}t/*/client{client}.txt"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestKindsOfOperations: each kind of YCSB's operations has its own rate, failures and percentiles.
func TestKindsOfOperations(t *testing.T) {
	text := ycsb(1500, 9990, 10) + "[UPDATE], Operations, 5000\n[UPDATE], AverageLatency(us), 2000\n[UPDATE], 99thPercentileLatency(us), 9100\n"
	s, err := Read(folder(map[string]string{"a.txt": text}), Options{Format: "YCSB", ByOperation: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Results {
		got = append(got, shown(r))
	}
	want := []string{
		"a.txt:5 operation=READ: tput=999 mean=1.2505 p99=5.2 committed=9990 errors=10",
		"a.txt:11 operation=UPDATE: tput=500 mean=2 p99=9.1 committed=5000 errors=0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// hgrm is a table of percentiles in the shape of HdrHistogram's, of 1000 values.
const hgrm = `       Value     Percentile TotalCount 1/(1-Percentile)

       1.000 0.000000000000          1           1.00
       1.500 0.100000000000        100           1.11
       2.000 0.500000000000        500           2.00
       4.000 0.900000000000        900          10.00
       9.000 0.990625000000        991         106.67
      12.500 0.999023437500       1000        1024.00
      12.500 1.000000000000       1000            inf
#[Mean    =        2.250, StdDeviation   =        1.100]
#[Max     =       12.500, Total count    =         1000]
#[Buckets =           27, SubBuckets     =         2048]
`

// TestTablesOfPercentiles: numbers are those of the rows, in the given unit, and a percentile
// between two rows is reported.
func TestTablesOfPercentiles(t *testing.T) {
	s, err := Read(folder(map[string]string{"a.hgrm": hgrm}), Options{Format: FormatHdrPercentiles, Unit: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shown(s.Results[0]), "a.hgrm:1 no label: mean=2250 p50=2000 p99=9000 committed=1000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if text := strings.Join(s.Skipped, "\n"); !strings.Contains(text, "the exact p99, for which its 99.0625% stand") {
		t.Errorf("the percentile between two rows is not named: %q", text)
	}
	beginning, _, _ := strings.Cut(hgrm, "      12.500")
	for want, tc := range map[string]struct{ unit, text string }{
		"name it by --unit": {"", hgrm},
		"the table ends at 99.0625%: it has no row of the maximum, and may be cut off": {"ms", beginning},
		"it has two results":       {"ms", hgrm + hgrm},
		"must rise":                {"ms", strings.Replace(hgrm, "4.000", "1.000", 1)},
		"no table of percentiles":  {"ms", "hello\n"},
		"is no row of the table":   {"ms", strings.Replace(hgrm, "       2.000 0.500000000000        500           2.00", "2.000", 1)},
		`parsing "2.0x0": invalid`: {"ms", strings.Replace(hgrm, "       2.000 0.5", "       2.0x0 0.5", 1)},
	} {
		if _, err := Read(folder(map[string]string{"a.hgrm": tc.text}), Options{Format: FormatHdrPercentiles, Unit: tc.unit}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// The share of a maximum is 1, of which some tools print no inverse.
func TestTablesOfPercentilesWithoutInverses(t *testing.T) {
	text := strings.Replace(hgrm, "            inf\n", "\n", 1)
	s, err := Read(folder(map[string]string{"a.hgrm": text}), Options{Format: FormatHdrPercentiles, Unit: "ms"})
	if err != nil || text == hgrm || *s.Results[0].Committed != 1000 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestOtherOperationsOfYCSB: only operations of the workload count.
func TestOtherOperationsOfYCSB(t *testing.T) {
	for _, other := range []string{"[CLEANUP], Operations, 4\n", "[TOTAL_GCS_PS_Scavenge], Operations, 4\n", "[SCAN], Count, 4\n"} {
		s, err := Read(folder(map[string]string{"a.log": ycsb(100, 1000, 0) + other}), Options{Format: "YCSB"})
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(other, ",")
		if got := *s.Results[0].Committed; got != 1000 || !strings.Contains(strings.Join(s.Skipped, "\n"), kind) {
			t.Errorf("%q: %g committed, not read: %q", other, got, s.Skipped)
		}
	}
}

// hlog is a log of two seconds: of READ, 100 of 1 ms and 100 of 3 ms; of UPDATE, 50 of 10 ms.
func hlog(t *testing.T) string {
	t.Helper()
	text := "#[Histogram log format version 1.3]\n#[StartTime: 1795161600.000 (seconds since epoch), Fri Nov 20]\n"
	for _, interval := range []struct {
		tag     string
		second  int
		n, took int64
	}{{"READ", 0, 100, 1000}, {"UPDATE", 0, 50, 10_000}, {"READ", 1, 100, 3000}} {
		h := hdr.New(1, 60_000_000, 3)
		if err := h.RecordValues(interval.took, interval.n); err != nil {
			t.Fatal(err)
		}
		packed, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("Tag=%s,%d.000,1.000,%d.000,%s\n", interval.tag, interval.second, interval.took, packed)
	}
	return text
}

func TestReadHdrHistogram(t *testing.T) {
	near := func(what string, x *float64, want float64) {
		t.Helper()
		if x == nil || *x < want*0.999 || *x > want*1.001 {
			t.Errorf("%s is %v, want %g", what, x, want)
		}
	}
	s, err := Read(folder(map[string]string{"a.hlog": hlog(t)}), Options{Format: "HdrHistogram", Unit: "us"})
	if err != nil {
		t.Fatal(err)
	}
	near("throughput", s.Results[0].Throughput, 125)
	near("the median", s.Results[0].P50, 3)
	near("the 90th percentile", s.Results[0].P90, 10)
	s, err = Read(folder(map[string]string{"a.hlog": hlog(t)}), Options{Format: "HdrHistogram", Unit: "us", ByOperation: true})
	if err != nil || len(s.Results) != 2 || s.Results[0].Labels["operation"] != "READ" {
		t.Fatalf("%d results, %v; want those of READ and UPDATE", len(s.Results), err)
	}
	near("throughput of READ", s.Results[0].Throughput, 100)
	near("the 99th percentile of READ", s.Results[0].P99, 3)
	near("committed of UPDATE", s.Results[1].Committed, 50)
	for want, tc := range map[string]struct{ unit, text string }{
		"name it by --unit":           {"", hlog(t)},
		"no interval of it has":       {"us", "#[StartTime: 1795161600.000 (seconds since epoch)]\n"},
		"a.hlog: the client's log:5:": {"us", hlog(t)[:len(hlog(t))-20]},
	} {
		if _, err := Read(folder(map[string]string{"a.hlog": tc.text}), Options{Format: "HdrHistogram", Unit: tc.unit}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
