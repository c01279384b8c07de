package plan_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// searched returns an experiment of two variants with a search for the rate.
func searched() *builders.ExperimentBuilder {
	return builders.Experiment("e").System("basil").
		Search("rate", v1alpha1.CapacitySearch{From: 100, To: 10_000, Objective: v1alpha1.LoadObjective{P99Latency: "20ms"}}).
		Points("variant", v1alpha1.AxisPoint{Name: "fast"}, v1alpha1.AxisPoint{Name: "slow"}).
		Set(func(s *v1alpha1.ExperimentSpec) { s.Clients.Loop = v1alpha1.LoopOpen })
}

// lineOf returns the line of a trial in the results.
func lineOf(t v1alpha1.Trial) results.TrialLine {
	h := t.Status.Headline
	return results.TrialLine{Number: t.Spec.Number, PointIndex: t.Spec.Point.Index, Coordinates: t.Spec.Point.Coordinates, Outcome: plan.Outcome(&t),
		Committed: h.Committed, Errors: h.Errors, Offered: h.Offered, P99Millis: float64(h.P99LatencyMicroseconds) / 1000}
}

// simulated runs a search in no time. A trial has a latency of more than 20 ms exactly if its rate
// is above the variant's capacity, which varies between trials.
func simulated(t *testing.T, p *plan.Plan, seed int64, deviation float64, outcome func(v1alpha1.TrialSpec) string) ([]v1alpha1.Trial, plan.Step) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(seed), 3))
	of := map[string]float64{"fast": 4000, "slow": 700}
	var trials []v1alpha1.Trial
	for range 1000 {
		shuffled := slices.Clone(trials)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		step := plan.Next(p, seed, shuffled)
		if again := plan.Next(p, seed, trials); !cmp.Equal(step, again, valueText) {
			t.Fatalf("the order of trials matters:\n%s", cmp.Diff(step, again, valueText))
		}
		if step.Create == nil {
			return trials, step
		}
		trial := *builders.Trial("t").Spec(*step.Create).Complete(outcome(*step.Create)).Obj()
		rate := float64(*step.Create.Clients.Rate)
		latency := 20 * rate / (of[step.Create.Point.Coordinates["variant"]] * math.Exp(deviation*rng.NormFloat64()))
		trial.Status.Headline = &v1alpha1.Headline{Committed: 20_000, Offered: 20_000, P99LatencyMicroseconds: int64(1000 * latency)}
		trials = append(trials, trial)
	}
	t.Fatal("1000 steps and no end")
	return nil, plan.Step{}
}

func succeed(v1alpha1.TrialSpec) string { return v1alpha1.ReasonSucceeded }

func TestSearchFindsBothCapacities(t *testing.T) {
	p := expand(t, searched())
	if p.Trials() != 40 || p.MostTrials() != 120 || len(p.Axes[0].Values) < 180 || !p.Axes[0].Searched {
		t.Fatalf("%d to %d trials, axis %s of %d values", p.Trials(), p.MostTrials(), p.Axes[0].Name, len(p.Axes[0].Values))
	}
	for seed := range int64(5) {
		trials, last := simulated(t, p, seed, 0.03, succeed)
		if !last.Done || last.Reason != v1alpha1.ReasonAllTrialsValid || int(last.Counts.Planned) != len(trials) || !strings.Contains(last.Message, "Searches that have an answer: 2 of 2.") {
			t.Fatalf("seed %d: after %d trials %+v", seed, len(trials), last)
		}
		var lines []results.TrialLine
		for i, trial := range trials {
			lines = append(lines, lineOf(trial))
			if i%2 == 1 && i < 10 && trial.Spec.Point.Coordinates["variant"] == trials[i-1].Spec.Point.Coordinates["variant"] {
				t.Errorf("seed %d: trials %d and %d are of one variant; they take turns", seed, i-1, i)
			}
		}
		found := plan.Capacities(plan.ApplyProfile(p.Spec), p.Axes, lines)
		for i, want := range []float64{4000, 700} {
			c := found[i]
			if c.Outcome != string(v1alpha1.CapacityFound) || *c.Low > want || *c.High < want || *c.High-*c.Low > 0.1*want {
				t.Errorf("seed %d: %v: %s %g [%g, %g] after %d trials, want %g", seed, c.At, c.Outcome, *c.Capacity, *c.Low, *c.High, c.Trials, want)
			}
		}
		if len(trials) > 90 { // each search takes some 30 at a deviation of 3%
			t.Errorf("seed %d: %d trials for two searches", seed, len(trials))
		}
	}
}

