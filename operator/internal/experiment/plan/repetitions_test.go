package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results/stats"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// until makes repetitions go on until the precision is reached.
func until(least, most int32, relativeCI string, of ...v1alpha1.PrecisionMetric) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Repetitions = v1alpha1.Repetitions{Min: least, Max: &most, Until: &v1alpha1.StoppingRule{RelativeCI: relativeCI, Of: of}}
	}
}

// measured returns a successful trial with a mean latency, of a closed loop with 10 clients.
func measured(spec v1alpha1.TrialSpec, micros float64) v1alpha1.Trial {
	t := ended(spec, v1alpha1.ReasonSucceeded)
	t.Status.Headline = &v1alpha1.Headline{Committed: 1000, MeanLatencyMicroseconds: int64(micros), ThroughputMilli: int64(10 / micros * 1e9),
		P50LatencyMicroseconds: 1000, P99LatencyMicroseconds: int64(micros * micros)}
	return t
}

// ended returns a finished trial. It does not use the builder, which makes copies, since
// simulations make very many trials.
func ended(spec v1alpha1.TrialSpec, outcome string) v1alpha1.Trial {
	return v1alpha1.Trial{Spec: spec, Status: v1alpha1.TrialStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: outcome, Message: "As the test says."}}}}
}

// runMeasured carries steps out. latency returns the mean latency of each trial, or 0 for an
// invalid one.
func runMeasured(t testing.TB, p *plan.Plan, seed int64, latency func(v1alpha1.TrialSpec) float64) ([]v1alpha1.Trial, plan.Step) {
	t.Helper()
	var trials []v1alpha1.Trial
	for range 10000 {
		step := plan.Next(p, seed, trials)
		if step.Create == nil {
			return trials, step
		}
		next := ended(*step.Create, v1alpha1.ReasonInvalid)
		if micros := latency(*step.Create); micros > 0 {
			next = measured(*step.Create, micros)
		}
		trials = append(trials, next)
	}
	t.Fatal("10000 steps and no end")
	return nil, plan.Step{}
}

func rounds(trials []v1alpha1.Trial) []string {
	var out []string
	for _, trial := range trials {
		for int(trial.Spec.Repetition) >= len(out) {
			out = append(out, "")
		}
		out[trial.Spec.Repetition] += fmt.Sprint(trial.Spec.Point.Index)
	}
	return out
}

func TestRepetitionsUntilThePrecisionIsReached(t *testing.T) {
	three := builders.Experiment("e").System("basil").Values("clients", 1, 2, 3)
	// Point 0 is steady; point 1 is steady from its fifth trial on; point 2 never.
	latency := func(s v1alpha1.TrialSpec) float64 {
		switch {
		case s.Point.Index == 2:
			return 1000 + 900*float64(s.Repetition%2)
		case s.Point.Index == 1 && s.Repetition < 2:
			return 1000 + 80*float64(s.Repetition)
		}
		return 1040 + float64(s.Repetition)
	}
	p := expand(t, three.Clone().Set(until(3, 6, "4%")))
	if p.Trials() != 9 || p.MostTrials() != 18 || p.DescribeTrials() != "9 to 18" || p.DescribeRepetitions() != "3 to 6" {
		t.Errorf("%d to %d trials, %q", p.Trials(), p.MostTrials(), p.DescribeTrials())
	}
	trials, last := runMeasured(t, p, 7, latency)
	want := []string{"210", "021", "102", "012", "012", "012"} // all go on while one point is not precise
	if diff := cmp.Diff(want, sorted(rounds(trials), want)); diff != "" {
		t.Errorf("points of each round (-want +got):\n%s", diff)
	}
	if !last.Done || last.Reason != v1alpha1.ReasonAllTrialsValid || last.Counts.Planned != 18 || last.Counts.Succeeded != 18 {
		t.Errorf("last step %+v", last)
	}
	wantMessage := "All 18 trials of 3 points are valid. Precision reached: the means of 2 of 3 points are known to within 4%. Max reached: 1 with 6 trials are not: point 2 (Throughput 35.7%)."
	if last.Message != wantMessage {
		t.Errorf("message %q\nwant %q", last.Message, wantMessage)
	}
	// Sequential: each point gets min before the next one begins. Further rounds are for all points
	// again.
	trials, _ = runMeasured(t, expand(t, three.Clone().Set(until(3, 6, "4%")).Order(v1alpha1.OrderSequential)), 7, latency)
	order := ""
	for _, trial := range trials {
		order += fmt.Sprint(trial.Spec.Point.Index)
	}
	if order != "000111222012012012" {
		t.Errorf("sequential order %s", order)
	}
}

