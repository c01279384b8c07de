package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

const (
	// chaosVictim is the replica that the faults target.
	chaosVictim = 5
	// chaosAttempts is how often a test tries to observe an effect. The effect may end before the
	// observation, or a machine that stands still may spoil it.
	chaosAttempts = 3
	// chaosUndone is how long it may take to undo a fault, once there is a manager that can.
	chaosUndone = 25 * time.Second
)

// chaosKinds of Chaos Mesh that the faults here may leave objects of. Chaos Mesh itself makes a
// PodNetworkChaos for each pod of a NetworkChaos.
var chaosKinds = []string{"PodChaos", "NetworkChaos", "PodNetworkChaos"}

func chaosKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "chaos-mesh.org", Version: "v1alpha1", Kind: kind}
}

// chaosFaults are the faults of the experiments here, by name.
func chaosFaults() map[string]v1alpha1.Fault {
	fault := func(name, kind, spec string, at, length v1alpha1.Duration, peers *v1alpha1.Target) v1alpha1.Fault {
		f := v1alpha1.Fault{Name: name, At: at, ChaosMesh: &v1alpha1.ChaosMesh{
			Kind: kind, Target: v1alpha1.Target{Replicas: []int32{chaosVictim}}, Peers: peers, Spec: runtime.RawExtension{Raw: []byte(spec)},
		}}
		if length != "" {
			f.For = &length
		}
		return f
	}
	others := &v1alpha1.Target{Replicas: []int32{0, 1, 2, 3, 4}}
	all := map[string]v1alpha1.Fault{}
	for _, f := range []v1alpha1.Fault{
		fault("kill", "PodChaos", `{"action": "pod-kill", "gracePeriod": 0}`, "2s", "", nil),
		fault("partition", "NetworkChaos", `{"action": "partition", "direction": "both"}`, "2s", "8s", others),
		fault("bandwidth", "NetworkChaos", `{"action": "bandwidth", "direction": "to", "bandwidth": {"rate": "1mbps", "limit": 20971520, "buffer": 10000}}`, "2s", "8s", nil),
		fault("delay", "NetworkChaos", `{"action": "delay", "direction": "to", "delay": {"latency": "10ms"}}`, "1s", "5s", nil),
		fault("wrong", "NetworkChaos", `{"action": "bandwidth", "direction": "to", "bandwidth": {"rate": "fast", "limit": 20971520, "buffer": 10000}}`, "1s", "5s", nil),
	} {
		all[f.Name] = f
	}
	return all
}

// failureFP is the evaluation of experiments/failure-fp.yaml at smoke size: one trial for each of
// the faults, without its claims. "crash" is a fault of the file, and the others are from
// chaosFaults.
func failureFP(t *testing.T, name string, measure v1alpha1.Duration, faults ...string) *v1alpha1.Experiment {
	t.Helper()
	exp := &v1alpha1.Experiment{}
	read(t, filepath.Join(root, "experiments", "failure-fp.yaml"), exp)
	exp.Namespace, exp.Name = othersExperiments, exp.Name+"-"+name
	spec := &exp.Spec
	spec.Profile, spec.Claims, spec.Reported = "smoke", nil, nil
	crash := spec.Faults[0]
	spec.Faults = nil
	spec.Results = &v1alpha1.Results{Store: v1alpha1.NoStore} // this test uses no store
	smoke := &spec.Profiles[0]
	// The delays by Chaos Mesh are far larger than the effects of a machine that others share.
	bears := smoke.Tolerances
	bears.Contention = "100%"
	bears.Steal, bears.FaultLateness, bears.StartSpread, bears.ClockError, bears.LinkDelay = "100%", "1s", "1s", "500ms", "20ms"
	smoke.Disturbances = &v1alpha1.Disturbances{RetryFor: "3m", IdleWait: "0s"}
	smoke.Claims, smoke.Repetitions, smoke.Schedule.Measure = nil, &v1alpha1.Repetitions{Min: 1}, measure
	variant := &spec.Sweep[1]
	parameters := variant.Points[0].Parameters
	variant.Points = nil
	for _, name := range faults {
		fault, isChaosMesh := chaosFaults()[name]
		if !isChaosMesh {
			fault = crash
		}
		spec.Faults = append(spec.Faults, fault)
		variant.Points = append(variant.Points, v1alpha1.AxisPoint{Name: name, Parameters: parameters, Faults: []string{fault.Name}})
	}
	return exp
}

