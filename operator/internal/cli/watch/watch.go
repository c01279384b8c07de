// Package watch is "kubectl assay watch". It shows the progress of an experiment until it is over.
//
// It asks the API server every two seconds instead of watching. It serves only one person, and a
// trial takes minutes. Asking again works after any kind of broken connection.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
)

const (
	// interval between two looks.
	interval = 2 * time.Second
	// patience is how long the command waits for a problem to go away by itself. An experiment may
	// not be accepted until its System arrives. Results may not be in the cluster, or in the
	// experiment's store, yet.
	patience = 30 * time.Second
)

// Options of the verb.
type Options struct {
	Name    string
	Timeout time.Duration
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Show how far an experiment is, until it is over",
		Long: "Show how far an experiment is, until it is over: trials, the current one's phase and throughput, and when it may end.\n" +
			"If a result store lacks something 30 s after the end, watch says so and ends.\n" +
			"On a terminal watch redraws its lines. A terminal of UTF-8 also has the trial's throughput as a row of bars, and the verdicts so far as the report draws them. Elsewhere it prints a line for each change and each minute, with the time that is left. It names each trial that becomes invalid or fails, with the reason.\n\n" +
			session.ExitHelp() + "\n\nThe exit code is 0 whatever the verdicts are; wait has an exit code for each of them.",
		Example:           "  kubectl assay watch failure-fp",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: session.CompleteExperiments(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			_, err = Until(cmd.Context(), s, cluster, o)
			return err
		},
	}
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "stop watching after so long, with exit code 6; the experiment goes on; 0: never")
	return cmd
}

// Until shows progress until the experiment is complete and its results are in the cluster. It
// returns the complete experiment. It waits for the store only for a while, and then says what the
// store lacks. Verdicts and report come from the cluster alone, and a store may be down for days.
func Until(ctx context.Context, s *session.Session, cluster session.Cluster, o Options) (*v1alpha1.Experiment, error) {
	start := s.Now()
	display := &display{out: s.Out, terminal: s.Terminal, width: s.Width, color: s.Color, pictures: s.Pictures}
	w := &watcher{cluster: cluster, name: o.Name}
	for {
		now := s.Now()
		seen, err := w.look(ctx)
		switch {
		case err == nil:
			for _, line := range w.unusable(seen.trials) {
				display.notice(line)
			}
			p := newProgress(seen.experiment, seen.trials, now)
			if s.Pictures {
				w.drawn.into(ctx, &p, cluster, seen, now)
			}
			display.show(p, now)
		case w.isFinal(err):
			return nil, err
		default:
			display.notice(fmt.Sprintf("Cannot reach the cluster, trying again: %v", err))
		}
		if err == nil {
			done, notice, err := w.isOver(seen.experiment, now)
			if notice != "" {
				display.end(notice)
			}
			if err == nil && !done {
				err = w.withoutImage(seen, now)
			}
			if err != nil || done {
				return seen.experiment, err
			}
		}
		if o.Timeout > 0 && now.Sub(start) >= o.Timeout {
			return nil, &session.Verdict{Code: session.ExitTimeout,
				Message: fmt.Sprintf("experiment %s is not complete after %s; it goes on: kubectl assay watch %s %s", o.Name, o.Timeout, o.Name, cluster.Flag())}
		}
		if err := s.Sleep(ctx, interval); err != nil {
			return nil, session.Interrupted(err, fmt.Sprintf("experiment %s goes on; follow it with kubectl assay watch %s %s", o.Name, o.Name, cluster.Flag()))
		}
	}
}

// watcher keeps state between looks that cannot be read again.
type watcher struct {
	cluster session.Cluster
	name    string

	drawn         pictures
	told          map[string]bool // the named trials that are not valid; nil before the first look
	refusedSince  time.Time
	completeSince time.Time
	noRoomSince   time.Time
	noImageSince  time.Time
}

// seen has the objects of one look.
type seen struct {
	experiment *v1alpha1.Experiment
	trials     []v1alpha1.Trial
	// noImage names an image that a pod on this machine cannot get, and why. Empty: there is none,
	// or the pods are on a cluster.
	noImage string
}

