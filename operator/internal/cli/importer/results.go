package importer

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/pequin"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/imported"
	"assay.dev/assay/operator/internal/results/parsers"
	"assay.dev/assay/operator/internal/results/stats"
)

// ResultsOptions of import results.
type ResultsOptions struct {
	Elsewhere
	Folders []string
	// Axes are the labels that become axes, in their order. Empty: the labels of --point, or of a
	// table.
	Axes []string
	// Systems are files with the Systems whose clients print the format Summary.
	Systems []string
	Name    string
	Output  string
}

func resultsCommand(s *session.Session) *cobra.Command {
	var o ResultsOptions
	about := ""
	for _, format := range imported.Formats() {
		about += fmt.Sprintf("    %-14s %s\n", format, imported.About(format))
	}
	cmd := &cobra.Command{
		Use:   "results FOLDER...",
		Short: "Turn results that were measured elsewhere into results that can be reported like one's own",
		Long: "Turn files of results that were measured elsewhere into results that can be reported, compared and judged like one's own. Each trial is marked as imported: Assay did not run it, and did not judge whether it is valid.\n\n" +
			"Formats:\n\n" + about + "\n" +
			"Without --format, a folder with a stats.json is one of the Pequin artifact. Throughput and mean latency are the artifact's then, to all digits.\n\n" +
			"--axes names the labels of which points are made. Labels are parts of the names of files (--point), columns of a CSV, and what else a format calls its settings. The command names all that it did not read on stderr and in the results.",
		Example: "  kubectl assay import results --format YCSB --point 'a-{clients}threads.txt' ycsb/ -O ycsb.json && kubectl assay report --file ycsb.json\n" +
			"  kubectl assay import results --axes clients,variant runs.csv -O runs.json\n" +
			"  kubectl assay import results output/2024-10-21-17-00-00 -O old.json",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Folders = args
			return Results(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	session.BindOutputFile(f, &o.Output)
	o.Bind(f)
	f.StringSliceVar(&o.Axes, "axes", nil, "labels that points are made of, in the order of the axes; default: those of --point, or all that a table has")
	f.StringSliceVarP(&o.Systems, "filename", "f", nil, "with --format Summary: file with the System whose clients print this")
	f.StringVar(&o.Name, "name", "", "name of the results; default: that of the folder")
	return cmd
}

// Results reads folders and writes their results as JSON, in the format that kubectl assay report
// --file reads.
func Results(ctx context.Context, s *session.Session, o ResultsOptions) error {
	first, err := filepath.Abs(o.Folders[0])
	if err != nil {
		return fmt.Errorf("find %s: %w", o.Folders[0], err)
	}
	name := cmp.Or(o.Name, strings.TrimSuffix(filepath.Base(first), filepath.Ext(first)))
	e, err := o.read(ctx, s, name, first)
	if err != nil {
		return err
	}
	b, err := results.EncodeExperiment(e)
	if err != nil {
		return err
	}
	for _, left := range e.LeftOut {
		fmt.Fprintf(s.Err, "Left out: %s.\n", left)
	}
	fmt.Fprintf(s.Err, "Results %s: %d points, %d trials.\n", e.Name, len(e.Points), len(e.Trials))
	if o.Output == "" {
		_, err := s.Out.Write(b)
		return err
	}
	if err := os.WriteFile(o.Output, b, 0o644); err != nil { // #nosec G306 -- results are for others to read
		return fmt.Errorf("write --output-file %s: %w", o.Output, err)
	}
	fmt.Fprintf(s.Err, "Written to %s\n", o.Output)
	return nil
}

func (o *ResultsOptions) read(ctx context.Context, s *session.Session, name, first string) (results.Experiment, error) {
	if o.Format == "" && len(o.Folders) == 1 && o.Point == "" {
		if info, err := os.Stat(first); err == nil && info.IsDir() && imported.Guess(os.DirFS(first), nil) != parsers.FormatEigerGraph {
			if e, err := pequin.ReadFolder(os.DirFS(first), name, s.Now()); err == nil || pequin.IsFolder(os.DirFS(first)) {
				if err != nil {
					return e, fmt.Errorf("%s: %w", o.Folders[0], err)
				}
				return e, nil
			}
		}
	}
	var systems map[string]v1alpha1.SystemSpec
	if len(o.Systems) > 0 {
		set, err := manifest.Read(ctx, o.Systems, nil)
		if set == nil {
			return results.Experiment{}, err
		}
		systems = set.Systems
	}
	set, err := o.Read(ctx, o.Folders, systems)
	if err != nil {
		return results.Experiment{}, err
	}
	axes, err := set.AxesOf(o.axes(set))
	if err != nil {
		return results.Experiment{}, err
	}
	trials, notes, err := set.Trials(name, axes)
	if err != nil {
		return results.Experiment{}, err
	}
	e := results.Experiment{Format: results.ExperimentFormat, Name: name, Written: s.Now().UTC(), Axes: axes, Claims: []results.ClaimResult{}, Planned: len(trials)}
	for _, t := range trials {
		e.Trials = append(e.Trials, model.LineOf(t))
	}
	e.Points, e.LeftOut = stats.Points(e.Trials), slices.Concat(set.Skipped, notes)
	return e, nil
}

// axes are the requested axes, or the labels of --point, or the labels of a table.
func (o *ResultsOptions) axes(set *imported.Set) []string {
	if len(o.Axes) > 0 {
		return o.Axes
	}
	var names []string
	for label := range set.Results[0].Labels {
		switch {
		case label == "repetition":
		case label == "operation" && o.ByOperation:
			names = append(names, label)
		case strings.Contains(o.Point, "{"+label+"}"), o.Point == "" && set.Format != parsers.FormatCSV:
			names = append(names, label)
		}
	}
	slices.Sort(names)
	return names
}
