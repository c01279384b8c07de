// Package steer is "kubectl assay suspend", "resume" and "retry". They change an experiment that
// runs or has run.
package steer

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
)

// Suspend is the verb.
func Suspend(s *session.Session) *cobra.Command {
	var o SuspendOptions
	cmd := &cobra.Command{
		Use:   "suspend NAME...",
		Short: "Start no further trial of an experiment",
		Long: "Start no further trial of an experiment. The trial that runs ends as usual. resume goes on where it was.\n" +
			"A file that is applied again without suspend: true leaves it as it is.",
		Example: "  kubectl assay suspend failure-fp",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: session.CompleteExperiments(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names, o.Suspend = args, true
			return SetSuspend(cmd.Context(), s, o)
		},
	}
	session.BindForm(cmd, &o.Output, "a sentence for each", session.ObjectForms...)
	return cmd
}

// Resume is the verb.
func Resume(s *session.Session) *cobra.Command {
	var o SuspendOptions
	cmd := &cobra.Command{
		Use:     "resume NAME...",
		Short:   "Go on with an experiment that was suspended",
		Example: "  kubectl assay resume failure-fp",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: session.CompleteExperiments(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return SetSuspend(cmd.Context(), s, o)
		},
	}
	session.BindForm(cmd, &o.Output, "a sentence for each", session.ObjectForms...)
	return cmd
}

// SuspendOptions of suspend and resume.
type SuspendOptions struct {
	// Names of the experiments.
	Names []string
	// Suspend is true to suspend them, false to resume.
	Suspend bool
	// Output is the form in which the Experiments are printed after the change: name, json or yaml.
	// Empty: a sentence for each.
	Output string
}

// SetSuspend suspends or resumes experiments, and prints the effect on each.
func SetSuspend(ctx context.Context, s *session.Session, o SuspendOptions) error {
	suspend := o.Suspend
	if err := session.CheckForm(o.Output, "sentences", session.ObjectForms...); err != nil {
		return err
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]bool{"suspend": suspend}})
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	var changed []v1alpha1.Experiment
	for _, name := range o.Names {
		e, err := getExperiment(ctx, cluster, name)
		if err != nil {
			return err
		}
		was, complete := e.Spec.Suspend, meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ExperimentComplete)
		if suspend && complete {
			return fmt.Errorf("experiment %s in %s is complete: there is nothing to suspend", name, cluster.Place())
		}
		if was != suspend {
			if err := cluster.Client.Patch(ctx, e, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-assay")); err != nil {
				return fmt.Errorf("change spec.suspend of Experiment %s in %s: %w", name, cluster.Place(), session.Explain(err))
			}
		}
		changed = append(changed, *e)
		if o.Output == "" {
			fmt.Fprintln(s.Out, effect(e, was, suspend, complete))
		}
	}
	if o.Output != "" {
		return session.PrintExperiments(s.Out, o.Output, len(o.Names) == 1, changed...)
	}
	return nil
}

// effect describes the effect of suspending or resuming in a sentence.
func effect(e *v1alpha1.Experiment, was, suspend, complete bool) string {
	c := e.Status.Trials
	progress := fmt.Sprintf("%d of %d trials are valid", c.Succeeded, c.Planned)
	switch {
	case suspend && was:
		return fmt.Sprintf("Experiment %s is suspended already; %s.", e.Name, progress)
	case suspend && c.Active > 0:
		return fmt.Sprintf("Experiment %s is suspended after the trial that runs; %s.", e.Name, progress)
	case suspend:
		return fmt.Sprintf("Experiment %s is suspended; %s.", e.Name, progress)
	case complete:
		return fmt.Sprintf("Experiment %s is complete; %s.", e.Name, progress)
	case !was:
		return fmt.Sprintf("Experiment %s is not suspended; %s.", e.Name, progress)
	}
	return fmt.Sprintf("Experiment %s goes on; %s.", e.Name, progress)
}

func getExperiment(ctx context.Context, cluster session.Cluster, name string) (*v1alpha1.Experiment, error) {
	var e v1alpha1.Experiment
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &e)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("experiment %s is not in %s; list experiments with kubectl assay list -A", name, cluster.Place())
	}
	if err != nil {
		return nil, fmt.Errorf("get Experiment %s in %s: %w", name, cluster.Place(), session.Explain(err))
	}
	return &e, nil
}
