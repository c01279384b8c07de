package e2e

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testuntil"
)

// Whoever meddles with a shaped trial makes it Invalid, and nothing stays shaped. One agent is killed in the first trial; in the second, somebody
// empties the packet filter, or takes the queueing disciplines away, of one replica.
func TestAgentKilledAmidShaping(t *testing.T) {
	testuntil.Needs(t, 90*time.Second)
	e := newEnv(t)
	nodes := e.needNodes(t)
	before := nodeStates(t, nodes)
	e.apply(t, basilFile, nil)
	single := widely(v1alpha1.Schedule{WarmUp: "1s", Measure: "6s", CoolDown: "1s", Drain: "1s"})
	exp := e.apply(t, failureFile, func(o client.Object) {
		single(o)
		none := int32(0)
		o.(*v1alpha1.Experiment).Spec.Repetitions.Min = 2
		o.(*v1alpha1.Experiment).Spec.Retries = &none
	})

	killed, bareOfKilled := e.beforeShaping(t, exp)
	first := e.running(t, exp, 0, 2*time.Second, 2*time.Minute)
	killed.killAgent(t)
	t.Logf("killed the agent of %s", killed.pod)
	e.over(t, first.Name)

	robbed, bareOfRobbed := e.beforeShaping(t, exp)
	e.running(t, exp, 1, time.Second, 2*time.Minute)
	robbed.run(t, "nft flush ruleset; tc qdisc del dev eth0 root 2>/dev/null; tc qdisc del dev eth0 clsact 2>/dev/null; true")
	t.Logf("took the shaping of %s away", robbed.pod)

	trials := e.complete(t, exp, 3*time.Minute)
	if len(trials) != 2 {
		t.Fatalf("%d trials, want 2", len(trials))
	}
	invalid(t, trials[0], killed.pod, v1alpha1.ReasonNetworkLost, v1alpha1.ReasonPodRestarted, v1alpha1.ReasonNetworkNotConfirmed)
	invalid(t, trials[1], robbed.pod, v1alpha1.ReasonNetworkLost)
	for in, bare := range map[*inside]string{killed: bareOfKilled, robbed: bareOfRobbed} {
		if after := in.rules(t); after != bare {
			t.Errorf("the packet filter of %s was, before it was shaped:\n%s\nand is at its end:\n%s", in.pod, bare, after)
		}
	}
	sameNodeStates(t, before)
}

// over waits until a trial's pods are gone.
func (e *env) over(t *testing.T, trial string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for len(e.podsOf(t, trial, v1alpha1.PartReplica)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("replicas of %s are still there", trial)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// invalid fails the test unless the trial is Invalid for one of the reasons and says which pod it was.
func invalid(t *testing.T, r results.Trial, pod string, reasons ...string) {
	t.Helper()
	ok := false
	for _, reason := range reasons {
		ok = ok || r.Reason == reason
	}
	if r.Outcome != v1alpha1.ReasonInvalid || !ok || !strings.Contains(r.Message, pod) {
		t.Errorf("%s: %s %s: %s; want Invalid, one of %v, naming %s", r.Name, r.Outcome, r.Reason, r.Message, reasons, pod)
	}
}
