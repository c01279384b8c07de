// Package history is "kubectl assay history". It shows the metrics of many runs, and the runs at
// which they changed.
package history

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/stored"
	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// Options of the verb.
type Options struct {
	// Runs are folders, files, and names of experiments. The name of an experiment stands for all
	// its runs.
	Runs   []string
	Output string
	// InOrder keeps the order in which the user names runs.
	InOrder bool
	// Baseline is AXIS=VALUE; empty: none.
	Baseline string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "history FOLDER | NAME | BUNDLE...",
		Short: "Show how metrics went over many runs, and where they changed",
		Long: "Show each metric at each point over many runs, and the runs from which on it is another. Largest regressions come first. A name stands for all runs of that experiment in the cluster, NAME~1 for one run, a folder for the bundles and results in it.\n\n" +
			"If nothing changed, and runs do not depend on their neighbours, any false change is shown in at most 5% of histories, over all metrics together. A change takes 8 runs. See \"Changes from run to run\" in docs/reference/statistics.md for the method.\n\n" +
			"Machines drift from day to day, and the command cannot tell them from a version. Run both versions in one experiment each time (run --compare), and name the old one with --baseline: each number is then divided by that of the same run.\n\n" +
			"Forms of -o:\n\n" +
			"    text       changes and runs, for a terminal\n" +
			"    html       one page with a plot of each metric\n" +
			"    markdown   what became worse, for a comment\n" +
			"    github     all changes, for the summary of a step of GitHub Actions\n" +
			"    junit      a test for each metric: it fails if its last change is a regression\n" +
			"    csv        a line for each metric in each run\n" +
			"    json       everything\n\n" +
			"Exit codes:\n" +
			"  0  the last change of no metric is a regression\n" +
			"  1  something went wrong\n" +
			"  3  that of some metric is\n" +
			"  4  too few runs to tell",
		Example: "  kubectl assay history nightly/ -o history.html\n" +
			"  kubectl assay history failure-fp\n" +
			"  kubectl assay history nightly/ --baseline system=kv-old -o github >> \"$GITHUB_STEP_SUMMARY\"\n" +
			"  kubectl assay history --in-order v1.tar.zst v2.tar.zst v3.tar.zst -o junit > history.xml",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Runs = args
			return Run(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "text", "text, html, markdown, github, junit, csv or json; or a file whose name ends in .txt, .html, .md, .xml, .csv or .json")
	f.BoolVar(&o.InOrder, "in-order", false, "keep the order in which runs are named, in folders that of the files' names; else they are in the order in which they started")
	f.StringVar(&o.Baseline, "baseline", "", "AXIS=VALUE: divide each number by that of the same run at this value, as system=kv-old")
	_ = cmd.RegisterFlagCompletionFunc("output", session.CompleteForms(append(slices.Sorted(maps.Keys(format.HistoryForms)), "text")...))
	return cmd
}

// extensions of files, and the forms that they mean.
var extensions = map[string]string{".txt": "text", ".html": "html", ".md": "markdown", ".xml": "junit", ".csv": "csv", ".json": "json"}

// Run reads the runs, looks for changes, and prints. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, o Options) error {
	form, path := o.Output, ""
	if _, known := format.HistoryForms[form]; !known && form != "text" {
		form, path = extensions[filepath.Ext(o.Output)], o.Output
	}
	if form == "" {
		return session.Usage(fmt.Errorf("-o %s: choose text, %s, or a file whose name ends in %s", o.Output,
			strings.Join(slices.Sorted(maps.Keys(format.HistoryForms)), ", "), strings.Join(slices.Sorted(maps.Keys(extensions)), ", ")))
	}
	runs, err := load(ctx, s, o.Runs)
	if err != nil {
		return err
	}
	h, err := model.NewHistory(runs, model.HistoryOptions{AsGiven: o.InOrder, Baseline: o.Baseline})
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := write(&page, form, h, s.Width); err != nil {
		return err
	}
	if path == "" {
		_, err = s.Out.Write(page.Bytes())
	} else if err = os.WriteFile(path, page.Bytes(), 0o644); err == nil { // #nosec G306 -- for others to read
		fmt.Fprintf(s.Err, "History of %d runs written to %s\n", len(h.Runs), path)
	}
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	switch worse := h.Regressions(); {
	case len(worse) > 0:
		return &session.Verdict{Code: session.ExitDifferent, Message: fmt.Sprintf("worse at the end: %s", names(worse))}
	case h.Undecided():
		return &session.Verdict{Code: session.ExitUndecided, Message: "too few runs to tell a change from noise"}
	}
	return nil
}

func names(metrics []model.HistoryMetric) string {
	var all []string
	for _, m := range metrics {
		name := strings.TrimSpace(m.Metric + " " + m.Point)
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, "; ")
}

func write(w io.Writer, form string, h model.History, width int) error {
	if form == "text" {
		return format.HistoryText(w, h, format.TextOptions{Width: width})
	}
	return format.HistoryForms[form](w, h)
}

// load reads the runs. A run counts once, also if several names lead to it.
func load(ctx context.Context, s *session.Session, names []string) ([]model.Historic, error) {
	var runs []model.Historic
	seen := map[string]string{}
	add := func(name string) error {
		e, err := from.Load(ctx, s, name)
		if err != nil {
			return err
		}
		return addRun(s, &runs, seen, name, e)
	}
	for _, name := range names {
		all, err := expand(ctx, s, name)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			if err := add(one); err != nil {
				return nil, err
			}
		}
	}
	return runs, nil
}

func addRun(s *session.Session, runs *[]model.Historic, seen map[string]string, name string, e results.Experiment) error {
	if other, twice := seen[e.UID]; twice && e.UID != "" {
		fmt.Fprintf(s.Err, "%s is the run of %s, and counts once\n", name, other)
		return nil
	}
	seen[e.UID] = name
	*runs = append(*runs, model.Historic{From: filepath.Base(name), Results: e})
	return nil
}

// expand gives the runs that a name stands for.
func expand(ctx context.Context, s *session.Session, name string) ([]string, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return inFolder(name)
	case err == nil && !strings.Contains(name, "/"):
		return []string{"./" + name}, nil
	case err == nil || strings.ContainsAny(name, "/~") || slices.Contains([]string{".json", ".zst", ".gz", ".tgz"}, filepath.Ext(name)):
		return []string{name}, nil
	}
	cluster, err := s.Connect()
	if err != nil {
		return nil, err
	}
	n, err := stored.Runs(ctx, cluster.Client, cluster.Namespace, name)
	if err != nil {
		return nil, err
	}
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s~%d", name, n-1-i)
	}
	return all, nil
}

// inFolder returns the bundles and results in a folder, in the order of their names.
func inFolder(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder %s: %w", folder, err)
	}
	var all []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".json", ".zst", ".gz", ".tgz"}, filepath.Ext(e.Name())) {
			all = append(all, filepath.Join(folder, e.Name()))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the folder %s has no bundle (.tar.zst, .tar.gz, .tgz) and no results (.json)", folder)
	}
	for i, path := range all {
		if !strings.Contains(path, "/") {
			all[i] = "./" + path
		}
	}
	return all, nil
}
