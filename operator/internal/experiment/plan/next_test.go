package plan_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var update = flag.Bool("update", false, "write the golden files")

func systems(bs ...*builders.SystemBuilder) map[string]v1alpha1.SystemSpec {
	m := map[string]v1alpha1.SystemSpec{}
	for _, b := range bs {
		m[b.Obj().Name] = b.Obj().Spec
	}
	return m
}

func expand(t *testing.T, b *builders.ExperimentBuilder) *plan.Plan {
	t.Helper()
	p, errs := plan.Expand(b.Obj(), systems(builders.System("basil"), builders.System("tapir").Count("2*f+1")))
	if len(errs) > 0 {
		t.Fatalf("Expand: %v", errs.ToAggregate())
	}
	return p
}

// run carries steps out. outcome decides how each trial ends. run returns the trials in order of
// creation.
func run(t *testing.T, p *plan.Plan, seed int64, outcome func(v1alpha1.TrialSpec) string) ([]v1alpha1.Trial, plan.Step) {
	t.Helper()
	var trials []v1alpha1.Trial
	for range 10000 {
		step := plan.Next(p, seed, trials)
		if step.Create == nil {
			return trials, step
		}
		trials = append(trials, *builders.Trial("t").Spec(*step.Create).Complete(outcome(*step.Create)).Obj())
	}
	t.Fatal("10000 steps and no end")
	return nil, plan.Step{}
}

func describe(trials []v1alpha1.Trial) []string {
	var out []string
	for _, trial := range trials {
		s := trial.Spec
		out = append(out, fmt.Sprintf("#%d p%d r%d a%d %s", s.Number, s.Point.Index, s.Repetition, s.Attempt, plan.Outcome(&trial)))
	}
	return out
}

func TestNextExactSequence(t *testing.T) {
	succeed := func(v1alpha1.TrialSpec) string { return v1alpha1.ReasonSucceeded }
	tests := map[string]struct {
		experiment *builders.ExperimentBuilder
		outcome    func(v1alpha1.TrialSpec) string
		want       []string
		wantReason string
	}{
		"sequential": {
			experiment: builders.Experiment("e").System("basil").Values("clients", 1, 2).Repetitions(2).Order(v1alpha1.OrderSequential),
			outcome:    succeed,
			want:       []string{"#0 p0 r0 a0 Succeeded", "#1 p0 r1 a0 Succeeded", "#2 p1 r0 a0 Succeeded", "#3 p1 r1 a0 Succeeded"},
			wantReason: v1alpha1.ReasonAllTrialsValid,
		},
		"interleaved": {
			experiment: builders.Experiment("e").System("basil").Values("clients", 1, 2, 3).Repetitions(2),
			outcome:    succeed,
			want: []string{"#0 p2 r0 a0 Succeeded", "#1 p1 r0 a0 Succeeded", "#2 p0 r0 a0 Succeeded",
				"#3 p0 r1 a0 Succeeded", "#4 p2 r1 a0 Succeeded", "#5 p1 r1 a0 Succeeded"},
			wantReason: v1alpha1.ReasonAllTrialsValid,
		},
		"retries come at the end of the round": {
			experiment: builders.Experiment("e").System("basil").Values("clients", 1, 2, 3).Repetitions(2),
			outcome: func(s v1alpha1.TrialSpec) string {
				if s.Point.Index == 1 && s.Repetition == 0 && s.Attempt < 2 {
					return v1alpha1.ReasonInvalid
				}
				if s.Point.Index == 2 && s.Repetition == 0 && s.Attempt < 1 {
					return v1alpha1.ReasonFailed
				}
				return v1alpha1.ReasonSucceeded
			},
			want: []string{"#0 p2 r0 a0 Failed", "#1 p1 r0 a0 Invalid", "#2 p0 r0 a0 Succeeded",
				"#3 p2 r0 a1 Succeeded", "#4 p1 r0 a1 Invalid", "#5 p1 r0 a2 Succeeded",
				"#6 p0 r1 a0 Succeeded", "#7 p2 r1 a0 Succeeded", "#8 p1 r1 a0 Succeeded"},
			wantReason: v1alpha1.ReasonAllTrialsValid,
		},
		"retries run out": {
			experiment: builders.Experiment("e").System("basil").Repetitions(2).Retries(1),
			outcome: func(s v1alpha1.TrialSpec) string {
				if s.Repetition == 0 {
					return v1alpha1.ReasonFailed
				}
				return v1alpha1.ReasonSucceeded
			},
			want:       []string{"#0 p0 r0 a0 Failed", "#1 p0 r0 a1 Failed", "#2 p0 r1 a0 Succeeded"},
			wantReason: v1alpha1.ReasonRetriesExhausted,
		},
		"no retries": {
			experiment: builders.Experiment("e").System("basil").Repetitions(1).Retries(0),
			outcome:    func(v1alpha1.TrialSpec) string { return v1alpha1.ReasonInvalid },
			want:       []string{"#0 p0 r0 a0 Invalid"},
			wantReason: v1alpha1.ReasonRetriesExhausted,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trials, last := run(t, expand(t, tc.experiment), 7, tc.outcome)
			if diff := cmp.Diff(tc.want, describe(trials)); diff != "" {
				t.Errorf("sequence (-want +got):\n%s", diff)
			}
			if !last.Done || last.Reason != tc.wantReason {
				t.Errorf("last step: done %v, reason %s, want done with %s", last.Done, last.Reason, tc.wantReason)
			}
		})
	}
}

