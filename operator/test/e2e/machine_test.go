package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// A reset machine really goes down: on kind a machine is a container, which exits. It comes back,
// and so does the system. The report shows the time that this took. A machine is not reset without
// its owner's permission. The managers are on the control plane, where make deploy puts them.
func TestMachineReset(t *testing.T) {
	e := newEnv(t)
	machines := e.workers(t)
	e.spared(t)
	e.apply(t, filepath.Join(root, "experiments", "systems", "etcd.yaml"), nil)
	file := filepath.Join("testdata", "machine.yaml")

	// The annotation is missing.
	exp := e.apply(t, file, func(o client.Object) {
		o.SetName("refused")
		onceOnly(&o.(*v1alpha1.Experiment).Spec)
	})
	refused := e.complete(t, exp, 5*time.Minute)
	if len(refused) != 1 {
		t.Errorf("%d trials, want one that is refused", len(refused))
	}
	for _, r := range refused {
		if r.Outcome != v1alpha1.ReasonFailed || r.Reason != v1alpha1.ReasonMachineRefused || !strings.Contains(r.Message, v1alpha1.AnnotationAllowMachineFaults) {
			t.Errorf("%s: %s: %s %s; want that it is refused, since no node allows it", r.Name, r.Outcome, r.Reason, r.Message)
		}
	}
	e.sameMachines(t, machines)

	e.allow(t, machines)
	exp = e.apply(t, file, nil)
	stop := startAgain(t, machines)
	trials := e.complete(t, exp, 6*time.Minute)
	stop()
	if len(trials) != 1 || trials[0].Outcome != v1alpha1.ReasonSucceeded {
		t.Fatalf("%d trials, the first %s: %s %s; want one that succeeded", len(trials), trials[0].Outcome, trials[0].Reason, trials[0].Message)
	}
	r := trials[0]
	node := checkReset(t, r)
	for _, m := range machines {
		now := inspect(t, m.name)
		if m.name == node {
			begun := time.Unix(0, r.ZeroUnixNanos).Add(time.Duration(r.Faults[0].StartedMillis * float64(time.Millisecond)))
			t.Logf("container %s: started %s; the reset began %s; exited %s; started %s", m.name, m.started.Format(time.StampMilli), begun.Format(time.StampMilli),
				now.finished.Format(time.StampMilli), now.started.Format(time.StampMilli))
			// Docker notices the end when all of the container's processes are gone.
			if took := now.finished.Sub(begun); took < 0 || took > 10*time.Second {
				t.Errorf("container %s exited %v after the reset began, want at once", m.name, took)
			}
		}
		if went := now.started.After(m.started); went != (m.name == node) {
			t.Errorf("node %s went down: %v, want only %s", m.name, went, node)
		}
	}
	e.eventually(t, time.Minute, "node "+node+" is Ready", func(ctx context.Context) (bool, error) { return e.ready(ctx, node) })

	whole := e.experimentResult(t, exp)
	var details model.Details
	details.Add(r)
	details.Into(&whole)
	var page bytes.Buffer
	if err := format.Markdown(&page, whole); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(page.String()) {
		if strings.Contains(line, "power") || strings.Contains(line, "back to 90%") {
			t.Logf("the report says: %s", strings.TrimSpace(line))
		}
	}
	if !strings.Contains(page.String(), "| power | Reset |") || !strings.Contains(page.String(), "| the only one | power |") {
		t.Errorf("the report does not have the fault and the recovery from it:\n%s", page.String())
	}
	pods := &corev1.PodList{}
	if err := e.List(t.Context(), pods, client.MatchingLabels{v1alpha1.LabelPodType: v1alpha1.PodTypeMachine}); err != nil || len(pods.Items) != 0 {
		t.Errorf("%d pods that reset machines are left (%v), want none", len(pods.Items), err)
	}
	checkDip(t, r)
}

// checkReset checks the record of the reset, and returns the node that was reset.
func checkReset(t *testing.T, r results.Trial) string {
	t.Helper()
	if len(r.Faults) != 1 {
		t.Fatalf("faults are %+v, want one", r.Faults)
	}
	f := r.Faults[0]
	t.Logf("reset planned at %.0f ms, begun at %.3f ms, machine back at %.0f ms", f.PlannedMillis, f.StartedMillis, f.ConfirmedMillis)
	if f.Kind != "Reset" || f.Error != "" || f.ConfirmedMillis < f.StartedMillis+500 {
		t.Errorf("fault %+v, want a Reset of a machine that needs at least half a second to come back", f)
	}
	for _, p := range r.Pods {
		if p.Name == f.Pod {
			return p.Node
		}
	}
	t.Fatalf("pod %s is not among the results' pods", f.Pod)
	return ""
}

