package judge

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
)

// No name in uses may be left over from a renamed field. The field's new name would be refused, or
// a new field might take the old name and have the wrong use.
func TestUsesAreFields(t *testing.T) {
	fields := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.ExperimentSpec]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = true
	}
	for name := range uses {
		if !fields[name] {
			t.Errorf("uses has %s, which is no field of a spec", name)
		}
	}
}

func spec() v1alpha1.ExperimentSpec {
	return v1alpha1.ExperimentSpec{
		Systems:  []v1alpha1.SystemReference{{Name: "etcd"}},
		Topology: v1alpha1.Topology{F: 1},
		Workload: v1alpha1.WorkloadReference{Name: "puts"},
		Clients:  v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Count: 4},
		Sweep:    []v1alpha1.Axis{{Axis: "clients", Values: []v1alpha1.Value{v1alpha1.NewValue("1"), v1alpha1.NewValue("4")}}},
		Schedule: v1alpha1.Schedule{Measure: "10s"},
		Claims:   []v1alpha1.Claim{{Name: "fast", Statement: "It is fast.", Expr: "throughput(clients=4) > 10"}},
		Profile:  "smoke",
		Profiles: []v1alpha1.Profile{{Name: "smoke", Schedule: &v1alpha1.Schedule{Measure: "2s"}}},
	}
}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*v1alpha1.ExperimentSpec)
		refused []string
		said    []string
	}{
		"nothing":                   {change: func(*v1alpha1.ExperimentSpec) {}},
		"a default that is given":   {change: func(s *v1alpha1.ExperimentSpec) { s.Repetitions.Min = 3 }},
		"suspend, seed, priority":   {change: func(s *v1alpha1.ExperimentSpec) { s.Suspend, s.Seed, s.Priority = true, new(int64(7)), 4 }},
		"what the profile replaces": {change: func(s *v1alpha1.ExperimentSpec) { s.Schedule.Measure = "60s" }},
		"the profile itself": {
			change:  func(s *v1alpha1.ExperimentSpec) { s.Profiles[0].Schedule.Measure = "3s" },
			refused: []string{`schedule.measure was "2s", is "3s"`},
		},
		"a point":    {change: func(s *v1alpha1.ExperimentSpec) { s.Sweep[0].Values[1] = v1alpha1.NewValue("8") }, refused: []string{`sweep[clients].values was [1,4], is [1,8]`}},
		"an axis":    {change: func(s *v1alpha1.ExperimentSpec) { s.Sweep = nil }, refused: []string{"sweep[clients] is gone"}},
		"the system": {change: func(s *v1alpha1.ExperimentSpec) { s.Systems[0].Name = "zookeeper" }, refused: []string{"systems[etcd] is gone", "systems[zookeeper] is new"}},
		"a parameter": {change: func(s *v1alpha1.ExperimentSpec) {
			s.Parameters = map[string]v1alpha1.Value{"keys": v1alpha1.NewValue("5")}
		}, refused: []string{"parameters is new"}},
		"the workload": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Workload.Name = "reads" }, refused: []string{`workload.name was "puts", is "reads"`},
		},
		"the load": {change: func(s *v1alpha1.ExperimentSpec) { s.Clients.ThinkTime = "5ms" }, refused: []string{`clients.thinkTime was "0s", is "5ms"`}},
		"faults": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Faults = []v1alpha1.Fault{{Name: "crash"}} }, refused: []string{"faults[crash] is new"},
		},
		"a claim": {
			change: func(s *v1alpha1.ExperimentSpec) {
				s.Claims[0].Expr = "throughput(clients=4) > 20"
				s.Claims = append(s.Claims, v1alpha1.Claim{Name: "faster"})
			},
			said: []string{`claims[fast].expr was "throughput(clients=4) > 10", is "throughput(clients=4) > 20"`, "claims[faster] is new"},
		},
		"tolerances, repetitions": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Tolerances.Steal, s.Repetitions.Min = "40%", 5 },
			said:   []string{`repetitions.min was 3, is 5`, `tolerances.steal was "1%", is "40%"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			today := spec()
			tc.change(&today)
			got, err := Compare(spec(), today)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Differences{Refused: tc.refused, Said: tc.said}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
