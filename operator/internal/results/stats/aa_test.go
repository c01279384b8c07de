package stats_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/results/stats"
)

// machines is a testbed that drifts: its speed is a random walk, one step for each trial, and each
// trial has noise of its own.
type machines struct {
	rng   *rand.Rand
	drift float64
}

// The noise of a trial is 2% of its throughput; over an experiment of 20 trials the machines drift
// by about 4%.
const (
	noise = 0.02
	step  = 0.01
)

// trial is the throughput of one trial of any variant: they are identical.
func (m *machines) trial() float64 {
	m.drift += step * m.rng.NormFloat64()
	return 1000 * (1 + m.drift + noise*m.rng.NormFloat64())
}

// experiment runs rounds trials of two variants.
func (m *machines) experiment(rounds int, interleaved bool) (a, b []float64) {
	m.drift = 0
	if !interleaved {
		for range rounds {
			a = append(a, m.trial())
		}
		for range rounds {
			b = append(b, m.trial())
		}
		return a, b
	}
	for range rounds { // each round runs every variant once, in random order
		if m.rng.IntN(2) == 0 {
			a = append(a, m.trial())
			b = append(b, m.trial())
		} else {
			b = append(b, m.trial())
			a = append(a, m.trial())
		}
	}
	return a, b
}

// different says which methods call the two variants different.
func different(t *testing.T, a, b []float64) map[string]bool {
	t.Helper()
	p, _, err := stats.Paired(a, b)
	if err != nil {
		t.Fatal(err)
	}
	q, _, err := stats.PairedRatio(a, b)
	if err != nil {
		t.Fatal(err)
	}
	u, err := stats.MannWhitney(a, b)
	if err != nil {
		t.Fatal(err)
	}
	excludes0 := func(e stats.Estimate) bool { return e.Low > 0 || e.High < 0 }
	return map[string]bool{
		"Welch":        excludes0(stats.Difference(stats.Aggregate(a), stats.Aggregate(b))),
		"paired":       excludes0(p),
		"paired ratio": q.Low > 1 || q.High < 1,
		"Mann-Whitney": u.P < 0.05,
	}
}

// A/A: two identical variants on drifting machines. At most 5% of 200 experiments may be called
// different with interleaved trials, by each method that judges claims. These are Welch's interval,
// which counts the drift as noise, the pairs of significantly_different, and the ratios of ratio.
// Pairs have a level of 5% exactly, so that of 200 experiments they call 10 different, give or take
// 3. The seed fixes which 200 are drawn. Another test checks the level with 10,000. Without
// interleaving, the drift becomes a result.
func TestAA(t *testing.T) {
	shares := func(experiments int, interleaved bool, seed uint64) map[string]float64 {
		m := &machines{rng: rand.New(rand.NewPCG(2026, seed))}
		found := map[string]float64{}
		for range experiments {
			a, b := m.experiment(10, interleaved)
			for method, yes := range different(t, a, b) {
				if yes {
					found[method] += 1 / float64(experiments)
				}
			}
		}
		return found
	}
	interleaved, sequential := shares(200, true, 1), shares(200, false, 1)
	many := shares(10000, true, 2)
	judges := []string{"Welch", "paired", "paired ratio"}
	var table strings.Builder
	table.WriteString("| method | 200, interleaved | 200, one after the other | 10,000, interleaved |\n|---|---|---|---|\n")
	for _, method := range append(judges, "Mann-Whitney") {
		fmt.Fprintf(&table, "| %s | %.1f%% | %.1f%% | %.1f%% |\n", inWords[method], 100*interleaved[method], 100*sequential[method], 100*many[method])
		t.Logf("%-12s called different: %4.1f%% of 200 interleaved, %4.1f%% of 200 without interleaving, %.2f%% of 10000 interleaved",
			method, 100*interleaved[method], 100*sequential[method], 100*many[method])
		if many[method] > 0.056 {
			t.Errorf("%s calls %.1f%% of identical variants different", method, 100*many[method])
		}
	}
	for _, method := range judges {
		if interleaved[method] > 0.05 {
			t.Errorf("%s calls %.1f%% of 200 interleaved experiments on identical variants different, at most 5%% may be", method, 100*interleaved[method])
		}
		if sequential[method] < 0.2 {
			t.Errorf("%s calls only %.1f%% different without interleaving: the drift of this test is too small to show what it is for", method, 100*sequential[method])
		}
	}
	inPage(t, "identical variants", table.String())
}

// inWords has the documentation's name of a method, and what the method judges.
var inWords = map[string]string{
	"Welch":        "Welch's interval of the difference, which judges comparisons in claims",
	"paired":       "differences of pairs, which judge `significantly_different` of the same rounds",
	"paired ratio": "ratios of pairs, which judge `ratio` of the same rounds",
	"Mann-Whitney": "Mann-Whitney",
}

// The paired interval sees a difference that drift hides from Welch's.
func TestPairedSeesThroughDrift(t *testing.T) {
	m := &machines{rng: rand.New(rand.NewPCG(2026, 3))}
	const experiments = 1000
	seen := map[string]int{}
	for range experiments {
		a, b := m.experiment(10, true)
		for i := range a {
			a[i] *= 1.04
		}
		for method, yes := range different(t, a, b) {
			if yes {
				seen[method]++
			}
		}
	}
	var table strings.Builder
	table.WriteString("| method | of 1000, interleaved |\n|---|---|\n")
	for _, method := range []string{"Welch", "paired", "paired ratio", "Mann-Whitney"} {
		name, _, _ := strings.Cut(inWords[method], ", ")
		fmt.Fprintf(&table, "| %s | %.1f%% |\n", name, 100*float64(seen[method])/experiments)
	}
	inPage(t, "a difference of 4%", table.String())
	if seen["paired"] <= seen["Welch"] {
		t.Errorf("pairs see a difference in %d of %d experiments, Welch's interval in %d; pairs should see more", seen["paired"], experiments, seen["Welch"])
	}
}

func TestPairedRatio(t *testing.T) {
	e, cautions, err := stats.PairedRatio([]float64{2, 4, 8, 16, 32}, []float64{1, 2, 4, 8, 16})
	if err != nil || len(cautions) > 0 || !e.Known || !agrees(e.Value, 2, 0) || !agrees(e.Low, 2, 0) || !agrees(e.High, 2, 0) {
		t.Errorf("PairedRatio = %+v %v %v, want 2 for every round", e, cautions, err)
	}
	for name, pair := range map[string][2][]float64{
		"a round is missing": {{1, 2}, {1}},
		"a zero":             {{1, 0}, {1, 2}},
		"none":               {nil, nil},
	} {
		if e, _, err := stats.PairedRatio(pair[0], pair[1]); err == nil {
			t.Errorf("%s: PairedRatio = %+v, want an error", name, e)
		}
	}
}
