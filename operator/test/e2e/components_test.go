package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/testseries"
)

// A component that is not a replica is deployed, found by clients, killed, cut off and slowed down:
// etcd is behind two proxies of its own. Each fault is visible in the clients' numbers, and none
// stops the system.
func TestComponents(t *testing.T) {
	e := newEnv(t)
	e.apply(t, filepath.Join(root, "experiments", "systems", "etcd-proxy.yaml"), func(o client.Object) {
		spec := &o.(*v1alpha1.System).Spec
		spec.Roles = append(spec.Roles, v1alpha1.Role{Name: "first", Component: "proxy", Command: []string{"/etcd", "{{if eq .Self.Index 0}}--version{{else}}--no-such-flag{{end}}"}})
	})
	exp := e.apply(t, filepath.Join(root, "experiments", "etcd", "proxies.yaml"), func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		spec.Profile = "smoke"
		spec.Claims, profile(spec, "smoke").Claims = nil, nil
		profile(spec, "smoke").Repetitions = &v1alpha1.Repetitions{Min: 1}
		spec.Sweep[0].Points = spec.Sweep[0].Points[1:] // only the points with a fault
		killed := slices.IndexFunc(spec.Faults, func(f v1alpha1.Fault) bool { return f.Name == "proxy-crash" })
		spec.Faults[killed].NodeKill.Target = v1alpha1.Target{Component: "proxy", Role: "first"} // instead of by its index
	})
	trials := map[string]results.Trial{}
	for _, r := range valid(t, e.complete(t, exp, 8*time.Minute)) {
		trials[r.Coordinates["variant"]] = r
	}
	for _, variant := range []string{"proxy-killed", "proxy-cut", "proxy-slow"} {
		r, ok := trials[variant]
		if !ok {
			t.Fatalf("no trial of %s succeeded", variant)
		}
		parts := map[string]int{}
		for _, p := range r.Pods {
			if parts[p.Part]++; p.Resources == nil {
				t.Errorf("%s: nothing is known of what %s used", variant, p.Name)
			}
		}
		if parts["replica"] != 3 || parts["proxy"] != 2 || parts["client"] != 2 || len(parts) != 3 {
			t.Errorf("%s: the pods are %v, want 3 replicas, 2 proxies, 2 clients", variant, parts)
		}
	}
	t.Run("Killed", func(t *testing.T) { proxyKilled(t, trials["proxy-killed"]) })
	t.Run("Cut", func(t *testing.T) {
		instantsOf(t, trials["proxy-cut"], "proxy-cut", "Cut", "Heal", 4) // the proxy and three members
		goesOn(t, trials["proxy-cut"], 12*time.Second)
	})
	t.Run("Slow", func(t *testing.T) { latencyRises(t, trials["proxy-slow"], "proxy-slow", "Degrade", "Restore", 7, 15) })
}

// proxyKilled checks that the first proxy was killed, once and for good. Its clients must notice
// that, and continue with the other proxy.
func proxyKilled(t *testing.T, r results.Trial) {
	t.Helper()
	all := r.Faults
	if len(all) != 2 || all[0].Skipped == all[1].Skipped {
		t.Fatalf("records %+v, want one of each proxy, of which one had the role", all)
	}
	f := all[0]
	if f.Skipped {
		f = all[1]
	}
	if f.Kind != "Kill" || f.Error != "" || !strings.HasSuffix(f.Pod, "-proxy-local-0") {
		t.Errorf("record %+v, want a kill of the first proxy", f)
	}
	t.Logf("%s: planned %.0f ms, silent %+.2f ms, dead %+.2f ms later", f.Pod, f.PlannedMillis, f.StartedMillis-f.PlannedMillis, f.ConfirmedMillis-f.PlannedMillis)
	if n := r.Driver["attemptsTimedOut"] + r.Driver["attemptsFailed"]; n < 5 {
		t.Errorf("%v attempts timed out or failed, want some at least of the 10 clients that were with the proxy", n)
	}
	goesOn(t, r, 8*time.Second)
}

// goesOn checks that from an instant on as many transactions are committed as before the fault, at
// 5 s.
func goesOn(t *testing.T, r results.Trial, from time.Duration) {
	t.Helper()
	before, after := testseries.UsuallyCommitted(r, time.Second, 5*time.Second), testseries.UsuallyCommitted(r, from, from+3*time.Second)
	t.Logf("%.0f committed in most bins before, %.0f from %v", before, after, from)
	if before == 0 || after < before/2 {
		t.Errorf("%.0f committed in most bins from %v, want half at least of the %.0f before the fault", after, from, before)
	}
}
