// Package logs is "kubectl assay logs". It prints the output of the processes of a trial. It reads
// the trial's pods while they exist, and later the results, which keep the end of the output.
package logs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// Options of the verb.
type Options struct {
	Trial     string
	Pod       string
	Container string
	Tail      int64
	Follow    bool
	Agents    bool
	// Files is the directory into which collected files are written. Empty: none are written.
	Files string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "logs TRIAL",
		Short: "Show what the processes of a trial have printed",
		Long: "Show what the processes of a trial have printed. While the trial's pods exist, logs reads them, as kubectl logs does. Reading costs the nodes a little processor time: it may\n" +
			"disturb what is measured. Later, logs shows what is kept with the trial's results: of a trial that is not valid, the end of the output of each process. With a result store, all\n" +
			"output is there; logs says where.\n\n" +
			"Each line begins with its pod and container. How the trial ended, and why, is on stderr.\n\n" +
			"Files of the processes' own that the System collects (collect of replicas, components, clients) are written out with --files.",
		Example: "  kubectl assay logs failure-fp-3f2a-17\n" +
			"  kubectl assay logs failure-fp-3f2a-17 --pod failure-fp-3f2a-17-local-0 --follow",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: session.CompleteTrials(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Trial = args[0]
			return Run(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Pod, "pod", "", "only the pod of this name")
	f.StringVarP(&o.Container, "container", "c", "", "only the container of this name")
	f.Int64Var(&o.Tail, "tail", -1, "only so many lines of each container; -1: all")
	f.BoolVarP(&o.Follow, "follow", "f", false, "go on as lines are printed; of one container")
	f.StringVar(&o.Files, "files", "", "write the files that were collected of the pods into this directory, and show no output")
	f.BoolVar(&o.Agents, "agents", false, "show the containers that Assay adds to each pod, too")
	return cmd
}

// Run prints the output that is available.
func Run(ctx context.Context, s *session.Session, o Options) error {
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	trial, err := getTrial(ctx, cluster, o.Trial)
	if err != nil {
		return err
	}
	if trial != nil {
		fmt.Fprintln(s.Err, state(trial))
	}
	var pods corev1.PodList
	labels := client.MatchingLabels{v1alpha1.LabelTrial: o.Trial}
	if err := cluster.Client.List(ctx, &pods, client.InNamespace(cluster.Namespace), labels); err != nil {
		return fmt.Errorf("list the pods of trial %s in %s: %w", o.Trial, cluster.Place(), session.Explain(err))
	}
	if o.Files != "" {
		return writeFiles(ctx, s, cluster, o)
	}
	if len(pods.Items) > 0 && cluster.Logs != nil {
		return live(ctx, s, cluster, pods.Items, o)
	}
	return kept(ctx, s, cluster, trial, o)
}

// getTrial returns the Trial, or nil if it is gone.
func getTrial(ctx context.Context, cluster session.Cluster, name string) (*v1alpha1.Trial, error) {
	var t v1alpha1.Trial
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &t)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a trial that is gone is no error: its results stay
	}
	if err != nil {
		return nil, fmt.Errorf("get Trial %s in %s: %w", name, cluster.Place(), session.Explain(err))
	}
	return &t, nil
}

// state tells how the trial ended, or that it still runs.
func state(t *v1alpha1.Trial) string {
	outcome := plan.Outcome(t)
	if outcome == v1alpha1.ReasonInProgress {
		return fmt.Sprintf("Trial %s is not over.", t.Name)
	}
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialComplete)
	return fmt.Sprintf("Trial %s: %s. %s", t.Name, outcome, c.Message)
}

// source is a container whose log is read.
type source struct{ pod, container string }

// live reads the logs of pods.
func live(ctx context.Context, s *session.Session, cluster session.Cluster, pods []corev1.Pod, o Options) error {
	sources, err := choose(pods, o)
	if err != nil {
		return err
	}
	if o.Follow && len(sources) > 1 {
		return session.Usage(fmt.Errorf("--follow is for one container, and there are %d; choose with --pod and --container: %s", len(sources), names(sources)))
	}
	var failed []error
	for _, from := range sources {
		options := &corev1.PodLogOptions{Container: from.container, Follow: o.Follow}
		if o.Tail >= 0 {
			options.TailLines = &o.Tail
		}
		if err := stream(ctx, s.Out, cluster, from, options); err != nil {
			failed = append(failed, err) // print the other logs even if one container has not started
		}
	}
	return errors.Join(failed...)
}

