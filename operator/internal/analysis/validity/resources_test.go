package validity

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// tolerances are the defaults.
var tolerances = v1alpha1.Tolerances{Throttling: "1%", Steal: "1%", GeneratorLag: "10ms", ClockError: "10ms", OutOfRange: "0%", LinkLoss: "5%"}

func TestJudgeResources(t *testing.T) {
	pod := func(name string, change func(*results.Resources)) results.Pod {
		r := &results.Resources{Seconds: 20, Node: results.NodeUse{Seconds: 20}, Containers: []results.ContainerUse{
			{Name: "server", Seconds: 20, LimitCores: 0.5}, {Name: "proxy", Seconds: 20},
		}}
		if change != nil {
			change(r)
		}
		return results.Pod{Name: name, Node: "node-of-" + name, Resources: r}
	}
	throttled := func(share float64) func(*results.Resources) {
		return func(r *results.Resources) {
			r.Containers[0].ThrottledShare, r.Containers[0].ThrottledSeconds = share, 3.5
		}
	}
	stolen := func(share float64) func(*results.Resources) {
		return func(r *results.Resources) { r.Node.StealShare = share }
	}
	silent := results.Pod{Name: "a"}
	for name, tc := range map[string]struct {
		pods    []results.Pod
		change  func(*v1alpha1.Tolerances)
		reason  string
		message []string
	}{
		"quiet":                {pods: []results.Pod{pod("a", nil), pod("b", nil)}},
		"throttled a little":   {pods: []results.Pod{pod("a", throttled(0.01))}},
		"throttled":            {pods: []results.Pod{pod("a", throttled(0.011))}, reason: v1alpha1.ReasonCPUThrottled, message: []string{"Container server of a", "limit of 0.5 cores", "1.10%", "3.50 s", "tolerances.throttling is 1%"}},
		"the worst is named":   {pods: []results.Pod{pod("a", throttled(0.1)), pod("b", throttled(0.9)), pod("c", throttled(0.2))}, reason: v1alpha1.ReasonCPUThrottled, message: []string{"of b was", "90.00%"}},
		"throttled, tolerated": {pods: []results.Pod{pod("a", throttled(0.9))}, change: func(t *v1alpha1.Tolerances) { t.Throttling = "95%" }},
		"stolen a little":      {pods: []results.Pod{pod("a", stolen(0.01))}},
		"stolen":               {pods: []results.Pod{pod("a", stolen(0.02)), pod("b", stolen(0.0301))}, reason: v1alpha1.ReasonCPUStolen, message: []string{"node-of-b", "on which b ran", "3.01%", "tolerances.steal is 1%"}},
		"no word":              {pods: []results.Pod{pod("b", nil), silent}, reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"agent of a did not say"}},
		"no word, none wanted": {pods: []results.Pod{silent}, change: func(t *v1alpha1.Tolerances) { t.Throttling, t.Steal = "100%", "100%" }},
		"a container unread": {pods: []results.Pod{pod("a", func(r *results.Resources) {
			r.Containers[1].Seconds, r.Unmeasured = 0, []string{"container proxy: it sees no control group"}
		})}, reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"container proxy of a", "0.0 s", "80.00%", "tolerances.throttling", "it sees no control group"}},
		"a container unread, not judged": {pods: []results.Pod{pod("a", func(r *results.Resources) { r.Containers[1].Seconds = 0 })},
			change: func(t *v1alpha1.Tolerances) { t.Throttling = "100%" }},
		"a node half read":         {pods: []results.Pod{pod("a", func(r *results.Resources) { r.Node.Seconds = 10 })}, reason: v1alpha1.ReasonResourcesNotMeasured, message: []string{"the node of a", "10.0 s", "tolerances.steal"}},
		"read late":                {pods: []results.Pod{pod("a", func(r *results.Resources) { r.Node.Seconds, r.Containers[0].Seconds = 17, 16.5 })}},
		"a machine that was reset": {pods: []results.Pod{pod("a", nil), {Name: "reset"}}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.TrialSpec{Schedule: v1alpha1.Schedule{Measure: "20s"}, Tolerances: tolerances}
			if tc.change != nil {
				tc.change(&spec.Tolerances)
			}
			v := judgeResources(spec, tc.pods, func(pod string) bool { return pod == "reset" })
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
