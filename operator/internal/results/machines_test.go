package results

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMachines(t *testing.T) {
	seconds := func(s float64) *float64 { return &s }
	// pod is on a machine of 4 processors, two of which are busy, for 10 s; its one container used
	// so many cores.
	pod := func(node, machine string, cores float64, late *float64) Pod {
		return Pod{Node: node, Resources: &Resources{
			Containers: []ContainerUse{{Seconds: 10, CPUMeanCores: cores, WaitedSeconds: seconds(cores * 30), LateShare: late, Wakes: 400}},
			Node:       NodeUse{Seconds: 10, Machine: machine, CPUs: 4, BusyShare: 0.5},
		}}
	}
	for name, tc := range map[string]struct {
		pods []Pod
		want []MachineUse
	}{
		"nothing known":  {pods: []Pod{{Node: "n1"}}, want: []MachineUse{}},
		"no contention":  {pods: []Pod{pod("n1", "m", 0.5, seconds(0))}, want: []MachineUse{{"m", []string{"n1"}, 4, 0.5, 1.5, seconds(0.75), seconds(0), seconds(0)}}},
		"a quarter ours": {pods: []Pod{pod("n1", "m", 0.5, seconds(0.4))}, want: []MachineUse{{"m", []string{"n1"}, 4, 0.5, 1.5, seconds(0.75), seconds(0.4), seconds(0.3)}}},
		// A system that saturates its machine waits for itself.
		"all ours": {pods: []Pod{pod("n1", "m", 2, seconds(0.9))}, want: []MachineUse{{"m", []string{"n1"}, 4, 2, 0, seconds(0.75), seconds(0.9), seconds(0)}}},
		// Ticks of 10 ms and nanoseconds do not agree exactly.
		"more than all": {pods: []Pod{pod("n1", "m", 2.1, seconds(0.9))}, want: []MachineUse{{"m", []string{"n1"}, 4, 2.1, 0, seconds(0.75), seconds(0.9), seconds(0)}}},
		"two nodes of one machine": {
			pods: []Pod{pod("n2", "m", 0.5, seconds(0.6)), pod("n1", "m", 0.5, seconds(0.3)), pod("n1", "m", 0, seconds(0))},
			want: []MachineUse{{"m", []string{"n1", "n2"}, 4, 1, 1, seconds(0.75), seconds(0.3), seconds(0.15)}},
		},
		"two machines": {
			pods: []Pod{pod("n2", "b", 0.5, seconds(0.4)), pod("n1", "a", 1, seconds(0))},
			want: []MachineUse{{"a", []string{"n1"}, 4, 1, 1, seconds(0.75), seconds(0), seconds(0)}, {"b", []string{"n2"}, 4, 0.5, 1.5, seconds(0.75), seconds(0.4), seconds(0.3)}},
		},
		"a kernel without boot IDs": {pods: []Pod{pod("n1", "", 0.5, seconds(0.4))}, want: []MachineUse{{"n1", []string{"n1"}, 4, 0.5, 1.5, seconds(0.75), seconds(0.4), seconds(0.3)}}},
		"no canary":                 {pods: []Pod{pod("n1", "m", 0.5, nil)}, want: []MachineUse{{"m", []string{"n1"}, 4, 0.5, 1.5, seconds(0.75), nil, nil}}},
		"an idle trial":             {pods: []Pod{pod("n1", "m", 0, seconds(0))}, want: []MachineUse{{"m", []string{"n1"}, 4, 0, 2, nil, seconds(0), seconds(0)}}},
		"nothing measured of the node": {
			pods: []Pod{{Node: "n1", Resources: &Resources{Containers: []ContainerUse{{LateShare: seconds(0), Wakes: 1}}}}},
			want: []MachineUse{{Machine: "n1", Nodes: []string{"n1"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Machines(tc.pods)); diff != "" {
				t.Errorf("machines (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("throttling, agents and interrupts are not others", func(t *testing.T) {
		p := pod("n1", "m", 0.5, seconds(0.6))
		p.Resources.Containers[0].ThrottledSeconds, p.Resources.Containers[0].ThrottledShare = 10, 0.1
		p.Resources.AgentMeanCores, p.Resources.Node.InterruptShare = 0.25, 0.25
		// 2 busy processors less 1 of interrupts: the trial has 0.75, and others have 0.25.
		want := []MachineUse{{"m", []string{"n1"}, 4, 0.75, 0.25, seconds(0.5), seconds(0.5), seconds(0.125)}}
		if diff := cmp.Diff(want, Machines([]Pod{p})); diff != "" {
			t.Errorf("machines (-want +got):\n%s", diff)
		}
	})
}
