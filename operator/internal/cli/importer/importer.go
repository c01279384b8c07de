// Package importer is "kubectl assay import". It makes objects and results of Assay from the files
// of other artifacts. It needs no cluster.
package importer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/pequin"
	"assay.dev/assay/operator/internal/cli/session"
	planner "assay.dev/assay/operator/internal/experiment/plan"
)

// maxFile is the largest configuration that is read.
const maxFile = 4 << 20

// Command is the verb with its own verbs.
func Command(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Turn configurations and results of other artifacts into Assay's",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(pequinCommand(s), resultsCommand(s))
	return cmd
}

// PequinOptions of import pequin.
type PequinOptions struct {
	pequin.Options
	File   string
	Output string
}

func pequinCommand(s *session.Session) *cobra.Command {
	var o PequinOptions
	cmd := &cobra.Command{
		Use:   "pequin CONFIG.json",
		Short: "Turn a configuration of the Pequin artifact into an Experiment and a System",
		Long: "Turn a configuration of the Pequin artifact (Pesto, Basil, Peloton, Tapir) into an Experiment and a System, in one file of YAML that kubectl assay plan takes.\n" +
			"Every setting that a program takes is a parameter, and the program gets it by the flag that the artifact's scripts use. Its client series becomes a sweep, its ramp\n" +
			"times the schedule, its regions and round trips the network. The command lists what it cannot carry over on stderr and in a comment of the file.",
		Example: "  kubectl assay import pequin Pequin-TPCC-SQL-20wh.json -O tpcc.yaml && kubectl assay plan -f tpcc.yaml\n" +
			"  kubectl assay import pequin combined.json --series 2 --name reads-f1",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return Pequin(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	session.BindOutputFile(f, &o.Output)
	f.StringVar(&o.Name, "name", "", "name of the Experiment and the System, at most 24 characters; default: made from the file's name")
	f.IntVar(&o.Series, "series", 0, "series to import, from 1, of a configuration with several; 0: all")
	f.StringVar(&o.Image, "image", pequin.DefaultImage, "image with the artifact's programs")
	return cmd
}

// Pequin imports a configuration, checks it as admission would, and writes it.
func Pequin(ctx context.Context, s *session.Session, o PequinOptions) error {
	data, err := readFile(o.File)
	if err != nil {
		return err
	}
	imported, err := pequin.Import(o.File, data, o.Options)
	if err != nil {
		return err
	}
	text, err := imported.YAML(filepath.Base(o.File))
	if err != nil {
		return err
	}
	p, err := check(ctx, text)
	if err != nil {
		return fmt.Errorf("%s makes an Experiment that would be refused: %w", o.File, err)
	}
	for _, line := range imported.Report() {
		fmt.Fprintln(s.Err, line)
	}
	var clients []string
	for _, point := range p.Points {
		clients = append(clients, fmt.Sprint(point.Template.Clients.Count))
	}
	fmt.Fprintf(s.Err, "Experiment %s: %d points, %d trials, with %s clients.\n", imported.Experiment.Name, len(p.Points), p.Trials(), strings.Join(clients, ", "))
	if o.Output == "" {
		_, err := s.Out.Write(text)
		return err
	}
	if err := os.WriteFile(o.Output, text, 0o644); err != nil { // #nosec G306 -- an Experiment is for others to read
		return fmt.Errorf("write --output-file %s: %w", o.Output, err)
	}
	fmt.Fprintf(s.Err, "Written to %s\n", o.Output)
	return nil
}

// check reads the written YAML back and plans it, so that it checks the very text that the user
// gets.
func check(ctx context.Context, text []byte) (*planner.Plan, error) {
	set, err := manifest.Decode(ctx, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return set.Plan(ctx, "")
}

// readFile reads a small file.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, session.NamedFile(fmt.Errorf("read the configuration: %w", err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes; it is no configuration", name, maxFile)
	}
	return b, nil
}
