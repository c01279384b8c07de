package install

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

const (
	chaosExperiments = "install-chaos"
	// chaosVictim is the replica that faults are for.
	chaosVictim = 5
	// chaosTrial bounds a trial of some 20 s, with what is before and after it, on a machine that is busy.
	chaosTrial = 3 * time.Minute
)

// chaosKinds of Chaos Mesh that the faults here may leave something of. A PodNetworkChaos is made by Chaos Mesh itself, for each pod that a NetworkChaos is about.
var chaosKinds = []string{"PodChaos", "NetworkChaos", "PodNetworkChaos"}

func chaosKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "chaos-mesh.org", Version: "v1alpha1", Kind: kind}
}

// Chaos Mesh's controller and daemons really run. Without them, or without the owner's leave, an experiment that needs them is refused when it is applied; with
// both, each of its faults is done, confirmed, seen in the pods themselves, undone, and nothing of it stays.
func TestChaosMesh(t *testing.T) {
	o := newOwner(t)
	t.Cleanup(func() { o.restore(t) })
	o.makeNamespace(t, chaosExperiments)
	script := filepath.Join(root, "hack", "chaos-mesh", "install.sh")
	o.run(t, script, "down")
	o.create(t, filepath.Join(root, "experiments", "systems", "basil.yaml"), chaosExperiments)
	o.refusedByAll(t, "kill", "chaosMesh.enabled")
	o.upgrade(t, chart, "--set=chaosMesh.enabled=true")
	o.takenOver(t)
	o.refusedByAll(t, "kill", "install Chaos Mesh")
	o.run(t, script, "up")
	t.Cleanup(func() { o.run(t, script, "down") })

	t.Run("WrongSpec", func(t *testing.T) { o.refusedByAll(t, "wrong", "parse rate field error") })
	t.Run("Faults", o.testChaosFaults)
	t.Run("ManagerKilled", o.testManagerKilledInPartition)
	t.Run("Delay", o.testDelay)
	t.Run("ReplacedReplicas", o.testReplacedReplicas)
	t.Run("Everything", o.testEverything) // the last: it leaves the release without Chaos Mesh
}

// chaosFaults are those of the experiments here, by name.
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
		fault("partition", "NetworkChaos", `{"action": "partition", "direction": "both"}`, "2s", "6s", others),
		fault("bandwidth", "NetworkChaos", `{"action": "bandwidth", "direction": "to", "bandwidth": {"rate": "1mbps", "limit": 20971520, "buffer": 10000}}`, "2s", "6s", nil),
		fault("delay", "NetworkChaos", `{"action": "delay", "direction": "to", "delay": {"latency": "10ms"}}`, "1s", "5s", nil),
		fault("wrong", "NetworkChaos", `{"action": "bandwidth", "direction": "to", "bandwidth": {"rate": "fast", "limit": 20971520, "buffer": 10000}}`, "1s", "5s", nil),
	} {
		all[f.Name] = f
	}
	return all
}

// failureFP is the evaluation of experiments/failure-fp.yaml at smoke size: one trial for each of the faults, without its own crash and its claims.
func failureFP(t *testing.T, name string, measure v1alpha1.Duration, faults ...string) *v1alpha1.Experiment {
	t.Helper()
	exp := &v1alpha1.Experiment{}
	read(t, filepath.Join(root, "experiments", "failure-fp.yaml"), exp)
	exp.Namespace, exp.Name = chaosExperiments, exp.Name+"-"+name
	spec := &exp.Spec
	spec.Profile, spec.Claims, spec.Reported, spec.Faults = "smoke", nil, nil, nil
	smoke := &spec.Profiles[0]
	smoke.Claims, smoke.Repetitions, smoke.Schedule.Measure = nil, &v1alpha1.Repetitions{Min: 1}, measure
	variant := &spec.Sweep[1]
	parameters := variant.Points[0].Parameters
	variant.Points = nil
	for _, name := range faults {
		spec.Faults = append(spec.Faults, chaosFaults()[name])
		variant.Points = append(variant.Points, v1alpha1.AxisPoint{Name: name, Parameters: parameters, Faults: []string{name}})
	}
	return exp
}

