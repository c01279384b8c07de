package steer

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// RetryOptions of the verb.
type RetryOptions struct {
	Name   string
	DryRun bool
	// Output is the form in which the trials are printed: name, json or yaml. Empty: a sentence for
	// each.
	Output string
}

// Retry is the verb.
func Retry(s *session.Session) *cobra.Command {
	var o RetryOptions
	cmd := &cobra.Command{
		Use:   "retry EXPERIMENT | TRIAL",
		Short: "Give repetitions without a valid trial another attempt",
		Long: "Give every repetition of an experiment that is given up another attempt: it has no valid trial, and its budget (spec.retries, spec.disturbances.retryFor) is used up.\n" +
			"The name of a trial, the last of its repetition, stands for that repetition alone.\n\n" +
			"retry deletes the last trial of the repetition. The manager then makes another one. Results and output of the deleted trial stay in its ConfigMap. If disturbed trials have used up\n" +
			"retryFor, retry deletes all of them at the repetition's end.\n\n" +
			"The System is the one that the experiment was accepted with. To run with a changed System, use kubectl assay try for one point, or kubectl assay run --rerun for all.",
		Example:           "  kubectl assay retry failure-fp\n  kubectl assay retry failure-fp-3f2a-17",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: session.CompleteExperiments(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return RunRetry(cmd.Context(), s, o)
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "say which trials would be deleted, and delete none")
	session.BindForm(cmd, &o.Output, "a sentence for each trial; else the trials as they were before", session.ObjectForms...)
	return cmd
}

// RunRetry deletes the last trials of repetitions, so that the manager makes another attempt.
func RunRetry(ctx context.Context, s *session.Session, o RetryOptions) error {
	if err := session.CheckForm(o.Output, "sentences", session.ObjectForms...); err != nil {
		return err
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	chosen, err := chooseTrials(ctx, cluster, o.Name)
	if err != nil {
		return err
	}
	for i := range chosen {
		t := &chosen[i]
		what := fmt.Sprintf("repetition %d of point %d (trial %s, %s)", t.Spec.Repetition, t.Spec.Point.Index, t.Name, plan.Outcome(t))
		if o.DryRun {
			o.say(s, "Would retry "+what)
			continue
		}
		uid := t.UID
		err := cluster.Client.Delete(ctx, t, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Trial %s in %s: %w", t.Name, cluster.Place(), session.Explain(err))
		}
		o.say(s, "Retrying "+what)
	}
	if o.Output != "" {
		return session.PrintTrials(s.Out, o.Output, chosen...)
	}
	return nil
}

// say writes a sentence for people.
func (o RetryOptions) say(s *session.Session, sentence string) {
	if o.Output == "" {
		fmt.Fprintf(s.Out, "%s.\n", sentence)
	}
}

// chooseTrials returns the trials that a name stands for: those of an experiment's repetitions, or
// one trial.
func chooseTrials(ctx context.Context, cluster session.Cluster, name string) ([]v1alpha1.Trial, error) {
	var t v1alpha1.Trial
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &t)
	if err == nil {
		return chooseOne(ctx, cluster, &t)
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get Trial %s in %s: %w", name, cluster.Place(), session.Explain(err))
	}
	e, err := getExperiment(ctx, cluster, name)
	if err != nil {
		return nil, fmt.Errorf("no trial has that name, and %w", err)
	}
	trials, err := ownTrials(ctx, cluster, e)
	if err != nil {
		return nil, err
	}
	chosen := plan.Reopen(e.Spec, trials, func(plan.Slot) bool { return true })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("experiment %s has nothing to retry: each repetition that has run has a valid trial, or is tried again by itself", name)
	}
	return chosen, nil
}

// chooseOne checks that the manager has given the repetition of a trial up, and that the trial is
// the last of it.
func chooseOne(ctx context.Context, cluster session.Cluster, t *v1alpha1.Trial) ([]v1alpha1.Trial, error) {
	e, err := getExperiment(ctx, cluster, t.Spec.Experiment)
	if err != nil {
		return nil, err
	}
	trials, err := ownTrials(ctx, cluster, e)
	if err != nil {
		return nil, err
	}
	slot := slotOf(t)
	last := lastTrials(trials)[slot]
	chosen := plan.Reopen(e.Spec, trials, func(s plan.Slot) bool { return s == slot })
	switch {
	case last.valid != "":
		return nil, fmt.Errorf("repetition %d of point %d has a valid trial, %s: it needs no retry; to measure the point again, use kubectl assay try", slot.Repetition, slot.Point, last.valid)
	case plan.Outcome(t) == v1alpha1.ReasonInProgress:
		return nil, fmt.Errorf("trial %s is not over; retry it when it is, if the manager does not", t.Name)
	case last.trial != nil && last.trial.Name != t.Name:
		return nil, fmt.Errorf("trial %s is not the last of its repetition: %s is", t.Name, last.trial.Name)
	case len(chosen) == 0:
		return nil, fmt.Errorf("repetition %d of point %d has a budget left: the manager tries it again by itself", slot.Repetition, slot.Point)
	}
	return chosen, nil
}

func ownTrials(ctx context.Context, cluster session.Cluster, e *v1alpha1.Experiment) ([]v1alpha1.Trial, error) {
	var list v1alpha1.TrialList
	if err := cluster.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: e.Name}); err != nil {
		return nil, fmt.Errorf("list the Trials of experiment %s: %w", e.Name, session.Explain(err))
	}
	return slices.DeleteFunc(list.Items, func(t v1alpha1.Trial) bool { return !metav1.IsControlledBy(&t, e) }), nil
}

func slotOf(t *v1alpha1.Trial) plan.Slot {
	return plan.Slot{Point: t.Spec.Point.Index, Repetition: t.Spec.Repetition}
}

// slotState has the last trial of a repetition, and the name of a valid one.
type slotState struct {
	trial *v1alpha1.Trial
	valid string
}

func lastTrials(trials []v1alpha1.Trial) map[plan.Slot]slotState {
	last := map[plan.Slot]slotState{}
	for i := range trials {
		t := &trials[i]
		at := last[slotOf(t)]
		if plan.Outcome(t) == v1alpha1.ReasonSucceeded {
			at.valid = t.Name
		}
		if at.trial == nil || t.Spec.Attempt > at.trial.Spec.Attempt {
			at.trial = t
		}
		last[slotOf(t)] = at
	}
	return last
}
