package chaosmesh

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestObject(t *testing.T) {
	selector := func(pods ...any) map[string]any {
		return map[string]any{
			"namespaces": []any{"lab"}, "labelSelectors": map[string]any{"assay.dev/trial": "t", "assay.dev/pod-type": "replica"},
			"expressionSelectors": []any{map[string]any{"key": "statefulset.kubernetes.io/pod-name", "operator": "In", "values": pods}},
		}
	}
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		peers []string
		left  time.Duration
		want  map[string]any
	}{
		"a kill": {
			fault: faultOf("PodChaos", "", `{"action": "pod-kill", "gracePeriod": 0}`),
			want:  map[string]any{"action": "pod-kill", "gracePeriod": int64(0), "mode": "all", "selector": selector("t-0", "t-1")},
		},
		"a partition": {
			fault: faultOf("NetworkChaos", "3s", `{"action": "partition"}`), peers: []string{"t-2"}, left: 2999999999,
			want: map[string]any{
				"action": "partition", "mode": "all", "selector": selector("t-0", "t-1"), "duration": "4.25s", "target": map[string]any{"mode": "all", "selector": selector("t-2")},
			},
		},
		"a large number": {
			fault: faultOf("NetworkChaos", "3s", `{"action": "bandwidth", "bandwidth": {"peakrate": 9007199254740993}}`), left: time.Second,
			want: map[string]any{
				"action": "bandwidth", "bandwidth": map[string]any{"peakrate": int64(9007199254740993)}, "mode": "all", "selector": selector("t-0", "t-1"), "duration": "2.25s",
			},
		},
		"load on every container": {
			fault: faultOf("StressChaos", "3s", `{"stressors": {"cpu": {"workers": 2}}}`), left: 1500 * time.Millisecond,
			want: map[string]any{
				"stressors": map[string]any{"cpu": map[string]any{"workers": int64(2)}}, "mode": "all", "selector": selector("t-0", "t-1"), "duration": "2.75s",
				"containerNames": []any{"db", "proxy"},
			},
		},
		"an instant is left": {
			fault: faultOf("NetworkChaos", "3s", `{"action": "partition"}`), left: 1,
			want: map[string]any{"action": "partition", "mode": "all", "selector": selector("t-0", "t-1"), "duration": "1.25s"},
		},
		"a component": {
			fault: ofComponent(faultOf("PodChaos", "", `{"action": "container-kill"}`), "proxy", ""),
			want:  map[string]any{"action": "container-kill", "mode": "all", "selector": component(selector("t-0", "t-1"), "proxy"), "containerNames": []any{"db", "proxy"}},
		},
		"replicas from a component": {
			fault: ofComponent(faultOf("NetworkChaos", "3s", `{"action": "partition"}`), "", "proxy"), peers: []string{"t-proxy-0"}, left: time.Second,
			want: map[string]any{
				"action": "partition", "mode": "all", "selector": selector("t-0", "t-1"), "duration": "2.25s", "target": map[string]any{"mode": "all", "selector": component(selector("t-proxy-0"), "proxy")},
			},
		},
		"a component from another": {
			fault: ofComponent(faultOf("NetworkChaos", "3s", `{"action": "delay", "delay": {"latency": "20ms"}}`), "proxy", "tier"), peers: []string{"t-tier-0"}, left: time.Second,
			want: map[string]any{
				"action": "delay", "delay": map[string]any{"latency": "20ms"}, "mode": "all", "selector": component(selector("t-0", "t-1"), "proxy"), "duration": "2.25s",
				"target": map[string]any{"mode": "all", "selector": component(selector("t-tier-0"), "tier")},
			},
		},
		"the end of one container": {
			fault: faultOf("PodChaos", "", `{"action": "container-kill", "containerNames": ["proxy"]}`),
			want:  map[string]any{"action": "container-kill", "mode": "all", "selector": selector("t-0", "t-1"), "containerNames": []any{"proxy"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Occurrence{
				Namespace: "lab", Trial: "t", Experiment: "exp", Fault: &tc.fault, Time: 2, Pods: []string{"t-0", "t-1"}, Peers: tc.peers, Containers: []string{"db", "proxy"}, Left: tc.left,
			}
			u, err := o.Object()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, u.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if u.GetName() != "t-cm-2" || u.GetNamespace() != "lab" || u.GetAPIVersion() != "chaos-mesh.org/v1alpha1" || u.GetKind() != tc.fault.ChaosMesh.Kind {
				t.Errorf("the object is %s %s %s/%s", u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
			}
			if diff := cmp.Diff(map[string]string{"assay.dev/trial": "t", "assay.dev/experiment": "exp"}, u.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
	broken := faultOf("PodChaos", "", `[`)
	if _, err := (Occurrence{Fault: &broken}).Object(); err == nil {
		t.Error("an object is made of what is none")
	}
}

// ofComponent changes the target and the peers of a fault to pods of components.
func ofComponent(f v1alpha1.Fault, target, peers string) v1alpha1.Fault {
	f.ChaosMesh.Target.Component = target
	if peers != "" {
		f.ChaosMesh.Peers = &v1alpha1.Target{Component: peers}
	}
	return f
}

// component changes a selector of replicas into one of a component's pods.
func component(selector map[string]any, name string) map[string]any {
	selector["labelSelectors"] = map[string]any{"assay.dev/trial": "t", "assay.dev/pod-type": "component", "assay.dev/component": name}
	return selector
}

func TestKinds(t *testing.T) {
	kinds := Kinds([]v1alpha1.Fault{faultOf("TimeChaos", "", `{}`), {Pause: &v1alpha1.Pause{}}, faultOf("PodChaos", "", `{}`), faultOf("TimeChaos", "", `{}`)})
	if diff := cmp.Diff([]string{"PodChaos", "TimeChaos"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