// refusedByAll waits until an experiment with the fault is rejected with these words. Right after
// an upgrade an earlier manager may still answer.
func (o *owner) refusedByAll(t *testing.T, fault, words string) {
	t.Helper()
	eventually(t, patience, "an experiment is refused that needs "+words, func(ctx context.Context) (bool, error) {
		err := o.Create(ctx, failureFP(t, fault, "10s", fault), client.DryRunAll)
		if err == nil {
			return false, errors.New("it was taken")
		}
		return strings.Contains(err.Error(), words), err
	})
}

// offer applies the experiment and deletes it at the end of the test. For a moment, a manager may
// not know an object that the API server has accepted.
func (o *owner) offer(t *testing.T, exp *v1alpha1.Experiment) {
	t.Helper()
	t.Cleanup(func() { o.deleted(t, exp, client.PropagationPolicy(metav1.DeletePropagationForeground)) })
	eventually(t, patience, "the experiment is taken", func(ctx context.Context) (bool, error) {
		err := o.Create(ctx, exp)
		return err == nil, err
	})
}

// excused reports whether a trial may be repeated because of the machine: see environment.
func excused(r results.Trial) bool {
	return r.Outcome == v1alpha1.ReasonInvalid && slices.Contains(environment, r.Reason)
}

// succeeded reports whether a trial did. It fails the test unless the trial succeeded, or may be
// repeated because of the machine.
func succeeded(t *testing.T, r results.Trial) bool {
	t.Helper()
	t.Logf("%s %v: %s %s %s; %+v", r.Name, r.Coordinates, r.Outcome, r.Reason, r.Message, r.Faults)
	if r.Outcome != v1alpha1.ReasonSucceeded && !excused(r) {
		t.Errorf("%s: %s: %s", r.Name, r.Reason, r.Message)
	}
	return r.Outcome == v1alpha1.ReasonSucceeded
}

// Without the owner's permission, or without Chaos Mesh, an experiment that needs Chaos Mesh is
// rejected when it is applied. With both, the manager asks Chaos Mesh itself to check a fault.
func TestChaosMeshRefusals(t *testing.T) {
	withoutChaosMesh(t).refusedByAll(t, "kill", "chaosMesh.enabled")
	withOthers(t).refusedByAll(t, "kill", "install Chaos Mesh")
	withChaosMesh(t).refusedByAll(t, "wrong", "parse rate field error")
}

// lookAtFaults observes those faults of an experiment that have not been observed yet. It ends when
// all have been observed, or when the experiment is over.
func (o *owner) lookAtFaults(t *testing.T, exp *v1alpha1.Experiment, faults []string, looked map[string]bool) {
	t.Helper()
	eventually(t, 3*patience, "the faults were in force and were looked at", func(ctx context.Context) (bool, error) {
		for _, u := range o.chaosObjects(ctx, t, "NetworkChaos") {
			action, _, _ := unstructured.NestedString(u.Object, "spec", "action")
			if looked[action] || !injected(&u) {
				continue
			}
			wrong, err := o.lookInside(ctx, &u, action)
			// An observation counts if the fault was in force all the time.
			if again := u.DeepCopy(); err != nil || o.Get(ctx, client.ObjectKeyFromObject(again), again) != nil || !injected(again) {
				t.Logf("%s ended while it was looked at (%v)", u.GetName(), err)
				continue
			}
			if looked[action] = true; wrong != "" {
				t.Error(wrong)
			}
		}
		all := !slices.ContainsFunc(faults, func(fault string) bool { return !looked[fault] })
		return all || o.isComplete(ctx, exp), fmt.Errorf("%v", looked)
	})
}

