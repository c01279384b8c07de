package report

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/stats"
)

const (
	// trialKey of a trial's ConfigMap holds a results.Trial.
	trialKey = "trial.json"
	// trialPage is how many trials' results are read at a time: each may take a megabyte.
	trialPage = 20
)

// addDetails reads the results of the experiment's valid trials for what only they say: how the network was measured, when faults were confirmed, what went
// on over time, how latencies are distributed. A report without that is better than none, so that what cannot be read is named in it.
func addDetails(ctx context.Context, cluster session.Cluster, e *results.Experiment) {
	wanted := map[string]bool{}
	for _, l := range e.Trials {
		if l.Outcome == stats.Succeeded && l.ConfigMap != "" {
			wanted[l.ConfigMap] = true
		}
	}
	var details report.Details
	labels := client.MatchingLabels{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: e.Name}
	for next := ""; len(wanted) > 0; {
		var list corev1.ConfigMapList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels, client.Limit(trialPage), client.Continue(next)); err != nil {
			e.LeftOut = append(e.LeftOut, fmt.Sprintf("%s, whose results cannot be read: %v", missing(len(wanted)), err))
			clear(wanted)
			break
		}
		for _, stored := range list.Items {
			if !wanted[stored.Name] {
				continue
			}
			if t, err := results.DecodeTrial([]byte(stored.Data[trialKey])); err == nil {
				details.Add(t)
				delete(wanted, stored.Name)
			}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	if n := len(wanted); n > 0 {
		e.LeftOut = append(e.LeftOut, missing(n)+", whose ConfigMaps are gone or not readable")
	}
	details.Into(e)
}

// missing says what a report has not of n trials.
func missing(n int) string {
	trials := "trials"
	if n == 1 {
		trials = "trial"
	}
	return fmt.Sprintf("network, faults, timelines and latencies of %d %s", n, trials)
}