// sorted puts the letters of each string into the order of want, so that a test compares which
// points take part, and not their random order.
func sorted(got, want []string) []string {
	same := func(a, b string) bool {
		for _, c := range a + b {
			if strings.Count(a, string(c)) != strings.Count(b, string(c)) {
				return false
			}
		}
		return true
	}
	out := append([]string(nil), got...)
	for i := range out {
		if i < len(want) && same(out[i], want[i]) {
			out[i] = want[i]
		}
	}
	return out
}

// A round has the order of a round of all points, without the points that are given up. The same
// seed gives the same order, also if trials are missing.
func TestLaterRoundsKeepTheirOrder(t *testing.T) {
	b := builders.Experiment("e").System("basil").Values("clients", 1, 2, 3, 4, 5, 6).Retries(0)
	wide := func(s v1alpha1.TrialSpec) float64 { return 1000 + 500*float64(s.Repetition%2) }
	all, _ := runMeasured(t, expand(t, b.Clone().Set(until(3, 5, "1%"))), 42, wide)
	some, _ := runMeasured(t, expand(t, b.Clone().Set(until(3, 5, "1%"))), 42, func(s v1alpha1.TrialSpec) float64 {
		if s.Point.Index%2 == 0 && s.Repetition == 0 {
			return 0
		}
		return wide(s)
	})
	left := strings.NewReplacer("0", "", "2", "", "4", "")
	for i, round := range rounds(all) {
		want := round
		if i >= 3 {
			want = left.Replace(round)
		}
		if got := rounds(some)[i]; got != want {
			t.Errorf("round %d: %s, want %s", i, got, want)
		}
	}
}

// The decision does not depend on the order in which trials are seen. After each trial the plan
// creates the trial that it decided on before, so a manager that takes over goes on in the same
// way.
func TestAManagerThatTakesOverDecidesTheSame(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2, 3, 4).Retries(1).Set(until(3, 8, "5%")))
		draws := map[string]float64{}
		trials, last := runMeasured(t, p, int64(seed+1), func(s v1alpha1.TrialSpec) float64 {
			if rng.IntN(8) == 0 {
				return 0
			}
			draws[fmt.Sprint(s.Number)] = 1000 * (1 + 0.05*rng.NormFloat64())
			return draws[fmt.Sprint(s.Number)]
		})
		for n := range trials {
			seen := make([]v1alpha1.Trial, n)
			for to, from := range rng.Perm(n) {
				seen[to] = trials[from]
			}
			if step := plan.Next(p, int64(seed+1), seen); step.Create == nil || step.Create.Number != trials[n].Spec.Number || step.Create.Seed != trials[n].Spec.Seed {
				t.Fatalf("seed %d: after %d trials %+v, before it was %+v", seed, n, step.Create, trials[n].Spec)
			}
		}
		if c := last.Counts; !last.Done || c.Planned > 32 || c.Planned < 12 || (last.Reason == v1alpha1.ReasonAllTrialsValid) != (c.Succeeded == c.Planned) {
			t.Errorf("seed %d: %+v", seed, last)
		}
	}
}