// isComplete reports whether an experiment is known to be.
func (o *owner) isComplete(ctx context.Context, exp *v1alpha1.Experiment) bool {
	return o.Get(ctx, client.ObjectKeyFromObject(exp), exp) == nil && meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete)
}

// checkChaosRecords checks that a trial's results have its fault, confirmed. The end of the fault,
// if it has one, must be confirmed, too.
func checkChaosRecords(t *testing.T, r results.Trial, fault string) {
	t.Helper()
	want := map[string]string{"kill": "PodChaos pod-kill", "partition": "NetworkChaos partition", "bandwidth": "NetworkChaos bandwidth"}[fault]
	kinds := map[string]int{}
	for _, f := range r.Faults {
		kinds[f.Kind]++
		if f.Fault != fault || f.Object != want || f.Error != "" || !slices.ContainsFunc(r.Pods, func(p results.Pod) bool { return p.Name == f.Pod && p.Part == v1alpha1.PodTypeReplica }) {
			t.Errorf("%s: record %+v; want fault %s, done by %s to a replica, without error", r.Name, f, fault, want)
		}
		if f.StartedMillis < f.PlannedMillis || f.ConfirmedMillis <= f.StartedMillis || f.ConfirmedMillis > f.PlannedMillis+10_000 {
			t.Errorf("%s: %s was planned at %v ms, asked for at %v, confirmed at %v", r.Name, f.ID, f.PlannedMillis, f.StartedMillis, f.ConfirmedMillis)
		}
	}
	ends := 1
	if fault == "kill" {
		ends = 0 // it has no end: the pod comes back on its own
	}
	if kinds["Inject"] != 1 || kinds["Recover"] != ends || len(r.Faults) != 1+ends {
		t.Errorf("%s: records by kind %v, want one Inject and %d Recover", r.Name, kinds, ends)
	}
}

// SIGKILL ends the leading manager while a partition is in force. The next manager ends the
// partition at its planned end, or as soon as it leads. It finds the partition in the records of
// the earlier manager.
func TestChaosMeshPartitionOutlivesTheManager(t *testing.T) {
	o := withChaosMesh(t)
	for attempt := 1; ; attempt++ {
		exp := failureFP(t, fmt.Sprintf("takeover-%d", attempt), "14s", "partition")
		exp.Spec.Retries, exp.Spec.Profiles[0].Disturbances.RetryFor = new(int32), "0s"
		o.offer(t, exp)
		leader, inForce := o.killLeaderInPartition(t, exp)
		trials := o.ended(t, exp)
		if len(trials) != 1 {
			t.Fatalf("%d trials, want 1", len(trials))
		}
		if r := trials[0]; r.Reason != v1alpha1.ReasonFaultLate { // the partition was longer than planned, and so not the requested one
			succeeded(t, r)
		}
		if inForce {
			o.checkTakeover(t, trials[0], leader)
			break
		}
		if attempt == chaosAttempts {
			t.Fatal("partitions were over, or never made, before a manager could be killed")
		}
	}
	o.noTrace(t)
}

