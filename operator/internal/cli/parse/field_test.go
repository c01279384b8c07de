package parse_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli/parse"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// fieldCase is the output of a program that Assay once read wrongly or not at all.
type fieldCase struct {
	results, output string
	want            map[string]float64
	// counters of the report, and the instants of the first begin and the last end.
	counters    map[string]int64
	first, last string
	remark      string
	refused     string
}

func summaryOf(numbers ...string) string {
	return "results:\n  format: Summary\n  source: Stdout\n  summary:\n    numbers:\n    - {" + strings.Join(numbers, "}\n    - {") + "}\n"
}

// fieldCases are named after problems that people reported in public about other tools. The texts
// and numbers are our own.
var fieldCases = map[string]fieldCase{
	"ycsb-raw-failures": {
		results: `results:
  format: RegularExpression
  source: File
  path: /assay/out/raw.txt
  records:
    pattern: '^(?P<operation>READ|UPDATE|INSERT|SCAN|DELETE)(?P<how>-[A-Z_]+)?,(?P<end>[0-9]+),(?P<latency>[0-9]+)$'
    latency: {from: latency, unit: us}
    instant: {from: end, unit: ms}
    outcome: {from: how, committed: [""], errors: [-FAILED]}
    operation: operation
`,
		output: "READ latency raw data: op, timestamp(ms), latency(us)\nREAD,1795161601000,500\nREAD,1795161601100,700\nREAD-FAILED,1795161601200,10000321\n" +
			"UPDATE,1795161601300,1500\nUPDATE-FAILED,1795161601400,20\nUPDATE-NOT_FOUND,1795161601450,25\nCLEANUP,1795161603000,2900\n",
		want:     map[string]float64{"Committed": 3, "Errors": 3, "MaxLatency": 1.5},
		counters: map[string]int64{"otherLines": 2, "unlistedOutcome:-NOT_FOUND": 1, "operation:READ": 2, "operationMicros:READ": 1200, "operation:UPDATE": 1, "operationMicros:UPDATE": 1500},
		first:    "2026-11-20T07:59:51.199679Z", last: "2026-11-20T08:00:01.45Z",
	},
	"ycsb-throughput-of-failures": {
		results: summaryOf(`name: RunTime, unit: ms, pattern: '^\[OVERALL\], RunTime\(ms\), (?P<value>[0-9]+)$'`,
			`name: Throughput, pattern: '^\[OVERALL\], Throughput\(ops/sec\), (?P<value>[0-9.]+)$'`,
			`name: Committed, of: Sum, pattern: '^\[(READ|UPDATE)\], Operations, (?P<value>[0-9]+)$'`),
		output:  "[OVERALL], RunTime(ms), 10000\n[OVERALL], Throughput(ops/sec), 3000.0\n[READ], Operations, 500\n[READ-FAILED], Operations, 14500\n[UPDATE], Operations, 15000\n",
		refused: "Throughput 3000 per second in RunTime 10 s are 30000, and Committed is 15500: they differ by 93.5%",
	},
	"a rate with failures in it": {
		results: summaryOf(`name: RunTime, unit: ms, pattern: '^\[OVERALL\], RunTime\(ms\), (?P<value>[0-9]+)$'`,
			`name: EndedRate, pattern: '^\[OVERALL\], Throughput\(ops/sec\), (?P<value>[0-9.]+)$'`,
			`name: Errors, of: Sum, pattern: '^\[(READ|UPDATE)-FAILED\], Operations, (?P<value>[0-9]+)$'`),
		output: "[OVERALL], RunTime(ms), 10000\n[OVERALL], Throughput(ops/sec), 3000.0\n[READ], Operations, 500\n[READ-FAILED], Operations, 14500\n[UPDATE], Operations, 15000\n",
		want:   map[string]float64{"Committed": 15500, "Errors": 14500, "Throughput": 1550},
	},
	"wrk-units": {
		results: summaryOf(`name: Answered, pattern: '^ +(?P<value>[0-9]+) requests in '`, `name: RunTime, pattern: ' requests in (?P<value>[0-9.]+[a-z]+),'`,
			`name: Timeouts, pattern: ', timeout (?P<value>[0-9]+)$'`, `name: MeanLatency, pattern: '^ +Latency +(?P<value>[0-9.]+[a-z]+) '`,
			`name: P50Latency, pattern: '^ +50% +(?P<value>[0-9.]+)(?P<unit>us|ms|s)$'`, `name: P90Latency, pattern: '^ +90% +(?P<value>[0-9.]+)(?P<unit>us|ms|s)$'`,
			`name: P99Latency, pattern: '^ +99% +(?P<value>[0-9.]+)(?P<unit>us|ms|s)$'`),
		output: "    Latency   700.50us    1.20ms   1.80s    93.10%\n     50%  450.00us\n     90%    1.35ms\n     99%    1.11s\n  100200 requests in 10.02s, 20.10MB read\n  Socket errors: connect 0, read 3, write 0, timeout 5\n",
		want:   map[string]float64{"Committed": 100200, "Timeouts": 5, "Throughput": 10000, "MeanLatency": 0.7005, "P50Latency": 0.45, "P90Latency": 1.35, "P99Latency": 1110},
	},
	"one unit for all": {
		results: summaryOf(`name: Throughput, pattern: '^Requests/sec: +(?P<value>[0-9.]+)$'`, `name: P50Latency, unit: us, pattern: '^ +50% +(?P<value>[0-9.]+)[a-z]+$'`,
			`name: P90Latency, unit: us, pattern: '^ +90% +(?P<value>[0-9.]+)[a-z]+$'`),
		output:  "     50%  450.00us\n     90%    1.35ms\nRequests/sec:  10000.00\n",
		refused: "P50Latency is 0.45 ms, more than P90Latency, 0.00135 ms: look at their units",
	},
	"cumulative": {
		results: summaryOf(`name: RunTime, pattern: '^Run finished, takes (?P<value>[0-9.a-z]+)$'`, `name: Committed, of: LastOfEach, pattern: '^(?P<each>READ|UPDATE) +- Takes\(s\): [0-9.]+, Count: (?P<value>[0-9]+),'`,
			`name: P99Latency, unit: us, of: Last, pattern: '^READ +- .* 99th\(us\): (?P<value>[0-9]+)'`),
		output: "READ   - Takes(s): 10.0, Count: 1000, OPS: 100.0, 99th(us): 5000\nUPDATE - Takes(s): 10.0, Count: 900, OPS: 90.0, 99th(us): 6000\nRun finished, takes 1m20s\n" +
			"READ   - Takes(s): 80.0, Count: 8000, OPS: 100.0, 99th(us): 5100\nUPDATE - Takes(s): 80.0, Count: 7200, OPS: 90.0, 99th(us): 6100\n",
		want: map[string]float64{"Committed": 15200, "Throughput": 190, "P99Latency": 5.1},
	},
	"the last one in silence": {
		results: summaryOf(`name: RunTime, unit: s, pattern: 'completed in (?P<value>[0-9.]+) seconds'`, `name: Committed, pattern: '^ +(?P<value>[0-9]+) requests completed'`),
		output:  "====== SET ======\n  1000 requests completed in 1.50 seconds\n====== GET ======\n  1000 requests completed in 1.25 seconds\n",
		refused: "RunTime: it is 1250 here, and was 1500 at 2: say by the pattern which of them it is",
	},
	"thousands": {
		results: summaryOf(`name: RunTime, unit: s, pattern: 'Execution time: (?P<value>[0-9,]+) s'`, `name: Throughput, pattern: 'End-to-end TPS: (?P<value>[0-9,]+) tx/s'`,
			`name: MeanLatency, unit: ms, pattern: 'End-to-end latency: (?P<value>[0-9,]+) ms'`),
		output: " Execution time: 20 s\n End-to-end TPS: 12,345 tx/s\n End-to-end latency: 2,001 ms\n",
		want:   map[string]float64{"Committed": 246900, "Throughput": 12345, "MeanLatency": 2001},
	},
	"decimals after a comma": {
		results: summaryOf(`name: Throughput, pattern: 'TPS: (?P<value>[0-9,]+) tx/s'`),
		output:  "TPS: 12,34 tx/s\n", refused: "commas must separate thousands",
	},
	"p95": {
		results: summaryOf(`name: Committed, pattern: 'transactions: +(?P<value>[0-9]+)'`, `name: Throughput, pattern: '\((?P<value>[0-9.]+) per sec'`,
			`name: MeanLatency, unit: ms, pattern: '^ +avg: +(?P<value>[0-9.]+)$'`, `name: P95Latency, unit: ms, pattern: '95th percentile: +(?P<value>[0-9.]+)$'`),
		output: "    transactions:                        9100  (455.00 per sec.)\n         avg:                                   17.50\n         95th percentile:                       31.25\n",
		want:   map[string]float64{"Committed": 9100, "Throughput": 455, "MeanLatency": 17.5, "P95Latency": 31.25},
	},
	"no-count": {
		results: summaryOf(`name: Throughput, pattern: '^Totals +(?P<value>[0-9.]+) '`, `name: RunTime, unit: s, pattern: '^(?P<value>[0-9]+) +Seconds$'`),
		output:  "10        Seconds\nTotals     50010.00     89010.10\n",
		want:    map[string]float64{"Committed": 500100, "Throughput": 50010},
	},
	"carriage-returns": {
		results: summaryOf(`name: Committed, pattern: '^ +(?P<value>[0-9]+) requests completed in'`, `name: Throughput, pattern: 'throughput summary: (?P<value>[0-9.]+) requests'`),
		output:  strings.Repeat("SET: rps=70000.0 (overall: 70012.5) avg_msec=0.312 (overall: 0.305)\r", 5000) + "  700000 requests completed in 10.00 seconds\n  throughput summary: 70000.00 requests per second\n",
		want:    map[string]float64{"Committed": 700000, "Throughput": 70000},
	},
	"a line that is too long": {
		results: summaryOf(`name: Throughput, pattern: '^rate (?P<value>[0-9.]+)$'`),
		output:  strings.Repeat("#", 1<<18) + "\nrate 12\n", want: map[string]float64{"Throughput": 12, "Committed": 240}, remark: "the client says neither a count nor a run time: counts are its rate in 20s",
	},
	"no-last-newline": {
		results: summaryOf(`name: Ended, path: $.requests`, `name: Throughput, path: $.throughput`, `name: P99Latency, unit: ms, path: $.latency_99`),
		output:  "JSON Summary\n{\"requests\": \"20010\", \"throughput\": \"1000.50\", \"latency_99\": \"41.00\"}",
		want:    map[string]float64{"Committed": 20010, "Throughput": 1000.5, "P99Latency": 41},
	},
	"pgbench-log": {
		results: `results:
  format: RegularExpression
  source: File
  path: /assay/out/pgbench.log
  records:
    pattern: '^[0-9]+ [0-9]+ (?P<took>[0-9]+|failed) 0 (?P<sec>[0-9]+) (?P<usec>[0-9]+)'
    latency: {from: took, unit: us}
    instant: {from: sec, unit: s, fraction: {from: usec, unit: us}}
    outcome: {from: took, aborted: [failed]}
`,
		output: "0 1 40000 0 1795161600 40500\n3 1 8000 0 1795161600 42000\n0 2 failed 0 1795161600 84000\n3 2 8000 0 1795161600 950000\n4 1 70000 0 1795161601 60000\n",
		want:   map[string]float64{"Committed": 4, "Aborted": 1, "MaxLatency": 70}, first: "2026-11-20T08:00:00.0005Z", last: "2026-11-20T08:00:01.06Z",
	},
	"begin-end": {
		results: `results:
  format: RegularExpression
  source: File
  path: /assay/out/simulation.log
  records:
    pattern: '^REQUEST\t[^\t]*\t[^\t]+\t(?P<begin>[0-9]+)\t(?P<end>[0-9]+)\t(?P<how>OK|KO)'
    latency: {since: begin}
    instant: {from: end, unit: ms}
    outcome: {from: how, committed: [OK], errors: [KO]}
`,
		output: "RUN\tx\nREQUEST\t\tget\t1795161600000\t1795161600100\tOK\t\nREQUEST\t\tget\t1795161600100\t1795161600140\tOK\t\nREQUEST\t\tget\t1795161600200\t1795161600205\tKO\tbut found 503\n",
		want:   map[string]float64{"Committed": 2, "Errors": 1, "MaxLatency": 100, "P50Latency": 40}, first: "2026-11-20T08:00:00Z", last: "2026-11-20T08:00:00.205Z",
	},
	"rfc3339": {
		results: `results:
  format: RegularExpression
  source: File
  path: /assay/out/k6.json
  records:
    pattern: '"type":"Point","data":\{"time":"(?P<at>[^"]+)","value":(?P<ms>[0-9.]+),"tags":\{"status":"(?P<status>[0-9]+)"'
    latency: {from: ms, unit: ms}
    instant: {from: at, layout: RFC3339}
    outcome: {from: status, committed: ["200"]}
`,
		output: `{"metric":"http_req_duration","type":"Point","data":{"time":"2026-11-20T08:40:00.123456789Z","value":10.5,"tags":{"status":"200"}}}
{"metric":"http_req_duration","type":"Point","data":{"time":"2026-11-20T09:40:01.5+01:00","value":8,"tags":{"status":"200"}}}
`,
		want: map[string]float64{"Committed": 2, "MaxLatency": 10.5}, first: "2026-11-20T08:40:00.112956789Z", last: "2026-11-20T08:40:01.5Z",
	},
	"the last end at a bin of the timeline": {
		results: `results:
  format: CSV
  source: File
  path: /assay/out/results.jtl
  records: {latency: {from: elapsed, unit: ms}, instant: {from: at, unit: ms, of: Begin}}
`,
		output: "at,elapsed\n1795161600000,20\n1795161600280,20\n", want: map[string]float64{"Committed": 2},
		first: "2026-11-20T08:00:00Z", last: "2026-11-20T08:00:00.3Z",
	},
	"a local date": {
		results: `results:
  format: RegularExpression
  source: Stdout
  records:
    pattern: '^(?P<at>[0-9-]+ [0-9:]+,[0-9]+) took (?P<ms>[0-9.]+) ms$'
    latency: {from: ms, unit: ms}
    instant: {from: at, layout: "2006-01-02 15:04:05", zone: "+01:00"}
`,
		output: "2026-11-20 09:40:00,250 took 50 ms\n2026-11-20 09:40:01,250 took 40 ms\n",
		want:   map[string]float64{"Committed": 2}, first: "2026-11-20T08:40:00.2Z", last: "2026-11-20T08:40:01.25Z",
	},
	"unlisted-outcome": {
		results: `results:
  format: RegularExpression
  source: File
  path: /assay/out/vegeta.csv
  records:
    pattern: '^(?P<begin>[0-9]+),(?P<code>[0-9]+),(?P<latency>[0-9]+),'
    latency: {from: latency, unit: ns}
    instant: {from: begin, unit: ns, of: Begin}
    outcome: {from: code, committed: ["200"]}
`,
		output: "1795161600000000000,200,20000000,0,\n1795161600100000000,200,10000000,0,\n1795161600200000000,0,500000000,0,\"dial, refused\"\n1795161600300000000,421,100000,0,\n",
		want:   map[string]float64{"Committed": 2, "Errors": 2}, counters: map[string]int64{"unlistedOutcome:0": 1, "unlistedOutcome:421": 1},
		first: "2026-11-20T08:00:00Z", last: "2026-11-20T08:00:00.7Z",
	},
	"relative-instants": {
		results: `results:
  format: CSV
  source: Stdout
  records:
    latency: {from: response-time, unit: s}
    instant: {from: offset, unit: s, clock: SinceStart, of: Begin}
    outcome: {from: status-code, committed: ["200"]}
`,
		output: "response-time,status-code,offset\n0.0200,200,0.0010\n0.0300,200,0.0200\n0.5000,503,0.0400\n",
		want:   map[string]float64{"Committed": 2, "Errors": 1, "MaxLatency": 30}, first: "1ms", last: "540ms",
	},
	"instants since the start, taken for dates": {
		results: `results:
  format: CSV
  source: Stdout
  records: {latency: {from: response-time, unit: s}, instant: {from: offset, unit: s, clock: Wall, of: Begin}}
`,
		output:  "response-time,status-code,offset\n0.0200,200,0.0010\n0.0300,200,0.0200\n",
		refused: "the operations are from 1970-01-01T00:00:00.001Z to 1970-01-01T00:00:00.05Z, when no trial ran",
	},
	"a table of percentiles as a log": {
		results: "results: {format: HdrHistogram, source: File, path: /assay/out/client.hgrm, histograms: {unit: us}}\n",
		output:  "       Value     Percentile TotalCount 1/(1-Percentile)\n\n     510.000 0.500000000000        500           2.00\n     990.000 1.000000000000       1000            inf\n",
		refused: "this is a table of percentiles (.hgrm), which has no instants: it cannot be cut to the window",
	},
	"own-numbers": {
		results: summaryOf(`name: Throughput, unit: M/s, pattern: '^tpt: (?P<value>[0-9.]+) Mops$'`, `name: hitRate, pattern: '^hit rate: (?P<value>[0-9.]+)$'`, `name: P99Latency, unit: us, pattern: 'p99: (?P<value>[0-9.]+) us$'`),
		output:  "client 3 done\ntpt: 1.500 Mops\nhit rate: 0.375\np50: 11 us p99: 40 us\n",
		want:    map[string]float64{"Throughput": 1.5e6, "hitRate": 0.375, "P99Latency": 0.04, "Committed": 3e7},
	},
	"per-minute": {
		results: summaryOf(`name: Throughput, unit: /min, pattern: 'System achieved (?P<value>[0-9]+) NOPM'`),
		output:  "Vuser 1:TEST RESULT : System achieved 60000 NOPM from 140000 PostgreSQL TPM\n",
		want:    map[string]float64{"Throughput": 1000, "Committed": 20000}, remark: "counts are its rate in 20s",
	},
	"mean-of-intervals": {
		results: summaryOf(`name: Throughput, of: Mean, pattern: '- Pub rate (?P<value>[0-9.]+) msg/s'`, `name: P9999Latency, unit: ms, pattern: 'Aggregated .* 99\.99%: +(?P<value>[0-9.]+) -'`),
		output:  "x - Pub rate 1000.0 msg/s / 1\nx - Pub rate 500.0 msg/s / 1\nx - Aggregated Pub Latency (ms) 99.99%: 30.5 - Max: 40\n",
		want:    map[string]float64{"Throughput": 750, "P9999Latency": 30.5},
	},
	"multi-line-csv": {
		results: `results:
  format: CSV
  source: File
  path: /assay/out/results.jtl
  records:
    latency: {from: elapsed, unit: ms}
    instant: {from: timeStamp, unit: ms, of: Begin}
    outcome: {from: success, committed: ["true"], errors: ["false"]}
`,
		output: "timeStamp,elapsed,success,failureMessage\n1795161600000,20,true,\"a, b\"\n1795161600100,12,false,\"expected /x/\n***** \"\"received\"\": y\n\"\n1795161600200,30,true,\n1795161600300,10,true,\n",
		want:   map[string]float64{"Committed": 3, "Errors": 1, "MaxLatency": 30}, first: "2026-11-20T08:00:00Z", last: "2026-11-20T08:00:00.31Z",
	},
	"a quotation mark that is open": {
		results: `results:
  format: CSV
  source: File
  path: /assay/out/results.jtl
  records: {latency: {from: elapsed, unit: ms}, instant: {from: at, unit: ms}}
`,
		output: "at,elapsed\n1795161600000,\"20\n1795161600100,30\n", refused: "a quotation mark is not closed",
	},
	"key and value": {
		results: summaryOf(`name: Throughput, pattern: '\btput=(?P<value>[0-9.]+)'`, `name: Committed, pattern: '\btxn_cnt=(?P<value>[0-9]+)'`, `name: Aborted, pattern: '\babort_cnt=(?P<value>[0-9]+)'`),
		output:  "[summary] total_runtime=19.998,tput=1000.1,txn_cnt=20000,abort_cnt=12,lat=0.1\n",
		want:    map[string]float64{"Throughput": 1000.1, "Committed": 20000, "Aborted": 12},
	},
	"JSON lines": {
		results: summaryOf(`name: Committed, of: Last, path: $.done`, `name: RunTime, unit: s, of: Last, path: $.elapsed`, `name: P50Latency, of: Last, path: $.p50`),
		output:  "[main] INFO start\n{\"done\": 10, \"elapsed\": 1, \"p50\": \"1.5ms\"}\n{\"done\": 2000, \"elapsed\": 20, \"p50\": \"1m0.5s\"}\n",
		want:    map[string]float64{"Committed": 2000, "Throughput": 100, "P50Latency": 60500},
	},
	"by the minute": {
		results: summaryOf(`name: Throughput, unit: /min, pattern: 'achieved (?P<value>[0-9]+) NOPM'`),
		output:  "Vuser 1:TEST RESULT : System achieved 90000 NOPM from 210000 PostgreSQL TPM\n", want: map[string]float64{"Throughput": 1500},
	},
	"the last of two results": {
		results: summaryOf(`name: Committed, of: Last, pattern: 'done (?P<value>[0-9]+)'`, `name: Throughput, of: Last, pattern: 'rate (?P<value>[0-9.]+)'`),
		output:  "warm-up: done 100 rate 50.0\ndone 8000 rate 400.0\n", want: map[string]float64{"Committed": 8000, "Throughput": 400},
		remark: "Throughput is that of the last of 2 lines that match its pattern (of: Last)",
	},
	"a count that starts again": {
		results: summaryOf(`name: Committed, of: Last, pattern: 'done (?P<value>[0-9]+)'`, `name: RunTime, unit: s, pattern: 'in (?P<value>[0-9.]+) s'`),
		output:  "done 9000\ndone 4000\nin 20 s\n", want: map[string]float64{"Committed": 4000}, remark: "Committed is that of the last of 2 lines",
	},
	"a part of the run": {
		results: summaryOf(`name: Committed, pattern: 'done (?P<value>[0-9]+)'`, `name: Throughput, pattern: 'rate (?P<value>[0-9.]+)'`),
		output:  "done 4100 rate 400.0\n", want: map[string]float64{"Committed": 4100}, remark: "the numbers account for 10.2 s of the 20 s",
	},
}

