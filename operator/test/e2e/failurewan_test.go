package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The evaluation over a wide-area network runs as its file defines it, with each variant once and
// only the larger distance. The distances determine the time of a transaction. After a crash makes
// a fast path impossible, it costs one timeout there, too. The network has the requested delays, as
// the platform measures it, and as ping does, which knows nothing of the platform. Other addresses
// are as near to the pods as before, and nodes do not change.
func TestFailureWAN(t *testing.T) {
	const (
		farthest = 63.0  // ms, the least round trip to the region farthest from a client, which the fast path needs
		timeout  = 200.0 // ms, the timeout of the fast path in that file
	)
	e := newEnv(t)
	before := nodeStates(t, e.needNodes(t))
	e.apply(t, basilFile, nil)
	e.holdBeforeShaping(t)
	exp := e.apply(t, filepath.Join(root, "experiments", "pesto", "wan.yaml"), func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		smoke := profile(spec, "smoke")
		spec.Profile, spec.Order = "smoke", v1alpha1.OrderSequential // the first trial is the one without a crash
		smoke.Sweep[0].Values = []v1alpha1.Value{v1alpha1.NewValue("continental")}
		smoke.Schedule.Measure = "30s" // the checks of the network during a trial take seconds
		smoke.Repetitions = &v1alpha1.Repetitions{Min: 1}
		// The other claims need a network that is left out here.
		spec.Claims = slices.DeleteFunc(spec.Claims, func(c v1alpha1.Claim) bool { return c.Name != "one-timeout" })
		smoke.Claims = slices.DeleteFunc(smoke.Claims, func(c v1alpha1.ProfileClaim) bool { return c.Name != "one-timeout" })
	})
	seen := e.lookAtNetwork(t, exp)
	usual, punctual := map[string]float64{}, mostLate+1
	trials := e.complete(t, exp, 9*time.Minute)
	for _, r := range valid(t, trials) {
		usual[r.Coordinates["variant"]] = r.Summary.P50Millis
		punctual = min(punctual, checkCrash(t, r))
		if r.Network == nil {
			t.Fatalf("%s has no network", r.Name)
		}
		checkProof(t, *r.Network, 9, 9) // three pods in each of three regions
	}
	if trials[0].Network == nil {
		t.Fatalf("%s, whose network was looked at, has none: %s", trials[0].Name, trials[0].Message)
	}
	seen.check(t, *trials[0].Network)
	sameNodeStates(t, before)
	t.Logf("median latencies: %v ms; a kill was %.2f ms late", usual, punctual)
	if len(usual) < 3 || punctual > mostLate {
		t.Errorf("trials of %d variants succeeded, want 3; the most punctual kill was %.1f ms late, want %v at most", len(usual), punctual, mostLate)
	}
	if usual["ideal"] < farthest || usual["failure-nofp"] < usual["ideal"]+farthest/2 {
		t.Errorf("median latencies are %v ms; want at least %v ms with the fast path, and half as much more for the second round trip without it", usual, farthest)
	}
	if cost := usual["failure-fp"] - usual["failure-nofp"]; cost < 0.75*timeout || cost > 1.25*timeout {
		t.Errorf("a failed fast path costs %.1f ms, want %v ms within 25%%, as the claim has it", cost, timeout)
	}
	// One trial has no interval, so no claim is decided.
	if c := exp.Status.Claims; len(c) != 1 || c[0].Verdict != v1alpha1.VerdictInconclusive {
		t.Errorf("the verdicts are %+v, want one, %s", c, v1alpha1.VerdictInconclusive)
	}
}
