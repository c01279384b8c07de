package session

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// completionTimeout is how long a shell waits for names from the cluster. Then it offers none.
const completionTimeout = 3 * time.Second

// CompleteExperiments offers the names of the Experiments in the namespace as first argument.
func CompleteExperiments(s *Session) cobra.CompletionFunc {
	return complete(s, func(ctx context.Context, c Cluster) (names []string, err error) {
		var list v1alpha1.ExperimentList
		err = c.Client.List(ctx, &list, client.InNamespace(c.Namespace))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, err
	})
}

// CompleteTrials offers the names of the Trials in the namespace as first argument.
func CompleteTrials(s *Session) cobra.CompletionFunc {
	return complete(s, func(ctx context.Context, c Cluster) (names []string, err error) {
		var list v1alpha1.TrialList
		err = c.Client.List(ctx, &list, client.InNamespace(c.Namespace))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, err
	})
}

// complete offers names for the first argument. The shell drops the names that do not begin with
// the typed text.
func complete(s *Session, names func(context.Context, Cluster) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		cluster, err := s.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		found, err := names(ctx, cluster)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
