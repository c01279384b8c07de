package reported

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
)

var folder = os.DirFS("../../../../experiments/reported")

// size of a file: the counts that a mistake in typing would change.
type size struct{ Curves, Points, Marks, Inferred int }

func TestEveryFileOfTheProject(t *testing.T) {
	files, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]size{}
	for _, f := range files {
		s := size{Curves: len(f.Curves)}
		for _, c := range f.Curves {
			s.Points += c.Points()
			s.Marks += len(c.Marks)
			if c.XInferred != "" {
				s.Inferred++
			}
		}
		got[f.Name] = s
	}
	// Counted in the sources by hand: columns of each table times its rows of numbers.
	want := map[string]size{
		// 8 systems, 3 workloads each. Columns: Pesto 10 8 9, unreplicated 8 8 9, Peloton 8 8 8,
		// with signatures 5 7 7. HS 7 8 9, Smart 6 9 9, Postgres 9 9 9, PB 9 9 9. That is 197, two
		// rows each, less one latency of Smart's Seats. Marks: Pesto 3 2 2, unreplicated 1 each,
		// Peloton 1 each, HS 2, Smart 2, PB 1 each.
		"pesto-workloads": {Curves: 24, Points: 2*197 - 1, Marks: 20},
		"pesto-sharding":  {Curves: 3, Points: 7},
		// 3 rows of 6.
		"pesto-point-scan": {Curves: 3, Points: 18},
		// U 6 6 7, Z 6 5 5.
		"pesto-inconsistent": {Curves: 6, Points: 2 * 35, Inferred: 6},
		// U 6 8 7, Z 6 7 6.
		"pesto-failure": {Curves: 6, Points: 2 * 40, Inferred: 6},
		// For each workload a baseline, 8 pairs of equiv-forced and 6 pairs of the three others.
		"basil-client-failures": {Curves: 10, Points: 2 * (1 + 2*8 + 3*2*6)},
		"basil-crypto":          {Curves: 2, Points: 4},
		"basil-reads":           {Curves: 1, Points: 3},
		"basil-sharding":        {Curves: 2, Points: 6},
		"basil-fast-path":       {Curves: 2, Points: 4},
		"basil-batching":        {Curves: 2, Points: 10},
		// 6 functions: time, minor words and percentage each; major words and promoted ones of two.
		"hotstuff-library": {Curves: 1, Points: 3*6 + 2*2},
		// The line's 11 columns without the two of threads.
		"eiger-port": {Curves: 3, Points: 9},
		// There are 4 schemes each. Exp#1 has 3 rows of 4, Exp#2 1 of 4, Exp#4 3 of 2, Exp#5 1 of
		// 2. Exp#6 has 2 of 8, Exp#7 3 of 4, Exp#9 3 of 2.
		"hats": {Curves: 28, Points: 4 * (12 + 4 + 6 + 2 + 16 + 12 + 6)},
		// 4 lines of 7 numbers; the examples: write 3 and 9 numbers, storage 3, breakdown 6,
		// recovery 3 and 1, resources 4.
		"dmtree": {Curves: 7, Points: 28 + 12 + 3 + 6 + 4 + 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("curves and points of the files (-want +got):\n%s", diff)
	}
}

// TestLittlesLaw: in a closed loop, throughput times latency is the number of clients. It finds
// numbers that were copied to the wrong column.
func TestLittlesLaw(t *testing.T) {
	files, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	// Some numbers of the sources do not fit the law. The files note each of them.
	odd := map[string]bool{"peloton-sigs-auctionmark at 50": true, "peloton-smart-tpcc at 50": true, "peloton-hs-auctionmark at 60": true}
	found := map[string]bool{}
	checked := 0
	for _, f := range files {
		for _, c := range f.Curves {
			throughput, latency := c.Column("Throughput"), c.Column("MeanLatency")
			if c.Axis != "clients" || throughput == nil || latency == nil {
				continue
			}
			for i, x := range c.X {
				if latency.Numbers[i] == nil {
					continue
				}
				clients := *throughput.Numbers[i] * *latency.Numbers[i] / 1000
				n, err := strconv.ParseFloat(x.String(), 64)
				if err != nil {
					t.Fatal(err)
				}
				checked++
				// The artifact's throughput is 3 to 6% high; latencies have two or three digits,
				// inferred clients one or two.
				if ratio := clients / n; ratio < 0.98 || ratio > 1.14 {
					found[c.Name+" at "+x.String()] = true
				}
			}
		}
	}
	if diff := cmp.Diff(odd, found); diff != "" || checked < 250 {
		t.Errorf("of %d points, those that do not fit (-want +got):\n%s", checked, diff)
	}
}

