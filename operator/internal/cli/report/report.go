// Package report is "kubectl assay report": an experiment's results, for people and programs.
package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/results"
)

// resultsKey of an experiment's ConfigMap holds a results.Experiment.
const resultsKey = "results.json"

// Options of the verb.
type Options struct {
	Name   string
	Output string
	File   string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Show an experiment's verdicts and numbers",
		Long: "Show an experiment's verdicts and numbers: those of the trials that are done so far. Results stay when the Experiment is deleted.\n" +
			"Of several experiments that had the name, the last is shown.",
		Example: "  kubectl assay report failure-fp\n" +
			"  kubectl assay report failure-fp -o report.html\n" +
			"  kubectl assay report failure-fp -o json > results.json\n" +
			"  kubectl assay report --file results.json -o markdown",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "text", "text, markdown, html (with plots), csv (a line for each point) or json (everything, with a line for each trial); or a file whose name ends in .txt, .md, .html, .csv or .json")
	cmd.Flags().StringVar(&o.File, "file", "", "read results from a file written with -o json instead of from the cluster")
	return cmd
}

// Run reads the results and prints them.
func Run(ctx context.Context, s *session.Session, o Options) error {
	write, path, err := writer(s, o.Output)
	if err != nil {
		return err
	}
	var data []byte
	switch {
	case (o.Name == "") == (o.File == ""):
		return fmt.Errorf("give the NAME of an experiment, or --file with results; see kubectl get experiments")
	case o.File != "":
		if data, err = os.ReadFile(o.File); err != nil {
			return fmt.Errorf("read --file %s: %w", o.File, err)
		}
	default:
		cluster, err := s.Connect()
		if err != nil {
			return err
		}
		if data, err = Find(ctx, cluster, o.Name); err != nil {
			return err
		}
	}
	e, err := results.DecodeExperiment(data)
	if err != nil {
		return fmt.Errorf("results of experiment %s: %w", cmp.Or(o.Name, o.File), err)
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
	"text": "text", "markdown": "markdown", "html": "html", "csv": "csv", "json": "json",
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
		form, path = forms[filepath.Ext(output)], output
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
	case "json":
		write = writeJSON
	default:
		return nil, "", fmt.Errorf("-o %s: choose text, markdown, html, csv or json, or a file whose name ends in .txt, .md, .html, .csv or .json", output)
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

// Find returns the results of an experiment as they are stored. The Experiment itself may be gone.
func Find(ctx context.Context, cluster session.Cluster, name string) ([]byte, error) {
	var exp v1alpha1.Experiment
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &exp)
	switch {
	case apierrors.IsNotFound(err):
		return findByLabel(ctx, cluster, name)
	case err != nil:
		return nil, fmt.Errorf("get Experiment %s in namespace %s: %w", name, cluster.Namespace, err)
	case exp.Status.ResultsConfigMap == "":
		return nil, fmt.Errorf("experiment %s has no results yet; see how far it is with kubectl assay watch %s", name, name)
	}
	var stored corev1.ConfigMap
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: exp.Status.ResultsConfigMap}, &stored); err != nil {
		return nil, fmt.Errorf("get the results of experiment %s, ConfigMap %s in namespace %s: %w", name, exp.Status.ResultsConfigMap, cluster.Namespace, err)
	}
	return content(stored)
}

// findByLabel finds the results of an Experiment that is gone: the last ones, if several had the name.
func findByLabel(ctx context.Context, cluster session.Cluster, name string) ([]byte, error) {
	var list corev1.ConfigMapList
	labels := client.MatchingLabels{v1alpha1.LabelResults: "experiment", v1alpha1.LabelExperiment: name}
	if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels); err != nil {
		return nil, fmt.Errorf("look for results of experiment %s in namespace %s: %w", name, cluster.Namespace, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("experiment %s is not in namespace %s, nor are results of it; list experiments with kubectl get experiments -A", name, cluster.Namespace)
	}
	return content(slices.MaxFunc(list.Items, func(a, b corev1.ConfigMap) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}))
}

func content(stored corev1.ConfigMap) ([]byte, error) {
	data, ok := stored.Data[resultsKey]
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s in namespace %s has no key %s, so it holds no results of this version of Assay", stored.Name, stored.Namespace, resultsKey)
	}
	return []byte(data), nil
}
