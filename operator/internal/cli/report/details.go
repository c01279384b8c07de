package report

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
	// resultsSuffix ends the names of ConfigMaps with results.
	resultsSuffix = "results"
)

// TrialNumber reads off the name of a ConfigMap which trial's results it has. It is false where
// they are not of the run whose own ConfigMap is called stored: both are called after the
// experiment and its UID, so that an earlier experiment of the name has others.
func TrialNumber(stored, configMap string) (int32, bool) {
	rest, ofRun := strings.CutPrefix(configMap, strings.TrimSuffix(stored, resultsSuffix))
	digits, named := strings.CutSuffix(rest, "-"+resultsSuffix)
	number, err := strconv.ParseInt(digits, 10, 32)
	return int32(number), ofRun && named && err == nil
}

// addDetails reads the results of the experiment's valid trials for what only they say: how the
// network was measured, when faults were confirmed, what went on over time, how latencies are
// distributed; and, where there was no room for the lines of trials, what these were. A report
// without that is better than none, so that what cannot be read is named in it.
func addDetails(ctx context.Context, cluster session.Cluster, stored string, e *results.Experiment, each func(results.Trial)) {
	wanted := map[string]bool{}
	for _, l := range e.Trials {
		if l.Outcome == stats.Succeeded && l.ConfigMap != "" {
			wanted[l.ConfigMap] = true
		}
	}
	lacking := report.LacksLines(*e)
	expected, read := len(wanted), 0
	if lacking {
		expected = 0
		for _, p := range e.Points {
			expected += p.Valid
		}
	}
	var details report.Details
	labels := client.MatchingLabels{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: e.Name}
	for next := ""; lacking || read < expected; {
		var list corev1.ConfigMapList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels, client.Limit(trialPage), client.Continue(next)); err != nil {
			e.LeftOut = append(e.LeftOut, fmt.Sprintf("%s, whose results cannot be read: %v", missing(expected-read), err))
			expected = read
			break
		}
		for _, c := range list.Items {
			if _, ofRun := TrialNumber(stored, c.Name); !wanted[c.Name] && (!lacking || !ofRun) {
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
