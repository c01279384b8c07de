package plan_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A replaced pod loses the state of its agent and launchers. So no other fault, and no shaped
// network, may be in the same point.
func TestFaultsBesideReplacedPods(t *testing.T) {
	chaos := func(name, kind, spec string) v1alpha1.Fault {
		return v1alpha1.Fault{Name: name, At: "1s", EveryPoint: true, ChaosMesh: &v1alpha1.ChaosMesh{
			Kind: kind, Target: v1alpha1.Target{Replicas: []int32{0}}, Spec: runtime.RawExtension{Raw: []byte(spec)},
		}}
	}
	lasting := func(f v1alpha1.Fault) v1alpha1.Fault { f.For = duration("2s"); return f }
	kill, fail, restart := chaos("gone", "PodChaos", `{"action":"pod-kill"}`), lasting(chaos("failing", "PodChaos", `{"action":"pod-failure"}`)),
		chaos("again", "PodChaos", `{"action":"container-kill"}`)
	pause := v1alpha1.Fault{Name: "gc", At: "1s", For: duration("1s"), EveryPoint: true, Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Replicas: []int32{1}}}}
	stress := lasting(chaos("busy", "StressChaos", `{"stressors":{"cpu":{"workers":1}}}`))
	for name, tc := range map[string]struct {
		faults []v1alpha1.Fault
		shaped bool
		want   string // in the errors; empty: accepted
	}{
		"a pod that is replaced":                           {faults: []v1alpha1.Fault{kill}},
		"two of the kind":                                  {faults: []v1alpha1.Fault{kill, restart}},
		"a container restarted in a shaped network":        {faults: []v1alpha1.Fault{restart}, shaped: true},
		"another fault beside":                             {faults: []v1alpha1.Fault{kill, pause}, want: "pod-kill cannot be together with fault gc"},
		"another fault beside restarts":                    {faults: []v1alpha1.Fault{pause, restart}, want: "container-kill cannot be together with fault gc"},
		"another fault of Chaos Mesh beside":               {faults: []v1alpha1.Fault{fail, stress}, want: "pod-failure cannot be together with fault busy"},
		"a pod replaced in a shaped network":               {faults: []v1alpha1.Fault{kill}, shaped: true, want: "pod-kill cannot be together with a shaped network: the pod comes back with another address"},
		"a pod with its agent down in a shaped network":    {faults: []v1alpha1.Fault{fail}, shaped: true, want: "pod-failure cannot be together with a shaped network: the agent"},
		"faults of Chaos Mesh that leave pods as they are": {faults: []v1alpha1.Fault{stress, pause}, shaped: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := wan(func(s *v1alpha1.ExperimentSpec) {
				s.Sweep[1].Points[1].Faults = nil
				s.Faults = tc.faults
				if !tc.shaped {
					s.Network = v1alpha1.Network{}
				}
			})
			var said []string
			for _, err := range errs {
				if strings.Contains(err, "cannot be together") {
					said = append(said, err)
				}
			}
			all := strings.Join(said, "\n")
			if (tc.want == "") != (all == "") || !strings.Contains(all, tc.want) {
				t.Errorf("refused: %q, want %q", all, tc.want)
			}
			if tc.want != "" && !strings.Contains(all, "chaosMesh.spec") {
				t.Errorf("the refusal does not name the field: %s", all)
			}
		})
	}
}
