// Package try is "kubectl assay try". It runs one point of an experiment once, as an experiment of
// its own that is marked as a try. It is for authors of a System or an Experiment, and for a point
// whose trials fail.
package try

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/logs"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

const (
	// maxName is the most characters that the name of an Experiment may have.
	maxName = 24
	// shownLines is how many lines of each failed process are shown.
	shownLines = 20
)

// Options of the verb.
type Options struct {
	run.Input
	Point   []string
	NoWait  bool
	Timeout time.Duration
	Force   bool
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "try -f FILE --point AXIS=VALUE,...",
		Short: "Run one point of an experiment once",
		Long: "Run one point of an experiment once, with the files as they are now: an experiment of its own with one trial, no retry and no claims. Its name ends in -try- and four characters, and\n" +
			"its label " + v1alpha1.LabelTry + " names the experiment. No average includes its numbers. Where experiments share machines, it goes before the rest of its own: its priority is one higher.\n\n" +
			"try shows progress on stderr, then the numbers of the trial, or why it is not valid and the end of what its processes have printed. The experiment stays until you delete it.\n\n" +
			session.ExitHelp(),
		Example: "  kubectl assay try -f experiments/failure-fp.yaml --profile smoke --point clients=2,variant=ideal\n" +
			"  kubectl assay try -f experiments/failure-fp.yaml --point clients=10 --point variant=failure-fp --set schedule.measure=5s",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, cmd.InOrStdin(), o) },
	}
	o.Bind(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.Point, "point", nil, "AXIS=VALUE of each axis that has several values, with commas between them; may be repeated. Axes of rows of a script need none: one run gives every row")
	f.BoolVar(&o.NoWait, "no-wait", false, "end when it is applied")
	f.DurationVar(&o.Timeout, "timeout", 0, "stop waiting after so long, with exit code 6; the trial goes on; 0: never")
	f.BoolVar(&o.Force, "force-conflicts", false, "take over fields that another tool has set")
	_ = cmd.RegisterFlagCompletionFunc("point", o.completePoint)
	return cmd
}

// completePoint offers AXIS=VALUE for each axis.
func (o *Options) completePoint(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	set, err := o.Load(cmd.Context(), strings.NewReader(""))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, _ := plan.Expand(set.Experiment, set.Systems)
	if p == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var pairs []string
	for _, axis := range p.Axes {
		for _, value := range axis.Values {
			pairs = append(pairs, axis.Name+"="+value)
		}
	}
	return pairs, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// Run applies the point, waits for its trial, and shows the trial. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, stdin io.Reader, o Options) error {
	point, err := parsePoint(o.Point)
	if err != nil {
		return session.Usage(err)
	}
	name := o.Name
	o.Name = ""
	set, err := o.Load(ctx, stdin)
	if err != nil {
		return err
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	if written := set.Experiment.Namespace; written != "" && !cluster.NamespaceGiven {
		cluster.Namespace = written
	}
	p, err := run.Check(ctx, set, cluster)
	if err != nil {
		return err
	}
	of := set.Experiment.Name
	if name == "" {
		name = nameOf(of, s.Now())
	}
	if err := reduce(p, set, name, point); err != nil {
		return err
	}
	if _, err := run.Check(ctx, set, cluster); err != nil {
		return err
	}
	s.NoteHere()
	return run.Begun(ctx, cluster, name, func(cluster session.Cluster) error {
		if err := run.Apply(ctx, s, cluster, set, o.Force); err != nil {
			return err
		}
		return follow(ctx, s, cluster, name, of, o)
	})
}

// follow follows the trial to its end, and shows it.
func follow(ctx context.Context, s *session.Session, cluster session.Cluster, name, of string, o Options) error {
	if o.NoWait && cluster.Host == nil {
		fmt.Fprintf(s.Err, "Follow it with: kubectl assay watch %s -n %s\n", name, cluster.Namespace)
		return nil
	}
	if _, err := watch.Until(ctx, run.Aside(s), cluster, watch.Options{Name: name, Timeout: o.Timeout}); err != nil {
		return run.Unfinished(err, cluster, name)
	}
	here := *s
	here.Connect = func() (session.Cluster, error) { return cluster, nil }
	return show(ctx, &here, cluster, name, of)
}

// nameOf returns the name of a try: as much of the experiment's name as fits, and four characters
// that repeat after 19 days.
func nameOf(experiment string, now time.Time) string {
	const places = 36 * 36 * 36 * 36
	suffix := fmt.Sprintf("-try-%04s", strconv.FormatInt(now.Unix()%places, 36))
	return strings.TrimRight(experiment[:min(len(experiment), maxName-len(suffix))], "-.") + suffix
}

// reduce reduces the experiment to one point.
func reduce(p *plan.Plan, set *manifest.Set, name string, point map[string]string) error {
	chosen, err := choose(p.Axes, p.RowAxes, point)
	if err != nil {
		return session.Usage(err)
	}
	return set.Replace(name, map[string]string{v1alpha1.LabelTry: set.Experiment.Name}, onePoint(p, chosen))
}

// show shows the one trial.
func show(ctx context.Context, s *session.Session, cluster session.Cluster, name, of string) error {
	var list v1alpha1.TrialList
	if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: name}); err != nil {
		return fmt.Errorf("list the Trials of experiment %s in %s: %w", name, cluster.Place(), session.Explain(err))
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("experiment %s in %s has %d trials and should have one", name, cluster.Place(), len(list.Items))
	}
	t := &list.Items[0]
	fmt.Fprintf(s.Out, "Try of %s: %s\n", of, describe(t.Spec.Point.Coordinates))
	if cluster.Host != nil {
		fmt.Fprintf(s.Err, "It is in %s; delete it with that folder.\n", cluster.Host.Where(name))
	} else {
		fmt.Fprintf(s.Err, "Delete it with: kubectl delete experiments.assay.dev %s -n %s\n", name, cluster.Namespace)
	}
	if outcome := plan.Outcome(t); outcome != v1alpha1.ReasonSucceeded {
		// The end of the output is the best hint, if it is kept. Without it there is no second
		// error.
		if err := logs.Run(ctx, s, logs.Options{Trial: t.Name, Tail: shownLines}); err != nil {
			fmt.Fprintln(s.Err, err)
		}
		return &session.Verdict{Code: session.ExitUntrusted, Message: fmt.Sprintf("trial %s: %s, as said above", t.Name, outcome)}
	}
	if len(t.Status.Rows) > 0 {
		writeRows(s.Out, t.Status.Rows)
	} else {
		writeHeadline(s.Out, t.Status.Headline)
	}
	fmt.Fprintln(s.Out, "One trial shows that the point runs. It says little about its mean.")
	return nil
}

