package claims_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

// TestDoc runs every example of the reference page: its sweep, its trials, its claims with the verdicts beside them, and its refusals.
func TestDoc(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("%d yaml blocks, want the sweep and the claims", len(blocks))
	}
	axes := docAxes(t, blocks[0][1])
	lines := docTrials(t, page)
	points := stats.Points(lines)
	if len(points) != 6 || points[0].Valid != 3 {
		t.Fatalf("the table of trials gives %d points", len(points))
	}
	judged := 0
	for _, block := range blocks[1:] {
		judged += docClaims(t, block[1], axes, points, lines)
	}
	if judged < 9 {
		t.Errorf("%d claims were judged; the page has more", judged)
	}
	refusals := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| (expr: .*) \\|$").FindAllStringSubmatch(page, -1)
	if len(refusals) < 7 {
		t.Errorf("%d refusals were found; the page has more", len(refusals))
	}
	for _, r := range refusals {
		err := claims.Check(v1alpha1.Claim{Expr: r[1]}, axes)
		if err == nil || err.Error() != r[2] {
			t.Errorf("%s\ngot:  %v\npage: %s", r[1], err, r[2])
		}
	}
}

func docAxes(t *testing.T, block string) []results.Axis {
	t.Helper()
	var doc struct {
		Sweep []v1alpha1.Axis `json:"sweep"`
	}
	if err := yaml.Unmarshal([]byte(block), &doc); err != nil {
		t.Fatal(err)
	}
	var axes []results.Axis
	for _, a := range doc.Sweep {
		axis := results.Axis{Name: a.Axis}
		for _, v := range a.Values {
			axis.Values = append(axis.Values, v.String())
		}
		for _, p := range a.Points {
			axis.Values = append(axis.Values, p.Name)
		}
		axes = append(axes, axis)
	}
	return axes
}

// docTrials reads the table of trials: clients, variant, then a list for each metric.
func docTrials(t *testing.T, page string) []results.TrialLine {
	t.Helper()
	var lines []results.TrialLine
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (\S+) \| ([0-9., ]+) \| ([0-9., ]+) \| ([0-9., ]+) \|$`).FindAllStringSubmatch(page, -1)
	for point, row := range rows {
		throughput, mean, p99 := numbers(t, row[3]), numbers(t, row[4]), numbers(t, row[5])
		for i := range throughput {
			lines = append(lines, results.TrialLine{PointIndex: int32(point), Coordinates: map[string]string{"clients": row[1], "variant": row[2]},
				Outcome: stats.Succeeded, Repetition: int32(i), Throughput: throughput[i], MeanMillis: mean[i], P50Millis: mean[i], P99Millis: p99[i], Committed: 1000, Aborted: 10})
		}
	}
	return lines
}

func numbers(t *testing.T, list string) []float64 {
	t.Helper()
	var xs []float64
	for _, text := range strings.Split(list, ", ") {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		xs = append(xs, x)
	}
	return xs
}

// docClaims judges the claims of one block; the comment after each is its verdict.
func docClaims(t *testing.T, block string, axes []results.Axis, points []results.PointResult, lines []results.TrialLine) int {
	t.Helper()
	var cs []v1alpha1.Claim
	if err := yaml.UnmarshalStrict([]byte(block), &cs); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^  # (\w+)$`).FindAllStringSubmatch(block, -1)
	if len(want) != len(cs) {
		t.Fatalf("%d claims and %d verdicts", len(cs), len(want))
	}
	for i, r := range claims.Evaluate(cs, points, lines) {
		if r.Verdict != want[i][1] {
			t.Errorf("%s is %s, the page says %s; %s", r.Name, r.Verdict, want[i][1], r.Message)
		}
		if err := claims.Check(cs[i], axes); (err == nil) != (cs[i].Name != "forgotten") {
			t.Errorf("%s: check says %v", r.Name, err)
		}
	}
	return len(cs)
}
