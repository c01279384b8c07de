package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// BenchmarkScale makes nodes in pools. In each namespace it makes the same number of experiments,
// each with one trial of three replicas and two client pods.
const (
	scaleNodes, scalePools            = 1000, 40
	scaleNamespaces, scaleExperiments = 20, 10
	scaleMegabytes                    = 300
)

// BenchmarkScale runs 200 experiments in 20 namespaces on 1,000 nodes in 40 pools, with a real
// manager and a real API server. Nodes, kubelets and agents are played. It measures the manager's
// peak memory, whether a namespace waits much longer than others, and the most trials that one pass
// admits. The number of trials that count shows how busy this machine is.
//
//	make bench-scale
func BenchmarkScale(b *testing.B) {
	env := testenv.Get(b)
	binary := managerProgram(b)
	for b.Loop() {
		var namespaces []string
		for i := range scaleNodes {
			schedulable(b, env, fmt.Sprintf("scale-%d", i), fmt.Sprintf("pool-%d", i%scalePools))
		}
		m := startManager(b, env, binary)
		for range scaleNamespaces {
			namespaces = append(namespaces, env.Namespace(b))
		}
		playCluster(b, env, m, "scale-0", nil, namespaces...)
		for i := range scaleExperiments {
			for k, ns := range namespaces {
				if i == 0 {
					if err := env.Client.Create(b.Context(), builders.System("echo").Namespace(ns).Obj()); err != nil {
						b.Fatal(err)
					}
				}
				pool := fmt.Sprintf("pool-%d", (i*scaleNamespaces+k)%scalePools)
				if err := env.Client.Create(b.Context(), builders.Experiment(fmt.Sprintf("e-%d", i)).Namespace(ns).System("echo").Repetitions(1).Retries(0).Set(pooled(pool)).Obj()); err != nil {
					b.Fatal(err)
				}
			}
		}
		began := time.Now()
		trials := &v1alpha1.TrialList{}
		awaitScale(b, m, 15*time.Minute, func() bool {
			if env.Client.List(b.Context(), trials) != nil {
				return false
			}
			over := 0
			for i := range trials.Items {
				if slices.Contains(namespaces, trials.Items[i].Namespace) && meta.IsStatusConditionTrue(trials.Items[i].Status.Conditions, v1alpha1.TrialComplete) {
					over++
				}
			}
			return over >= scaleNamespaces*scaleExperiments
		})
		peak := m.peakMegabytes(b)
		b.ReportMetric(peak, "peak-RSS-MB")
		reportScale(b, trials.Items, namespaces, time.Since(began))
		if peak > scaleMegabytes {
			b.Errorf("the manager took %.0f MB at most; %d are allowed", peak, scaleMegabytes)
		}
		m.stop(b)
	}
}

func awaitScale(b *testing.B, m *manager, within time.Duration, holds func() bool) {
	b.Helper()
	deadline := time.After(within)
	for !holds() {
		select {
		case err := <-m.ended:
			b.Fatalf("the manager ended: %v\n%s", err, m.tail())
		case <-deadline:
			b.Fatalf("not all trials are over within %v\n%s", within, m.tail())
		case <-time.After(time.Second):
		}
	}
}

// reportScale reports how long namespaces waited, and how many trials were admitted together.
func reportScale(b *testing.B, trials []v1alpha1.Trial, namespaces []string, took time.Duration) {
	b.Helper()
	last := map[string]time.Time{}
	valid := 0
	var admitted []time.Time
	for i := range trials {
		t := &trials[i]
		if !slices.Contains(namespaces, t.Namespace) || t.Status.Times.Admitted == nil {
			continue
		}
		admitted = append(admitted, t.Status.Times.Admitted.Time)
		if at := t.Status.Times.Admitted.Time; at.After(last[t.Namespace]) {
			last[t.Namespace] = at
		}
		if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TrialValid) {
			valid++
		}
	}
	slices.SortFunc(admitted, time.Time.Compare)
	var ends []time.Time
	for _, at := range last {
		ends = append(ends, at)
	}
	slices.SortFunc(ends, time.Time.Compare)
	first := admitted[0]
	b.Logf("%d trials in %v, %d of them valid; the last trial of a namespace was admitted %v to %v after the first of all",
		len(admitted), took.Round(time.Second), valid, ends[0].Sub(first).Round(time.Second), ends[len(ends)-1].Sub(first).Round(time.Second))
	most, together := 0, 0
	for i, at := range admitted { // one pass writes one instant
		if together++; i > 0 && !at.Equal(admitted[i-1]) {
			together = 1
		}
		most = max(most, together)
	}
	b.ReportMetric(float64(most), "most-in-one-pass")
}
