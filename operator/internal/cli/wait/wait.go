// Package wait is "kubectl assay wait". It ends when an experiment is over, with the exit code of
// its verdicts. It is for experiments that another program applies: GitOps, kubectl apply.
package wait

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
)

// Options of the verb.
type Options struct {
	Name    string
	Timeout time.Duration
	// Output is the form in which the Experiment is printed when it is over: name, json or yaml.
	// Empty: nothing is printed.
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until an experiment is over, and end with the exit code of its verdicts",
		Long: "Wait until an experiment is over, show progress on stderr meanwhile, and end with the exit code of its verdicts. Anyone may have applied the experiment: GitOps, kubectl apply or kubectl assay run.\n\n" +
			session.ExitHelp(),
		Example:           "  kubectl assay wait failure-fp --timeout 3h && kubectl assay report failure-fp",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: session.CompleteExperiments(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "stop waiting after so long, with exit code 6; the experiment goes on; 0: never")
	session.BindForm(cmd, &o.Output, "nothing; else the Experiment when it is over", session.ObjectForms...)
	return cmd
}

// Run waits. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if err := session.CheckForm(o.Output, "nothing", session.ObjectForms...); err != nil {
		return err
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	exp, err := watch.Until(ctx, run.Aside(s), cluster, watch.Options{Name: o.Name, Timeout: o.Timeout})
	if err != nil {
		return err
	}
	if o.Output != "" {
		if err := session.PrintExperiments(s.Out, o.Output, true, *exp); err != nil {
			return err
		}
	}
	return run.Outcome(exp)
}
