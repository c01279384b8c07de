// Package compare is "kubectl assay compare": what differs between two experiments, or two runs of one.
package compare

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/report"
)

// Options of the verb.
type Options struct {
	A, B   string
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "compare A [B]",
		Short: "Show what differs between two experiments, or two runs of one",
		Long: "Compare two experiments at every point that both have: throughput, mean and p99 latency, with the ratio B/A, its 95% interval, and whether the difference is\n" +
			"significant; and what else differs: the spec, images, kernels, processors, the network as it was measured.\n\n" +
			"A and B are names of experiments, NAME~1 for the run before the last one, or files: what report -o json wrote, or bundles. With one name alone, its last\n" +
			"two runs are compared.\n\n" +
			"Exit codes:\n" +
			"  0  no difference is significant\n" +
			"  1  something went wrong\n" +
			"  3  some difference is\n" +
			"  4  nothing can be told: no point has two valid trials in both",
		Example: "  kubectl assay compare failure-fp~1 failure-fp\n" +
			"  kubectl assay compare failure-fp\n" +
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
	cmd.Flags().StringVarP(&o.Output, "output", "o", "text", "text, markdown or csv; or a file whose name ends in .txt, .md or .csv")
	return cmd
}

// forms by their names and by the extensions of files.
var forms = map[string]string{"text": "text", "markdown": "markdown", "csv": "csv", ".txt": "text", ".md": "markdown", ".csv": "csv"}

// Run compares and prints. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, o Options) error {
	form, path := forms[o.Output], ""
	if form == "" {
		form, path = forms[filepath.Ext(o.Output)], o.Output
	}
	if form == "" {
		return fmt.Errorf("-o %s: choose text, markdown or csv, or a file whose name ends in .txt, .md or .csv", o.Output)
	}
	a, err := from.Load(ctx, s, o.A)
	if err != nil {
		return err
	}
	b, err := from.Load(ctx, s, o.B)
	if err != nil {
		return err
	}
	c := report.Compare(a, b)
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
		return &session.Verdict{Code: session.ExitUndecided, Message: report.Verdict(tested, significant)}
	case significant > 0:
		return &session.Verdict{Code: session.ExitDifferent, Message: report.Verdict(tested, significant)}
	}
	return nil
}

func write(w io.Writer, form string, c report.Comparison, width int) error {
	switch form {
	case "markdown":
		return report.ComparisonMarkdown(w, c)
	case "csv":
		return report.ComparisonCSV(w, c)
	}
	return report.ComparisonText(w, c, report.TextOptions{Width: width})
}
