// Package report is "kubectl assay report": an experiment's results, for people and programs.
package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// Options of the verb.
type Options struct {
	Name string
	// Output is a form or the name of a file. Empty: the form text, or all forms if OutputDir is
	// set.
	Output string
	// OutputDir is the folder for the files. It is made if it does not exist.
	OutputDir string
	File      string
	// FiguresFile is a file with an Experiment. Its figures are drawn in place of the figures of
	// the results. Empty: those of the results are drawn.
	FiguresFile string
	// Figures say how to draw figures for a paper. The zero value has the defaults of the flags.
	Figures FigureFlags
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Show an experiment's verdicts and numbers",
		Long: "Show an experiment's verdicts and numbers: those of the trials that are done so far. Results stay when the Experiment is deleted.\n" +
			"If several experiments had the name, the last is shown. NAME~1 is the run before it, NAME~2 the one before that.\n\n" + formsHelp,
		Example: "  kubectl assay report failure-fp\n" +
			"  kubectl assay report failure-fp -o report.html\n" +
			"  kubectl assay report failure-fp -o json > results.json\n" +
			"  kubectl assay report failure-fp --output-dir report\n" +
			"  kubectl assay report failure-fp -o svg --output-dir figures\n" +
			"  kubectl assay report failure-fp -o pdf --output-dir figures --width 3.33in --font-size 8pt\n" +
			"  kubectl assay report failure-fp -o matplotlib --output-dir figures --curve ideal\n" +
			"  kubectl assay report failure-fp -o html --figures failure-fp.yaml > report.html\n" +
			"  kubectl assay report failure-fp -o latex > tables.tex\n" +
			"  kubectl assay report --file results.json -o markdown\n" +
			"  kubectl assay report --file failure-fp.tar.zst",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "text (the default) or another form, see above; or a file whose name ends in .txt, .md, .html, .csv, .tex, .parquet, .json or .yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", session.CompleteForms(AllForms()...))
	cmd.Flags().StringVar(&o.OutputDir, "output-dir", "", "a folder to write to, made if it is not there: what -o says, or without -o every form")
	cmd.Flags().StringVar(&o.File, "file", "", "read results from a file written with -o json, or from a bundle, instead of from the cluster")
	cmd.Flags().StringVar(&o.FiguresFile, "figures", "", "draw the figures that the Experiment in this file declares, instead of those of the spec that was run")
	o.Figures.add(cmd.Flags())
	return cmd
}

// forms of a report, for the help.
const formsHelp = `Forms of -o:

    text, markdown, html      the whole report; html has plots
    json, yaml                everything, with a line for each trial
    csv                       a line for each point
    claims-csv                a line for each comparison of each claim
    trials-csv                a line for each trial
    network-csv               a line for each pair of regions
    recovery-csv              a line for each fault in each trial
    resources-csv             a line for what replicas or clients used at each point
    use-csv                   a line for each resource, part and point: use over time
    latency-csv               a line for each kind of operation, node and region at each point
    histograms-csv            a line for each bin of each valid trial's latency histogram
    parquet                   the same histograms as Parquet
    latex                     verdicts, points, knees and recovery as tables for LaTeX (booktabs)
    svg, png                  each plot as a file, as the page has it; with --output-dir
    pdf, pgfplots             each plot as a figure for a paper; with --output-dir
    vega-lite                 the same figures as Vega-Lite specifications with their data
    matplotlib, ggplot        the same figures as scripts with their data, for Python and R`