func (w *watcher) look(ctx context.Context) (seen, error) {
	var exp v1alpha1.Experiment
	if err := w.cluster.Client.Get(ctx, client.ObjectKey{Namespace: w.cluster.Namespace, Name: w.name}, &exp); err != nil {
		return seen{}, fmt.Errorf("get Experiment %s in %s: %w", w.name, w.cluster.Place(), session.Explain(err))
	}
	var list v1alpha1.TrialList
	if err := w.cluster.Client.List(ctx, &list, client.InNamespace(w.cluster.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: w.name}); err != nil {
		return seen{}, fmt.Errorf("list the Trials of experiment %s in %s: %w", w.name, w.cluster.Place(), err)
	}
	found := seen{experiment: &exp, trials: list.Items}
	if w.cluster.Host == nil {
		return found, nil
	}
	var pods corev1.PodList
	if err := w.cluster.Client.List(ctx, &pods, client.InNamespace(w.cluster.Namespace)); err != nil {
		return seen{}, fmt.Errorf("list the pods of experiment %s in %s: %w", w.name, w.cluster.Place(), err)
	}
	for _, p := range pods.Items {
		// A run on this machine prepares no data sets but its own.
		if p.Labels[v1alpha1.LabelExperiment] != w.name && p.Labels[v1alpha1.LabelDataset] == "" {
			continue
		}
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if why := c.State.Waiting; why != nil && why.Reason == "ErrImagePull" {
				found.noImage = why.Message
			}
		}
	}
	return found, nil
}

// withoutImage returns an error if a pod has waited for a while for an image that this machine
// cannot get. On a cluster, the image may still arrive in the registry, and the trial's deadline
// ends the wait.
func (w *watcher) withoutImage(at seen, now time.Time) error {
	if !lasts(&w.noImageSince, at.noImage != "", now) {
		return nil
	}
	return fmt.Errorf("experiment %s cannot run on this machine: %s; build the image, or name its folder with --local-images", w.name, at.noImage)
}

// lasts reports whether a condition has held for at least patience. It keeps the start in since,
// which is zero while the condition does not hold.
func lasts(since *time.Time, holds bool, now time.Time) bool {
	switch {
	case !holds:
		*since = time.Time{}
	case since.IsZero():
		*since = now
	}
	return holds && now.Sub(*since) >= patience
}

// firstTold is how many trials the first look names that are not valid.
const firstTold = 5

// unusable names the trials that became invalid or failed since the last look, with the reason, in
// the order of their numbers.
func (w *watcher) unusable(trials []v1alpha1.Trial) []string {
	isFirst := w.told == nil
	if isFirst {
		w.told = map[string]bool{}
	}
	slices.SortFunc(trials, func(a, b v1alpha1.Trial) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	var lines []string
	for i := range trials {
		t := &trials[i]
		outcome := plan.Outcome(t)
		if w.told[t.Name] || outcome == v1alpha1.ReasonInProgress || outcome == v1alpha1.ReasonSucceeded {
			continue
		}
		w.told[t.Name] = true
		c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialComplete)
		lines = append(lines, fmt.Sprintf("Trial %s (%s, repetition %d%s) %s%s. Its output: kubectl assay logs %s %s",
			t.Name, point(t), t.Spec.Repetition, attempt(t), endings[outcome], because(c.Message), t.Name, w.cluster.Flag()))
	}
	if before := len(lines) - firstTold; isFirst && before > 0 {
		lines = append([]string{fmt.Sprintf("%d trials before these are not valid; kubectl assay report %s %s lists all", before, w.name, w.cluster.Flag())}, lines[before:]...)
	}
	return lines
}

// endings are words for trials that are not valid.
var endings = map[string]string{v1alpha1.ReasonInvalid: "is invalid", v1alpha1.ReasonFailed: "failed"}

// because writes a reason after a colon, without its full stop. It writes nothing for an empty
// reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(reason, ".")
}

// isFinal reports whether a retry cannot help.
func (w *watcher) isFinal(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err) ||
		errors.Is(err, context.Canceled)
}

// withoutTrials are the reasons for which an experiment may be complete before its first trial is
// done. Such an experiment stores no results.
var withoutTrials = []string{v1alpha1.ReasonDataFailed, v1alpha1.ReasonImagesFailed, v1alpha1.ReasonBudgetExhausted}

