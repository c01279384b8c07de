package validity

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// Once, "1µs are tolerated" did not name the tolerance, and an end of Chaos Mesh "may be late by
// 2s" gave no reason.
func TestALateFaultNamesItsTolerance(t *testing.T) {
	for name, tc := range map[string]struct {
		kind                 timeline.Kind
		chaosMeshLateness    v1alpha1.Duration
		confirmed, startedAt float64
		want                 string
	}{
		"ours":                       {timeline.Pause, "1s", 1021, 1000, "was confirmed 21.000 ms after its planned instant; tolerances.faultLateness is 20ms."},
		"of Chaos Mesh":              {timeline.Inject, "1s", 2500, 1000, "was confirmed 1500.000 ms after its planned instant; tolerances.chaosMeshLateness is 1s."},
		"an end":                     {timeline.Recover, "1s", 2600, 2500, "tolerances.chaosMeshLateness is 1s."},
		"an end, and much tolerance": {timeline.Recover, "10s", 3600, 3500, "the manager has to ask Chaos Mesh for an end within 2s, which is Assay's own bound: tolerances.chaosMeshLateness does not raise it."},
	} {
		spec := &v1alpha1.TrialSpec{
			Schedule:   v1alpha1.Schedule{WarmUp: "5s", Measure: "20s", CoolDown: "2s", Drain: "5s"},
			Tolerances: v1alpha1.Tolerances{FaultLateness: "20ms", ChaosMeshLateness: tc.chaosMeshLateness},
		}
		got := judgeFaults(spec, []results.FaultRecord{{
			ID: "f", Fault: "f", Pod: "a0", Kind: string(tc.kind), PlannedMillis: 1000, StartedMillis: tc.startedAt, ConfirmedMillis: tc.confirmed,
		}}, nil)
		if got.Reason != v1alpha1.ReasonFaultLate || !strings.HasSuffix(got.Message, tc.want) {
			t.Errorf("%s: %s %q, want one that ends with %q", name, got.Reason, got.Message, tc.want)
		}
	}
}

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
			f.PlannedMillis, f.StartedMillis, f.ConfirmedMillis = 3000, 3000, 3900 // its effect takes time to begin
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
		"a shard that was asked too late": {reason: v1alpha1.ReasonFaultNotConfirmed, faults: []results.FaultRecord{
			record(timeline.Kill, "a0", follows), record(timeline.Kill, "a1", led), record(timeline.Kill, "b0", follows), record(timeline.Kill, "b1", func(f *results.FaultRecord) {
				follows(f)
				f.Unanswered = "the answer came 40ms after the fault was to begin"
			}),
		}},
		"a leader among those that do not answer": {faults: []results.FaultRecord{
			record(timeline.Kill, "a0", led), record(timeline.Kill, "a1", func(f *results.FaultRecord) { follows(f); f.Unanswered = "its command did not end" }),
			record(timeline.Kill, "b0", follows), record(timeline.Kill, "b1", led),
		}},
		"a component whose leader is hit": {faults: []results.FaultRecord{record(timeline.Kill, "p0", follows), record(timeline.Kill, "p1", led)}},
		"a component without a leader":    {reason: v1alpha1.ReasonRoleNotFound, faults: []results.FaultRecord{record(timeline.Kill, "p0", follows), record(timeline.Kill, "p1", follows)}},
		"a shard with two": {reason: v1alpha1.ReasonRoleAmbiguous, faults: []results.FaultRecord{
			record(timeline.Pause, "a0", follows), record(timeline.Pause, "a1", led), record(timeline.Pause, "b0", led), record(timeline.Pause, "b1", led),
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := judgeFaults(spec, tc.faults, map[string]int{"a0": 0, "a1": 0, "b0": 1, "b1": 1, "p0": placement.NoShard, "p1": placement.NoShard})
			if v.Reason != tc.reason {
				t.Errorf("reason %q (%s), want %q", v.Reason, v.Message, tc.reason)
			}
			if strings.Contains(v.Message, "shard -1") {
				t.Errorf("a component is called a shard: %s", v.Message)
			}
		})
	}
}

// Once, a cut counted as confirmed if its rules were in place, even if no packet met them.
func TestACutThatLosesNothing(t *testing.T) {
	cut := func(kind timeline.Kind, at time.Duration, packets uint64) results.FaultRecord {
		f := results.FaultRecord{ID: "f/1/cut/a", Fault: "f", Pod: "a", Kind: string(kind), PlannedMillis: results.Millis(at), ConfirmedMillis: results.Millis(at) + 1, Packets: packets}
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
		"none where no pod had the role": {both, []results.FaultRecord{skipped(cut(timeline.Cut, second, 0)), skipped(cut(timeline.Heal, 9*second, 0))}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := judgeCuts([]timeline.Action{tc.action}, tc.faults, 20*second)
			if wrong := v.Reason == v1alpha1.ReasonFaultNotConfirmed; wrong != (tc.want != "") || !strings.Contains(v.Message, tc.want) {
				t.Errorf("%q: %s; want %q", v.Reason, v.Message, tc.want)
			}
		})
	}
}

// If a script is over before a fault was to begin, the fault did not disturb it.
func TestFaultsAfterTheScriptsEnd(t *testing.T) {
	spec := &v1alpha1.TrialSpec{
		Schedule: v1alpha1.Schedule{WarmUp: "0s", Measure: "28.5s", CoolDown: "0s", Drain: "10s"}, Tolerances: v1alpha1.Tolerances{FaultLateness: "20ms"},
		Script: &v1alpha1.TrialScript{},
	}
	at := func(millis float64) results.FaultRecord {
		return results.FaultRecord{ID: "f", Fault: "f", Pod: "a", Kind: string(timeline.Kill), PlannedMillis: millis, StartedMillis: millis, ConfirmedMillis: millis}
	}
	for name, tc := range map[string]struct {
		faults []results.FaultRecord
		want   string
	}{
		"in time":             {[]results.FaultRecord{at(5000)}, ""},
		"too late":            {[]results.FaultRecord{at(60000)}, "Fault f was to begin at 60.0 s, and the script was over after 28.5 s"},
		"again, and too late": {[]results.FaultRecord{at(5000), at(60000)}, ""},
	} {
		if got := judgeFaults(spec, tc.faults, map[string]int{}); !strings.HasPrefix(got.Message, tc.want) || got.OK() != (tc.want == "") {
			t.Errorf("%s: %q, want %q", name, got.Message, tc.want)
		}
	}
}
