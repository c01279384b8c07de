package document_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/results"
)

// The data that the trials began with, and what they cost, are shown once for each data set.
func TestReportsSayWhatDataCost(t *testing.T) {
	set := func(digest string, copies int32, fastest, slowest float64) []results.Dataset {
		return []results.Dataset{{
			Name: "rows", Object: "rows-1", Digest: "sha256:" + digest, Bytes: 1 << 30, Files: 17, PreparedNodes: 2, PrepareSeconds: 94.2,
			Copies: copies, Method: "Copy", Check: "Content", FastestSeconds: fastest, SlowestSeconds: slowest,
		}}
	}
	perNode := func(nodes int) []results.Dataset {
		d := set("", 1, 1, 1)
		d[0].Name, d[0].Digest = "own", ""
		for i := range nodes {
			d[0].Digests = append(d[0].Digests, results.NodeDigest{Node: fmt.Sprint("worker-", i), Digest: fmt.Sprintf("sha256:%d%d%d", i, i, i)})
		}
		return d
	}
	e := results.Experiment{
		Name: "e",
		Trials: []results.TrialLine{
			{Name: "e-0", Outcome: "Succeeded", Datasets: set("0123456789abcdef", 6, 1.25, 2)}, {Name: "e-1", Outcome: "Invalid", Datasets: set("0123456789abcdef", 6, 1.5, 2.5)},
			{Name: "e-2", Outcome: "Succeeded", Datasets: set("ffff", 3, 1, 1)},
			{Name: "e-3", Outcome: "Succeeded", Datasets: perNode(2)}, {Name: "e-4", Outcome: "Succeeded", Datasets: perNode(2)},
			{Name: "e-5", Outcome: "Succeeded", Datasets: perNode(4)},
		},
	}
	for name, want := range map[string][]string{
		"text": {"Data sets", "0123456789ab", "1024.0"},
		"markdown": {"## Data sets", "| rows | 0123456789ab | 1024.0 | 17 | 94.2 | 2 | 2 | 12 | Copy | Content | 1.25 | 2.50 |", "| rows | ffff | 1024.0 | 17 | 94.2 | 2 | 1 | 3 | Copy | Content | 1.00 | 1.00 |",
			"| own | worker-0 000, worker-1 111 | 1024.0 | 17 | 94.2 | 2 | 2 | 2 | Copy |", "| own | differs on 4 nodes | 1024.0 | 17 | 94.2 | 2 | 1 | 1 | Copy |"},
		"html": {">Data sets</h2>", "0123456789ab"},
	} {
		var b bytes.Buffer
		if name == "text" {
			if err := format.Text(&b, e, format.TextOptions{Width: 160}); err != nil {
				t.Fatal(err)
			}
		} else if err := format.Forms[name].Write(&b, e); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("the report as %s does not say %q:\n%s", name, w, b.String())
			}
		}
	}
}
