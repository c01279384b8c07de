package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// check refuses a file that a cluster would refuse. Without the Systems it only checks that the
// file can be read.
func check(ctx context.Context, set *manifest.Set) error {
	if len(set.Missing()) > 0 {
		return set.Readable(ctx)
	}
	_, err := set.Plan(ctx, "")
	return err
}

// runElsewhere judges results that were measured elsewhere.
func runElsewhere(ctx context.Context, s *session.Session, stdin io.Reader, o Options) error {
	set, err := manifest.Read(ctx, o.Files, stdin)
	if err != nil {
		return err
	}
	if err := set.Adapt("", o.Profile, nil); err != nil {
		return err
	}
	if err := check(ctx, set); err != nil {
		return err
	}
	read, err := o.Elsewhere.Read(ctx, o.Results, set.Systems)
	if err != nil {
		return err
	}
	e, trials, err := judge.Elsewhere(read, judge.Today{Experiment: set.Experiment, File: filepath.Base(set.File)}, set.Systems, s.Now())
	if err != nil {
		return err
	}
	for _, left := range e.LeftOut {
		fmt.Fprintf(s.Err, "Left out: %s.\n", left)
	}
	kept := bundle.Kept{Results: e, Trials: trials, Files: map[string][]byte{}}
	if kept.Spec, err = json.Marshal(plan.ApplyProfile(set.Experiment.Spec)); err != nil {
		return fmt.Errorf("write the spec: %w", err)
	}
	if toBundle(o.Output) {
		for _, t := range trials {
			if kept.Files["trials/"+t.Name+"/"+bundle.TrialFile], err = results.EncodeTrial(t); err != nil {
				return err
			}
		}
		err = write(s, o, kept)
	} else {
		e.Spec = kept.Spec
		err = report.Show(s, e, trials, report.Options{Output: o.Output})
	}
	return errors.Join(err, outcome(kept))
}