// refusedByAll waits until an experiment with the fault is refused with these words. Right after an upgrade it may still be a manager of before that answers.
func (o *owner) refusedByAll(t *testing.T, fault, words string) {
	t.Helper()
	eventually(t, time.Minute, "an experiment is refused that needs "+words, func(ctx context.Context) (bool, error) {
		err := o.Create(ctx, failureFP(t, fault, "10s", fault), client.DryRunAll)
		if err == nil {
			return false, errors.New("it was taken")
		}
		return strings.Contains(err.Error(), words), err
	})
}

// create makes the object of a file in a namespace.
func (o *owner) create(t *testing.T, file, ns string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	read(t, file, &u.Object)
	u.SetNamespace(ns)
	if err := o.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// offer applies the experiment, for as long as the test lasts. What is taken by the API server may for a moment still be unknown to a manager.
func (o *owner) offer(t *testing.T, exp *v1alpha1.Experiment) {
	t.Helper()
	t.Cleanup(func() { o.removed(t, exp) })
	eventually(t, time.Minute, "the experiment is taken", func(ctx context.Context) (bool, error) {
		err := o.Create(ctx, exp)
		return err == nil, err
	})
}

func (o *owner) testChaosFaults(t *testing.T) {
	exp := failureFP(t, "faults", "10s", "partition", "bandwidth")
	o.offer(t, exp)
	looked := map[string]bool{}
	eventually(t, 3*chaosTrial, "a partition and a bandwidth were in force and were looked at", func(ctx context.Context) (bool, error) {
		for _, u := range o.chaosObjects(ctx, t, "NetworkChaos") {
			action, _, _ := unstructured.NestedString(u.Object, "spec", "action")
			if looked[action] || !injected(&u) {
				continue
			}
			wrong, err := o.lookInside(ctx, &u, action)
			// What was seen counts if the fault was in force all the time.
			if again := u.DeepCopy(); err != nil || o.Get(ctx, client.ObjectKeyFromObject(again), again) != nil || !injected(again) {
				t.Logf("%s ended while it was looked at (%v)", u.GetName(), err)
				continue
			}
			if looked[action] = true; wrong != "" {
				t.Error(wrong)
			}
		}
		if err := o.Get(ctx, client.ObjectKeyFromObject(exp), exp); err == nil && meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) {
			for _, trial := range o.trials(t, exp) {
				t.Logf("%s: %+v", trial.Name, trial.Status.Conditions)
			}
			t.Fatalf("the experiment is complete, and only %v were seen in force", looked)
		}
		return len(looked) == 2, fmt.Errorf("%v", looked)
	})
	done := map[string]bool{}
	for _, r := range o.ended(t, exp, 3*chaosTrial) {
		t.Logf("%s %v: %s %s %s, %d committed; %+v", r.Name, r.Coordinates, r.Outcome, r.Reason, r.Message, r.Summary.Committed, r.Faults)
		if r.Outcome != v1alpha1.ReasonSucceeded && !slices.Contains(environment, r.Reason) {
			t.Errorf("%s: %s: %s", r.Name, r.Reason, r.Message)
		}
		fault := r.Coordinates["variant"]
		done[fault] = true
		checkChaosRecords(t, r, fault)
	}
	if len(done) != 2 {
		t.Errorf("results have trials of %v, want one of each fault", done)
	}
	o.noTrace(t)
}

