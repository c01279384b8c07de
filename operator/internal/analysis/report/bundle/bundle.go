// Package bundle puts everything about an experiment's run into one file, for an artifact
// repository, and reads such a file. It only reads the cluster.
package bundle

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/results"
)

// The files of a bundle from which a report is made again: the experiment's results, what was
// applied, and one of each trial in its own folder.
const (
	ResultsFile    = results.ExperimentKey
	ExperimentFile = "experiment.yaml"
	SystemsFolder  = "systems/"
	TrialFile      = "trial.json"
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
	PodsFolder     = "pods"
)

// AsRunFolder of a bundle whose claims were judged anew holds its spec and its results as they were
// before.
const AsRunFolder = "as-run/"

// Made says what a bundle holds.
type Made struct {
	Experiment string
	Trials     int
	// LeftOut says what the bundle lacks, and why.
	LeftOut []string
}

// Write writes the bundle of the run whose results a ConfigMap has, as stored.Find returns it. The
// same results give the same bytes with the same version of Assay. A bundle by archive.Zstd lacks
// the files of which IsMade is true.
func Write(ctx context.Context, from client.Reader, configMap corev1.ConfigMap, license License, form *archive.Form, w io.Writer) (Made, error) {
	e, err := stored.Decode(configMap)
	if err != nil {
		return Made{}, fmt.Errorf("results in ConfigMap %s: %w", configMap.Name, err)
	}
	r := &run{cluster: from, results: e, encoded: []byte(configMap.Data[ResultsFile]), stored: configMap, license: license}
	if spec, ok := configMap.Data[stored.SpecKey]; ok {
		r.spec = []byte(spec)
	}
	err = r.write(w, form, []step{
		r.writeSpec,
		func(bundle *archive.Writer) error { return r.writeSystems(ctx, bundle) },
		func(bundle *archive.Writer) error { return r.writeTrials(ctx, bundle) },
	})
	return Made{Experiment: e.Name, Trials: r.trials, LeftOut: r.leftOut}, err
}

// step writes some of a bundle's files.
type step func(*archive.Writer) error

// write runs the steps, and then writes all files that are made from the trials.
func (r *run) write(w io.Writer, form *archive.Form, steps []step) error {
	r.slim = slim(form)
	written := r.results.Written
	if r.results.Completed != nil {
		written = *r.results.Completed
	}
	bundle, err := archive.NewWriter(w, form, r.results.Name, written)
	if err != nil {
		return err
	}
	for _, step := range append(steps, r.writeReports, r.writeVersions, r.writeReadme, r.writeCrate) {
		if err := step(bundle); err != nil {
			return err
		}
	}
	return bundle.Close()
}

// file of a bundle.
type file struct {
	name string
	data []byte
}

// addAll adds files in the order of their names.
func addAll(bundle *archive.Writer, files []file) error {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, f := range files {
		if err := bundle.Add(f.name, f.data); err != nil {
			return err
		}
	}
	return nil
}
