package imported

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

func TestRowsArePoints(t *testing.T) {
	points := []v1alpha1.Point{
		{Index: 0, Coordinates: map[string]string{"policy": "lock", "parts": "1"}}, {Index: 1, Coordinates: map[string]string{"policy": "lock", "parts": "4"}},
		{Index: 2, Coordinates: map[string]string{"policy": "queue", "parts": "1"}},
	}
	of := v1alpha1.ScriptResults{
		Path: "~/results/table.tsv", Axes: []v1alpha1.RowAxis{{Name: "policy"}, {Name: "parts", Column: "shards"}},
		Numbers: []v1alpha1.RowNumber{{Name: "Throughput", Column: "ops"}, {Name: "P99Latency", Column: "tail", Unit: "us"}},
	}
	for name, tc := range map[string]struct {
		text, missing string
		want          []string // throughput and p99, or what is missing
		wantErr       string
	}{
		"tabs":                     {text: "policy\tshards\tops\ttail\nlock\t1\t100\t2000\nlock\t4\t400\t1500\nqueue\t1\t90\t2500\n", want: []string{"100 2", "400 1.5", "90 2.5"}},
		"commas and an odd number": {text: "policy,shards,ops,tail,remark\nlock,1.0,100,2000,x\nlock,4,400,1500,\nqueue,1,90,2500,\n", want: []string{"100 2", "400 1.5", "90 2.5"}},
		"blanks and a comment":     {text: "# policy shards ops tail\nlock   1  100 2000\n# a remark\nlock 4 400 1500\n\nqueue 1 90 2500\n", want: []string{"100 2", "400 1.5", "90 2.5"}},
		"a row that is not there":  {text: "policy\tshards\tops\ttail\nlock\t1\t100\t2000\nqueue\t1\t90\t2500\n", want: []string{"100 2", "~/results/table.tsv has no row with parts=4, policy=lock", "90 2.5"}},
		"a row that is there twice": {text: "policy\tshards\tops\ttail\nlock\t1\t100\t2000\nlock\t1\t101\t2000\nlock\t4\t400\t1500\nqueue\t1\t90\t2500\n",
			want: []string{"~/results/table.tsv has 2 rows with parts=1, policy=lock, in lines 2 and 3: which one counts is not known; name another axis", "400 1.5", "90 2.5"}},
		"no file":                    {missing: "the script left no file", want: []string{"the script left no file", "the script left no file", "the script left no file"}},
		"a column that is not there": {text: "policy\tcores\tops\ttail\n", wantErr: `no column "shards", which is the axis parts; its columns are policy, cores, ops, tail`},
		"a cell that is no number":   {text: "policy\tshards\tops\ttail\nlock\t1\tmany\t2000\n", wantErr: `table.tsv:2: column throughput: "many" is no number`},
		"a cell too few":             {text: "policy\tshards\tops\ttail\nlock\t1\t100\n", wantErr: "table.tsv:2: it has 3 cells, and line 1, with the columns' names, has 4"},
		"an empty file":              {text: "\n", wantErr: "is empty; its first line must name the columns"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := Rows(&of, &results.ScriptTable{Text: tc.text, Missing: tc.missing}, points)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("the error is %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, r := range rows {
				if r.PointIndex != points[i].Index {
					t.Errorf("row %d is of point %d", i, r.PointIndex)
				}
				if r.Missing != "" {
					got = append(got, r.Missing)
					continue
				}
				got = append(got, strings.TrimSpace(strings.Join([]string{number(r.Summary.Throughput), number(r.Summary.P99Millis)}, " ")))
			}
			if strings.Join(got, "|") != strings.Join(tc.want, "|") {
				t.Errorf("rows are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// statsJSON is a stats.json of a point in the shape of the Pequin artifact's.
func statsJSON(tput, correct, mean, p99 float64) string {
	return fmt.Sprintf(`{"aggregate": {"combined": {"ops": %g, "tput": %g, "tput_s_honest": %g, "mean": %g, "p50": %g, "p99": %g, "cdf": [[50, 1], [99, 2]]}},
		"run_stats": {"combined": {"tput": {"mean": %g, "stddev": 0}, "mean": {"mean": %g, "stddev": 0}}},
		"runs": [{"attempts": 9, "committed": 8, "combined": {"tput": %g, "mean": %g}}]}`, tput*10, tput, tput/correct, mean, mean, p99, tput, mean, tput, mean)
}

// The scripts of other artifacts leave files of these forms: a table, a log or a graph, and files
// of their own for each point.
func TestRowsOfOtherArtifacts(t *testing.T) {
	axes := func(all ...string) (out []v1alpha1.RowAxis) {
		for _, a := range all {
			name, column, _ := strings.Cut(a, "=")
			out = append(out, v1alpha1.RowAxis{Name: name, Column: column})
		}
		return out
	}
	file := func(name, text string) results.ScriptFile {
		return results.ScriptFile{Path: "/home/author/results/" + name, Text: text}
	}
	for name, tc := range map[string]struct {
		of    v1alpha1.ScriptResults
		table results.ScriptTable
		at    []string // coordinates of points
		want  []string // throughput and p99, or why there is none
	}{
		"DMTree's CSV": {v1alpha1.ScriptResults{Path: "simple_results.csv", Format: "DMTreeTable", Axes: axes("tree=index", "mix=workload")},
			results.ScriptTable{Text: "Index,Workload,Total,Node1,Node2\nOurs,a,12.5,6.5,6.0\nOurs,c,30,15,15\nTheirs,a,0,0,0\n"},
			[]string{"tree=Ours,mix=c", "tree=Ours,mix=a", "tree=Theirs,mix=a"}, []string{"3e+07", "1.25e+07", "simple_results.csv has no row with mix=a, tree=Theirs"}},
		"exp1_summary.txt": {v1alpha1.ScriptResults{Path: "~/exp1_summary.txt", Format: "HATSTable", Axes: axes("scheme", "workload")},
			results.ScriptTable{Text: "###\n# Exp 1\n###\nScheme  Workload  Throughput(ops/s)\n---\nours  wa  1200\ntheirs  wa  700\n\nScheme  Workload  P50(us)  P99(us)\n---\nours  wa  500  2500\ntheirs  wa  900  4000\n"},
			[]string{"scheme=ours,workload=wa", "scheme=theirs,workload=wa", "scheme=theirs,workload=wb"}, []string{"1200 2.5", "700 4", "~/exp1_summary.txt has no row with scheme=theirs, workload=wb"}},
		"combined.graph": {v1alpha1.ScriptResults{Path: "combined.graph", Format: "EigerGraph", Axes: axes("protocol=system", "threads")},
			results.ScriptTable{Text: "4 150 750 3750 480000 4 100 500 2500 320000 1.5\n8 220 1100 5500 704000 8 200 1000 5000 640000 1.1\n"},
			[]string{"protocol=Eiger,threads=8", "protocol=Eiger-PORT,threads=4"}, []string{"200", "150"}},
		"ELECT's log": {v1alpha1.ScriptResults{Path: "Exp#1.log", Format: "ELECTSummary", Axes: axes("scheme", "workload")},
			results.ScriptTable{Text: "[Exp info] scheme: ours, workload: Read, KVNumber: 600\nThroughput (unit: op/s):\nAverage: 950.5, Min: 900, Max: 1001\n"},
			[]string{"scheme=ours,workload=Read"}, []string{"950.5"}},
		"a folder with a stats.json for each point": {v1alpha1.ScriptResults{Path: "~/results/{variant}-{threads}/stats.json", Format: "PequinStats", Axes: axes("variant", "threads")},
			results.ScriptTable{Files: []results.ScriptFile{
				file("fast-4/stats.json", statsJSON(500, 5, 2, 9)), file("fast-8/stats.json", statsJSON(900, 5, 3, 11)), file("slow-4/stats.json", statsJSON(0, 5, 0, 0)),
				{Path: "/home/author/results/slow-8/stats.json", Missing: "permission denied"},
			}},
			[]string{"variant=fast,threads=8", "variant=fast,threads=4", "variant=slow,threads=4", "variant=slow,threads=8", "variant=slow,threads=9"},
			[]string{"900 11", "500 9", "results/slow-4/stats.json: 1 of its 1 runs have no throughput or no latency (combined)", "results/slow-8/stats.json: permission denied",
				"~/results/{variant}-{threads}/stats.json has no row with threads=9, variant=slow"}},
		"stats.json in folders of their date": {v1alpha1.ScriptResults{Path: "/home/author/results/*/stats.json", Format: "PequinStats", Axes: axes("load=clients")},
			results.ScriptTable{Files: []results.ScriptFile{file("2026-11-01/stats.json", statsJSON(500, 5, 2, 9)), file("2026-11-02/stats.json", statsJSON(900, 10, 3, 11)), file("2026-11-03/stats.json", statsJSON(901, 10, 3, 11))}},
			[]string{"load=5", "load=10"}, []string{"500 9", "/home/author/results/*/stats.json has 2 rows with load=10, in /home/author/results/2026-11-02/stats.json and /home/author/results/2026-11-03/stats.json: which one counts is not known; name another axis"}},
		"a table for each scheme": {v1alpha1.ScriptResults{Path: "results/{scheme}.txt", Axes: axes("scheme", "threads")},
			results.ScriptTable{Files: []results.ScriptFile{file("lock.txt", "threads throughput p99_ms\n1 10 2\n4 30 3\n"), file("queue.txt", "threads throughput p99_ms\n1 20 1\n")}},
			[]string{"scheme=lock,threads=4", "scheme=queue,threads=1", "scheme=queue,threads=4"}, []string{"30 3", "20 1", "results/{scheme}.txt has no row with scheme=queue, threads=4"}},
		"a report of YCSB for each": {v1alpha1.ScriptResults{Path: "results/{workload}.log", Format: "YCSB", Axes: axes("workload")},
			results.ScriptTable{Files: []results.ScriptFile{file("a.log", "[OVERALL], RunTime(ms), 1000\n[OVERALL], Throughput(ops/sec), 500\n[READ], Operations, 500\n[READ], AverageLatency(us), 900\n[READ], 99thPercentileLatency(us), 5000\n")}},
			[]string{"workload=a"}, []string{"500 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			var points []v1alpha1.Point
			for i, text := range tc.at {
				p := v1alpha1.Point{Index: int32(i), Coordinates: map[string]string{}}
				for _, pair := range strings.Split(text, ",") {
					axis, value, _ := strings.Cut(pair, "=")
					p.Coordinates[axis] = value
				}
				points = append(points, p)
			}
			rows, err := Rows(&tc.of, &tc.table, points)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range rows {
				got := r.Missing
				if got == "" {
					got = number(r.Summary.Throughput)
					if r.Summary.P99Millis > 0 {
						got += " " + number(r.Summary.P99Millis)
					}
				}
				if got != tc.want[i] {
					t.Errorf("the row of %s is %q, want %q", tc.at[i], got, tc.want[i])
				}
			}
		})
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// A file that cannot be read says why, also if it would be one of many.
func TestRowsOfAFileThatCannotBeRead(t *testing.T) {
	of := v1alpha1.ScriptResults{Path: "results/{variant}/stats.json", Format: "PequinStats", Axes: []v1alpha1.RowAxis{{Name: "variant"}}}
	for name, want := range map[string]string{"results/fast/stats.json": "no throughput", "other/stats.json": "is not one of the files"} {
		if rows, err := RowsOf(&of, name, statsJSON(0, 5, 0, 0)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", name, rows, err, want)
		}
	}
}