// killLeaderInPartition kills the leading manager while the experiment's partition is in force, and
// waits for the end of the partition. It reports whether the kill came in time.
func (o *owner) killLeaderInPartition(t *testing.T, exp *v1alpha1.Experiment) (leader string, inForce bool) {
	t.Helper()
	leader, node, pid := o.leadingProcess(t)
	var object *unstructured.Unstructured
	eventually(t, 2*patience, "a partition is in force", func(ctx context.Context) (bool, error) {
		for _, u := range o.chaosObjects(ctx, t, "NetworkChaos") {
			if injected(&u) && o.confirmed(ctx, &u) {
				object = &u
				return true, nil
			}
		}
		return o.isComplete(ctx, exp), errors.New("no object is injected, and known to be by the manager")
	})
	if object == nil {
		return leader, false
	}
	if now := o.leader(t); now != leader { // since the observation, for reasons of its own
		leader, node, pid = o.leadingProcess(t)
	}
	t.Logf("killing %s while %s is in force", leader, object.GetName())
	o.run(t, "docker", "exec", node, "kill", "-KILL", pid)
	began := time.Now()
	undone := func(ctx context.Context, u *unstructured.Unstructured) (bool, error) {
		err := o.Get(ctx, client.ObjectKeyFromObject(u), u)
		return apierrors.IsNotFound(err), err
	}
	now := object.DeepCopy()
	_, err := undone(t.Context(), now)
	inForce = err == nil && injected(now)
	eventually(t, patience, "the partition is undone", func(ctx context.Context) (bool, error) { return undone(ctx, object.DeepCopy()) })
	gone := time.Now()
	lease, err := o.clientset.CoordinationV1().Leases(namespace).Get(t.Context(), "manager.assay.dev", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The partition takes six seconds, or until another manager leads: that one waits 15 s for the
	// lease of the killed one, which gave no notice.
	since := began
	if took := lease.Spec.AcquireTime; took != nil && took.After(began) {
		since = took.Time
	}
	t.Logf("%s is gone %.1f s after the kill, %.1f s after a manager could undo it", object.GetName(), gone.Sub(began).Seconds(), gone.Sub(since).Seconds())
	if inForce && gone.Sub(since) > chaosUndone {
		t.Errorf("it took %.1f s to undo it, want at most %v", gone.Sub(since).Seconds(), chaosUndone)
	}
	return leader, inForce
}

// confirmed reports whether a manager has recorded, for its successors, that it saw the fault in
// force.
func (o *owner) confirmed(ctx context.Context, u *unstructured.Unstructured) bool {
	list := &corev1.ConfigMapList{}
	err := o.List(ctx, list, client.InNamespace(u.GetNamespace()), client.MatchingLabels{v1alpha1.LabelTrial: u.GetLabels()[v1alpha1.LabelTrial]})
	return err == nil && slices.ContainsFunc(list.Items, func(cm corev1.ConfigMap) bool { return strings.Contains(cm.Data["chaos.json"], `"confirmed"`) })
}

// leadingProcess is the leading manager, with its node and its process ID there.
func (o *owner) leadingProcess(t *testing.T) (leader, node, pid string) {
	t.Helper()
	eventually(t, patience, "the process of the manager that leads is known", func(ctx context.Context) (bool, error) {
		leader = o.leader(t)
		name, _, _ := strings.Cut(leader, "_")
		pod := &corev1.Pod{}
		err := o.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
		if err == nil {
			pid, err = o.processOf(pod)
		}
		node = pod.Spec.NodeName
		return err == nil, err
	})
	return leader, node, pid
}

// checkTakeover checks a trial's records of a partition during which the manager was killed.
func (o *owner) checkTakeover(t *testing.T, r results.Trial, killed string) {
	t.Helper()
	if len(r.Faults) != 2 {
		t.Errorf("%s: records %+v, want an Inject and a Recover", r.Name, r.Faults)
	}
	for _, f := range r.Faults {
		if f.Error != "" || f.ConfirmedMillis <= f.StartedMillis {
			t.Errorf("%s: %s is not confirmed: %+v", r.Name, f.ID, f)
		}
	}
	if now := o.leader(t); now == killed {
		t.Errorf("%s still leads; the test killed nobody", killed)
	}
}

// A delay needs netem in the kernel of the nodes. Without it the trial fails with that reason. It
// does not wait for an impossible effect, and releases the objects that Chaos Mesh would not
// release.
func TestChaosMeshDelay(t *testing.T) {
	o := withChaosMesh(t)
	lacking := o.lacksNetem(t)
	for attempt := 1; ; attempt++ {
		exp := failureFP(t, fmt.Sprintf("delay-%d", attempt), "8s", "delay")
		exp.Spec.Retries, exp.Spec.Profiles[0].Disturbances.RetryFor = new(int32), "0s"
		o.offer(t, exp)
		trials := o.ended(t, exp)
		if len(trials) != 1 {
			t.Fatalf("%d trials, want 1", len(trials))
		}
		r := trials[0]
		t.Logf("%s: %s %s %s; %+v", r.Name, r.Outcome, r.Reason, r.Message, r.Faults)
		asWanted := r.Outcome == v1alpha1.ReasonSucceeded
		if lacking != nil {
			asWanted = !asWanted && strings.Contains(r.Message, "netem")
		}
		if !asWanted && (!excused(r) || attempt == chaosAttempts) {
			t.Errorf("%s: %s: %q; want success where the kernel has netem, and a failure that names it where not (%v)", r.Name, r.Reason, r.Message, lacking)
		}
		if asWanted || t.Failed() {
			break
		}
	}
	o.noTrace(t)
}

// lacksNetem says why the kernel of the nodes has no netem; nil if it has.
func (o *owner) lacksNetem(t *testing.T) error {
	t.Helper()
	node := o.worker(t)
	var lacking error
	for range 3 { // docker may fail, too
		if _, lacking = o.try("docker", "exec", node, "unshare", "-n", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"); lacking == nil {
			break
		}
	}
	return lacking
}

// ended waits until the experiment is complete and its results are stored, and returns the results
// of its trials.
func (o *owner) ended(t *testing.T, exp *v1alpha1.Experiment) []results.Trial {
	t.Helper()
	eventually(t, 3*patience, exp.Name+" is complete", func(ctx context.Context) (bool, error) {
		err := o.Get(ctx, client.ObjectKeyFromObject(exp), exp)
		return err == nil && meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) &&
			meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentResultsStored), errors.Join(err, fmt.Errorf("%+v", exp.Status.Trials))
	})
	var all []results.Trial
	for _, trial := range o.trials(t, exp) {
		cm := &corev1.ConfigMap{}
		if err := o.Get(t.Context(), client.ObjectKey{Namespace: exp.Namespace, Name: trial.Status.ResultsConfigMap}, cm); err != nil {
			t.Fatalf("results of %s: %v", trial.Name, err)
		}
		r, err := results.DecodeStored(cm.Data, cm.BinaryData)
		if err != nil {
			t.Fatalf("results of %s: %v", trial.Name, err)
		}
		all = append(all, r)
	}
	return all
}

