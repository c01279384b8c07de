package imported

import (
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
		"a cell too few":             {text: "policy\tshards\tops\ttail\nlock\t1\t100\n", wantErr: "table.tsv:2: it has 3 cells under 4 columns"},
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

// TestRowsOfOtherArtifacts reads tables in the shapes of artifacts' own results.
func TestRowsOfOtherArtifacts(t *testing.T) {
	of := v1alpha1.ScriptResults{Path: "simple_results.csv", Format: "DMTreeTable", Axes: []v1alpha1.RowAxis{{Name: "mix", Column: "workload"}}}
	rows, err := Rows(&of, &results.ScriptTable{Text: "Index,Workload,Total,Node1,Node2\nTree,ycsb-a,12.5,6.5,6.0\nTree,ycsb-c,30,15,15\n"},
		[]v1alpha1.Point{{Index: 0, Coordinates: map[string]string{"mix": "ycsb-c"}}})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Missing != "" || rows[0].Summary.Throughput != 30e6 {
		t.Errorf("the row is %+v, want 30 million operations per second", rows[0])
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
