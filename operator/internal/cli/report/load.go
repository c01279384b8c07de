package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	inCluster "assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// Load reads an experiment's results with all details that a report shows. from is one of
//
//	failure-fp            an Experiment of the cluster, or the last one that had the name
//	failure-fp~1          its run before the last one, ~2 the one before that
//	./results.json        a file that report -o json wrote, or a bundle: anything with a / or that ends in .json, .zst, .gz or .tgz
func Load(ctx context.Context, s *session.Session, from string) (results.Experiment, error) {
	return load(ctx, s, from, func(results.Trial) {})
}

// load reads an experiment's results, and calls each with the results of every trial that it read.
func load(ctx context.Context, s *session.Session, from string, each func(results.Trial)) (results.Experiment, error) {
	if strings.Contains(from, "/") || slices.Contains([]string{".json", ".zst", ".gz", ".tgz"}, path.Ext(from)) {
		return fromFile(from, each)
	}
	return stored(ctx, s, from, each)
}

// Stored reads the results of an experiment of the cluster as Load does, and never a file. Use it
// for names that come from others, such as the address of a page.
func Stored(ctx context.Context, s *session.Session, name string) (results.Experiment, error) {
	return stored(ctx, s, name, func(results.Trial) {})
}

func stored(ctx context.Context, s *session.Session, from string, each func(results.Trial)) (results.Experiment, error) {
	cluster, err := s.Connect()
	if err != nil {
		return results.Experiment{}, err
	}
	found, err := inCluster.Find(ctx, cluster.Client, cluster.Namespace, from)
	if err != nil {
		return results.Experiment{}, err
	}
	e, err := inCluster.Decode(found)
	if err != nil {
		return results.Experiment{}, fmt.Errorf("results of experiment %s: %w", from, err)
	}
	addDetails(ctx, cluster, found.Name, &e, each)
	return e, nil
}

// figuresOf reads an Experiment that declares figures, with its profile applied.
func figuresOf(ctx context.Context, name string) (*v1alpha1.Experiment, error) {
	set, err := manifest.Read(ctx, []string{name}, nil)
	if err != nil {
		return nil, err
	}
	p, errs := plan.Expand(set.Experiment, set.Systems)
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", name, errs.ToAggregate())
	}
	if len(p.Spec.Figures) == 0 {
		return nil, fmt.Errorf("%s: experiment %s declares no figures (spec.figures)", name, set.Experiment.Name)
	}
	set.Experiment.Spec = p.Spec
	return set.Experiment, nil
}

// FromFile reads a bundle, or a file that report -o json wrote.
func FromFile(name string) (results.Experiment, error) {
	return fromFile(name, func(results.Trial) {})
}

func fromFile(name string, each func(results.Trial)) (results.Experiment, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return results.Experiment{}, session.NamedFile(fmt.Errorf("read %s: %w", name, err))
	}
	var e results.Experiment
	switch {
	case archive.Is(data):
		e, err = bundle.Read(data, each)
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
		e, err = results.DecodeExperiment(data)
	default:
		err = errors.New("it is neither a bundle, as kubectl assay bundle writes it, nor results, as kubectl assay report -o json writes them")
	}
	if err != nil {
		return results.Experiment{}, fmt.Errorf("read %s: %w", name, err)
	}
	return e, nil
}
