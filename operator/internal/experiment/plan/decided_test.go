package plan_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// untilDecided makes repetitions go on until claims are decided.
func untilDecided(least, most int32) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Repetitions = v1alpha1.Repetitions{Min: least, Max: &most, Until: &v1alpha1.StoppingRule{Claims: v1alpha1.ClaimsDecided}}
		s.Claims = []v1alpha1.Claim{{Name: "fast", Statement: "It is fast.", Expr: "throughput(clients=1) > 10"}, {Name: "even", Statement: "It is even.", Expr: "throughput(clients=2) > 10"}}
	}
}

func TestRepetitionsUntilClaimsAreDecided(t *testing.T) {
	for name, tc := range map[string]struct {
		open    func(rounds int) []string
		trials  int
		message string
	}{
		"at the first look": {func(int) []string { return nil }, 6, "All 6 trials of 2 points are valid. Look 1 of 6, after 3 rounds: each claim is decided or hopeless."},
		"after five rounds": {func(n int) []string { return []string{"fast"}[min(1, n/5):] }, 10, "All 10 trials of 2 points are valid. Look 3 of 6, after 5 rounds: each claim is decided or hopeless."},
		"never":             {func(int) []string { return []string{"fast", "even"} }, 16, "All 16 trials of 2 points are valid. Look 6 of 6, after 8 rounds: max is reached, and 2 claims are open: fast, even."},
	} {
		t.Run(name, func(t *testing.T) {
			p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2).Set(untilDecided(3, 8)))
			if p.Trials() != 6 || p.MostTrials() != 16 {
				t.Errorf("%d to %d trials", p.Trials(), p.MostTrials())
			}
			p.Open = tc.open
			trials, last := runMeasured(t, p, 7, func(v1alpha1.TrialSpec) float64 { return 1000 })
			if len(trials) != tc.trials || !last.Done || last.Message != tc.message {
				t.Errorf("%d trials, %q", len(trials), last.Message)
			}
			if first := plan.Next(p, 7, nil); !strings.HasSuffix(first.Message, " Up to 10 more follow until claims are decided.") {
				t.Errorf("at first %q", first.Message)
			}
		})
	}
}

// A point that is given up does not stop the others. They go on until claims are decided.
func TestAPointThatIsGivenUpDoesNotEndTheLooks(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2).Retries(0).Set(untilDecided(3, 8)))
	p.Open = func(n int) []string { return []string{"fast"}[min(1, n/6):] }
	trials, last := runMeasured(t, p, 7, func(s v1alpha1.TrialSpec) float64 {
		if s.Point.Index == 1 && s.Repetition == 1 {
			return 0
		}
		return 1000
	})
	if last.Reason != v1alpha1.ReasonRetriesExhausted || len(trials) != 9 || !strings.Contains(last.Message, "Look 4 of 6, after 6 rounds") {
		t.Errorf("%d trials, %s %q", len(trials), last.Reason, last.Message)
	}
}

func TestUntilDecidedThatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"in sequence":           {func(s *v1alpha1.ExperimentSpec) { s.Order = v1alpha1.OrderSequential }, "spec.repetitions.until.claims: Invalid value: \"Decided\": needs rounds of all points"},
		"precision as well":     {func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Until.RelativeCI = "5%" }, "spec.repetitions.until.relativeCI: Forbidden: repetitions end by claims or by precision"},
		"neither":               {func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Until.Claims = "" }, "spec.repetitions.until: Required value: says nothing"},
		"no claim":              {func(s *v1alpha1.ExperimentSpec) { s.Claims = nil }, "there is no claim to decide"},
		"a crossover":           {func(s *v1alpha1.ExperimentSpec) { s.Claims[0].Expr = "crossover(of='throughput') > 2" }, `claim "fast" is about a crossover`},
		"a minimum of two":      {func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min = 2 }, "spec.repetitions.min: Invalid value: 2: until needs 3 or more"},
		"a maximum is not said": {func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Max = nil }, "spec.repetitions.max: Required value: until needs it"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("e").System("basil").Values("clients", 1, 2).Set(untilDecided(3, 8)).Set(tc.change).Obj()
			_, errs := plan.Expand(exp, systems(builders.System("basil")))
			if !strings.Contains(errs.ToAggregate().Error(), tc.want) {
				t.Errorf("%v, want %q", errs, tc.want)
			}
		})
	}
}
