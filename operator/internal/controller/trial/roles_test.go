package trial

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
)

func TestJudgeFaults(t *testing.T) {
	spec := &v1alpha1.TrialSpec{
		Schedule:   v1alpha1.Schedule{WarmUp: "5s", Measure: "20s", CoolDown: "2s", Drain: "5s"},
		Tolerances: v1alpha1.Tolerances{FaultLateness: "20ms"},
	}
	record := func(kind timeline.Kind, pod string, change func(*results.FaultRecord)) results.FaultRecord {
		f := results.FaultRecord{
			ID: "f/1/" + strings.ToLower(string(kind)) + "/" + pod, Fault: "f", Pod: pod, Kind: string(kind),
			PlannedMillis: 1000, StartedMillis: 1000, ConfirmedMillis: 1001,
		}
		if kind.Ends() {
			f.PlannedMillis, f.StartedMillis, f.ConfirmedMillis = 3000, 3000, 3900 // what it starts takes its time
			f.Ends = "f/1/cut/" + pod
		}
		if change != nil {
			change(&f)
		}
		return f
	}
	led := func(f *results.FaultRecord) { f.Role = "leader" }
	follows := func(f *results.FaultRecord) {
		f.Role, f.Skipped, f.StartedMillis, f.ConfirmedMillis = "leader", true, 0, 0
	}
	tests := map[string]struct {
		faults []results.FaultRecord
		reason string
	}{
		"as planned": {faults: []results.FaultRecord{record(timeline.Cut, "a0", nil), record(timeline.Heal, "a0", nil)}},
		"begun late": {reason: v1alpha1.ReasonFaultLate, faults: []results.FaultRecord{
			record(timeline.Pause, "a0", func(f *results.FaultRecord) { f.ConfirmedMillis = 1021 }),
		}},
		"begun early": {reason: v1alpha1.ReasonFaultLate, faults: []results.FaultRecord{
			record(timeline.Degrade, "a0", func(f *results.FaultRecord) { f.ConfirmedMillis = 979 }),
		}},
		"ended late": {reason: v1alpha1.ReasonFaultLate, faults: []results.FaultRecord{
			record(timeline.Cut, "a0", nil), record(timeline.Heal, "a0", func(f *results.FaultRecord) { f.StartedMillis = 3021 }),
		}},
		"a machine that takes its time to come back": {faults: []results.FaultRecord{
			record(timeline.Reset, "a0", func(f *results.FaultRecord) { f.ConfirmedMillis = 15000 }),
		}},
		"not begun": {reason: v1alpha1.ReasonFaultNotConfirmed, faults: []results.FaultRecord{
			record(timeline.Cut, "a0", func(f *results.FaultRecord) { f.Error = "no nftables" }),
		}},
		"not ended": {reason: v1alpha1.ReasonFaultNotEnded, faults: []results.FaultRecord{
			record(timeline.Cut, "a0", nil), record(timeline.Heal, "a0", func(f *results.FaultRecord) { f.Error = "the agent has not reported it" }),
		}},
		"an end that was skipped": {reason: v1alpha1.ReasonFaultNotEnded, faults: []results.FaultRecord{
			record(timeline.Cut, "a0", led), record(timeline.Heal, "a0", follows),
		}},
		"not ended after the last request": {faults: []results.FaultRecord{
			record(timeline.Cut, "a0", nil), record(timeline.Heal, "a0", func(f *results.FaultRecord) { f.PlannedMillis, f.Error = 22001, "no" }),
		}},
		"one leader in each shard": {faults: []results.FaultRecord{
			record(timeline.Cut, "a0", follows), record(timeline.Cut, "a1", led), record(timeline.Cut, "b0", led), record(timeline.Cut, "b1", follows),
			record(timeline.Heal, "a0", follows), record(timeline.Heal, "a1", led), record(timeline.Heal, "b0", led), record(timeline.Heal, "b1", follows),
		}},
		"a shard without a leader": {reason: v1alpha1.ReasonRoleNotFound, faults: []results.FaultRecord{
			record(timeline.Kill, "a0", follows), record(timeline.Kill, "a1", led), record(timeline.Kill, "b0", follows), record(timeline.Kill, "b1", follows),
		}},
		"a shard with two": {reason: v1alpha1.ReasonRoleAmbiguous, faults: []results.FaultRecord{
			record(timeline.Pause, "a0", follows), record(timeline.Pause, "a1", led), record(timeline.Pause, "b0", led), record(timeline.Pause, "b1", led),
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reason, message := judgeFaults(spec, tc.faults, map[string]int{"a0": 0, "a1": 0, "b0": 1, "b1": 1})
			if reason != tc.reason {
				t.Errorf("reason %q (%s), want %q", reason, message, tc.reason)
			}
		})
	}
}