// checkChaosRecords checks that a trial's results have its fault, confirmed, and its end, if it has one, confirmed too.
func checkChaosRecords(t *testing.T, r results.Trial, fault string) {
	t.Helper()
	want := map[string]string{"kill": "PodChaos pod-kill", "partition": "NetworkChaos partition", "bandwidth": "NetworkChaos bandwidth"}[fault]
	kinds := map[string]int{}
	for _, f := range r.Faults {
		kinds[f.Kind]++
		if f.Fault != fault || f.Object != want || f.Error != "" || !slices.ContainsFunc(r.Pods, func(p results.Pod) bool { return p.Name == f.Pod && p.Part == v1alpha1.PartReplica }) {
			t.Errorf("%s: record %+v; want fault %s, done by %s to a replica, without error", r.Name, f, fault, want)
		}
		if f.StartedMillis < f.PlannedMillis || f.ConfirmedMillis <= f.StartedMillis || f.ConfirmedMillis > f.PlannedMillis+10_000 {
			t.Errorf("%s: %s was planned at %v ms, asked for at %v, confirmed at %v", r.Name, f.ID, f.PlannedMillis, f.StartedMillis, f.ConfirmedMillis)
		}
	}
	ends := 1
	if fault == "kill" {
		ends = 0 // it ends nothing: the pod comes back by itself
	}
	if kinds["Inject"] != 1 || kinds["Recover"] != ends || len(r.Faults) != 1+ends {
		t.Errorf("%s: records by kind %v, want one Inject and %d Recover", r.Name, kinds, ends)
	}
}

// The manager that leads is killed by SIGKILL while a partition is in force. The next one ends it at its planned end, or as soon as it leads, and knows from the records of
// the one before what it ends.
func (o *owner) testManagerKilledInPartition(t *testing.T) {
	exp := failureFP(t, "takeover", "14s", "partition")
	exp.Spec.Retries = new(int32)
	o.offer(t, exp)
	var object unstructured.Unstructured
	eventually(t, chaosTrial, "a partition is in force", func(ctx context.Context) (bool, error) {
		for _, u := range o.chaosObjects(ctx, t, "NetworkChaos") {
			if injected(&u) {
				object = u
				return true, nil
			}
		}
		return false, errors.New("no object is injected")
	})
	leader := o.leader(t)
	name, _, _ := strings.Cut(leader, "_")
	pod := &corev1.Pod{}
	if err := o.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	pid, err := o.processOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("killing %s while %s is in force", name, object.GetName())
	o.run(t, "docker", "exec", pod.Spec.NodeName, "kill", "-KILL", pid)
	began := time.Now()
	// Six seconds of partition, or as long as it takes until another manager may lead: it waits for 15 s in vain for the one that gave no notice.
	eventually(t, 40*time.Second, "the partition is undone", func(ctx context.Context) (bool, error) {
		u := object.DeepCopy()
		err := o.Get(ctx, client.ObjectKeyFromObject(u), u)
		return apierrors.IsNotFound(err), err
	})
	t.Logf("%s is gone %.1f s after the kill", object.GetName(), time.Since(began).Seconds())
	trials := o.ended(t, exp, chaosTrial)
	if len(trials) != 1 {
		t.Fatalf("%d trials, want 1", len(trials))
	}
	r := trials[0]
	t.Logf("%s: %s %s %s; %+v", r.Name, r.Outcome, r.Reason, r.Message, r.Faults)
	// A partition that was longer than planned is not what the experiment asked for, and the trial says so.
	if r.Outcome != v1alpha1.ReasonSucceeded && r.Reason != v1alpha1.ReasonFaultLate && !slices.Contains(environment, r.Reason) {
		t.Errorf("%s: %s: %s", r.Name, r.Reason, r.Message)
	}
	if len(r.Faults) != 2 {
		t.Errorf("%s: records %+v, want an Inject and a Recover", r.Name, r.Faults)
	}
	for _, f := range r.Faults {
		if f.Error != "" || f.ConfirmedMillis <= f.StartedMillis {
			t.Errorf("%s: %s is not confirmed: %+v", r.Name, f.ID, f)
		}
	}
	if now := o.leader(t); now == leader {
		t.Errorf("%s still leads; the test killed nobody", leader)
	}
	o.noTrace(t)
}

