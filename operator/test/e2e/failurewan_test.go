package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testuntil"
)

// The evaluation over a wide-area network as its file has it, each variant once and at the larger distance: a transaction takes what the distances make of it,
// and a fast path that a crash has made impossible costs one timeout there, too.
func TestFailureWAN(t *testing.T) {
	testuntil.Needs(t, 150*time.Second)
	const (
		farthest = 63.0  // ms there and back to the region that is farthest from a client, which the fast path needs, at least
		timeout  = 200.0 // ms, the fast path's in that file
	)
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	exp := e.apply(t, filepath.Join(root, "experiments", "failure-wan.yaml"), func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		spec.Profile = "smoke"
		spec.Profiles[0].Sweep[0].Values = []v1alpha1.Value{v1alpha1.NewValue("continental")}
		spec.Profiles[0].Repetitions = &v1alpha1.Repetitions{Min: 1}
		tolerances := spec.Profiles[0].Tolerances
		tolerances.LinkDelay, tolerances.LinkLateness = "20ms", "50ms" // see widely
		// The other claims compare with a network that is left out here.
		spec.Claims = slices.DeleteFunc(spec.Claims, func(c v1alpha1.Claim) bool { return c.Name != "one-timeout" })
		spec.Profiles[0].Claims = slices.DeleteFunc(spec.Profiles[0].Claims, func(c v1alpha1.ProfileClaim) bool { return c.Name != "one-timeout" })
	})
	mean := map[string]float64{}
	trials := e.complete(t, exp, 9*time.Minute)
	measured := valid(t, trials)
	for _, r := range measured {
		mean[r.Coordinates["variant"]] = r.Summary.MeanMillis
		checkCrash(t, r)
		if r.Network == nil || r.Network.Pairs != 9*8/2 {
			t.Errorf("%s: network %+v, want every pair of 6 replicas and 3 client pods proven", r.Name, r.Network)
		}
	}
	t.Logf("mean latencies: %v ms", mean)
	n := judge(t, trials...)
	if mean["ideal"] < farthest || mean["failure-nofp"] < mean["ideal"]+farthest/2 {
		n.Errorf("mean latencies are %v ms; want at least %v ms with the fast path, and half as much more for the second round trip without it", mean, farthest)
	}
	if cost := mean["failure-fp"] - mean["failure-nofp"]; cost < 0.75*timeout || cost > 1.25*timeout {
		n.Errorf("a failed fast path costs %.1f ms, want %v ms within 25%%, as the claim has it", cost, timeout)
	}
	// One trial has no interval, so that nothing is decided.
	if c := exp.Status.Claims; len(mean) < 3 {
		n.Errorf("%d of %d trials succeeded, want one of each variant", len(measured), len(trials))
	} else if len(c) != 1 || c[0].Verdict != v1alpha1.VerdictInconclusive {
		t.Errorf("the verdicts are %+v, want one, %s", c, v1alpha1.VerdictInconclusive)
	}
	n.decide()
}