// A cut whose rules were there, and which no packet met, counted as confirmed.
func TestACutThatLosesNothing(t *testing.T) {
	cut := func(kind timeline.Kind, at time.Duration, packets uint64) results.FaultRecord {
		f := results.FaultRecord{ID: "f/1/cut/a", Fault: "f", Pod: "a", Kind: string(kind), PlannedMillis: millis(at), ConfirmedMillis: millis(at) + 1, Packets: packets}
		if kind == timeline.Heal {
			f.ID, f.Ends = "f/1/heal/a", "f/1/cut/a"
		}
		return f
	}
	of := func(pod string, kind timeline.Kind) results.FaultRecord {
		return results.FaultRecord{ID: "g/1/x/" + pod, Fault: "g", Pod: pod, Kind: string(kind), PlannedMillis: 1000}
	}
	skipped := func(f results.FaultRecord) results.FaultRecord {
		f.Skipped, f.Role = true, "leader"
		return f
	}
	both := timeline.Action{ID: "f/1/cut/a", Pod: "a", Kind: timeline.Cut, Out: []string{"b"}, In: []string{"b"}}
	in := both
	in.Out = nil
	second := time.Second
	tests := map[string]struct {
		action timeline.Action
		faults []results.FaultRecord
		want   string // in the message; none: it is confirmed
	}{
		"some are lost":               {both, []results.FaultRecord{cut(timeline.Cut, second, 0), cut(timeline.Heal, 9*second, 1)}, ""},
		"none is lost":                {both, []results.FaultRecord{cut(timeline.Cut, second, 0), cut(timeline.Heal, 4*second, 0)}, "f (Cut of a) was in force for 3.0 s of the window and lost no packet"},
		"none is lost in a short cut": {both, []results.FaultRecord{cut(timeline.Cut, second, 0), cut(timeline.Heal, 3900*time.Millisecond, 0)}, ""},
		"none in a warm-up":           {both, []results.FaultRecord{cut(timeline.Cut, -4*second, 0), cut(timeline.Heal, 2*second, 0)}, ""},
		"none from before the window": {both, []results.FaultRecord{cut(timeline.Cut, -4*second, 0), cut(timeline.Heal, 5*second, 0)}, "for 5.0 s"},
		"none in the cool-down":       {both, []results.FaultRecord{cut(timeline.Cut, 18*second, 0), cut(timeline.Heal, 22*second, 0)}, ""},
		"none until the end":          {both, []results.FaultRecord{cut(timeline.Cut, second, 0)}, ""},
		"none of what arrives":        {in, []results.FaultRecord{cut(timeline.Cut, second, 0), cut(timeline.Heal, 9*second, 0)}, ""},
		"none of a pod that is dead":  {both, []results.FaultRecord{cut(timeline.Cut, second, 0), of("a", timeline.Kill), cut(timeline.Heal, 9*second, 0)}, ""},
		"none beside one that lives":  {both, []results.FaultRecord{cut(timeline.Cut, second, 0), skipped(of("a", timeline.Kill)), of("b", timeline.Kill), cut(timeline.Heal, 9*second, 0)}, "lost no packet"},
		"none of a pod that is paused": {both, []results.FaultRecord{
			cut(timeline.Cut, second, 0), of("a", timeline.Pause), cut(timeline.Heal, 9*second, 0),
		}, "lost no packet"},
		"none where nobody had the role": {both, []results.FaultRecord{skipped(cut(timeline.Cut, second, 0)), skipped(cut(timeline.Heal, 9*second, 0))}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reason, message := judgeCuts([]timeline.Action{tc.action}, tc.faults, 20*second)
			if wrong := reason == v1alpha1.ReasonFaultNotConfirmed; wrong != (tc.want != "") || !strings.Contains(message, tc.want) {
				t.Errorf("%q: %s; want %q", reason, message, tc.want)
			}
		})
	}
}

