package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// One experiment uses all services of other programs. Its results are in S3, and numbers of
// Prometheus are in its report. Chaos Mesh carries out its faults, except for one of our own. The
// test looks at the effect of a fault in the pods themselves. It compares the replicas' processor
// time in Prometheus with our own readings.
func TestOneExperimentUsesAllOthers(t *testing.T) {
	o := withChaosMesh(t)
	prom := o.others.prom
	missing := []string{"crash", "kill", "partition", "bandwidth"}
	looked, apart := map[string]bool{}, math.Inf(1)
	for attempt := 1; len(missing) > 0; attempt++ {
		if attempt > 2 {
			t.Fatalf("after two experiments %v have no valid trial, or were not seen in force", missing)
		}
		exp := failureFP(t, fmt.Sprintf("all-%d", attempt), "12s", missing...)
		exp.Spec.Results = nil // in the default store
		read(t, filepath.Join("testdata", "prometheus.yaml"), &exp.Spec.Measurements)
		o.offer(t, exp)
		o.checkPodMonitor(t, exp)
		eventually(t, 2*patience, "a trial is released", func(ctx context.Context) (bool, error) {
			prom.hurry(ctx, o)
			return o.released(t, exp) || o.isComplete(ctx, exp), nil
		})
		// Only the effects of these are visible on the node.
		o.lookAtFaults(t, exp, slices.DeleteFunc(slices.Clone(missing), func(f string) bool { return f == "crash" || f == "kill" }), looked)
		valid := o.checkUsed(t, exp)
		for variant, r := range valid {
			if variant != "kill" { // the counters of a replaced process begin anew
				apart = min(apart, compareProcessorTime(t, r))
			}
		}
		missing = slices.DeleteFunc(missing, func(fault string) bool {
			_, ok := valid[fault]
			return ok && (looked[fault] || fault == "crash" || fault == "kill")
		})
	}
	// Samples are from different instants, and a machine that stands still for a second of a window
	// spoils a comparison. So the best one counts. A wrong window, unit or set of pods would be in
	// all of them.
	if apart > processTolerance {
		t.Errorf("processor time by Prometheus and by our readings differ by %.2f of ours at least, want %.2f at most", apart, processTolerance)
	}
	o.noTrace(t)
}

// checkUsed waits for the end of an experiment. It checks the experiment's data in the store, in
// its report and in Prometheus, and returns its valid trials by variant.
func (o *owner) checkUsed(t *testing.T, exp *v1alpha1.Experiment) map[string]results.Trial {
	t.Helper()
	valid := map[string]results.Trial{}
	folder := store.ExperimentFolder(exp.Namespace, exp.Name, string(exp.UID))
	for _, kept := range o.ended(t, exp) {
		_, stored, err := store.ReadAll(t.Context(), o.others.s3.Bucket, folder.Trial(kept.Name).Key("trial.json"), 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		r, err := results.DecodeTrial(stored)
		if err != nil {
			t.Fatal(err)
		}
		if !succeeded(t, r) {
			continue
		}
		variant := r.Coordinates["variant"]
		if valid[variant] = r; variant == "crash" {
			if len(r.Faults) != 1 || r.Faults[0].Kind != "Kill" || r.Faults[0].Error != "" {
				t.Errorf("%s: records %+v, want one Kill", r.Name, r.Faults)
			}
		} else {
			checkChaosRecords(t, r, variant)
		}
		if len(r.Measurements) != 2 || slices.ContainsFunc(r.Measurements, func(m results.Measurement) bool { return m.Value == nil || *m.Value <= 0 }) {
			t.Fatalf("%s: measurements %+v, want two numbers", r.Name, r.Measurements)
		}
	}
	n, err := store.Verify(t.Context(), o.others.s3.Bucket, folder)
	if err != nil || n == 0 {
		t.Errorf("%d objects are stored and right: %v", n, err)
	}
	report := o.report(t, exp)
	t.Logf("%d objects are stored, with the right checksums\n%s", n, report)
	for _, want := range append(slices.Collect(maps.Keys(valid)), "cpuSeconds s") {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not mention %q", want)
		}
	}
	if lacksNumber(report) {
		t.Error("the report lacks a number")
	}
	eventually(t, patience, "the PodMonitor is gone", func(ctx context.Context) (bool, error) {
		list := &monitoringv1.PodMonitorList{}
		err := o.List(ctx, list, client.InNamespace(exp.Namespace))
		return err == nil && len(list.Items) == 0, errors.Join(err, fmt.Errorf("%d are left", len(list.Items)))
	})
	eventually(t, patience, "Prometheus has the measurement as a result of the experiment", func(ctx context.Context) (bool, error) {
		query := fmt.Sprintf(`count(assay_result_measurement{experiment=%q, experiment_namespace=%q, measurement="cpuSeconds"} > 0)`, exp.Name, exp.Namespace)
		n, err := o.others.prom.number(ctx, query, time.Now())
		return int(n) == len(valid), errors.Join(err, fmt.Errorf("of %v points, want %d", n, len(valid)))
	})
	return valid
}