// If the retries of a repetition are used up, its point gets no more repetitions. The other points
// go on.
func TestAPointThatDoesNotRunWellGetsNoMore(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2).Retries(1).Set(until(3, 7, "1%")))
	trials, last := runMeasured(t, p, 7, func(s v1alpha1.TrialSpec) float64 {
		if s.Point.Index == 0 && s.Repetition == 1 {
			return 0
		}
		return 1000 + 500*float64(s.Repetition)
	})
	want := []string{"01", "001", "01", "01", "01", "1", "1"}
	if diff := cmp.Diff(want, sorted(rounds(trials), want)); diff != "" {
		t.Errorf("points of each round (-want +got):\n%s", diff)
	}
	if last.Reason != v1alpha1.ReasonRetriesExhausted || last.Counts.Planned != 12 || !strings.Contains(last.Message, "11 of 12 trials are valid") {
		t.Errorf("last step %+v", last)
	}
}

func TestMessagesWhileRepetitionsGoOn(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Set(until(3, 7, "1%")))
	first := plan.Next(p, 7, nil)
	if want := "Trial 0 runs: point 0, repetition 0, attempt 0. 0 of 5 trials are valid. Up to 2 more follow where means are not known to within 1%."; first.Message != want {
		t.Errorf("message %q\nwant %q", first.Message, want)
	}
	running := []v1alpha1.Trial{*builders.Trial("t").Spec(*first.Create).Obj()}
	if again := plan.Next(p, 7, running); again.Message != first.Message {
		t.Errorf("the sentence changes when the trial has been created: %q", again.Message)
	}
}

// The metric that ends repetitions can be chosen. A mean of 0 is never precise, and a valid trial
// without numbers does not count.
func TestPrecisionOf(t *testing.T) {
	noisy := func(s v1alpha1.TrialSpec) float64 { return 1000 + 30*float64(s.Repetition%2) }
	for name, tc := range map[string]struct {
		of      []v1alpha1.PrecisionMetric
		latency func(v1alpha1.TrialSpec) float64
		want    int
	}{
		"both by default":         {latency: noisy, want: 8}, // six are precise, and two more follow
		"one that is known":       {of: []v1alpha1.PrecisionMetric{v1alpha1.PrecisionP50Latency}, latency: noisy, want: 5},
		"one that varies more":    {of: []v1alpha1.PrecisionMetric{v1alpha1.PrecisionP50Latency, v1alpha1.PrecisionP99Latency}, latency: noisy, want: 9},
		"all trials are the same": {latency: func(v1alpha1.TrialSpec) float64 { return 1000 }, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			p := expand(t, builders.Experiment("e").System("basil").Set(until(3, 9, "2%", tc.of...)))
			if trials, _ := runMeasured(t, p, 7, tc.latency); len(trials) != tc.want {
				t.Errorf("%d trials, want %d", len(trials), tc.want)
			}
		})
	}
	p := expand(t, builders.Experiment("e").System("basil").Set(until(3, 5, "2%")))
	trials, last := run(t, p, 7, func(v1alpha1.TrialSpec) string { return v1alpha1.ReasonSucceeded }) // no trial has a headline
	if len(trials) != 5 || !strings.Contains(last.Message, "+Inf%") {
		t.Errorf("%d trials without numbers: %s", len(trials), last.Message)
	}
}

func TestRepetitionsThatCannotEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*v1alpha1.ExperimentSpec)
		want []string
	}{
		"max below min":     {func(s *v1alpha1.ExperimentSpec) { s.Repetitions = v1alpha1.Repetitions{Min: 5, Max: ptr(int32(3))} }, []string{"spec.repetitions.max", "must be min, 5, or more"}},
		"max without until": {func(s *v1alpha1.ExperimentSpec) { s.Repetitions = v1alpha1.Repetitions{Min: 5, Max: ptr(int32(7))} }, []string{"spec.repetitions.max", "add until, or remove max"}},
		"max too high":      {until(3, 101, "5%"), []string{"spec.repetitions.max", "from 1 to 100"}},
		"until without max": {func(s *v1alpha1.ExperimentSpec) { until(3, 5, "5%")(s); s.Repetitions.Max = nil }, []string{"spec.repetitions.max", "until needs it"}},
		"until of two":      {until(2, 5, "5%"), []string{"spec.repetitions.min", "until needs 3 or more"}},
		"no percentage":     {until(3, 5, "0.05"), []string{"spec.repetitions.until.relativeCI", "such as 5%"}},
		"0%":                {until(3, 5, "0%"), []string{"spec.repetitions.until.relativeCI", "above 0%"}},
		"101%":              {until(3, 5, "101%"), []string{"spec.repetitions.until.relativeCI", "at most 100%"}},
		"unknown metric":    {until(3, 5, "5%", "Latency"), []string{"spec.repetitions.until.of[0]", "MeanLatency"}},
		"too many trials":   {func(s *v1alpha1.ExperimentSpec) { until(3, 100, "5%")(s); manyPoints(s) }, []string{"spec.repetitions.max", "at most 39 repetitions"}},
		"in a profile": {func(s *v1alpha1.ExperimentSpec) {
			s.Profile, s.Profiles = "p", []v1alpha1.Profile{{Name: "p", Repetitions: &v1alpha1.Repetitions{Min: 3, Max: ptr(int32(2))}}}
		}, []string{"spec.profiles[0].repetitions.max", "must be min"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := plan.Expand(builders.Experiment("e").System("basil").Set(tc.set).Obj(), systems(builders.System("basil")))
			if !anyContainsAll(errs, tc.want) {
				t.Errorf("got %v, want one with %q", errs.ToAggregate(), tc.want)
			}
		})
	}
	same := builders.Experiment("e").System("basil").Set(func(s *v1alpha1.ExperimentSpec) { s.Repetitions = v1alpha1.Repetitions{Min: 5, Max: ptr(int32(5))} })
	if p := expand(t, same); p.MostTrials() != 5 {
		t.Errorf("max that is min: %d trials", p.MostTrials())
	}
}

// manyPoints makes 256 points.
func manyPoints(s *v1alpha1.ExperimentSpec) {
	s.Sweep = []v1alpha1.Axis{{Axis: "clients", Values: manyValues(64)}, {Axis: "f", Values: manyValues(4)}}
}

// An interval that is looked at after each trial, and ends the repetitions when it is short, covers
// less than it promises. This measures how much less under the rule, for
// docs/reference/repetitions.md. With -update it writes the table there.
func TestCoverageAfterStopping(t *testing.T) {
	const experiments, truth = 2000, 100000.0
	table := "| repetitions | deviation | trials on average | precision reached | interval holds the mean | bias of the mean |\n|---|---|---|---|---|---|\n"
	for _, tc := range []struct {
		least, most int32
		deviation   float64
	}{{3, 3, 0.05}, {3, 10, 0.02}, {3, 10, 0.05}, {3, 10, 0.1}, {3, 30, 0.1}, {10, 30, 0.1}} {
		set := until(tc.least, tc.most, "5%")
		if tc.least == tc.most {
			set = func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min = tc.least }
		}
		p := expand(t, builders.Experiment("e").System("basil").Set(set))
		rng := rand.New(rand.NewPCG(2026, uint64(tc.least)*1000+uint64(tc.deviation*100)))
		held, reached, used, sum := 0, 0, 0, 0.0
		for range experiments {
			trials, last := runMeasured(t, p, 1, func(v1alpha1.TrialSpec) float64 { return truth * (1 + tc.deviation*rng.NormFloat64()) })
			xs := make([]float64, len(trials))
			for i := range trials {
				xs[i] = float64(trials[i].Status.Headline.MeanLatencyMicroseconds)
			}
			a := stats.Aggregate(xs)
			used, sum = used+len(xs), sum+a.Mean
			if a.Low <= truth && truth <= a.High {
				held++
			}
			if strings.Contains(last.Message, "1 of 1 points") {
				reached++
			}
		}
		percent := func(n int) float64 { return 100 * float64(n) / experiments }
		precision := "-"
		if tc.least < tc.most {
			precision = fmt.Sprintf("%.0f%%", percent(reached))
		}
		table += fmt.Sprintf("| %s | %.0f%% | %.1f | %s | %.1f%% | %+.2f%% |\n", p.DescribeRepetitions(), 100*tc.deviation,
			float64(used)/experiments, precision, percent(held), math.Round(1e4*(sum/experiments/truth-1))/100+0)
		if percent(held) < 85 {
			t.Errorf("%d to %d repetitions at a deviation of %g: the interval holds the mean in %.1f%% only; the page must warn of it", tc.least, tc.most, tc.deviation, percent(held))
		}
	}
	inPage(t, "coverage", table)
}

