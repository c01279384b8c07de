package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// end is how a trial ends: the reason of its condition Valid (empty for a valid trial), and how
// long it held its machines.
type end struct {
	reason string
	took   time.Duration
}

func (e end) trial(spec v1alpha1.TrialSpec) v1alpha1.Trial {
	b := builders.Trial("t").Spec(spec).Took(e.took)
	if e.reason == "" {
		return *b.Complete(v1alpha1.ReasonSucceeded).Obj()
	}
	return *b.Complete(v1alpha1.ReasonInvalid).Because(e.reason).Obj()
}

// runEnds carries steps out. next returns the end of each trial.
func runEnds(t *testing.T, p *plan.Plan, seed int64, next func(v1alpha1.TrialSpec) end) ([]v1alpha1.Trial, plan.Step) {
	t.Helper()
	var trials []v1alpha1.Trial
	for range 10000 {
		step := plan.Next(p, seed, trials)
		if step.Create == nil {
			return trials, step
		}
		trials = append(trials, next(*step.Create).trial(*step.Create))
	}
	t.Fatal("10000 steps and no end")
	return nil, plan.Step{}
}

func TestNextAfterDisturbances(t *testing.T) {
	const stolen, throttled, restarted = v1alpha1.ReasonCPUStolen, v1alpha1.ReasonCPUThrottled, v1alpha1.ReasonPodRestarted
	one := func() *builders.ExperimentBuilder {
		return builders.Experiment("e").System("basil").Repetitions(2).Retries(1)
	}
	for name, tc := range map[string]struct {
		experiment *builders.ExperimentBuilder
		ends       []end // of the trials in order of creation; later trials are valid
		want       []string
		disturbed  int32
		lost       time.Duration
		reason     string
		message    string
	}{
		"disturbed trials cost no retries": {
			experiment: one().Retries(0),
			ends:       []end{{stolen, time.Minute}, {stolen, time.Minute}, {stolen, time.Minute}, {stolen, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r0 a2 Invalid", "#3 p0 r0 a3 Invalid", "#4 p0 r0 a4 Succeeded", "#5 p0 r1 a0 Succeeded"},
			disturbed:  4, lost: 4 * time.Minute, reason: v1alpha1.ReasonAllTrialsValid,
			message: "All 2 trials of 1 points are valid.",
		},
		"until the time is used up, for all repetitions together": {
			experiment: one().RetryFor("3m"),
			ends:       []end{{stolen, 2 * time.Minute}, {stolen, 90 * time.Second}, {stolen, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r1 a0 Invalid"},
			disturbed:  3, lost: 270 * time.Second, reason: v1alpha1.ReasonRetriesExhausted,
			message: "0 of 2 trials are valid. The environment disturbed the latest trial of 2 repetitions, and disturbed trials have used up spec.disturbances.retryFor, 3m. See the conditions of those Trials.",
		},
		"every repetition is tried once, whatever is used up": {
			experiment: one().RetryFor("0s"),
			ends:       []end{{stolen, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r1 a0 Succeeded"},
			disturbed:  1, lost: time.Minute, reason: v1alpha1.ReasonRetriesExhausted,
			message: "1 of 2 trials are valid. The environment disturbed the latest trial of 1 repetition, and disturbed trials have used up spec.disturbances.retryFor, 0s. See the conditions of those Trials.",
		},
		"what the system did counts as before, disturbed trials between or not": {
			experiment: one(),
			ends:       []end{{throttled, time.Minute}, {stolen, time.Minute}, {stolen, time.Minute}, {throttled, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r0 a2 Invalid", "#3 p0 r0 a3 Invalid", "#4 p0 r1 a0 Succeeded"},
			disturbed:  2, lost: 2 * time.Minute, reason: v1alpha1.ReasonRetriesExhausted,
			message: "1 of 2 trials are valid. Of 1 repetition all 2 attempts that count failed or were invalid (spec.retries is 1). See the conditions of those Trials.",
		},
		"retries are left when the time is used up": {
			experiment: one().RetryFor("1m"),
			ends:       []end{{stolen, 50 * time.Second}, {throttled, time.Minute}, {}, {stolen, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r0 a2 Succeeded", "#3 p0 r1 a0 Invalid"},
			disturbed:  2, lost: 110 * time.Second, reason: v1alpha1.ReasonRetriesExhausted,
			message: "1 of 2 trials are valid. The environment disturbed the latest trial of 1 repetition, and disturbed trials have used up spec.disturbances.retryFor, 1m. See the conditions of those Trials.",
		},
		"what breaks in the same way again and again does not pass": {
			experiment: one().RetryFor("10h"),
			ends:       []end{{stolen, time.Minute}, {restarted, time.Minute}, {restarted, time.Minute}, {restarted, time.Minute}, {restarted, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r0 a2 Invalid", "#3 p0 r0 a3 Invalid", "#4 p0 r0 a4 Invalid"},
			disturbed:  5, lost: 5 * time.Minute, reason: v1alpha1.ReasonRetriesExhausted,
			message: "0 of 2 trials are valid. The last 4 trials failed in the same way, so that another one would, too. Trial 4: PodRestarted: As the test says.",
		},
		"in another way between": {
			experiment: one().RetryFor("10h"),
			ends:       []end{{restarted, time.Minute}, {restarted, time.Minute}, {restarted, time.Minute}, {v1alpha1.ReasonRunLost, time.Minute}, {restarted, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r0 a2 Invalid", "#3 p0 r0 a3 Invalid", "#4 p0 r0 a4 Invalid", "#5 p0 r0 a5 Succeeded", "#6 p0 r1 a0 Succeeded"},
			disturbed:  5, lost: 5 * time.Minute, reason: v1alpha1.ReasonAllTrialsValid, message: "All 2 trials of 1 points are valid.",
		},
		"a trial that was interrupted costs neither time nor retries": {
			experiment: one().Retries(0).RetryFor("0s"),
			ends:       []end{{v1alpha1.ReasonInterrupted, time.Hour}, {v1alpha1.ReasonInterrupted, time.Minute}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r0 a2 Succeeded", "#3 p0 r1 a0 Succeeded"},
			reason:     v1alpha1.ReasonAllTrialsValid, message: "All 2 trials of 1 points are valid.",
		},
		"a trial without instants takes ten seconds, so that there is an end": {
			experiment: one().RetryFor("20s"),
			ends:       []end{{stolen, 0}, {stolen, 0}, {}},
			want:       []string{"#0 p0 r0 a0 Invalid", "#1 p0 r0 a1 Invalid", "#2 p0 r1 a0 Succeeded"},
			disturbed:  2, lost: 20 * time.Second, reason: v1alpha1.ReasonRetriesExhausted,
			message: "1 of 2 trials are valid. The environment disturbed the latest trial of 1 repetition, and disturbed trials have used up spec.disturbances.retryFor, 20s. See the conditions of those Trials.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			trials, last := runEnds(t, expand(t, tc.experiment), 7, func(s v1alpha1.TrialSpec) end {
				if int(s.Number) < len(tc.ends) {
					return tc.ends[s.Number]
				}
				return end{}
			})
			if diff := cmp.Diff(tc.want, describe(trials)); diff != "" {
				t.Errorf("sequence (-want +got):\n%s", diff)
			}
			if !last.Done || last.Reason != tc.reason || last.Message != tc.message {
				t.Errorf("last step: done %v, %s, %q\nwant %s, %q", last.Done, last.Reason, last.Message, tc.reason, tc.message)
			}
			if last.Counts.Disturbed != tc.disturbed || last.Disturbed != tc.lost {
				t.Errorf("%d trials disturbed for %v, want %d for %v", last.Counts.Disturbed, last.Disturbed, tc.disturbed, tc.lost)
			}
		})
	}
}

// Numbers in their messages do not make failures differ, whatever their digits.
func TestFailuresAreAlikeWhateverTheirNumbers(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Repetitions(1).RetryFor("10h"))
	var trials []v1alpha1.Trial
	for _, times := range []int{9, 10, 99, 100} {
		step := plan.Next(p, 7, trials)
		if step.Create == nil {
			t.Fatalf("%d failures are the last: %s", len(trials), step.Message)
		}
		trial := end{v1alpha1.ReasonPodRestarted, time.Minute}.trial(*step.Create)
		meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid).Message = fmt.Sprintf("It restarted %d times.", times)
		trials = append(trials, trial)
	}
	if last := plan.Next(p, 7, trials); !last.Done || !strings.Contains(last.Message, "failed in the same way") {
		t.Errorf("after four failures: done %t, %q", last.Done, last.Message)
	}
}

func TestSizesOutOfBounds(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.ExperimentSpec){
		"spec.clients.nodes: Invalid value: 257: must be from 1 to 256":        func(s *v1alpha1.ExperimentSpec) { s.Clients.Nodes = 257 },
		"spec.clients.count: Invalid value: 100001: must be from 1 to 100000":  func(s *v1alpha1.ExperimentSpec) { s.Clients.Count = 100_001 },
		"spec.topology.f: Invalid value: 34: must be from 0 to 33":             func(s *v1alpha1.ExperimentSpec) { s.Topology.F = 34 },
		"spec.topology.shards: Invalid value: 65: must be from 1 to 64":        func(s *v1alpha1.ExperimentSpec) { s.Topology.Shards = 65 },
		"spec.repetitions.min: Invalid value: 101: must be from 1 to 100":      func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min = 101 },
		"spec.additionalRepetitions: Invalid value: 100: must be from 0 to 99": func(s *v1alpha1.ExperimentSpec) { s.AdditionalRepetitions = 100 },
		"spec.additionalRepetitions: Invalid value: -1: must be from 0 to 99":  func(s *v1alpha1.ExperimentSpec) { s.AdditionalRepetitions = -1 },
	} {
		exp := builders.Experiment("e").System("basil").Set(change).Obj()
		if _, errs := plan.Expand(exp, systems(builders.System("basil"))); len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("errors %v, want %q", errs, want)
		}
	}
}

func TestDisturbancesAreReported(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Repetitions(1))
	first := plan.Next(p, 7, nil)
	trials := []v1alpha1.Trial{end{v1alpha1.ReasonClockUncertain, 61 * time.Second}.trial(*first.Create)}
	step := plan.Next(p, 7, trials)
	want := "Trial 1 runs: point 0, repetition 0, attempt 1. 0 of 1 trials are valid. " +
		"The environment disturbed 1 trial, which took 1m1s of the 30m of spec.disturbances.retryFor."
	if step.Message != want {
		t.Errorf("message %q\nwant %q", step.Message, want)
	}
	running := append(slices.Clone(trials), *builders.Trial("t").Spec(*step.Create).Obj())
	if again := plan.Next(p, 7, running); again.Message != want || again.Counts.Active != 1 {
		t.Errorf("the sentence changes when the trial has been created: %q", again.Message)
	}
}

// TestDisturbancesSimulation tries random ends with random budgets. The trials alone decide what
// the end must be.
func TestDisturbancesSimulation(t *testing.T) {
	reasons := []string{"", "", "", v1alpha1.ReasonCPUStolen, v1alpha1.ReasonFaultLate, v1alpha1.ReasonCPUThrottled, v1alpha1.ReasonReplicaExited}
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			retryFor := time.Duration(rng.IntN(20)) * time.Minute
			p := expand(t, builders.Experiment("e").System("basil").Values("clients", []any{1, 2, 3}[:1+rng.IntN(3)]...).
				Repetitions(1+rng.Int32N(4)).Retries(rng.Int32N(3)).RetryFor(v1alpha1.Duration(retryFor.String())))
			trials, last := runEnds(t, p, int64(seed+1), func(v1alpha1.TrialSpec) end {
				return end{reasons[rng.IntN(len(reasons))], time.Duration(10+rng.IntN(120)) * time.Second}
			})
			for n := range trials { // a manager that takes over, and sees trials in another order, must decide the same
				seen := make([]v1alpha1.Trial, n)
				for to, from := range rng.Perm(n) {
					seen[to] = trials[from]
				}
				if step := plan.Next(p, int64(seed+1), seen); step.Create == nil || step.Create.Seed != trials[n].Spec.Seed {
					t.Fatalf("after %d trials %+v, before it was %+v", n, step.Create, trials[n].Spec)
				}
			}
			checkBudgets(t, p, trials, last, retryFor)
		})
	}
}

// checkBudgets computes again how much each repetition may cost, and compares.
func checkBudgets(t *testing.T, p *plan.Plan, trials []v1alpha1.Trial, last plan.Step, retryFor time.Duration) {
	t.Helper()
	var lost time.Duration // before this trial
	latest, spent := map[plan.Slot]v1alpha1.Trial{}, map[plan.Slot]int32{}
	for _, trial := range trials {
		slot := plan.Slot{Point: trial.Spec.Point.Index, Repetition: trial.Spec.Repetition}
		if before, ok := latest[slot]; ok {
			if plan.Outcome(&before) == v1alpha1.ReasonSucceeded {
				t.Fatalf("trial %d repeats a valid one", trial.Spec.Number)
			}
			if plan.Disturbed(&before) && lost >= retryFor {
				t.Errorf("trial %d repeats a disturbed one when %v of %v are used up", trial.Spec.Number, lost, retryFor)
			}
		}
		latest[slot] = trial
		if plan.Disturbed(&trial) {
			lost += trial.Status.Times.Done.Sub(trial.Status.Times.Admitted.Time)
		} else if plan.Outcome(&trial) != v1alpha1.ReasonSucceeded {
			spent[slot]++
		}
	}
	if last.Disturbed != lost {
		t.Errorf("disturbed trials took %v, the step says %v", lost, last.Disturbed)
	}
	for slot, trial := range latest {
		if plan.Outcome(&trial) != v1alpha1.ReasonSucceeded && spent[slot] <= *p.Spec.Retries && (lost < retryFor || !plan.Disturbed(&trial)) {
			t.Errorf("%+v was given up with %d of %d retries and %v of %v used", slot, spent[slot], *p.Spec.Retries, lost, retryFor)
		}
	}
	if len(latest) != p.Trials() {
		t.Errorf("%d of %d repetitions were run", len(latest), p.Trials())
	}
}

// Repetitions after what time does not cure cost retries: another attempt would mostly fail, too.
func TestWhatNoWaitCuresIsNoDisturbance(t *testing.T) {
	for reason, want := range map[string]bool{
		v1alpha1.ReasonDeadlineExceeded: false, v1alpha1.ReasonNoShapingBackend: false, v1alpha1.ReasonPodsForbidden: false, v1alpha1.ReasonDatasetDiffers: false, v1alpha1.ReasonMachineRefused: false,
		v1alpha1.ReasonChaosMeshMissing: false, v1alpha1.ReasonResultsNotStored: false, v1alpha1.ReasonClientsMiscounted: false, v1alpha1.ReasonInterrupted: false,
		v1alpha1.ReasonCPUThrottled: false, v1alpha1.ReasonCPUStolen: true, v1alpha1.ReasonPodRestarted: true, "": false,
	} {
		trial := end{reason: reason}.trial(v1alpha1.TrialSpec{})
		if plan.Disturbed(&trial) != want {
			t.Errorf("%q: disturbed is %v", reason, !want)
		}
	}
}

func TestDisturbancesOutOfBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   string
	}{
		"longer than a day": {func(s *v1alpha1.ExperimentSpec) { s.Disturbances.RetryFor = "25h" }, `spec.disturbances.retryFor: Invalid value: "25h": must be from 0s to 24h`},
		"a wait of an hour": {func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleWait = "1h" }, `spec.disturbances.idleWait: Invalid value: "1h": must be from 0s to 10m`},
		"more than all":     {func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleThreshold = "101%" }, `spec.disturbances.idleThreshold: Invalid value: "101%": must be a percentage from 0% to 100%`},
		"logs of a gigabyte": {func(s *v1alpha1.ExperimentSpec) {
			s.Debug = &v1alpha1.Debug{KeepLogs: ptr(resource.MustParse("1Gi"))}
		}, "spec.debug.keepLogs"},
		"failed trials kept for two days": {func(s *v1alpha1.ExperimentSpec) { s.Debug = &v1alpha1.Debug{KeepFailed: "48h"} },
			`spec.debug.keepFailed: Invalid value: "48h": must be from 0s to 24h`},
		"five seconds for images": {func(s *v1alpha1.ExperimentSpec) { s.PrePull = &v1alpha1.PrePull{Timeout: "5s"} },
			`spec.prePull.timeout: Invalid value: "5s": must be from 10s to 24h`},
		"in a profile": {func(s *v1alpha1.ExperimentSpec) {
			s.Profile, s.Profiles = "small", []v1alpha1.Profile{{Name: "small", Disturbances: &v1alpha1.Disturbances{RetryFor: "no time"}}}
		}, `spec.profiles[0].disturbances.retryFor: Invalid value: "no time"`},
		"none at all": {func(s *v1alpha1.ExperimentSpec) {
			s.Disturbances = v1alpha1.Disturbances{RetryFor: "0s", IdleWait: "0s", IdleThreshold: "100%"}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("e").System("basil").Set(tc.change).Obj()
			_, errs := plan.Expand(exp, systems(builders.System("basil")))
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

// The disturbances of a profile replace all others. Every trial gets the ones that it needs.
func TestDisturbancesOfAProfile(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").RetryFor("2h").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Profile, s.Profiles = "small", []v1alpha1.Profile{{Name: "small", Disturbances: &v1alpha1.Disturbances{IdleWait: "3s"}}}
	}))
	want := v1alpha1.Disturbances{RetryFor: "30m", IdleWait: "3s", IdleThreshold: "25%"}
	if p.Spec.Disturbances != want {
		t.Errorf("disturbances %+v, want %+v", p.Spec.Disturbances, want)
	}
	if trial := p.Points[0].Template; trial.IdleWait != "3s" || trial.IdleThreshold != "25%" {
		t.Errorf("a trial waits for %q with a load of %q", trial.IdleWait, trial.IdleThreshold)
	}
}
