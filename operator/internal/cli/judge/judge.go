// Package judge is "kubectl assay judge". It judges trials that are over by the claims of a file,
// and reports them. It needs no cluster.
package judge

import (
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/judge"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/cli/importer"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/renames"
)

// Options of the verb.
type Options struct {
	// Files with the Experiment and its Systems.
	Files []string
	// Bundle has the trials. Results are instead folders and files of trials that were measured
	// without Assay.
	Bundle  string
	Results []string
	// Elsewhere says how to read Results.
	Elsewhere importer.Elsewhere
	// Profile of the Experiment, for Results. A bundle has its own.
	Profile string
	// Output is the bundle to write, or a form of the report, or a file of such a form.
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "judge -f EXPERIMENT.yaml (--bundle BUNDLE | --results FOLDER)",
		Short: "Judge trials that are over by the claims of a file, without a cluster",
		Long: "Judge trials by the claims that a file makes, without a cluster: those of a bundle, or results that were measured elsewhere.\n\n" +
			"--results names files of benchmark programs or a CSV with a column for each axis; see \"kubectl assay import results --help\" for formats. Names of files and labels in them give the point of each result. " +
			"The report and each verdict say what is not known of such trials: whether they are valid, faults, clocks, disturbances, machines, order. The Systems need not be there.\n\n" +
			"--bundle judges the trials of a bundle by the claims that a file makes today. The trials' own results stay as they are. Points, verdicts and reports are made anew by this version of Assay.\n\n" +
			"Results and reports then say when that was, by which file, and in which fields the spec that the trials ran under differs from it. Only what is said of trials may differ: source, claims, reported values, figures and measurements. " +
			"How often, where and under which tolerances they ran may differ, too: that stays as it was in the run. If anything else differs, the trials are not of this experiment, and the command names the fields.\n\n" +
			"With -o NEW.tar.zst the command writes a bundle. as-run/ in it holds the spec and the results of the run. If nothing changes by judging anew, a bundle that is to be written over stays as it is.\n\n" + session.ExitHelp(),
		Example: "  kubectl assay judge -f experiments/basil/reads.yaml --bundle experiments/basil/evidence/reads.tar.zst\n" +
			"  kubectl assay judge -f experiments/basil/reads.yaml --bundle reads.tar.zst -o reads.html\n" +
			"  kubectl assay judge -f experiments/basil/reads.yaml --bundle reads.tar.zst -o judged.tar.zst\n" +
			"  kubectl assay judge -f mine.yaml --results runs.csv -o report.html\n" +
			"  kubectl assay judge -f mine.yaml --results ycsb/ --format YCSB --point '{system}/{clients}c/run{repetition}.txt'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, cmd.InOrStdin(), o) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.Files, "filename", "f", nil, "file, folder or URL with the Experiment, and those with its Systems; Systems in the folder systems beside the Experiment are found; -: stdin")
	f.StringSliceVar(&o.Results, "results", nil, "folder or file of results that were measured elsewhere; may be repeated")
	o.Elsewhere.Bind(f)
	f.StringVar(&o.Profile, "profile", "", "with --results: profile of the experiment to use")
	f.StringVar(&o.Bundle, "bundle", "", "bundle with the trials, as kubectl assay bundle writes it")
	f.StringVarP(&o.Output, "output", "o", "text", "a form of the report, as for the verb report; or a file to write: a bundle (.tar.zst, .tar.gz, .tgz), or a form by its ending")
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that is not there
	cmd.MarkFlagsOneRequired("bundle", "results")
	cmd.MarkFlagsMutuallyExclusive("bundle", "results")
	for _, name := range []string{"format", "point", "rename", "at", "profile"} {
		cmd.MarkFlagsMutuallyExclusive("bundle", name)
	}
	return cmd
}