// inPage compares a table with that of docs/reference/repetitions.md, or writes it there with
// -update.
func inPage(t *testing.T, name, table string) {
	t.Helper()
	const page = "../../../../docs/reference/repetitions.md"
	t.Log("\n" + table)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)(<!-- table: ` + name + ` -->\n).*?(<!-- end of table -->)`)
	want := block.ReplaceAllString(string(text), "${1}"+table+"${2}")
	if !block.Match(text) {
		t.Fatalf("%s has no table %s", page, name)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s has another table; go test -run %s -update writes:\n%s", page, t.Name(), table)
	}
}

// Additional repetitions continue a complete experiment. Its earlier trials stay, and with them the
// decisions of its rounds.
func TestAdditionalRepetitions(t *testing.T) {
	steady := func(s v1alpha1.TrialSpec) float64 { return 1000 + 5*float64(s.Repetition%3) }
	for name, tc := range map[string]struct {
		set           func(*v1alpha1.ExperimentSpec)
		before, after int
	}{
		"a fixed number": {set: func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min = 3 }, before: 3, after: 5},
		"as many as it takes, which was the least": {set: until(3, 10, "5%"), before: 3, after: 5},
		"one point after the other":                {set: func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min, s.Order = 3, v1alpha1.OrderSequential }, before: 3, after: 5},
	} {
		t.Run(name, func(t *testing.T) {
			e := builders.Experiment("e").System("basil").Values("clients", 1, 2, 3).Set(tc.set)
			p := expand(t, e)
			trials, done := runMeasured(t, p, 7, steady)
			if len(trials) != 3*tc.before || !done.Done {
				t.Fatalf("%d trials, %+v", len(trials), done)
			}
			more := expand(t, e.Set(func(s *v1alpha1.ExperimentSpec) { s.AdditionalRepetitions = 2 }))
			if more.Trials() != 3*tc.after {
				t.Errorf("%d trials are planned, want %d", more.Trials(), 3*tc.after)
			}
			for {
				step := plan.Next(more, 7, trials)
				if step.Create == nil {
					done = step
					break
				}
				if int(step.Create.Number) != len(trials) || int(step.Create.Repetition) < tc.before || step.Create.Attempt != 0 {
					t.Fatalf("after %d trials: %+v", len(trials), step.Create)
				}
				trials = append(trials, measured(*step.Create, steady(*step.Create)))
			}
			if all, _ := runMeasured(t, more, 7, steady); len(all) != 3*tc.after {
				t.Errorf("an experiment that has them from the start has %d trials", len(all))
			}
			if len(trials) != 3*tc.after || !done.Done || done.Reason != v1alpha1.ReasonAllTrialsValid || int(done.Counts.Planned) != 3*tc.after {
				t.Errorf("%d trials, %+v", len(trials), done)
			}
		})
	}
	spec := builders.Experiment("e").System("basil").Values("clients", 1, 2, 3).Obj().Spec
	spec.Repetitions.Min = 3
	for more, possible := range map[int32]bool{0: true, 2: true, 97: true, 98: false} {
		spec.AdditionalRepetitions = more
		if err := plan.CheckAdditional(spec, 3); (err == nil) != possible {
			t.Errorf("%d more: %v", more, err)
		}
	}
}
