package stats_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/reported"
	"assay.dev/assay/operator/internal/results/stats"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/statistics.md")

const page = "../../../../docs/reference/statistics.md"

// reportedCurve is a latency-throughput curve of experiments/reported.
type reportedCurve struct {
	name   string
	points []stats.CurvePoint
	// ankle is the point that the authors call the ankle, picked by eye; -1 where they name none.
	ankle int
}

func reportedCurves(t *testing.T) []reportedCurve {
	t.Helper()
	files, err := reported.Load(os.DirFS("../../../../experiments/reported"))
	if err != nil {
		t.Fatal(err)
	}
	var curves []reportedCurve
	for _, f := range files {
		for _, c := range f.Curves {
			throughput, latency := c.Column("Throughput"), c.Column("MeanLatency")
			if c.Axis != "clients" || throughput == nil || latency == nil || throughput.Unit != "tx/s" || latency.Unit != "ms" {
				continue
			}
			r := reportedCurve{name: c.Name, ankle: -1}
			for i, x := range throughput.Numbers {
				if y := latency.Numbers[i]; x != nil && y != nil {
					r.points = append(r.points, stats.CurvePoint{Throughput: *x, Latency: *y})
				}
			}
			for _, m := range c.Marks {
				if m.Name == "ankle" {
					r.ankle = nearest(t, r.points, m)
				}
			}
			// The figure of failures repeats the curves of another figure.
			if !slices.ContainsFunc(curves, func(o reportedCurve) bool { return slices.Equal(o.points, r.points) }) {
				curves = append(curves, r)
			}
		}
	}
	return curves
}

// nearest is the point that a mark means: that of its throughput, or of its latency where no
// throughput is given.
func nearest(t *testing.T, points []stats.CurvePoint, m reported.Mark) int {
	t.Helper()
	best, least := -1, 0.01 // share by which a mark may be rounded
	for _, v := range m.Values {
		for i, p := range points {
			x := p.Throughput
			if v.Metric == "MeanLatency" {
				x = p.Latency
			}
			if off := math.Abs(v.Number/x - 1); off < least {
				best, least = i, off
			}
		}
	}
	if best < 0 {
		t.Fatalf("the mark %+v is no point of its curve", m)
	}
	return best
}

// rules are the rules that were compared, for the table of the documentation.
var rules = []struct {
	name string
	pick func(curve []stats.CurvePoint) int
}{
	{"latency at most twice the least (this one)", func(curve []stats.CurvePoint) int {
		k, err := stats.FindKnee(curve)
		if err != nil {
			return -1
		}
		return k.Index
	}},
	{"greatest throughput/latency (Kleinrock's power)", func(curve []stats.CurvePoint) int {
		return greatest(curve, func(p stats.CurvePoint) float64 { return p.Throughput / p.Latency })
	}},
	{"Kneedle, on throughput and latency scaled to [0, 1]", func(curve []stats.CurvePoint) int {
		x0, x1, y0, y1 := curve[0].Throughput, 0.0, curve[0].Latency, 0.0
		for _, p := range curve {
			x0, x1, y0, y1 = math.Min(x0, p.Throughput), math.Max(x1, p.Throughput), math.Min(y0, p.Latency), math.Max(y1, p.Latency)
		}
		return greatest(curve, func(p stats.CurvePoint) float64 { return (p.Throughput-x0)/(x1-x0) - (p.Latency-y0)/(y1-y0) })
	}},
	{"first point with 95% of the peak", func(curve []stats.CurvePoint) int {
		peak, _ := stats.Peak(curve)
		for i, p := range curve {
			if p.Throughput >= 0.95*curve[peak].Throughput {
				return i
			}
		}
		return -1
	}},
	{"peak throughput", func(curve []stats.CurvePoint) int {
		peak, _ := stats.Peak(curve)
		return peak
	}},
}

func greatest(curve []stats.CurvePoint, f func(stats.CurvePoint) float64) int {
	best := 0
	for i, p := range curve {
		if f(p) > f(curve[best]) {
			best = i
		}
	}
	return best
}