// A delay needs netem in the kernel of the nodes. Where that is missing the trial fails and says so; it does not wait for what cannot be, and what Chaos Mesh
// would not let go of is let go of.
func (o *owner) testDelay(t *testing.T) {
	exp := failureFP(t, "delay", "8s", "delay")
	exp.Spec.Retries = new(int32)
	o.offer(t, exp)
	trials := o.ended(t, exp, chaosTrial)
	if len(trials) != 1 {
		t.Fatalf("%d trials, want 1", len(trials))
	}
	r := trials[0]
	t.Logf("%s: %s %s %s; %+v", r.Name, r.Outcome, r.Reason, r.Message, r.Faults)
	_, err := o.try("docker", "exec", o.worker(t), "unshare", "-n", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
	if err == nil {
		if r.Outcome != v1alpha1.ReasonSucceeded {
			t.Errorf("%s: %s: %s, though this kernel has netem", r.Name, r.Reason, r.Message)
		}
		return
	}
	if r.Outcome == v1alpha1.ReasonSucceeded || !strings.Contains(r.Message, "netem") {
		t.Errorf("%s: %s: %q; want a failure that names netem, which this kernel has not (%v)", r.Name, r.Reason, r.Message, err)
	}
	o.noTrace(t)
}

// All that others provide, in one experiment: its results in S3, a number of Prometheus in its report, and faults that Chaos Mesh carries out.
func (o *owner) testEverything(t *testing.T) {
	prom := o.withPrometheus(t)
	s3 := o.withS3(t)
	t.Cleanup(func() { o.restore(t) })
	o.upgrade(t, chart, "--set=chaosMesh.enabled=true", "--values="+prom.values, "--values="+s3.values)
	o.takenOver(t)
	exp := failureFP(t, "everything", "10s", "kill", "partition")
	text, err := os.ReadFile(filepath.Join("testdata", "prometheus.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &exp.Spec.Measurements)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.offer(t, exp)
	done := map[string]bool{}
	folder := store.ExperimentFolder(exp.Namespace, exp.Name, string(exp.UID))
	for _, kept := range o.ended(t, exp, 4*chaosTrial) {
		_, stored, err := store.ReadAll(t.Context(), s3.S3, folder.Trial(kept.Name).Key("trial.json"), 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		r, err := results.DecodeTrial(stored)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %v: %s %s %s", r.Name, r.Coordinates, r.Outcome, r.Reason, r.Message)
		if r.Outcome != v1alpha1.ReasonSucceeded {
			if !slices.Contains(environment, r.Reason) {
				t.Errorf("%s: %s: %s", r.Name, r.Reason, r.Message)
			}
			continue
		}
		done[r.Coordinates["variant"]] = true
		checkChaosRecords(t, r, r.Coordinates["variant"])
		if len(r.Measurements) != len(exp.Spec.Measurements) || slices.ContainsFunc(r.Measurements, func(m results.Measurement) bool { return m.Value == nil || *m.Value <= 0 }) {
			t.Errorf("%s: measurements %+v, want %d numbers", r.Name, r.Measurements, len(exp.Spec.Measurements))
		}
	}
	if len(done) != 2 {
		t.Errorf("results have valid trials of %v, want one of each fault", done)
	}
	n, err := store.Verify(t.Context(), s3.S3, folder)
	if err != nil || n == 0 {
		t.Errorf("%d objects are stored and right: %v", n, err)
	}
	report := o.report(t, exp)
	t.Logf("%d objects are stored, with the right checksums\n%s", n, report)
	for _, want := range []string{"cpuSeconds s", "kill", "partition"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not mention %q", want)
		}
	}
	if strings.Contains(report, "NotMeasured") {
		t.Error("the report lacks a number")
	}
	o.noTrace(t)
}

// ended waits until the experiment is complete and its results are stored, and returns those of its trials.
func (o *owner) ended(t *testing.T, exp *v1alpha1.Experiment, within time.Duration) []results.Trial {
	t.Helper()
	eventually(t, within, exp.Name+" is complete", func(ctx context.Context) (bool, error) {
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
		r, err := results.DecodeTrial([]byte(cm.Data["trial.json"]))
		if err != nil {
			t.Fatalf("results of %s: %v", trial.Name, err)
		}
		all = append(all, r)
	}
	return all
}

// removed deletes the experiment and waits until it is gone, so that the next one need not wait for it.
func (o *owner) removed(t *testing.T, exp *v1alpha1.Experiment) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := o.Delete(ctx, exp.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, exp.Name+" is gone", func(ctx context.Context) (bool, error) {
		err := o.Get(ctx, client.ObjectKeyFromObject(exp), &v1alpha1.Experiment{})
		return apierrors.IsNotFound(err), err
	})
}

// chaosObjects of a kind in the experiments' namespace.
func (o *owner) chaosObjects(ctx context.Context, t *testing.T, kind string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(chaosKind(kind + "List"))
	if err := o.List(ctx, list, client.InNamespace(chaosExperiments)); err != nil {
		t.Logf("list objects of kind %s: %v", kind, err)
	}
	return list.Items
}

// injected reports whether Chaos Mesh says that it has done what the object asks for.
func injected(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return u.GetDeletionTimestamp() == nil && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "AllInjected" && m["status"] == "True"
	})
}

// lookInside looks at the victim's network itself, and says what is wrong there: whether its kernel does what the action is.
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

// chosen is the first pod that Chaos Mesh says it has chosen: for "." as the target, for ".Target" as the other end.
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

// networkOf returns what runs programs of the node in the network of a pod.
func (o *owner) networkOf(pod *corev1.Pod) (func(...string) (string, error), error) {
	pid, err := o.processOf(pod)
	return func(command ...string) (string, error) {
		return o.try("docker", append([]string{"exec", pod.Spec.NodeName, "nsenter", "-t", pid, "-n"}, command...)...)
	}, err
}

// processOf is the number, on its node, of the first process of a pod's first container. Nodes are containers of the docker here.
func (o *owner) processOf(pod *corev1.Pod) (string, error) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return "", fmt.Errorf("pod %s has no container yet", pod.Name)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	pid, err := o.try("docker", "exec", pod.Spec.NodeName, "crictl", "inspect", "-o", "go-template", "--template", "{{.info.pid}}", id)
	return strings.TrimSpace(pid), err
}

