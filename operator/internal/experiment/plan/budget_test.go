package plan_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// spend carries a plan out. Each trial begins when the trial before it ends, and takes its time on
// so many nodes. It returns the trials and the last step.
func spend(t *testing.T, p *plan.Plan, began time.Time, nodes int32, took func(number int32) (time.Duration, string)) ([]v1alpha1.Trial, plan.Step) {
	t.Helper()
	var trials []v1alpha1.Trial
	for p.At = began; len(trials) < 1000; {
		step := plan.Next(p, 7, trials)
		if step.Create == nil {
			return trials, step
		}
		lasted, outcome := took(step.Create.Number)
		one := *builders.Trial("t").Spec(*step.Create).Complete(outcome).Obj()
		admitted, done := metav1.NewMicroTime(p.At), metav1.NewMicroTime(p.At.Add(lasted))
		one.Status.Times.Admitted, one.Status.Times.Done, one.Status.Nodes = &admitted, &done, nodes
		trials, p.At = append(trials, one), done.Time
	}
	t.Fatal("1000 trials and no end")
	return nil, plan.Step{}
}

func TestBudget(t *testing.T) {
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	minutes := func(n ...int) func(int32) (time.Duration, string) {
		return func(number int32) (time.Duration, string) {
			return time.Duration(n[min(int(number), len(n)-1)]) * time.Minute, v1alpha1.ReasonSucceeded
		}
	}
	hours := func(q string) v1alpha1.Budget {
		return v1alpha1.Budget{NodeHours: new(resource.MustParse(q))}
	}
	until := func(d time.Duration) v1alpha1.Budget {
		return v1alpha1.Budget{Until: new(metav1.NewTime(began.Add(d)))}
	}
	for name, tc := range map[string]struct { // 2 points, 3 repetitions: 6 trials; a schedule of 36 s
		budget   v1alpha1.Budget
		nodes    int32
		took     func(int32) (time.Duration, string)
		trials   int
		reason   string
		within   string
		nodeTime time.Duration
		words    string
	}{
		"enough":                       {hours("2"), 2, minutes(10), 6, v1alpha1.ReasonAllTrialsValid, v1alpha1.ReasonWithinBudget, 2 * time.Hour, "All 6 trials"},
		"a minute too little":          {hours("1983m"), 2, minutes(10), 5, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonNodeHoursExhausted, 100 * time.Minute, "5 of 6 trials are valid, and are judged. The next trial takes about 0.333 node-hours, and of the 1983m of spec.budget.nodeHours 1.67 are used."},
		"not for one, by its schedule": {hours("10m"), 2, minutes(10), 0, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonNodeHoursExhausted, 0, "0 of 6 trials are valid"},
		"the longest counts":           {hours("1990m"), 1, minutes(10, 40, 10), 5, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonNodeHoursExhausted, 80 * time.Minute, "takes about 0.667 node-hours"},
		"in time":                      {until(time.Hour), 4, minutes(10), 6, v1alpha1.ReasonAllTrialsValid, v1alpha1.ReasonWithinBudget, 4 * time.Hour, "All 6"},
		"a second too late":            {until(time.Hour - time.Second), 4, minutes(10), 5, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDeadlineReached, 200 * time.Minute, "takes about 10m0s, and would not be over at spec.budget.until, 2026-11-26T12:59:59Z."},
		"over before it begins":        {until(30 * time.Second), 4, minutes(10), 0, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDeadlineReached, 0, "0 of 6 trials are valid"},
		"both, and time is first":      {v1alpha1.Budget{NodeHours: hours("2").NodeHours, Until: until(25 * time.Minute).Until}, 1, minutes(10), 2, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDeadlineReached, 20 * time.Minute, "2 of 6"},
	} {
		t.Run(name, func(t *testing.T) {
			p := expand(t, builders.Experiment("e").System("basil").Values("clients", 2, 4).Repetitions(3).Set(func(s *v1alpha1.ExperimentSpec) {
				s.Schedule = v1alpha1.Schedule{WarmUp: "5s", Measure: "30s", CoolDown: "1s", Drain: "10s"}
				s.Clients.Nodes, s.Budget = 2, &tc.budget
			}))
			trials, step := spend(t, p, began, tc.nodes, tc.took)
			if len(trials) != tc.trials || !step.Done || step.Reason != tc.reason || step.Budget.Reason != tc.within || step.NodeTime != tc.nodeTime {
				t.Errorf("%d trials, done %t, %s, %s, %v of nodes; want %d, %s, %s, %v", len(trials), step.Done, step.Reason, step.Budget.Reason, step.NodeTime, tc.trials, tc.reason, tc.within, tc.nodeTime)
			}
			if !strings.Contains(step.Message, tc.words) {
				t.Errorf("the message %q does not say %q", step.Message, tc.words)
			}
		})
	}
}