// chaosObjects of a kind in the experiments' namespace.
func (o *owner) chaosObjects(ctx context.Context, t *testing.T, kind string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(chaosKind(kind + "List"))
	if err := o.List(ctx, list, client.InNamespace(othersExperiments)); err != nil {
		t.Logf("list objects of kind %s: %v", kind, err)
	}
	return list.Items
}

// injected reports whether Chaos Mesh states that the object's fault is in force.
func injected(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return u.GetDeletionTimestamp() == nil && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "AllInjected" && m["status"] == "True"
	})
}

// lookInside observes the victim's network itself, and says what is wrong there: whether its kernel
// carries out the action.
func (o *owner) lookInside(ctx context.Context, u *unstructured.Unstructured, action string) (wrong string, err error) {
	victim, err := o.chosen(ctx, u, ".")
	if err != nil {
		return "", err
	}
	inside, err := o.networkOf(victim)
	if err != nil {
		return "", err
	}
	if action == "bandwidth" {
		out, err := inside("tc", "qdisc", "show", "dev", "eth0")
		if err == nil && (!strings.Contains(out, "tbf") || !strings.Contains(out, "rate 8Mbit")) {
			wrong = fmt.Sprintf("with 1 MB/s, the queueing discipline of %s is\n%s", victim.Name, out)
		}
		return wrong, err
	}
	rules, err := inside("iptables-legacy", "-S")
	if err == nil && !strings.Contains(rules, "-j DROP") {
		return fmt.Sprintf("in a partition, the rules of %s are\n%s", victim.Name, rules), nil
	}
	peer, err := o.chosen(ctx, u, ".Target")
	if err != nil {
		return "", err
	}
	if out, err := inside("ping", "-c", "1", "-W", "1", peer.Status.PodIP); err == nil {
		return fmt.Sprintf("in a partition, %s reaches %s:\n%s", victim.Name, peer.Name, out), nil
	}
	return "", nil
}

