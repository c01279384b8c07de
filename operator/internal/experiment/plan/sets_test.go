package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// onSets gives an experiment n sets of nodes: a, b and so on.
func onSets(n int) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		for i := range n {
			name := string(rune('a' + i))
			s.Placement.Sets = append(s.Placement.Sets, v1alpha1.NodeSet{Name: name, Replicas: "servers-" + name, Clients: "loaders-" + name})
		}
	}
}

// atOnce carries a plan out in time. took returns how long each trial takes. atOnce checks that no
// set has two trials. It returns the trials, the last step and when it was over.
func atOnce(t *testing.T, p *plan.Plan, took func(v1alpha1.TrialSpec) int, outcome func(v1alpha1.TrialSpec) string) (trials []v1alpha1.Trial, last plan.Step, now int) {
	t.Helper()
	ends := map[int]int{} // of active trials, by their index in the list
	for range 10000 {
		last = plan.Next(p, 7, trials)
		if spec := last.Create; spec != nil {
			for i := range ends {
				if trials[i].Spec.NodeSet == spec.NodeSet {
					t.Fatalf("trial %d is to start on %s, which has trial %d", spec.Number, spec.NodeSet, trials[i].Spec.Number)
				}
			}
			ends[len(trials)] = now + took(*spec)
			trials = append(trials, *builders.Trial(fmt.Sprint("t", spec.Number)).Spec(*spec).Obj())
			continue
		}
		if last.Done != (len(ends) == 0) {
			t.Fatalf("%d trials run, done %t: %s", len(ends), last.Done, last.Message)
		}
		if last.Done {
			return trials, last, now
		}
		first := -1
		for i, at := range ends {
			if first < 0 || at < ends[first] || at == ends[first] && i < first {
				first = i
			}
		}
		now = ends[first]
		delete(ends, first)
		trials[first] = *builders.Trial(trials[first].Name).Spec(trials[first].Spec).Complete(outcome(trials[first].Spec)).Obj()
	}
	t.Fatal("10000 steps and no end")
	return nil, plan.Step{}, 0
}

// A repetition of all points runs on one set, in the order of its round. When a set has finished
// it, the set goes on with its next one.
func TestRepetitionsStayOnTheirSet(t *testing.T) {
	succeed := func(v1alpha1.TrialSpec) string { return v1alpha1.ReasonSucceeded }
	same := func(v1alpha1.TrialSpec) int { return 10 }
	for name, tc := range map[string]struct {
		change  func(*v1alpha1.ExperimentSpec)
		took    func(v1alpha1.TrialSpec) int
		outcome func(v1alpha1.TrialSpec) string
		want    []string
		over    int
	}{
		"two sets": {onSets(2), same, succeed, []string{
			"#0 a servers-a p1 r0 a0", "#1 b servers-b p0 r1 a0", "#2 a servers-a p0 r0 a0", "#3 b servers-b p1 r1 a0",
			"#4 a servers-a p1 r2 a0", "#5 b servers-b p0 r3 a0", "#6 a servers-a p0 r2 a0", "#7 b servers-b p1 r3 a0",
		}, 40},
		"one of them is slow": {onSets(2), func(s v1alpha1.TrialSpec) int { return map[string]int{"a": 10, "b": 30}[s.NodeSet] }, succeed, []string{
			"#0 a servers-a p1 r0 a0", "#1 b servers-b p0 r1 a0", "#2 a servers-a p0 r0 a0", "#3 a servers-a p1 r2 a0",
			"#4 b servers-b p1 r1 a0", "#5 a servers-a p0 r2 a0", "#6 b servers-b p0 r3 a0", "#7 b servers-b p1 r3 a0",
		}, 120},
		"a retry is on the same set": {onSets(2), same, func(s v1alpha1.TrialSpec) string {
			if s.Repetition == 1 && s.Point.Index == 1 && s.Attempt == 0 {
				return v1alpha1.ReasonInvalid
			}
			return v1alpha1.ReasonSucceeded
		}, []string{
			"#0 a servers-a p1 r0 a0", "#1 b servers-b p0 r1 a0", "#2 a servers-a p0 r0 a0", "#3 b servers-b p1 r1 a0",
			"#4 a servers-a p1 r2 a0", "#5 b servers-b p1 r1 a1", "#6 a servers-a p0 r2 a0", "#7 b servers-b p0 r3 a0", "#8 b servers-b p1 r3 a0",
		}, 50},
		"in sequence": {func(s *v1alpha1.ExperimentSpec) { onSets(2)(s); s.Order = v1alpha1.OrderSequential }, same, succeed, []string{
			"#0 a servers-a p0 r0 a0", "#1 b servers-b p0 r1 a0", "#2 a servers-a p0 r2 a0", "#3 b servers-b p0 r3 a0",
			"#4 a servers-a p1 r0 a0", "#5 b servers-b p1 r1 a0", "#6 a servers-a p1 r2 a0", "#7 b servers-b p1 r3 a0",
		}, 40},
		"more sets than repetitions": {onSets(5), same, succeed, []string{
			"#0 a servers-a p1 r0 a0", "#1 b servers-b p0 r1 a0", "#2 c servers-c p1 r2 a0", "#3 d servers-d p0 r3 a0",
			"#4 a servers-a p0 r0 a0", "#5 b servers-b p1 r1 a0", "#6 c servers-c p0 r2 a0", "#7 d servers-d p1 r3 a0",
		}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2).Repetitions(4).Set(tc.change))
			trials, last, over := atOnce(t, p, tc.took, tc.outcome)
			var got []string
			for _, trial := range trials {
				s := trial.Spec
				got = append(got, fmt.Sprintf("#%d %s %s p%d r%d a%d", s.Number, s.NodeSet, s.Placement.Replicas, s.Point.Index, s.Repetition, s.Attempt))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if over != tc.over || last.Reason != v1alpha1.ReasonAllTrialsValid {
				t.Errorf("over at %d with %s, want %d", over, last.Reason, tc.over)
			}
		})
	}
}

