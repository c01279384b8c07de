package fault

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
)

var windows = timeline.Windows{WarmUp: 5 * time.Second, Measure: 10 * time.Second, CoolDown: 2 * time.Second, Drain: 3 * time.Second}

// cast of three replicas and a client. A target chooses the replicas whose indexes it names.
type cast struct{}

func (cast) Choose(t v1alpha1.Target, _ string, except []string) []string {
	var out []string
	for i, pod := range (cast{}).ServerPods() {
		if (len(t.Replicas) == 0 || slices.Contains(t.Replicas, int32(i))) && !slices.Contains(except, pod) {
			out = append(out, pod)
		}
	}
	return out
}
func (cast) ServerPods() []string { return []string{"r0", "r1", "r2"} }
func (cast) ClientPods() []string { return []string{"c0"} }

func lasting(d string) *v1alpha1.Duration {
	v := v1alpha1.Duration(d)
	return &v
}

func indexes(i ...int32) v1alpha1.Target { return v1alpha1.Target{Replicas: i} }

// line writes an action in one line, for readable expectations.
func line(a timeline.Action) string {
	s := fmt.Sprintf("%v %s %s", a.At, a.Kind, a.Pod)
	if a.Ends != "" {
		s += " ends " + a.Ends
	}
	if a.Role != "" {
		s += " role " + a.Role
	}
	if a.Object != "" {
		s += " " + a.Object
	}
	if len(a.Peers) > 0 {
		s += fmt.Sprintf(" peers %v", a.Peers)
	}
	if len(a.Out)+len(a.In) > 0 {
		s += fmt.Sprintf(" out %v in %v", a.Out, a.In)
	}
	for _, l := range a.Links {
		s += fmt.Sprintf(" %s %s +%v", l.Side, l.Peer, l.Worse.Delay)
	}
	return s
}

