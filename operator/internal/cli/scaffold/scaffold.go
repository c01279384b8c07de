// Package scaffold is "kubectl assay new". It writes a first Experiment, and a System for it, which
// the user then edits.
package scaffold

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results/benchmarks"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Options of the verb.
type Options struct {
	Name   string
	System string
	// Client is a benchmark program that the System's clients run. Empty: a program of the user.
	Client     string
	OutputFile string
	// Files and folders that hold the System. Empty: the folders in which plan looks, too.
	Files []string
	SSH   SSH
}

// folders in which the command looks for a System.
var folders = []string{"systems", filepath.Join("..", "systems"), filepath.Join("experiments", "systems")}

//go:embed skeleton.yaml.tmpl
var skeleton string

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a first Experiment, and a System for it, to be edited",
		Long: "Write a first Experiment, and a System for it, to stdout. Both are complete: kubectl assay plan takes them as they are. Edit what the comments name, above all image and commands.\n" +
			"With --system, the Experiment is for a System that exists, and no System is written. The command reads it from --filename, or from the folders systems, ../systems and\n" +
			"experiments/systems, and takes its first workload.",
		Example: "  kubectl assay new my-experiment > my-experiment.yaml && kubectl assay plan -f my-experiment.yaml\n" +
			"  kubectl assay new latency --system basil\n  " + sshExample,
		Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVar(&o.System, "system", "", "name of a System that exists; default: write one")
	cmd.Flags().StringVar(&o.Client, "client", "", "benchmark program that the clients run, so that its results are written: "+strings.Join(benchmarks.Names(), ", "))
	if err := cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(benchmarks.Names(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.Flags().StringSliceVarP(&o.Files, "filename", "f", nil, "file or folder with the System of --system")
	o.SSH.bind(cmd.Flags())
	session.BindOutputFile(cmd.Flags(), &o.OutputFile)
	return cmd
}

// Names that admission accepts. Names of pods begin with the name of the Experiment.
var (
	experimentName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,22}[a-z0-9])?$`)
	systemName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,38}[a-z0-9])?$`)
)

// skeletonData is the data of the template.
type skeletonData struct {
	Options
	// Results of the client, in the form of a System.
	Results string
	// Workload of the System that the Experiment sets.
	Workload string
}

// indent indents a document as deep as the results in a System.
func indent(text string) string {
	return strings.TrimRight("    "+strings.ReplaceAll(text, "\n", "\n    "), " \n")
}

// Run writes the skeleton.
func Run(ctx context.Context, s *session.Session, o Options) error {
	switch {
	case !experimentName.MatchString(o.Name):
		return session.Usage(fmt.Errorf("%q cannot be the name of an Experiment: at most 24 lower-case letters, digits and dashes, with a letter first and no dash last", o.Name))
	case o.System != "" && !systemName.MatchString(o.System):
		return session.Usage(fmt.Errorf("--system %q cannot be the name of a System: at most 40 lower-case letters, digits, dashes and dots, with a letter or digit at both ends", o.System))
	}
	text, err := o.text(ctx, s)
	if err != nil {
		return err
	}
	if o.OutputFile == "" {
		_, err := s.Out.Write(text)
		return err
	}
	file, err := os.OpenFile(o.OutputFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // #nosec G302 G304 -- an Experiment is for others to read; what was edited must not be lost
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and edits in it must not be lost: name another --output-file, or delete it", o.OutputFile)
	}
	if err != nil {
		return fmt.Errorf("write --output-file: %w", err)
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		return fmt.Errorf("write --output-file: %w", err)
	}
	fmt.Fprintf(s.Err, "Written to %s\n", o.OutputFile)
	return file.Close()
}

// text returns the skeleton.
func (o Options) text(ctx context.Context, s *session.Session) ([]byte, error) {
	if o.SSH.On {
		if o.System != "" || o.Client != "" || len(o.Files) > 0 {
			return nil, session.Usage(errSSHAlone)
		}
		text, notes, err := o.SSH.write(o.Name)
		for _, n := range notes {
			fmt.Fprintln(s.Err, n)
		}
		return text, err
	}
	results, known := benchmarks.Results(cmp.Or(o.Client, benchmarks.Names()[0]))
	switch {
	case !known:
		return nil, session.Usage(fmt.Errorf("--client %s is no benchmark program that is known; there are %s", o.Client, strings.Join(benchmarks.Names(), ", ")))
	case o.Client != "" && o.System != "":
		return nil, session.Usage(errors.New("--client is of the System that is written, and --system names one that exists: give one of them"))
	}
	t, err := template.New("skeleton").Delims("<<", ">>").Option("missingkey=error").Parse(skeleton)
	if err != nil {
		return nil, fmt.Errorf("read the skeleton: %w", err)
	}
	workload := "read-write" // workload of the new System
	if o.System != "" {
		if workload, err = workloadOf(ctx, s, o); err != nil {
			return nil, err
		}
	}
	var text bytes.Buffer
	if err := t.Execute(&text, skeletonData{o, indent(results), workload}); err != nil {
		return nil, fmt.Errorf("write the skeleton: %w", err)
	}
	return text.Bytes(), nil
}

// workloadOf returns the first workload of the System. Without the System it guesses, and notes
// that.
func workloadOf(ctx context.Context, s *session.Session, o Options) (string, error) {
	files := o.Files
	if len(files) == 0 {
		for _, folder := range folders {
			if found, err := filepath.Glob(filepath.Join(folder, "*.yaml")); err == nil && len(found) > 0 {
				files = append(files, folder)
			}
		}
	}
	var known []string
	if len(files) > 0 {
		set, err := manifest.Read(ctx, files, nil)
		if err != nil && (set == nil || !errors.Is(err, manifest.ErrNoExperiment)) {
			return "", err
		}
		if system, ok := set.Systems[o.System]; ok && len(system.Workloads) > 0 {
			return system.Workloads[0].Name, nil
		}
		known = slices.Sorted(maps.Keys(set.Systems))
	}
	if len(o.Files) > 0 {
		return "", fmt.Errorf("%s: %s", strings.Join(o.Files, ", "), suggest.Unknown("there is no System", o.System, known))
	}
	const guess = "read-write"
	fmt.Fprintf(s.Err, "%s in %s; workload %s is a guess, and -f names the System's file\n", suggest.Unknown("There is no System", o.System, known), strings.Join(folders, ", "), guess)
	return guess, nil
}
