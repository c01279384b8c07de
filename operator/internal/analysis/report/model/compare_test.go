package model_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// measured is an experiment over numbers of clients whose trials have these throughputs at each;
// latencies are the same everywhere.
func measured(name string, clients []string, throughput map[string][]float64) results.Experiment {
	e := results.Experiment{Name: name, UID: name, Axes: []results.Axis{{Name: "clients", Values: clients}}}
	for i, c := range clients {
		p := results.PointResult{Index: int32(i), Coordinates: map[string]string{"clients": c}, Valid: len(throughput[c]), Metrics: map[string]results.Aggregate{}}
		if xs := throughput[c]; len(xs) > 0 {
			same := make([]float64, len(xs))
			for k := range same {
				same[k] = 5
				e.Trials = append(e.Trials, results.TrialLine{PointIndex: p.Index, Outcome: stats.Succeeded, Throughput: xs[k], MeanMillis: 5, P99Millis: 5})
			}
			p.Metrics[stats.Throughput] = stats.Aggregate(xs)
			p.Metrics[stats.MeanLatency], p.Metrics[stats.P99Latency] = stats.Aggregate(same), stats.Aggregate(same)
		}
		e.Points = append(e.Points, p)
	}
	return e
}

func TestCompare(t *testing.T) {
	a := measured("a", []string{"5", "10", "20", "40"}, map[string][]float64{"5": {100, 101, 99}, "10": {200, 210, 190}, "20": {300}})
	b := measured("b", []string{"10", "5.0", "20", "80"}, map[string][]float64{"5.0": {150, 151, 149}, "10": {205, 195, 203}, "20": {600}, "80": {1, 2}})
	a.Provenance = &results.Provenance{Kernels: []string{"6.1"}, CPUs: []string{"2 x M"}, Images: map[string][]string{"client": {"x"}, "replica": {"old"}}}
	b.Provenance = &results.Provenance{Kernels: []string{"6.1"}, CPUs: []string{"2 x M"}, Images: map[string][]string{"client": {"x"}, "replica": {"new"}}}
	link := func(rtt float64) []results.NetworkLine {
		return []results.NetworkLine{{RegionLinks: results.RegionLinks{From: "us", To: "eu", MeasuredMinMillis: rtt, MeasuredMaxMillis: rtt + 0.2, Out: results.LinkAsked{DelayMillis: 10}, In: results.LinkAsked{DelayMillis: 10}}}}
	}
	a.Networks, b.Networks = link(20.2), link(23.9)
	one := func(e results.Experiment) []results.Experiment { return []results.Experiment{e} }
	c := model.Compare(one(a), one(b), 0.02)
	var got []string
	for _, r := range c.Rows {
		if r.Metric == stats.Throughput {
			got = append(got, fmt.Sprintf("%s tested=%v significant=%v ratio=%.2f", r.Point, r.Tested, r.Significant(), r.Ratio.Value))
		}
	}
	want := []string{"clients=5 tested=true significant=true ratio=1.50", "clients=10 tested=true significant=false ratio=1.00", "clients=20 tested=false significant=false ratio=2.00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if tested, significant := c.Tested(); tested != 6 || significant != 1 {
		t.Errorf("%d tested, %d significant", tested, significant)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(w *bytes.Buffer) error { return format.ComparisonText(w, c, format.TextOptions{Width: 200}) },
		"markdown": func(w *bytes.Buffer) error { return format.ComparisonMarkdown(w, c) },
	} {
		var page bytes.Buffer
		if err := write(&page); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"1 of 6 differences significant, if runs of the same deviate by 2%", "B is higher", "Mann-Whitney", "not tested", "Only A has clients=40.", "Only B has clients=80.",
			"image of replica", "network us - eu, asked 10 ms and 10 ms back", "measured RTT 20.20 to 20.40 ms", "measured RTT 23.90 to 24.10 ms",
		} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%s does not say %q:\n%s", name, want, page.String())
			}
		}
		for _, same := range []string{"kernel", "CPU", "image of client"} {
			if strings.Contains(page.String(), same) {
				t.Errorf("%s says that %s differs", name, same)
			}
		}
	}
	var csv bytes.Buffer
	if err := csvfile.Comparison(&csv, c); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(csv.String(), "\n")
	if len(lines) != 1+9+1 || !strings.HasPrefix(lines[1], "5,throughput,tx_s,3,100,1,3,150,1,1.5,") || !strings.HasSuffix(lines[1], ",true,") || !strings.HasSuffix(lines[7], ",2,,,300,,,,,,") {
		t.Errorf("CSV:\n%s", csv.String())
	}
}