// noTrace checks that no object of Chaos Mesh is left, no pod of a trial, and in the networks of the nodes nothing of what Chaos Mesh does.
func (o *owner) noTrace(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "no pod and no object of Chaos Mesh is left", func(ctx context.Context) (bool, error) {
		var left []string
		for _, kind := range chaosKinds {
			for _, u := range o.chaosObjects(ctx, t, kind) {
				left = append(left, kind+" "+u.GetName())
			}
		}
		pods := &corev1.PodList{}
		err := o.List(ctx, pods, client.InNamespace(chaosExperiments))
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
		rules := o.run(t, "docker", "exec", n.Name, "iptables-legacy", "-S") + o.run(t, "docker", "exec", n.Name, "ipset", "list", "-n") +
			o.run(t, "docker", "exec", n.Name, "tc", "qdisc", "show")
		if strings.Contains(rules, "CHAOS") || strings.Contains(rules, "_tgt") || strings.Contains(rules, "tbf") {
			t.Errorf("node %s has something of Chaos Mesh left:\n%s", n.Name, rules)
		}
	}
}

// leader is the manager that leads: its pod, "_", and what another start of the same pod would not have.
func (o *owner) leader(t *testing.T) string {
	t.Helper()
	var leader string
	eventually(t, time.Minute, "a manager leads", func(ctx context.Context) (bool, error) {
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
