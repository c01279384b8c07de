package claims_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// faults of the page, and of the other tests.
var faults = []string{"crash", "stall"}

// measurements of the page.
var measurements = []string{"cpuSeconds"}

// TestDoc runs every example of the reference page: its sweep, its trials, its claims with the
// verdicts beside them, and its refusals.
func TestDoc(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	blocks := regexp.MustCompile("(?s)```yaml\n(?:# [^\n]*\n)?(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("%d yaml blocks, want the sweep and the claims", len(blocks))
	}
	axes := docAxes(t, blocks[0][1])
	lines := docTrials(t, page)
	docRecoveries(t, page, lines)
	docMeasurements(t, page, lines)
	points := stats.Points(lines)
	if len(points) != 9 || points[0].Valid != 3 {
		t.Fatalf("the table of trials gives %d points", len(points))
	}
	examples := ""
	judged := 0
	capacities := docCapacities(t, page)
	for _, block := range blocks[1:] {
		if strings.HasPrefix(block[1], "reported:") {
			continue // docSeries reads it
		}
		of := slices.Clone(axes)
		of[0].Searched = strings.Contains(block[1], "capacity(")
		judged += docClaims(t, block[1], of, points, lines, capacities, docSeries(t, page))
		examples += block[1]
	}
	if judged < 25 {
		t.Errorf("%d claims were judged; the page has more", judged)
	}
	for _, name := range functionNames(t) {
		if !regexp.MustCompile("`"+name+`\(.*\)`+"`.* \\|").MatchString(page) || !strings.Contains(examples, name+"(") {
			t.Errorf("the page has no row and example for %s", name)
		}
	}
	refusals := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| (expr: .*) \\|$").FindAllStringSubmatch(page, -1)
	if len(refusals) < 13 {
		t.Errorf("%d refusals were found; the page has more", len(refusals))
	}
	for _, r := range refusals {
		err := claims.Check(v1alpha1.Claim{Expr: r[1]}, axes, faults, measurements...)
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
				Outcome: stats.Succeeded, Repetition: int32(i), Number: int32(9*i + point), Throughput: throughput[i], MeanMillis: mean[i], P10Millis: mean[i] / 2, P50Millis: mean[i], P90Millis: 2 * mean[i],
				P99Millis: p99[i], P999Millis: 2 * p99[i], Committed: 20000, Aborted: 200, Errors: 9, Timeouts: 6,
				OfAll:          &results.Percentiles{P10Millis: mean[i] / 2, P50Millis: mean[i], P90Millis: 2 * mean[i], P99Millis: p99[i], P999Millis: 2 * p99[i]},
				CorrectClients: int32(numbers(t, row[1])[0] * 4 / 5)})
		}
	}
	return lines
}

// docRecoveries reads the table of the fault and adds it to the trials.
func docRecoveries(t *testing.T, page string, lines []results.TrialLine) {
	t.Helper()
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (\S+) \| ([0-9., ]+) \| ([0-9., ]+) \| ([>0-9., ]+) \| ([0-9., ]+) \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) != 2 {
		t.Fatalf("%d rows about the fault, want 2", len(rows))
	}
	for _, row := range rows {
		detect, dip, back, lost := numbers(t, row[3]), numbers(t, row[4]), numbers(t, strings.ReplaceAll(row[5], ">", "")), numbers(t, row[6])
		for i := range lines {
			l := &lines[i]
			if k := l.Repetition; l.Coordinates["clients"] == row[1] && l.Coordinates["variant"] == row[2] {
				l.Recovery = []results.Recovery{{Fault: "crash", Time: 1, Dipped: true, Recovered: !strings.Contains(row[5], ">"), DetectMillis: detect[k], Depth: dip[k],
					RecoverMillis: back[k], LostTransactions: lost[k]}}
			}
		}
	}
}

