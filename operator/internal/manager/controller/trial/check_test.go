package trial

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// checked returns the play of a trial of a System whose first client checks what it has read.
func checked(t *testing.T) *play {
	t.Helper()
	return newPlay(t, func(s *v1alpha1.SystemSpec) {
		s.Checks = []v1alpha1.SafetyCheck{{
			Name: "reads", RunsOn: v1alpha1.StepFirstClient, Command: []string{"/check", "--clients={{len .Clients}}"}, ViolatedExitCode: 1, Timeout: "30s",
		}}
	})
}

// answer makes the agents carry out their directives, and the check end with an exit code.
func (p *play) answer(code int, output string) {
	p.t.Helper()
	first := p.layout().Clients[0].Name
	for range 10 {
		p.reconcile()
		p.agents.obey()
		for i := range p.agents.reports[first].Commands {
			p.agents.reports[first].Commands[i].ExitCode, p.agents.reports[first].Commands[i].Output = code, output
		}
	}
}

// A violated promise is a result: the trial counts, and its status and results say so.
func TestAViolationIsAResult(t *testing.T) {
	p := checked(t)
	p.released()
	first, second := p.layout().Clients[0].Name, p.layout().Clients[1].Name
	if n := len(p.agents.directives[first].Commands); n != 0 {
		t.Errorf("in the middle of the run %d commands are to run", n)
	}
	p.measured(100, 0)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialCollected); !strings.Contains(c.Message, "Waiting for the check reads in "+first) {
		t.Fatalf("the check is not waited for: %s: %s", c.Reason, c.Message)
	}
	if got := p.agents.directives[first].Commands; len(got) != 1 || strings.Join(got[0].Command, " ") != "/check --clients=2" {
		t.Errorf("commands of %s are %+v, want the check", first, got)
	}
	if got := p.agents.directives[second].Commands; len(got) != 0 {
		t.Errorf("commands of %s are %+v, want none", second, got)
	}
	p.answer(1, "number lost 2\nkey 7: read 3 after 4")
	p.settle(true)
	trial := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	said := p.trial().Status.Checks
	if len(said) != 1 || said[0].Verdict != v1alpha1.SafetyViolated || said[0].Message != "In "+first+". It printed: number lost 2\nkey 7: read 3 after 4" {
		t.Errorf("the status says %+v", said)
	}
	if own := results.OwnNumbers(&trial); own["checkSum:lost"] != 2 {
		t.Errorf("the check printed that 2 are lost, and the trial's numbers are %v", own)
	}
	if len(trial.Checks) != 1 || trial.Checks[0].Verdict != "Violated" || trial.Summary.Committed != 200 {
		t.Errorf("the results say %+v, with %d commits", trial.Checks, trial.Summary.Committed)
	}
}

// A check that never ends has an unknown verdict, and its trial counts. A manager that takes over
// asks for the same check.
func TestACheckThatNeverEnds(t *testing.T) {
	p := checked(t)
	p.released()
	p.measured(100, 0)
	p.settle(false)
	p.newReconciler()
	p.clock.Step(10 * time.Second)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialCollected); c.Status != metav1.ConditionFalse || p.trial().Status.Checks != nil {
		t.Fatalf("the check is not waited for: %s", p.conditions())
	}
	p.clock.Step(time.Minute)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	if said := p.trial().Status.Checks; len(said) != 1 || said[0].Verdict != v1alpha1.SafetyUnknown || !strings.Contains(said[0].Message, "has not ended") {
		t.Errorf("the status says %+v", said)
	}
}