// chosen is the first pod that Chaos Mesh states to have chosen: for "." as the target, for
// ".Target" as the other end.
func (o *owner) chosen(ctx context.Context, u *unstructured.Unstructured, as string) (*corev1.Pod, error) {
	records, _, err := unstructured.NestedSlice(u.Object, "status", "experiment", "containerRecords")
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if m, ok := r.(map[string]any); ok && m["selectorKey"] == as {
			pod, parts := &corev1.Pod{}, strings.Split(fmt.Sprint(m["id"]), "/")
			if err := o.Get(ctx, client.ObjectKey{Namespace: parts[0], Name: parts[1]}, pod); err != nil {
				return nil, err
			}
			return pod, nil
		}
	}
	return nil, fmt.Errorf("%s has no record of %q", u.GetName(), as)
}

// networkOf returns a function that runs programs of the node in the network of a pod.
func (o *owner) networkOf(pod *corev1.Pod) (func(...string) (string, error), error) {
	pid, err := o.processOf(pod)
	return func(command ...string) (string, error) {
		return o.try("docker", append([]string{"exec", pod.Spec.NodeName, "nsenter", "-t", pid, "-n"}, command...)...)
	}, err
}

// processOf is the process ID, on its node, of the first process in a pod's first container. Nodes
// are containers of the local docker.
func (o *owner) processOf(pod *corev1.Pod) (string, error) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return "", fmt.Errorf("pod %s has no container yet", pod.Name)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	pid, err := o.try("docker", "exec", pod.Spec.NodeName, "sh", "-c", `ctr -n k8s.io tasks ls | awk -v id="$0" '$1 == id {print $2}'`, id)
	if pid = strings.TrimSpace(pid); err == nil && pid == "" {
		err = fmt.Errorf("pod %s: node %s knows no process of container %s", pod.Name, pod.Spec.NodeName, id)
	}
	return pid, err
}

// noTrace checks that no object of Chaos Mesh and no pod of a trial is left, and no effect of Chaos
// Mesh in the networks of the nodes.
func (o *owner) noTrace(t *testing.T) {
	t.Helper()
	eventually(t, patience, "no pod and no object of Chaos Mesh is left", func(ctx context.Context) (bool, error) {
		var left []string
		for _, kind := range chaosKinds {
			for _, u := range o.chaosObjects(ctx, t, kind) {
				left = append(left, kind+" "+u.GetName())
			}
		}
		pods := &corev1.PodList{}
		err := o.List(ctx, pods, client.InNamespace(othersExperiments))
		for i := range pods.Items {
			left = append(left, "Pod "+pods.Items[i].Name)
		}
		return err == nil && len(left) == 0, errors.Join(err, fmt.Errorf("left: %v", left))
	})
	nodes := &corev1.NodeList{}
	if err := o.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		rules := o.insist(t, "docker", "exec", n.Name, "iptables-legacy", "-S") + o.insist(t, "docker", "exec", n.Name, "ipset", "list", "-n") +
			o.insist(t, "docker", "exec", n.Name, "tc", "qdisc", "show")
		if strings.Contains(rules, "CHAOS") || strings.Contains(rules, "_tgt") || strings.Contains(rules, "tbf") {
			t.Errorf("node %s has something of Chaos Mesh left:\n%s", n.Name, rules)
		}
	}
}

// leader is the leading manager: its pod, "_", and a part that differs for another start of the
// same pod.
func (o *owner) leader(t *testing.T) string {
	t.Helper()
	var leader string
	eventually(t, patience, "a manager leads", func(ctx context.Context) (bool, error) {
		lease, err := o.clientset.CoordinationV1().Leases(namespace).Get(ctx, "manager.assay.dev", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, err
		}
		leader = *lease.Spec.HolderIdentity
		return leader != "", nil
	})
	return leader
}

// worker is a node that pods run on.
func (o *owner) worker(t *testing.T) string {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := o.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return len(n.Spec.Taints) == 0 })
	if i < 0 {
		t.Fatal("every node has a taint")
	}
	return nodes.Items[i].Name
}
