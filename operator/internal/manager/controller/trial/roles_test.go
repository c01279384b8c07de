package trial

import (
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
)

// At the fault's instant each replica checks whether it has the role. The trial counts only if
// exactly one had it.
func TestTheLeaderIsKilled(t *testing.T) {
	for leaders, reason := range map[int]string{0: v1alpha1.ReasonRoleNotFound, 1: v1alpha1.ReasonSucceeded, 2: v1alpha1.ReasonRoleAmbiguous} {
		t.Run(fmt.Sprintf("%d leaders", leaders), func(t *testing.T) {
			p := newPlayOf(t, func(s *v1alpha1.SystemSpec) {
				s.Roles = []v1alpha1.Role{{Name: "leader", Command: []string{"/leader", "{{.Self.Index}}"}}}
			}, func(s *v1alpha1.ExperimentSpec) {
				s.Faults = []v1alpha1.Fault{{Name: "view-change", At: "2s", EveryPoint: true, NodeKill: &v1alpha1.NodeKill{Mode: "Pods", Target: v1alpha1.Target{Role: "leader"}}}}
			})
			p.released()
			for i, name := range p.layout().ServerPods() {
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