// A role is looked for by each replica when the time comes; the trial counts only if one of them had it.
func TestTheLeaderIsKilled(t *testing.T) {
	for leaders, reason := range map[int]string{0: v1alpha1.ReasonRoleNotFound, 1: v1alpha1.ReasonSucceeded, 2: v1alpha1.ReasonRoleAmbiguous} {
		t.Run(fmt.Sprintf("%d leaders", leaders), func(t *testing.T) {
			p := newPlayOf(t, func(s *v1alpha1.SystemSpec) {
				s.Roles = []v1alpha1.Role{{Name: "leader", Command: []string{"/leader", "{{.Self.Index}}"}}}
			}, func(s *v1alpha1.ExperimentSpec) {
				s.Faults = []v1alpha1.Fault{{Name: "view-change", At: "2s", EveryPoint: true, NodeKill: &v1alpha1.NodeKill{Mode: "Pods", Target: v1alpha1.Target{Role: "leader"}}}}
			})
			p.released()
			for i, name := range p.layout().ReplicaPods() {
				if roles := p.agents.directives[name].Roles; len(roles) != 1 || roles[0].Gate.Command[1] != fmt.Sprint(i) {
					t.Fatalf("%s is told %+v of its role", name, roles)
				}
				p.agents.reports[name].Actions[0].Skipped = i >= leaders
			}
			p.measured(10, 0)
			p.settle(false)
			p.clock.Step(time.Minute)
			p.settle(false)
			outcome := v1alpha1.ReasonInvalid
			if reason == v1alpha1.ReasonSucceeded {
				outcome = reason
			}
			if got := p.wantEnd(outcome, reason); len(got.Faults) != 3 || got.Faults[2].Role != "leader" || !got.Faults[2].Skipped {
				t.Errorf("the records are %+v", got.Faults)
			}
		})
	}
}

// The recovery from a fault is counted from where it was confirmed first.
func TestRecoveries(t *testing.T) {
	line := results.NewTimeline(-5000, 270)
	for i := range line.Committed {
		line.Committed[i] = 100
		if at := line.FirstMillis + int64(i)*line.IntervalMillis; at >= 5000 && at < 8000 {
			line.Committed[i] = 0
		}
	}
	trial := &results.Trial{MeasureNanos: (20 * time.Second).Nanoseconds(), Timeline: &line, Faults: []results.FaultRecord{
		{ID: "early/1/kill/a", Time: 1, Fault: "early", Kind: "Kill", ConfirmedMillis: -1000},
		{ID: "crash/1/kill/b", Time: 1, Fault: "crash", Kind: "Kill", ConfirmedMillis: 5002},
		{ID: "crash/1/kill/a", Time: 1, Fault: "crash", Kind: "Kill", ConfirmedMillis: 5001},
		{ID: "crash/1/kill/c", Time: 1, Fault: "crash", Kind: "Kill", Skipped: true},
		{ID: "crash/1/revive/a", Time: 1, Fault: "crash", Kind: "Revive", ConfirmedMillis: 8000},
	}}
	got := recoveries(trial)
	if len(got) != 1 {
		t.Fatalf("recoveries are %+v, want one, of the crash", got)
	}
	r := got[0]
	if r.Fault != "crash" || r.Time != 1 || r.ConfirmedMillis != 5001 || r.ThroughputBefore != 1000 || !r.Dipped || !r.Recovered || r.RecoverMillis != 2999 || r.Depth != 1 || r.LostTransactions != 3000 {
		t.Errorf("the recovery is %+v", r)
	}
}