// Invalid trials cost node-hours, too. A trial whose pods were never placed counts with the
// expected number of nodes.
func TestInvalidTrialsArePaid(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Repetitions(3).Retries(10).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Budget = &v1alpha1.Budget{NodeHours: new(resource.MustParse("1"))}
	}))
	trials, step := spend(t, p, time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), 3, func(number int32) (time.Duration, string) {
		if number%2 == 1 {
			return 6 * time.Minute, v1alpha1.ReasonInvalid
		}
		return 5 * time.Minute, v1alpha1.ReasonSucceeded
	})
	// 3 nodes for 5, 6 and 5 minutes are 48 minutes. 15 more would be 63.
	if len(trials) != 3 || step.Budget.Reason != v1alpha1.ReasonNodeHoursExhausted || step.NodeTime != 48*time.Minute {
		t.Errorf("%d trials, %s, %v", len(trials), step.Budget.Reason, step.NodeTime)
	}
	trials[1].Status.Nodes = 0
	if step := plan.Next(p, 7, trials); step.NodeTime != 48*time.Minute {
		t.Errorf("the trial without nodes makes it %v", step.NodeTime)
	}
}

// A trial that waits in the queue past its time is withdrawn. A running trial is not.
func TestLateTrialsAreWithdrawn(t *testing.T) {
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	p := expand(t, builders.Experiment("e").System("basil").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Schedule = v1alpha1.Schedule{WarmUp: "5s", Measure: "30s", CoolDown: "1s", Drain: "10s"}
		s.Budget = &v1alpha1.Budget{Until: new(metav1.NewTime(began.Add(time.Hour)))}
	}))
	p.At = began
	first := plan.Next(p, 7, nil)
	waits := *builders.Trial("t").Spec(*first.Create).Obj()
	runs := waits
	runs.Status.Times.Admitted = new(metav1.NewMicroTime(began))
	latest := began.Add(time.Hour - 36*time.Second)
	for name, tc := range map[string]struct {
		trial v1alpha1.Trial
		at    time.Time
		want  int
		again time.Time
	}{
		"waits, in time":  {waits, latest, 0, latest},
		"waits, too late": {waits, latest.Add(time.Nanosecond), 1, latest},
		"runs":            {runs, latest.Add(time.Minute), 0, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			p.At = tc.at
			step := plan.Next(p, 7, []v1alpha1.Trial{tc.trial})
			if len(step.Withdraw) != tc.want || !step.Budget.Again.Equal(tc.again) || step.Done {
				t.Errorf("withdrawn %q, again at %v, done %t; want %d, %v", step.Withdraw, step.Budget.Again, step.Done, tc.want, tc.again)
			}
		})
	}
}

// A search ends when its budget is used up.
func TestBudgetOfASearch(t *testing.T) {
	p := expand(t, builders.Experiment("e").System("basil").Retries(10).
		Search("clients", v1alpha1.CapacitySearch{From: 20, To: 90, Precision: "5%", Trials: 60, Objective: v1alpha1.LoadObjective{P99Latency: "20ms"}}).
		Set(func(s *v1alpha1.ExperimentSpec) {
			s.Budget = &v1alpha1.Budget{NodeHours: new(resource.MustParse("1"))}
		}))
	trials, step := spend(t, p, time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), 1, func(int32) (time.Duration, string) { return 25 * time.Minute, v1alpha1.ReasonInvalid })
	if len(trials) != 3 || step.Reason != v1alpha1.ReasonBudgetExhausted || !strings.Contains(step.Message, "0 valid trials are judged. The next trial takes") {
		t.Errorf("%d trials, %s: %s", len(trials), step.Reason, step.Message)
	}
}