// choose returns the containers of the system, or those that the user asks for.
func choose(pods []corev1.Pod, o Options) ([]source, error) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var all, chosen []source
	for i := range pods {
		p := &pods[i]
		var containers []corev1.Container
		if o.Agents || o.Container != "" {
			containers = append(containers, p.Spec.InitContainers...)
		}
		for _, c := range append(containers, p.Spec.Containers...) {
			from := source{p.Name, c.Name}
			all = append(all, from)
			if (o.Pod == "" || o.Pod == from.pod) && (o.Container == "" || o.Container == from.container) {
				chosen = append(chosen, from)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, session.Usage(fmt.Errorf("trial %s has no such pod or container; it has %s", o.Trial, names(all)))
	}
	return chosen, nil
}

func names(sources []source) string {
	texts := make([]string, len(sources))
	for i, s := range sources {
		texts[i] = s.pod + "/" + s.container
	}
	return strings.Join(texts, ", ")
}

// stream copies one log with the name of the container before each line.
func stream(ctx context.Context, out io.Writer, cluster session.Cluster, from source, options *corev1.PodLogOptions) error {
	log, err := cluster.Logs(ctx, cluster.Namespace, from.pod, options)
	if err != nil {
		return fmt.Errorf("read the log of %s/%s: %w", from.pod, from.container, session.Explain(err))
	}
	defer log.Close()
	reader := bufio.NewReader(log)
	for {
		line, err := reader.ReadString('\n')
		if line != "" {
			if _, err := fmt.Fprintf(out, "[%s/%s] %s\n", from.pod, from.container, strings.TrimSuffix(line, "\n")); err != nil {
				return fmt.Errorf("write the log: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the log of %s/%s: %w", from.pod, from.container, err)
		}
	}
}

// kept prints the output that the results hold.
func kept(ctx context.Context, s *session.Session, cluster session.Cluster, trial *v1alpha1.Trial, o Options) error {
	stored, err := findResults(ctx, cluster, o.Trial)
	if err != nil {
		return err
	}
	if stored == nil && trial == nil {
		return fmt.Errorf("trial %s is not in %s, nor are results of it; kubectl assay report EXPERIMENT %s lists the trials of an experiment", o.Trial, cluster.Place(), cluster.Flag())
	}
	var t results.Trial
	if stored != nil {
		if t, err = results.DecodeStored(stored.Data, stored.BinaryData); err != nil {
			return fmt.Errorf("results of trial %s in ConfigMap %s: %w", o.Trial, stored.Name, err)
		}
		if trial == nil {
			fmt.Fprintf(s.Err, "Trial %s, which is gone: %s. %s %s\n", o.Trial, t.Outcome, t.Reason, t.Message)
		}
	}
	collected, err := collectedOf(ctx, cluster, o.Trial)
	if err != nil {
		return err
	}
	if t.Logs == nil {
		t.Logs = map[string]string{}
	}
	collected.longer(t.Logs)
	shown := 0
	for _, key := range slices.Sorted(maps.Keys(t.Logs)) {
		pod, container, _ := strings.Cut(key, "/")
		if o.Pod != "" && o.Pod != pod || o.Container != "" && o.Container != strings.TrimSuffix(container, ":stderr") {
			continue
		}
		shown++
		for _, line := range tail(t.Logs[key], o.Tail) {
			fmt.Fprintf(s.Out, "[%s] %s\n", key, line)
		}
	}
	if shown > 0 {
		fmt.Fprintf(s.Err, "The pods are gone: this is the end of what is kept of each process.%s\n", elsewhere(trial))
		collected.tell(s, cluster, o.Trial)
		return nil
	}
	collected.tell(s, cluster, o.Trial)
	if trial != nil && plan.Outcome(trial) == v1alpha1.ReasonInProgress {
		return notYet(trial, cluster)
	}
	return fmt.Errorf("of trial %s no output is kept in the cluster: its pods are gone, and %s.%s", o.Trial, why(t, stored != nil, o), elsewhere(trial))
}

// notYet says that a trial has no output before it is over, and names the verb for the meantime.
func notYet(t *v1alpha1.Trial, cluster session.Cluster) error {
	why := "it has no pods now"
	if cluster.Host != nil {
		why = "without a cluster, output is read when the trial is over"
	}
	meanwhile := ""
	if t.Spec.Script != nil {
		meanwhile = fmt.Sprintf("; kubectl assay ssh %s MACHINE %s opens a shell on a machine that is up", t.Name, cluster.Flag())
	}
	return fmt.Errorf("of trial %s no output can be read yet: %s%s", t.Name, why, meanwhile)
}

// why returns the reason why no line of a trial is kept.
func why(t results.Trial, stored bool, o Options) string {
	switch {
	case !stored:
		return "it has no results yet"
	case slices.Contains(t.LeftOut, "logs"):
		return "its results had no room for it"
	case len(t.Logs) > 0:
		return fmt.Sprintf("its results have that of other processes only: %s", strings.Join(slices.Sorted(maps.Keys(t.Logs)), ", "))
	case o.Pod != "" || o.Container != "":
		return "its results have none of that process"
	}
	return "its results keep the output of processes that failed only; debug.keepLogs of the experiment keeps the end of all, of later trials"
}

// elsewhere names the place in a store that has the whole output.
func elsewhere(t *v1alpha1.Trial) string {
	if t == nil {
		return ""
	}
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialResultsStored)
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" The result store has all output (%s: %s); read it with kubectl assay fetch.", c.Reason, c.Message)
}

// tail is the last n lines of a text; all if n is negative.
func tail(text string, n int64) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if n >= 0 && int64(len(lines)) > n {
		return lines[int64(len(lines))-n:]
	}
	return lines
}

// findResults returns the results of a trial, or nil. Results stay when the trial is deleted.
func findResults(ctx context.Context, cluster session.Cluster, trial string) (*corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	labels := client.MatchingLabels{v1alpha1.LabelResults: "trial", v1alpha1.LabelTrial: trial}
	if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), labels); err != nil {
		return nil, fmt.Errorf("look for the results of trial %s in %s: %w", trial, cluster.Place(), session.Explain(err))
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // there are none, which the caller explains
	}
	return &list.Items[0], nil
}
