package imported

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a script has left says mostly itself how to read it.
func TestProposalsFromAFileOfResults(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string // axes with values; numbers; rows of points; what is not read
		err  string
	}{
		"columns that say what they are": {"scheme\tload\tthroughput\tp50_ms\tp99_ms\na\tx\t10\t1\t2\na\ty\t20\t1\t2\nb\tx\t30\t1\t2\nb\ty\t40\t1\t2\n",
			"scheme=a,b load=x,y; ; 4 of 4; ", ""},
		"columns of other names": {"policy shards ops_per_s mean_latency_us cpu\nlock 1 100 20 5\nlock 4 400 10 9\n",
			"shards=1,4; Throughput=ops_per_s(ops/s); 2 of 2; cpu", ""},
		"a column of two words":  {"Num Clients,kops,p99 (ms)\n1,1.5,3\n8,2.5,4\n", "numClients(Num Clients)=1,8; Throughput=kops(kops/s); 2 of 2; ", ""},
		"a row that is missing":  {"a b tput\nx 1 5\ny 2 6\n", "a=x,y b=1,2; ; 2 of 4; ", ""},
		"one row":                {"tput p99_us\n5 80\n", "; ; 1 of 1; ", ""},
		"a latency without unit": {"a latency\nx 5\ny 7\n", "", "no column of a, latency looks like a throughput or a latency"},
		"nothing":                {"\n", "", "has no row"},
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
