// Package report is "kubectl assay report": an experiment's results, for people and programs.
package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/results"
)

// resultsKey of an experiment's ConfigMap holds a results.Experiment.
const resultsKey = "results.json"

// Options of the verb.
type Options struct {
	Name string
	// Output is a form or the name of a file; empty: text, or with OutputDir everything.
	Output string
	// OutputDir is a folder to write files to, made if need be.
	OutputDir string
	File      string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Show an experiment's verdicts and numbers",
		Long: "Show an experiment's verdicts and numbers: those of the trials that are done so far. Results stay when the Experiment is deleted.\n" +
			"Of several experiments that had the name, the last is shown; NAME~1 is the run before it, NAME~2 the one before that.",
		Example: "  kubectl assay report failure-fp\n" +
			"  kubectl assay report failure-fp -o report.html\n" +
			"  kubectl assay report failure-fp -o json > results.json\n" +
			"  kubectl assay report failure-fp --output-dir report\n" +
			"  kubectl assay report failure-fp -o svg --output-dir figures\n" +
			"  kubectl assay report --file results.json -o markdown\n" +
			"  kubectl assay report --file failure-fp.tar.gz",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "text (the default), markdown, html (with plots), csv (a line for each point), network-csv (a line for each pair of regions), recovery-csv (a line for each fault in each trial), resources-csv (a line for what replicas or clients used at each point), trials-csv (a line for each trial), json (everything, with a line for each trial), svg or png (each plot as a file, with --output-dir); or a file whose name ends in .txt, .md, .html, .csv or .json")
	cmd.Flags().StringVar(&o.OutputDir, "output-dir", "", "a folder to write to, made if it is not there: what -o says, or without -o everything, with each plot as SVG and PNG")
	cmd.Flags().StringVar(&o.File, "file", "", "read results from a file written with -o json, or from a bundle, instead of from the cluster")
	return cmd
}

// Run reads the results and prints them.
func Run(ctx context.Context, s *session.Session, o Options) error {
	write, path, err := writer(s, o.Output)
	if o.OutputDir != "" {
		err = checkFolderForm(o.Output)
	}
	if err != nil {
		return err
	}
	var e results.Experiment
	switch {
	case (o.Name == "") == (o.File == ""):
		return fmt.Errorf("give the NAME of an experiment, or --file with results; see kubectl get experiments")
	case o.File != "":
		if e, err = FromFile(o.File); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
	default:
		if e, err = Load(ctx, s, o.Name); err != nil {
			return err
		}
	}
	if o.OutputDir != "" {
		return writeFolder(s, e, o)
	}
	if path == "" {
		return write(s.Out, e)
	}
	var page bytes.Buffer
	if err := write(&page, e); err != nil {
		return err
	}
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil { // #nosec G306 -- a report is for others to read
		return fmt.Errorf("write -o %s: %w", path, err)
	}
	fmt.Fprintf(s.Err, "Report of experiment %s written to %s\n", e.Name, path)
	return nil
}

// forms by their names and, with a dot, by the extensions of files.
var forms = map[string]string{
	"": "text", "text": "text", "markdown": "markdown", "html": "html", "csv": "csv", "network-csv": "network-csv", "recovery-csv": "recovery-csv", "resources-csv": "resources-csv",
	"trials-csv": "trials-csv", "json": "json",
	".txt": "text", ".md": "markdown", ".html": "html", ".csv": "csv", ".json": "json",
}

// CheckOutput refuses an output that Run would refuse, so that nobody waits for an experiment to learn of it.
func CheckOutput(output string) error {
	_, _, err := writer(&session.Session{}, output)
	return err
}

// writer chooses the form, and the file if output is one.
func writer(s *session.Session, output string) (write func(io.Writer, results.Experiment) error, path string, err error) {
	form, ok := forms[output]
	if !ok {
		path = output
		if extension := filepath.Ext(output); extension != "" {
			form = forms[extension]
		}
	}
	switch form {
	case "text":
		write = func(w io.Writer, e results.Experiment) error {
			return report.Text(w, e, report.TextOptions{Width: s.Width, Color: s.Color && path == ""})
		}
	case "markdown":
		write = report.Markdown
	case "html":
		write = report.HTML
	case "csv":
		write = report.CSV
	case "network-csv":
		write = report.NetworkCSV
	case "recovery-csv":
		write = report.RecoveryCSV
	case "resources-csv":
		write = report.ResourceCSV
	case "trials-csv":
		write = report.TrialCSV
	case "json":
		write = writeJSON
	default:
		if slices.Contains(pictureForms, output) || slices.Contains(pictureForms, strings.TrimPrefix(filepath.Ext(output), ".")) {
			return nil, "", fmt.Errorf("-o %s: a report has a file for each plot; say where they go with --output-dir, and which they are with -o svg or -o png", output)
		}
		return nil, "", fmt.Errorf("-o %s: choose text, markdown, html, csv, network-csv, recovery-csv, resources-csv, trials-csv, json, svg or png, or a file whose name ends in .txt, .md, .html, .csv or .json", output)
	}
	return write, path, nil
}

func writeJSON(w io.Writer, e results.Experiment) error {
	b, err := results.EncodeExperiment(e)
	if err != nil {
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, b, "", "  "); err != nil {
		return fmt.Errorf("indent the results: %w", err)
	}
	indented.WriteByte('\n')
	if _, err := w.Write(indented.Bytes()); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