// Run reads the results and prints them.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if err := o.check(s); err != nil {
		return err
	}
	drawing, err := o.Figures.drawing()
	if err != nil {
		return session.Usage(err)
	}
	in := input{drawing: drawing}
	if o.FiguresFile != "" {
		if in.figures, err = figuresOf(ctx, o.FiguresFile); err != nil {
			return fmt.Errorf("--figures: %w", err)
		}
	}
	switch {
	case (o.Name == "") == (o.File == ""):
		return session.Usage(errors.New("give the NAME of an experiment, or --file with results; see kubectl get experiments"))
	case o.File != "":
		if in.Experiment, err = fromFile(o.File, in.take); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
	default:
		if in.Experiment, err = load(ctx, s, o.Name, in.take); err != nil {
			return err
		}
	}
	if in.figures != nil {
		model.Redeclare(&in.Experiment, in.figures.Spec, in.read)
	}
	return in.show(s, o)
}

// check refuses an unknown form before anything is read.
func (o Options) check(s *session.Session) error {
	_, _, err := writer(s, o.Output)
	if o.OutputDir != "" {
		err = checkFolderForm(o.Output)
	}
	return session.Usage(err)
}

// show prints the report, or writes it to files, as Options say.
func (in input) show(s *session.Session, o Options) error {
	model.SortHistograms(in.histograms)
	if o.OutputDir != "" {
		return writeFolder(s, in, o)
	}
	write, path, err := writer(s, o.Output)
	if err != nil {
		return err
	}
	if path == "" {
		return write(s.Out, in)
	}
	var page bytes.Buffer
	if err := write(&page, in); err != nil {
		return err
	}
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil { // #nosec G306 -- a report is for others to read
		return session.NamedFile(fmt.Errorf("write -o %s: %w", path, err)) // the error is about its folder
	}
	fmt.Fprintf(s.Err, "Report of experiment %s written to %s\n", in.Name, path)
	return nil
}

// Show prints results that were not read from a cluster, as Options say. It adds the details of the
// trials' own results.
func Show(s *session.Session, e results.Experiment, trials []results.Trial, o Options) error {
	drawing, err := o.Figures.drawing()
	if err != nil {
		return session.Usage(err)
	}
	in := input{Experiment: e, drawing: drawing}
	var details model.Details
	for _, t := range trials {
		details.Add(t)
		in.take(t)
	}
	details.Into(&in.Experiment)
	return in.show(s, o)
}

// extensions of files, and the forms that they mean.
var extensions = map[string]string{".txt": "text", ".md": "markdown", ".html": "html", ".csv": "csv", ".json": "json", ".yaml": "yaml", ".tex": "latex", ".parquet": "parquet"}

// CheckOutput refuses an output that Run would refuse. Otherwise the user would learn of it only
// after the experiment.
func CheckOutput(output string) error {
	_, _, err := writer(&session.Session{}, output)
	return err
}

// writer returns the function that writes the form, and the path if output is a file.
func writer(s *session.Session, output string) (write func(io.Writer, input) error, path string, err error) {
	form := cmp.Or(output, "text")
	if _, ok := fileForms[form]; !ok {
		path, form = output, extensions[filepath.Ext(output)]
	}
	if form == "text" {
		return func(w io.Writer, in input) error {
			return format.Text(w, in.Experiment, format.TextOptions{Width: s.Width, Color: s.Color && path == "", Pictures: s.Pictures && path == ""})
		}, path, nil
	}
	if f, ok := fileForms[form]; ok {
		return f.write, path, nil
	}
	if slices.Contains(pictureForms, output) || slices.Contains(pictureForms, strings.TrimPrefix(filepath.Ext(output), ".")) {
		return nil, "", fmt.Errorf("-o %s: a report has a file for each plot; say where they go with --output-dir, and which they are with -o %s", output, strings.Join(pictureForms, ", "))
	}
	return nil, "", fmt.Errorf("-o %s: choose one of %s, or a file whose name ends in %s", output, strings.Join(AllForms(), ", "), strings.Join(slices.Sorted(maps.Keys(extensions)), ", "))
}

// writeYAML writes the same content as writeJSON.
func writeYAML(w io.Writer, e results.Experiment) error {
	b, err := results.EncodeExperiment(e)
	if err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(b)
	if err != nil {
		return fmt.Errorf("write the results as YAML: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
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