// Run judges and reports. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, stdin io.Reader, o Options) error {
	if !toBundle(o.Output) {
		if err := report.CheckOutput(o.Output); err != nil {
			return session.Usage(err)
		}
	}
	if o.Bundle == "" {
		return runElsewhere(ctx, s, stdin, o)
	}
	data, err := os.ReadFile(o.Bundle)
	if err != nil {
		return fmt.Errorf("--bundle %s: %w", o.Bundle, err)
	}
	kept, err := bundle.Open(data)
	if err != nil {
		return fmt.Errorf("--bundle %s: %w", o.Bundle, err)
	}
	set, err := manifest.Read(ctx, o.Files, stdin)
	if err != nil {
		return err
	}
	if err := set.Adapt("", kept.Results.Profile, nil); err != nil {
		return fmt.Errorf("%s: the trials of %s are of a profile: %w", set.File, o.Bundle, err)
	}
	if err := check(ctx, set); err != nil {
		return err
	}
	today := judge.Today{Experiment: set.Experiment, Systems: set.Systems, File: filepath.Base(set.File)}
	judged, err := again(kept, today, s.Now())
	if err != nil {
		return fmt.Errorf("--bundle %s: %w", o.Bundle, err)
	}
	if toBundle(o.Output) {
		err = rewrite(s, o, data, kept, today, judged)
	} else {
		shown := judged.Results
		shown.Spec = judged.Spec
		err = report.Show(s, shown, judged.Trials, report.Options{Output: o.Output})
	}
	return errors.Join(err, outcome(judged))
}

func toBundle(output string) bool {
	return archive.FormOf(output) != nil
}

// again makes the content of a bundle with new verdicts. Results that were judged before are judged
// again from their state after the run.
func again(kept bundle.Kept, today judge.Today, now time.Time) (bundle.Kept, error) {
	ran := judge.Ran{Results: kept.Results, Trials: kept.Trials}
	if j := kept.Results.Judged; j != nil {
		before, err := judgedBefore(*j, kept.Spec)
		if err != nil {
			return bundle.Kept{}, err
		}
		ran.Before = &before
	}
	spec := kept.Spec
	if asRun, ok := kept.Files[bundle.AsRunFolder+bundle.ResultsFile]; ok {
		var err error
		if ran.Results, err = results.DecodeExperiment(asRun); err != nil {
			return bundle.Kept{}, fmt.Errorf("%s: %w", bundle.AsRunFolder+bundle.ResultsFile, err)
		}
		if spec, err = renames.Spec(kept.Files[bundle.AsRunFolder+specFile]); err != nil {
			return bundle.Kept{}, fmt.Errorf("%s: %w", bundle.AsRunFolder+specFile, err)
		}
	}
	if spec == nil {
		return bundle.Kept{}, errors.New("it has no spec, which says what the trials are of")
	}
	if err := json.Unmarshal(spec, &ran.Spec); err != nil {
		return bundle.Kept{}, fmt.Errorf("read its spec: %w", err)
	}
	kept.Files = maps.Clone(kept.Files)
	var err error
	if today.Systems, err = named(kept, today.Systems); err != nil {
		return bundle.Kept{}, err
	}
	judged, newSpec, err := judge.Again(ran, today, now)
	if err != nil {
		return bundle.Kept{}, err
	}
	out := kept
	out.Results = judged
	if out.Spec, err = json.Marshal(newSpec); err != nil {
		return bundle.Kept{}, fmt.Errorf("write the spec: %w", err)
	}
	if out.Files[bundle.AsRunFolder+bundle.ResultsFile] == nil {
		encoded, err := results.EncodeExperiment(kept.Results)
		if err != nil {
			return bundle.Kept{}, err
		}
		out.Files[bundle.AsRunFolder+bundle.ResultsFile] = encoded
		out.Files[bundle.AsRunFolder+specFile] = kept.Spec
	}
	return out, nil
}

// judgedBefore returns when and by which claims a bundle was last judged. Older bundles have no
// digest of the claims, so judgedBefore computes it from the spec.
func judgedBefore(j results.Judged, spec []byte) (results.Judged, error) {
	if j.ClaimsSHA256 != "" {
		return j, nil
	}
	var judged v1alpha1.ExperimentSpec
	if err := json.Unmarshal(spec, &judged); err != nil {
		return j, fmt.Errorf("read its spec: %w", err)
	}
	j.ClaimsSHA256 = seal.Of(judged)
	return j, nil
}

