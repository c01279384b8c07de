package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/archive"
	"assay.dev/assay/operator/internal/results"
)

// Load reads an experiment's results with all that a report shows. What names them is one of
//
//	failure-fp            an Experiment of the cluster, or the last one that had the name
//	failure-fp~1          its run before the last one, ~2 the one before that
//	./results.json        a file that report -o json wrote, or a bundle: anything with a / or that ends in .json, .gz or .tgz
func Load(ctx context.Context, s *session.Session, from string) (results.Experiment, error) {
	return load(ctx, s, from, func(results.Trial) {})
}

// load also hands each trial whose own results it reads to each.
func load(ctx context.Context, s *session.Session, from string, each func(results.Trial)) (results.Experiment, error) {
	if strings.Contains(from, "/") || slices.Contains([]string{".json", ".gz", ".tgz"}, path.Ext(from)) {
		return fromFile(from, each)
	}
	cluster, err := s.Connect()
	if err != nil {
		return results.Experiment{}, err
	}
	stored, err := FindStored(ctx, cluster, from)
	if err != nil {
		return results.Experiment{}, err
	}
	e, err := Decode(stored)
	if err != nil {
		return results.Experiment{}, fmt.Errorf("results of experiment %s: %w", from, err)
	}
	addDetails(ctx, cluster, stored.Name, &e, each)
	return e, nil
}

// Decode reads an experiment's ConfigMap: its results, and its spec if that is there.
func Decode(stored corev1.ConfigMap) (results.Experiment, error) {
	e, err := results.DecodeExperiment([]byte(stored.Data[ResultsFile]))
	if spec := []byte(stored.Data[SpecKey]); err == nil && json.Valid(spec) {
		e.Spec = spec
	}
	return e, err
}

// FromFile reads what report -o json wrote, or a bundle.
func FromFile(name string) (results.Experiment, error) {
	return fromFile(name, func(results.Trial) {})
}

func fromFile(name string, each func(results.Trial)) (results.Experiment, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return results.Experiment{}, fmt.Errorf("read %s: %w", name, err)
	}
	var e results.Experiment
	if archive.Is(data) {
		e, err = fromBundle(data, each)
	} else {
		e, err = results.DecodeExperiment(data)
	}
	if err != nil {
		return results.Experiment{}, fmt.Errorf("read %s: %w", name, err)
	}
	return e, nil
}

// fromBundle puts together what a bundle has of an experiment and its trials.
func fromBundle(data []byte, each func(results.Trial)) (results.Experiment, error) {
	var e *results.Experiment
	var details report.Details
	var applied struct {
		Spec json.RawMessage `json:"spec"`
	}
	wanted := func(name string) bool {
		return name == ResultsFile || name == ExperimentFile || path.Base(name) == TrialFile
	}
	err := archive.Read(bytes.NewReader(data), wanted, func(name string, data []byte) error {
		switch name {
		case ResultsFile:
			decoded, err := results.DecodeExperiment(data)
			e = &decoded
			return err
		case ExperimentFile:
			return yaml.Unmarshal(data, &applied)
		}
		t, err := results.DecodeTrial(data)
		if err == nil {
			details.Add(t)
			each(t)
		}
		return err
	})
	switch {
	case err != nil:
		return results.Experiment{}, err
	case e == nil:
		return results.Experiment{}, errors.New("bundle: it has no " + ResultsFile)
	}
	details.Into(e)
	e.Spec = applied.Spec
	return *e, nil
}

// The files of a bundle from which a report is made again: the experiment's results, what was
// applied, and one of each trial in its own folder.
const (
	ResultsFile    = results.ExperimentKey
	ExperimentFile = "experiment.yaml"
	TrialFile      = trialKey
)

// Further files of a bundle. VersionsFile names software, CrateFile describes the bundle to
// machines. The others are in the folder of a trial.
const (
	VersionsFile   = "versions.json"
	CrateFile      = "ro-crate-metadata.json"
	LatencyFile    = "latency.hdr.base64"
	TimelineFile   = "timeline.csv"
	RenderedFolder = "rendered"
	ReportsFolder  = "reports"
)

// SpecKey of an experiment's ConfigMap holds its spec as JSON, with its profile applied.
const SpecKey = "spec.json"

// FindStored returns the ConfigMap with the results of an experiment's run: the last one, or with
// ~N at the end of the name the N-th before it. The Experiment itself may be gone.
func FindStored(ctx context.Context, cluster session.Cluster, run string) (corev1.ConfigMap, error) {
	name, back, earlier := strings.Cut(run, "~")
	if earlier {
		n, err := strconv.Atoi(back)
		if err != nil || n < 0 {
			return corev1.ConfigMap{}, fmt.Errorf("experiment %s: after ~ comes how many runs to go back, a whole number", run)
		}
		return findByLabel(ctx, cluster, name, n)
	}
	var exp v1alpha1.Experiment
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &exp)
	switch {
	case apierrors.IsNotFound(err):
		return findByLabel(ctx, cluster, name, 0)
	case err != nil:
		return corev1.ConfigMap{}, fmt.Errorf("get Experiment %s in namespace %s: %w", name, cluster.Namespace, err)
	case exp.Status.ResultsConfigMap == "":
		return corev1.ConfigMap{}, fmt.Errorf("experiment %s has no results yet; see how far it is with kubectl assay watch %s", name, name)
	}
	var stored corev1.ConfigMap
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: exp.Status.ResultsConfigMap}, &stored); err != nil {
		return corev1.ConfigMap{}, fmt.Errorf("get the results of experiment %s, ConfigMap %s in namespace %s: %w", name, exp.Status.ResultsConfigMap, cluster.Namespace, err)
	}
	return withResults(stored)
}

// findByLabel finds the results of a run whose Experiment may be gone: the last one, or the n-th
// before it.
func findByLabel(ctx context.Context, cluster session.Cluster, name string, n int) (corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	labels := client.MatchingLabels{v1alpha1.LabelResults: "experiment", v1alpha1.LabelExperiment: name}
	if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels); err != nil {
		return corev1.ConfigMap{}, fmt.Errorf("look for results of experiment %s in namespace %s: %w", name, cluster.Namespace, err)
	}
	switch runs := len(list.Items); {
	case runs == 0:
		return corev1.ConfigMap{}, fmt.Errorf("experiment %s is not in namespace %s, nor are results of it; list experiments with kubectl get experiments -A", name, cluster.Namespace)
	case n >= runs:
		return corev1.ConfigMap{}, fmt.Errorf("experiment %s~%d: namespace %s has the results of %d runs of %s, so that the earliest is %s~%d", name, n, cluster.Namespace, runs, name, name, runs-1)
	}
	slices.SortFunc(list.Items, func(a, b corev1.ConfigMap) int {
		return -cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return withResults(list.Items[n])
}

// withResults unpacks the results.
func withResults(stored corev1.ConfigMap) (corev1.ConfigMap, error) {
	var err error
	if stored.Data, err = results.StoredExperiment(stored.Data, stored.BinaryData); err != nil {
		return corev1.ConfigMap{}, fmt.Errorf("ConfigMap %s in namespace %s: %w", stored.Name, stored.Namespace, err)
	}
	if _, ok := stored.Data[ResultsFile]; !ok {
		return corev1.ConfigMap{}, fmt.Errorf("ConfigMap %s in namespace %s has no key %s, so it holds no results of this version of Assay", stored.Name, stored.Namespace, ResultsFile)
	}
	return stored, nil
}