func TestNextWaits(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Repetitions(2))
	first := plan.Next(p, 7, nil)
	running := []v1alpha1.Trial{*builders.Trial("t0").Spec(*first.Create).Obj()}
	if step := plan.Next(p, 7, running); step.Create != nil || step.Done || step.Reason != v1alpha1.ReasonTrialsRunning || step.Counts.Active != 1 {
		t.Errorf("with an active trial: %+v", step)
	}
	p.Spec.Suspend = true
	if step := plan.Next(p, 7, nil); step.Create != nil || step.Done || step.Reason != v1alpha1.ReasonSuspended {
		t.Errorf("suspended: %+v", step)
	}
	if step := plan.Next(p, 7, running); step.Reason != v1alpha1.ReasonTrialsRunning {
		t.Errorf("suspended with an active trial: %+v", step)
	}
}

// A trial that a user deleted is run again under a new number, so that its name and results are
// new.
func TestNextAfterDeletion(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2).Repetitions(1).Order(v1alpha1.OrderSequential))
	trials, _ := run(t, p, 7, func(v1alpha1.TrialSpec) string { return v1alpha1.ReasonSucceeded })
	step := plan.Next(p, 7, trials[1:])
	if step.Create == nil || step.Create.Point.Index != 0 || step.Create.Number != 2 {
		t.Errorf("after the first trial was deleted: %+v", step.Create)
	}
	// The remaining trials do not show the number of the last one.
	step = plan.NextFrom(p, 7, trials[:1], 2)
	if step.Create == nil || step.Create.Point.Index != 1 || step.Create.Number != 2 || !strings.HasPrefix(step.Message, "Trial 2 runs") {
		t.Errorf("after the last trial was deleted: %+v, %s", step.Create, step.Message)
	}
}

// TestSeeds pins the documented values: another release must give the same order and the same seeds
// for a recorded seed.
func TestSeeds(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2, 3, 4, 5, 6).Repetitions(2))
	var got []string
	for _, round := range plan.Rounds(p, 42) {
		var order []string
		for _, s := range round {
			order = append(order, fmt.Sprint(s.Point))
		}
		got = append(got, strings.Join(order, " "))
	}
	got = append(got, fmt.Sprint(plan.TrialSeed(42, 0, 0, 0)), fmt.Sprint(plan.TrialSeed(42, 5, 1, 2)))
	golden(t, "seeds.golden", strings.Join(got, "\n")+"\n")
}

// Every order of a round is drawn equally often. A biased shuffle would bring back the drift that
// the random order removes.
func TestOrdersAreUniform(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2, 3, 4).Repetitions(100))
	seen := map[string]int{}
	const seeds = 240
	for seed := range int64(seeds) {
		for _, round := range plan.Rounds(p, seed+1) {
			seen[fmt.Sprint(round[0].Point, round[1].Point, round[2].Point, round[3].Point)]++
		}
	}
	// 24 orders, 1000 expected of each; 5 standard deviations are 155.
	if len(seen) != 24 {
		t.Errorf("%d of 24 orders seen", len(seen))
	}
	for order, n := range seen {
		if n < 845 || n > 1155 {
			t.Errorf("order %s: %d times, expected about 1000", order, n)
		}
	}
}

// TestNextSimulation runs the controller with random outcomes. Steps are skipped and repeated, and
// trials come in random order. It checks the invariants after every step.
func TestNextSimulation(t *testing.T) {
	var log strings.Builder
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newSimulation(t, seed)
			for range 5000 {
				if s.step() {
					break
				}
			}
			if !s.done {
				t.Fatal("5000 steps and no end")
			}
			s.checkEnd()
			if seed < 3 {
				fmt.Fprintf(&log, "seed %d: %d points x %d, %s, %d retries\n", seed, len(s.plan.Points), s.plan.Spec.Repetitions.Min, s.plan.Spec.Order, *s.plan.Spec.Retries)
				for _, line := range describe(s.trials) {
					fmt.Fprintf(&log, "  %s\n", line)
				}
			}
		})
	}
	golden(t, "simulation.golden", log.String())
}

