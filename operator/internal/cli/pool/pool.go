// Package pool is "kubectl assay pool". It pools the results of runs at several sites, or on
// several days.
package pool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// Options of the verb.
type Options struct {
	// Runs are names of experiments, NAME~1 for earlier runs, or files: bundles and results.
	Runs   []string
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "pool A B...",
		Short: "Combine runs of one evaluation on several sites or days",
		Long: "Combine what runs of one evaluation found, each on machines of its own: several sites, clusters or days. All trials of a run share its machines, so that its\n" +
			"interval is that of one allocation. Pooled, an effect has a mean over allocations with its interval, and a range in which the next site lies.\n\n" +
			"The command pools what the claims measure: quantities, and the quotients of the two sides of comparisons. A run is a name of an experiment, NAME~1 for the run\n" +
			"before the last one, a bundle, or what report -o json wrote.",
		Example: "  kubectl assay pool amsterdam.tar.zst utah.tar.zst clemson.tar.zst\n" +
			"  kubectl assay pool failure-fp~2 failure-fp~1 failure-fp -o pooled.html",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Runs = args
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "text", "text, json, yaml or html; or a file whose name ends in .txt, .json, .yaml or .html")
	_ = cmd.RegisterFlagCompletionFunc("output", session.CompleteForms("text", "json", "yaml", "html"))
	return cmd
}

// forms by their names and by the extensions of files.
var forms = map[string]string{"text": "text", "json": "json", "yaml": "yaml", "html": "html", ".txt": "text", ".json": "json", ".yaml": "yaml", ".html": "html"}

// Run pools and prints.
func Run(ctx context.Context, s *session.Session, o Options) error {
	form, path := forms[o.Output], ""
	if form == "" {
		form, path = forms[filepath.Ext(o.Output)], o.Output
	}
	if form == "" {
		return session.Usage(fmt.Errorf("-o %s: choose text, json, yaml or html, or a file whose name ends in .txt, .json, .yaml or .html", o.Output))
	}
	runs, err := load(ctx, s, o.Runs)
	if err != nil {
		return err
	}
	pooled, err := model.Pool(runs)
	if err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	var page bytes.Buffer
	switch form {
	case "json":
		err = format.PoolJSON(&page, pooled)
	case "yaml":
		err = session.Print(&page, form, pooled)
	case "html":
		err = format.PoolHTML(&page, pooled)
	default:
		err = format.PoolText(&page, pooled, format.TextOptions{Width: s.Width})
	}
	if err != nil {
		return err //nolint:wrapcheck // says what was written
	}
	if path == "" {
		_, err = s.Out.Write(page.Bytes())
	} else if err = os.WriteFile(path, page.Bytes(), 0o644); err == nil { // #nosec G306 -- for others to read
		fmt.Fprintf(s.Err, "%d runs pooled in %s\n", len(runs), path)
	}
	if err != nil {
		return fmt.Errorf("write what was pooled: %w", err)
	}
	return nil
}

// load reads the runs. It rejects a run that is named twice: the pool would conclude that sites do
// not differ.
func load(ctx context.Context, s *session.Session, names []string) ([]results.Experiment, error) {
	var runs []results.Experiment
	seen := map[string]string{}
	for _, name := range names {
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