// For any lengths and outcomes of trials, each set runs its own rounds in the order of a single
// set, and leaves nothing out.
func TestSetsSimulation(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			sets, points, repetitions := 2+rng.IntN(3), 1+rng.IntN(4), int32(1+rng.IntN(7))
			values := []any{1, 2, 3, 4}[:points]
			p := expand(t, builders.Experiment("e").System("basil").Values("clients", values...).Repetitions(repetitions).Retries(3).Set(onSets(sets)))
			trials, last, _ := atOnce(t, p, func(v1alpha1.TrialSpec) int { return 1 + rng.IntN(20) }, func(v1alpha1.TrialSpec) string {
				return []string{v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded, v1alpha1.ReasonInvalid}[rng.IntN(3)]
			})
			var want, got [][]plan.Slot
			for set := range sets {
				var mine, ran []plan.Slot
				for _, round := range plan.Rounds(p, 7) {
					for _, s := range round {
						if int(s.Repetition)%sets == set {
							mine = append(mine, s)
						}
					}
				}
				for _, trial := range trials {
					if trial.Spec.Attempt == 0 && trial.Spec.NodeSet == string(rune('a'+set)) {
						ran = append(ran, plan.Slot{Point: trial.Spec.Point.Index, Repetition: trial.Spec.Repetition})
					}
				}
				want, got = append(want, mine), append(got, ran)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("first attempts by set (-want +got):\n%s", diff)
			}
			if int(last.Counts.Succeeded) != points*int(repetitions) && last.Reason != v1alpha1.ReasonRetriesExhausted {
				t.Errorf("%+v, %s", last.Counts, last.Reason)
			}
		})
	}
}

// Claims are looked at after as many rounds as there are sets, so that no set waits for a look.
func TestLooksOnSets(t *testing.T) {
	for name, tc := range map[string]struct {
		sets   int
		open   int // open until so many rounds
		rounds int
		over   int
	}{
		"one at a time":            {0, 5, 5, 100},
		"two, at the first look":   {2, 0, 3, 40},
		"two, a look at 3 and 5":   {2, 5, 5, 60},
		"two, that look at 7 next": {2, 6, 7, 80},
		"two, up to max":           {2, 99, 8, 100}, // the look at 7 adds only one round
	} {
		t.Run(name, func(t *testing.T) {
			p := expand(t, builders.Experiment("e").System("basil").Values("clients", 1, 2).Set(untilDecided(3, 8)).Set(onSets(tc.sets)))
			p.Open = func(n int) []string {
				if n < tc.open {
					return []string{"fast"}
				}
				return nil
			}
			trials, last, over := atOnce(t, p, func(v1alpha1.TrialSpec) int { return 10 }, func(v1alpha1.TrialSpec) string { return v1alpha1.ReasonSucceeded })
			if len(trials) != 2*tc.rounds || over != tc.over || last.Reason != v1alpha1.ReasonAllTrialsValid {
				t.Errorf("%d trials until %d, %s; want %d until %d", len(trials), over, last.Reason, 2*tc.rounds, tc.over)
			}
		})
	}
}