func TestBuild(t *testing.T) {
	tests := map[string]struct {
		fault v1alpha1.Fault
		want  []string
		wrong string
	}{
		"a kill for good": {
			fault: v1alpha1.Fault{Name: "crash", At: "-2s", NodeKill: &v1alpha1.NodeKill{Target: indexes(1)}},
			want:  []string{"-2s Kill r1"},
		},
		"a kill for a time, two pods, in order of time": {
			fault: v1alpha1.Fault{Name: "crash", At: "1s", For: lasting("3s"), NodeKill: &v1alpha1.NodeKill{Target: indexes(2, 0)}},
			want: []string{
				"1s Kill r0", "1s Kill r2", "4s Revive r0 ends crash/1/kill/r0", "4s Revive r2 ends crash/1/kill/r2",
			},
		},
		"a machine ends by itself": {
			fault: v1alpha1.Fault{Name: "power", At: "1s", NodeKill: &v1alpha1.NodeKill{Mode: "Machine", Target: indexes(1)}},
			want:  []string{"1s Reset r1"},
		},
		"a pause that happens twice": {
			fault: v1alpha1.Fault{
				Name: "gc", At: "1s", For: lasting("500ms"), Repeat: &v1alpha1.Repeat{Every: "2s", Times: 2}, Pause: &v1alpha1.Pause{Target: indexes(0)},
			},
			want: []string{"1s Pause r0", "1.5s Resume r0 ends gc/1/pause/r0", "3s Pause r0", "3.5s Resume r0 ends gc/2/pause/r0"},
		},
		"a role is looked for in all, and kept for the end": {
			fault: v1alpha1.Fault{Name: "leader", At: "5s", For: lasting("1s"), Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: "leader", Replicas: []int32{0, 1}}}},
			want: []string{
				"5s Pause r0 role leader", "5s Pause r1 role leader",
				"6s Resume r0 ends leader/1/pause/r0 role leader", "6s Resume r1 ends leader/1/pause/r1 role leader",
			},
		},
		"two groups, the clients with the first": {
			fault: v1alpha1.Fault{Name: "split", At: "0s", For: lasting("5s"), Partition: &v1alpha1.Partition{
				Groups: []v1alpha1.Target{indexes(0, 1), indexes(2)}, Clients: "FirstGroup",
			}},
			want: []string{
				"0s Cut c0 out [r2] in [r2]", "0s Cut r0 out [r2] in [r2]", "0s Cut r1 out [r2] in [r2]", "0s Cut r2 out [r0 r1 c0] in [r0 r1 c0]",
				"5s Heal c0 ends split/1/cut/c0", "5s Heal r0 ends split/1/cut/r0", "5s Heal r1 ends split/1/cut/r1", "5s Heal r2 ends split/1/cut/r2",
			},
		},
		"one direction": {
			fault: v1alpha1.Fault{Name: "deaf", At: "0s", Partition: &v1alpha1.Partition{From: new(indexes(0)), To: new(indexes(1))}},
			want:  []string{"0s Cut r0 out [r1] in []", "0s Cut r1 out [] in [r0]"},
		},
		"one against all": {
			fault: v1alpha1.Fault{Name: "alone", At: "0s", Partition: &v1alpha1.Partition{Isolate: new(indexes(1))}},
			want: []string{
				"0s Cut r0 out [r1] in [r1]", "0s Cut r1 out [r0 r2] in [r0 r2]", "0s Cut r2 out [r1] in [r1]",
			},
		},
		"one against all, clients too": {
			fault: v1alpha1.Fault{Name: "alone", At: "0s", Partition: &v1alpha1.Partition{Isolate: new(indexes(1)), Clients: "FirstGroup"}},
			want: []string{
				"0s Cut c0 out [r1] in [r1]", "0s Cut r0 out [r1] in [r1]", "0s Cut r1 out [r0 r2 c0] in [r0 r2 c0]", "0s Cut r2 out [r1] in [r1]",
			},
		},
		"the leader against all, clients too": {
			fault: v1alpha1.Fault{Name: "alone", At: "0s", Partition: &v1alpha1.Partition{
				Isolate: &v1alpha1.Target{Role: "leader", Replicas: []int32{0, 1}}, Clients: "FirstGroup",
			}},
			want: []string{"0s Cut r0 role leader out [r1 r2 c0] in [r1 r2 c0]", "0s Cut r1 role leader out [r0 r2 c0] in [r0 r2 c0]"},
		},
		"a partition that flaps, cut short by its end": {
			fault: v1alpha1.Fault{Name: "flap", At: "0s", For: lasting("2500ms"), Partition: &v1alpha1.Partition{
				From: new(indexes(0)), To: new(indexes(1)), Flap: &v1alpha1.Flap{Period: "2s", Cut: lasting("1s")},
			}},
			want: []string{
				"0s Cut r0 out [r1] in []", "0s Cut r1 out [] in [r0]", "1s Heal r0 ends flap/1/cut/r0", "1s Heal r1 ends flap/1/cut/r1",
				"2s Cut r0 out [r1] in []", "2s Cut r1 out [] in [r0]", "2.5s Heal r0 ends flap/2/cut/r0", "2.5s Heal r1 ends flap/2/cut/r1",
			},
		},
		"links from one to everybody": {
			fault: v1alpha1.Fault{Name: "slow", At: "0s", For: lasting("1s"), Degrade: &v1alpha1.Degrade{
				From: new(indexes(0)), LinkEffect: v1alpha1.LinkEffect{Delay: lasting("9ms")},
			}},
			want: []string{
				"0s Degrade c0 Ingress r0 +9ms", "0s Degrade r0 Egress r1 +9ms Egress r2 +9ms Egress c0 +9ms",
				"0s Degrade r1 Ingress r0 +9ms", "0s Degrade r2 Ingress r0 +9ms",
				"1s Restore c0 ends slow/1/degrade/c0", "1s Restore r0 ends slow/1/degrade/r0",
				"1s Restore r1 ends slow/1/degrade/r1", "1s Restore r2 ends slow/1/degrade/r2",
			},
		},
		"an end at t = 0 is an end": {
			fault: v1alpha1.Fault{Name: "crash", At: "-1s", For: lasting("1s"), NodeKill: &v1alpha1.NodeKill{Target: indexes(1)}},
			want:  []string{"-1s Kill r1", "1ns Revive r1 ends crash/1/kill/r1"},
		},
		"clients that misbehave do nothing at an instant": {
			fault: v1alpha1.Fault{Name: "stall", ClientBehavior: &v1alpha1.ClientBehavior{Share: "30%"}},
		},
		"Chaos Mesh for a time, with another end": {
			fault: v1alpha1.Fault{Name: "cm", At: "1s", For: lasting("3s"), ChaosMesh: &v1alpha1.ChaosMesh{
				Kind: "NetworkChaos", Target: indexes(0), Peers: new(indexes(0, 2)), Spec: runtime.RawExtension{Raw: []byte(`{"action":"partition"}`)},
			}},
			want: []string{"1s Inject r0 NetworkChaos partition peers [r2]", "4s Recover r0 ends cm/1/inject/r0 NetworkChaos partition"},
		},
		"what Chaos Mesh does at an instant has no end": {
			fault: v1alpha1.Fault{Name: "cm", At: "1s", ChaosMesh: &v1alpha1.ChaosMesh{
				Kind: "PodChaos", Target: indexes(0, 1), Spec: runtime.RawExtension{Raw: []byte(`{"action":"pod-kill"}`)},
			}},
			want: []string{"1s Inject r0 PodChaos pod-kill", "1s Inject r1 PodChaos pod-kill"},
		},
		"no pod at the other end": {
			fault: v1alpha1.Fault{Name: "cm", At: "1s", For: lasting("3s"), ChaosMesh: &v1alpha1.ChaosMesh{
				Kind: "NetworkChaos", Target: indexes(0), Peers: new(indexes(0)), Spec: runtime.RawExtension{Raw: []byte(`{"action":"partition"}`)},
			}},
			wrong: "peers choose only replicas that are targets, too",
		},
		"no pod hit":    {fault: v1alpha1.Fault{Name: "crash", At: "0s", NodeKill: &v1alpha1.NodeKill{Target: indexes(9)}}, wrong: "hits no replica"},
		"nothing to do": {fault: v1alpha1.Fault{Name: "x"}, wrong: "says nothing to do"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			actions, err := Build([]v1alpha1.Fault{tc.fault}, windows, cast{})
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range actions {
				got = append(got, line(a))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("actions (-want +got):\n%s", d)
			}
		})
	}
}

