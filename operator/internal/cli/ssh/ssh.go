// Package ssh is "kubectl assay ssh". It opens a shell on a machine of a trial, for people.
package ssh

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Options of the verb.
type Options struct {
	Trial, Machine string
	// Command that the machine's shell runs. Empty: a shell is opened.
	Command []string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "ssh TRIAL MACHINE [-- COMMAND...]",
		Short: "Open a shell on a machine of a trial, or run a command there",
		Long: "Open a shell on a machine of a trial, or run a command there, as the machine's user in the home directory, with the variables that sessions of SSH have. It is for Systems with machines.\n\n" +
			"The machine is there while the trial runs. debug.keepFailed of the experiment keeps the machines of a trial that is not valid for so long.\n\n" +
			"ssh goes the way of kubectl exec, and with --local that of the container runtime: no port is opened and no key leaves the trial. The trial's record has the session, from \"kubectl assay ssh\".\n" +
			"Commands there may disturb the measurement.\n\n" +
			"The exit code is that of the command, and 1 or 2 if it was not run.",
		Example: "  kubectl assay ssh exp1-3f2a-0 node-1\n" +
			"  kubectl assay ssh exp1-3f2a-0 node-1 -- tail -n 20 logs/server.log",
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); len(args) < 2 || n >= 0 && n != 2 || n < 0 && len(args) != 2 {
				return fmt.Errorf("ssh takes a trial and a machine, and a command after --, as in: kubectl assay ssh exp1-3f2a-0 node-1 -- ls logs")
			}
			return nil
		},
		ValidArgsFunction: session.CompleteTrials(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			return Run(cmd.Context(), s, Options{Trial: args[0], Machine: args[1], Command: args[2:]})
		},
	}
}

// login is the program on a machine that opens a shell, or runs a command in one.
var login = []string{"/assay/bin/machine", "login", "--config", v1alpha1.MachineConfigFile}

// Run opens the shell. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, o Options) error {
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	var trial v1alpha1.Trial
	err = cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: o.Trial}, &trial)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no trial %s in %s; kubectl assay list %s lists experiments, and kubectl assay report EXPERIMENT their trials", o.Trial, cluster.Place(), cluster.Flag())
	case err != nil:
		return fmt.Errorf("get Trial %s in %s: %w", o.Trial, cluster.Place(), session.Explain(err))
	case trial.Spec.Script == nil:
		return fmt.Errorf("trial %s has no machines that answer SSH: its System has replicas and clients; kubectl exec opens a shell in a pod", o.Trial)
	case cluster.Machines == nil:
		return fmt.Errorf("the machines of trial %s cannot be reached from here", o.Trial)
	}
	machines, err := cluster.Machines(ctx, cluster.Namespace, o.Trial)
	if err != nil {
		return err
	}
	if len(machines) == 0 {
		return none(&trial, cluster)
	}
	i := slices.IndexFunc(machines, func(m session.Machine) bool { return slices.Contains(m.Names, o.Machine) })
	if i < 0 {
		var names []string
		for _, m := range machines {
			names = append(names, m.Names[0])
		}
		slices.Sort(names)
		return session.Usage(fmt.Errorf("trial %s: %s", o.Trial, suggest.Unknown("no machine that is up is called", o.Machine, names)))
	}
	command := login
	if len(o.Command) > 0 {
		command = slices.Concat(login, []string{"--"}, o.Command)
	}
	terminal := len(o.Command) == 0 && term.IsTerminal(int(s.Console.In.Fd())) && term.IsTerminal(int(s.Console.Out.Fd()))
	code, err := machines[i].Run(ctx, command, s.Console, terminal)
	if err != nil {
		return err
	}
	if code != 0 {
		return &session.Verdict{Code: code, Message: fmt.Sprintf("the command on %s ended with exit code %d", o.Machine, code)}
	}
	return nil
}

// none explains why a trial has no machine that is up.
func none(t *v1alpha1.Trial, cluster session.Cluster) error {
	outcome := plan.Outcome(t)
	if outcome == v1alpha1.ReasonInProgress {
		return fmt.Errorf("trial %s has no machine that is up yet, or none any more; kubectl assay watch %s shows its state", t.Name, cluster.Flag())
	}
	why := ""
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialComplete); c != nil {
		why = " " + c.Message
	}
	return fmt.Errorf("trial %s has ended (%s), and its machines are gone.%s debug.keepFailed of the experiment keeps those of trials that are not valid; kubectl assay logs %[1]s %[4]s shows what is kept",
		t.Name, outcome, why, cluster.Flag())
}
