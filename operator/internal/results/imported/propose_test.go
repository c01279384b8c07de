package imported

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

// A file that a script has left mostly shows by itself how to read it.
func TestProposalsFromAFileOfResults(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string // axes with values; numbers; rows of points; what is not read
		err  string
	}{
		"columns that say what they are": {"scheme\tload\tthroughput\tp50_ms\tp99_ms\na\tx\t10\t1\t2\na\ty\t20\t1\t2\nb\tx\t30\t1\t2\nb\ty\t40\t1\t2\n",
			"scheme=a,b load=x,y; ; 4 of 4; ", ""},
		"columns of other names": {"policy shards ops_per_s mean_latency_us cpu\nlock 1 100 20 5\nlock 4 400 10 9\n",
			"parts(shards)=1,4; Throughput=ops_per_s(ops/s); 2 of 2; cpu", ""},
		"a column of two words":  {"Num Clients,kops,p99 (ms)\n1,1.5,3\n8,2.5,4\n", "numClients(Num Clients)=1,8; Throughput=kops(kops/s); 2 of 2; ", ""},
		"a row that is missing":  {"a b tput\nx 1 5\ny 2 6\n", "a=x,y b=1,2; ; 2 of 4; ", ""},
		"one row":                {"tput p99_us\n5 80\n", "; ; 1 of 1; ", ""},
		"a latency without unit": {"a latency\nx 5\ny 7\n", "", "no column of a, latency looks like a throughput or a latency"},
		"nothing":                {"\n", "", "has no row"},
		// Such tables were once refused: one column has no name, and two columns have the same
		// number.
		"many columns, and a comma at the end": {
			"tput (ops/sec), Clients, min latency (ms), avg latency (ms), p95 latency (ms), max send time (s), max latency (ms), tput of servers (ops/sec),\n" +
				"9, 1, 1, 4, 6, 2, 8, 9,\n12, 3, 1, 5, 7, 2, 9, 12,\n",
			"load(Clients)=1,3; ; 2 of 2; min latency (ms) p95 latency (ms) max send time (s) tput of servers (ops/sec)", "",
		},
		// Such tables were once refused: a comment was read as the names of columns.
		"a comment above the names": {"# exp1  2026-11-27 09:00:00  value=512B, 5 runs\nchain threads tput[op/s] get50[us]\n1 1 3920 231\n2 1 2870 229\n",
			"chain=1,2; P50Latency=get50[us](us); 2 of 2; ", ""},
		"names after a # and a comment": {"# our own machines\n# chain tput\n1 3920\n2 2870\n", "chain=1,2; ; 2 of 2; ", ""},
		"a # that names too few":        {"# chain\n1 3920\n", "", "~/r.txt:2: it has 2 cells, and line 1, with the columns' names, has 1"},
		"comments alone":                {"# chain tput\n# no run\n", "", "has no row"},
		"a line that is no row":         {"a,tput\nx,5\nrounds,{1: 5},{2: 6}\n", "", "~/r.txt:3: it has 3 cells, and line 1, with the columns' names, has 2; if one of the two is no part of the table, have the script's command leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Propose("~/r.txt", tc.text)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v; want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var axes, numbers []string
			for i, a := range p.Results.Axes {
				label := a.Name
				if a.Column != "" {
					label += "(" + a.Column + ")"
				}
				axes = append(axes, label+"="+strings.Join(p.Values[i], ","))
			}
			for _, n := range p.Results.Numbers {
				numbers = append(numbers, fmt.Sprintf("%s=%s(%s)", n.Name, n.Column, n.Unit))
			}
			got := fmt.Sprintf("%s; %s; %d of %d; %s", strings.Join(axes, " "), strings.Join(numbers, " "), p.Read, p.Points(), strings.Join(p.Unread, " "))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("proposal (-want +got):\n%s", diff)
			}
		})
	}
}

// Results of other artifacts are recognised by their content, in one file or one for each point. No
// proposed axis has the name of an axis that Assay sets itself.
func TestProposalsFromResultsOfOtherArtifacts(t *testing.T) {
	for name, tc := range map[string]struct {
		path  string
		files map[string]string
		want  string // format; axes with values; rows of points; the number that claims are about
	}{
		"DMTree's CSV":     {"r.csv", map[string]string{"r.csv": "Index,Workload,Total,Node1\nours,a,3,3\ntheirs,a,2,2\n"}, "DMTreeTable; index=ours,theirs; 2 of 2; throughput"},
		"combined.graph":   {"combined.graph", map[string]string{"combined.graph": "4 150 750 3750 480000 4 100 500 2500 320000 1.5\n"}, "EigerGraph; protocol(system)=Eiger-PORT,Eiger; 2 of 2; throughput"},
		"exp1_summary.txt": {"e.txt", map[string]string{"e.txt": "###\n# Exp 1\n###\nScheme  Workload  P99(us)\n---\nours  wa  500\ntheirs  wa  900\n"}, "HATSTable; scheme=ours,theirs; 2 of 2; p99Latency"},
		"stats.json for each point": {"/r/{variant}/stats.json", map[string]string{"/r/fast/stats.json": statsJSON(500, 5, 2, 9), "/r/slow/stats.json": statsJSON(400, 5, 3, 11)},
			"PequinStats; variant=fast,slow; 2 of 2; throughput"},
		"stats.json in folders of their date": {"/r/*/stats.json", map[string]string{"/r/1/stats.json": statsJSON(500, 5, 2, 9), "/r/2/stats.json": statsJSON(800, 10, 3, 11)},
			"PequinStats; load(clients)=5,10; 2 of 2; throughput"},
		"a table for each scheme": {"/r/{scheme}.txt", map[string]string{"/r/a.txt": "threads ops_per_s\n1 10\n4 30\n", "/r/b.txt": "threads ops_per_s\n1 20\n"},
			"; scheme=a,b threads=1,4; 3 of 4; throughput"},
	} {
		t.Run(name, func(t *testing.T) {
			var p *Proposal
			var err error
			if strings.ContainsAny(tc.path, "{*") {
				var files []results.ScriptFile
				for _, name := range slices.Sorted(maps.Keys(tc.files)) {
					files = append(files, results.ScriptFile{Path: name, Text: tc.files[name]})
				}
				p, err = ProposeFiles(tc.path, files)
			} else {
				p, err = Propose(tc.path, tc.files[tc.path])
			}
			if err != nil {
				t.Fatal(err)
			}
			var axes []string
			for i, a := range p.Results.Axes {
				label := a.Name
				if a.Column != "" {
					label += "(" + a.Column + ")"
				}
				axes = append(axes, label+"="+strings.Join(p.Values[i], ","))
			}
			got := fmt.Sprintf("%s; %s; %d of %d; %s", p.Results.Format, strings.Join(axes, " "), p.Read, p.Points(), p.Metric)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("proposal (-want +got):\n%s", diff)
			}
		})
	}
}