// On either side, the actions change each degraded link once, and no pod has an action without
// effect.
func TestInForce(t *testing.T) {
	fault := v1alpha1.Fault{Name: "slow", At: "0s", For: lasting("1s"), Degrade: &v1alpha1.Degrade{
		From: new(indexes(0)), To: new(indexes(1, 2)), LinkEffect: v1alpha1.LinkEffect{Delay: lasting("9ms")},
	}}
	crash := v1alpha1.Fault{Name: "crash", At: "0s", For: lasting("1s"), NodeKill: &v1alpha1.NodeKill{Target: indexes(1)}}
	actions, err := Build([]v1alpha1.Fault{crash, fault}, windows, cast{})
	if err != nil {
		t.Fatal(err)
	}
	kill := []string{"0s Kill r1", "1s Revive r1 ends crash/1/kill/r1"}
	want := map[shaping.Side][]string{
		"":              kill,
		shaping.Egress:  {"0s Degrade r0 Egress r1 +9ms Egress r2 +9ms", kill[0], "1s Restore r0 ends slow/1/degrade/r0", kill[1]},
		shaping.Ingress: {kill[0], "0s Degrade r1 Ingress r0 +9ms", "0s Degrade r2 Ingress r0 +9ms", kill[1], "1s Restore r1 ends slow/1/degrade/r1", "1s Restore r2 ends slow/1/degrade/r2"},
	}
	for side, want := range want {
		var got []string
		for _, a := range timeline.InForce(actions, side) {
			got = append(got, line(a))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("side %q (-want +got):\n%s", side, d)
		}
	}
}
