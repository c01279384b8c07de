package report

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	inCluster "assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// trialPage is how many trials' results are read at a time: each may take a megabyte.
const trialPage = 20

// addDetails reads the results of the experiment's valid trials for facts that only they have:
// measurements of the network, confirmations of faults, timelines and distributions of latency. If
// the lines of trials did not fit, addDetails reads the lines, too. If it cannot read some results,
// the report names them, since an incomplete report is better than none.
func addDetails(ctx context.Context, cluster session.Cluster, stored string, e *results.Experiment, each func(results.Trial)) {
	wanted := map[string]bool{}
	for _, l := range e.Trials {
		if l.Outcome == stats.Succeeded && l.ConfigMap != "" {
			wanted[l.ConfigMap] = true
		}
	}
	for _, l := range e.NotMeasuring {
		if l.ConfigMap != "" {
			wanted[l.ConfigMap] = true
		}
	}
	if failed := failedScript(e.Trials, wanted); failed != "" {
		wanted[failed] = true
	}
	lacking := model.LacksLines(*e)
	expected, read := len(wanted), 0
	if lacking {
		expected = len(e.NotMeasuring)
		for _, p := range e.Points {
			expected += p.Valid
		}
	}
	var details model.Details
	labels := client.MatchingLabels{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: e.Name}
	for next := ""; lacking || read < expected; {
		var list corev1.ConfigMapList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels, client.Limit(trialPage), client.Continue(next)); err != nil {
			e.LeftOut = append(e.LeftOut, fmt.Sprintf("%s, whose results cannot be read: %v", missing(expected-read), err))
			expected = read
			break
		}
		for _, c := range list.Items {
			if _, ofRun := inCluster.TrialNumber(stored, c.Name); !wanted[c.Name] && (!lacking || !ofRun) {
				continue
			}
			t, err := results.DecodeStored(c.Data, c.BinaryData)
			if err != nil {
				continue
			}
			details.Add(t)
			each(t)
			if wanted[c.Name] || t.Outcome == stats.Succeeded {
				read++
			}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	if read < expected {
		e.LeftOut = append(e.LeftOut, missing(expected-read)+", whose ConfigMaps are gone or not readable")
	}
	if err := addFiles(ctx, cluster, stored, e.Name, &details); err != nil {
		e.LeftOut = append(e.LeftOut, fmt.Sprintf("the list of collected files, which cannot be read: %v", err))
	}
	details.Into(e)
}

// failedScript returns the ConfigMap of the first trial of a script that does not count. A report
// shows the output of its script. Empty: there is no such trial.
func failedScript(lines []results.TrialLine, wanted map[string]bool) string {
	for _, l := range lines {
		if l.Script != "" && l.Outcome != stats.Succeeded && l.ConfigMap != "" && !wanted[l.ConfigMap] {
			return l.ConfigMap
		}
	}
	return ""
}

// addFiles lists the files of pods that the cluster keeps for the trials of a run.
func addFiles(ctx context.Context, cluster session.Cluster, stored, experiment string, details *model.Details) error {
	labels := client.MatchingLabels{v1alpha1.LabelResults: v1alpha1.ResultsFiles, v1alpha1.LabelExperiment: experiment}
	for next := ""; ; {
		var list corev1.ConfigMapList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels, client.Limit(trialPage), client.Continue(next)); err != nil {
			return err
		}
		for _, c := range list.Items {
			if _, ofRun := inCluster.TrialNumber(stored, strings.TrimSuffix(c.Name, v1alpha1.FilesSuffix)); !ofRun {
				continue
			}
			for key, packed := range c.BinaryData {
				files, err := results.UnpackTree(packed, mostUnpacked)
				if err != nil {
					return fmt.Errorf("%s of ConfigMap %s: %w", key, c.Name, err)
				}
				details.AddFiles(c.Labels[v1alpha1.LabelTrial], strings.TrimSuffix(key, ".tar.gz"), "ConfigMap "+c.Name, results.Sizes(files))
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// mostUnpacked is how many bytes the files of a pod may have.
const mostUnpacked = 256 << 20

// missing says which parts of a report are missing for n trials.
func missing(n int) string {
	trials := "trials"
	if n == 1 {
		trials = "trial"
	}
	return fmt.Sprintf("network, faults, timelines and latencies of %d %s", n, trials)
}
