package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Machines of two trials answer SSH in two restricted namespaces at once. A person opens a shell on
// each by kubectl assay ssh. Machines of one trial reject the key of the other, and count the
// attempts.
func TestMachinesAnswerTheirOwnTrialOnly(t *testing.T) {
	e := newEnv(t)
	other := *e
	other.namespace += "-b"
	other.makeNamespace(t)
	file := "testdata/machines.yaml"
	var experiments [2]*v1alpha1.Experiment
	var running [2]*v1alpha1.Trial
	for i, in := range []*env{e, &other} {
		in.enforce(t, "restricted")
		experiments[i] = in.apply(t, file, nil)
	}
	for i, in := range []*env{e, &other} {
		running[i] = in.running(t, experiments[i], 0, 0, 3*time.Minute)
	}
	own, others := e.command(t), other.command(t)
	if out := own(t, 0, "ssh", running[0].Name, "m1", "--", "echo $HOSTNAME as $USER in $PWD"); out != "m1 as author in /home/author\n" {
		t.Errorf("a command on m1 prints %q", out)
	}
	own(t, 7, "ssh", running[0].Name, "m2", "--", "exit 7")
	var tried int
	for name, pod := range e.podsOf(t, running[0].Name, v1alpha1.PodTypeReplica) {
		tried++
		const plain = "ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i .ssh/id_ed25519 author@"
		if out := others(t, 255, "ssh", running[1].Name, "m1", "--", plain+pod.Status.PodIP+" true"); !strings.Contains(out, "Permission denied") {
			t.Errorf("from another trial and namespace, ssh to %s prints %q, want that it is refused", name, out)
		}
	}
	if tried != 2 {
		t.Errorf("%d machines of the trial were tried beside that of the script, want 2", tried)
	}
	own(t, 0, "ssh", running[0].Name, "m0", "--", "echo > go")
	others(t, 0, "ssh", running[1].Name, "m0", "--", "echo > go")
	for i, in := range []*env{e, &other} {
		trials := in.complete(t, experiments[i], 2*time.Minute)
		r := lastValid(t, trials)
		refused, want := results.RefusedConnections(r.Sessions), []int{2, 0}[i]
		if refused != want {
			t.Errorf("%s counts %d connections that were refused, want %d: %+v", r.Name, refused, want, r.Sessions)
		}
		people := 0
		for _, s := range r.Sessions {
			if s.From == "kubectl assay ssh" {
				people++
			}
		}
		if people == 0 {
			t.Errorf("the record of %s lacks the sessions of people: %+v", r.Name, r.Sessions)
		}
	}
}

// In a cluster that enforces NetworkPolicies, the chart's policy separates a trial's machines from
// machines of another namespace. Their connections time out, and no machine refuses one. The trial
// itself runs as usual, since its pods reach each other and the coordinator.
func TestPoliciesKeepOtherNamespacesFromMachines(t *testing.T) {
	e := newEnv(t)
	other := *e
	other.namespace += "-b"
	other.makeNamespace(t)
	script := filepath.Join(root, "hack", "without-registry", "network-policies", "install.sh")
	t.Cleanup(func() { runProgram(t, script, "down") })
	runProgram(t, script, "up")
	chart := filepath.Join(root, "charts", "assay")
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	rendered := runProgram(t, "helm", "template", "assay", chart, "--namespace", systemNamespace, "--show-only", "templates/networkpolicy.yaml", "--set", "networkPolicy.trialNamespaces={"+e.namespace+"}")
	if err := os.WriteFile(policies, []byte(rendered), 0o600); err != nil {
		t.Fatal(err)
	}
	runProgram(t, "kubectl", "--kubeconfig", os.Getenv(kubeconfigVariable), "apply", "-f", policies)
	var experiments [2]*v1alpha1.Experiment
	var running [2]*v1alpha1.Trial
	for i, in := range []*env{e, &other} {
		in.enforce(t, "restricted")
		experiments[i] = in.apply(t, "testdata/machines.yaml", nil)
		running[i] = in.running(t, experiments[i], 0, 0, 3*time.Minute)
	}
	own, others := e.command(t), other.command(t)
	for name, pod := range e.podsOf(t, running[0].Name, v1alpha1.PodTypeReplica) {
		reach := "ssh -o ConnectTimeout=3 -o BatchMode=yes author@" + pod.Status.PodIP + " true"
		own(t, 0, "ssh", running[0].Name, "m0", "--", reach)
		out := others(t, 255, "ssh", running[1].Name, "m1", "--", reach)
		if !strings.Contains(out, "timed out") {
			t.Errorf("from another namespace, ssh to %s prints %q, want that the time is over", name, out)
		}
	}
	own(t, 0, "ssh", running[0].Name, "m0", "--", "echo > go")
	others(t, 0, "ssh", running[1].Name, "m0", "--", "echo > go")
	for i, in := range []*env{e, &other} {
		r := lastValid(t, in.complete(t, experiments[i], 2*time.Minute))
		if refused := results.RefusedConnections(r.Sessions); refused != 0 {
			t.Errorf("%s counts %d connections that were refused, want none: %+v", r.Name, refused, r.Sessions)
		}
	}
}

// Machines of a cluster share directories by a volume that many pods may write to. Every machine
// reads the lines of all machines of its trial, and no trial sees lines of another. The volume is a
// directory of one node, so the test does not cover file systems between nodes.
func TestMachinesShareAVolume(t *testing.T) {
	e := newEnv(t)
	e.enforce(t, "restricted")
	on := e.workers(t)[0].name
	dir := "/var/lib/" + e.namespace
	mustNode(t, on, "mkdir", "-m", "1777", dir)
	t.Cleanup(func() {
		if _, err := node(context.Background(), on, "rm", "-r", dir); err != nil {
			t.Error(err)
		}
	})
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Namespace: e.namespace, Name: v1alpha1.SharedClaim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: new(corev1.HostPathDirectory)}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{on}}},
		}}}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: v1alpha1.SharedClaim}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size}, StorageClassName: new(string), VolumeName: volume.Name,
	}}
	for _, o := range []client.Object{volume, claim} {
		if err := e.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := e.Delete(context.Background(), volume); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	exp := e.apply(t, "../local/testdata/shared.yaml", func(o client.Object) {
		if s, is := o.(*v1alpha1.System); is {
			s.Spec.Machines[0].ImagePullPolicy = corev1.PullNever
		}
	})
	valid := 0
	for _, trial := range e.complete(t, exp, 4*time.Minute) {
		if trial.Reason != "" {
			continue
		}
		valid++
		for i, row := range trial.Rows {
			if want := []float64{1, 2, 3}[i]; row.Summary.Throughput != want {
				t.Errorf("%s: %v: %v lines in the shared directory, want %v", trial.Name, row.Coordinates, row.Summary.Throughput, want)
			}
		}
	}
	if valid != 2 {
		t.Errorf("%d valid trials, want 2", valid)
	}
}

// runProgram runs a program of the cluster's owner to its end, and returns what it printed.
func runProgram(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, errs.String())
	}
	return out.String()
}