// docMeasurements adds the page's values of Prometheus to the trials.
func docMeasurements(t *testing.T, page string, lines []results.TrialLine) {
	t.Helper()
	rows := regexp.MustCompile(`(?m)^\| (\S+) \| ([0-9.]+, [0-9., ]+) \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) != 2 {
		t.Fatalf("%d rows about the measurement, want 2", len(rows))
	}
	for _, row := range rows {
		xs := numbers(t, row[2])
		for i := range lines {
			if l := &lines[i]; l.Coordinates["clients"] == "5" && l.Coordinates["variant"] == row[1] {
				l.Measurements = []results.Measurement{{Name: measurements[0], Value: &xs[l.Repetition]}}
			}
		}
	}
}

// docCapacities reads the table of the outcomes of searches.
func docCapacities(t *testing.T, page string) []results.Capacity {
	t.Helper()
	rows := regexp.MustCompile(`(?m)^\| (\S+) \| (\d+) \| (\d+) to (\d+) \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) != 2 {
		t.Fatalf("%d rows about searches, want 2", len(rows))
	}
	var capacities []results.Capacity
	for _, row := range rows {
		xs := numbers(t, strings.Join(row[2:], ", "))
		capacities = append(capacities, results.Capacity{Axis: "clients", At: map[string]string{"variant": row[1]}, From: 20, To: 200, Trials: 11,
			Outcome: string(v1alpha1.CapacityFound), Capacity: &xs[0], Low: &xs[1], High: &xs[2]})
	}
	return capacities
}

// functionNames are the names in the error for an unknown function without a similar name.
func functionNames(t *testing.T) []string {
	t.Helper()
	_, list, found := strings.Cut(claims.Check(v1alpha1.Claim{Expr: "zzzzzzzz() < 1"}, nil, nil).Error(), "the functions are ")
	if !found {
		t.Fatal("the language does not list its functions")
	}
	return strings.Split(list, ", ")
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

// docSeries is the reported curve of the page, which is a block of its own.
func docSeries(t *testing.T, page string) v1alpha1.ReportedSeries {
	t.Helper()
	block := regexp.MustCompile("(?s)```yaml\n# [^\n]*\nreported:\n(.*?)```").FindStringSubmatch(page)
	if block == nil {
		t.Fatal("the page has no reported series")
	}
	var all []v1alpha1.ReportedSeries
	if err := yaml.UnmarshalStrict([]byte(block[1]), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d series, %v", len(all), err)
	}
	return all[0]
}

// docClaims judges the claims of one block; the comment after each is its verdict.
func docClaims(t *testing.T, block string, axes []results.Axis, points []results.PointResult, lines []results.TrialLine, capacities []results.Capacity, reported v1alpha1.ReportedSeries) int {
	t.Helper()
	var cs []v1alpha1.Claim
	if err := yaml.UnmarshalStrict([]byte(block), &cs); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^  # (\w+)$`).FindAllStringSubmatch(block, -1)
	if len(want) != len(cs) {
		t.Fatalf("%d claims and %d verdicts", len(cs), len(want))
	}
	for i, r := range claims.EvaluateWith(cs, points, lines, capacities, reported) {
		if r.Verdict != want[i][1] {
			t.Errorf("%s is %s, the page says %s; %s", r.Name, r.Verdict, want[i][1], r.Message)
		}
		if err := claims.Check(cs[i], axes, faults, measurements...); (err == nil) != (cs[i].Name != "forgotten") {
			t.Errorf("%s: check says %v", r.Name, err)
		}
	}
	return len(cs)
}

// The page of statistics says of each verdict what it assumes, how often it is wrong and where it
// fails. Every function of the language is in a row of that table.
func TestEachVerdictHasItsRates(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/statistics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| verdict about | assumes | wrong | fails where |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	about := ""
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "|\n"), "|")
		for _, cell := range cells {
			if len(cells) != 4 || strings.TrimSpace(cell) == "" {
				t.Errorf("the row has %d cells, want 4, none empty: %s", len(cells), row)
			}
		}
		about += cells[0]
	}
	percentile := regexp.MustCompile(`^p\d+_latency$`)
	for _, name := range functionNames(t) {
		if !strings.Contains(about, "`"+percentile.ReplaceAllString(name, "p50_latency")+"`") {
			t.Errorf("no row says how often verdicts about %s are wrong", name)
		}
	}
}
