// Package scaffold is "kubectl assay new": a first Experiment, and a System for it, to be edited.
package scaffold

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/benchmarks"
	"assay.dev/assay/operator/internal/cli/session"
)

// Options of the verb.
type Options struct {
	Name   string
	System string
	// Client is a benchmark program that the System's clients run; empty: one of the user's own.
	Client     string
	OutputFile string
}

//go:embed skeleton.yaml.tmpl
var skeleton string

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a first Experiment, and a System for it, to be edited",
		Long: "Write a first Experiment, and a System for it, to stdout. Both are complete: kubectl assay plan takes them as they are. Edit what the comments name, above all image and commands.\n" +
			"With --system, the Experiment is for a System that exists, and no System is written.",
		Example: "  kubectl assay new my-experiment > my-experiment.yaml && kubectl assay plan -f my-experiment.yaml\n" +
			"  kubectl assay new latency --system basil",
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Name = args[0]
			return Run(s, o)
		},
	}
	cmd.Flags().StringVar(&o.System, "system", "", "name of a System that exists; default: write one")
	cmd.Flags().StringVar(&o.Client, "client", "", "benchmark program that the clients run, so that its results are written: "+strings.Join(benchmarks.Names(), ", "))
	if err := cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(benchmarks.Names(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is defined above
	}
	session.BindOutputFile(cmd.Flags(), &o.OutputFile)
	return cmd
}

// Names as admission takes them: pods are called after an Experiment.
var (
	experimentName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,22}[a-z0-9])?$`)
	systemName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,38}[a-z0-9])?$`)
)

// skeletonData is what the skeleton is made of.
type skeletonData struct {
	Options
	// Results of the client, as they stand in a System.
	Results string
}

// indent moves a document to where results are in a System.
func indent(text string) string {
	return strings.TrimRight("    "+strings.ReplaceAll(text, "\n", "\n    "), " \n")
}

// Run writes the skeleton.
func Run(s *session.Session, o Options) error {
	switch {
	case !experimentName.MatchString(o.Name):
		return session.Usage(fmt.Errorf("%q cannot be the name of an Experiment: at most 24 lower-case letters, digits and dashes, with a letter first and no dash last", o.Name))
	case o.System != "" && !systemName.MatchString(o.System):
		return session.Usage(fmt.Errorf("--system %q cannot be the name of a System: at most 40 lower-case letters, digits, dashes and dots, with a letter or digit at both ends", o.System))
	}
	results, known := benchmarks.Results(cmp.Or(o.Client, benchmarks.Names()[0]))
	switch {
	case !known:
		return session.Usage(fmt.Errorf("--client %s is no benchmark program that is known; there are %s", o.Client, strings.Join(benchmarks.Names(), ", ")))
	case o.Client != "" && o.System != "":
		return session.Usage(errors.New("--client is of the System that is written, and --system names one that exists: give one of them"))
	}
	t, err := template.New("skeleton").Delims("<<", ">>").Option("missingkey=error").Parse(skeleton)
	if err != nil {
		return fmt.Errorf("read the skeleton: %w", err)
	}
	var text bytes.Buffer
	if err := t.Execute(&text, skeletonData{o, indent(results)}); err != nil {
		return fmt.Errorf("write the skeleton: %w", err)
	}
	if o.OutputFile == "" {
		_, err := s.Out.Write(text.Bytes())
		return err
	}
	file, err := os.OpenFile(o.OutputFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // #nosec G302 G304 -- an Experiment is for others to read; what was edited must not be lost
	if err != nil {
		return fmt.Errorf("write --output-file: %w", err)
	}
	defer file.Close()
	if _, err := file.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write --output-file: %w", err)
	}
	fmt.Fprintf(s.Err, "Written to %s\n", o.OutputFile)
	return file.Close()
}
