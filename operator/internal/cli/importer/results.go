package importer

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/pequin"
	"assay.dev/assay/operator/internal/results"
)

// ResultsOptions of import results.
type ResultsOptions struct {
	Folder string
	Name   string
	Output string
}

func resultsCommand(s *session.Session) *cobra.Command {
	var o ResultsOptions
	cmd := &cobra.Command{
		Use:   "results DIR",
		Short: "Turn a folder of results of the Pequin artifact into results that can be reported like one's own",
		Long: "Turn a folder of results of the Pequin artifact (stats.json of each point, lat-tput.csv, tput-clients.csv) into results that can be reported like one's own.\n" +
			"Throughput and mean latency are the artifact's, to all digits.",
		Example: "  kubectl assay import results output/2024-10-21-17-00-00 -O old.json && kubectl assay report --file old.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Folder = args[0]
			return Results(s, o)
		},
	}
	f := cmd.Flags()
	session.BindOutputFile(f, &o.Output)
	f.StringVar(&o.Name, "name", "", "name of the results; default: that of the folder")
	return cmd
}

// Results reads a folder and writes its results as JSON, in the format that kubectl assay report
// --file reads.
func Results(s *session.Session, o ResultsOptions) error {
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return fmt.Errorf("find %s: %w", o.Folder, err)
	}
	e, err := pequin.ReadFolder(os.DirFS(folder), cmp.Or(o.Name, filepath.Base(folder)), s.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", o.Folder, err)
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
