package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

// One node: a control plane's pod that existed before, a replica that comes and goes, a sandbox.
func TestBreakdown(t *testing.T) {
	const s = time.Second
	rowOf := func(id string) string { return map[string]string{"api": rowAPIServer, "basil": rowSystem}[id] }
	a := newAccount()
	a.add([]cgroup{
		{path: "n", kind: whole, usage: 100 * s}, {path: "n/c", kind: engine, usage: 30 * s}, {path: "n/k", kind: kubelet, usage: 20 * s},
		{path: "n/p", kind: pods, usage: 40 * s}, {path: "n/p/api", kind: container, id: "api", usage: 40 * s},
	})
	a.begun = true
	a.add([]cgroup{
		{path: "n", kind: whole, usage: 110 * s}, {path: "n/p", kind: pods, usage: 44 * s},
		{path: "n/p/basil", kind: container, id: "basil", usage: 2 * s}, {path: "n/p/box", kind: container, id: "box", usage: 1 * s},
	})
	a.addLaunchers("basil", map[int]time.Duration{7: s / 2})
	a.add([]cgroup{ // the replica is gone by now; it used some more in its last moment
		{path: "n", kind: whole, usage: 120 * s}, {path: "n/c", kind: engine, usage: 36 * s}, {path: "n/k", kind: kubelet, usage: 22 * s},
		{path: "n/p", kind: pods, usage: 48 * s}, {path: "n/p/api", kind: container, id: "api", usage: 44 * s},
	})
	want := map[string]time.Duration{
		rowRuntime: 6 * s, rowKubelet: 2 * s, rowAPIServer: 4 * s, rowSystem: 3 * s / 2, rowLaunchers: s / 2,
		rowSandboxes: 2 * s, // one second of the sandbox, and one of a container that was not seen
		rowNodes:     4 * s,
	}
	got := a.breakdown(rowOf)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the breakdown (-want +got):\n%s", diff)
	}
	if total(got) != 20*s {
		t.Errorf("the rows make %v, and the node used 20s", total(got))
	}
}

// With cgroup v1, systemd's services have no cgroup with a counter of their own. So the runtime is
// the rest that no other part used.
func TestBreakdownWithoutCgroupsOfServices(t *testing.T) {
	const s = time.Second
	a := newAccount()
	a.add([]cgroup{{path: "n", kind: whole, usage: 100 * s}, {path: "n/p", kind: pods, usage: 40 * s}})
	a.addServices(map[string]map[int]time.Duration{rowKubelet: {5: 7 * s}, rowNodes: {1: 1 * s}})
	a.begun = true
	a.add([]cgroup{{path: "n", kind: whole, usage: 120 * s}, {path: "n/p", kind: pods, usage: 45 * s}})
	a.addServices(map[string]map[int]time.Duration{rowKubelet: {5: 12 * s}, rowNodes: {1: 3 * s}})
	want := map[string]time.Duration{rowRuntime: 8 * s, rowKubelet: 5 * s, rowNodes: 2 * s, rowSandboxes: 5 * s}
	if diff := cmp.Diff(want, a.breakdown(func(string) string { return "" })); diff != "" {
		t.Errorf("the breakdown (-want +got):\n%s", diff)
	}
}

func TestEveryRowIsShown(t *testing.T) {
	a := newAccount()
	a.begun = true
	var i int
	for _, row := range rows {
		i++
		a.add([]cgroup{{path: row, kind: container, id: row, usage: time.Second}})
	}
	a.add([]cgroup{{path: "n", kind: whole, usage: time.Duration(i) * time.Second}, {path: "p", kind: pods, usage: time.Duration(i) * time.Second}})
	got := a.breakdown(func(id string) string { return id })
	for row := range got {
		if got[row] != time.Second && row != rowSandboxes && row != rowNodes {
			t.Errorf("%s: %v", row, got[row])
		}
	}
	var shown time.Duration
	for _, row := range rows {
		shown += got[row]
	}
	if shown != total(got) {
		t.Errorf("the rows that are shown make %v of %v", shown, total(got))
	}
}

func TestTheOwnerOfAContainer(t *testing.T) {
	labelled := func(labels ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		for i := 0; i < len(labels); i += 2 {
			p.Labels[labels[i]] = labels[i+1]
		}
		return p
	}
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		container string
		sidecar   bool
		want      string
	}{
		"API server":                  {labelled("component", "kube-apiserver"), "kube-apiserver", false, rowAPIServer},
		"etcd":                        {labelled("component", "etcd"), "etcd", false, rowEtcd},
		"scheduler":                   {labelled("component", "kube-scheduler"), "kube-scheduler", false, rowOthers},
		"manager":                     {labelled("app.kubernetes.io/name", "assay"), "manager", false, rowManagers},
		"agent":                       {labelled(v1alpha1.LabelPodType, "replica"), "agent", true, rowAgents},
		"replica":                     {labelled(v1alpha1.LabelPodType, "replica"), "agent-like", false, rowSystem},
		"client":                      {labelled(v1alpha1.LabelPodType, "client"), "driver", false, rowClients},
		"prepare":                     {labelled(v1alpha1.LabelPodType, "prepare"), "keygen", false, rowPrepare},
		"the floor's":                 {labelled(labelPodType, "replica"), "main", false, rowSystem},
		"an init container of others": {labelled("k8s-app", "kindnet"), "setup", true, rowOthers},
	} {
		if got := rowOfPod(tc.pod, tc.container, tc.sidecar); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
