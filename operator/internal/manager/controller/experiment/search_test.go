package experiment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// finishQueue ends the active trial like a trial of a queue. Its 99th percentile rises without
// bound as the load nears the trial's own service rate. The objective of 20 ms holds up to served -
// ln(100)/20ms.
func (s *stage) finishQueue(served, deviation float64, rng *rand.Rand) {
	s.t.Helper()
	for _, trial := range s.trials() {
		if plan.Outcome(&trial) != v1alpha1.ReasonInProgress {
			continue
		}
		end(&trial, v1alpha1.ReasonSucceeded, s.clock.Now())
		h, rate, capacity := trial.Status.Headline, float64(*trial.Spec.Clients.Rate), served*math.Exp(deviation*rng.NormFloat64())
		h.Offered = int64(20 * rate)
		h.Committed, h.P99LatencyMicroseconds = int64(20*math.Min(rate, capacity)), 3_600_000_000
		if rate < capacity {
			h.P99LatencyMicroseconds = int64(1e6 * math.Log(100) / (capacity - rate))
		}
		if err := s.c.Status().Update(s.t.Context(), &trial); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Fatal("no trial is active")
}

// A search runs on a real API server, with the results of simulated queues. Trials are made one by
// one. The status and the results have the capacity with its interval. A claim reads it, and it can
// be computed again from the stored results. The manager is replaced after each trial.
func TestSearchForACapacity(t *testing.T) {
	const served, deviation = 3000.0, 0.02
	want := served - math.Log(100)/0.020
	s, rng := newStage(t), rand.New(rand.NewPCG(4, 5))
	exp := builders.Experiment("exp").System("basil").
		Search("rate", v1alpha1.CapacitySearch{From: 100, To: 10_000, Objective: v1alpha1.LoadObjective{P99Latency: "20ms", Goodput: "95%"}}).
		Set(func(e *v1alpha1.ExperimentSpec) {
			e.Clients.Loop, e.Clients.Count = v1alpha1.LoopOpen, 100
			expected := v1alpha1.NewValue("2800")
			e.Claims = []v1alpha1.Claim{
				{Name: "capacity", Statement: "It carries 2,800 requests per second.", Expr: "capacity()", Expected: &expected, Within: "15%"},
				{Name: "more", Statement: "It carries 5,000.", Expr: "capacity() >= 5000"},
			}
		}).Obj()
	s.create(builders.System("basil").Obj(), exp)
	exp = s.settle()
	if c := exp.Spec.Sweep[0].Search; c.Precision != "5%" || c.Trials != 60 {
		t.Errorf("the API server's defaults: %s, %d trials", c.Precision, c.Trials)
	}
	s.expect(exp, v1alpha1.ExperimentAccepted, "True Valid", "1 search for the highest rate from 100 to 10000 with p99 latency at most 20ms and goodput at least 95%: 20 to 60 valid trials each")
	for n := 0; exp.Status.CompletionTime == nil; n++ {
		if got := len(s.trials()); got != n+1 || exp.Status.Capacities[0].Outcome != v1alpha1.CapacitySearching {
			t.Fatalf("%d trials after %d are done, %+v", got, n, exp.Status.Capacities)
		}
		s.finishQueue(served, deviation, rng)
		s.use(s.c)
		exp = s.settle()
	}
	c := exp.Status.Capacities[0]
	t.Logf("%d trials, capacity %d [%d, %d], true %.0f", c.Trials, c.CapacityMilli/1000, c.LowMilli/1000, c.HighMilli/1000, want)
	if c.Outcome != v1alpha1.CapacityFound || int(c.Trials) != len(s.trials()) || c.Trials > 48 || float64(c.LowMilli) > 1000*want || float64(c.HighMilli) < 1000*want {
		t.Errorf("%+v does not hold %.0f", c, want)
	}
	if got := exp.Status.Progress.Trials; got != fmt.Sprintf("%d/%d", c.Trials, c.Trials) || !meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentReady) {
		t.Errorf("progress %s, conditions %+v", got, exp.Status.Conditions)
	}
	verdicts := map[string]v1alpha1.Verdict{}
	for _, c := range exp.Status.Claims {
		verdicts[c.Name] = c.Verdict
		t.Logf("%s: %s", c.Name, c.Message)
	}
	if verdicts["capacity"] != v1alpha1.VerdictHolds || verdicts["more"] != v1alpha1.VerdictFails {
		t.Errorf("verdicts %v", verdicts)
	}
	e := s.results(exp.Status.ResultsConfigMap)
	tried := 0
	for _, p := range e.Points {
		tried += p.Valid
	}
	if tried != int(c.Trials) || len(e.Axes[0].Values) != len(e.Points) || len(e.Capacities) != 1 || len(e.Trials) != tried {
		t.Errorf("results of %d trials at %d points, %d values on the axis, %d capacities", tried, len(e.Points), len(e.Axes[0].Values), len(e.Capacities))
	}
	if v := model.Verify(*e, nil, exp.Spec, nil); len(v.Differences) > 0 {
		t.Errorf("computed again: %v", v.Differences)
	}
	*e.Capacities[0].Capacity *= 1.01
	e.Trials = append([]results.TrialLine(nil), e.Trials...)
	if v := model.Verify(*e, nil, exp.Spec, nil); len(v.Differences) != 1 {
		t.Errorf("a capacity that was changed by 1%%: %v", v.Differences)
	}
}