// After a trial that does not count, the search tries the same load again.
func TestSearchRepeatsWhatDoesNotCount(t *testing.T) {
	p := expand(t, searched().Order(v1alpha1.OrderSequential))
	trials, last := simulated(t, p, 1, 0.03, func(s v1alpha1.TrialSpec) string {
		if s.Number%5 == 0 {
			return v1alpha1.ReasonInvalid
		}
		return v1alpha1.ReasonSucceeded
	})
	for i, trial := range trials[:len(trials)-1] {
		next := trials[i+1].Spec
		if plan.Outcome(&trial) == v1alpha1.ReasonInvalid && (next.Point.Index != trial.Spec.Point.Index || next.Repetition != trial.Spec.Repetition || next.Attempt != 1) {
			t.Errorf("trial %d does not count; after point %d, repetition %d comes %d, %d, attempt %d", i, trial.Spec.Point.Index, trial.Spec.Repetition, next.Point.Index, next.Repetition, next.Attempt)
		}
		if trial.Spec.Point.Coordinates["variant"] == "slow" && next.Point.Coordinates["variant"] == "fast" {
			t.Errorf("trial %d is of the first variant again", next.Number)
		}
	}
	if last.Reason != v1alpha1.ReasonAllTrialsValid {
		t.Errorf("the last step: %+v", last)
	}
}

// A search may end without a capacity.
func TestSearchEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*v1alpha1.CapacitySearch)
		outcome    func(v1alpha1.TrialSpec) string
		want       []v1alpha1.CapacityOutcome
		wantReason string
		message    string
	}{
		"above and below": {
			func(s *v1alpha1.CapacitySearch) { s.From, s.To = 1000, 2000 }, succeed,
			[]v1alpha1.CapacityOutcome{v1alpha1.CapacityAboveHighest, v1alpha1.CapacityBelowLowest}, v1alpha1.ReasonAllTrialsValid, "Searches that have an answer: 2 of 2.",
		},
		"out of trials": {
			func(s *v1alpha1.CapacitySearch) { s.Trials = 4 }, succeed,
			[]v1alpha1.CapacityOutcome{v1alpha1.CapacityOutOfTrials, v1alpha1.CapacityOutOfTrials}, v1alpha1.ReasonAllTrialsValid, "Searches that have an answer: 2 of 2.",
		},
		"given up": {
			func(*v1alpha1.CapacitySearch) {}, func(s v1alpha1.TrialSpec) string {
				if s.Point.Coordinates["variant"] == "slow" {
					return v1alpha1.ReasonFailed
				}
				return v1alpha1.ReasonSucceeded
			},
			[]v1alpha1.CapacityOutcome{v1alpha1.CapacityFound, v1alpha1.CapacitySearching}, v1alpha1.ReasonRetriesExhausted, "1 search cannot go on: retries used up. Searches that have an answer: 1 of 2.",
		},
		"not judged": {
			func(s *v1alpha1.CapacitySearch) {
				s.Objective = v1alpha1.LoadObjective{P90Latency: "5ms"}
			}, succeed,
			[]v1alpha1.CapacityOutcome{v1alpha1.CapacityNotJudged, v1alpha1.CapacityNotJudged}, v1alpha1.ReasonRetriesExhausted, "cannot be judged: the p90 latency is not known",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := searched()
			p := expand(t, b.Set(func(s *v1alpha1.ExperimentSpec) { tc.change(s.Sweep[0].Search) }))
			trials, last := simulated(t, p, 7, 0.03, tc.outcome)
			var lines []results.TrialLine
			for _, trial := range trials {
				lines = append(lines, lineOf(trial))
			}
			var got []v1alpha1.CapacityOutcome
			for _, c := range plan.Capacities(plan.ApplyProfile(p.Spec), p.Axes, lines) {
				got = append(got, v1alpha1.CapacityOutcome(c.Outcome))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if !last.Done || last.Reason != tc.wantReason || !strings.Contains(last.Message, tc.message) {
				t.Errorf("last step: %s: %s", last.Reason, last.Message)
			}
		})
	}
}

// The planner reads from headlines the same as results read from lines, bounds included.
func TestHeadlinesAndLinesAgree(t *testing.T) {
	p := expand(t, searched())
	for _, micros := range []int64{19_999, 20_000, 20_001} {
		step := plan.Next(p, 1, nil)
		trial := *builders.Trial("t").Spec(*step.Create).Complete(v1alpha1.ReasonSucceeded).Obj()
		trial.Status.Headline = &v1alpha1.Headline{Committed: 20_000, Offered: 20_000, P99LatencyMicroseconds: micros}
		line, rate := lineOf(trial), trial.Spec.Point.Coordinates["rate"]
		for _, c := range plan.Capacities(plan.ApplyProfile(p.Spec), p.Axes, []results.TrialLine{line}) {
			if c.Trials == 0 {
				continue
			}
			at, err := strconv.ParseFloat(rate, 64)
			if err != nil {
				t.Fatal(err)
			}
			up := *c.Capacity > at
			// The planner goes on with this variant after the other one has had its trial.
			other := plan.Next(p, 1, []v1alpha1.Trial{trial})
			second := *builders.Trial("u").Spec(*other.Create).Complete(v1alpha1.ReasonSucceeded).Obj()
			second.Status.Headline = trial.Status.Headline
			third := plan.Next(p, 1, []v1alpha1.Trial{trial, second})
			if climbs := *third.Create.Clients.Rate > int64(at); climbs != up || up != (micros <= 20_000) {
				t.Errorf("p99 %d us at %s: lines say the capacity is above %v, the planner goes up %v", micros, rate, up, climbs)
			}
		}
	}
}