func TestSeries(t *testing.T) {
	b := []byte(`
source: {title: T, section: S, read: R}
curves:
- name: a
  axis: clients
  x: [1, 2]
  values:
  - {metric: Throughput, unit: Mops/s, numbers: [0.565148, ~]}
  - {metric: P99Latency, unit: us, numbers: [12345, 7]}
  - {metric: DiskIO, unit: MiB, numbers: [1, 2]}
  note: Clear.
  leftOut: A column.
`)
	f, err := Decode("x.yaml", b)
	if err != nil {
		t.Fatal(err)
	}
	series, other := f.Curves[0].Series(map[string]v1alpha1.Value{"variant": v1alpha1.NewValue("v")})
	v := v1alpha1.NewValue
	at := map[string]v1alpha1.Value{"variant": v("v")}
	want := []v1alpha1.ReportedSeries{
		{Name: "a-throughput", Metric: "Throughput", Unit: "tx/s", At: at, Axis: "clients", Note: "Clear. Left out: A column.",
			Values: []v1alpha1.ReportedValue{{X: v("1"), Y: v("565148")}}},
		{Name: "a-p99", Metric: "P99Latency", Unit: "ms", At: at, Axis: "clients", Note: "Clear. Left out: A column.",
			Values: []v1alpha1.ReportedValue{{X: v("1"), Y: v("12.345")}, {X: v("2"), Y: v("0.007")}}},
	}
	if diff := cmp.Diff(want, series, cmp.Comparer(v1alpha1.Value.Equal)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"DiskIO (MiB)"}, other); diff != "" {
		t.Errorf("other metrics (-want +got):\n%s", diff)
	}
}

// TestEveryCurveFitsAnExperiment: every curve that can be mapped stays within the bounds of the
// API.
func TestEveryCurveFitsAnExperiment(t *testing.T) {
	files, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	mapped := 0
	for _, f := range files {
		for _, c := range f.Curves {
			series, _ := c.Series(nil)
			for _, s := range series {
				mapped++
				if len(s.Name) > 63 || len(s.Note) > 1024 || len(s.Values) == 0 || len(s.Values) > 64 || !curveName.MatchString(s.Name) {
					t.Errorf("%s: series %q: name %d, note %d characters, %d values", f.Name, s.Name, len(s.Name), len(s.Note), len(s.Values))
				}
			}
		}
	}
	if mapped < 100 {
		t.Errorf("only %d series map", mapped)
	}
}

func TestMistakesAreRefused(t *testing.T) {
	head := "source: {title: T, section: S, read: R}\ncurves:\n"
	tests := map[string]struct{ in, want string }{
		"no source":        {"curves: []", "source: say title"},
		"no curves":        {head, "there are 0"},
		"unknown field":    {head + "- {name: a, axes: x}", `x.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "axes"`},
		"name":             {head + "- {name: A}", `curves[0] "A": name`},
		"axis":             {head + "- {name: a, axis: a-b}", "axis:"},
		"no x":             {head + "- {name: a, axis: b}", "x: there are 0 values"},
		"x twice":          {head + "- {name: a, axis: b, x: [1, 1], values: [{metric: M, unit: u, numbers: [1, 1]}]}", "there twice"},
		"no values":        {head + "- {name: a, axis: b, x: [1]}", "values: there are none"},
		"length":           {head + "- {name: a, axis: b, x: [1, 2], values: [{metric: M, unit: u, numbers: [1]}]}", "M has 1 numbers, x has 2 values"},
		"no number":        {head + "- {name: a, axis: b, x: [1], values: [{metric: M, unit: u, numbers: [~]}]}", "M has no number"},
		"no unit":          {head + "- {name: a, axis: b, x: [1], values: [{metric: M, numbers: [1]}]}", "M has no unit"},
		"metric":           {head + "- {name: a, axis: b, x: [1], values: [{metric: m, unit: u, numbers: [1]}]}", "UpperCamelCase"},
		"metric twice":     {head + "- {name: a, axis: b, x: [1], values: [{metric: M, unit: u, numbers: [1]}, {metric: M, unit: u, numbers: [1]}]}", "M is there twice"},
		"text":             {head + "- {name: a, axis: b, x: [1], values: [{metric: M, unit: u, numbers: [x]}]}", "x.yaml: "},
		"NaN":              {head + "- {name: a, axis: b, x: [1], values: [{metric: M, unit: u, numbers: [.nan]}]}", "x.yaml: "},
		"key twice":        {head + "- {name: a, name: b}", "x.yaml: "},
		"curve twice":      {head + "- &c {name: a, axis: b, x: [1], values: [{metric: M, unit: u, numbers: [1]}]}\n- *c", "the name \"a\" is there twice"},
		"mark of 0":        {head + "- {name: a, axis: b, x: [1], values: [{metric: M, unit: u, numbers: [1]}], marks: [{name: k, values: [{metric: M, unit: u}]}]}", "above 0"},
		"mark of no curve": {head + "- {name: a, axis: b, x: [1], values: [{metric: M, unit: u, numbers: [1]}], marks: [{name: k}]}", "each has a name and values"},
		"too large":        {head + strings.Repeat("#", maxFile), "larger than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("x.yaml", []byte(tc.in))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}
