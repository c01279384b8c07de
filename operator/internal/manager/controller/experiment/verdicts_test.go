package experiment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// finishWith ends the active trial with a mean latency, or as invalid if it is 0.
func (s *stage) finishWith(millis float64) {
	s.t.Helper()
	for _, trial := range s.trials() {
		if plan.Outcome(&trial) != v1alpha1.ReasonInProgress {
			continue
		}
		outcome := v1alpha1.ReasonSucceeded
		if millis == 0 {
			outcome = v1alpha1.ReasonInvalid
		}
		end(&trial, outcome, s.clock.Now())
		if h := trial.Status.Headline; h != nil {
			h.MeanLatencyMicroseconds, h.ThroughputMilli = int64(1000*millis), int64(10e6/millis)
			h.P90LatencyMicroseconds, h.P999LatencyMicroseconds, h.CorrectClients = 2*h.MeanLatencyMicroseconds, 9*h.MeanLatencyMicroseconds, 8
			h.Committed = 20_000 // a 99.9th percentile needs 10,000
			h.Recoveries = []v1alpha1.FaultRecovery{
				{Fault: "crash", Time: 1, Outcome: v1alpha1.RecoveryRecovered, DetectMicroseconds: 200000, DepthPerMillion: 600000, RecoverMicroseconds: 2300000, LostMilli: 700500},
				{Fault: "crash", Time: 2, Outcome: v1alpha1.RecoveryNotRecovered, DetectMicroseconds: 100000, DepthPerMillion: 1000000, RecoverMicroseconds: 9000000},
				{Fault: "crash", Time: 3, Outcome: v1alpha1.RecoveryNoDip, LeastDipPerMillion: 50000}, {Fault: "crash", Time: 4, Outcome: v1alpha1.RecoveryUnknown},
			}
		}
		if err := s.c.Status().Update(s.t.Context(), &trial); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Fatal("no trial is active")
}

// claimed is an experiment of two points with three trials each, one retry, and claims.
func claimed(claims map[string]string) *builders.ExperimentBuilder {
	return builders.Experiment("exp").System("basil").Values("clients", 1, 2).Repetitions(3).Retries(1).NodeKill("crash", "1s", 0).Set(func(e *v1alpha1.ExperimentSpec) {
		e.Faults[0].EveryPoint = true
		for name, expr := range claims {
			e.Claims = append(e.Claims, v1alpha1.Claim{Name: name, Statement: "As the paper says.", Expr: expr})
		}
	})
}

// The status of Trials gives verdicts, and these the exit code of kubectl assay run --wait. Clients
// 1 have 9.9, 10 and 10.1 ms, clients 2 twice as much. In the last case, all trials of clients 2
// are invalid.
func TestVerdictsAndExitCodes(t *testing.T) {
	const twice = "mean_latency(clients=2) > 15ms"
	for name, tc := range map[string]struct {
		claims  map[string]string
		invalid bool
		want    map[string]v1alpha1.Verdict
		code    int
	}{
		"true": {
			claims: map[string]string{"twice": twice, "correct": "throughput_per_correct_client(clients=1) > 100", "tail": "p999_latency(clients=1) / p90_latency(clients=1) > 4",
				"back": "time_to_90(fault='crash', clients=1) < 3s && goodput_lost(fault='crash', clients=1) < 701 && dip(fault='crash', clients=2) > 0.5",
				"calm": "time_to_detect(fault='crash', clients=1) < 350ms && dip(fault='crash', time=3, clients=1) < 0.1"},
			want: map[string]v1alpha1.Verdict{"twice": v1alpha1.VerdictHolds, "correct": v1alpha1.VerdictHolds, "tail": v1alpha1.VerdictHolds,
				"back": v1alpha1.VerdictHolds, "calm": v1alpha1.VerdictHolds},
		},
		"false": {
			claims: map[string]string{"twice": twice, "half": "mean_latency(clients=2) < 5ms", "again": "time_to_90(fault='crash', time=2, clients=1) < 3s"},
			want:   map[string]v1alpha1.Verdict{"twice": v1alpha1.VerdictHolds, "half": v1alpha1.VerdictFails, "again": v1alpha1.VerdictFails},
			code:   session.ExitRefuted,
		},
		"straddling": {
			claims: map[string]string{"twice": twice, "ten": "mean_latency(clients=1) < 10.05ms"},
			want:   map[string]v1alpha1.Verdict{"twice": v1alpha1.VerdictHolds, "ten": v1alpha1.VerdictInconclusive},
			code:   session.ExitUndecided,
		},
		"not measured, though the trials are valid": {
			claims: map[string]string{"twice": twice, "edge": "dip(fault='crash', time=4, clients=1) < 0.5"},
			want:   map[string]v1alpha1.Verdict{"twice": v1alpha1.VerdictHolds, "edge": v1alpha1.VerdictNotEvaluated},
			code:   session.ExitUndecided,
		},
		"invalid": {
			claims: map[string]string{"twice": twice, "ten": "mean_latency(clients=1) < 12ms", "half": "mean_latency(clients=1) < 5ms"}, invalid: true,
			want: map[string]v1alpha1.Verdict{"twice": v1alpha1.VerdictNotEvaluated, "ten": v1alpha1.VerdictHolds, "half": v1alpha1.VerdictFails},
			code: session.ExitUntrusted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.create(builders.System("basil").Obj(), claimed(tc.claims).Obj())
			exp := s.settle()
			for range 20 {
				if exp.Status.CompletionTime != nil {
					break
				}
				s.finishWith(s.latency(tc.invalid))
				exp = s.settle()
			}
			got := map[string]v1alpha1.Verdict{}
			for _, c := range exp.Status.Claims {
				got[c.Name] = c.Verdict
				t.Logf("%s: %s", c.Name, c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			if err := run.Outcome(exp); session.ExitCode(err) != tc.code {
				t.Errorf("exit code %d (%v), want %d", session.ExitCode(err), err, tc.code)
			}
		})
	}
}

// latency returns the latency of the active trial.
func (s *stage) latency(invalid bool) float64 {
	for _, trial := range s.trials() {
		if plan.Outcome(&trial) == v1alpha1.ReasonInProgress {
			if trial.Spec.Point.Index == 1 && invalid {
				return 0
			}
			return float64(trial.Spec.Point.Index+1) * (9.9 + 0.1*float64(trial.Spec.Repetition))
		}
	}
	s.t.Fatal("no trial is active")
	return 0
}

// Repetitions go on until the means are precise. Point 0 is steady, point 1 is not, and both stop
// together. The manager is replaced after each trial.
func TestRepetitionsUntilThePrecisionIsReached(t *testing.T) {
	s := newStage(t)
	most := int32(7)
	s.create(builders.System("basil").Obj(), builders.Experiment("exp").System("basil").Values("clients", 1, 2).Set(func(e *v1alpha1.ExperimentSpec) {
		e.Repetitions = v1alpha1.Repetitions{Min: 3, Max: &most, Until: &v1alpha1.StoppingRule{RelativeCI: "5%"}}
	}).Obj())
	exp := s.settle()
	if of := exp.Spec.Repetitions.Until.Of; len(of) != 2 {
		t.Errorf("the API server's default of until.of is %v", of)
	}
	s.expect(exp, accepted, "True Valid", "2 points with 5 to 7 valid trials each are planned.")
	s.expect(exp, complete, "False TrialsRunning", "0 of 10 trials are valid. Up to 4 more follow where means are not known to within 5%.")
	for range 14 {
		for _, trial := range s.trials() {
			if plan.Outcome(&trial) == v1alpha1.ReasonInProgress {
				s.finishWith(10 + 5*float64(trial.Spec.Point.Index)*float64(trial.Spec.Repetition%2))
			}
		}
		s.use(s.env.Client) // another manager
		exp = s.settle()
	}
	s.expect(exp, complete, "True AllTrialsValid", "All 14 trials of 2 points are valid.", "Precision reached: the means of 1 of 2 points", "Max reached: 1 with 7 trials are not: point 1")
	if diff := cmp.Diff(v1alpha1.TrialCounts{Planned: 14, Succeeded: 14}, exp.Status.Trials); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if r := s.results(exp.Status.ResultsConfigMap); r.Planned != 14 || r.Points[0].Valid != 7 || r.Points[1].Valid != 7 {
		t.Errorf("results: planned %d, valid %d and %d", r.Planned, r.Points[0].Valid, r.Points[1].Valid)
	}
}

// Repetitions go on until the claims are decided. "far" is decided at the first look. "near" is
// decided at none, and hopeless at a look before the last. The manager is replaced after each
// trial.
func TestRepetitionsUntilTheClaimsAreDecided(t *testing.T) {
	s := newStage(t)
	most := int32(12)
	s.create(builders.System("basil").Obj(), builders.Experiment("exp").System("basil").Values("clients", 1, 2).Set(func(e *v1alpha1.ExperimentSpec) {
		e.Repetitions = v1alpha1.Repetitions{Min: 3, Max: &most, Until: &v1alpha1.StoppingRule{Claims: v1alpha1.ClaimsDecided}}
		e.Claims = []v1alpha1.Claim{
			{Name: "far", Statement: "s", Expr: "mean_latency(clients=1) < 2 * mean_latency(clients=2)"},
			{Name: "near", Statement: "s", Expr: "mean_latency(clients=1) < mean_latency(clients=2)"},
		}
	}).Obj())
	exp := s.settle()
	s.expect(exp, complete, "False TrialsRunning", "0 of 6 trials are valid. Up to 18 more follow until claims are decided.")
	for range 24 {
		if exp.Status.CompletionTime != nil {
			break
		}
		for _, trial := range s.trials() {
			if plan.Outcome(&trial) == v1alpha1.ReasonInProgress {
				s.finishWith(10 + 0.1*float64((int(trial.Spec.Repetition)+int(trial.Spec.Point.Index))%2))
			}
		}
		s.use(s.env.Client) // another manager
		exp = s.settle()
	}
	if len(s.trials()) <= 6 || len(s.trials()) >= 24 {
		t.Errorf("%d trials", len(s.trials()))
	}
	s.expect(exp, complete, "True AllTrialsValid", "of 10, after", "rounds: each claim is decided or hopeless.")
	r := s.results(exp.Status.ResultsConfigMap)
	if r.Look == nil || r.Look.Rounds != len(s.trials())/2 || r.Claims[0].Verdict != "Holds" || r.Claims[1].Verdict != "Inconclusive" || r.Claims[1].Chance == nil {
		t.Errorf("look %+v, claims %+v", r.Look, r.Claims)
	}
}

// A complete experiment goes on when it gets additional repetitions. Its verdicts then use the old
// and the new trials.
func TestContinuesWithAdditionalRepetitions(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), claimed(map[string]string{"ten": "mean_latency(clients=1) < 10.1ms"}).Obj())
	finish := func(exp *v1alpha1.Experiment) *v1alpha1.Experiment {
		for range 20 {
			if exp.Status.CompletionTime != nil {
				break
			}
			s.finishWith(s.latency(false))
			exp = s.settle()
		}
		return exp
	}
	exp := finish(s.settle())
	if len(s.trials()) != 6 || exp.Status.Claims[0].Verdict != v1alpha1.VerdictInconclusive || !strings.Contains(exp.Status.Claims[0].Message, "n=3") {
		t.Fatalf("%d trials, %+v", len(s.trials()), exp.Status.Claims)
	}
	old := map[string]bool{}
	for _, trial := range s.trials() {
		old[trial.Name] = true
	}
	exp.Spec.AdditionalRepetitions = 7
	if err := s.c.Update(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	exp = s.settle()
	if exp.Status.CompletionTime != nil || meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) || exp.Status.Trials.Planned != 20 {
		t.Errorf("it does not go on: %+v", exp.Status)
	}
	exp = finish(exp)
	for _, trial := range s.trials() {
		delete(old, trial.Name)
	}
	if len(s.trials()) != 20 || len(old) > 0 {
		t.Errorf("%d trials, and of the old ones %d are gone", len(s.trials()), len(old))
	}
	if c := exp.Status.Claims[0]; c.Verdict != v1alpha1.VerdictFails || !strings.Contains(c.Message, "n=10") || !strings.Contains(c.Message, "10.35 ms") {
		t.Errorf("%s: %s", c.Verdict, c.Message)
	}
	if c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentComplete); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "All 20 trials") {
		t.Errorf("complete: %+v", c)
	}
}