// TestResultsWithoutAKey shows that parse reads a file that only has the fields of a System below
// results.
func TestResultsWithoutAKey(t *testing.T) {
	of, err := parse.Decode([]byte("format: Summary\nsource: Stdout\nsummary:\n  numbers:\n  - {name: RunTime, unit: s, pattern: 'in (?P<value>[0-9]+) s'}\n  - {name: Throughput, pattern: 'TPS: (?P<value>[0-9,]+) tx/s'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse.Read(of, strings.NewReader("TPS: 12,345 tx/s in 20 s\n"), 0)
	if err != nil || got.Seconds != 20 {
		t.Errorf("%v s, %v, want 20 s", got.Seconds, err)
	}
	if _, err := parse.Decode([]byte("format: Summary\nsorce: Stdout\n")); err == nil || !strings.Contains(err.Error(), `did you mean "source"?`) {
		t.Errorf("error %v, want one that names the field", err)
	}
}

// TestFieldCases reads each output by the results of its System, with a load of 20 s.
func TestFieldCases(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(fieldCases)) {
		t.Run(name, func(t *testing.T) {
			tc := fieldCases[name]
			of, err := parse.Decode([]byte(tc.results))
			if err != nil {
				t.Fatal(err)
			}
			if errs := plan.CheckResults(of); len(errs) > 0 {
				t.Fatalf("the results would be refused: %v", errs)
			}
			got, err := parse.Read(of, strings.NewReader(tc.output), 20*time.Second)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want one with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			share := 1e-9
			if got.Operations > 0 {
				share = 1e-3 // of a histogram
			}
			compare(t, got, tc.want, share)
			for counter, n := range tc.counters {
				if got.Counters[counter] != n {
					t.Errorf("%s is %d, want %d; there are %v", counter, got.Counters[counter], n, got.Counters)
				}
			}
			if got.First != tc.first || got.Last != tc.last {
				t.Errorf("operations from %s to %s, want from %s to %s", got.First, got.Last, tc.first, tc.last)
			}
			if tc.remark != "" && !strings.Contains(strings.Join(got.Remarks, "\n"), tc.remark) {
				t.Errorf("remarks %q, want one with %q", got.Remarks, tc.remark)
			}
		})
	}
}