func TestSearchIsSuspended(t *testing.T) {
	p := expand(t, searched())
	p.Spec.Suspend = true
	if step := plan.Next(p, 1, nil); step.Create != nil || step.Done || step.Reason != v1alpha1.ReasonSuspended {
		t.Errorf("%+v", step)
	}
	p.Spec.Suspend = false
	first := plan.Next(p, 1, nil)
	running := []v1alpha1.Trial{*builders.Trial("t").Spec(*first.Create).Obj()}
	if step := plan.Next(p, 1, running); step.Create != nil || step.Counts.Active != 1 || step.Message != first.Message {
		t.Errorf("%+v, before it was %q", step, first.Message)
	}
}

func TestRarePercentileWarns(t *testing.T) {
	b := searched().Set(func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Search.From, s.Schedule.Measure = 40, "20s" })
	p := expand(t, b)
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "800 requests, of which 8 are slower than its p99Latency") {
		t.Errorf("%q", p.Warnings)
	}
	if p := expand(t, searched()); len(p.Warnings) > 0 {
		t.Errorf("%q", p.Warnings)
	}
}

func TestTooManySearches(t *testing.T) {
	var many []any
	for n := range 33 {
		many = append(many, n+1)
	}
	b := builders.Experiment("e").System("basil").Values("batch", many...).Search("clients",
		v1alpha1.CapacitySearch{From: 20, To: 40, Objective: v1alpha1.LoadObjective{MeanLatency: "5ms"}})
	_, errs := plan.Expand(b.Obj(), systems(builders.System("basil")))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "make 33 searches; at most 32") {
		t.Errorf("%v", errs)
	}
	two := builders.Experiment("e").System("basil").
		Search("clients", v1alpha1.CapacitySearch{From: 20, To: 40, Objective: v1alpha1.LoadObjective{MeanLatency: "5ms"}}).
		Search("rate", v1alpha1.CapacitySearch{From: 20, To: 40, Objective: v1alpha1.LoadObjective{MeanLatency: "5ms"}})
	if _, errs := plan.Expand(two.Obj(), systems(builders.System("basil"))); len(errs) == 0 {
		t.Error("two axes with a search are accepted")
	}
}

// A search for the knee finds the rate at which latency is twice that at the lowest load. The
// system is a queue with one server, whose mean latency at the rate x is 1 / (capacity - x). It is
// twice the latency at x0 if x is halfway between x0 and the capacity.
func TestSearchFindsTheKnee(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").
		Search("rate", v1alpha1.CapacitySearch{From: 200, To: 10_000, Objective: v1alpha1.LoadObjective{KneeLatency: "200%"}}).
		Set(func(s *v1alpha1.ExperimentSpec) { s.Clients.Loop = v1alpha1.LoopOpen }))
	const capacity, want = 4000.0, 2100.0
	for seed := range int64(5) {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		var trials []v1alpha1.Trial
		var lines []results.TrialLine
		for step := plan.Next(p, seed, trials); step.Create != nil; step = plan.Next(p, seed, trials) {
			rate := float64(*step.Create.Clients.Rate)
			if len(trials) < 3 && rate != 200 {
				t.Fatalf("seed %d: trial %d has the rate %g; the first three are of the lowest load", seed, len(trials), rate)
			}
			latency := 1e6 / max(1, capacity-rate) * math.Exp(0.03*rng.NormFloat64()) // microseconds
			trial := *builders.Trial("t").Spec(*step.Create).Complete(v1alpha1.ReasonSucceeded).Obj()
			trial.Status.Headline = &v1alpha1.Headline{Committed: 20_000, Offered: 20_000, MeanLatencyMicroseconds: int64(latency)}
			trials = append(trials, trial)
			line := lineOf(trial)
			line.MeanMillis = float64(trial.Status.Headline.MeanLatencyMicroseconds) / 1000
			lines = append(lines, line)
			if len(trials) > 60 {
				t.Fatal("60 trials and no end")
			}
		}
		found := plan.Capacities(plan.ApplyProfile(p.Spec), p.Axes, lines)
		if len(found) != 1 || found[0].Capacity == nil || found[0].Outcome != string(v1alpha1.CapacityFound) || math.Abs(*found[0].Capacity-want) > 0.06*want {
			t.Errorf("seed %d: after %d trials %+v, want some %g", seed, len(trials), found, want)
		}
		if !strings.Contains(found[0].Objective, "mean latency at most 2 times that at the lowest load") {
			t.Errorf("the objective reads %q", found[0].Objective)
		}
	}
}
