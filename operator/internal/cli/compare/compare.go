// Package compare is "kubectl assay compare". It tells in which metrics two experiments, or two
// runs of one, differ.
package compare

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// Options of the verb.
type Options struct {
	// A and B name a run, or several with commas between them.
	A, B   string
	Output string
	// BetweenRuns is the standard deviation of runs by their mean, as a percentage such as 1%;
	// empty: not stated.
	BetweenRuns string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "compare A[,A...] [B[,B...]]",
		Short: "Show what differs between two experiments, or two groups of runs of one",
		Long: "Compare two experiments at every point that both have: throughput, mean and p99 latency. Each row has the ratio B/A, its 95% interval, and whether the\n" +
			"difference is significant. A second table shows what else differs: the spec, images, kernels, processors, the network as it was measured.\n\n" +
			"A and B are names of experiments, NAME~1 for the run before the last one, or files: what report -o json wrote, or bundles. With one name alone, its last\n" +
			"two runs are compared. Several runs of a side have commas between them.\n\n" +
			"The command compares runs, not trials. All trials of a run share its machines, placement and day, so that more trials do not show how runs differ. It needs\n" +
			"three runs in all, such as four earlier ones and one of now. With one on each side it decides nothing, unless --between-runs says by how much runs of the same\n" +
			"deviate. Two variants are best compared as systems of one experiment.\n\n" +
			"Exit codes:\n" +
			"  0  no difference is significant\n" +
			"  1  something went wrong\n" +
			"  3  some difference is\n" +
			"  4  too few runs or trials to tell",
		Example: "  kubectl assay compare failure-fp~1 failure-fp\n" +
			"  kubectl assay compare failure-fp --between-runs 1%\n" +
			"  kubectl assay compare failure-fp~4,failure-fp~3,failure-fp~2,failure-fp~1 failure-fp\n" +
			"  kubectl assay compare before.json failure-fp -o comparison.md",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.A, o.B = args[0]+"~1", args[0]
			if len(args) == 2 {
				o.A, o.B = args[0], args[1]
			}
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "text", "text, markdown, csv, json or yaml; or a file whose name ends in .txt, .md, .csv, .json or .yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", session.CompleteForms("text", "markdown", "csv", "json", "yaml"))
	cmd.Flags().StringVar(&o.BetweenRuns, "between-runs", "", "standard deviation of runs of the same by their mean, above 0% and at most 100%, such as 1%; with one run on each side only")
	return cmd
}

// forms by their names and by the extensions of files.
var forms = map[string]string{"text": "text", "markdown": "markdown", "csv": "csv", "json": "json", "yaml": "yaml", ".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json", ".yaml": "yaml"}

// Run compares and prints. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, o Options) error {
	form, path := forms[o.Output], ""
	if form == "" {
		form, path = forms[filepath.Ext(o.Output)], o.Output
	}
	if form == "" {
		return session.Usage(fmt.Errorf("-o %s: choose text, markdown, csv, json or yaml, or a file whose name ends in .txt, .md, .csv, .json or .yaml", o.Output))
	}
	a, err := load(ctx, s, o.A)
	if err != nil {
		return err
	}
	b, err := load(ctx, s, o.B)
	if err != nil {
		return err
	}
	between, err := o.between(len(a) + len(b))
	if err != nil {
		return err
	}
	c := model.Compare(a, b, between)
	var page bytes.Buffer
	if err := write(&page, form, c, s.Width); err != nil {
		return err
	}
	if path == "" {
		_, err = s.Out.Write(page.Bytes())
	} else if err = os.WriteFile(path, page.Bytes(), 0o644); err == nil { // #nosec G306 -- for others to read
		fmt.Fprintf(s.Err, "Comparison of %s with %s written to %s\n", o.B, o.A, path)
	}
	if err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	tested, significant := c.Tested()
	switch {
	case tested == 0:
		return &session.Verdict{Code: session.ExitUndecided, Message: c.Verdict()}
	case significant > 0:
		return &session.Verdict{Code: session.ExitDifferent, Message: c.Verdict()}
	}
	return nil
}

// load reads the runs of one side. It rejects a run that is named twice: the comparison would
// conclude that runs do not differ.
func load(ctx context.Context, s *session.Session, names string) ([]results.Experiment, error) {
	var runs []results.Experiment
	seen := map[string]string{}
	for name := range strings.SplitSeq(names, ",") {
		e, err := from.Load(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if other, ok := seen[e.UID]; ok && e.UID != "" {
			return nil, fmt.Errorf("%s and %s are the same run, UID %s; name each run once", other, name, e.UID)
		}
		seen[e.UID] = name
		runs = append(runs, e)
	}
	return runs, nil
}

// between is the stated deviation between runs as a share; 0 if none is stated.
func (o Options) between(runs int) (float64, error) {
	if o.BetweenRuns == "" {
		return 0, nil
	}
	text, isPercentage := strings.CutSuffix(o.BetweenRuns, "%")
	percent, err := strconv.ParseFloat(text, 64)
	switch {
	case !isPercentage || err != nil || !(percent > 0 && percent <= 100):
		return 0, session.Usage(fmt.Errorf("--between-runs %s: must be a percentage above 0%% and at most 100%%, such as 1%%", o.BetweenRuns))
	case runs > 2:
		return 0, session.Usage(fmt.Errorf("--between-runs %s: is for one run on each side; %d runs show by themselves how much they deviate", o.BetweenRuns, runs))
	}
	return percent / 100, nil
}

func write(w io.Writer, form string, c model.Comparison, width int) error {
	switch form {
	case "markdown":
		return format.ComparisonMarkdown(w, c)
	case "csv":
		return csvfile.Comparison(w, c)
	case "json", "yaml":
		return session.Print(w, form, model.ComparisonData(c))
	}
	return format.ComparisonText(w, c, format.TextOptions{Width: width})
}
