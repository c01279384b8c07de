package plan_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// chaosOf returns a fault of Chaos Mesh on replica 0 at 1 s.
func chaosOf(name, kind, lasts, spec string) v1alpha1.Fault {
	f := v1alpha1.Fault{Name: name, At: "1s", EveryPoint: true, ChaosMesh: &v1alpha1.ChaosMesh{
		Kind: kind, Target: v1alpha1.Target{Replicas: []int32{0}}, Spec: runtime.RawExtension{Raw: []byte(spec)},
	}}
	if lasts != "" {
		f.For = duration(lasts)
	}
	return f
}

func TestFaultsOfChaosMesh(t *testing.T) {
	const partition, http, clock = `{"action": "partition"}`, `{"target": "Request", "port": 80, "abort": true}`, `{"timeOffset": "-1h"}`
	pause := v1alpha1.Fault{Name: "gc", At: "2s", For: duration("1s"), EveryPoint: true, Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Replicas: []int32{0}}}}
	degrade := v1alpha1.Fault{Name: "slow", At: "2s", For: duration("1s"), EveryPoint: true,
		Degrade: &v1alpha1.Degrade{Target: &v1alpha1.Target{Replicas: []int32{3}}, LinkEffect: link("1ms")}}
	with := func(f v1alpha1.Fault, change func(*v1alpha1.ChaosMesh)) v1alpha1.Fault { change(f.ChaosMesh); return f }
	tests := map[string]struct {
		faults []v1alpha1.Fault
		shaped bool
		none   bool   // network.shaping: None
		field  string // empty: accepted
		says   string
	}{
		"a partition":                      {faults: []v1alpha1.Fault{chaosOf("cm", "NetworkChaos", "2s", partition)}},
		"a partition without capabilities": {faults: []v1alpha1.Fault{chaosOf("cm", "NetworkChaos", "2s", partition)}, none: true},
		"a clock in a shaped network":      {faults: []v1alpha1.Fault{chaosOf("cm", "TimeChaos", "2s", clock)}, shaped: true},
		"a partition in a shaped network":  {[]v1alpha1.Fault{chaosOf("cm", "NetworkChaos", "2s", partition)}, true, false, "spec.faults[0].chaosMesh.kind", "the links that the experiment's network shapes; partition and degrade"},
		"a proxy in a shaped network":      {[]v1alpha1.Fault{chaosOf("cm", "HTTPChaos", "2s", http)}, true, false, "spec.faults[0].chaosMesh.kind", "leads the packets of its pods through a bridge"},
		"a partition beside a worse link":  {[]v1alpha1.Fault{chaosOf("cm", "NetworkChaos", "2s", partition), degrade}, false, false, "spec.faults[0].chaosMesh.kind", "the links that fault slow of the same point shapes"},
		"a spec that is wrong":             {[]v1alpha1.Fault{chaosOf("cm", "TimeChaos", "2s", `{"mode": "one"}`)}, false, false, "spec.faults[0].chaosMesh.spec.mode", "leave it out"},
		"a container of another":           {[]v1alpha1.Fault{chaosOf("cm", "TimeChaos", "2s", `{"containerNames": ["agent"]}`)}, false, false, "spec.faults[0].chaosMesh.spec.containerNames[0]", "no container of the System's replicas, which are: "},
		"no such replica":                  {[]v1alpha1.Fault{with(chaosOf("cm", "TimeChaos", "2s", clock), func(c *v1alpha1.ChaosMesh) { c.Target.Replicas[0] = 9 })}, false, false, "spec.faults[0].chaosMesh.target.replicas[0]", "0 to 5"},
		"a role":                           {[]v1alpha1.Fault{with(chaosOf("cm", "TimeChaos", "2s", clock), func(c *v1alpha1.ChaosMesh) { c.Target = v1alpha1.Target{Role: "leader"} })}, false, false, "spec.faults[0].chaosMesh.target.role", "of nodeKill, pause, command, flameGraph and partition.isolate only"},
		"no such peer":                     {[]v1alpha1.Fault{with(chaosOf("cm", "NetworkChaos", "2s", partition), func(c *v1alpha1.ChaosMesh) { c.Peers = &v1alpha1.Target{Replicas: []int32{9}} })}, false, false, "spec.faults[0].chaosMesh.peers.replicas[0]", "0 to 5"},
		"peers that are the target":        {[]v1alpha1.Fault{with(chaosOf("cm", "NetworkChaos", "2s", partition), func(c *v1alpha1.ChaosMesh) { c.Peers = &v1alpha1.Target{Replicas: []int32{0}} })}, false, false, "spec.faults[0].chaosMesh.peers", "no pod is its own other end"},
		"some peers are the target":        {faults: []v1alpha1.Fault{with(chaosOf("cm", "NetworkChaos", "2s", partition), func(c *v1alpha1.ChaosMesh) { c.Peers = &v1alpha1.Target{Replicas: []int32{0, 1}} })}},
		"one of all against the rest":      {faults: []v1alpha1.Fault{with(chaosOf("cm", "NetworkChaos", "2s", partition), func(c *v1alpha1.ChaosMesh) { c.Target, c.Peers = *pick(intstr.FromInt32(1)), pick(intstr.FromInt32(5)) })}},
		"all but one, which may be that one": {[]v1alpha1.Fault{with(chaosOf("cm", "NetworkChaos", "2s", partition), func(c *v1alpha1.ChaosMesh) {
			c.Target, c.Peers = *pick(intstr.FromInt32(5)), &v1alpha1.Target{Replicas: []int32{3}}
		})}, false, false, "spec.faults[0].chaosMesh.peers", "no pod is its own other end"},
		"a pause of a replica in another age": {[]v1alpha1.Fault{chaosOf("cm", "TimeChaos", "2s", clock), pause}, false, false, "spec.faults[1]", `stops a replica that fault "cm" of the same point has stopped`},
		"a pause of a replica afterwards":     {faults: []v1alpha1.Fault{chaosOf("cm", "TimeChaos", "1s", clock), pause}},
		"a pause of a replica under load":     {faults: []v1alpha1.Fault{chaosOf("cm", "StressChaos", "2s", `{"stressors": {"cpu": {"workers": 1}}}`), pause}},
		"two kills of one replica": {faults: []v1alpha1.Fault{chaosOf("a", "PodChaos", "", `{"action": "pod-kill"}`), func() v1alpha1.Fault {
			f := chaosOf("b", "PodChaos", "", `{"action": "pod-kill"}`)
			f.At = "9s"
			return f
		}()}},
		"two kills at once": {[]v1alpha1.Fault{chaosOf("a", "PodChaos", "", `{"action": "pod-kill"}`), chaosOf("b", "PodChaos", "", `{"action": "container-kill"}`)}, false, false, "spec.faults[1]", `fault "a" of the same point`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, errs := wan(func(s *v1alpha1.ExperimentSpec) {
				s.Sweep[1].Points[1].Faults = nil
				s.Faults = tc.faults
				if !tc.shaped {
					s.Network = v1alpha1.Network{}
				}
				if tc.none {
					s.Network.Shaping = v1alpha1.ShapingNone
				}
			})
			all := strings.Join(errs, "\n")
			switch {
			case tc.field == "" && all != "":
				t.Errorf("refused: %s", all)
			case tc.field != "" && (!strings.Contains(all, tc.field+": ") || !strings.Contains(all, tc.says)):
				t.Errorf("errors %q, want %s with %q", all, tc.field, tc.says)
			}
		})
	}
}

// The check asks once for each kind whether Chaos Mesh is installed. The error is about the first
// fault that needs the kind.
func TestChaosMeshMustBeInstalled(t *testing.T) {
	exp := builders.Experiment("exp").System("echo").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Faults = []v1alpha1.Fault{
			chaosOf("a", "PodChaos", "", `{"action": "pod-kill"}`), chaosOf("b", "JVMChaos", "2s", `{"action": "exception"}`), chaosOf("c", "JVMChaos", "2s", `{"action": "exception"}`),
		}
		for i := range s.Faults { // not in one point
			s.Faults[i].EveryPoint = false
		}
	}).Obj()
	asked := 0
	_, errs := plan.Validate(exp, map[string]v1alpha1.SystemSpec{"echo": builders.System("echo").Obj().Spec}, plan.Checks{ChaosMesh: func(kind string) error {
		if asked++; kind == "JVMChaos" {
			return errors.New("there is none")
		}
		return nil
	}})
	if len(errs) != 1 || errs[0].Field != "spec.faults[1].chaosMesh" || !strings.Contains(errs[0].Detail, "there is none") || asked != 2 {
		t.Errorf("%d questions, errors %v", asked, errs)
	}
}