// While trials run, another one starts only if the budget has room for it beside them, and never in
// a suspended experiment.
func TestWhatHoldsASetBack(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		starts bool
	}{
		"nothing":           {func(*v1alpha1.ExperimentSpec) {}, true},
		"suspend":           {func(s *v1alpha1.ExperimentSpec) { s.Suspend = true }, false},
		"budget":            {func(s *v1alpha1.ExperimentSpec) { s.Budget = nodeHours("1.9") }, false}, // 2 nodes for half an hour each
		"enough":            {func(s *v1alpha1.ExperimentSpec) { s.Budget = nodeHours("2") }, true},
		"not for what runs": {func(s *v1alpha1.ExperimentSpec) { s.Budget = nodeHours("0.5") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := expand(t, builders.Experiment("e").System("basil").Values("clients", 2, 4).Set(onSets(2)).Set(func(s *v1alpha1.ExperimentSpec) {
				s.Schedule.WarmUp, s.Schedule.Measure, s.Schedule.CoolDown = "0s", "30m", "0s"
			}))
			first := plan.Next(p, 7, nil)
			p = expand(t, builders.Experiment("e").System("basil").Values("clients", 2, 4).Set(onSets(2)).Set(func(s *v1alpha1.ExperimentSpec) {
				s.Schedule.WarmUp, s.Schedule.Measure, s.Schedule.CoolDown = "0s", "30m", "0s"
			}).Set(tc.change))
			runs := *builders.Trial("t").Spec(*first.Create).Obj()
			runs.Status.Nodes = 2
			step := plan.Next(p, 7, []v1alpha1.Trial{runs})
			if (step.Create != nil) != tc.starts || step.Done || step.Reason != v1alpha1.ReasonTrialsRunning {
				t.Errorf("starts %t, done %t, %s: %s", step.Create != nil, step.Done, step.Reason, step.Message)
			}
			if tc.starts && step.Create.NodeSet != "b" {
				t.Errorf("it starts on %q", step.Create.NodeSet)
			}
		})
	}
}

func nodeHours(q string) *v1alpha1.Budget {
	return &v1alpha1.Budget{NodeHours: new(resource.MustParse(q))}
}

func TestSetsThatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"a pool of two sets":    {func(s *v1alpha1.ExperimentSpec) { s.Placement.Sets[1].Clients = "loaders-a" }, `spec.placement.sets[1].clients: Invalid value: "loaders-a": set a has this pool, and no node may be in two sets`},
		"replicas of the other": {func(s *v1alpha1.ExperimentSpec) { s.Placement.Sets[1].Replicas = "loaders-a" }, "spec.placement.sets[1].replicas"},
		"no pool":               {func(s *v1alpha1.ExperimentSpec) { s.Placement.Sets[0].Clients = "" }, "spec.placement.sets[0].clients: Required value: a set without a pool is any node"},
		"pools beside them":     {func(s *v1alpha1.ExperimentSpec) { s.Placement.Replicas = "servers" }, `spec.placement.replicas: Invalid value: "servers": sets have pools of their own`},
		"one set":               {func(s *v1alpha1.ExperimentSpec) { s.Placement.Sets = s.Placement.Sets[:1] }, "spec.placement.sets: Invalid value: \"1 set\": must be two sets or more"},
		"one name":              {func(s *v1alpha1.ExperimentSpec) { s.Placement.Sets[1].Name = "a" }, "spec.placement.sets[1].name: Duplicate value"},
		"shared with others":    {func(s *v1alpha1.ExperimentSpec) { s.Placement.Exclusive = new(false) }, "spec.placement.exclusive: Invalid value: false"},
		"a component of no one": {func(s *v1alpha1.ExperimentSpec) {
			s.Placement.Sets[1].Components = []v1alpha1.ComponentPool{{Name: "proxy", Pool: "p"}}
		}, `spec.placement.sets[1].components[0].name: Invalid value: "proxy"`},
		"the trials of a search": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep = []v1alpha1.Axis{{Axis: "clients", Search: &v1alpha1.CapacitySearch{From: 20, To: 90, Objective: v1alpha1.LoadObjective{P99Latency: "5ms"}}}}
		}, "spec.placement.sets: Invalid value: \"2 sets\": the search along clients chooses each load by the trial before it"},
		"a component's own pools": {func(s *v1alpha1.ExperimentSpec) {
			s.Placement.Components = []v1alpha1.ComponentPool{{Name: "proxy", Pool: "p"}}
		}, "spec.placement.components: Forbidden: sets have pools of their own"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("e").System("basil").Values("clients", 1, 2).Set(onSets(2)).Set(tc.change).Obj()
			_, errs := plan.Expand(exp, systems(builders.System("basil")))
			if agg := errs.ToAggregate(); agg == nil || !strings.Contains(agg.Error(), tc.want) {
				t.Errorf("%v, want %q", agg, tc.want)
			}
		})
	}
}

