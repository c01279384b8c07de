// Package list is "kubectl assay list". It lists the experiments of a namespace with their progress
// and their outcome.
package list

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// Options of the verb.
type Options struct {
	AllNamespaces bool
	// Output is empty for the table, wide, name, json or yaml.
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List experiments: how far each is, and what came out",
		Long: "List the experiments of a namespace, the newest last.\n\n" +
			"    TRIALS      valid trials of those that are planned\n" +
			"    STATUS      Running, Complete, or the reason why it is neither\n" +
			"    SUPPORTED   claims that the trials support, of those that the profile judges; so far, while trials are to run\n" +
			"    LEFT        time until the end, by the trials so far",
		Example: "  kubectl assay list\n  kubectl assay list -A -o wide",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, o) },
	}
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "list the experiments of all namespaces")
	session.BindForm(cmd, &o.Output, "a table", session.TableForms...)
	return cmd
}

// Run reads the experiments once and writes them.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if err := session.CheckForm(o.Output, "a table", session.TableForms...); err != nil {
		return err
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	var where []client.ListOption
	if !o.AllNamespaces {
		where = append(where, client.InNamespace(cluster.Namespace))
	}
	var list v1alpha1.ExperimentList
	if err := cluster.Client.List(ctx, &list, where...); err != nil {
		return fmt.Errorf("list experiments: %w", session.Explain(err))
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Experiment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if o.Output != "" && o.Output != "wide" {
		return session.PrintExperiments(s.Out, o.Output, false, list.Items...)
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(s.Err, nothing(o, cluster.Namespace))
		return nil
	}
	var trials v1alpha1.TrialList
	if err := cluster.Client.List(ctx, &trials, where...); err != nil {
		return fmt.Errorf("list trials: %w", session.Explain(err))
	}
	return write(s.Out, list.Items, trials.Items, s.Now(), o)
}

func nothing(o Options, namespace string) string {
	if o.AllNamespaces {
		return "There are no experiments."
	}
	return fmt.Sprintf("There are no experiments in namespace %s; -A lists those of all namespaces.", namespace)
}

func write(out io.Writer, experiments []v1alpha1.Experiment, trials []v1alpha1.Trial, now time.Time, o Options) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	head := []string{"NAME", "TRIALS", "STATUS", "SUPPORTED", "LEFT", "AGE"}
	if o.AllNamespaces {
		head = slices.Insert(head, 0, "NAMESPACE")
	}
	if o.Output == "wide" {
		head = append(head, "PROFILE", "INVALID", "FAILED", "TRY OF", "MESSAGE")
	}
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for i := range experiments {
		e := &experiments[i]
		own := slices.DeleteFunc(slices.Clone(trials), func(t v1alpha1.Trial) bool { return !metav1.IsControlledBy(&t, e) })
		row := []string{e.Name, fmt.Sprintf("%d/%d", e.Status.Trials.Succeeded, e.Status.Trials.Planned), Status(e), supported(e), left(e, own, now), age(e, now)}
		if o.AllNamespaces {
			row = slices.Insert(row, 0, e.Namespace)
		}
		if o.Output == "wide" {
			row = append(row, cmp.Or(e.Spec.Profile, "-"), fmt.Sprint(e.Status.Trials.Invalid), fmt.Sprint(e.Status.Trials.Failed),
				cmp.Or(e.Labels[v1alpha1.LabelTry], "-"), Message(e))
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}

// deciding returns the condition that determines the status of the experiment.
func deciding(e *v1alpha1.Experiment) *metav1.Condition {
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ExperimentAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return c
	}
	return meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ExperimentComplete)
}

// Status is the status of an experiment in a word: Running, Complete, or the reason why it is
// neither.
func Status(e *v1alpha1.Experiment) string {
	c := deciding(e)
	switch {
	case !e.DeletionTimestamp.IsZero():
		return "Deleting"
	case c == nil:
		return "Pending"
	case c.Reason == v1alpha1.ReasonTrialsRunning:
		return "Running"
	case c.Reason == v1alpha1.ReasonAllTrialsValid:
		return "Complete"
	}
	return c.Reason
}

// Message says more about the status; "-" if there is nothing to say.
func Message(e *v1alpha1.Experiment) string {
	if c := deciding(e); c != nil {
		return c.Message
	}
	return "-"
}

// supported counts the claims that the trials support, among the claims of the profile.
func supported(e *v1alpha1.Experiment) string {
	skipped := plan.SkippedClaims(e.Spec)
	judged, good := 0, 0
	for _, c := range e.Status.Claims {
		if _, skip := skipped[c.Name]; skip {
			continue
		}
		judged++
		if c.Verdict.Supports() {
			good++
		}
	}
	if judged == 0 {
		return "-"
	}
	if !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ExperimentComplete) {
		return fmt.Sprintf("%d/%d so far", good, judged)
	}
	return fmt.Sprintf("%d/%d", good, judged)
}

func left(e *v1alpha1.Experiment, trials []v1alpha1.Trial, now time.Time) string {
	if d := watch.Left(e, trials, now); d > 0 {
		return duration.HumanDuration(d)
	}
	return "-"
}

func age(e *v1alpha1.Experiment, now time.Time) string {
	return duration.HumanDuration(now.Sub(e.CreationTimestamp.Time))
}
