package trial

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/node/protocol"
)

// busyMachine makes all agents report a machine of two processors. Other programs use cores
// processors of it.
func (p *play) busyMachine(cores float64) {
	for _, r := range p.agents.reports {
		r.Load = &protocol.Load{Machine: "m", CPUs: 2, Seconds: 1, BusyCores: cores}
	}
}

func TestATrialWaitsForIdleMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		idleAfter time.Duration // 0: never
		takeOver  bool          // another manager takes over during the wait
		want      v1alpha1.IdleGate
		message   string
	}{
		"that comes": {idleAfter: 7 * time.Second, want: v1alpha1.IdleGate{Idle: true, WaitedMilliseconds: 7000},
			message: "t = 0 is agreed and every client is released."},
		"that does not come": {want: v1alpha1.IdleGate{WaitedMilliseconds: 20000,
			Message: "others than the trial took 60% of the processors of node ; disturbances.idleThreshold is 25%"},
			message: "t = 0 is agreed and every client is released. It waited 20s for idle machines in vain: others than the trial took 60% of the processors of node ; disturbances.idleThreshold is 25%."},
		"and the wait goes on with another manager": {idleAfter: 9 * time.Second, takeOver: true, want: v1alpha1.IdleGate{Idle: true, WaitedMilliseconds: 9000},
			message: "t = 0 is agreed and every client is released."},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleWait = "20s" })
			p.settle(true)
			p.schedule()
			p.busyMachine(1.2)
			p.settle(true)
			p.wantRunning(v1alpha1.ReasonWaitingForIdle, "for 20s at most")
			barrier := p.trial().Status.Times.Barrier
			if d := p.agents.directives[p.layout().Clients[0].Name]; barrier == nil || !d.SampleLoad || !d.AwaitsIdle {
				t.Fatalf("at the barrier since %v, with %+v; the agents must be asked for each reading of their load", barrier, d)
			}
			for waited := time.Second; p.trial().Status.ZeroUnixNanos == 0; waited += time.Second {
				if waited > time.Minute {
					t.Fatal("it waits for ever")
				}
				if after := p.reconcile().RequeueAfter; after != engine.IdlePoll {
					t.Fatalf("it looks again after %v; want %v, since nothing else would wake it", after, engine.IdlePoll)
				}
				if tc.takeOver && waited == 5*time.Second {
					p.newReconciler()
				}
				p.clock.Step(time.Second)
				if waited == tc.idleAfter {
					p.busyMachine(0.1)
				}
				p.settle(true)
			}
			status := p.trial().Status
			if status.IdleGate == nil || *status.IdleGate != tc.want {
				t.Errorf("%+v, want %+v", status.IdleGate, tc.want)
			}
			p.wantRunning(v1alpha1.ReasonReleased, tc.message)
			if d := p.agents.directives[p.layout().Clients[0].Name]; d.SampleLoad || d.AwaitsIdle || d.Run == nil {
				t.Errorf("released, the agents must not be asked for their load any more: %+v", d)
			}
		})
	}
}

// The agents' first second of readings must not begin only when all else is ready: each trial once
// waited for it. Steps may take hours, and nothing needs the load of these.
func TestTheLoadIsReadBeforeTheClientsAreReady(t *testing.T) {
	warm := v1alpha1.Step{Name: "warm", RunsOn: v1alpha1.StepEveryReplica, Command: []string{"/warm"}, Until: "ExitZero", Timeout: "60s"}
	for name, tc := range map[string]struct {
		steps []v1alpha1.Step
		want  bool
	}{"no steps": {nil, true}, "steps": {[]v1alpha1.Step{warm}, false}} {
		t.Run(name, func(t *testing.T) {
			p := newPlayOf(t, func(s *v1alpha1.SystemSpec) { s.Steps = tc.steps }, func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleWait = "20s" })
			p.starting()
			d := p.agents.directives[p.layout().Clients[0].Name]
			if d.SampleLoad != tc.want || d.AwaitsIdle || d.Run != nil {
				t.Errorf("while replicas start the client's agent is told %+v; want SampleLoad %v, and no more", d, tc.want)
			}
			p.settle(true)
			if p.trial().Status.ZeroUnixNanos == 0 {
				t.Errorf("not released: %s", p.conditions())
			}
		})
	}
}

func TestATrialThatIsNotToWait(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleWait = "0s" })
	p.settle(true)
	p.schedule()
	p.busyMachine(2)
	p.settle(true)
	if status := p.trial().Status; status.ZeroUnixNanos == 0 || status.IdleGate != nil {
		t.Errorf("t = 0 is %d, and it is said %+v; want a release at once", status.ZeroUnixNanos, status.IdleGate)
	}
}

// wantRunning checks the reason and the message of the condition Running.
func (p *play) wantRunning(reason, message string) {
	p.t.Helper()
	c := meta.FindStatusCondition(p.trial().Status.Conditions, v1alpha1.TrialRunning)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
		p.t.Errorf("Running is %+v, want %s: %s", c, reason, message)
	}
}

// A manager once took over after a trial had waited for longer than the barrier's deadline. It gave
// the trial up, since it had not heard from every agent yet.
func TestATakeOverLateInTheWait(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleWait = "5m" })
	p.settle(true)
	p.schedule()
	p.busyMachine(1.2)
	p.settle(true)
	p.clock.Step(engine.BarrierTimeout + time.Minute)
	p.newReconciler()
	client := p.agents.reports[p.layout().Clients[0].Name]
	client.AtBarrier = false
	p.reconcile()
	p.wantRunning(v1alpha1.ReasonClientsNotAtBarrier, "at the start barrier")
	if c := meta.FindStatusCondition(p.trial().Status.Conditions, v1alpha1.TrialValid); c != nil && c.Reason != v1alpha1.ReasonInProgress {
		t.Fatalf("the trial is given up: %+v", c)
	}
	p.busyMachine(0)
	p.settle(true)
	if q := p.trial().Status.IdleGate; q == nil || !q.Idle {
		t.Errorf("the trial has waited: %+v", q)
	}
}