type simulation struct {
	t      *testing.T
	rng    *rand.Rand
	plan   *plan.Plan
	seed   int64
	trials []v1alpha1.Trial
	done   bool
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	rng := rand.New(rand.NewPCG(seed, 1))
	order := []v1alpha1.TrialOrder{v1alpha1.OrderRandomizedInterleaved, v1alpha1.OrderSequential}[rng.IntN(2)]
	b := builders.Experiment("e").System("basil").Repetitions(1 + rng.Int32N(4)).Retries(rng.Int32N(3)).Order(order)
	for _, axis := range []string{"clients", "batch"}[:rng.IntN(3)] {
		b.Values(axis, []any{1, 2, 3, 4}[:1+rng.IntN(4)]...)
	}
	return &simulation{t: t, rng: rng, plan: expand(t, b), seed: int64(rng.Uint64N(1 << 53))}
}

// step advances the world or the controller. It reports whether the experiment is over.
func (s *simulation) step() bool {
	if s.rng.IntN(10) < 3 {
		return false // this time the controller does nothing
	}
	active := -1
	for i := range s.trials {
		if plan.Outcome(&s.trials[i]) == v1alpha1.ReasonInProgress {
			active = i
		}
	}
	if active >= 0 && s.rng.IntN(2) == 0 {
		outcomes := []string{v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded, v1alpha1.ReasonInvalid, v1alpha1.ReasonFailed}
		spec := s.trials[active].Spec
		s.trials[active] = *builders.Trial("t").Spec(spec).Complete(outcomes[s.rng.IntN(4)]).Obj()
	}
	seen := make([]v1alpha1.Trial, len(s.trials))
	for to, from := range s.rng.Perm(len(s.trials)) {
		seen[to] = s.trials[from]
	}
	step := plan.Next(s.plan, s.seed, seen)
	again := plan.Next(s.plan, s.seed, s.trials)
	if diff := cmp.Diff(step, again, cmp.AllowUnexported(v1alpha1.Value{})); diff != "" {
		s.t.Fatalf("the order in which trials are seen matters (-seen +created):\n%s", diff)
	}
	s.check(step)
	if step.Create != nil {
		s.trials = append(s.trials, *builders.Trial("t").Spec(*step.Create).Obj())
	}
	s.done = step.Done
	return s.done
}

func (s *simulation) check(step plan.Step) {
	s.t.Helper()
	c := step.Counts
	if int(c.Active+c.Succeeded+c.Invalid+c.Failed) != len(s.trials) || int(c.Planned) != s.plan.Trials() {
		s.t.Fatalf("counts %+v do not add up to %d trials of %d", c, len(s.trials), s.plan.Trials())
	}
	if c.Active > 1 {
		s.t.Fatalf("%d trials are active", c.Active)
	}
	if step.Reason == "" || step.Message == "" {
		s.t.Fatalf("step without a reason: %+v", step)
	}
	if step.Create == nil {
		return
	}
	if c.Active != 0 || step.Done {
		s.t.Fatalf("created beside an active trial or after the end: %+v", step)
	}
	if int(step.Create.Number) != len(s.trials) {
		s.t.Fatalf("number %d, want %d", step.Create.Number, len(s.trials))
	}
	attempt := int32(0)
	for _, other := range s.trials {
		if other.Spec.Point.Index == step.Create.Point.Index && other.Spec.Repetition == step.Create.Repetition {
			attempt++
			if plan.Outcome(&other) == v1alpha1.ReasonSucceeded {
				s.t.Fatalf("trial %d repeats a valid one", step.Create.Number)
			}
		}
		if other.Spec.Seed == step.Create.Seed {
			s.t.Fatalf("trials %d and %d have one seed", other.Spec.Number, step.Create.Number)
		}
	}
	if attempt != step.Create.Attempt || attempt > *s.plan.Spec.Retries {
		s.t.Fatalf("attempt %d after %d others, %d retries", step.Create.Attempt, attempt, *s.plan.Spec.Retries)
	}
}

// checkEnd checks that every repetition of every point is valid or out of retries, and that
// interleaved rounds do not mix.
func (s *simulation) checkEnd() {
	s.t.Helper()
	valid, used := map[plan.Slot]bool{}, map[plan.Slot]int32{}
	last := int32(0)
	for _, trial := range s.trials {
		slot := plan.Slot{Point: trial.Spec.Point.Index, Repetition: trial.Spec.Repetition}
		used[slot]++
		valid[slot] = valid[slot] || plan.Outcome(&trial) == v1alpha1.ReasonSucceeded
		if s.plan.Spec.Order == v1alpha1.OrderRandomizedInterleaved {
			if trial.Spec.Repetition < last {
				s.t.Errorf("trial %d goes back to round %d", trial.Spec.Number, trial.Spec.Repetition)
			}
			last = trial.Spec.Repetition
		}
	}
	if len(used) != s.plan.Trials() {
		s.t.Errorf("%d of %d repetitions were run", len(used), s.plan.Trials())
	}
	for slot, n := range used {
		if !valid[slot] && n != *s.plan.Spec.Retries+1 {
			s.t.Errorf("%+v was given up after %d attempts", slot, n)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), go test -update writes it:\n%s", name, diff)
	}
}