// If repetitions do not fill the sets, one set is idle in the end, and the plan says so.
func TestPlanWarnsOfUnevenSets(t *testing.T) {
	for repetitions, want := range map[int32]bool{3: true, 4: false, 5: true} {
		p := expand(t, builders.Experiment("e").System("basil").Repetitions(repetitions).Set(onSets(2)))
		said := slices.ContainsFunc(p.Warnings, func(w string) bool {
			return strings.Contains(w, fmt.Sprintf("%d repetitions do not fill 2 sets of nodes", repetitions))
		})
		if said != want {
			t.Errorf("%d repetitions: %q", repetitions, p.Warnings)
		}
	}
}

// A trial that waits for one set is withdrawn in time. The trial on the other set goes on.
func TestOneOfTwoTrialsIsWithdrawn(t *testing.T) {
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	p := expand(t, builders.Experiment("e").System("basil").Repetitions(2).Set(onSets(2)).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Budget = endsAt(began.Add(time.Hour))
	}))
	p.At = began
	var trials []v1alpha1.Trial
	for i := range 2 {
		trials = append(trials, *builders.Trial(fmt.Sprint("t", i)).Spec(*plan.Next(p, 7, trials).Create).Obj())
	}
	trials[0].Status.Times.Admitted = microTime(began)
	p.At = began.Add(2 * time.Hour)
	if step := plan.Next(p, 7, trials); step.Done || !slices.Equal(step.Withdraw, []string{"t1"}) {
		t.Errorf("withdrawn %q, done %t", step.Withdraw, step.Done)
	}
}

// A broken set gives up its repetitions. The other sets run all of theirs.
func TestABrokenSetStopsNoOther(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Repetitions(8).RetryFor("10h").Set(onSets(2)))
	var trials []v1alpha1.Trial
	for range 100 {
		step := plan.Next(p, 7, trials)
		if step.Create == nil {
			if step.Reason != v1alpha1.ReasonRetriesExhausted || !strings.Contains(step.Message, "The last 4 trials on b failed in the same way") {
				t.Errorf("%s: %s", step.Reason, step.Message)
			}
			if step.Counts.Succeeded != 4 || step.Counts.Invalid != 4 {
				t.Errorf("%+v", step.Counts)
			}
			return
		}
		b := builders.Trial(fmt.Sprint("t", len(trials))).Spec(*step.Create)
		if step.Create.NodeSet == "b" {
			b = b.Complete(v1alpha1.ReasonInvalid).Because(v1alpha1.ReasonPodRestarted)
		} else {
			b = b.Complete(v1alpha1.ReasonSucceeded)
		}
		trials = append(trials, *b.Obj())
	}
	t.Errorf("no end after %d trials", len(trials))
}

func endsAt(at time.Time) *v1alpha1.Budget { return &v1alpha1.Budget{Until: new(metav1.NewTime(at))} }

func microTime(at time.Time) *metav1.MicroTime { return new(metav1.NewMicroTime(at)) }