// isOver reports whether the experiment is complete and its results are in the cluster. A notice
// says that its store lacks results. An error says why the results will not arrive.
func (w *watcher) isOver(exp *v1alpha1.Experiment, now time.Time) (over bool, notice string, err error) {
	if refused := current(exp, v1alpha1.ExperimentAccepted); refused != nil && refused.Status == metav1.ConditionFalse {
		if w.refusedSince.IsZero() {
			w.refusedSince = now
		}
		if now.Sub(w.refusedSince) >= patience {
			return false, "", fmt.Errorf("experiment %s is not accepted (%s): %s", exp.Name, refused.Reason, refused.Message)
		}
		return false, "", nil
	}
	w.refusedSince = time.Time{}
	if err := w.neverStarts(exp, now); err != nil {
		return false, "", err
	}
	if exp.Spec.Recurrence != nil {
		return false, "", neverOver(exp)
	}
	if !isTrue(exp, v1alpha1.ExperimentComplete) {
		return false, "", nil
	}
	if c := current(exp, v1alpha1.ExperimentComplete); exp.Status.ResultsConfigMap == "" && slices.Contains(withoutTrials, c.Reason) {
		return false, "", &session.Verdict{Code: session.ExitUntrusted, Message: c.Message} // no trial ran
	}
	if w.completeSince.IsZero() {
		w.completeSince = now
	}
	if isTrue(exp, v1alpha1.ExperimentResultsStored) {
		return true, "", nil
	}
	if now.Sub(w.completeSince) < patience {
		return false, "", nil
	}
	stored := current(exp, v1alpha1.ExperimentResultsStored)
	switch {
	case stored == nil:
		return false, "", fmt.Errorf("experiment %s is complete and its results are not stored: the controller has not said why", exp.Name)
	case onlyStoreLags(exp, stored):
		return true, fmt.Sprintf("The results are in ConfigMap %s; store %s does not have all of them yet: %s Keep the experiment until it has: kubectl wait experiment/%s -n %s --for=condition=%s --timeout=1h",
			exp.Status.ResultsConfigMap, exp.Status.Archive.Store, stored.Message, exp.Name, w.cluster.Namespace, v1alpha1.ExperimentResultsStored), nil
	}
	return false, "", fmt.Errorf("experiment %s is complete and its results are not stored: %s", exp.Name, stored.Message)
}

// neverStarts returns an error if a trial does not fit on a machine that runs nothing else. A
// cluster may get more nodes, but this machine stays as it is, and no other one carries on.
func (w *watcher) neverStarts(exp *v1alpha1.Experiment, now time.Time) error {
	c := current(exp, v1alpha1.ExperimentComplete)
	noRoom := w.cluster.Host != nil && c != nil && c.Reason == v1alpha1.ReasonUnschedulable
	if !lasts(&w.noRoomSince, noRoom, now) {
		return nil
	}
	return fmt.Errorf("experiment %s cannot run on this machine: %s Lower what its pods ask for (resources.requests), and see kubectl assay plan", exp.Name, c.Message)
}

// neverOver returns an error for an experiment that recurs. The error says what to wait for
// instead.
func neverOver(exp *v1alpha1.Experiment) error {
	if s := exp.Status.Recurrence; s != nil && s.LastRun != "" {
		return fmt.Errorf("experiment %s recurs and is never over; its last run is %s: kubectl assay wait %s", exp.Name, s.LastRun, s.LastRun)
	}
	return fmt.Errorf("experiment %s recurs and is never over; it has no run yet: see when one is due with kubectl assay list -o wide", exp.Name)
}

// onlyStoreLags reports whether the results are in the cluster but not in the experiment's store.
// All reasons say so, except the reason that the ConfigMap is not written.
func onlyStoreLags(exp *v1alpha1.Experiment, stored *metav1.Condition) bool {
	return exp.Status.Archive != nil && exp.Status.ResultsConfigMap != "" && stored.Status == metav1.ConditionFalse && stored.Reason != v1alpha1.ReasonStoreFailed
}

// current returns a condition if it is about the current spec, or nil.
func current(exp *v1alpha1.Experiment, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(exp.Status.Conditions, kind)
	if c == nil || max(c.ObservedGeneration, exp.Status.ObservedGeneration) < exp.Generation {
		return nil
	}
	return c
}

func isTrue(exp *v1alpha1.Experiment, kind string) bool {
	c := current(exp, kind)
	return c != nil && c.Status == metav1.ConditionTrue
}
