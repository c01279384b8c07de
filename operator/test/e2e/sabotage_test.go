package e2e

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// A shaped trial whose agent is killed is Invalid, and no link stays shaped. The agent's own tests
// cover rules that a user removes by hand.
func TestAgentKilledAmidShaping(t *testing.T) {
	e := newEnv(t)
	before := nodeStates(t, e.needNodes(t))
	e.apply(t, basilFile, nil)
	single := widely(v1alpha1.Schedule{WarmUp: "1s", Measure: "6s", CoolDown: "1s", Drain: "1s"})
	e.holdBeforeShaping(t)
	exp := e.apply(t, failureFile, func(o client.Object) {
		single(o)
		onceOnly(&o.(*v1alpha1.Experiment).Spec)
	})
	killed, bare, _ := e.beforeShaping(t, exp)
	e.running(t, exp, 0, 2*time.Second, 2*time.Minute)
	if killed.rules(t) == bare && !strings.Contains(killed.run(t, packetState), "clsact") {
		t.Errorf("nothing shows that %s is shaped", killed.pod)
	}
	killed.killAgent(t)
	t.Logf("killed the agent of %s", killed.pod)

	trials := e.complete(t, exp, 3*time.Minute)
	if len(trials) != 1 {
		t.Fatalf("%d trials, want 1", len(trials))
	}
	invalid(t, trials[0], killed.pod, v1alpha1.ReasonNetworkLost, v1alpha1.ReasonPodRestarted, v1alpha1.ReasonNetworkNotConfirmed)
	if after := killed.rules(t); after != bare {
		t.Errorf("the packet filter of %s was, before it was shaped:\n%s\nand is at its end:\n%s", killed.pod, bare, after)
	}
	sameNodeStates(t, before)
}

// invalid fails the test unless the trial is Invalid for one of the reasons and names the pod.
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