func describe(coordinates map[string]string) string {
	var parts []string
	for _, axis := range slices.Sorted(maps.Keys(coordinates)) {
		parts = append(parts, axis+"="+coordinates[axis])
	}
	if len(parts) == 0 {
		return "the only point"
	}
	return strings.Join(parts, ", ")
}

// writeRows prints the numbers that a script left for each of its points. It leaves out missing
// numbers.
func writeRows(out io.Writer, rows []v1alpha1.RowStatus) {
	for _, r := range rows {
		if r.Missing != "" || r.Headline == nil {
			fmt.Fprintf(out, "  %s: missing: %s\n", describe(r.Point.Coordinates), cmp.Or(r.Missing, "it was not read"))
			continue
		}
		var numbers []string
		if x := r.Headline.ThroughputMilli; x > 0 {
			numbers = append(numbers, fmt.Sprintf("%.1f tx/s", float64(x)/1000))
		}
		for _, latency := range []struct {
			name string
			us   int64
		}{{"mean", r.Headline.MeanLatencyMicroseconds}, {"p50", r.Headline.P50LatencyMicroseconds}, {"p99", r.Headline.P99LatencyMicroseconds}} {
			if latency.us > 0 {
				numbers = append(numbers, fmt.Sprintf("%s %.2f ms", latency.name, float64(latency.us)/1000))
			}
		}
		fmt.Fprintf(out, "  %s: %s\n", describe(r.Point.Coordinates), cmp.Or(strings.Join(numbers, ", "), "no throughput and no latency"))
	}
}

func writeHeadline(out io.Writer, h *v1alpha1.Headline) {
	if h == nil {
		return
	}
	// A number of a summary is 0 if the clients did not print it.
	millis := func(us int64) string {
		if us == 0 && h.RunSummary {
			return "not known"
		}
		return fmt.Sprintf("%.2f ms", float64(us)/1000)
	}
	counted := func(n int64, counter string) string {
		if slices.Contains(h.Unreported, counter) {
			return "an unknown number of"
		}
		return strconv.FormatInt(n, 10)
	}
	throughput := fmt.Sprintf("%.1f tx/s", float64(h.ThroughputMilli)/1000)
	if h.RunSummary && h.ThroughputMilli == 0 {
		throughput = "not known"
	}
	fmt.Fprintf(out, "  throughput    %s\n", throughput)
	fmt.Fprintf(out, "  latency       mean %s, p50 %s, p99 %s\n", millis(h.MeanLatencyMicroseconds), millis(h.P50LatencyMicroseconds), millis(h.P99LatencyMicroseconds))
	committed := strconv.FormatInt(h.Committed, 10)
	if h.RunSummary && h.Committed == 0 {
		committed = "an unknown number of"
	}
	fmt.Fprintf(out, "  transactions  %s committed, %s attempts aborted, %s errors, %s timeouts\n",
		committed, counted(h.Aborted, results.CounterAborted), counted(h.Errors, results.CounterErrors), counted(h.Timeouts, results.CounterTimeouts))
}