// ordered are runs of one point in an order such as AAABBB; means gives each run its mean.
func ordered(order string, means func(place int) float64) (a, b []results.Experiment) {
	for place, side := range order {
		e := results.Experiment{Started: time.Unix(int64(1e9+3600*place), 0), Axes: []results.Axis{{Name: "x", Values: []string{"0"}}}}
		x := means(place)
		e.Points = []results.PointResult{{Coordinates: map[string]string{"x": "0"}, Valid: 3, Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate([]float64{0.99 * x, x, 1.01 * x})}}}
		if side == 'A' {
			a = append(a, e)
		} else {
			b = append(b, e)
		}
	}
	return a, b
}

// Once, runs of one side that all came before the other were compared as if they had alternated.
// Then 26% and 48% of identical versions differed, on machines that wander by 1% from run to run.
func TestCompareKnowsTheOrderOfRuns(t *testing.T) {
	for order, tc := range map[string]struct {
		review, most float64 // shares of identical versions that differ
		apart        bool
	}{
		"AAABBB": {0.265, 0.05, true}, "AAAAABBBBB": {0.484, 0.05, true}, "BBBAAA": {0.265, 0.05, true}, "AAAB": {0.07, 0.05, true},
		"ABABAB": {0, 0.05, false}, "ABBABAAB": {0, 0.05, false},
	} {
		rng := rand.New(rand.NewPCG(5, uint64(len(order))))
		plain, differ, widened := 0, 0, 0
		const experiments = 2000
		for range experiments {
			mean := 100.0
			means := make([]float64, len(order))
			for i := range means {
				mean *= 1 + 0.01*rng.NormFloat64()
				means[i] = mean
			}
			a, b := ordered(order, func(place int) float64 { return means[place] })
			c := model.Compare(a, b, 0)
			if c.Order != order || c.Apart != tc.apart || (c.OrderNote() != "") != tc.apart {
				t.Fatalf("%s: order %s, apart %v, note %q", order, c.Order, c.Apart, c.OrderNote())
			}
			if c.Rows[0].Significant() {
				differ++
			}
			if c.Rows[0].Widened {
				widened++
			}
			for i := range a {
				a[i].Started = time.Time{}
			}
			if without := model.Compare(a, b, 0); without.Rows[0].Significant() {
				plain++
			}
		}
		share := func(n int) float64 { return float64(n) / experiments }
		t.Logf("%s: %.1f%% differ, %.1f%% without the order; %.0f%% are wider", order, 100*share(differ), 100*share(plain), 100*share(widened))
		if share(differ) > tc.most || tc.review > 0 && share(plain) < tc.review-0.04 {
			t.Errorf("%s: %.1f%% of identical versions differ, and %.1f%% without the order", order, 100*share(differ), 100*share(plain))
		}
		if !tc.apart && share(widened) > 0.05 {
			t.Errorf("%s: %.1f%% of intervals are wider though runs alternate", order, 100*share(widened))
		}
	}
}