// named returns the Systems of a bundle with the programs that today's Systems name, since older
// Systems named none. It puts them into the bundle, and keeps the Systems of the run beside them.
func named(kept bundle.Kept, today map[string]v1alpha1.SystemSpec) (map[string]v1alpha1.SystemSpec, error) {
	all := map[string]v1alpha1.SystemSpec{}
	for name, s := range today {
		all[name] = v1alpha1.SystemSpec{Program: s.Program}
	}
	for _, file := range slices.Sorted(maps.Keys(kept.Files)) {
		name, ok := strings.CutPrefix(file, bundle.SystemsFolder)
		if !ok {
			continue
		}
		name = strings.TrimSuffix(name, ".yaml")
		var object struct {
			APIVersion string              `json:"apiVersion"`
			Kind       string              `json:"kind"`
			Metadata   map[string]string   `json:"metadata"`
			Spec       v1alpha1.SystemSpec `json:"spec"`
		}
		if err := yaml.Unmarshal(kept.Files[file], &object); err != nil {
			return nil, fmt.Errorf("read its %s: %w", file, err)
		}
		if p := today[name].Program; p != nil && (object.Spec.Program == nil || *object.Spec.Program != *p) {
			if kept.Files[bundle.AsRunFolder+file] == nil {
				kept.Files[bundle.AsRunFolder+file] = kept.Files[file]
			}
			object.Spec.Program = p
			text, err := yaml.Marshal(object)
			if err != nil {
				return nil, fmt.Errorf("write its %s: %w", file, err)
			}
			kept.Files[file] = text
		}
		all[name] = object.Spec
	}
	return all, nil
}

// specFile of AsRunFolder is the spec as JSON.
const specFile = "spec.json"

// rewrite writes the new bundle. It leaves the old bundle alone if only the time of judging would
// change.
func rewrite(s *session.Session, o Options, data []byte, kept bundle.Kept, today judge.Today, judged bundle.Kept) error {
	if before := kept.Results.Judged; before != nil && o.Output == o.Bundle {
		same, err := again(kept, today, before.At)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if _, err := bundle.WriteKept(same, archive.FormOf(o.Output), &b); err != nil {
			return err
		}
		if sameFiles(b.Bytes(), data) {
			fmt.Fprintf(s.Err, "%s is judged by this file already and stays as it is\n", o.Output)
			return nil
		}
	}
	return write(s, o, judged)
}

// sameFiles says whether two bundles have the same bytes before they are compressed. Another
// program may have compressed one of them more.
func sameFiles(a, b []byte) bool {
	textA, errA := unzipped(a)
	textB, errB := unzipped(b)
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}

func unzipped(data []byte) ([]byte, error) {
	r, err := archive.Unzip(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // nothing is written
	return io.ReadAll(r)
}

func write(s *session.Session, o Options, judged bundle.Kept) error {
	var b bytes.Buffer
	made, err := bundle.WriteKept(judged, archive.FormOf(o.Output), &b)
	if err != nil {
		return err
	}
	part := o.Output + ".part"
	if err := os.WriteFile(part, b.Bytes(), 0o644); err != nil { // #nosec G306 -- a bundle is for others to read
		return fmt.Errorf("write -o %s: %w", o.Output, err)
	}
	if err := os.Rename(part, o.Output); err != nil {
		return fmt.Errorf("write -o %s: %w", o.Output, err)
	}
	fmt.Fprintf(s.Err, "Bundle of experiment %s with %d trials, judged, written to %s\n", made.Experiment, made.Trials, o.Output)
	return nil
}

// outcome returns the error, and so the exit code, that the verdicts call for. Claims that the
// profile skips do not count.
func outcome(judged bundle.Kept) error {
	var spec v1alpha1.ExperimentSpec
	if err := json.Unmarshal(judged.Spec, &spec); err != nil {
		return fmt.Errorf("read the spec back: %w", err)
	}
	skipped := plan.SkippedClaims(spec)
	var all []session.Judged
	for _, c := range judged.Results.Claims {
		if _, skip := skipped[c.Name]; !skip {
			all = append(all, session.Judged{Claim: c.Name, Verdict: v1alpha1.Verdict(c.Verdict)})
		}
	}
	return session.OfVerdicts(all, len(skipped))
}
