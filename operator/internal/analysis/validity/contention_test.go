package validity

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

func TestJudgeContention(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	pod := func(change func(*results.Resources)) results.Pod {
		r := &results.Resources{Node: results.NodeUse{Seconds: 20}, Containers: []results.ContainerUse{
			{Name: "server", Seconds: 20, LateShare: number(0.1)}, {Name: "proxy", Seconds: 20, LateShare: number(0)},
		}}
		if change != nil {
			change(r)
		}
		return results.Pod{Name: "a", Resources: r}
	}
	machine := func(node string, late, contended float64) results.MachineUse {
		return results.MachineUse{Nodes: []string{node}, CPUs: 2, TrialCores: 0.5, OthersCores: 1.25, LateShare: &late, ContendedShare: &contended}
	}
	for name, tc := range map[string]struct {
		pod      results.Pod
		machines []results.MachineUse
		tolerate v1alpha1.Percentage
		reason   string
		message  []string
	}{
		"quiet":                 {pod: pod(nil), machines: []results.MachineUse{machine("n1", 0.05, 0.01)}},
		"at the tolerance":      {pod: pod(nil), machines: []results.MachineUse{machine("n1", 0.3, 0.1)}},
		"a saturated system":    {pod: pod(nil), machines: []results.MachineUse{machine("n1", 0.95, 0.02)}},
		"contended":             {pod: pod(nil), machines: []results.MachineUse{machine("n1", 0.5, 0.3)}, reason: v1alpha1.ReasonProcessorContended, message: []string{"of node n1 in 30.00%", "tolerances.contention is 10%", "0.50 of the 2 processors", "others used 1.25"}},
		"the worst is named":    {pod: pod(nil), machines: []results.MachineUse{machine("n1", 0.5, 0.3), machine("n2", 0.5, 0.4), machine("n3", 0.5, 0.2)}, reason: v1alpha1.ReasonProcessorContended, message: []string{"node n2"}},
		"contended, tolerated":  {pod: pod(nil), machines: []results.MachineUse{machine("n1", 0.5, 0.3)}, tolerate: "40%"},
		"contended, not judged": {pod: results.Pod{Name: "a"}, machines: []results.MachineUse{machine("n1", 0.9, 0.9)}, tolerate: "100%"},
		"no word":               {pod: results.Pod{Name: "a"}, reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"agent of a did not say"}},
		"a machine that was reset": {
			pod: results.Pod{Name: "reset"}, machines: []results.MachineUse{machine("n1", 0.05, 0.01), {Nodes: []string{"n2"}}},
		},
		"a launcher that does not tell": {
			pod:    pod(func(r *results.Resources) { r.Containers[1].LateShare = nil }),
			reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"container proxy of a did not say"},
		},
		"a container half read": {
			pod:    pod(func(r *results.Resources) { r.Containers[1].Seconds = 10 }),
			reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"container proxy of a", "10.0 s", "tolerances.contention"},
		},
		"a node half read": {
			pod:    pod(func(r *results.Resources) { r.Node.Seconds = 10 }),
			reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"the node of a", "10.0 s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.TrialSpec{Schedule: v1alpha1.Schedule{Measure: "20s"}, Tolerances: v1alpha1.Tolerances{Contention: "10%"}}
			if tc.tolerate != "" {
				spec.Tolerances.Contention = tc.tolerate
			}
			v := judgeContention(spec, []results.Pod{tc.pod}, tc.machines, func(pod string) bool { return pod == "reset" })
			if v.Reason != tc.reason {
				t.Errorf("reason %q (%s), want %q", v.Reason, v.Message, tc.reason)
			}
			for _, want := range tc.message {
				if !strings.Contains(v.Message, want) {
					t.Errorf("the message is %q, want one with %q", v.Message, want)
				}
			}
		})
	}
}