// An axis with one value in each experiment does not prevent a comparison, and a note names it. An
// axis that only A sweeps prevents it.
func TestCompareAxes(t *testing.T) {
	of := func(axes ...results.Axis) results.Experiment {
		e := results.Experiment{Axes: axes, Points: []results.PointResult{{Coordinates: map[string]string{}, Valid: 1, Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate([]float64{1})}}}}
		for _, a := range axes {
			e.Points[0].Coordinates[a.Name] = a.Values[0]
		}
		return e
	}
	group := func(axes ...results.Axis) []results.Experiment { return []results.Experiment{of(axes...)} }
	c := model.Compare(group(results.Axis{Name: "system", Values: []string{"old"}}), group(results.Axis{Name: "system", Values: []string{"new"}}), 0)
	if len(c.Rows) != 1 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "system is old in A and new in B") {
		t.Errorf("rows %v, notes %q", c.Rows, c.Notes)
	}
	c = model.Compare(group(results.Axis{Name: "system", Values: []string{"old", "older"}}), group(), 0)
	if len(c.Rows) != 0 || len(c.OnlyA) != 1 || len(c.OnlyB) != 1 {
		t.Errorf("%+v", c)
	}
	if tested, _ := c.Tested(); tested != 0 || !strings.Contains(c.Verdict(), "Nothing is decided: with one run on each side") {
		t.Errorf("nothing was tested, and that is not said: %s", c.Verdict())
	}
}

// testbed makes runs of one system: 24 points with a trial noise of 1%, and one deviation of 1%
// that all trials of a run share.
type testbed struct{ rng *rand.Rand }

func (b testbed) run(trials int) results.Experiment {
	e := results.Experiment{Axes: []results.Axis{{Name: "x", Values: []string{"0", "1"}}}}
	run := 100 * (1 + 0.01*b.rng.NormFloat64())
	for i := range 24 {
		xs := make([]float64, trials)
		for k := range xs {
			xs[k] = run * (1 + 0.01*b.rng.NormFloat64())
		}
		e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: map[string]string{"x": fmt.Sprint(i)}, Valid: trials,
			Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate(xs)}})
	}
	return e
}

func (b testbed) runs(n, trials int) []results.Experiment {
	var all []results.Experiment
	for range n {
		all = append(all, b.run(trials))
	}
	return all
}

// Once, trials of a run counted as independent draws of the differences between runs. Two runs of
// one system were different in 11, 36 and 62% of comparisons with 3, 5 and 10 trials of each point.
// At most 5% may be; of 300 comparisons 24 are allowed, which 5% exceed in 1% of all draws.
func TestCompareRunsOfTheSame(t *testing.T) {
	b := testbed{rand.New(rand.NewPCG(2026, 14))}
	const comparisons, allowed = 300, 24
	for name, tc := range map[string]struct {
		runsA, runsB int
		between      float64
		tested       bool
	}{
		"one and one":                      {1, 1, 0, false},
		"one and one, 1% between":          {1, 1, 0.01, true},
		"three and three":                  {3, 3, 0, true},
		"four earlier ones and one of now": {4, 1, 0, true},
	} {
		for _, trials := range []int{3, 5, 10} {
			alarms := 0
			for range comparisons {
				tested, significant := model.Compare(b.runs(tc.runsA, trials), b.runs(tc.runsB, trials), tc.between).Tested()
				if (tested == 24) != tc.tested {
					t.Fatalf("%s: %d of 24 rows are tested", name, tested)
				}
				if significant > 0 {
					alarms++
				}
			}
			t.Logf("%s, %d trials: %.1f%% false alarms", name, trials, 100*float64(alarms)/comparisons)
			if alarms > allowed {
				t.Errorf("%s, %d trials: %d of %d comparisons of the same raise an alarm", name, trials, alarms, comparisons)
			}
		}
	}
}

// A system that is 5% faster is seen.
func TestCompareRunsSeesADifference(t *testing.T) {
	b := testbed{rand.New(rand.NewPCG(2026, 15))}
	seen := 0
	for range 100 {
		faster := b.runs(5, 5)
		for _, e := range faster {
			for _, p := range e.Points {
				a := p.Metrics[stats.Throughput]
				a.Mean *= 1.05
				p.Metrics[stats.Throughput] = a
			}
		}
		if _, significant := model.Compare(b.runs(5, 5), faster, 0).Tested(); significant > 0 {
			seen++
		}
	}
	if seen < 80 {
		t.Errorf("a difference of 5%% is seen in %d of 100 comparisons of five runs with five, want 80 or more", seen)
	}
}
