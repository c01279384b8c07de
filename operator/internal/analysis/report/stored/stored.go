// Package stored finds the results of an experiment among the ConfigMaps of a cluster. It only
// reads.
package stored

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// SpecKey of an experiment's ConfigMap holds its spec as JSON, as it is in the cluster. Its profile
// is not applied, so that a reader sees the full evaluation.
const SpecKey = "spec.json"

// Decode reads an experiment's ConfigMap: its results, and its spec if that is there.
func Decode(stored corev1.ConfigMap) (results.Experiment, error) {
	e, err := results.DecodeExperiment([]byte(stored.Data[results.ExperimentKey]))
	if spec := []byte(stored.Data[SpecKey]); err == nil && json.Valid(spec) {
		e.Spec = spec
	}
	return e, err
}

// Find returns the ConfigMap with the results of an experiment's run: the last one, or with
// ~N at the end of the name the N-th before it. The Experiment itself may be gone.
func Find(ctx context.Context, from client.Reader, namespace, run string) (corev1.ConfigMap, error) {
	name, back, earlier := strings.Cut(run, "~")
	if earlier {
		n, err := strconv.Atoi(back)
		if err != nil || n < 0 {
			return corev1.ConfigMap{}, fmt.Errorf("experiment %s: after ~ comes how many runs to go back, a whole number", run)
		}
		return findByLabel(ctx, from, namespace, name, n)
	}
	var exp v1alpha1.Experiment
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &exp)
	switch {
	case apierrors.IsNotFound(err):
		return findByLabel(ctx, from, namespace, name, 0)
	case err != nil:
		return corev1.ConfigMap{}, fmt.Errorf("get Experiment %s in namespace %s: %w", name, namespace, err)
	case exp.Spec.Recurrence != nil:
		return findByLabel(ctx, from, namespace, name, 0)
	case exp.Status.ResultsConfigMap == "":
		return corev1.ConfigMap{}, fmt.Errorf("experiment %s has no results yet; see how far it is with kubectl assay watch %s", name, name)
	}
	var stored corev1.ConfigMap
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: exp.Status.ResultsConfigMap}, &stored); err != nil {
		return corev1.ConfigMap{}, fmt.Errorf("get the results of experiment %s, ConfigMap %s in namespace %s: %w", name, exp.Status.ResultsConfigMap, namespace, err)
	}
	return withResults(stored)
}

// Runs is how many runs of an experiment have results in a namespace. An experiment without results
// is an error.
func Runs(ctx context.Context, from client.Reader, namespace, name string) (int, error) {
	list, err := runsOf(ctx, from, namespace, name)
	if err == nil && len(list) == 0 {
		err = noRuns(namespace, name)
	}
	return len(list), err
}

// runsOf lists the results of all Experiments of a name, and of the runs of one that recurs.
func runsOf(ctx context.Context, from client.Reader, namespace, name string) (all []corev1.ConfigMap, err error) {
	for _, label := range []string{v1alpha1.LabelExperiment, v1alpha1.LabelRecurs} {
		var list corev1.ConfigMapList
		labels := client.MatchingLabels{v1alpha1.LabelResults: "experiment", label: name}
		if err := from.List(ctx, &list, client.InNamespace(namespace), labels); err != nil {
			return nil, fmt.Errorf("look for results of experiment %s in namespace %s: %w", name, namespace, err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

func noRuns(namespace, name string) error {
	return fmt.Errorf("experiment %s is not in namespace %s, nor are results of it; list experiments with kubectl get experiments -A", name, namespace)
}

// findByLabel finds the results of a run whose Experiment may be gone: the last one, or the n-th
// before it.
func findByLabel(ctx context.Context, from client.Reader, namespace, name string, n int) (corev1.ConfigMap, error) {
	list, err := runsOf(ctx, from, namespace, name)
	if err != nil {
		return corev1.ConfigMap{}, err
	}
	switch runs := len(list); {
	case runs == 0:
		return corev1.ConfigMap{}, noRuns(namespace, name)
	case n >= runs:
		return corev1.ConfigMap{}, fmt.Errorf("experiment %s~%d: namespace %s has the results of %d runs of %s, so that the earliest is %s~%d", name, n, namespace, runs, name, name, runs-1)
	}
	slices.SortFunc(list, func(a, b corev1.ConfigMap) int {
		return -cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return withResults(list[n])
}

// withResults unpacks the results.
func withResults(stored corev1.ConfigMap) (corev1.ConfigMap, error) {
	var err error
	if stored.Data, err = results.StoredExperiment(stored.Data, stored.BinaryData); err != nil {
		return corev1.ConfigMap{}, fmt.Errorf("ConfigMap %s in namespace %s: %w", stored.Name, stored.Namespace, err)
	}
	if _, ok := stored.Data[results.ExperimentKey]; !ok {
		return corev1.ConfigMap{}, fmt.Errorf("ConfigMap %s in namespace %s has no key %s, so it holds no results of this version of Assay", stored.Name, stored.Namespace, results.ExperimentKey)
	}
	return stored, nil
}

// resultsSuffix ends the names of ConfigMaps with results.
const resultsSuffix = "results"

// TrialNumber reads the number of a trial from the name of the ConfigMap with its results. It is
// false if they belong to another run than the ConfigMap stored. Both names contain the
// experiment's name and its UID, and an earlier experiment of the same name has another UID.
func TrialNumber(stored, configMap string) (int32, bool) {
	rest, ofRun := strings.CutPrefix(configMap, strings.TrimSuffix(stored, resultsSuffix))
	digits, named := strings.CutSuffix(rest, "-"+resultsSuffix)
	number, err := strconv.ParseInt(digits, 10, 32)
	return int32(number), ofRun && named && err == nil
}
