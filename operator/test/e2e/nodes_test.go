package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// node runs a command on a node of the cluster, which is a container of the local docker. It checks
// Assay's statements about networks with the kernel's own tools, which are independent of Assay.
func node(ctx context.Context, name string, command ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "docker", append([]string{"exec", name}, command...)...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %s: %w: %s", name, strings.Join(command, " "), err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}

func mustNode(t *testing.T, name string, command ...string) string {
	t.Helper()
	out, err := node(t.Context(), name, command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// needNodes returns the names of the cluster's nodes. It skips the test if they are not containers
// of the local docker, unlike the nodes of kind. If docker does not answer, it fails the test.
func (e *env) needNodes(t *testing.T) []string {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := e.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range nodes.Items {
		needContainer(t, n.Name)
		names = append(names, n.Name)
	}
	return names
}

// needContainer skips the test on a cluster that is not of kind: the local docker has no container
// with the node's name.
func needContainer(t *testing.T, name string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", "ps", "--all", "--format", "{{.Names}}", "--filter", "name=^"+name+"$").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("this machine has no docker, so the cluster's nodes cannot be looked into")
	}
	if err != nil {
		t.Fatalf("docker ps: %v: %s", err, out)
	}
	if strings.TrimSpace(string(out)) != name {
		t.Skipf("node %s is not a container of the docker here", name)
	}
}

// packetState prints how the kernel handles packets in one network namespace: the packet filter
// without its counters, and the queueing disciplines.
const packetState = "nft --stateless list ruleset 2>&1; tc qdisc show; tc filter show dev eth0 ingress 2>&1; tc filter show dev eth0 egress 2>&1"

// nodeStates are the packet states of the nodes themselves.
func nodeStates(t *testing.T, nodes []string) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, n := range nodes {
		states[n] = mustNode(t, n, "sh", "-c", packetState)
		if !strings.Contains(states[n], "table ") || !strings.Contains(states[n], "qdisc ") {
			t.Fatalf("%s: neither rules nor disciplines are seen: %q", n, states[n])
		}
	}
	return states
}

// sameNodeStates fails the test when a trial has changed how a node handles packets. Interfaces of
// the last pods may take a moment to disappear.
func sameNodeStates(t *testing.T, before map[string]string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for name, want := range before {
		got := mustNode(t, name, "sh", "-c", packetState)
		for got != want && time.Now().Before(deadline) {
			time.Sleep(time.Second)
			got = mustNode(t, name, "sh", "-c", packetState)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: nft and tc are not as before the trial (-before +after):\n%s", name, diff)
		}
	}
	t.Logf("nft and tc state of %d nodes is byte-identical before and after", len(before))
}

// inside is the network namespace of one pod. A process on its node holds it, also after the end of
// the pod.
type inside struct {
	pod, node, ip string
	uid           string // of the pod
	holder        string // process on the node
}

// enter finds the pod's network namespace and holds it until the test ends, for at most a quarter
// of an hour.
func enter(t *testing.T, pod corev1.Pod) *inside {
	t.Helper()
	in := &inside{pod: pod.Name, node: pod.Spec.NodeName, ip: pod.Status.PodIP, uid: string(pod.UID)}
	pid := in.pid(t, `labels."io.cri-containerd.kind"==sandbox`)
	// The holder is in the pod's network namespace itself, and so keeps it alive. Before nsenter
	// has entered it, a command that enters the holder's namespace would be in the node's.
	in.holder = strings.TrimSpace(mustNode(t, in.node, "sh", "-c",
		"nsenter -t "+pid+" -n timeout 900 sleep 900 >/dev/null 2>&1 & "+
			"for i in $(seq 500); do [ \"$(readlink /proc/$!/ns/net)\" = \"$(readlink /proc/"+pid+"/ns/net)\" ] && echo $! && exit; sleep 0.01; done; exit 1"))
	t.Cleanup(func() {
		if _, err := node(context.Background(), in.node, "kill", in.holder); err != nil {
			t.Log(err)
		}
	})
	return in
}

// pid is the process ID, on the node, of the first process of the pod's running container with a
// label. The nodes of a kind cluster that is built here have ctr, but no crictl.
func (in *inside) pid(t *testing.T, label string) string {
	t.Helper()
	const running = `for id in $(ctr -n k8s.io containers ls -q "$0"); do ctr -n k8s.io tasks ls | awk -v id="$id" '$1 == id && $3 == "RUNNING" {print $2}'; done`
	found := strings.Fields(mustNode(t, in.node, "sh", "-c", running, `labels."io.kubernetes.pod.uid"==`+in.uid+","+label))
	if len(found) != 1 {
		t.Fatalf("%s: %d processes of containers with %s, want one: %v", in.pod, len(found), label, found)
	}
	return found[0]
}

// run executes a command of the node in the pod's network namespace.
func (in *inside) run(t *testing.T, command string) string {
	t.Helper()
	return mustNode(t, in.node, "nsenter", "-t", in.holder, "-n", "sh", "-c", command)
}

// killAgent sends SIGKILL to the pod's agent.
func (in *inside) killAgent(t *testing.T) {
	t.Helper()
	mustNode(t, in.node, "kill", "-KILL", in.pid(t, `labels."io.kubernetes.container.name"==agent`))
}

// pods of one part of a trial that run, by name.
func (e *env) podsOf(t *testing.T, trial, part string) map[string]corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := e.List(t.Context(), list, client.InNamespace(e.namespace),
		client.MatchingLabels{v1alpha1.LabelTrial: trial, v1alpha1.LabelPodType: part}); err != nil {
		t.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, p := range list.Items {
		if p.Status.PodIP != "" {
			pods[p.Name] = p
		}
	}
	return pods
}
