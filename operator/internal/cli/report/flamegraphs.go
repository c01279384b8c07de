package report

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// FlameGraphs reads what profilers recorded in a trial, in the form of a report of that trial
// alone. It also returns the pictures, by pod and name of the file. A trial without results has
// none.
func FlameGraphs(ctx context.Context, cluster session.Cluster, trial *v1alpha1.Trial) (e results.Experiment, pictures map[[2]string][]byte, err error) {
	if trial.Spec.Measures() || trial.Status.ResultsConfigMap == "" {
		return e, nil, nil
	}
	var stored corev1.ConfigMap
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: trial.Status.ResultsConfigMap}, &stored); err != nil {
		return e, nil, fmt.Errorf("get the results of trial %s: %w", trial.Name, session.Explain(err))
	}
	t, err := results.DecodeStored(stored.Data, stored.BinaryData)
	if err != nil {
		return e, nil, fmt.Errorf("results of trial %s: %w", trial.Name, err)
	}
	var details model.Details
	details.Add(t)
	var list corev1.ConfigMapList
	labels := client.MatchingLabels{v1alpha1.LabelResults: v1alpha1.ResultsFiles, v1alpha1.LabelTrial: trial.Name}
	if err := cluster.Client.List(ctx, &list, client.InNamespace(trial.Namespace), labels); err != nil {
		return e, nil, fmt.Errorf("look for the files of trial %s: %w", trial.Name, session.Explain(err))
	}
	kept := map[[2]string][]byte{}
	for _, c := range list.Items {
		for key, packed := range c.BinaryData {
			files, err := results.UnpackTree(packed, mostUnpacked)
			if err != nil {
				return e, nil, fmt.Errorf("%s of ConfigMap %s: %w", key, c.Name, err)
			}
			pod := strings.TrimSuffix(key, ".tar.gz")
			details.AddFiles(trial.Name, pod, "ConfigMap "+c.Name, results.Sizes(files))
			for name, content := range files {
				kept[[2]string{pod, name}] = content
			}
		}
	}
	details.Into(&e)
	pictures = map[[2]string][]byte{}
	for _, g := range e.FlameGraphs {
		if at := [2]string{g.Pod, g.File}; g.File != "" {
			pictures[at] = kept[at]
		}
	}
	return e, pictures, nil
}