// checkDip checks that no transaction was committed while the machine was down, and that the length
// of the outage is known.
func checkDip(t *testing.T, r results.Trial) {
	t.Helper()
	if len(r.Recovery) != 1 {
		t.Fatalf("recoveries are %+v, want one", r.Recovery)
	}
	rec := r.Recovery[0]
	t.Logf("throughput %.1f/s before; dip of %.0f%% after %.0f ms; recovered %v after %.0f ms; %.0f transactions lost", rec.ThroughputBefore, 100*rec.Depth,
		rec.DetectMillis, rec.Recovered, rec.RecoverMillis, rec.LostTransactions)
	if !rec.Dipped || rec.Depth < 0.9 || !rec.Recovered {
		t.Errorf("recovery %+v, want a dip to nothing and then what it was before", rec)
		return
	}
	if rec.RecoverMillis < 1000 {
		t.Errorf("recovery %+v, want it after a second or more", rec)
	}
	// The system cannot be back before its machine is.
	if back := r.Faults[0].ConfirmedMillis - r.Faults[0].StartedMillis; rec.RecoverMillis < back/2 {
		t.Errorf("recovered after %.0f ms; the machine took %.0f ms to come back", rec.RecoverMillis, back)
	}
}

// machine is a node that runs as a container of the local docker.
type machine struct {
	name              string
	running           bool
	started, finished time.Time
}

func inspect(t *testing.T, name string) machine {
	t.Helper()
	m := machine{name: name}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	out, err := exec.CommandContext(ctx, "docker", "inspect", "--format", "{{.State.Running}} {{.State.StartedAt}} {{.State.FinishedAt}}", name).Output()
	var running, started, finished string
	if err == nil {
		_, err = fmt.Sscan(string(out), &running, &started, &finished)
	}
	if err == nil {
		var wrong error
		m.running = running == "true"
		m.started, err = time.Parse(time.RFC3339Nano, started)
		m.finished, wrong = time.Parse(time.RFC3339Nano, finished)
		err = errors.Join(err, wrong)
	}
	if err != nil {
		t.Errorf("inspect container %s: %v", name, err)
	}
	return m
}

// workers are the cluster's worker nodes. The test is skipped if they are not containers of a local
// docker.
func (e *env) workers(t *testing.T) []machine {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := e.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var machines []machine
	for _, n := range nodes.Items {
		if _, control := n.Labels["node-role.kubernetes.io/control-plane"]; control {
			continue
		}
		needContainer(t, n.Name)
		machines = append(machines, inspect(t, n.Name))
	}
	if len(machines) < 2 {
		t.Fatalf("%d workers; the system and its client need one each (make cluster WORKERS=2)", len(machines))
	}
	return machines
}

func (e *env) sameMachines(t *testing.T, machines []machine) {
	t.Helper()
	for _, m := range machines {
		if now := inspect(t, m.name); !now.started.Equal(m.started) {
			t.Errorf("node %s went down, though it does not allow that", m.name)
		}
	}
}

// allow sets the annotation on the nodes for the time of the test.
func (e *env) allow(t *testing.T, machines []machine) {
	t.Helper()
	set := func(ctx context.Context, value string) {
		for _, m := range machines {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationAllowMachineFaults, value)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
			if err := e.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
				t.Errorf("annotate node %s: %v", m.name, err)
			}
		}
	}
	set(t.Context(), `"true"`)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		defer stop()
		set(ctx, "null")
		for _, m := range machines {
			e.eventually(t, 2*time.Minute, "node "+m.name+" is Ready again", func(ctx context.Context) (bool, error) { return e.ready(ctx, m.name) })
		}
	})
}

func (e *env) ready(ctx context.Context, name string) (bool, error) {
	node := &corev1.Node{}
	if err := e.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return false, err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}

// startAgain starts a machine whose container has been down for 15 s. Docker restarts it at once,
// but only a limited number of times (kind: on-failure:1).
func startAgain(t *testing.T, machines []machine) (stop func()) {
	t.Helper()
	const patience = 15 * time.Second
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		down := map[string]time.Time{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			for _, m := range machines {
				if inspect(t, m.name).running {
					delete(down, m.name)
					continue
				}
				if down[m.name].IsZero() {
					down[m.name] = time.Now()
				}
				if time.Since(down[m.name]) > patience {
					t.Logf("container %s has been down for %v: docker start", m.name, patience)
					if out, err := exec.Command("docker", "start", m.name).CombinedOutput(); err != nil {
						t.Errorf("docker start %s: %v %s", m.name, err, out)
					}
				}
			}
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// spared checks that no manager is on a machine that may be reset.
func (e *env) spared(t *testing.T) {
	t.Helper()
	e.eventually(t, time.Minute, "the managers are on the control plane, where hack/deploy.sh puts them", func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		if err := e.List(ctx, pods, client.InNamespace(systemNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"}); err != nil {
			return false, err
		}
		for _, p := range pods.Items {
			node := &corev1.Node{}
			if err := e.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, node); err != nil {
				return false, err
			}
			if _, control := node.Labels["node-role.kubernetes.io/control-plane"]; !control {
				return false, fmt.Errorf("%s is on %s", p.Name, node.Name)
			}
		}
		return len(pods.Items) > 0, nil
	})
}