// The knee of every latency-throughput curve that the artifact of Pesto prints, beside the points
// that its authors picked. The tables are part of the documentation, which says why they differ
// where they do.
func TestKneesOfReportedCurves(t *testing.T) {
	var known, others, compared strings.Builder
	known.WriteString("| curve | authors' ankle | our knee | bound on the latency | throughput against the authors' |\n|---|---|---|---|---|\n")
	others.WriteString("| curve | our knee | bound on the latency | peak |\n|---|---|---|---|\n")
	hits, off := make([]int, len(rules)), make([]float64, len(rules))
	ankles := 0
	curves := reportedCurves(t)
	for _, c := range curves {
		k, err := stats.FindKnee(c.points)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		peak, err := stats.Peak(c.points)
		if err != nil {
			t.Fatal(err)
		}
		knee := show(k.CurvePoint)
		if len(k.Cautions) > 0 {
			knee += ", or beyond the end"
		}
		if c.ankle < 0 {
			fmt.Fprintf(&others, "| %s | %s | %.1f ms | %s |\n", c.name, knee, k.Bound, show(c.points[peak]))
			continue
		}
		ankles++
		at := c.points[c.ankle]
		verdict := "the same point"
		if c.ankle != k.Index {
			verdict = fmt.Sprintf("%+.1f%%", 100*(k.Throughput/at.Throughput-1))
		}
		fmt.Fprintf(&known, "| %s | %s | %s | %.1f ms | %s |\n", c.name, show(at), knee, k.Bound, verdict)
		for i, rule := range rules {
			p := rule.pick(c.points)
			if p == c.ankle {
				hits[i]++
			}
			off[i] = math.Max(off[i], math.Abs(c.points[p].Throughput/at.Throughput-1))
		}
	}
	compared.WriteString("| rule | picks the authors' point | throughput at most off by |\n|---|---|---|\n")
	for i, rule := range rules {
		fmt.Fprintf(&compared, "| %s | %d of %d | %.0f%% |\n", rule.name, hits[i], ankles, 100*off[i])
	}
	if ankles != 6 || len(curves) != 34 {
		t.Errorf("%d curves, %d with an ankle; want 34 and 6", len(curves), ankles)
	}
	inPage(t, "knees", known.String())
	inPage(t, "rules", compared.String())
	inPage(t, "other knees", others.String())
}

func show(p stats.CurvePoint) string {
	return fmt.Sprintf("%.0f tx/s at %.1f ms", p.Throughput, p.Latency)
}

// inPage checks that a table stands in the documentation, between the comments that name it, or
// writes it there with -update.
func inPage(t *testing.T, name, table string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	from, to := "<!-- table: "+name+" -->\n", "<!-- end of table -->"
	_, rest, found := strings.Cut(text, from)
	now, _, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("%s has no table %q", page, name)
	}
	if *update {
		if err := os.WriteFile(page, []byte(strings.Replace(text, from+now+to, from+table+to, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table, now); diff != "" {
		t.Errorf("table %q of %s is not what the code gives: run go test ./operator/internal/results/stats -update (-want +got):\n%s", name, page, diff)
	}
}

func TestFindKnee(t *testing.T) {
	curve := []stats.CurvePoint{{100, 10}, {180, 11}, {250, 14}, {300, 20}, {310, 31}, {290, 40}}
	for name, tc := range map[string]struct {
		curve    []stats.CurvePoint
		want     int
		cautions []stats.Caution
	}{
		"the bound belongs to the knee":            {curve: curve, want: 3},
		"a tail above the bound does not move it":  {curve: append(curve[:len(curve):len(curve)], stats.CurvePoint{Throughput: 900, Latency: 1000}), want: 3},
		"the order does not matter":                {curve: []stats.CurvePoint{curve[4], curve[3], curve[0], curve[2]}, want: 1},
		"the curve ends before its knee":           {curve: curve[:3], want: 2, cautions: []stats.Caution{stats.Unsaturated}},
		"saturated, but never slow":                {curve: []stats.CurvePoint{{100, 10}, {200, 12}, {190, 15}}, want: 1},
		"slow when idle":                           {curve: []stats.CurvePoint{{10, 19}, {100, 10}, {180, 20}, {190, 21}}, want: 2},
		"of equal throughputs the lesser latency":  {curve: []stats.CurvePoint{{100, 10}, {200, 15}, {200, 12}, {210, 25}}, want: 2},
		"one point is within the bound: the least": {curve: []stats.CurvePoint{{1, 1}, {2, 10}, {3, 20}}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := stats.FindKnee(tc.curve)
			if err != nil {
				t.Fatal(err)
			}
			if k.Index != tc.want || k.CurvePoint != tc.curve[tc.want] {
				t.Errorf("knee = %+v, want point %d", k, tc.want)
			}
			if diff := cmp.Diff(tc.cautions, k.Cautions); diff != "" {
				t.Errorf("cautions (-want +got):\n%s", diff)
			}
		})
	}
	for name, bad := range map[string][]stats.CurvePoint{
		"two points":      curve[:2],
		"no latency":      {{1, 1}, {2, 0}, {3, 3}},
		"NaN":             {{1, 1}, {math.NaN(), 2}, {3, 3}},
		"an infinity":     {{1, 1}, {2, math.Inf(1)}, {3, 3}},
		"less than zero":  {{1, 1}, {-2, 1}, {3, 3}},
		"no point at all": nil,
	} {
		if k, err := stats.FindKnee(bad); err == nil {
			t.Errorf("%s: FindKnee = %+v, want an error", name, k)
		}
	}
}

func TestPeak(t *testing.T) {
	if i, err := stats.Peak([]stats.CurvePoint{{100, 10}, {200, 15}, {200, 12}, {190, 5}}); err != nil || i != 2 {
		t.Errorf("Peak = %d, %v, want point 2", i, err)
	}
	if _, err := stats.Peak(nil); err == nil {
		t.Error("Peak of nothing: want an error")
	}
}
