package e2e

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Machines of two trials answer SSH in two restricted namespaces at once. A person has a shell on
// each by kubectl assay ssh. From a machine of one trial, with the key of that, none of the other
// lets anyone in, and the other's results count it. Nodes of kind enforce no NetworkPolicy, so that
// the key alone refuses here.
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
